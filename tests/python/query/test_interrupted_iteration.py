"""A signal, a cancellation or a timeout at any moment of an iteration leaves the item for the next `next`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import itertools
import json
import operator
import os
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it sends itself signals")

# Long enough for any machine.
LONG = 120

KINDS = ["records", "pages", "batches"]


class Interrupted(BaseException):
    """Raised by the handler of the tests' signal."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def stream(query: cf.Query[Any], kind: str) -> Any:
    if kind == "batches":
        return query.batches(2)
    return query.pages() if kind == "pages" else iter(query)


def hashes(item: Any) -> list[str]:
    return [record.hash for record in getattr(item, "records", [item] if isinstance(item, cf.Block) else item)]


BLOCKS = [{"hash": f"0x{number}", "height": str(100 - number)} for number in range(12)]
EXPECTED = [block["hash"] for block in BLOCKS]


@pytest.fixture
def striking(server: StrictServer) -> StrictServer:
    """A server of twelve blocks that sends this process a signal just before every second response."""
    requests = itertools.count()

    def respond(request: Any) -> Response:
        if next(requests) % 2 == 0:
            os.kill(os.getpid(), signal.SIGUSR1)
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(BLOCKS) // limit))}
        return page_of("blocks", BLOCKS[(page - 1) * limit : page * limit], **members)

    server.on("blocks", respond)
    return server


@pytest.mark.parametrize("way", ["continued", "resumed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_that_comes_with_a_response_leaves_the_item(striking: StrictServer, kind: str, way: str) -> None:
    found: list[str] = []
    interrupts = 0
    with striking.client(concurrency=1) as client:
        query: cf.Query[Any] = client.blocks(page_size=2)
        items = stream(query, kind)
        while True:
            try:
                for item in items:
                    found += hashes(item)
                break
            except Interrupted:
                interrupts += 1
                if way == "resumed":
                    query = client.resume(query.cursor)
                    items = stream(query, kind)
    assert found == EXPECTED
    assert interrupts > 0


raise_signal: Callable[[int], int] = ctypes.PyDLL(None)["raise"]


@pytest.mark.parametrize("way", ["continued", "resumed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_that_comes_with_a_ready_item_leaves_it(client: cf.Client, kind: str, way: str) -> None:
    expected = [block.hash for block in client.blocks(max_items=12)]
    query: cf.Query[Any] = client.blocks(page_size=4, max_items=12)
    items = stream(query, kind)
    found: list[str] = []
    interrupts = 0
    ended = False
    while not ended:
        # `zip` calls one after the other, without the interpreter's check for signals in between.
        striking = zip(map(raise_signal, [signal.SIGUSR1]), items, strict=False)
        with pytest.raises(Interrupted):
            next(striking)
        interrupts += 1
        if way == "resumed":
            query = client.resume(query.cursor)
            items = stream(query, kind)
        try:
            found += hashes(next(items))
        except StopIteration:
            ended = True
    assert found == expected
    assert interrupts > 2


async def rest(items: AsyncIterator[Any]) -> list[str]:
    return [found async for item in items for found in hashes(item)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_around_every_anext_loses_and_ends_nothing(client: cf.Client, kind: str) -> None:
    expected = [block.hash for block in client.blocks()]
    moments = random.Random(11)

    async def run() -> list[str]:
        items = stream(client.blocks(page_size=50), kind)
        found: list[str] = []
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(moments.uniform(0, 0.004)):
                    try:
                        found += hashes(await anext(items))
                    except StopAsyncIteration:
                        return found

    for _ in range(10):
        assert asyncio.run(run()) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_anext_leaves_its_item(client: cf.Client, kind: str) -> None:
    expected = [block.hash for block in client.blocks(max_items=60)]

    async def run(turns: int) -> list[str]:
        items = stream(client.blocks(page_size=20, max_items=60), kind)
        found: list[str] = []
        while True:
            task = asyncio.create_task(anext(items))
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            task.cancel()
            try:
                found += hashes(await task)
            except asyncio.CancelledError:
                found += hashes(await anext(items, []))
            except StopAsyncIteration:
                return found
            if len(found) >= len(expected):
                return found + await rest(items)

    for turns in range(4):
        assert asyncio.run(run(turns)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_an_anext_that_is_never_awaited_takes_nothing(client: cf.Client, kind: str) -> None:
    async def run() -> list[str]:
        items = stream(client.blocks(page_size=50), kind)
        forgotten = [anext(items) for _ in range(3)]
        # One that was begun, and one that was thrown away in the midst of it.
        begun = anext(items)
        begun.send(None)
        begun.close()
        found = await rest(items)
        assert len(forgotten) == 3
        return found

    assert asyncio.run(run()) == [block.hash for block in client.blocks()]


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_and_task_groups_take_anext(client: cf.Client, kind: str) -> None:
    async def run() -> list[str]:
        items = stream(client.blocks(page_size=50), kind)
        found = hashes(await asyncio.create_task(anext(items)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(anext(items))
        return found + hashes(task.result()) + await rest(items)

    assert asyncio.run(run()) == [block.hash for block in client.blocks()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_iteration_ends_and_requests_nothing_more(service: LocalService, kind: str) -> None:
    async def run(client: cf.Client) -> tuple[list[str], str]:
        query = client.blocks(page_size=1)
        async with contextlib.aclosing(stream(query, kind)) as items:
            found = hashes(await anext(items))
        assert await rest(items) == []
        return found, query.cursor

    with service.client(concurrency=1) as client:
        expected = [block.hash for block in client.blocks()]
        before = service.request_count
        found, cursor = asyncio.run(run(client))
        assert service.request_count - before <= 5
        assert found + [block.hash for block in client.resume(cursor)] == expected
        with contextlib.closing(stream(client.blocks(), kind)) as items:
            next(items)
        assert list(itertools.islice(items, 3)) == []


def test_an_item_that_a_handler_took_before_it_raised_keeps_the_interrupted_one(client: cf.Client) -> None:
    expected = [block.hash for block in client.blocks(max_items=4)]
    rows = iter(client.blocks(page_size=2, max_items=4))
    taken = [next(rows).hash]

    def take_another(_number: int, _frame: object) -> None:
        taken.append(next(rows).hash)
        raise Interrupted

    signal.signal(signal.SIGUSR1, take_another)
    # Only C functions, so that the interpreter does not handle the signal before `next` does.
    send = functools.partial(ctypes.CDLL(None)["raise"], signal.SIGUSR1)
    with pytest.raises(Interrupted):
        list(map(operator.call, (send, functools.partial(next, rows))))
    # The handler took the first row of the second page; the last row of the first page is still there.
    assert taken == [expected[0], expected[2]]
    assert [row.hash for row in rows] == [expected[1], expected[3]]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("error", ["left", "taken"])
def test_a_contradiction_that_was_not_asked_for_stays_in_the_cursor(server: StrictServer, error: str) -> None:
    """It is read along with the page before it, of which the caller takes one record."""
    blocks = [{"hash": f"0x{number}", "height": str(1000 - number)} for number in range(400)]
    is_wrong = True
    # The client has the third page once it requests the fourth.
    has_third = threading.Event()

    def respond(request: Any) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(blocks) // limit))}
        rows = blocks[(page - 1) * limit : page * limit]
        if page == 2:
            has_third.wait(LONG)
        if page == 4:
            has_third.set()
        if page == 3 and is_wrong:
            rows = [{**row, "height": "5000"} for row in rows]
        return page_of("blocks", rows, **members)

    server.on("blocks", respond)
    with server.client(concurrency=2) as client:
        query = client.blocks(page_size=50)
        records = iter(query)
        taken = [block.hash for block in itertools.islice(records, 51)]
        deadline = time.monotonic() + LONG
        while not json.loads(query.cursor).get("reasons"):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        if error == "taken":
            taken += [block.hash for block in itertools.islice(records, 49)]
            with pytest.raises(cf.PaginationDriftError):
                next(records)
        is_wrong = False
        rest = client.resume(query.cursor)
        assert taken + [block.hash for block in rest.collect()] == [block["hash"] for block in blocks]
    assert rest.report is not None
    assert rest.report.complete is (error == "taken")
    assert any("earlier run failed" in reason for reason in rest.report.reasons) is (error == "left")
