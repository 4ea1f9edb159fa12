"""Columns of a PostgreSQL table: whether they hold the rows of `sync`, whose bytes the driver sends as they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chainframe._declared import height_column
from chainframe._text import counted
from chainframe.sinks.columns import changed, lacking

if TYPE_CHECKING:
    import pyarrow as pa

LIMITS = re.compile(r"\((?:\d+,)?(-?\d+)\)")
"""Decimal places of a numeric type, digits of a second of a time, or length of a text."""
# Types of columns that take the bytes of each type of Arrow.
STORED_AS: dict[str, tuple[str, ...]] = {
    "int64": ("bigint",),
    "double": ("double precision",),
    "decimal": ("numeric",),
    "bool": ("boolean",),
    # Without a zone, the rows before a change of the type have local times.
    "timestamp": ("timestamp with time zone",),
    "string": ("text", "character varying"),
    "list": ("ARRAY",),
}
SCALE = 18
MILLISECONDS = 3
"""Decimal places of amounts, and of seconds. To columns with fewer the database rounds."""


def changed_column(rows: pa.Schema, types: dict[str, str]) -> str | None:
    """Return what keeps a table with columns of these types from holding rows as they are."""
    for field in rows:
        if field.name not in types:
            return lacking(field)
        found, limit = _kind_and_limit(types[field.name])
        stored = next((names for prefix, names in STORED_AS.items() if str(field.type).startswith(prefix)), (found,))
        if found not in stored:
            return changed(field.name, f"type {found}", stored[0])
        if found == "numeric" and limit is not None and limit < SCALE:
            return changed(field.name, counted(limit, "decimal place"), SCALE)
        if found.startswith("timestamp") and limit is not None and limit < MILLISECONDS:
            return changed(field.name, f"{counted(limit, 'digit')} of a second", MILLISECONDS)
    return None


def _kind_and_limit(described: str) -> tuple[str, int | None]:
    """Split a type as the database describes it, such as `numeric(38,2)` or `timestamp(0) with time zone`."""
    if described.endswith("[]"):
        return "ARRAY", None
    limit = LIMITS.search(described)
    return LIMITS.sub("", described), int(limit[1]) if limit else None


def sum_of_heights(types: dict[str, str]) -> str:
    """Return the expression for the sum of the heights; a null if others have changed the type of the column."""
    column = height_column(types)
    return f"coalesce(sum({column}), 0)::text" if column and types[column] == "bigint" else "NULL::text"
