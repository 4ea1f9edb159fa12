"""The beginning of a list (`max_items`) that is as long as the result window, while the chain changes."""

from __future__ import annotations

from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of, query_of

WINDOW, PAGE_SIZE, PER_BLOCK = 60, 20, 5


def block(height: int, branch: str, count: int = PER_BLOCK) -> list[dict[str, Any]]:
    return [
        {"txid": f"0x{branch}{height}-{number}", "blockHash": f"0x{branch}{height}", "height": str(height)}
        for number in range(count)
    ]


def list_of(heights: int, replaced: int) -> list[dict[str, Any]]:
    """The newest blocks are replaced by smaller ones, so that the other records move up."""
    kept = heights - replaced
    blocks = [block(height, "a") for height in range(kept)] + [block(height, "b", 2) for height in range(kept, heights)]
    return [record for records in reversed(blocks) for record in records]


@pytest.mark.filterwarnings("ignore::chainframe.errors.IncompleteResultWarning")
@pytest.mark.parametrize("reorganized_after", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("max_items", [WINDOW - 1, WINDOW, WINDOW + 1])
@pytest.mark.parametrize("call", ["transactions", "large_transactions"])
def test_beginning_as_long_as_the_window_lacks_no_record(call: str, max_items: int, reorganized_after: int) -> None:
    before, after = (list_of(2 * WINDOW // PER_BLOCK, replaced) for replaced in (0, 3))
    served: list[int] = []

    def serve(request: Request) -> Response:
        records = (before if len(served) < reorganized_after else after)[:WINDOW]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        served.append(page)
        shown = records[(page - 1) * limit : page * limit]
        return page_of(call, shown, page=str(page), limit=str(limit), totalPage=str(-(-WINDOW // limit)))

    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=WINDOW)
    with StrictServer() as server, server.client(concurrency=1, deployment=deployment) as client:
        server.on(call, serve)
        result = query_of(client, call, page_size=PAGE_SIZE, max_items=max_items).collect()
    found = [record.tx_id for record in result]
    is_right = any(found == [record["txid"] for record in records][:max_items] for records in (before, after))
    assert is_right or not result.report.complete
    assert max_items > WINDOW or is_right
