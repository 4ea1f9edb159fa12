"""Events that `sync` has taken from a follower and not committed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chainframe.frames import load
from chainframe.sinks.contract import Change, Clear, Position

if TYPE_CHECKING:
    import pyarrow as pa

JOINED_EVENTS = 64
"""Events of a set whose rows become one table, so that no more than these hold the responses that they came in."""


@dataclass(frozen=True)
class Taken:
    """An event: rows, or the height above which rows are void. An interrupt falls before or after it is added."""

    cursor: str
    """Position after it."""
    height: int | None
    """Height after it; None if it leaves that as it was."""
    rows: pa.Table | None = None
    undo_after: int | None = None
    argument: str | None = None
    """Value of a set whose list it is of."""


@dataclass
class Pending:
    """Events that the next commit stores."""

    clear: Clear = Clear.NOTHING
    taken: list[Taken] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(len(taken.rows or ()) for taken in self.taken)

    def join(self) -> None:
        """Replace the rows of many events by one table: many small ones take more memory than their rows."""
        if len(self.taken) % JOINED_EVENTS:
            return
        recent = self.taken[-JOINED_EVENTS:]
        last = replace(recent[-1], rows=_joined(recent).combine_chunks())
        emptied = [replace(taken, rows=None) for taken in recent[:-1]]
        self.taken = [*self.taken[:-JOINED_EVENTS], *emptied, last]

    def change(self, before: Position | None, after: Position) -> Change:
        rows = _joined(self.taken)
        is_empty = before is None or self.clear is not Clear.NOTHING
        first = self.taken[0] if self.taken else None
        if is_empty or first is None or first.undo_after is None:
            return Change(before, after, self.clear, None, None, rows)
        return Change(before, after, self.clear, first.undo_after, first.argument, rows)


def _joined(events: list[Taken]) -> Any:  # noqa: ANN401 - a table, or None without rows
    arrow: Any = load("pyarrow")
    tables = [taken.rows for taken in events if taken.rows is not None]
    return arrow.concat_tables(tables) if tables else None
