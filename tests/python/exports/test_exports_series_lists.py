"""Lists of the exports of a series, in any order and with those that were replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.testing import LocalService
from exports.test_exports_settled import advance


def heights_of(series: Any) -> list[Any]:
    heights: Any = chainframe.exports.read(series).to_table()["height"]
    return sorted(heights.to_pylist())


def test_list_with_an_export_without_news_that_was_replaced_is_read(tmp_path: Path) -> None:
    with LocalService(transactions=60) as service, service.client(rate_limit=None) as client:
        nights = []
        for growth in (5, 0, 5, 0, 0):
            advance(service, growth)
            nights.append(client.blocks().to_parquet_series(tmp_path / "s", settle=6))
    assert nights[1].path == nights[2].path
    expected = heights_of(tmp_path / "s")
    paths = [night.path for night in nights]
    for named in (nights, paths, [*reversed(nights)], [*paths, tmp_path / "s" / ".." / "s" / paths[0].name]):
        assert heights_of(named) == expected
    assert chainframe.exports.compact(nights, tmp_path / "lake").rows == len(expected)
    with pytest.raises(cf.ExportError, match="holds another export now, which replaced this one"):
        chainframe.exports.read(nights[1])
    with pytest.raises(cf.ExportError, match="is not the first of its series"):
        chainframe.exports.read(nights[1:])
