"""Decides between reading a list and reading the heights of some times, after the list's first page."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainframe.datasets.plan import EPOCH, MAX_HEIGHTS, Arguments, TimeBounds, arguments

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
    # Records of the whole list, as far as it is known.
    length: int
    # True if the list may end at the result window.
    is_capped: bool
    # False if the API reports no length.
    is_known: bool = True

    @classmethod
    def of(cls, query: Query[Any], page_size: int) -> Remainder:
        match query._progress():  # noqa: SLF001 - of this package
            case "pages", done, int(total):
                left, length = total - done, total * page_size
            case "records", done, int(total):
                left, length = math.ceil((total - done) / page_size), total
            case _:
                return cls(sys.maxsize, sys.maxsize, is_capped=False, is_known=False)
        return cls(left, length, is_capped=query._reaches_result_window(length))  # noqa: SLF001 - of this package


def blocks(page: pa.RecordBatch, bounds: TimeBounds) -> list[tuple[int, datetime]] | None:
    """Blocks of a page by height, or `None` if its times do not follow from heights as a search assumes."""
    pairs = set(zip(page.column(bounds.height).to_pylist(), page.column(bounds.column).to_pylist(), strict=True))
    # A record without a height is in no block, so that no range of heights returns it.
    if any(height is None and time is not None for height, time in pairs):
        return None
    found = sorted((height, time) for height, time in pairs if height is not None and time is not None)
    ordered = all(left[0] < right[0] and left[1] <= right[1] for left, right in itertools.pairwise(found))
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
    lowest, oldest = found[0]
    highest, newest = found[-1]
    rate = (highest - lowest) / (newest - oldest).total_seconds()
    expected = 0.0
    for query in timed:
        given = arguments(query)
        low = given.get(bounds.low, EPOCH)
        high = min(given.get(bounds.high, newest), newest)
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


class Index:
    """Blocks of a list that are known from some of its pages, by the offset of their records. The newest come first."""

    def __init__(self, bounds: TimeBounds, page_size: int, given: Arguments) -> None:
        self._bounds = bounds
        self._page_size = page_size
        self._low = given.get(bounds.low)
        self._high = given.get(bounds.high)
        # Height and time of the records of the pages that are known, by offset.
        self._known: dict[int, tuple[int, datetime]] = {}
        self.length: int = 0
        # False if times do not follow from heights, or a record has no height.
        self.is_ordered: bool = True

    def add(self, number: int, page: pa.RecordBatch, length: int) -> None:
        """Takes a page."""
        self.length = max(length, self.length)
        self.is_ordered &= blocks(page, self._bounds) is not None
        columns = (page.column(name).to_pylist() for name in (self._bounds.height, self._bounds.column))
        for row, (height, time) in enumerate(zip(*columns, strict=True)):
            if height is not None and time is not None:
                self._known[(number - 1) * self._page_size + row] = (height, time)
        found = sorted(self._known.values())
        self.is_ordered &= all(left[1] <= right[1] for left, right in itertools.pairwise(found))

    def heights(self) -> tuple[int | None, int | None]:
        """A range of heights that includes all that have the times."""
        low = self._low
        high = self._high
        known = self._known.values()
        older = [] if low is None else [height for height, time in known if time < low]
        newer = [] if high is None else [height for height, time in known if time > high]
        return max(older) + 1 if older else None, min(newer) - 1 if newer else None

    def pages(self) -> int:
        """Pages of that range."""
        first = 0 if self._high is None else self._gap(self._high, is_low=False)[0]
        last = self.length if self._low is None else self._gap(self._low, is_low=True)[1]
        return math.ceil(max(last - first - 1, 1) / self._page_size)

    def next_page(self) -> int | None:
        """The page that narrows the range most, or `None` if the range has at most one page too many."""
        times = [(time, is_low) for time, is_low in ((self._low, True), (self._high, False)) if time is not None]
        gaps = [(self._gap(time, is_low=is_low), time) for time, is_low in times]
        (first, last), time = max(gaps, key=lambda gap: gap[0][1] - gap[0][0])
        if last - first <= self._page_size or not self._known:
            return None
        offset = min(max(self._interpolated(first, last, time), first + 1), last - 1)
        return offset // self._page_size + 1

    def _gap(self, time: datetime, *, is_low: bool) -> tuple[int, int]:
        """The offsets of the last record before an end of the range and the first one after it."""
        before = [offset for offset, (_, at) in self._known.items() if (at >= time if is_low else at > time)]
        after = [offset for offset, (_, at) in self._known.items() if (at < time if is_low else at <= time)]
        return max(before, default=-1), min(after, default=self.length)

    def _interpolated(self, first: int, last: int, time: datetime) -> int:
        """The offset at which records of a time are expected, by the times of the known ones around it."""
        left = first if first in self._known else min(self._known)
        right = last if last in self._known else min(self._known)
        start = self._known[left][1]
        end = self._known[right][1]
        if start == end:
            return (first + last) // 2
        return left + int((right - left) * ((start - time) / (start - end)))
