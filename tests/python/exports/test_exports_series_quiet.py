"""Settled series of lists that seldom have a new record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainframe.exports
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of, total_of

HEIGHTS = {"transactions": "height", "token_transfers": "height", "cross_chain_transactions": "zone_block_height"}


@pytest.mark.parametrize("heights", [[100, 101, 140], [140]])
@pytest.mark.parametrize("call", HEIGHTS)
def test_list_that_lost_a_record_that_was_not_exported_is_not_behind(
    server: StrictServer, tmp_path: Path, call: str, heights: list[int]
) -> None:
    """A reorganization removes the newest record, which was not settled, and no other follows for some nights."""
    listed = heights.copy()
    key, height_member = member_of(call, key_of(call)), member_of(call, HEIGHTS[call])

    def respond(request: Request) -> Response:
        rows = [{key: f"0x{height:x}", height_member: str(height)} for height in reversed(listed)]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        pages = {"totalPage": str(-(-len(rows) // limit)), "page": str(page), "limit": str(limit)}
        return page_of(call, rows[(page - 1) * limit : page * limit], **pages, **total_of(call, len(rows)))

    server.on(call, respond)
    query = query_of(server.client(), call)

    def exported() -> list[int]:
        query.to_parquet_series(tmp_path, settle=5)
        found: list[Any] = chainframe.exports.read(tmp_path).to_table()[HEIGHTS[call]].to_pylist()
        return sorted(found)

    settled = listed[:-1]
    assert exported() == settled
    listed.pop()
    assert [exported() for _ in range(3)] == [settled] * 3
    listed += [141, 150]
    assert exported() == [*settled, 141]
