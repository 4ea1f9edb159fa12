"""One client in threads, event loops and forked children; interrupts, cancellation and close."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Response, StrictServer, page_of


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
def test_forked_child_uses_the_client(client: cf.Client) -> None:
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
    """A list of two pages, of which the second one is held back until it is opened."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.opened = threading.Event()

    def __call__(self, request: Any) -> Response:
        number = request.query["page"]
        if number == "2":
            self.requested.set()
            self.opened.wait(60)
        return page_of("blocks", [{"hash": f"0x{number}"}], totalPage="2", page=number)


def test_interrupt_ends_the_wait_and_keeps_the_partial_result(server: StrictServer) -> None:
    gate = Gate()
    server.on("blocks", gate)

    def interrupt() -> None:
        gate.requested.wait(60)
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


def test_cancelled_task_leaves_the_client_usable(server: StrictServer) -> None:
    gate = Gate()
    server.on("blocks", gate)

    async def run(client: cf.Client) -> list[Any]:
        task = asyncio.ensure_future(client.blocks(page_size=1).collect_async())
        await asyncio.to_thread(gate.requested.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.opened.set()
        return list(await client.blocks(page_size=1).collect_async())

    with server.client() as client:
        assert [block.hash for block in asyncio.run(run(client))] == ["0x1", "0x2"]


def test_iteration_may_be_abandoned(service: LocalService, client: cf.Client) -> None:
    before = service.request_count
    for _ in client.transactions(page_size=1):
        break
    assert service.request_count <= before + 1 + 4
    assert len(client.blocks().collect()) > 0


def test_two_iterations_of_one_query_are_independent(client: cf.Client) -> None:
    query = client.blocks(page_size=10)
    one, other = iter(query), iter(query)
    assert next(one) == next(other)
    assert next(one) == next(other)
    assert list(one) == list(other)


def test_closed_client_can_be_used_again(service: LocalService) -> None:
    client = service.client()
    expected = list(client.blocks())
    client.close()
    client.close()
    assert list(client.blocks()) == expected


def test_client_is_a_sync_and_async_context_manager(service: LocalService) -> None:
    async def run() -> int:
        async with service.client() as client:
            return len(await client.blocks().collect_async())

    with service.client() as client:
        assert len(client.blocks().collect()) == asyncio.run(run())


def test_last_error_keeps_the_error_of_an_arrow_consumer(server: StrictServer) -> None:
    server.on("blocks", Response(b"", 503))
    with server.client() as client:
        query = client.blocks()
        with pytest.raises(Exception, match="503"):
            pa.table(query)
        assert isinstance(query.last_error, cf.ServiceUnavailableError)


ABANDON = {
    "the task is cancelled": "task.cancel()",
    "the coroutine is closed": "coroutine.close()",
    "the coroutine is dropped": "del coroutine",
    "the task is dropped": "loop.close(); task._log_destroy_pending = False; del task, loop; gc.collect()",
    "the loop is closed": "loop.close(); task._log_destroy_pending = False",
}
ABANDONED = """
import asyncio, gc, socket, sys, threading
import chainframe as cf

requested, ended = threading.Event(), threading.Event()
listener = socket.create_server(("127.0.0.1", 0))


def serve():
    connection, _ = listener.accept()
    connection.settimeout(60)
    connection.recv(65_536)
    requested.set()
    if connection.recv(1) == b"":
        ended.set()


threading.Thread(target=serve, daemon=True).start()
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
client = cf.Client(base_url=url, api_key="k" * 9, secret_key="s" * 9, passphrase="p" * 9, timeout=600, deadline=None)


async def main():
    coroutine = client.blocks().collect_async()
    coroutine.send(None)
    return coroutine


async def tasked():
    task = asyncio.ensure_future(client.blocks().collect_async())
    while not requested.is_set():
        await asyncio.sleep(0.01)
    return task


loop = asyncio.new_event_loop()
if "coroutine" in sys.argv[1]:
    coroutine = loop.run_until_complete(main())
    assert requested.wait(60)
else:
    task = loop.run_until_complete(tasked())
exec(sys.argv[1])
if "task.cancel" in sys.argv[1]:
    loop.run_until_complete(asyncio.wait([task]))
print(ended.wait(60))
"""


@pytest.mark.parametrize("way", ABANDON)
def test_an_abandoned_coroutine_closes_its_connection(way: str) -> None:
    command = [sys.executable, "-c", ABANDONED, ABANDON[way]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_coroutine_is_awaited_once_and_warns_if_it_never_was(client: cf.Client) -> None:
    async def twice() -> None:
        coroutine = client.blocks().first_async()
        await coroutine
        await coroutine

    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        asyncio.run(twice())
    abandoned = [client.blocks().first_async()]
    with pytest.warns(RuntimeWarning, match=r"coroutine 'Query.first_async' was never awaited"):
        abandoned.clear()


def test_a_coroutine_outside_of_asyncio_names_the_alternative(client: cf.Client) -> None:
    coroutine = client.blocks().collect_async()
    with pytest.raises(RuntimeError, match=r"no running asyncio event loop.*trio\.to_thread\.run_sync"):
        coroutine.send(None)


class Local:
    """An object in a local variable of a caller."""


READS: dict[str, Callable[[cf.Query[Any]], Any]] = {
    "collect": lambda query: query.collect(),
    "pages": lambda query: list(query.pages()),
    "collect_async": lambda query: asyncio.run(awaited(query)),
    "reader": lambda query: query.to_arrow_batch_reader().read_all(),
    "arrow": pa.table,
}


async def awaited(query: cf.Query[Any]) -> Any:
    return await query.collect_async()


@pytest.mark.parametrize("way", READS)
def test_the_locals_of_a_failed_query_are_collected(server: StrictServer, way: str) -> None:
    server.on("blocks", Response(b"", 400))

    def fail(client: cf.Client) -> weakref.ref[Local]:
        kept = Local()
        query = client.blocks()
        reader = READS[way]
        # The error has this frame in its traceback, and the query has the error.
        with contextlib.suppress(cf.ChainframeError, pa.ArrowException, OSError):
            reader(query)
        assert query.last_error is not None
        return weakref.ref(kept)

    with server.client(max_retries=0) as client:
        references = [fail(client) for _ in range(5)]
        gc.collect()
        assert [reference() for reference in references] == [None] * 5
