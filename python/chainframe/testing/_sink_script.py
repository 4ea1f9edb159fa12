"""Runs of `sync` that `check_sink` interrupts: what the list returns in each, and what the table holds after it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from chainframe.sinks.base import Form, run
from chainframe.sinks.contract import Position
from chainframe.testing._records import make_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chainframe.sinks.base import Synced
    from chainframe.sinks.contract import Sink

COLUMNS = ("height", "tx_id", "amount")
FORM = Form(COLUMNS)
OTHER_FORM = Form(COLUMNS, numbers="string")
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


@dataclass(frozen=True)
class Run:
    """A run of `sync`, from the state that the run before left."""

    purpose: str
    events: Sequence[Any]
    """All events of the list up to now; the run delivers those after the cursor that it finds."""
    rows: Sequence[Row]
    """The rows of the table after the run, in order."""
    form: Form = FORM
    is_reset: bool = False
    has_news: bool = True

    def sync(self, sink: Sink, before_reading: Callable[[], object] = lambda: None) -> Synced:
        """Run `sync`, a commit for each height. `before_reading` is called when the position has been read."""
        query = _Query(self.events, before_reading)
        return run(query, sink, 12, self.form, reset=self.is_reset, commit_rows=1)

    def position(self) -> Position:
        event = self.events[-1]
        height = getattr(event, "after_height", None) or self.rows[-1][0]
        return Position(event.cursor, height, len(self.rows), self.form.stored())


class _Query:
    """A query whose follower delivers prepared events."""

    def __init__(self, events: Sequence[Any], before_reading: Callable[[], object]) -> None:
        self._events = events
        self._before_reading = before_reading

    def follow(self, *, start: str, **_options: object) -> _Follow:
        self._before_reading()
        first = 0 if start == "beginning" else 1 + [event.cursor for event in self._events].index(start)
        return _Follow(self._events[first:], self._events[-1].cursor)


class _Follow:
    def __init__(self, events: Sequence[Any], cursor: str) -> None:
        self._events = events
        self.cursor = cursor
        self.report = SimpleNamespace(requests=1)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)


def runs() -> list[Run]:
    """Return the runs in their order."""
    events = [*(_batch("a", height) for height in (1, 2, 3)), _undo(2), *(_batch("b", height) for height in (3, 4))]
    kept = [*_rows("a", 1), *_rows("a", 2)]
    other = [_batch("c", height) for height in (1, 2)]
    other_rows = [*_rows("c", 1), *_rows("c", 2)]
    deleted = [*events, _undo(3)]
    return [
        Run("that inserts the first rows", events[:3], [*kept, *_rows("a", 3)]),
        Run("that replaces height 3 and inserts height 4", events, [*kept, *_rows("b", 3), *_rows("b", 4)]),
        Run("that deletes height 4", deleted, [*kept, *_rows("b", 3)]),
        Run("that finds nothing new", deleted, [*kept, *_rows("b", 3)], has_news=False),
        Run("with reset=True", other, other_rows, is_reset=True),
        Run("with reset=True and other columns", other, other_rows, form=OTHER_FORM, is_reset=True),
    ]
