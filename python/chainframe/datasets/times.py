"""Decides between reading a list and reading the heights of some times, after the list's first page."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainframe.datasets.plan import EPOCH, MAX_HEIGHTS, TimeBounds, arguments

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from chainframe import Query

# A list of this number of pages more costs no more than the search for the heights of two times.
FEW_PAGES = 20
# Factor by which the first page may overstate the number of heights in a range of times.
TOLERANCE = 4


@dataclass(frozen=True)
class Remainder:
    """Pages of a list after those that a run has delivered."""

    pages: int
    # True if the list ends at the result window.
    is_capped: bool
    # False if the API reports no length.
    is_known: bool = True

    @classmethod
    def of(cls, query: Query[Any], page_size: int, result_window: float) -> Remainder:
        match query._progress():  # noqa: SLF001 - of this package
            case "pages", done, int(total):
                return cls(total - done, total * page_size >= result_window)
            case "records", done, int(total):
                return cls(math.ceil((total - done) / page_size), total >= result_window)
            case _:
                return cls(sys.maxsize, is_capped=False, is_known=False)


def blocks(page: pa.RecordBatch, bounds: TimeBounds) -> list[tuple[int, datetime]] | None:
    """Blocks of a page by height, or `None` if its times do not follow from heights as a search assumes."""
    pairs = set(zip(page.column(bounds.height).to_pylist(), page.column(bounds.column).to_pylist(), strict=True))
    # A record without a height is in no block, so that no range of heights returns it.
    if any(height is None and time is not None for height, time in pairs):
        return None
    found = sorted((height, time) for height, time in pairs if height is not None and time is not None)
    ordered = all(one[0] < other[0] and one[1] <= other[1] for one, other in itertools.pairwise(found))
    return found if ordered else None


def is_searched(page: pa.RecordBatch, bounds: TimeBounds, left: Remainder, timed: list[Query[Any]]) -> bool:
    """True if heights of times are worth the search for them, and are certain to have all records of those times."""
    found = blocks(page, bounds)
    if found is None or (left.pages <= FEW_PAGES and not left.is_capped):
        return False
    if not bounds.is_expanded:
        return True
    if not left.is_capped and left.is_known:
        # Nothing but the list shows whether one of its records has a time and no height.
        return False
    if len(found) == 0 or found[0][0] == found[-1][0] or found[0][1] == found[-1][1]:
        return True
    (lowest, oldest), (highest, newest) = found[0], found[-1]
    rate = (highest - lowest) / (newest - oldest).total_seconds()
    expected = 0.0
    for query in timed:
        given = arguments(query)
        low, high = given.get(bounds.low, EPOCH), min(given.get(bounds.high, newest), newest)
        expected += min(max((high - low).total_seconds(), 0) * rate, highest)
    return expected <= TOLERANCE * MAX_HEIGHTS


def is_cheaper(resolved: list[Query[Any]], bounds: TimeBounds) -> bool:
    """True if queries with heights are to be read in place of the list."""
    if not bounds.is_expanded:
        return True
    heights = 0
    for query in resolved:
        given = arguments(query)
        heights += given["end_height"] - given["start_height"] + 1 if "start_height" in given else 0
    return heights <= MAX_HEIGHTS
