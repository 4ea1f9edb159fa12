"""Decides how far down a list of blocks is read for a lowest height or an earliest time."""

from __future__ import annotations

import math

import pyarrow as pa
from pyarrow import compute as pc

# Nodes of UTXO chains accept a block that is two hours ahead of their clocks; milliseconds.
DISORDER = 24 * 3_600_000


def rises(page: pa.RecordBatch, height: str) -> bool:
    """True if a page begins below the height that it ends with, so that a list does not begin with its newest block."""
    heights = page.column(height).drop_null()
    return len(heights) > 0 and heights[0].as_py() < heights[-1].as_py()


class Depth:
    """Takes the pages of a list from the newest block down, until no block below can be accepted by a filter.

    A height has one block. Times follow heights, but a block of a UTXO chain may be earlier than the one below: a list
    is read a page past the earliest time, so that this is seen near the end, and a day past it once it was seen.
    """

    def __init__(self, columns: tuple[str, ...], floors: dict[str, int], page_size: int) -> None:
        self._height, self._time = columns[:2]
        self._floor = floors.get(self._height, 0)
        self._counts_heights: bool = self._height in floors
        self._earliest = floors.get(self._time)
        self._page_size = page_size
        # The times of the last page, from its newest block down.
        self._times: list[int] = []
        self._last: int | None = None
        self._is_ordered: bool = True
        # Number of blocks since the last one that was not too early.
        self._too_early: int = 0
        # Lowest height so far.
        self.lowest: int = 0
        # False if a page begins below the height that it ends with: then any block may follow.
        self.descends: bool = True

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes the next page, whose times are in milliseconds."""
        self.lowest = pc.min(batch.column(self._height)).as_py() or 0
        self.descends &= not rises(batch, self._height)
        if self._earliest is None:
            return
        times = batch.column(self._time).cast(pa.int64()).to_pylist()
        self._times = [time for time in times if time is not None]
        for time in self._times:
            self._is_ordered &= self._last is None or time <= self._last
            self._last = time
            self._too_early = self._too_early + 1 if time < self._earliest else 0

    def is_reached(self) -> bool:
        """True if no block below is to be read."""
        return self.lowest <= self._floor or self._is_passed()

    def _is_passed(self) -> bool:
        if self._earliest is None or self._last is None or self._too_early < self._page_size:
            return False
        return self._is_ordered or self._last < self._earliest - DISORDER

    def expected_rows(self) -> int:
        """Number of blocks to be read on: those down to a height are counted, those down to a time are estimated."""
        heights = [self.lowest - self._floor] if self._counts_heights else []
        return min([*heights, *self._rows_of_times()])

    def _rows_of_times(self) -> list[int]:
        if self._earliest is None:
            return []
        first, last = (self._times[0], self._times[-1]) if self._times else (0, 0)
        rate = (len(self._times) - 1) / (first - last) if first > last else 0
        rows = max(math.ceil((last - self._earliest) * rate), 0) + self._page_size - self._too_early
        # A page costs a request however few of its blocks are wanted.
        return [max(math.ceil(rows / self._page_size), 1) * self._page_size]
