"""Comparisons of what is kept with a block that was known when it was kept: a later one proves nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from pathlib import Path

SETTLE = 10
NEWEST = 60
SETTLED = NEWEST - SETTLE
BEGIN = 1_700_000_000


def at(height: int) -> datetime:
    return datetime.fromtimestamp(BEGIN + height, UTC)


def row(height: int, fork: str = "") -> dict[str, str]:
    # Blocks that replace others are later than those.
    milliseconds = str((BEGIN + height + len(fork)) * 1000)
    block = {"height": str(height), "blockHash": f"0xb{height}{fork}", "transactionTime": milliseconds}
    return {"txid": f"0x{height}{fork}", "state": "success", **block}


class Chain:
    """Transactions of a chain, one in each block but some."""

    def __init__(self, empty: set[int]) -> None:
        self.rows = [row(height) for height in range(NEWEST, 0, -1) if height not in empty]

    def __call__(self, request: Request) -> Response:
        height, page, limit = request.query.get("height"), int(request.query["page"]), int(request.query["limit"])
        rows = [each for each in self.rows if height in {None, each["height"]}]
        pages = str(-(-len(rows) // limit))
        shown = rows[(page - 1) * limit : page * limit]
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=pages)

    def replace(self, lowest: int) -> None:
        kept = [each for each in self.rows if int(each["height"]) < lowest]
        self.rows = [row(height, "'") for height in range(NEWEST + 40, lowest - 1, -1)] + kept


def read(server: StrictServer, path: Path, **arguments: Any) -> cf.Records[Any]:
    with server.client(cache=cf.Cache(path, settle=SETTLE)) as client:
        return client.transactions(**arguments).collect()


OTHERS: dict[str, dict[str, Any] | None] = {
    "no other": None,
    "list": {"max_items": 20},
    "range": {"start_height": NEWEST + 10, "end_height": NEWEST + 15},
    "block": {"height": NEWEST + 10},
}
RANGES: dict[str, dict[str, Any]] = {
    "range": {"start_height": 30, "end_height": NEWEST},
    "settled range": {"start_height": 30, "end_height": SETTLED},
    "open range": {"start_height": 30},
    "beginning": {"start_height": 30, "max_items": SETTLED - 31},
    "times": {"start_time": at(30), "end_time": at(SETTLED)},
    "heights to a time": {"start_height": 30, "end_time": at(SETTLED)},
    "heights to a time of a block": {"start_height": 30, "end_time": at(SETTLED - 2)},
    "open times": {"start_time": at(30)},
    "times that are not settled": {"start_time": at(SETTLED + 1)},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", RANGES)
def test_settled_heights_without_records_get_those_of_blocks_that_replace_them(
    server: StrictServer, tmp_path: Path, kind: str, other: str
) -> None:
    chain = Chain(empty={SETTLED - 1, SETTLED})
    server.on("transactions", chain)
    query = RANGES[kind]
    assert read(server, tmp_path, **query).report.complete
    chain.replace(SETTLED - 1)
    between = OTHERS[other]
    if between is not None:
        read(server, tmp_path, **between)
    with server.client() as plain:
        expected = plain.transactions(**query).collect()
    found = read(server, tmp_path, **query)
    assert (list(found), found.report.complete) == (list(expected), True)
    found = read(server, tmp_path, **query)
    assert (list(found), found.report.complete) == (list(expected), True)
    # The heights below the reorganization are not requested again.
    assert found.report.cache is not None
    assert found.report.cache["records"] >= (0 if kind == "times that are not settled" else SETTLED - 33)


def test_range_of_times_whose_end_is_settled_takes_one_request_again(server: StrictServer, tmp_path: Path) -> None:
    server.on("transactions", Chain(empty={SETTLED - 10}))
    query = {"start_time": at(30), "end_time": at(SETTLED - 5)}
    assert len(read(server, tmp_path, **query)) == 15
    again = read(server, tmp_path, **query)
    assert (len(again), again.report.requests) == (15, 1)


@pytest.mark.parametrize("query", [{"height": 30}, {"start_height": 20, "end_height": 30}], ids=["block", "range"])
def test_result_is_not_kept_below_a_block_that_was_learned_after_its_chain_was_replaced(
    server: StrictServer, tmp_path: Path, query: dict[str, Any]
) -> None:
    """After the last request the chain is replaced, and another client with the same cache reads the new one."""
    chain = Chain(empty=set())
    last = query.get("height", NEWEST)

    def replacing(request: Request) -> Response:
        response = chain(request)
        if request.query.get("height") == str(last):
            server.on("transactions", chain)
            chain.replace(25)
            assert len(read(server, tmp_path, height=NEWEST + 10)) == 1
        return response

    server.on("transactions", replacing)
    assert read(server, tmp_path, **query)[-1].tx_id == "0x30"
    assert read(server, tmp_path, **query)[-1].tx_id == "0x30'"
