"""Interrupts, cancellations and timeouts carry what was fetched and say how to continue."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from conftest import needs_extra
from strict_server import Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGES, PAGE_SIZE = 6, 2
BLOCKS = [{"hash": f"0x{number}", "height": str(100 - number)} for number in range(PAGES * PAGE_SIZE)]
HASHES = [block["hash"] for block in BLOCKS]
pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
FRAMES = {"to_pandas", "to_polars", "to_arrow"}
WHOLE = ["collect", "to_dicts", *sorted(FRAMES)]


def page(number: int, limit: int = PAGE_SIZE) -> Response:
    members = {"page": str(number), "limit": str(limit), "totalPage": str(-(-len(BLOCKS) // limit))}
    return page_of("blocks", BLOCKS[(number - 1) * limit : number * limit], **members)


def serving(server: StrictServer, at: int, event: Callable[[], Response | None]) -> None:
    """Serves the blocks. `event` is called, once, before the response of page `at`."""
    happened: list[int] = []

    def respond(request: Any) -> Response:
        number, limit = int(request.query["page"]), int(request.query["limit"])
        if number == at and not happened:
            happened.append(number)
            return event() or page(number, limit)
        return page(number, limit)

    server.on("blocks", respond)


def struck() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


class Interrupted(BaseException):
    """Raised by the handler of the tests' signal."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    if sys.platform == "win32":
        pytest.skip("it sends itself signals")
    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def continues(client: cf.Client, caught: Any) -> None:
    """Checks that the exception has the beginning of the blocks, and the cursor of the rest."""
    kept = [block.hash for block in caught.partial]
    assert kept
    assert kept + [block.hash for block in client.resume(caught.cursor).collect()] == HASHES
    (note,) = caught.__notes__
    assert note.startswith(f"{len(kept)} records are kept in query.partial, and client.resume(query.cursor) fetches")
    assert "\n" not in note


@pytest.mark.parametrize("way", [pytest.param(way, marks=needs_extra) if way in FRAMES else way for way in WHOLE])
def test_interrupt_carries_the_records_and_the_cursor(server: StrictServer, way: str) -> None:
    serving(server, 4, struck)
    with server.client(concurrency=1) as client:
        with pytest.raises(Interrupted) as caught:
            getattr(client.blocks(page_size=PAGE_SIZE), way)()
        continues(client, caught.value)


@pytest.mark.parametrize("way", ["collect", "first"])
def test_interrupt_of_the_first_request_has_a_cursor_and_no_note(server: StrictServer, way: str) -> None:
    released = threading.Event()

    def event() -> None:
        struck()
        assert released.wait(60)

    serving(server, 1, event)
    with server.client() as client:
        with pytest.raises(Interrupted) as caught:
            getattr(client.blocks(page_size=PAGE_SIZE), way)()
        released.set()
        raised: Any = caught.value
        assert not hasattr(raised, "__notes__")
        assert len(client.resume(raised.cursor).collect()) > 0


@pytest.mark.parametrize("form", ["records", "pages", "batches"])
def test_interrupt_of_a_loop_carries_the_cursor_after_what_was_returned(server: StrictServer, form: str) -> None:
    serving(server, 4, struck)
    ways: dict[str, Callable[[cf.Query[cf.Block]], Any]] = {
        "records": iter,
        "pages": cf.Query.pages,
        "batches": lambda query: query.batches(2),
    }
    with server.client(concurrency=1) as client:
        returned: list[str | None] = []

        def read() -> None:
            for item in ways[form](client.blocks(page_size=PAGE_SIZE)):
                records = [item] if isinstance(item, cf.Block) else getattr(item, "records", item)
                returned.extend(record.hash for record in records)

        with pytest.raises(Interrupted) as caught:
            read()
        assert returned
        raised: Any = caught.value
        assert returned + [block.hash for block in client.resume(raised.cursor).collect()] == HASHES
        assert raised.__notes__ == ["client.resume(error.cursor) continues after the last record that was returned"]


@needs_extra
def test_interrupt_of_a_reader_carries_the_cursor(server: StrictServer) -> None:
    serving(server, 4, struck)
    with server.client(concurrency=1) as client:
        query = client.blocks(page_size=PAGE_SIZE)
        reader = query.to_arrow_batch_reader(2)
        returned: list[Any] = []
        with contextlib.suppress(BaseException):
            for batch in reader:
                returned += batch["hash"].to_pylist()
        assert isinstance(query.last_error, Interrupted)
        raised: Any = query.last_error
        assert returned + [block.hash for block in client.resume(raised.cursor).collect()] == HASHES


@needs_extra
def test_interrupt_before_the_first_batch_says_that_the_query_begins_again(server: StrictServer) -> None:
    serving(server, 4, struck)
    with server.client(concurrency=1) as client:
        query = client.blocks(page_size=PAGE_SIZE)
        reader = query.to_arrow_batch_reader()
        with contextlib.suppress(BaseException):
            reader.read_all()
        assert isinstance(query.last_error, Interrupted)
        raised: Any = query.last_error
        begins, kept = raised.__notes__[0].split("; ")
        assert begins == "no record was returned: client.resume(error.cursor) begins again"
        assert kept == f"{len(raised.partial)} records are kept in query.partial and error.partial"
        assert len(raised.partial) > 1
        assert [block.hash for block in client.resume(raised.cursor).collect()] == HASHES


def test_interrupt_of_a_follower_carries_its_cursor(server: StrictServer) -> None:
    serving(server, 1, struck)
    with server.client(concurrency=1) as client:
        follow = client.blocks(page_size=PAGE_SIZE).follow(start="beginning", settle=0, poll=None)
        with pytest.raises(Interrupted) as caught:
            next(follow)
    raised: Any = caught.value
    assert raised.cursor == follow.cursor
    assert raised.__notes__ == ["pass start=error.cursor to query.follow, or iterate on, to continue from here"]


ASYNC: dict[str, Callable[[Any], Any]] = {
    "await query": lambda query: query,
    **{f"{name}_async": operator.methodcaller(f"{name}_async") for name in WHOLE},
}


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=needs_extra) if way.removesuffix("_async") in FRAMES else way for way in ASYNC],
)
def test_cancellation_and_timeout_carry_the_records_and_the_cursor(server: StrictServer, way: str) -> None:
    async def main(client: cf.Client, *, in_time: bool) -> Any:
        running = asyncio.get_running_loop()
        reached, released = asyncio.Event(), threading.Event()
        limit = asyncio.timeout(None)

        async def work() -> None:
            async with limit:
                await ASYNC[way](client.blocks(page_size=PAGE_SIZE))

        def event() -> None:
            running.call_soon_threadsafe(reached.set)
            assert released.wait(60)

        serving(server, 4, event)
        task = asyncio.ensure_future(work())
        await reached.wait()
        if not in_time:
            limit.reschedule(running.time())
        else:
            task.cancel()
        with pytest.raises(asyncio.CancelledError if in_time else TimeoutError) as caught:
            await task
        released.set()
        return caught.value if in_time else caught.value.__cause__

    with server.client(concurrency=1) as client:
        for in_time in (True, False):
            continues(client, asyncio.run(main(client, in_time=in_time)))


def test_async_conversions_are_the_blocking_ones(server: StrictServer) -> None:
    serving(server, 0, struck)

    async def main(client: cf.Client) -> None:
        query = client.blocks(page_size=PAGE_SIZE)
        assert await query == query.collect() == await query.collect_async() == await query.collect()
        for name in ("to_dicts", "to_arrow"):
            options: dict[str, Any] = {"columns": ["height"]}
            assert await getattr(query, f"{name}_async")(**options) == getattr(query, name)(**options)
        polars = await query.to_polars_async("float", columns=["hash"])
        assert polars.equals(query.to_polars("float", columns=["hash"]))
        pandas = await query.to_pandas_async(dtype_backend="pyarrow")
        assert pandas.equals(query.to_pandas(dtype_backend="pyarrow"))
        assert pandas.attrs["chainframe"]["records"] == len(BLOCKS)

    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    with server.client() as client:
        asyncio.run(main(client))


def test_async_conversion_takes_the_numbers_of_its_client(client: cf.Client) -> None:
    pytest.importorskip("polars")

    async def schema(of: cf.Client) -> Any:
        return (await of.large_transactions(max_items=3).to_polars_async()).schema

    other = client.with_options(numbers="float")
    assert asyncio.run(schema(other)) == other.large_transactions(max_items=3).to_polars().schema
    assert asyncio.run(schema(other)) != asyncio.run(schema(client))


def test_await_wakes_the_event_loop_while_a_response_is_awaited(server: StrictServer) -> None:
    """A kernel handles an interrupt only when its loop turns."""

    class Counting(asyncio.SelectorEventLoop):
        woken = 0

        def call_soon_threadsafe(self, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]
            self.woken += 1
            if self.woken >= 3:
                released.set()
            return super().call_soon_threadsafe(*arguments, **options)

    released = threading.Event()

    def event() -> Response:
        assert released.wait(60)
        return page(1)

    serving(server, 1, event)
    with server.client(timeout=120) as client, contextlib.closing(Counting()) as loop:
        assert len(loop.run_until_complete(client.blocks(page_size=PAGE_SIZE).collect_async())) == len(BLOCKS)
    assert released.is_set()


def test_error_of_a_later_request_has_the_note_and_of_a_first_has_none(server: StrictServer) -> None:
    with server.client(max_retries=0, concurrency=1) as client:

        def failed(at: int) -> Any:
            serving(server, at, lambda: error(503, "50001"))
            with pytest.raises(cf.ServiceUnavailableError) as caught:
                client.blocks(page_size=PAGE_SIZE).collect()
            return caught.value

        assert not hasattr(failed(at=1), "__notes__")
        continues(client, failed(at=4))
