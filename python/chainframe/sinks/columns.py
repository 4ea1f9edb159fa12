"""Columns of a table that others have changed: whether they hold the values of `sync` as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chainframe.errors import ExportError
from chainframe.frames import load
from chainframe.sinks.contract import Change, Clear

if TYPE_CHECKING:
    import pyarrow as pa


def fit(change: Change, problem: str | None, name: str) -> Change:
    """Return the change to apply to a table whose columns have a problem.

    A table that is fetched again is made again. Raises `ExportError` if it is to keep its rows.
    """
    if problem is None or change.clear is Clear.TABLE:
        return change
    if change.clear is Clear.ROWS:
        return replace(change, clear=Clear.TABLE)
    raise ExportError(f"{name}: {problem}, or pass reset=True to make the table again", path=name)


def lacking(field: pa.Field[Any]) -> str:
    """Say that a table lacks a column."""
    added = f"add it, of the Arrow type {field.type}"
    return f"it has no column {field.name}: others dropped it, or an earlier release made the table; {added}"


def changed(column: str, kind: object, stored: object) -> str:
    """Say that a column of a table has another type."""
    return f"column {column} has {kind}, and sync stores {stored}: others have changed it; change it back"


def changed_column(rows: pa.Table, found: pa.Schema) -> str | None:
    """Return what keeps a table from holding rows as they are: a column that is gone, or one that changes values."""
    for field in rows.schema:
        index = found.get_field_index(field.name)
        if index < 0:
            return lacking(field)
        stored = found.field(index).type
        if not _is_held(rows[field.name], stored):
            return changed(field.name, f"type {stored}", field.type)
    return None


def _is_held(values: Any, stored: Any) -> bool:  # noqa: ANN401 - of pyarrow
    """True if a column of a type holds the same values. Text does, whatever they are."""
    types: Any = load("pyarrow.types")
    arrow: Any = load("pyarrow")
    if stored == values.type or types.is_dictionary(stored) or _is_text(types, stored):
        return True
    if types.is_timestamp(stored) and stored.tz is None:
        # The database converts rows by the time zone of a session, and others may have another one.
        return False
    if types.is_integer(values.type) and types.is_decimal(stored):
        # Exact, or refused by the database.
        return True
    try:
        return bool(values.cast(stored).cast(values.type).equals(values))
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        return False


def _is_text(types: Any, kind: pa.DataType) -> bool:  # noqa: ANN401 - of pyarrow
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def sum_of(heights: Any) -> int | None:  # noqa: ANN401 - a column of pyarrow
    """Return the sum of the heights; None if others have changed the type of the column."""
    arrow: Any = load("pyarrow")
    compute: Any = load("pyarrow.compute")
    if heights.type != arrow.int64():
        return None
    # A sum of 64-bit integers wraps around without an error.
    return int(compute.sum(heights.cast(arrow.decimal128(38, 0))).as_py() or 0)
