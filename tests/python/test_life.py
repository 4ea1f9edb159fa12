"""One client in threads, loops and forked children; interrupts, cancellation, and the end."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Answer, StrictServer, page_of


def test_threads_share_a_client(client: cf.Client) -> None:
    expected = list(client.blocks())
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda size: list(client.blocks(page_size=size)), [9, 17, 33, 100] * 4))
    assert results == [expected] * 16


def test_loops_share_a_client(client: cf.Client) -> None:
    async def run() -> list[Any]:
        return list(await client.blocks().collect_async())

    expected = list(client.blocks())
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: asyncio.run(run()), range(8))) == [expected] * 8


def report_blocks(client: cf.Client, end: Connection) -> None:
    end.send([block.hash for block in client.blocks()])
    end.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on_with_it(client: cf.Client) -> None:
    expected = [block.hash for block in client.blocks()]
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=report_blocks, args=(client, theirs))
    child.start()
    theirs.close()
    try:
        assert ours.poll(60)
        assert ours.recv() == expected
    finally:
        child.kill()
        child.join()
        ours.close()
    assert [block.hash for block in client.blocks()] == expected


class Gate:
    """Answers the first page, and holds the second one back until it is opened."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.opened = threading.Event()

    def __call__(self, request: Any) -> Answer:
        number = request.query["page"]
        if number == "2":
            self.asked.set()
            self.opened.wait(60)
        return page_of("blocks", [{"hash": f"0x{number}"}], totalPage="2", page=number)


def test_an_interrupt_ends_the_wait_and_leaves_what_there_is(server: StrictServer) -> None:
    gate = Gate()
    server.on("blocks", gate)

    def interrupt() -> None:
        gate.asked.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    with server.client() as client:
        query = client.blocks(page_size=1)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            query.collect()
        thread.join()
        assert [block.hash for block in query.partial] == ["0x1"]
        gate.opened.set()
        assert [block.hash for block in client.blocks(page_size=1)] == ["0x1", "0x2"]


def test_a_cancelled_task_ends_and_the_client_goes_on(server: StrictServer) -> None:
    gate = Gate()
    server.on("blocks", gate)

    async def run(client: cf.Client) -> list[Any]:
        task = asyncio.ensure_future(client.blocks(page_size=1).collect_async())
        await asyncio.to_thread(gate.asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.opened.set()
        return list(await client.blocks(page_size=1).collect_async())

    with server.client() as client:
        assert [block.hash for block in asyncio.run(run(client))] == ["0x1", "0x2"]


def test_an_iteration_may_be_left(service: LocalService, client: cf.Client) -> None:
    before = service.requests
    for _ in client.transactions(page_size=1):
        break
    assert service.requests <= before + 1 + 4
    assert len(client.blocks().collect()) > 0


def test_two_iterations_of_one_query_are_apart(client: cf.Client) -> None:
    query = client.blocks(page_size=10)
    one, other = iter(query), iter(query)
    assert next(one) == next(other)
    assert next(one) == next(other)
    assert list(one) == list(other)


def test_closing_gives_up_connections_and_no_more(service: LocalService) -> None:
    client = service.client()
    expected = list(client.blocks())
    client.close()
    client.close()
    assert list(client.blocks()) == expected


def test_a_client_is_a_context_manager_of_both_kinds(service: LocalService) -> None:
    async def run() -> int:
        async with service.client() as client:
            return len(await client.blocks().collect_async())

    with service.client() as client:
        assert len(client.blocks().collect()) == asyncio.run(run())


def test_an_arrow_consumers_error_is_kept(server: StrictServer) -> None:
    server.on("blocks", Answer(b"", 503))
    with server.client() as client:
        query = client.blocks()
        with pytest.raises(Exception, match="503"):
            pa.table(query)
        assert isinstance(query.last_error, cf.ServiceUnavailableError)
