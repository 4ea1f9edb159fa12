"""Records that only an earlier run received, whose cursor another run continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of

# Heights of the records, newest first: no page of two has all records of a block.
HEIGHTS = [9, 9, 9, 8, 8, 8, 7, 7, 6]
CALLS = ["transactions", "large_transactions", "token_transfers"]


def records_of(call: str) -> list[dict[str, Any]]:
    key = member_of(call, key_of(call))
    return [
        {key: f"0x{number}", "height": str(height), "blockHash": f"0xb{height}"}
        for number, height in enumerate(HEIGHTS)
    ]


def serve(call: str, records: list[dict[str, Any]]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        shown = records[(page - 1) * limit : page * limit]
        pages = str(-(-len(records) // limit))
        return page_of(call, shown, page=str(page), limit=str(limit), totalPage=pages)

    return answer


@pytest.mark.filterwarnings("ignore::chainframe.errors.IncompleteResultWarning")
@pytest.mark.parametrize("page_size", [2, 5])
@pytest.mark.parametrize("call", CALLS)
def test_record_that_the_next_run_lacks_is_not_passed_over(call: str, page_size: int) -> None:
    """The cursor is in the middle of a page, of which the other server lacks a record that comes after it."""
    records = records_of(call)
    outcomes = set()
    with StrictServer() as server, server.client(concurrency=1) as client:
        for returned in range(len(HEIGHTS) - 1):
            server.on(call, serve(call, records))
            query = query_of(client, call, page_size=page_size)
            first = [record for record, _ in zip(query, range(returned), strict=False)]
            received = -(-max(returned, 1) // page_size) * page_size
            for lacking in range(returned, min(received, len(HEIGHTS))):
                server.on(call, serve(call, [record for number, record in enumerate(records) if number != lacking]))
                resumed = client.resume(query.cursor)
                try:
                    found = {getattr(record, key_of(call)) for record in (*first, *resumed)}
                except cf.PaginationDriftError:
                    outcomes.add("drift")
                    continue
                outcomes.add("reason")
                # No other record of the last height is left.
                is_alone = HEIGHTS.count(HEIGHTS[lacking]) == 1
                assert not resumed.report.complete or is_alone, (returned, lacking, found)
    assert outcomes
