"""The contract between `sync` and its targets: what a target stores, what it is asked for, and how it fails."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

from chainframe._text import without_secrets_of_urls
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    import pyarrow as pa

STATE = "_chainframe"
"""Table of a database that holds the positions of all tables of its schema."""


@dataclass(frozen=True)
class Position:
    """Position of a target in the list that it follows, and what the target holds there."""

    cursor: str
    """Cursor of the follower; "" if the target is one of `sync`, but no longer knows its cursor."""
    height: int | None
    """Height up to which the target follows the list."""
    rows: int
    form: str
    """The columns and number types that the rows were stored with."""


@dataclass(frozen=True)
class Extent:
    """Content of a table as it is found."""

    rows: int
    highest: int | None
    """Highest height; None if there is none."""


class Clear(Enum):
    """Fate of what a table held before."""

    NOTHING = auto()
    ROWS = auto()
    TABLE = auto()
    """The table is made again, since its columns differ."""


@dataclass
class Change:
    """Content of one transaction: rows to delete, rows to insert, and the position after them."""

    clear: Clear = Clear.NOTHING
    undo_after: int | None = None
    """Rows above this height are deleted; None deletes none."""
    tables: list[pa.Table] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    def table(self) -> pa.Table | None:
        arrow: Any = load("pyarrow", extra="arrow")
        joined: pa.Table | None = arrow.concat_tables(self.tables) if self.tables else None
        return joined


class Sink(Protocol):
    """A target of `sync`."""

    name: str
    """Name of the target in messages."""

    def look(self) -> tuple[Position | None, Extent | None]:
        """Read the position that was committed last, if any, and what the table holds, if it exists."""
        ...

    def commit(self, change: Change, before: Position | None, after: Callable[[int], Position]) -> int:
        """Apply a change in one transaction, if the stored position still is `before`.

        `after` makes the position from the number of deleted rows, which is returned.
        """
        ...

    def finish(self, position: Position | None) -> None:
        """End a run, whose last position this is."""
        ...

    def close(self) -> None:
        """Leave the target as it was given."""
        ...


def check_unchanged(found: Position | None, before: Position | None, name: str) -> None:
    """Raise `ExportError` if another run has committed since the position was read."""
    if found != before:
        raise overtaken(name)


def overtaken(name: str) -> ExportError:
    message = f"{name}: another run of sync has committed meanwhile; run it again"
    return ExportError(message, path=name, retryable=True)


def foreign(name: str) -> ExportError:
    return ExportError(f"{name} exists and was not made by sync; name another table", path=name)


def open_transaction(name: str) -> ExportError:
    message = f"{name}: the connection has an open transaction; commit it or roll it back, then run sync"
    return ExportError(message, path=name)


class Failure(Enum):
    """Kind of an error of a database."""

    LASTING = auto()
    MAY_PASS = auto()
    CONFLICT = auto()
    """Another transaction has changed the same."""


@contextmanager
def database_errors(
    name: str, kinds: type[Exception] | tuple[type[Exception], ...], kind_of: Callable[[Any], Failure]
) -> Generator[None]:
    """Raise the errors of a library as `ExportError`, with their cause."""
    try:
        yield
    except kinds as error:
        kind = kind_of(error)
        if kind is Failure.CONFLICT:
            raise overtaken(name) from error
        message = f"{name}: {one_line(error)}"
        # A traceback shows the text of the cause.
        cause = error if without_secrets_of_urls(str(error)) == str(error) else None
        raise ExportError(message, path=name, retryable=kind is Failure.MAY_PASS) from cause


def one_line(error: object) -> str:
    """Return the text of an error without line breaks, terminal sequences and secrets of URLs."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return without_secrets_of_urls(" ".join(text.split()) or type(error).__name__)


def quoted(*names: str) -> str:
    """Return an identifier of SQL."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


PART = re.compile(r'"((?:[^"]|"")+)"|([^".][^.]*)')


def name_parts(table: str, limit: int) -> list[str]:
    """Split a name such as `schema.table` at its dots, except within double quotes."""
    parts, end = [], 0
    while found := PART.match(table, end):
        parts.append(found[1].replace('""', '"') if found[1] else found[2])
        end = found.end()
        if not table.startswith(".", end):
            break
        end += 1
    if end != len(table) or not 0 < len(parts) <= limit or table.endswith("."):
        form = "schema.table" if limit == 2 else "catalog.schema.table"  # noqa: PLR2004
        message = f"({table!r}) must be a table's name, or {form}; put a name that has dots in double quotes"
        raise InvalidParameterError(message, parameter="table")
    if parts[-1].lower().startswith(STATE):
        raise InvalidParameterError(f"({table!r}) is a name of sync's own; pass another one", parameter="table")
    return parts


def height_of(names: Iterable[str]) -> str | None:
    """Return the column of heights among those of a table."""
    names = set(names)
    return next((name for name in ("height", "zone_block_height") if name in names), None)
