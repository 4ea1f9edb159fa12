"""Records that one call receives again: its first export leaves those that are not settled to the next one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class LeftRows:
    """Keys of the records that an export has left to the next one of the same call, by height.

    The next one reads these heights again. If a response lacks their records then, nothing else would show it: the call
    after this one does not read them any more.
    """

    def __init__(self) -> None:
        self._left: defaultdict[int, set[str]] = defaultdict(set)
        self._seen: defaultdict[int, set[str]] = defaultdict(set)
        """Keys that were received since, of the same heights."""
        self._heights: list[int] = []
        """Heights that were not compared so far, in ascending order."""

    def add(self, rows: Iterable[tuple[str, int | None]]) -> None:
        for key, height in rows:
            if height is not None:
                self._left[height].add(key)
        self._heights = sorted(self._left)

    def see(self, key: str, height: int | None) -> None:
        if height is not None and height in self._left:
            self._seen[height].add(key)

    def lacking(self, lowest: int, highest: int) -> int | None:
        """Return a height of a range whose records were received before and are lacking now; compare each height once.

        A block that has other records alone has replaced the one that had them.
        """
        begin = bisect_left(self._heights, lowest)
        end = max(bisect_right(self._heights, highest), begin)
        compared = self._heights[begin:end]
        del self._heights[begin:end]
        for height in compared:
            left = self._left[height]
            seen = self._seen[height]
            if left - seen and (not seen or left & seen):
                return height
        return None
