"""Records that only an earlier run received, whose cursor another run continues."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, product
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of

# Heights of the records, newest first: several of a block, or one.
HEIGHTS = [[9, 9, 9, 8, 8, 8, 7, 7, 6], [9, 8, 7, 6, 5, 4, 3, 2, 1]]
# The record that only the other server has.
OF_OTHER = 7
HEIGHT = {"cross_chain_transactions": "zone_block_height"}
CALLS = ["transactions", "large_transactions", "token_transfers"]


def records_of(call: str, heights: list[int]) -> list[dict[str, Any]]:
    key = member_of(call, key_of(call))
    return [
        {key: f"0x{number}", member_of(call, HEIGHT.get(call, "height")): str(height), "blockHash": f"0xb{height}"}
        for number, height in enumerate(heights)
    ]


def serve(call: str, records: list[dict[str, Any]]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        shown = records[(page - 1) * limit : page * limit]
        pages = str(-(-len(records) // limit))
        return page_of(call, shown, page=str(page), limit=str(limit), totalPage=pages)

    return answer


@pytest.mark.filterwarnings("ignore::chainframe.errors.IncompleteResultWarning")
@pytest.mark.parametrize("heights", HEIGHTS)
@pytest.mark.parametrize("page_size", [5, 20])
@pytest.mark.parametrize("call", [*CALLS, *HEIGHT])
def test_record_that_the_next_run_lacks_is_not_passed_over(call: str, page_size: int, heights: list[int]) -> None:
    """Two servers lack a record each: the second one lacks a record after the cursor, on the page of the cursor."""
    records = records_of(call, heights)
    outcomes = set()
    with StrictServer() as server, server.client(concurrency=1) as client:
        for returned in range(1, page_size):
            for lacking in range(returned, min(page_size, OF_OTHER)):
                server.on(call, serve(call, [*records[:OF_OTHER], *records[OF_OTHER + 1 :]]))
                query = query_of(client, call, page_size=page_size)
                first = list(islice(query, returned))
                server.on(call, serve(call, [*records[:lacking], *records[lacking + 1 :]]))
                resumed = client.resume(query.cursor)
                try:
                    found = {getattr(record, key_of(call)) for record in (*first, *resumed)}
                except cf.PaginationDriftError:
                    outcomes.add("drift")
                    continue
                outcomes.add("reason")
                assert not resumed.report.complete, (returned, lacking, found)
    assert "reason" in outcomes


def serve_growing(call: str, times: int) -> Callable[[Request], Response]:
    """Serve a list that has one record more after each of the first responses."""
    key = member_of(call, key_of(call))
    heights = list(range(20, 0, -1))
    last = heights[0] + times

    def answer(request: Request) -> Response:
        records = [{key: f"0x{height}", "height": str(height), "blockHash": f"0xb{height}"} for height in heights]
        if heights[0] < last:
            heights.insert(0, heights[0] + 1)
        return serve(call, records)(request)

    return answer


@pytest.mark.parametrize("call", CALLS)
def test_list_that_grows_while_an_earlier_run_begins_is_complete(call: str) -> None:
    """The length of a list without a count comes with the second response, and may be that of a longer list."""
    with StrictServer() as server, server.client(concurrency=1) as client:
        for returned, times in product(range(1, 9), (1, 2, 9)):
            server.on(call, serve_growing(call, times))
            query = query_of(client, call, page_size=5)
            first = list(islice(query, returned))
            resumed = client.resume(query.cursor)
            heights = [record.height for record in (*first, *resumed)]
            assert heights == list(range(heights[0], 0, -1)), (returned, times)
            assert resumed.report.complete, (returned, times, resumed.report.reasons)
