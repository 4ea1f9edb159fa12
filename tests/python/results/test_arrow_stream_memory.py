"""An Arrow stream of a long list: bounded memory, and no more requests ahead than are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest

from results.test_arrow_stream import PAGES, numbered
from strict_server import Response, StrictServer, page_of


@pytest.mark.parametrize("way", ["records", "batches", "reader", "stream"])
def test_read_ahead_is_bounded(server: StrictServer, way: str) -> None:
    """Memory holds the batch being built, the requests in flight and the pages that wait for one of them."""
    server.on("blocks", numbered)
    with server.client(concurrency=3) as client:
        query = client.blocks(page_size=5)
        held = []
        if way == "batches":
            items: Any = iter(query.batches(batch_size=10))
        elif way == "reader":
            items = iter(query.to_arrow_batch_reader(batch_size=10))
        elif way == "stream":
            items = iter(pa.RecordBatchReader.from_stream(query))
        else:
            # Pages that arrived together are returned together, up to the number in flight.
            items = ([record] for record in query)
        given = most = 0
        for batch in items:
            given += len(batch)
            most = max(most, 3 * 5 if way == "records" else len(batch))
            held.append(5 * len(server.requests) - given)
        assert given == 5 * PAGES
        assert max(held) <= most + 3 * 3 * 5


GROWTH = """
import sys
import chainframe as cf

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

url, way = sys.argv[1:]
client = cf.Client(base_url=url, api_key="k", secret_key="s", passphrase="p", rate_limit=None, concurrency=2)
query = client.large_transactions(page_size=5)
if way == "batches":
    batches = query.batches(batch_size=10)
elif way == "reader":
    batches = query.to_arrow_batch_reader(batch_size=10)
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
def test_memory_of_a_stream_does_not_depend_on_its_length(way: str) -> None:
    """A third of a gigabyte passes through; what it may leave is a small part of that."""
    page = page_of("large_transactions", [{"txid": "number", "input": "x" * 200_000}] * 5, totalPage="300").body
    with StrictServer() as server:
        count = iter(range(1_000_000))
        # No two pages are the same.
        server.respond = lambda *_: Response(page.replace(b"number", b"%d" % next(count)))  # type: ignore[method-assign]
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
query = client.cross_chain_transactions()
duckdb.execute("set enable_progress_bar = false")
before = peak()
print(*duckdb.sql("select count(*), count(id) from query").fetchall()[0], peak() - before)
"""


def number(target: str) -> bytes:
    """Six digits of the number of the page that is requested."""
    return parse_qs(target.partition("?")[2])["page"][0].zfill(6).encode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_two_million_records_pass_through_a_relation() -> None:
    """They are about 300 MB of columns. Pages in flight and DuckDB's buffers take up to 200."""
    # Records that repeat others would be compared with all of their page.
    rows = [{"id": f"0x{row:0122}number", "zoneBlockHeight": "1"} for row in range(10_000)]
    page = page_of("cross_chain_transactions", rows, totalPage="200", total="2000000").body
    with StrictServer() as server:
        server.respond = lambda target, *_: Response(page.replace(b"number", number(target)))  # type: ignore[method-assign]
        done = subprocess.run([sys.executable, "-c", MANY, server.url], capture_output=True, text=True, check=True)
    records, hashes, growth = map(int, done.stdout.split())
    assert records == hashes == 2_000_000
    assert growth < 250 << 20
