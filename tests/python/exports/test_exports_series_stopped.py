"""Series that a height has stopped which changed below those that are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports.directory import STAGING
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from pathlib import Path


def blocks(count: int, replaced: int = 0) -> list[dict[str, Any]]:
    return [{"height": height, "hash": f"0x{height + 1000 * (height == replaced)}"} for height in range(count, 0, -1)]


@pytest.mark.parametrize("has_news", [False, True])
def test_stopped_series_continues_with_a_larger_settle(tmp_path: Path, *, has_news: bool) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path, settle=5)
        if not has_news:
            # An export without news, which the next one is to replace.
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(90, replaced=20))
        for _ in range(2):
            with pytest.raises(cf.SettledHeightError, match=r"height 20 changed .*export with a larger settle"):
                query.to_parquet_series(tmp_path, settle=5)
        staged: set[Path] = set()
        # A run that is interrupted is continued, and not begun again.
        for every in (9, 1):
            service.faults = [{"kind": "status", "status": 503, "every": every}]
            with pytest.raises(cf.ServiceError):
                query.to_parquet_series(tmp_path, settle=12)
            before, staged = staged, set(tmp_path.glob(f"*/{STAGING}/*.parquet"))
            assert staged >= before
            assert staged
        service.faults = []
        query.to_parquet_series(tmp_path, settle=12)
        service.load("blocks", blocks(100, replaced=20))
        query.to_parquet_series(tmp_path, settle=5)
        table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
        assert table["hash"].to_pylist() == [row["hash"] for row in reversed(blocks(95, replaced=20))]


def test_error_names_a_column_that_the_service_sends_no_more(tmp_path: Path) -> None:
    """With a larger settle at once, corrections would remove the values."""
    rows = [{**row, "miner": "0x1"} for row in blocks(30)]
    with LocalService(data={"blocks": rows}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(40))
        with pytest.raises(
            cf.SettledHeightError, match=r"; export with a larger settle, but not before the service sends miner again"
        ):
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", [{**row, "miner": "0x1"} for row in blocks(40)])
        query.to_parquet_series(tmp_path, settle=6)
        table = chainframe.exports.read(tmp_path).to_table()
        assert table["miner"].to_pylist() == ["0x1"] * 34
