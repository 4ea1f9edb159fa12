"""The contract between `sync` and its targets: what a target stores, what it is asked for, and how it fails."""

from __future__ import annotations

import errno
import json
import os
import re
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from chainframe._text import without_secrets_of_urls
from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import pyarrow as pa

DISK_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
)
"""Numbers of errors that do not pass by themselves.

A disk is full or may not be written, or the place does not exist or is of another kind.
"""


@dataclass(frozen=True)
class Position:
    """Position of a target in the list that it follows, and what the target holds there.

    A sink stores it with the rows and returns it as it was.

    Attributes
    ----------
    cursor : str
        Cursor of the follower; "" if the target is one of `sync`, but no longer knows its cursor.
    height : int or None
        Height up to which the target follows the list.
    rows : int
        Number of rows.
    form : str
        The columns and number types that the rows were stored with.
    heights : int or None
        Sum of the heights of the rows; None if the target does not keep it. Equality disregards it.

    Examples
    --------
    >>> Position.from_json(position.to_json()) == position
    True
    """

    cursor: str
    height: int | None
    rows: int
    form: str
    heights: int | None = field(default=None, compare=False)

    def to_json(self) -> str:
        """Return the position as a line of text, to be stored.

        Returns
        -------
        str

        Examples
        --------
        >>> database.execute("INSERT INTO positions VALUES (?, ?)", ["blocks", position.to_json()])
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Position:
        """Read a position that `to_json` wrote.

        Parameters
        ----------
        text : str
            The stored text.

        Returns
        -------
        Position

        Raises
        ------
        ExportError
            The text is not a position.

        Examples
        --------
        >>> position = Position.from_json(text)
        """
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise ExportError(f"the stored position is not one of sync: {text[:80]!r}") from error


LOST = Position(cursor="", height=None, rows=0, form="")
"""Position of a table whose log no longer has that of `sync`."""


@dataclass(frozen=True)
class Extent:
    """Content of a table as it is found, by which `sync` notices what others changed.

    Attributes
    ----------
    rows : int
        Number of rows, counted.
    highest : int or None
        Greatest height; None if there are no rows.
    heights : int or None
        Sum of the heights; None if the target does not read it. Equality disregards it.

    Examples
    --------
    >>> Extent(*database.execute("SELECT count(*), max(height) FROM blocks").fetchone())
    """

    rows: int
    highest: int | None
    heights: int | None = field(default=None, compare=False)


class Clear(Enum):
    """Fate of what a table held before a change.

    Examples
    --------
    >>> if change.clear is Clear.TABLE:
    ...     database.execute("DROP TABLE blocks")
    """

    NOTHING = auto()
    """The table keeps its rows."""
    ROWS = auto()
    """All rows are deleted."""
    TABLE = auto()
    """The table is made again, since its columns differ."""


@dataclass(frozen=True)
class Change:
    """Content of one transaction: rows to delete, rows to insert, and the position after them.

    Attributes
    ----------
    before : Position or None
        Position on which the change is based: what `look` returned, or what was committed last.
    after : Position
        Position after the change if it deletes no rows; `position(removed)` has their number subtracted.
    clear : Clear
        Fate of what the table held; anything but NOTHING only at the beginning of a run.
    undo_after : int or None
        Rows above this height are deleted, before `rows` are inserted; None deletes none.
    undo_of : str or None
        Only rows whose column `queried` has this argument, in any letter case, are deleted: those of one list of
        several; None for all. Such a change has no `rows`. Only for a sink with `takes_sets`.
    rows : pyarrow.Table or None
        Rows to insert; None for none.

    Examples
    --------
    >>> change.check_unchanged(stored, "blocks")
    >>> position = change.position(removed)
    """

    before: Position | None
    after: Position
    clear: Clear = Clear.NOTHING
    undo_after: int | None = None
    undo_of: str | None = None
    rows: pa.Table | None = None

    def position(self, removed: int) -> Position:
        """Return the position to store.

        Parameters
        ----------
        removed : int
            Number of rows that were deleted because of `undo_after`. Rows that `clear` deletes do not count.

        Returns
        -------
        Position

        Examples
        --------
        >>> change.position(removed=0) == change.after
        True
        """
        return replace(self.after, rows=self.after.rows - removed)

    def check_unchanged(self, stored: Position | None, name: str) -> None:
        """Check that no other run has committed since this one read the position.

        Parameters
        ----------
        stored : Position or None
            Position as the transaction finds it.
        name : str
            Name of the target, for the message.

        Raises
        ------
        ExportError
            Another run has committed; `retryable` is true.

        Examples
        --------
        >>> change.check_unchanged(stored, "blocks")
        """
        if stored != self.before:
            raise overtaken(name)


class Sink(ABC):
    """Target of `Query.sync`: a table that stores its position in the same transaction as its rows.

    Derive from it to sync into a store of your own; `chainframe.testing.check_sink` shows whether the result keeps the
    promise. Errors of the store may be raised as they are.

    Attributes
    ----------
    name : str
        Name of the target in messages.
    takes_sets : bool
        True if `commit` deletes rows as `Change.undo_of` says, which queries of several values need; False by default.

    Examples
    --------
    >>> client.blocks().sync(ClickHouseSink(connection, "blocks"))
    """

    name: str
    takes_sets: bool = False

    @abstractmethod
    def look(self) -> tuple[Position | None, Extent | None]:
        """Read the position that was committed last, if any, and what the table holds, if it exists.

        Both are of one moment, and counted in the table: `sync` compares them.

        Returns
        -------
        tuple of Position or None, and Extent or None

        Examples
        --------
        >>> position, extent = sink.look()
        """

    @abstractmethod
    def commit(self, change: Change) -> int:
        """Apply a change completely or not at all, in this order.

        1. Compare the stored position with `change.before`; raise an error if it differs.
        2. Empty the table, or drop it, as `change.clear` says.
        3. Delete the rows above `change.undo_after`, and count them.
        4. Insert `change.rows`.
        5. Store `change.position(removed)` in place of the position before.

        Parameters
        ----------
        change : Change
            Rows to delete and to insert, and the position after them.

        Returns
        -------
        int
            Number of rows that were deleted because of `change.undo_after`.

        Raises
        ------
        ExportError
            Another run has committed meanwhile.

        Examples
        --------
        >>> removed = sink.commit(change)
        """

    def finish(self, position: Position) -> None:  # noqa: B027 - most targets need none
        """End a run that has read everything; a place to tidy. By default it does nothing.

        Parameters
        ----------
        position : Position
            Position that this run committed last.

        Examples
        --------
        >>> sink.finish(position)
        """

    def close(self) -> None:  # noqa: B027 - most targets need none
        """End every run, also one that failed, and leave the target as it was given. By default it does nothing.

        Examples
        --------
        >>> sink.close()
        """


def is_intact(extent: Extent, position: Position) -> bool:
    """True if a table may hold what `sync` left at a position."""
    if extent.rows != position.rows:
        return False
    if extent.rows == 0:
        return True
    if None not in {extent.heights, position.heights} and extent.heights != position.heights:
        return False
    # None if others have renamed the column.
    return extent.highest is not None and (position.height is None or extent.highest <= position.height)


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

    @classmethod
    def of_store(cls, error: Exception) -> Failure:
        """Return the kind of an error that a file system or object store raised."""
        is_lasting = not isinstance(error, OSError) or isinstance(error, FileNotFoundError | PermissionError)
        return cls.LASTING if is_lasting else cls.MAY_PASS


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
        number = _disk_errno(error)
        may_pass = kind is Failure.MAY_PASS and number is None
        raise ExportError(message, path=name, errno=number, retryable=may_pass) from _cause(error)
    except BaseException as error:
        # A library in Rust panics, for example in a process that was forked after its first use.
        if type(error).__name__ != "PanicException":
            raise
        raise ExportError(f"{name}: {one_line(error)}", path=name) from _cause(error)


def _cause(error: BaseException) -> BaseException | None:
    """Return the error as a cause, whose text a traceback shows, unless the text has secrets."""
    return error if without_secrets_of_urls(str(error)) == str(error) else None


def _disk_errno(error: Exception) -> int | None:
    """Return the number of a disk's error. Libraries have the text of the operating system in messages of their own."""
    for number in DISK_ERRORS:
        text = os.strerror(number)
        # Windows has no text of its own for some.
        if not text.startswith("Unknown error") and text in str(error):
            return number
    return None


def one_line(error: object) -> str:
    """Return the text of an error without line breaks, terminal sequences, stack of the library and secrets of URLs."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).partition("\nStack Trace:")[0]
    return without_secrets_of_urls(" ".join(text.split()) or type(error).__name__)
