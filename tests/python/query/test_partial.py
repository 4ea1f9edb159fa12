"""Partial results after a failure, and reports of incomplete results."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

Way = Callable[[cf.Query[Any]], object]


async def every(stream: Any) -> None:
    async for _ in stream:
        pass


WAYS: dict[str, Way] = {
    "collect": lambda query: query.collect(),
    "collect_async": lambda query: asyncio.run(query.collect_async()),
    "records": list,
    "records, async": lambda query: asyncio.run(every(query)),
    "pages": lambda query: list(query.pages()),
    "pages, async": lambda query: asyncio.run(every(query.pages())),
    "batches": lambda query: list(query.batches(batch_size=3)),
    "batches, async": lambda query: asyncio.run(every(query.batches(batch_size=3))),
    "reader": lambda query: query.to_arrow_batch_reader(batch_size=3).read_all(),
    "stream": pa.table,
    "to_dicts": lambda query: query.to_dicts(),
}


def five(number: int, **members: object) -> Response:
    """Page n of nine: five blocks."""
    rows = [{"hash": f"0x{number}-{row}"} for row in range(5)]
    return page_of("blocks", rows, **{"totalPage": "9", "total": "45", "page": str(number), "limit": "5", **members})


HASHES = [f"0x{number}-{row}" for number in range(1, 10) for row in range(5)]


@pytest.mark.parametrize("way", WAYS)
def test_partial_after_a_failure_has_the_fetched_records(server: StrictServer, way: str) -> None:
    def respond(request: Request) -> Response:
        number = int(request.query["page"])
        return five(number) if number < 4 else Response(b"", 503)

    server.on("blocks", respond)
    query = server.client().blocks(page_size=5)
    assert len(query.partial) == 0
    with pytest.raises(Exception, match="503"):
        WAYS[way](query)
    assert [block.hash for block in query.partial] == HASHES[:15]
    assert not query.partial.report.complete
    elapsed = query.report.elapsed
    assert elapsed > 0
    assert query.report.elapsed == elapsed


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are Unix's")
@pytest.mark.parametrize("way", ["collect", "records", "pages", "batches"])
def test_partial_after_an_interrupt_has_the_fetched_records(server: StrictServer, way: str) -> None:
    requested, opened = threading.Event(), threading.Event()

    def respond(request: Request) -> Response:
        number = int(request.query["page"])
        if number == 3:
            requested.set()
            opened.wait(60)
        return five(number)

    def interrupt() -> None:
        requested.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    server.on("blocks", respond)
    thread = threading.Thread(target=interrupt)
    with server.client(concurrency=1) as client:
        query = client.blocks(page_size=5)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            WAYS[way](query)
        thread.join()
        assert [block.hash for block in query.partial] == HASHES[:10]
        elapsed = query.report.elapsed
        opened.set()
        assert query.report.elapsed == elapsed


def test_partial_after_a_complete_run_has_all_records(server: StrictServer) -> None:
    server.on("blocks", lambda request: five(int(request.query["page"])))
    query = server.client().blocks(page_size=5)
    records = query.collect()
    assert query.partial == records
    assert query.partial.report.complete
    assert [block.hash for block in query] == HASHES
    assert query.partial == records


def short(request: Request) -> Response:
    """A list that counts more than it gives."""
    return five(int(request.query["page"]), total="46")


@pytest.mark.parametrize("way", WAYS)
def test_strict_error_has_the_partial_result(server: StrictServer, way: str) -> None:
    server.on("blocks", short)
    query = server.client(strict=True).blocks(page_size=5)
    with pytest.raises(Exception, match="reports 46 records") as caught:
        WAYS[way](query)
    error = query.last_error if way == "stream" else caught.value
    assert isinstance(error, cf.IncompleteResultError)
    assert error.partial is not None
    assert [block.hash for block in error.partial] == HASHES
    assert error.report is not None
    assert not error.report.complete
    assert error.report.reasons == error.partial.report.reasons == query.report.reasons
    assert all(reason.endswith(".") for reason in error.report.reasons)


@pytest.mark.parametrize("way", WAYS)
def test_warning_points_to_the_calling_line(server: StrictServer, way: str) -> None:
    server.on("blocks", short)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WAYS[way](server.client().blocks(page_size=5))
    (warning,) = caught
    assert warning.category is cf.IncompleteResultWarning
    assert warning.filename == __file__


def test_result_of_a_cancelled_task_is_kept(server: StrictServer) -> None:
    server.on("blocks", lambda request: five(int(request.query["page"])))
    query = server.client().blocks(page_size=5)

    async def read() -> list[str | None]:
        stream = aiter(query.pages())
        loop = asyncio.get_running_loop()
        step: Any = asyncio.ensure_future(anext(stream))

        def once_promised() -> None:
            # The result is on its way to the task when the task is cancelled.
            if any(isinstance(waiter, asyncio.Future) and waiter.done() for waiter in [step._fut_waiter]):
                step.cancel()
            elif not step.done():
                loop.call_soon(once_promised)

        await asyncio.sleep(0)
        loop.call_soon(once_promised)
        with pytest.raises(asyncio.CancelledError):
            await step
        return [block.hash async for page in stream for block in page.records]

    assert asyncio.run(read()) == HASHES
