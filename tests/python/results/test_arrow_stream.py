"""A query as an Arrow stream: consumers read it and fetch only the pages they need."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from repository import TESTS
from strict_server import Request, Response, StrictServer, page_of

# pandas has it from version 3 on.
from_arrow: Any = getattr(pd.DataFrame, "from_arrow", None)
PAGES = 40


def numbered(request: Request) -> Response:
    """Page n of forty: five blocks of the heights from 200 down."""
    number = int(request.query["page"])
    top = 5 * (PAGES - number + 1)
    rows = [{"hash": f"0x{number}-{row}", "height": str(top - row)} for row in range(5)]
    return page_of("blocks", rows, totalPage=str(PAGES), total=str(5 * PAGES), page=str(number), limit="5")


def ask(sql: str, query: cf.Query[Any]) -> list[Any]:
    """Return the result of SQL on `query`, which DuckDB finds among the local variables."""
    relation: Any = duckdb.sql(sql)
    assert query.last_error is None
    rows: list[Any] = relation.fetchall()
    return rows


def test_reading_five_rows_sends_one_request(service: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    before = service.request_count
    rows = ask("select * from query limit 5", query)
    assert service.request_count == before + 1
    assert [row[4] for row in rows] == [block.hash for block in client.blocks(max_items=5)]
    assert query.last_error is None


def test_relation_reads_all_records(client: cf.Client) -> None:
    counted = ask("select count(*), min(height), max(height) from query", client.transactions())
    heights = [transaction.height or 0 for transaction in client.transactions()]
    assert counted == [(len(heights), min(heights), max(heights))]


CONSUMERS: dict[str, Callable[[Any], int]] = {
    "polars": lambda stream: len(pl.DataFrame(stream)),
    "pyarrow": lambda stream: len(pa.table(stream)),
    "pyarrow's reader": lambda stream: len(pa.RecordBatchReader.from_stream(stream).read_all()),
    "DuckDB": lambda stream: len(duckdb.from_arrow(stream).fetchall()),
}
if from_arrow is not None:
    CONSUMERS["pandas"] = lambda stream: len(from_arrow(stream))


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_consumers_accept_queries_and_records(client: cf.Client, consumer: str) -> None:
    count = len(client.transactions().collect())
    assert CONSUMERS[consumer](client.transactions()) == count
    assert CONSUMERS[consumer](client.transactions().collect()) == count


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_last_error_keeps_the_error_of_a_consumer(server: StrictServer, consumer: str) -> None:
    server.on("blocks", Response(b"", 503))
    with server.client() as client:
        query = client.blocks()
        # Before version 2, polars panics, which is no Exception.
        with pytest.raises(BaseException, match="503"):
            CONSUMERS[consumer](query)
        assert isinstance(query.last_error, cf.ServiceUnavailableError)
        assert query.last_error.endpoint == "blocks"


def test_last_error_keeps_an_overflow_of_a_consumer(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1"}, {"amount": "1e20"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        with pytest.raises(Exception, match="1e20"):
            pa.table(query)
        assert isinstance(query.last_error, cf.NumericOverflowError)
        assert (query.last_error.column, query.last_error.row) == ("amount", 1)
        assert len(pa.table(query.collect().to_arrow("string"))) == 2


def test_batch_reader_yields_batches_of_the_given_size(server: StrictServer) -> None:
    server.on("blocks", numbered)
    with server.client() as client:
        query = client.blocks(page_size=5)
        reader = query.to_arrow_batch_reader(batch_size=32)
        assert server.requests == []
        schema: Any = query.collect().schema
        assert reader.schema == pa.schema(schema)
        batches = list(query.to_arrow_batch_reader(batch_size=32))
    assert [len(batch) for batch in batches] == [32] * 6 + [8]
    heights = [height for batch in batches for height in batch.column("height").to_pylist()]
    assert heights == list(range(5 * PAGES, 0, -1))
    assert query.report.complete


def test_reader_of_columns_converts_no_others(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1e20", "txid": "0x1"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        assert query.to_arrow_batch_reader(columns=["tx_id"]).read_all().to_pylist() == [{"tx_id": "0x1"}]
        with pytest.raises(cf.InvalidParameterError, match="columns"):
            query.to_arrow_batch_reader(columns=["size"])


def test_batch_reader_converts_numbers_as_given(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1e20"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        assert query.to_arrow_batch_reader(numbers="string").read_all().column("amount").to_pylist() == ["1e20"]
        assert query.to_arrow_batch_reader(numbers="float").read_all().column("amount").to_pylist() == [1e20]
        with pytest.raises(cf.NumericOverflowError):
            query.to_arrow_batch_reader().read_all()

        wrong: list[Any] = [0, -(10**30), 10**30, True, "5", 1.5]
        for rows in wrong:
            for read in (query.to_arrow_batch_reader, query.batches):
                with pytest.raises(cf.InvalidParameterError, match=r"batch_size must be an integer from 1 to .*; got "):
                    read(batch_size=rows)


def test_batch_reader_raises_errors_with_their_class(server: StrictServer) -> None:
    def failing(request: Request) -> Response:
        return Response(b"", 503) if request.query["page"] == "9" else numbered(request)

    server.on("blocks", failing)
    with server.client() as client:
        query = client.blocks(page_size=5)
        reader = query.to_arrow_batch_reader(batch_size=10)
        assert [len(reader.read_next_batch()) for _ in range(4)] == [10] * 4
        with pytest.raises(cf.ServiceUnavailableError):
            reader.read_next_batch()
        assert isinstance(query.last_error, cf.ServiceUnavailableError)


def test_last_error_keeps_the_error_of_an_iteration(server: StrictServer) -> None:
    server.on("blocks", Response(b"", 503))
    with server.client() as client:
        query = client.blocks()
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            list(query.batches())
        assert query.last_error is caught.value


def test_reader_that_failed_does_not_seem_to_end(server: StrictServer) -> None:
    def third_fails(request: Request) -> Response:
        return Response(b"", 503) if request.query["page"] == "3" else numbered(request)

    server.on("blocks", third_fails)
    with server.client(max_retries=0, concurrency=1) as client:
        query = client.blocks(page_size=5)
        own = query.to_arrow_batch_reader(batch_size=5)
        rows = sum(own.read_next_batch().num_rows for _ in range(2))
        with pytest.raises(cf.ServiceUnavailableError):
            own.read_next_batch()
        for _ in range(2):
            with pytest.raises(cf.ContextError, match=r"this reader has failed before \(blocks: .* 503"):
                own.read_next_batch()
        server.on("blocks", numbered)
        assert rows + len(client.resume(query.cursor).collect()) == 5 * PAGES
        server.on("blocks", third_fails)
        stream = pa.RecordBatchReader.from_stream(client.blocks(page_size=5))
        for message in ("503", "this reader has failed before", "this reader has failed before"):
            with pytest.raises(pa.ArrowInvalid, match=message):
                stream.read_all()


def test_first_record_sends_one_request(server: StrictServer) -> None:
    server.on("blocks", numbered)
    with server.client(concurrency=3) as client:
        assert next(iter(client.blocks(page_size=5))).hash == "0x1-0"
    assert len(server.requests) == 1


def test_error_is_raised_after_the_records_before_it(server: StrictServer) -> None:
    def failing(request: Request) -> Response:
        return Response(b"", 503) if request.query["page"] == "9" else numbered(request)

    server.on("blocks", failing)
    with server.client(concurrency=3) as client:
        records = iter(client.blocks(page_size=5))
        assert [next(records).height for _ in range(40)] == list(range(200, 160, -1))
        for _ in range(2):
            with pytest.raises(cf.ServiceUnavailableError):
                next(records)
        server.on("blocks", numbered)
        assert [record.height for record in records] == list(range(160, 0, -1))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are Unix's")
@pytest.mark.parametrize("consumer", [*CONSUMERS, "reader"])
def test_interrupt_reaches_a_consumer(server: StrictServer, consumer: str) -> None:
    if consumer == "polars" and int(pl.__version__.partition(".")[0]) < 2:
        pytest.skip("polars 1 panics and is interrupted again")
    requested, opened = threading.Event(), threading.Event()

    def held_back(request: Request) -> Response:
        if request.query["page"] == "7":
            requested.set()
            opened.wait(60)
        return numbered(request)

    def interrupt() -> None:
        requested.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    def consume() -> None:
        try:
            query.to_arrow_batch_reader(batch_size=5).read_all() if consumer == "reader" else CONSUMERS[consumer](query)
        except Exception:
            # A library may report the failure before Python raises the interrupt.
            time.sleep(0.2)
            raise

    server.on("blocks", held_back)
    thread = threading.Thread(target=interrupt)
    with server.client(timeout=30) as client:
        query = client.blocks(page_size=5)
        thread.start()
        # Each library has an error of its own for it.
        with pytest.raises((KeyboardInterrupt, Exception)):
            consume()
        assert not opened.is_set()
        opened.set()
        thread.join()


BROKEN = """
import sys
import pyarrow as pa
from strict_server import Response, StrictServer

with StrictServer() as server:
    server.on("blocks", Response(b'{"code":"0","x' + eval(sys.argv[1]) + b'y":tru}'))
    with server.client(max_retries=0) as client:
        query = client.blocks()
        try:
            pa.table(query)
        except (pa.ArrowException, OSError) as error:
            assert not [char for char in str(error) if ord(char) < 32 and char not in "\\n\\t"], str(error)
            assert str(query.last_error).isprintable(), str(query.last_error)
            print(type(query.last_error).__name__)
"""


@pytest.mark.parametrize("text", [rb"\u0000", rb"\u0007\u001b[31m", rb"\n2026-01-01 WARNING \u0085", b"\x7f"])
def test_an_error_with_control_characters_reaches_a_consumer_escaped(text: bytes) -> None:
    command = [sys.executable, "-c", BROKEN, repr(text)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ResponseFormatError\n", "")


WAKEUP = """
import signal
import pyarrow as pa
import duckdb
from chainframe.testing import LocalService

with LocalService(transactions=300) as service:
    client = service.client(rate_limit=None)
    query = client.blocks()
    pa.table(query)
    print(signal.set_wakeup_fd(-1))
    reader = pa.RecordBatchReader.from_stream(client.blocks())
    other = pa.RecordBatchReader.from_stream(client.blocks())
    reader.read_next_batch()
    del reader
    print(signal.set_wakeup_fd(-1) > 0)
    other.read_all()
    del other
    print(signal.set_wakeup_fd(-1))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such descriptors")
def test_the_wakeup_descriptor_is_handed_back_after_the_last_read() -> None:
    done = subprocess.run([sys.executable, "-c", WAKEUP], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "-1\nTrue\n-1\n", "")


def test_an_interrupted_reader_leaves_the_cursor_before_the_batch(client: cf.Client) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    expected = [block.hash for block in client.blocks()]
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        query: cf.Query[Any] = client.blocks(page_size=10)
        reader = query.to_arrow_batch_reader(10)
        found = reader.read_next_batch().column("hash").to_pylist()
        striking = zip(map(raise_signal, [signal.SIGUSR1]), reader, strict=False)
        with pytest.raises(KeyboardInterrupt):
            next(striking)
        assert found + [block.hash for block in client.resume(query.cursor)] == expected
    finally:
        signal.signal(signal.SIGUSR1, before)


raise_signal: Callable[[int], int] = ctypes.PyDLL(None)["raise"]


DETACHED = """
import pyarrow as pa
from chainframe.testing import LocalService

with LocalService(transactions=300) as service, service.client() as plain:
    held = [pa.RecordBatchReader.from_stream(plain.blocks())]
    with service.client(on_attempt=lambda _: held.clear()) as client:
        print(len(client.blocks().collect()))
"""


def test_stream_can_be_released_in_on_attempt() -> None:
    """pyarrow releases a stream detached from the interpreter, here within a call that this package made."""
    done = subprocess.run([sys.executable, "-c", DETACHED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "300\n"), done.stderr


def test_stream_is_released_where_nothing_can_be_imported(client: cf.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    # The garbage collector runs in frames without builtins as well, for example those that make named tuples.
    release = eval("lambda readers: readers.clear()", {"__builtins__": {}})
    query: Any = client.blocks()
    readers = [pa.RecordBatchReader.from_stream(query)]
    readers[0].read_next_batch()
    release(readers)
    assert not ignored
