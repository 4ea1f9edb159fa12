"""Heights of a scan that were requested one by one and have no block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chainframe.datasets.plan import arguments

if TYPE_CHECKING:
    from chainframe import Query


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
