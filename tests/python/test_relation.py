"""A query as a relation: Arrow libraries read it, and ask for no more than they need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Answer, Request, StrictServer, page_of

from_arrow: Any = getattr(pd.DataFrame, "from_arrow")  # noqa: B009 - which the stubs of pandas do not know yet
PAGES = 40


def numbered(request: Request) -> Answer:
    """Page n of forty: five records of height n."""
    number = int(request.query["page"])
    rows = [{"hash": f"0x{number}-{row}", "height": str(number)} for row in range(5)]
    return page_of("blocks", rows, totalPage=str(PAGES), page=str(number), limit="5")


def ask(sql: str, query: cf.Query[Any]) -> list[Any]:
    """What DuckDB makes of SQL about `query`, which it finds among the variables here."""
    relation: Any = duckdb.sql(sql)
    assert query.last_error is None
    rows: list[Any] = relation.fetchall()
    return rows


def test_five_rows_cost_one_request(service: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    before = service.requests
    rows = ask("select * from query limit 5", query)
    assert service.requests == before + 1
    assert [row[0] for row in rows] == [block.hash for block in client.blocks(max_items=5)]
    assert query.last_error is None


def test_a_relation_reads_all_when_all_is_wanted(client: cf.Client) -> None:
    counted = ask("select count(*), min(height), max(height) from query", client.transactions())
    heights = [transaction.height or 0 for transaction in client.transactions()]
    assert counted == [(len(heights), min(heights), max(heights))]


CONSUMERS: dict[str, Callable[[Any], int]] = {
    "polars": lambda stream: len(pl.DataFrame(stream)),
    "pyarrow": lambda stream: len(pa.table(stream)),
    "pandas": lambda stream: len(from_arrow(stream)),
    "pyarrow's reader": lambda stream: len(pa.RecordBatchReader.from_stream(stream).read_all()),
    "DuckDB": lambda stream: len(duckdb.from_arrow(stream).fetchall()),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_consumers_take_queries_and_records(client: cf.Client, consumer: str) -> None:
    count = len(client.transactions().collect())
    assert CONSUMERS[consumer](client.transactions()) == count
    assert CONSUMERS[consumer](client.transactions().collect()) == count


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_the_error_of_a_consumer_is_kept(server: StrictServer, consumer: str) -> None:
    server.on("blocks", Answer(b"", 503))
    with server.client() as client:
        query = client.blocks()
        with pytest.raises(Exception, match="503"):
            CONSUMERS[consumer](query)
        assert isinstance(query.last_error, cf.ServiceUnavailableError)
        assert query.last_error.endpoint == "blocks"


def test_an_overflow_in_a_consumer_is_kept(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1"}, {"amount": "1e20"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        with pytest.raises(Exception, match="1e20"):
            pa.table(query)
        assert isinstance(query.last_error, cf.NumericOverflowError)
        assert (query.last_error.column, query.last_error.row) == ("amount", 1)
        assert len(pa.table(query.collect().to_arrow("string"))) == 2


def test_a_reader_gives_batches_of_its_size(server: StrictServer) -> None:
    server.on("blocks", numbered)
    with server.client() as client:
        query = client.blocks(page_size=5)
        reader = query.reader(rows=32)
        assert server.requests == []
        schema: Any = query.collect().schema
        assert reader.schema == pa.schema(schema)
        batches = list(query.reader(rows=32))
    assert [len(batch) for batch in batches] == [32] * 6 + [8]
    heights = [height for batch in batches for height in batch.column("height").to_pylist()]
    assert heights == [number for number in range(1, PAGES + 1) for _ in range(5)]
    assert query.report.complete


def test_a_reader_follows_the_policy_of_numbers(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1e20"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        assert query.reader(numbers="string").read_all().column("amount").to_pylist() == ["1e20"]
        assert query.reader(numbers="float").read_all().column("amount").to_pylist() == [1e20]
        with pytest.raises(cf.NumericOverflowError):
            query.reader().read_all()

        wrong: list[Any] = [0, -(10**30), 10**30, True, "5", 1.5]
        for rows in wrong:
            for read in (query.reader, query.batches):
                with pytest.raises(cf.InvalidParameterError, match=r"rows: .* is not a whole number from 1 to"):
                    read(rows=rows)


def test_the_errors_of_a_reader_keep_their_class(server: StrictServer) -> None:
    def failing(request: Request) -> Answer:
        return Answer(b"", 503) if request.query["page"] == "9" else numbered(request)

    server.on("blocks", failing)
    with server.client() as client:
        query = client.blocks(page_size=5)
        reader = query.reader(rows=10)
        assert [len(reader.read_next_batch()) for _ in range(4)] == [10] * 4
        with pytest.raises(cf.ServiceUnavailableError):
            reader.read_next_batch()
        assert isinstance(query.last_error, cf.ServiceUnavailableError)


def test_the_error_of_a_loop_is_kept_too(server: StrictServer) -> None:
    server.on("blocks", Answer(b"", 503))
    with server.client() as client:
        query = client.blocks()
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            list(query.batches())
        assert query.last_error is caught.value


def test_a_first_record_costs_one_request(server: StrictServer) -> None:
    server.on("blocks", numbered)
    with server.client(concurrency=3) as client:
        assert next(iter(client.blocks(page_size=5))).hash == "0x1-0"
    assert len(server.requests) == 1


def test_an_error_comes_after_the_records_before_it(server: StrictServer) -> None:
    def failing(request: Request) -> Answer:
        return Answer(b"", 503) if request.query["page"] == "9" else numbered(request)

    server.on("blocks", failing)
    with server.client(concurrency=3) as client:
        records = iter(client.blocks(page_size=5))
        assert [next(records).height for _ in range(40)] == [number for number in range(1, 9) for _ in range(5)]
        for _ in range(2):
            with pytest.raises(cf.ServiceUnavailableError):
                next(records)
        server.on("blocks", numbered)
        assert [record.height for record in records] == [number for number in range(9, 41) for _ in range(5)]


@pytest.mark.parametrize("way", ["records", "batches", "reader", "stream"])
def test_nothing_is_fetched_far_ahead(server: StrictServer, way: str) -> None:
    """What is held is what was fetched and not handed over: the batch in the making and the requests in flight."""
    server.on("blocks", numbered)
    with server.client(concurrency=3) as client:
        query = client.blocks(page_size=5)
        held = []
        if way == "batches":
            items: Any = iter(query.batches(rows=10))
        elif way == "reader":
            items = iter(query.reader(rows=10))
        elif way == "stream":
            items = iter(pa.RecordBatchReader.from_stream(query))
        else:
            # Pages that came together are handed over together, as many as may be in flight.
            items = ([record] for record in query)
        given = most = 0
        for batch in items:
            given += len(batch)
            most = max(most, 3 * 5 if way == "records" else len(batch))
            held.append(5 * len(server.requests) - given)
        assert given == 5 * PAGES
        assert max(held) <= most + 3 * 5


GROWTH = """
import sys
import chainframe as cf

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

url, way = sys.argv[1:]
client = cf.Client(base_url=url, api_key="k", secret_key="s", passphrase="p", rate_limit=None, concurrency=2)
query = client.tokens(page_size=5)
if way == "batches":
    batches = query.batches(rows=10)
elif way == "reader":
    batches = query.reader(rows=10)
else:
    batches = ([record] for record in query)
early, records = 0, 0
for batch in batches:
    records += len(batch)
    early = early or peak()
print(records, peak() - early)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("way", ["batches", "reader", "records"])
def test_a_long_stream_takes_no_more_memory_than_a_short_one(way: str) -> None:
    """A third of a gigabyte passes through; what it may leave is a small part of that."""
    page = page_of("tokens", [{"token": "number", "website": "x" * 200_000}] * 5, totalPage="300").body
    with StrictServer() as server:
        count = iter(range(1_000_000))
        # No two pages are the same.
        server.answer = lambda *_: Answer(page.replace(b"number", b"%d" % next(count)))  # type: ignore[method-assign]
        script = [sys.executable, "-c", GROWTH, server.url, way]
        done = subprocess.run(script, capture_output=True, text=True, check=True)
    records, growth = map(int, done.stdout.split())
    assert records == 1_500
    assert growth < 100 << 20


MANY = """
import duckdb
import chainframe as cf

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

import sys
client = cf.Client(base_url=sys.argv[1], api_key="k", secret_key="s", passphrase="p", rate_limit=None, concurrency=2)
query = client.blocks()
duckdb.execute("set enable_progress_bar = false")
before = peak()
print(*duckdb.sql("select count(*), count(hash) from query").fetchall()[0], peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_two_million_records_pass_through_a_relation() -> None:
    """They are about 300 MB of columns."""
    rows = [{"hash": "0x" + "a" * 128, "height": "1"}] * 10_000
    page = page_of("blocks", [{"hash": "number"}, *rows[1:]], totalPage="200").body
    with StrictServer() as server:
        count = iter(range(1_000_000))
        server.answer = lambda *_: Answer(page.replace(b"number", b"%d" % next(count), 1))  # type: ignore[method-assign]
        done = subprocess.run([sys.executable, "-c", MANY, server.url], capture_output=True, text=True, check=True)
    records, hashes, growth = map(int, done.stdout.split())
    assert records == hashes == 2_000_000
    assert growth < 150 << 20


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are Unix's")
@pytest.mark.parametrize("consumer", [*CONSUMERS, "reader"])
def test_an_interrupt_reaches_a_consumer(server: StrictServer, consumer: str) -> None:
    asked, opened = threading.Event(), threading.Event()

    def held_back(request: Request) -> Answer:
        if request.query["page"] == "7":
            asked.set()
            opened.wait(60)
        return numbered(request)

    def interrupt() -> None:
        asked.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    server.on("blocks", held_back)
    thread = threading.Thread(target=interrupt)
    with server.client(timeout=30) as client:
        query = client.blocks(page_size=5)
        thread.start()
        # Each library has an error of its own for it.
        with pytest.raises((KeyboardInterrupt, Exception)):
            query.reader(rows=5).read_all() if consumer == "reader" else CONSUMERS[consumer](query)
        assert not opened.is_set()
        opened.set()
        thread.join()
