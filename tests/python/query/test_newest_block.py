"""Records of the newest block that a part of the service lacks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of

# Heights of the records, newest first: the newest block has three.
HEIGHTS = [9, 9, 9, 8, 7, 7, 6]


def records_of(call: str) -> list[dict[str, Any]]:
    key = member_of(call, key_of(call))
    return [
        {key: f"0x{number}", "height": str(height), "blockHash": f"0xb{height}"}
        for number, height in enumerate(HEIGHTS)
    ]


def script_of(call: str, parts: list[list[dict[str, Any]]], plan: tuple[int, ...]) -> Callable[[Request], Response]:
    """A service of several servers: the requests are answered by these, and all after them by the last one."""
    answers = iter(plan)

    def serve(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        part = parts[next(answers, plan[-1])]
        shown = part[(page - 1) * limit : page * limit]
        return page_of(call, shown, page=str(page), limit=str(limit), totalPage=str(-(-len(part) // limit)))

    return serve


@pytest.mark.filterwarnings("ignore::chainframe.errors.IncompleteResultWarning")
@pytest.mark.parametrize("page_size", [2, 5])
@pytest.mark.parametrize("lacking", [{0}, {1}, {0, 1}])
@pytest.mark.parametrize("call", ["transactions", "large_transactions", "token_transfers"])
def test_records_that_were_received_before_all_others_are_not_missing(
    call: str, lacking: set[int], page_size: int
) -> None:
    """Only one of two servers has them, which answers the first request, and each of the next ones or not."""
    records = records_of(call)
    parts = [records, [record for number, record in enumerate(records) if number not in lacking]]
    outcomes = set()
    with StrictServer() as server, server.client(concurrency=1) as client:
        for plan in product([0, 1], repeat=6):
            server.on(call, script_of(call, parts, (0, *plan)))
            query = query_of(client, call, page_size=page_size)
            try:
                found = {getattr(record, key_of(call)) for record in query}
            except cf.PaginationDriftError:
                outcomes.add("drift")
                continue
            assert not query.report.complete or found >= {f"0x{number}" for number in lacking}, plan
            outcomes.add("complete" if query.report.complete else "reason")
    assert {"complete", "drift"} <= outcomes
