"""Names, texts and stored positions in the databases that `sync` writes to."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chainframe._declared import HEXADECIMAL, QUERIED, height_column, meaning
from chainframe.errors import InvalidParameterError
from chainframe.sinks.contract import Change, Clear, Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STATE = "_chainframe"
"""Table of a database that holds the positions of all tables of its schema."""
# Catalog, schema and name.
MAX_PARTS = 3
PART = re.compile(r'"((?:[^"]|"")+)"|([^".][^.]*)')
DAMAGED = Position(cursor="", height=None, rows=-1, form="")
"""Position that others have overwritten with nulls."""


def position_of_row(row: tuple[Any, ...] | None) -> Position | None:
    """Return the position in a row of `STATE`."""
    if row is None:
        return None
    cursor, height, rows, form, heights = row
    is_whole = isinstance(cursor, str) and isinstance(rows, int) and isinstance(form, str)
    if not is_whole or not isinstance(height, int | None):
        return DAMAGED
    return Position(cursor, height, rows, form, None if heights is None else int(heights))


def position_after(
    stored: Position | None, change: Change, removed: int, removed_heights: str | int | None
) -> Position:
    """Return the position after a change, with the sum of the heights of the table.

    The sum is None if it is not known, for example since others have given the column another type.
    """
    added = change.rows
    heights: Any = [] if added is None else added[height_column(added.schema.names) or "height"].to_pylist()
    total = sum(height for height in heights if height is not None)
    # Others may have emptied the table.
    is_empty_before = change.clear is not Clear.NOTHING or change.after.rows == len(heights)
    before: int | None = 0
    if stored is not None and not is_empty_before:
        before = None if change.undo_after is not None and removed_heights is None else stored.heights
        total -= int(removed_heights or 0)
    return replace(change.position(removed), heights=None if before is None else before + total)


def quoted(*names: str) -> str:
    """Return an identifier of SQL."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def name_parts(table: str) -> list[str]:
    """Split a name such as `schema.table` at its dots, except within double quotes."""
    parts = []
    end = 0
    while found := PART.match(table, end):
        parts.append(found[1].replace('""', '"') if found[1] else found[2])
        end = found.end()
        if not table.startswith(".", end):
            break
        end += 1
    if end != len(table) or not 0 < len(parts) <= MAX_PARTS or table.endswith("."):
        message = (
            f"({table!r}) must be a table's name, or catalog.schema.table; put a name that has dots in double quotes"
        )
        raise InvalidParameterError(message, parameter="table")
    if parts[-1].lower().startswith(STATE):
        raise InvalidParameterError(f"({table!r}) is a name of sync's own; pass another one", parameter="table")
    return parts


def is_of(argument: str) -> str:
    """Return the condition of SQL for rows of the list of an argument, in either letter case if it is hexadecimal."""
    literal = "'" + argument.replace("'", "''") + "'"
    if not HEXADECIMAL.fullmatch(argument):
        return f"{QUERIED}[1] = {literal}"
    # Each row of a set that is followed has one argument.
    return f"lower({QUERIED}[1]) = lower({literal})"


def is_void(change: Change, columns: Iterable[str]) -> str:
    """Return the condition of SQL for the rows of a table with these columns that a change undoes."""
    condition = f"{height_column(columns) or 'height'} > {int(change.undo_after or 0)}"
    return condition if change.undo_of is None else f"{condition} AND {is_of(change.undo_of)}"


def is_row_of(argument: str, queried: Sequence[str] | None) -> bool:
    """Return True if a row with these values of `queried` is of the list of an argument."""
    return meaning(argument) in map(meaning, queried or ())
