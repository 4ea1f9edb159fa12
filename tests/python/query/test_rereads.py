"""Lists that change too much: calls that return the complete result read them again, iterations raise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
from conftest import needs_extra
from strict_server import Request, Response, StrictServer, page_of


class Blocks:
    """A list of blocks of which all are replaced after each of some responses."""

    def __init__(self, length: int, replaced_after: set[int]) -> None:
        self.length = length
        self.replaced_after = replaced_after
        self.version = 0
        self.responses = 0

    def __call__(self, request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        names = list(enumerate(self.names()))[(page - 1) * limit : page * limit]
        rows = [{"hash": name, "height": str(1_000 - index)} for index, name in names]
        pages = str(-(-self.length // limit))
        total = str(self.length)
        response = page_of("blocks", rows, page=str(page), limit=str(limit), totalPage=pages, total=total)
        self.responses += 1
        if self.responses in self.replaced_after:
            self.version += 1
        return response

    def names(self) -> list[str]:
        return [f"v{self.version}-{number}" for number in range(self.length)]


def hashes(records: Any) -> list[str]:
    return [record.hash for record in records]


# Three pages and a final look.
ONCE, TWICE, ALWAYS = {1}, {1, 5}, {1, 5, 9}

CALLS: dict[str, Callable[[cf.Query[Any]], list[Any]]] = {
    "collect": lambda query: hashes(query.collect()),
    "to_arrow": lambda query: query.to_arrow().column("hash").to_pylist(),
    "to_pandas": lambda query: query.to_pandas()["hash"].tolist(),
    "to_polars": lambda query: query.to_polars()["hash"].to_list(),
    "to_dicts": lambda query: [row["hash"] for row in query.to_dicts()],
}


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=needs_extra) if call in {"to_arrow", "to_pandas", "to_polars"} else call
        for call in CALLS
    ],
)
@pytest.mark.parametrize("replaced_after", [ONCE, TWICE], ids=["once", "twice"])
def test_complete_result_is_read_again(server: StrictServer, call: str, replaced_after: set[int]) -> None:
    blocks = Blocks(6, replaced_after)
    server.on("blocks", blocks)
    query = server.client(concurrency=1).blocks(page_size=2)
    assert CALLS[call](query) == blocks.names()
    report = query.report
    assert report is not None
    rereads = len(replaced_after)
    assert (report.complete, report.reasons, report.rereads, report.records) == (True, [], rereads, 6)
    assert report.requests == blocks.responses == 4 + 4 * rereads


def test_awaited_result_is_read_again(server: StrictServer) -> None:
    blocks = Blocks(6, ONCE)
    server.on("blocks", blocks)

    async def collect() -> cf.Records[cf.Block]:
        return await server.client(concurrency=1).blocks(page_size=2).collect_async()

    records = asyncio.run(collect())
    assert (hashes(records), records.report.rereads) == (blocks.names(), 1)


def test_limited_result_is_read_again(server: StrictServer) -> None:
    blocks = Blocks(9, ONCE)
    server.on("blocks", blocks)
    records = server.client(concurrency=1).blocks(page_size=2, max_items=5).collect()
    assert (hashes(records), records.report.rereads) == (blocks.names()[:5], 1)


def test_list_that_always_changes_raises(server: StrictServer) -> None:
    blocks = Blocks(6, ALWAYS)
    server.on("blocks", blocks)
    query = server.client(concurrency=1).blocks(page_size=2)
    with pytest.raises(cf.PaginationDriftError):
        query.collect()
    assert query.report is not None
    assert query.partial is not None
    assert (query.report.complete, query.report.rereads, query.report.records) == (False, 2, len(query.partial))
    assert blocks.responses == 12


def test_iteration_raises_at_once(server: StrictServer) -> None:
    blocks = Blocks(6, ONCE)
    server.on("blocks", blocks)
    query = server.client(concurrency=1).blocks(page_size=2)
    with pytest.raises(cf.PaginationDriftError):
        list(query)
    assert query.report is not None
    assert query.report.rereads == 0
    assert blocks.responses == 4


def test_resumed_list_is_not_read_again(server: StrictServer) -> None:
    blocks = Blocks(6, {1, 2})
    server.on("blocks", blocks)
    client = server.client(concurrency=1)
    query = client.blocks(page_size=2)
    assert next(iter(query)).hash == "v0-0"
    resumed = client.resume(query.cursor)
    with pytest.raises(cf.PaginationDriftError):
        resumed.collect()
    assert resumed.report is not None
    assert resumed.report.rereads == 0


def test_only_the_list_of_one_height_is_read_again(server: StrictServer) -> None:
    """The transactions of the heights before it are kept."""
    lengths: dict[str, int] = {}

    def transactions(request: Request) -> Response:
        height, page = request.query["height"], int(request.query["page"])
        seen = lengths[height] = lengths.get(height, 0) + 1
        pages = "3" if height == "7" and seen == 2 else "2"
        rows = [{"txid": f"{height}-{number}", "height": height} for number in range(3)][(page - 1) * 2 : page * 2]
        return page_of("transactions", rows, page=str(page), limit="2", totalPage=pages)

    server.on("transactions", transactions)
    records = server.client(concurrency=1).transactions(start_height=6, end_height=8, page_size=2).collect()
    expected = [f"{height}-{number}" for height in (6, 7, 8) for number in range(3)]
    assert sorted(str(record.tx_id) for record in records) == expected
    assert (records.report.complete, records.report.rereads, lengths) == (True, 1, {"6": 3, "7": 5, "8": 3})
