"""Runs of `sync` that `check_sink` interrupts: what the list returns in each, and what the table holds after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from chainframe._declared import QUERIED, meaning
from chainframe.frames import load
from chainframe.sinks.contract import Position
from chainframe.sinks.sync import TableForm, run
from chainframe.testing._records import make_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chainframe.sinks.contract import Sink
    from chainframe.sinks.sync import Synced

COLUMNS = ("height", "tx_id", "amount")
FORM = TableForm(COLUMNS)
OTHER_FORM = TableForm(COLUMNS, numbers="string")
SET_FORM = TableForm((*COLUMNS, QUERIED))
# The greatest and the smallest amount of a column, which no double holds, and none at all.
AMOUNTS = {
    "a": Decimal("99999999999999999999.999999999999999999"),
    "b": Decimal("0.000000000000000001"),
    "c": None,
}

Row = tuple[int, str, Decimal | None]


def _rows(branch: str, height: int) -> list[Row]:
    return [(height, f"0x{branch}{height}{index}", AMOUNTS[branch]) for index in range(2)]


def _batch(branch: str, height: int) -> Any:  # noqa: ANN401 - as a follower delivers it
    records = make_records("transactions", [dict(zip(COLUMNS, row, strict=True)) for row in _rows(branch, height)])
    return SimpleNamespace(to_arrow=records.to_arrow, cursor=f"{branch}{height}")


def _undo(after_height: int) -> Any:  # noqa: ANN401 - as a follower delivers it
    return SimpleNamespace(after_height=after_height, cursor=f"undo{after_height}")


def _batch_of(argument: str, branch: str, height: int) -> Any:  # noqa: ANN401 - as a follower of a set delivers it
    arrow: Any = load("pyarrow")
    rows = _batch(branch, height).to_arrow(columns=COLUMNS)
    # pyarrow.array would import pandas, where it is installed, into each process that is interrupted.
    texts = arrow.lib.StringBuilder()
    texts.append_values([argument] * rows.num_rows)
    queried = arrow.FixedSizeListArray.from_arrays(texts.finish(), 1).cast(arrow.list_(arrow.string()))
    table = rows.append_column(QUERIED, queried)
    return SimpleNamespace(to_arrow=lambda **_options: table, cursor=f"{branch}{height}", argument=argument)


def _undo_of(argument: str, after_height: int) -> Any:  # noqa: ANN401 - as above
    # A later run may be given the argument in another letter case.
    return SimpleNamespace(**vars(_undo(after_height)), queried=(argument.upper(),), argument=argument)


@dataclass(frozen=True)
class Run:
    """A run of `sync`, from the state that the run before left."""

    purpose: str
    events: Sequence[Any]
    """All events of the list up to now; the run delivers those after the cursor that it finds."""
    rows: Sequence[Row]
    """The rows of the table after the run, in order."""
    form: TableForm = FORM
    is_reset: bool = False
    has_news: bool = True
    is_set: bool = False
    """True for lists of several values, which not every sink takes."""

    def sync(self, sink: Sink, before_reading: Callable[[], object] = lambda: None) -> Synced:
        """Run `sync`, a commit for each height. `before_reading` is called when the position has been read."""
        query = (_SetQuery if self.is_set else _Query)(self.events, before_reading)
        return run(query, sink, 12, self.form, reset=self.is_reset, commit_rows=1)

    def position(self) -> Position:
        event = self.events[-1]
        if self.is_set:
            cursor = _merged(self.events)
            height = max(row[0] for row in self.rows)
        else:
            cursor = event.cursor
            height = getattr(event, "after_height", None) or self.rows[-1][0]
        return Position(cursor, height, len(self.rows), self.form.stored())


class _Query:
    """A query whose follower delivers prepared events."""

    def __init__(self, events: Sequence[Any], before_reading: Callable[[], object]) -> None:
        self._events = events
        self._before_reading = before_reading

    def follow(self, *, start: str, **_options: object) -> _Follow:
        self._before_reading()
        first = 0 if start == "beginning" else 1 + [event.cursor for event in self._events].index(start)
        return _Follow(self._events[first:], self._events[-1].cursor)


def _merged(events: Sequence[Any]) -> str:
    return json.dumps({event.argument: event.cursor for event in events}, sort_keys=True)


class _SetQuery(_Query):
    """A query of several values. Each list has a position of its own, and the cursor has all of them."""

    _values = ("0xf1", "0xf2")

    def follow(self, *, start: str, **options: object) -> _Follow:
        is_run = "settle" in options
        if is_run:
            self._before_reading()
        known = {} if start == "beginning" else json.loads(start)
        seen = dict.fromkeys(known, False)
        left = []
        for event in self._events:
            if seen.get(event.argument, True):
                left.append(event)
            elif event.cursor == known[event.argument]:
                seen[event.argument] = True
        return _FollowSet(left, _merged(self._events) if is_run else json.dumps(known), known)

    @staticmethod
    def _moved(positions: _Positions, reached: list[tuple[str, str]]) -> _Positions:
        lists = {meaning(argument): after for argument, after in reached}
        return _Positions(json.dumps({**json.loads(positions.cursor), **lists}, sort_keys=True))


@dataclass(frozen=True)
class _Positions:
    cursor: str

    def to_json(self) -> str:
        return self.cursor


class _Follow:
    def __init__(self, events: Sequence[Any], cursor: str) -> None:
        self._events = events
        self.cursor = cursor
        self.report = SimpleNamespace(requests=1)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)


class _FollowSet(_Follow):
    def __init__(self, events: Sequence[Any], cursor: str, known: dict[str, str]) -> None:
        super().__init__(events, cursor)
        self._reached = known

    @property
    def _positions(self) -> _Positions:
        """The positions after the events that were delivered."""
        return _Positions(json.dumps(self._reached, sort_keys=True))

    def __iter__(self) -> Iterator[Any]:
        for event in self._events:
            self._reached = {**self._reached, event.argument: event.cursor}
            yield event


def runs() -> list[Run]:
    """Return the runs in their order."""
    events = [*(_batch("a", height) for height in (1, 2, 3)), _undo(2), *(_batch("b", height) for height in (3, 4))]
    kept = [*_rows("a", 1), *_rows("a", 2)]
    other = [_batch("c", height) for height in (1, 2)]
    other_rows = [*_rows("c", 1), *_rows("c", 2)]
    deleted = [*events, _undo(3)]
    lists = [_batch_of("0xf1", "a", 1), _batch_of("0xf2", "c", 1), _batch_of("0xf2", "c", 2), _batch_of("0xf1", "a", 2)]
    changed = [*lists, _undo_of("0xf1", 1), _batch_of("0xf1", "b", 2)]
    of_y = [*_rows("c", 1), *_rows("c", 2)]
    return [
        Run("that inserts the first rows", events[:3], [*kept, *_rows("a", 3)]),
        Run("that replaces height 3 and inserts height 4", events, [*kept, *_rows("b", 3), *_rows("b", 4)]),
        Run("that deletes height 4", deleted, [*kept, *_rows("b", 3)]),
        Run("that finds nothing new", deleted, [*kept, *_rows("b", 3)], has_news=False),
        Run("with reset=True", other, other_rows, is_reset=True),
        Run("with reset=True and other columns", other, other_rows, form=OTHER_FORM, is_reset=True),
        Run(
            "with reset=True and two values",
            lists,
            [*_rows("a", 1), *_rows("a", 2), *of_y],
            form=SET_FORM,
            is_reset=True,
            is_set=True,
        ),
        Run(
            "that replaces height 2 of one value",
            changed,
            [*_rows("a", 1), *_rows("b", 2), *of_y],
            form=SET_FORM,
            is_set=True,
        ),
    ]
