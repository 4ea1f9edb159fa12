"""Requests of everyday calls, exactly: `benches/request_counts.py` compares them with the fewest possible."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import polars as pl

from repository import ROOT

BENCH = ROOT / "benches" / "request_counts.py"
POLARS = int(pl.__version__.partition(".")[0])

# Requests beyond the fewest possible, by call; all others send as few as possible.
BEYOND = {
    # The record that proves that no other was skipped: at the end, or the length and the rank of each.
    # The length before the other pages, and the first page again.
    "tokens()": 2,
    "token_transfers()": 1,
    "token_transfers(max_items=250)": 1,
    "token_transfers().scan(), self join": 1,
    "token_transfers().scan(), two terminals": 1,
    "cross_chain_transactions()": 1,
    "blocks()": 1,
    "blocks(max_items=250)": 1,
    "blocks().scan(), 151 newest heights": 1,
    # A page past the earliest time shows that no block is earlier than the one below it. Polars 1 keeps times to
    # itself, so that all blocks are read.
    "blocks().scan(), 151 newest blocks by time": 2 if POLARS >= 2 else 99,
    "transactions(height=)": 1,
    # Without a count: the length, the first page again, and a look at it in the end.
    "address_transactions()": 3,
    "large_transactions()": 3,
    # Pages that overlap.
    "large_transactions(max_items=100)": 1,
    "transactions(max_items=100)": 1,
    "transactions(max_items=250)": 1,
    # The last page, and the first one again.
    "address_transactions(max_items=1000)": 2,
    "transactions(max_items=1000)": 2,
    "transactions(max_items=5000)": 2,
    # A page and another hash show which of its hashes the API compares.
    "cross_chain_transactions().dataset(), one hash": 2,
    # The first page of the list, which shows the newest height.
    "transactions().scan(), 10 newest heights": 1,
    # Samples.
    "transactions(start_height=).estimate(), 300 heights": 2,
    "logs(), 25 hashes, estimate()": 2,
}


def load_bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("request_counts", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_everyday_calls_send_exactly_these_requests() -> None:
    bench = load_bench()
    beyond = {call.name: sent - call.fewest for call, sent in bench.counts()}
    assert {name: more for name, more in beyond.items() if more} == BEYOND
