"""Scans that request single heights: those beyond the result window, absent ones, and a list that grows."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Request, Response, StrictServer, page_of


def test_range_of_heights_passes_the_result_window() -> None:
    with (
        LocalService(transactions=3_000, seed=7, max_result_window=1_000) as service,
        service.client(strict=True) as client,
    ):
        heights = sorted({record.height or 0 for record in client.large_transactions(max_items=100)})
        low = heights[0] - 100
        transactions = client.transactions().dataset()
        expected = len(client.transactions(start_height=low, end_height=low + 9).collect())
        count = transactions.count_rows(filter=(pc.field("height") >= low) & (pc.field("height") < low + 10))
        assert count == expected > 0
        with pytest.raises(cf.IncompleteResultError):
            transactions.to_table(filter=pc.field("amount") > pa.scalar(Decimal(1), pa.decimal128(38, 18)))
        assert isinstance(transactions.last_error, cf.IncompleteResultError)


@pytest.mark.parametrize(("absent", "is_error"), [(5, False), (6, True), (8, True), (9, True)])
def test_block_that_is_absent_between_others_is_an_error(server: StrictServer, absent: int, *, is_error: bool) -> None:
    """There may be no block below the lowest one."""

    def block(request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        heights = [int(request.query["height"])] if "height" in request.query else [*range(100, 0, -1)]
        listed = [
            height for height in heights[(page - 1) * limit : page * limit] if len(heights) > 1 or height != absent
        ]
        rows = [{"hash": f"0x{height:02x}", "height": str(height)} for height in listed]
        total = len(heights) if rows else 0
        counts = {"total": str(total), "totalPage": str(-(-total // limit))}
        return page_of("blocks", rows, page=str(page), limit=str(limit), **counts)

    server.on("blocks", block)
    with server.client() as client:
        dataset = client.blocks(page_size=10).dataset()
        wanted = (pc.field("height") >= 5) & (pc.field("height") <= 9)
        if is_error:
            with pytest.raises(cf.PaginationDriftError, match=f"no block of height {absent}, although"):
                dataset.to_table(filter=wanted)
        else:
            heights = Counter(dataset.to_table(filter=wanted)["height"].to_pylist())
            assert heights == dict.fromkeys(range(6, 10), 1)


def test_blocks_are_read_down_to_a_height_while_the_list_grows() -> None:
    with LocalService(transactions=900, growth=3) as service, service.client() as client:
        top = client.blocks().first()
        assert top is not None
        assert top.height is not None
        heights: list[Any] = (
            client.blocks().dataset().to_table(filter=pc.field("height") > top.height - 450)["height"].to_pylist()
        )
    assert heights == list(range(heights[0], top.height - 450, -1))
    assert heights[0] >= top.height
