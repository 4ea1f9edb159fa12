"""Runs of `sync` on one target, with one interruption, and a comparison of what it holds afterwards."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chainframe.sinks.contract import Change, Extent, Position, Sink
from chainframe.testing._interruption import Interruption, Interruptor
from chainframe.testing._sink_script import COLUMNS, Run, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

VERIFIED = 2
"""Runs from an interruption on: the interrupted one, which is repeated, and the next, which may find its traces."""


@dataclass(frozen=True)
class Task:
    """Runs on the target of a name, from the run of that number on."""

    name: str
    start: int = 0
    interruption: Interruption | None = None
    overtaken: frozenset[int] = frozenset()
    """Numbers of the runs that another one overtakes."""
    is_resumed: bool = False
    """True if the first run was killed before."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task, as far as it is known."""

    number: int
    """Number of the run that was interrupted or overtaken last, or else of the last one."""
    place: str = ""
    """Place of the interruption."""
    problem: str = ""
    points: tuple[int, ...] = ()
    """Number of points in each run, if none was disturbed."""
    takes_sets: bool = True
    modules: frozenset[str] = frozenset()
    """Modules that are imported at the end."""
    code: int = 0
    """Exit code of the process."""


class _Wrong(Exception):  # noqa: N818 - a finding, not an error
    """A finding about the sink."""


def named(number: int) -> str:
    return f"run {number + 1} ({runs()[number].purpose})"


class Trial:
    """The runs of a task, up to the second one after an interruption."""

    def __init__(
        self,
        make: Callable[[str], Sink],
        read: Callable[[str], Iterable[Mapping[str, Any]]],
        script: list[Run],
        task: Task,
        say: Callable[[Outcome], None],
    ) -> None:
        self._make = make
        self._read = read
        self._script = script
        self._task = task
        self._say = say
        self._number = task.start
        self._place = ""
        # A run of several values can be the first one only after one that was interrupted.
        self._takes_sets = True
        self._interruptor = Interruptor(_packages, task.interruption, self._interrupted)
        self._points: list[int] = []
        self.limits = max(1, len(task.overtaken))
        """Number of runs that may each wait as long as a process may."""

    def run(self) -> None:
        problem = ""
        try:
            self._runs()
        except _Wrong as wrong:
            problem = str(wrong)
        modules = frozenset(sys.modules)
        self._say(Outcome(self._number, self._place, problem, tuple(self._points), self._takes_sets, modules))

    def _interrupted(self, place: str) -> None:
        self._place = place
        self._say(Outcome(self._number, place))

    def _runs(self) -> None:
        task = self._task
        is_whole = task.interruption is None and not task.overtaken and not task.is_resumed
        interrupted = task.interruption.run if task.interruption else None
        if is_whole:
            self._import()
        # Runs that are still to be verified.
        left = VERIFIED if task.is_resumed else 0
        for number in range(task.start, len(self._script)):
            if self._script[number].is_set and not self._takes_sets:
                return
            if left == 0 and (not task.overtaken or number in task.overtaken):
                self._number = number
            if number in task.overtaken:
                # Known if the process ends in this run.
                self._say(Outcome(number))
            self._interruptor.is_needed = is_whole or number == interrupted
            self._interruptor.points = 0
            if self._is_disturbed(number):
                left = VERIFIED
            self._points.append(self._interruptor.points)
            if is_whole or left:
                self._verify(number)
            if left == 1 and number >= max(task.overtaken, default=0):
                return
            left = max(0, left - 1)

    def _import(self) -> None:
        """Import what `make` imports: the calls of a module are counted only once it is known to define a sink."""
        # An error is that of the first run.
        with suppress(Exception):
            self._make(f"{self._task.name}_imported").close()

    def _is_disturbed(self, number: int) -> bool:
        """Run `sync`, and again if it was interrupted or overtaken; returns True then."""
        before = self._place
        is_overtaken = number in self._task.overtaken
        error = self._error(number, self._overtake if is_overtaken else None)
        is_disturbed = is_overtaken or self._place != before
        if error and is_disturbed:
            # Closes connections that only the error refers to, as the end of a process does.
            gc.collect()
            error = self._error(number)
        if error:
            raise _Wrong(f"{named(number)} raises {error}")
        return is_disturbed

    def _error(self, number: int, before_reading: Callable[[Run], None] | None = None) -> str:
        """Run `sync`; returns its error, or an empty text."""
        run = self._script[number]
        try:
            with self._interruptor.armed():
                sink = self._make(self._task.name)
                self._takes_sets = sink.takes_sets
            run.sync(_Armed(sink, self._interruptor), lambda: before_reading and before_reading(run))
        except Exception as error:  # noqa: BLE001 - of the sink, or of its library
            return f"{type(error).__name__}: {error}"
        return ""

    def _overtake(self, run: Run) -> None:
        # A sink may exclude other runs as soon as it has read the position.
        with suppress(Exception):
            run.sync(self._make(self._task.name))

    def _verify(self, number: int) -> None:
        run = self._script[number]
        try:
            rows = [_row(row) for row in self._read(self._task.name)]
        except _Wrong:
            raise
        except Exception as error:
            raise _Wrong(f"read after {named(number)} raises {type(error).__name__}: {error}") from error
        if difference := _difference(rows, run.rows):
            raise _Wrong(f"the table after {named(number)} {difference}")
        sink = self._make(self._task.name)
        try:
            found = sink.look()
        finally:
            sink.close()
        heights = [height for height, *_ in run.rows]
        expected = (run.position(), Extent(len(heights), max(heights)))
        if found != expected:
            raise _Wrong(f"look returns {found} after {named(number)}; expected {expected}")


class _Armed(Sink):
    """A sink whose calls may be interrupted."""

    def __init__(self, sink: Sink, interruptor: Interruptor) -> None:
        self.name = sink.name
        self.takes_sets = sink.takes_sets
        self._sink = sink
        self._armed = interruptor.armed

    def look(self) -> tuple[Position | None, Extent | None]:
        with self._armed():
            return self._sink.look()

    def commit(self, change: Change) -> int:
        with self._armed():
            return self._sink.commit(change)

    def finish(self, position: Position) -> None:
        with self._armed():
            self._sink.finish(position)

    def close(self) -> None:
        with self._armed():
            self._sink.close()


def _packages() -> frozenset[str]:
    """Return the packages of all sinks, or their modules if they are in none."""
    modules: set[str] = set()
    classes: list[type[Sink]] = [kind for kind in Sink.__subclasses__() if kind is not _Armed]
    while classes:
        kind = classes.pop()
        modules.add(kind.__module__)
        classes += kind.__subclasses__()
    # In this package only the modules that define sinks call a store.
    return frozenset(name if name.startswith("chainframe.") else name.rpartition(".")[0] or name for name in modules)


Row = tuple[int, str, Decimal | None]


def _row(row: Mapping[str, Any]) -> Row:
    height, tx_id, amount = (row[name] for name in COLUMNS)
    if isinstance(amount, float):
        raise _Wrong(f"read returns the amount {amount!r}, a float, which does not hold every amount")
    return height, tx_id, None if amount is None else Decimal(str(amount))


def _difference(found: list[Row], expected: Iterable[Row]) -> str:
    findings = {
        "lacks": [row for row in expected if row not in found],
        "should not have": [row for row in found if row not in expected],
        "has more than once": [row for row in expected if found.count(row) > 1],
    }
    return " and ".join(f"{what} {_text(rows[0])}" for what, rows in findings.items() if rows)


def _text(row: Row) -> str:
    return f"{row[1]} of height {row[0]} with amount {row[2]}"
