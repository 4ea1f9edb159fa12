"""Position in a result at which the records begin, or end, that an earlier export has."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WATERMARK = 100
"""Number of the newest records that an export remembers."""
MIN_RUN = 20
"""Consecutive records that have to agree, or as many as there are."""
MAX_HELD = 5_000
"""Records that are held back for one that may be known, unless it is part of a run."""
MAX_ABSENT = 1_000
"""Number of absent records that a series remembers, the last ones."""


class Absent(NamedTuple):
    """A record that was exported and is not in the list now. It may come back: the list may only have been behind."""

    key: str
    height: int | None
    is_reported: bool
    """True if a report has said that a reorganization removed it."""


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

    def __init__(
        self,
        watermark: Sequence[Sequence[Any]],
        absent: Sequence[Absent] = (),
        written: Sequence[Sequence[Any]] = (),
        *,
        keeps_heights: bool = True,
    ) -> None:
        """Compares with the watermark and the absent records of the earlier export.

        `written` are the key and height of the newest records that an interrupted run of this export has written.
        `keeps_heights` is False if a record may get its height after it was listed, below newer ones.
        """
        self._watermark = watermark
        self._known = [str(key) for key, _ in watermark]
        self._lowest = height_of(watermark, min)
        self._num_known = Counter(self._known)
        if not any(self._is_unique(0, length) for length in range(1, len(self._known) + 1)):
            raise ExportError(
                f"since: cannot find an unambiguous watermark: the newest {len(self._known)} records are "
                "duplicates; export without since"
            )
        self._absent = absent
        self._expected = Counter(record.key for record in absent)
        """Keys of absent records that did not come back."""
        self.returned: deque[int] = deque()
        """Indices, before those of held records, of records that the series has: absent ones, or those that moved."""
        self._num_returned = 0
        self._moved = Counter(str(key) for key, _ in written if key in self._num_known)
        """Keys of the watermark that were received further up, before those of held records."""
        self._written = written
        self._runs: list[Run] = []
        self._count = 0
        self._held: list[tuple[str, int | None]] = []
        self._top = height_of(written)
        """Height of the newest record of the list."""
        self.met: Run | None = None
        """The run from which on all records are known."""
        self.passed: int | None = None
        """Index of the first record below all remembered heights, if no run was met before it."""
        self.inserted: list[int] = []
        """Heights of records that were received after a known one, and that the series lacks."""
        self._highest = height_of(watermark) if keeps_heights else None
        self._below: Counter[str] = Counter()
        """Known keys that were not received after those of the run that was met."""
        self._unknown: list[int] = []
        """Heights of other records that were received after the last known one."""

    @property
    def num_new(self) -> int:
        """Number of records, from the first on, that are certain to be new, or are `returned`."""
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
            if self.passed is not None:
                return
            if self.met is not None:
                self._check_below(key, height)
                continue
            self._extend(key)
            if self._top is None:
                self._top = height
            is_below = height is not None and self._lowest is not None and height < self._lowest
            if is_below and not self._runs:
                self.passed = self._count
            if self._held or key in self._num_known or self.passed is not None:
                self._held.append((key, height))
            else:
                self._check_returned(self._count, key)
            self._count += 1
        first = min([run.start for run in self._runs], default=self._count)
        excess = min(len(self._held) - MAX_HELD, first - self.num_new)
        if excess > 0 and self.met is None and self.passed is None:
            for index, (key, _) in enumerate(self._held[:excess], self.num_new):
                self._check_returned(index, key)
            del self._held[:excess]

    def _check_below(self, key: str, height: int | None) -> None:
        """Compares a record that was received with the run that was met, and follows it.

        The series lacks an unknown record between two known ones, and one that is above all heights of the series.
        Others may be records that the watermark has forgotten.
        """
        if self._below[key] > 0:
            self._below[key] -= 1
            self.inserted += self._unknown
            self._unknown = []
        elif self._expected[key] > 0:
            self._expected[key] -= 1
        elif height is not None and self._highest is not None and height > self._highest:
            self.inserted.append(height)
        elif height is not None:
            self._unknown.append(height)

    def _check_returned(self, index: int, key: str) -> None:
        if self._expected[key] > 0:
            self._expected[key] -= 1
        elif self._moved[key] < self._num_known[key]:
            self._moved[key] += 1
        else:
            return
        self._num_returned += 1
        self.returned.append(index)

    def end_of_list(self) -> None:
        """Accepts the run within which the list ended, if there is one."""
        if self.met is None and self.passed is None and self._runs:
            self.met = min(self._runs, key=lambda run: run.start)

    def repeated(self) -> list[int]:
        """Indices, among the held new records, of those that the series has: they were absent, or have moved."""
        known = Counter(self._known[: self._num_vanished()]) - self._moved + self._expected
        found = []
        for index, (key, _) in enumerate(self._new_held(), self.num_new):
            if known[key] > 0:
                known[key] -= 1
                found.append(index)
        return found

    def known_below(self) -> list[list[Any]]:
        """The part of the watermark that is still in the list; all of it if the list ends below."""
        if self.met is None:
            return [] if self._is_grown() else [list(record) for record in self._watermark]
        return [list(record) for record in self._watermark[self.met.known :]]

    def absent(self) -> list[Absent]:
        """The records of the series that are not in the list, where it was read."""
        removed = set(self._removed())
        return [record._replace(is_reported=record.is_reported or record in removed) for record in self._missing()]

    def _missing(self) -> list[Absent]:
        seen = Counter(key for key, _ in self._new_held()) + self._moved
        found = _first_of(self._absent, self._expected)
        if self.met is not None or self._is_grown():
            vanished = self._watermark[: self._num_vanished()]
            found += [Absent(str(key), height, is_reported=False) for key, height in vanished]
        return _first_of(found, Counter(record.key for record in found) - seen)[-MAX_ABSENT:]

    def _removed(self) -> list[Absent]:
        """Absent records at heights past which the list has grown, and which no report has named."""
        is_grown = self._is_grown()

        def is_passed(height: int | None) -> bool:
            if height is None or self._top is None:
                return is_grown
            return height < self._top or (height == self._top and is_grown)

        return [record for record in self._missing() if not record.is_reported and is_passed(record.height)]

    def num_equal(self) -> int:
        """Number of records that were taken for known ones which had moved, although these are in their place."""
        return (self._moved - Counter(self._known[: self._num_vanished()])).total()

    def findings(self) -> list[str]:
        """Deviations from a list that only grew, one sentence each."""
        if self.met is None and self.passed is None:
            return ["The newest records of the earlier export were not reached: records in between are missing."]
        if self.met is None and not self._is_grown():
            where = f"at height {self._top}, below the records that the earlier export remembers"
            return [f"The list ends {where} (height {self._lowest} and up): it is behind, and nothing was written."]
        found = []
        if removed := self._removed():
            heights = [record.height for record in removed if record.height is not None]
            where = f" (heights {min(heights)} to {max(heights)})" if heights else ""
            found.append(f"A reorganization removed {len(removed)} of the newest records of the earlier export{where}.")
        if self.met is None:
            found.append(f"It may have removed records below height {self._lowest} too; export without since.")
        if self.inserted:
            where = f"(heights {min(self.inserted)} to {max(self.inserted)})"
            found.append(
                f"The list has {len(self.inserted)} of its records {where} below records of the earlier export, which "
                "lacks them: they were listed late, or the list is in another order. They were not written; export "
                "without since."
            )
        if count := self.num_equal():
            found.append(
                f"The list has records twice that the earlier export has once ({count}); export without since."
            )
        return found

    def _is_grown(self) -> bool:
        """True if the list has records that the series did not have."""
        return bool(self._written) or self.end > self._num_returned + len(self.repeated())

    def _new_held(self) -> list[tuple[str, int | None]]:
        return self._held[: self.end - self.num_new]

    def _num_vanished(self) -> int:
        """Number of the newest records of the watermark that are not where they were."""
        return len(self._known) if self.met is None else self.met.known

    def _extend(self, key: str) -> None:
        """Extends the runs that end at the record before this one, and begins others."""
        positions = [index for index, known in enumerate(self._known) if known == key] if key in self._num_known else []
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
                self._below = self._num_known - Counter(self._known[run.known : run.known + run.length])
                return

    def _is_unique(self, start: int, length: int) -> bool:
        """True if these records of the watermark occur once in it, and none of their beginnings is also their end."""
        part = self._known[start : start + length]
        found = [at for at in range(len(self._known) - length + 1) if self._known[at : at + length] == part]
        return found == [start] and all(part[shift:] != part[: length - shift] for shift in range(1, length))


class HeightMatcher:
    """Finds the records of an earlier export in a range of heights that begins at its highest block.

    The block is read again, since an earlier export may have met it while its transactions were still being listed.
    Its records, and those that were absent then, may have moved to a higher block.
    """

    def __init__(self, watermark: Sequence[Sequence[Any]], absent: Sequence[Absent] = ()) -> None:
        self._height = height_of(watermark)
        self._absent = absent
        self._watermark = [Absent(str(key), height, is_reported=False) for key, height in watermark]
        self._known = Counter(record.key for record in [*absent, *self._watermark])
        """Keys that the series has and the range has not had so far."""
        self._seen: list[list[Any]] = []
        """Key and height of records in the range that the series has."""
        self._is_grown = False
        """True if the range has records that the series did not have."""

    def known_runs(self, records: Sequence[tuple[str, int | None]]) -> Iterator[tuple[bool, int]]:
        """Splits the next records into runs, each with its length and True if the series has its records."""
        for is_known, run in groupby(records, self._take):
            yield is_known, len(list(run))

    def _take(self, record: tuple[str, int | None]) -> bool:
        key = record[0]
        is_known = self._known[key] > 0
        if is_known:
            self._known[key] -= 1
            self._seen.append(list(record))
        self._is_grown |= not is_known
        return is_known

    def absent(self) -> list[Absent]:
        """The records of the series that are not in the range."""
        return [record._replace(is_reported=True) for record in self._missing()]

    def findings(self) -> list[str]:
        """Deviations from a range that only grew, one sentence each."""
        removed = [record for record in self._missing() if not record.is_reported]
        if not removed:
            return []
        return [
            f"A reorganization removed {len(removed)} of the records of the earlier export at height {self._height}."
        ]

    def known(self) -> list[list[Any]]:
        """The records of the series that are in the range; and those of the block, if the range ends in or below it."""
        behind = [] if self._is_grown else _first_of(self._watermark, self._known)
        return [*self._seen, *([record.key, record.height] for record in behind)]

    def _missing(self) -> list[Absent]:
        # A range that ends below the block, as that of a service that is behind, says nothing about it.
        earlier = [*self._absent, *self._watermark] if self._is_grown else self._absent
        return _first_of(earlier, self._known)[-MAX_ABSENT:]


def _first_of(records: Sequence[Absent], counts: Counter[str]) -> list[Absent]:
    """The first records of each key, as many as are counted."""
    left = counts.copy()
    found = []
    for record in records:
        if left[record.key] > 0:
            left[record.key] -= 1
            found.append(record)
    return found


def height_of(watermark: Sequence[Sequence[Any]], choose: Callable[..., Any] = max) -> int | None:
    """Height of the highest record, or of the lowest."""
    height: int | None = choose((height for _, height in watermark if height is not None), default=None)
    return height
