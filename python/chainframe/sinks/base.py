"""`sync`: what a follower delivers, committed to a target together with its cursor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from chainframe.errors import ChainframeError, ExportError, InvalidParameterError
from chainframe.exports.series import height_column
from chainframe.frames import load

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 65_536
"""Rows after which a commit is made. One height is never split."""


@dataclass(frozen=True)
class Synced:
    """Outcome of a run of `sync`.

    Attributes
    ----------
    rows_added, rows_removed : int
        Rows that this run inserted, and rows that it deleted since a reorganization removed or changed their heights.
    height : int or None
        Height up to which the target follows the list; None if it has no rows.
    requests : int
        Requests sent.
    commits : int
        Transactions committed; 0 if nothing was new.

    Examples
    --------
    >>> synced = client.blocks().sync(connection, table="blocks")
    >>> print(synced.rows_added, synced.height)
    """

    rows_added: int
    rows_removed: int
    height: int | None
    requests: int
    commits: int


@dataclass(frozen=True)
class Position:
    """Position of a target in the list that it follows."""

    cursor: str
    height: int | None


@dataclass
class Change:
    """Content of one transaction: rows to delete, rows to insert, and the position after them."""

    undo_after: int | None = None
    """Rows above this height are deleted; None deletes none."""
    tables: list[pa.Table] = field(default_factory=list)
    position: Position | None = None

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    def table(self) -> pa.Table | None:
        arrow: Any = load("pyarrow", extra="arrow")
        joined: pa.Table | None = arrow.concat_tables(self.tables) if self.tables else None
        return joined


class Sink(Protocol):
    """A target of `sync`."""

    def position(self) -> Position | None:
        """Read the position; None for a table that does not exist yet."""
        ...

    def commit(self, change: Change, before: Position | None) -> int:
        """Apply a change in one transaction, if the position still is `before`; returns the number of deleted rows."""
        ...


# Names of files that are meant for a connection.
DATABASE_SUFFIXES = (".duckdb", ".ddb", ".db")


def sync(query: Any, target: Any, *, table: str | None = None, settle: int = 12) -> Synced:  # noqa: ANN401
    """Implementation of `Query.sync`."""
    return run(query, sink_of(target, table), settle)


def sink_of(target: Any, table: str | None) -> Sink:  # noqa: ANN401
    """Select the sink by the type of the target; only the library of that target is imported."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(target).__mro__}
    if isinstance(target, str | Path) or "deltalake" in libraries:
        if table is not None:
            raise InvalidParameterError("must not be given for Delta Lake, whose target is a table", parameter="table")
        if isinstance(target, str | Path) and Path(target).suffix in DATABASE_SUFFIXES:
            problem = (
                f"({target}) is a database, not the directory of a Delta table; pass duckdb.connect({str(target)!r})"
            )
            raise InvalidParameterError(problem, parameter="target")
        from chainframe.sinks.delta import DeltaSink  # noqa: PLC0415 - needs deltalake

        return DeltaSink(target)
    if not table:
        raise InvalidParameterError("must name a table of the database", parameter="table")
    if libraries & {"duckdb", "_duckdb"}:
        from chainframe.sinks.duckdb import DuckDbSink  # noqa: PLC0415 - needs duckdb

        return DuckDbSink(target, table)
    if "adbc_driver_manager" in libraries:
        from chainframe.sinks.postgresql import PostgresqlSink  # noqa: PLC0415 - needs the driver

        return PostgresqlSink(target, table)
    kinds = "a DuckDB connection, an ADBC connection to PostgreSQL, a DeltaTable or a path"
    raise InvalidParameterError(f"must be {kinds}; got {type(target).__name__}", parameter="target")


def run(query: Any, sink: Sink, settle: int) -> Synced:  # noqa: ANN401
    """Commit all that a follower delivers, until it has caught up."""
    state = _State(sink)
    follow = query.follow(start=state.start(), settle=settle, poll=None, undo=True)
    try:
        for event in follow:
            state.take(event)
    except ChainframeError:
        # The records that arrived before the error are not fetched again.
        state.commit()
        raise
    state.commit(follow.cursor)
    return replace(state.result, requests=follow.report.requests)


class _State:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._position = sink.position()
        self._change = Change()
        height = self._position.height if self._position else None
        self.result = Synced(rows_added=0, rows_removed=0, height=height, requests=0, commits=0)

    def start(self) -> str:
        return self._position.cursor if self._position else "beginning"

    def take(self, event: Any) -> None:  # noqa: ANN401
        # The last change stays for the end, whose position shows the next run what is not new.
        is_undo = hasattr(event, "after_height")
        if is_undo or self._change.rows >= ROWS:
            self.commit()
        if is_undo:
            self._change.undo_after = event.after_height
            self._change.position = Position(event.cursor, event.after_height)
            return
        rows: pa.Table = event.to_arrow()
        heights: Any = rows[height_column(rows.schema.names)]
        highest = max((height for height in heights.to_pylist() if height is not None), default=self.result.height)
        self._change.tables.append(rows)
        self._change.position = Position(event.cursor, highest)

    def commit(self, cursor: str | None = None) -> None:
        change, self._change = self._change, Change()
        if change.position is None:
            return
        change.position = replace(change.position, cursor=cursor or change.position.cursor)
        removed = self._sink.commit(change, self._position)
        self._position = change.position
        self.result = replace(
            self.result,
            rows_added=self.result.rows_added + change.rows,
            rows_removed=self.result.rows_removed + removed,
            height=change.position.height,
            commits=self.result.commits + 1,
        )


def check_unchanged(found: Position | None, before: Position | None, name: str) -> None:
    """Raise `ExportError` if another run has committed since the position was read."""
    if found != before:
        raise ExportError(
            f"{name}: another run of sync has committed meanwhile; run it again", path=name, retryable=True
        )


def foreign(name: str) -> ExportError:
    return ExportError(f"{name} exists and was not made by sync; name another table", path=name)


def quoted(name: str) -> str:
    """Return an identifier of SQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
