"""Blocks that a scan lacks between others: in a list, and at heights that were requested one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyarrow import compute as pc

from chainframe.datasets.plan import arguments

if TYPE_CHECKING:
    import pyarrow as pa

    from chainframe import Query


class Gaps:
    """Gaps in the heights of a list of blocks that is read from the newest one down."""

    def __init__(self) -> None:
        self._lowest: int | None = None
        self._missing: int = 0

    def on_heights(self, heights: pa.Array[Any]) -> None:
        """Takes the heights of a batch."""
        known = pc.unique(heights.drop_null())
        if not len(known):
            return
        top = pc.max(known).as_py()
        lowest = pc.min(known).as_py()
        self._missing += top - lowest + 1 - len(known)
        if self._lowest is not None and top < self._lowest:
            self._missing += self._lowest - top - 1
        self._lowest = lowest

    def reason(self) -> str | None:
        """Why the result is incomplete; `None` without a gap."""
        if not self._missing:
            return None
        return f"The heights of blocks have gaps: {self._missing} blocks are missing between the others"


def lowest_block(runs: list[Query[Any]]) -> float:
    """Lowest of the heights that were requested one by one and have a block."""
    heights = [height for run in runs if run.report.records and (height := _height(run)) is not None]
    return min(heights, default=math.inf)


def absent_blocks(runs: list[Query[Any]]) -> dict[int, Query[Any]]:
    """Empty lists of heights below blocks that were received before."""
    absent: dict[int, Query[Any]] = {}
    highest = -math.inf
    for run in runs:
        height = _height(run)
        if height is None:
            continue
        if run.report.records:
            highest = max(highest, height)
        elif height < highest and not run.report.reasons:
            # One that is requested before a higher one may not have been there.
            absent[int(height)] = run
    return absent


def _height(run: Query[Any]) -> float | None:
    """The height of a query, infinite for the list. `None` for a set, which compares its lists by itself."""
    height = arguments(run).get("height", math.inf)
    return None if isinstance(height, list) else height
