"""Position in a result at which the records begin, or end, that an earlier export has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WATERMARK = 100
"""Number of the newest records that an export remembers."""
MIN_RUN = 20
"""Consecutive records that have to agree, or as many as there are."""
MAX_HELD = 5_000
"""Records that are held back for one that may be known, unless it is part of a run."""


@dataclass
class Run:
    """Consecutive records that agree with the watermark."""

    start: int
    """Index in the list of the first."""
    known: int
    """Index in the watermark of the first."""
    length: int


class WatermarkMatcher:
    """Compares a list, newest record first, with the newest records of an earlier export.

    A reorganization may have removed records at the head of the watermark, so a run of agreeing records may begin at
    any of them. A run counts when it is long enough and occurs only once in the watermark, so that equal records are
    not mistaken for each other.
    """

    def __init__(self, watermark: Sequence[Sequence[Any]]) -> None:
        self._watermark = watermark
        self._known = [str(key) for key, _ in watermark]
        self._lowest = min((height for _, height in watermark if height is not None), default=None)
        self._set = set(self._known)
        if not any(self._is_unique(0, length) for length in range(1, len(self._known) + 1)):
            raise ExportError(
                f"since: cannot find an unambiguous high-water mark: the newest {len(self._known)} records are "
                "duplicates; export without since"
            )
        self._runs: list[Run] = []
        self._count = 0
        self._held: list[tuple[str, int | None]] = []
        self.met: Run | None = None
        """The run from which on all records are known."""
        self.passed: int | None = None
        """Index of the first record below all remembered heights, if no run was met before it."""

    @property
    def num_new(self) -> int:
        """Number of records, from the first on, that are certain to be new."""
        return self._count - len(self._held)

    @property
    def end(self) -> int:
        """Number of records before those that are known."""
        if self.met is not None:
            return self.met.start
        return self._count if self.passed is None else self.passed

    def push(self, records: Sequence[tuple[str, int | None]]) -> None:
        """Takes the next records of the list, until the known ones are met."""
        for key, height in records:
            if self.met is not None or self.passed is not None:
                return
            self._extend(key)
            if not self._runs and self._is_below(height):
                self.passed = self._count
            if self._held or key in self._set or self.passed is not None:
                self._held.append((key, height))
            self._count += 1
        first = min([run.start for run in self._runs], default=self._count)
        excess = min(len(self._held) - MAX_HELD, first - self.num_new)
        if excess > 0 and self.met is None and self.passed is None:
            del self._held[:excess]

    def end_of_list(self) -> None:
        """Accepts the run within which the list ended, if there is one."""
        if self.met is None and self.passed is None and self._runs:
            self.met = min(self._runs, key=lambda run: run.start)

    def repeated(self) -> list[int]:
        """Indices, among the held new records, of those that a reorganization moved: the earlier export has them."""
        vanished = Counter(self._vanished())
        found = []
        for index, (key, _) in enumerate(self._new_held(), self.num_new):
            if vanished[key] > 0:
                vanished[key] -= 1
                found.append(index)
        return found

    def known_below(self) -> list[list[Any]]:
        """The part of the watermark that is still in the list."""
        if self.met is None:
            return []
        return [list(record) for record in self._watermark[self.met.known :]]

    def findings(self) -> list[str]:
        """Deviations from a list that only grew, one sentence each."""
        if self.met is None and self.passed is None:
            return ["The newest records of the earlier export were not reached: records in between are missing."]
        found = []
        still = Counter(key for key, _ in self._new_held())
        vanished = Counter(self._vanished()) - still
        if vanished:
            heights = [height for key, height in self._watermark if height is not None and vanished[key]]
            where = f" (heights {min(heights)} to {max(heights)})" if heights else ""
            found.append(
                f"A reorganization removed {vanished.total()} of the newest records of the earlier export{where}."
            )
        if self.met is None:
            found.append(f"It may have removed records below height {self._lowest} too; export without since.")
        return found

    def _new_held(self) -> list[tuple[str, int | None]]:
        return self._held[: self.end - self.num_new]

    def _vanished(self) -> list[str]:
        return self._known if self.met is None else self._known[: self.met.known]

    def _extend(self, key: str) -> None:
        """Extends the runs that end at the record before this one, and begins others."""
        positions = [index for index, known in enumerate(self._known) if known == key] if key in self._set else []
        extended = [run for run in self._runs if run.known + run.length in positions]
        taken = set()
        for run in extended:
            taken.add(run.known + run.length)
            run.length += 1
        begun = [Run(self._count, index, 1) for index in positions if index not in taken]
        self._runs = [run for run in [*extended, *begun] if run.known + run.length <= len(self._known)]
        for run in self._runs:
            enough = min(MIN_RUN, len(self._known) - run.known)
            if run.length >= enough and self._is_unique(run.known, run.length):
                self.met = run
                return

    def _is_unique(self, start: int, length: int) -> bool:
        """True if these records of the watermark occur once in it, and none of their beginnings is also their end."""
        part = self._known[start : start + length]
        ends = range(1, length)
        others = (at for at in range(len(self._known) - length + 1) if at != start)
        return all(part[shift:] != part[: length - shift] for shift in ends) and not any(
            self._known[at : at + length] == part for at in others
        )

    def _is_below(self, height: int | None) -> bool:
        return height is not None and self._lowest is not None and height < self._lowest


class HeightMatcher:
    """Finds the records of an earlier export at the beginning of a range of heights: those of its highest block.

    The block is read again, since an earlier export may have met it while its transactions were still being listed.
    """

    def __init__(self, watermark: Sequence[Sequence[Any]]) -> None:
        self._known = Counter(str(key) for key, _ in watermark)
        self._height = height_of(watermark)

    def known_runs(self, records: Sequence[tuple[str, int | None]]) -> Iterator[tuple[bool, int]]:
        """Splits the next records into runs, each with its length and True if the earlier export has its records."""
        for is_known, run in groupby(records, self._take):
            yield is_known, len(list(run))

    def _take(self, record: tuple[str, int | None]) -> bool:
        key, height = record
        is_known = height == self._height and self._known[key] > 0
        self._known[key] -= is_known
        return is_known

    def findings(self) -> list[str]:
        vanished = self._known.total()
        if not vanished:
            return []
        return [f"A reorganisation removed {vanished} of the records of the earlier export at height {self._height}."]


def height_of(watermark: Sequence[Sequence[Any]]) -> int | None:
    """Height of the highest record."""
    return max((height for _, height in watermark if height is not None), default=None)
