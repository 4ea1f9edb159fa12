"""Records that only an earlier run received, whose cursor another run continues."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of

# Heights of the records, newest first.
HEIGHTS = [9, 9, 9, 8, 8, 8, 7, 7, 6]
# The record that only the other server has.
OF_OTHER = 7
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
@pytest.mark.parametrize("page_size", [5, 20])
@pytest.mark.parametrize("call", CALLS)
def test_record_that_the_next_run_lacks_is_not_passed_over(call: str, page_size: int) -> None:
    """Two servers lack a record each: the second one lacks a record after the cursor, on the page of the cursor."""
    records = records_of(call)
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
