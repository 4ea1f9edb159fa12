"""Iterators that another thread closes while they wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Long enough for any machine: a thread that does not end is the failure.
LONG = 120

ITERATORS: dict[str, Callable[[cf.Query[Any]], Iterator[Any]]] = {
    "records": iter,
    "pages": lambda query: query.pages(),
    "batches": lambda query: query.batches(),
    "follow": lambda query: query.follow(start="beginning", poll=0.001),
}


def end_of_thread(iterator: Any, wait: Callable[[], object]) -> int:
    """Reads an iterator in a thread, closes it once it waits, and returns the number of its items."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend(iterator), daemon=True)
    thread.start()
    wait()
    iterator.close()
    thread.join(LONG)
    assert not thread.is_alive()
    assert next(iterator, None) is None
    return len(found)


@pytest.mark.parametrize("kind", ITERATORS)
def test_close_ends_a_wait_for_a_response(server: StrictServer, kind: str) -> None:
    is_requested = threading.Event()
    is_over = threading.Event()

    def stall(request: Request) -> Response:
        del request
        is_requested.set()
        is_over.wait(LONG)
        return page_of("transactions", [{"txid": "0x1", "height": "1", "blockHash": "0xb"}])

    server.on("transactions", stall)
    with server.client() as client:
        try:
            assert end_of_thread(ITERATORS[kind](client.transactions()), lambda: is_requested.wait(LONG)) == 0
        finally:
            is_over.set()


def test_close_ends_a_follower_that_waits_for_records(server: StrictServer) -> None:
    is_polled = threading.Event()
    rows = [{"txid": f"0x{height}", "height": str(height), "blockHash": f"0xb{height}"} for height in (3, 2, 1)]

    def respond(request: Request) -> Response:
        del request
        if len(server.requests) > 20:
            is_polled.set()
        return page_of("transactions", rows)

    server.on("transactions", respond)
    with server.client() as client:
        follower = client.transactions().follow(start="beginning", settle=0, poll=0.001)
        assert end_of_thread(follower, lambda: is_polled.wait(LONG)) > 0
