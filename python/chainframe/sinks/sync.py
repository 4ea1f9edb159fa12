"""`sync`: what a follower delivers, committed to a target together with its cursor."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from chainframe._declared import QUERIED, height_column
from chainframe._notes import continues, omit_cursor
from chainframe._text import counted, counted_are
from chainframe._threads import in_thread
from chainframe.errors import ChainframeError, ExportError, InvalidParameterError
from chainframe.errors.base import problem_of
from chainframe.exports.tables import release_memory
from chainframe.sinks.advice import advised, rejected_position, without_cursor
from chainframe.sinks.contract import Clear, Extent, Position, Sink, foreign, is_intact
from chainframe.sinks.taken import Pending, Taken
from chainframe.sinks.targets import sink_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import pyarrow as pa

    from chainframe import Report

COMMIT_ROWS = 65_536
"""Rows after which a commit is made. One height is never split."""
COMMIT_ROWS_OF_SET = 8_192
"""Rows after which a commit of a set is made. Twice as many take 3 MiB more beside the positions of its lists."""


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
    report : Report
        Report of what was read: `report.reasons` says, for example, that records which contradict the arguments were
        dropped.

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
    report: Report = field(repr=False, compare=False)


@dataclass(frozen=True)
class TableForm:
    """Columns and number types of a table."""

    columns: tuple[str, ...] | None = None
    numbers: str = "decimal"

    def table(self, event: Any) -> pa.Table:  # noqa: ANN401 - a batch of a follower
        table: pa.Table = event.to_arrow(numbers=self.numbers, columns=self.columns)
        return table

    def stored(self) -> str:
        return json.dumps({"columns": self.columns, "numbers": self.numbers})


@dataclass(frozen=True)
class _Options:
    """Options of `Query.sync`."""

    table: str | None = None
    settle: int = 12
    columns: Sequence[str] | None = None
    numbers: str = "decimal"
    reset: bool = False


def sync(query: Any, target: Any, **given: Any) -> Synced:  # noqa: ANN401
    """Implementation of `Query.sync`."""
    options = _Options(**given)
    form = _form(query, options)
    synced = run(query, sink_of(target, options.table), options.settle, form, reset=options.reset)
    query._warn_if_incomplete(synced.report)  # noqa: SLF001 - of this package
    return synced


async def sync_async(query: Any, target: Any, **given: Any) -> Synced:  # noqa: ANN401
    """Implementation of `Query.sync_async`."""
    options = _Options(**given)
    form = _form(query, options)
    sink = await in_thread(lambda: sink_of(target, options.table))
    synced = await run_async(query, sink, options.settle, form, reset=options.reset)
    query._warn_if_incomplete(synced.report)  # noqa: SLF001 - of this package
    return synced


def _form(query: Any, options: _Options) -> TableForm:  # noqa: ANN401
    columns = options.columns
    if columns is not None and query._values and QUERIED not in columns:  # noqa: SLF001 - of this package
        problem = f"({', '.join(columns)}) must contain {QUERIED}, by which sync finds the rows of each list of a set"
        raise InvalidParameterError(problem, parameter="columns")
    if columns is not None and height_column(columns) is None:
        problem = f"({', '.join(columns)}) must contain the height, by which sync finds the rows of a reorganization"
        raise InvalidParameterError(problem, parameter="columns")
    return TableForm(None if columns is None else tuple(columns), options.numbers)


def run(
    query: Any,  # noqa: ANN401
    sink: Sink,
    settle: int,
    form: TableForm = TableForm(),
    *,
    reset: bool = False,
    commit_rows: int = COMMIT_ROWS,
) -> Synced:
    """Commit all that a follower delivers, until it has caught up."""
    with closing(sink):
        target = _target(query, sink, form, commit_rows, reset=reset)
        follow = target.follow(query, settle)
        with _advice(target, follow):
            try:
                for event in follow:
                    target.take(event)
            except (ChainframeError, KeyboardInterrupt) as error:
                # The records that arrived before the error are not fetched again.
                target.commit_before(error)
                raise
        target.commit(follow.cursor, is_last=True)
        return target.result(follow.report)


async def run_async(
    query: Any,  # noqa: ANN401
    sink: Sink,
    settle: int,
    form: TableForm,
    *,
    reset: bool,
) -> Synced:
    """Commit as `run` does. Calls of the database run in a thread, one at a time."""
    with closing(sink):
        target = await in_thread(lambda: _target(query, sink, form, COMMIT_ROWS, reset=reset))
        follow = target.follow(query, settle)
        with _advice(target, follow):
            try:
                async for event in follow:
                    await in_thread(partial(target.take, event))
            except GeneratorExit as error:
                # A coroutine that is closed or dropped cannot await.
                target.commit_before(error)
                raise
            except (ChainframeError, asyncio.CancelledError, KeyboardInterrupt) as error:
                await in_thread(partial(target.commit_before, error))
                raise
        await in_thread(lambda: target.commit(follow.cursor, is_last=True))
        return target.result(follow.report)


@contextmanager
def _advice(target: _SyncedList, follow: Any) -> Generator[None]:  # noqa: ANN401
    """Raise an error of the follower as the one that says what to do about the table."""
    try:
        yield
    except ChainframeError as error:
        advice = advised(error, follow, has_rows=target.has_rows)
        if advice is error:
            raise
        raise advice from error


def _target(query: Any, sink: Sink, form: TableForm, commit_rows: int, *, reset: bool) -> _SyncedList:  # noqa: ANN401
    if not getattr(query, "_values", None):
        return _SyncedList(sink, form, commit_rows, reset=reset)
    if not sink.takes_sets:
        problem = f"({sink.name}) must be one that takes several values: DuckDB, PostgreSQL, Delta Lake or Iceberg"
        raise InvalidParameterError(problem, parameter="target")
    return _SyncedSet(query, sink, form, min(commit_rows, COMMIT_ROWS_OF_SET), reset=reset)


class _SyncedList:
    """A run that keeps the table of one list: events since the last commit, and the position that is stored."""

    def __init__(self, sink: Sink, form: TableForm, commit_rows: int, *, reset: bool) -> None:
        self._sink = sink
        self._form = form
        self._commit_rows = commit_rows
        self._stored, extent = sink.look()
        known, clear = _begin(self._stored, extent, form, sink.name, reset=reset)
        self._pending = Pending(clear)
        self.start = known.cursor if known else "beginning"
        self._rows = known.rows if known else 0
        self._height = known.height if known else None
        self._added = self._removed = self._commits = 0

    @property
    def has_rows(self) -> bool:
        return self._rows > 0

    def follow(self, query: Any, settle: int) -> Any:  # noqa: ANN401
        """Begin the follower at the position that is stored."""
        return self._opened(query, settle=settle, undo=True)

    def _opened(self, query: Any, **options: Any) -> Any:  # noqa: ANN401
        try:
            return query.follow(start=self.start, poll=None, **options)
        except InvalidParameterError as error:
            if self.start == "beginning" or error.parameter != "start":
                raise
            message = rejected_position(problem_of(error), self._sink.name)
            raise ExportError(message, path=self._sink.name) from error

    def take(self, event: Any) -> None:  # noqa: ANN401
        # The last change stays for the end, whose position shows the next run what is not new.
        is_undo = hasattr(event, "after_height")
        if is_undo or self._pending.rows >= self._commit_rows:
            self.commit()
        if is_undo:
            taken = Taken(event.cursor, event.after_height, undo_after=event.after_height)
        else:
            rows = self._form.table(event)
            taken = Taken(event.cursor, self._highest(rows), rows)
        self._pending.taken.append(taken)

    def _highest(self, rows: pa.Table) -> int | None:
        heights: Any = rows[height_column(rows.schema.names) or "height"]
        return max((height for height in heights.to_pylist() if height is not None), default=self._height)

    def commit_before(self, error: BaseException) -> None:
        """Commit what arrived before an error, which is the one to raise if that fails too."""
        omit_cursor(error)
        try:
            self.commit()
        except Exception as failed:  # noqa: BLE001 - sinks of others raise errors of their own
            error.add_note(f"what was fetched could not be committed: {failed}")
        if rows := self._rows:
            continues(error, f"{counted_are(rows, 'row')} committed")

    def commit(self, cursor: str | None = None, *, is_last: bool = False) -> None:
        pending = self._pending
        if not pending.taken and not (is_last and pending.clear is not Clear.NOTHING):
            return
        height = self._height_after(pending.taken)
        after = Position(
            cursor or self._cursor_after(pending.taken), height, self._rows + pending.rows, self._form.stored()
        )
        change = pending.change(self._stored, after)
        self._pending = Pending()
        removed = self._sink.commit(change)
        self._stored = change.position(removed)
        self._rows = self._stored.rows
        if is_last:
            self._sink.finish(self._stored)
        self._added += pending.rows
        self._removed += removed
        self._height = height
        self._commits += 1

    def _cursor_after(self, taken: list[Taken]) -> str:
        return taken[-1].cursor if taken else ""

    def _height_after(self, taken: list[Taken]) -> int | None:
        return taken[-1].height if taken else None

    def result(self, report: Report) -> Synced:
        return Synced(
            rows_added=self._added,
            rows_removed=self._removed,
            height=self._height,
            requests=report.requests,
            commits=self._commits,
            report=report,
        )


class _SyncedSet(_SyncedList):
    """A run that keeps the table of the lists of a set, whose position is that of all of them."""

    def __init__(self, query: Any, sink: Sink, form: TableForm, commit_rows: int, *, reset: bool) -> None:  # noqa: ANN401
        super().__init__(sink, form, commit_rows, reset=reset)
        self._query = query
        self._positions: Any = self._opened(query)._positions  # noqa: SLF001 - of this package
        """Positions after the events that were committed, or were given to the sink."""
        self._follow: Any = None
        self._reached: Any = None
        """Positions of the follower after the events that fill a commit. What it shares with them takes no memory."""

    def follow(self, query: Any, settle: int) -> Any:  # noqa: ANN401
        self._follow = super().follow(query, settle)
        return self._follow

    def take(self, event: Any) -> None:  # noqa: ANN401
        if hasattr(event, "after_height"):
            self.commit()
            (argument,) = event.queried
            taken = Taken(event.cursor, None, undo_after=event.after_height, argument=argument)
            self._pending.taken.append(taken)
            # The rows of other lists stay: a commit of its own deletes these.
            self.commit()
            return
        if self._pending.rows >= self._commit_rows:
            self.commit()
        rows = self._form.table(event)
        (argument,) = rows[QUERIED][0].as_py()
        self._pending.taken.append(Taken(event.cursor, self._highest(rows), rows, argument=argument))
        self._pending.join()
        if self._pending.rows >= self._commit_rows:
            self._reached = self._follow._positions  # noqa: SLF001

    def commit(self, cursor: str | None = None, *, is_last: bool = False) -> None:
        # The text of the positions takes the place of the responses, and the rows of the next commit that of the text.
        release_memory()
        super().commit(cursor, is_last=is_last)
        release_memory()

    def _cursor_after(self, taken: list[Taken]) -> str:
        if self._reached is None:
            cursors = {event.argument: event.cursor for event in taken}
            self._positions = self._query._moved(self._positions, list(cursors.items()))  # noqa: SLF001
        else:
            self._positions = self._reached
            self._reached = None
        reached: str = self._positions.to_json()
        return reached

    def _height_after(self, taken: list[Taken]) -> int | None:
        heights = [self._height, *(event.height for event in taken)]
        return max((height for height in heights if height is not None), default=None)


def _begin(
    stored: Position | None, extent: Extent | None, form: TableForm, name: str, *, reset: bool
) -> tuple[Position | None, Clear]:
    """Compare a table with what `sync` left: returns the position to continue from, and what has to go before.

    A table that is gone, or empty, is begun again.
    """
    if stored is None or extent is None:
        if extent is not None:
            raise foreign(name)
        return None, Clear.NOTHING
    is_other = stored.form != form.stored()
    if reset or extent.rows == 0:
        clear = Clear.TABLE if is_other else Clear.ROWS if reset else Clear.NOTHING
        is_kept = clear is Clear.NOTHING and stored.rows == 0
        return stored if is_kept else None, clear
    if not stored.cursor:
        raise ExportError(without_cursor(stored, name), path=name)
    if is_other:
        message = (
            f"{name} was made with other columns or number types ({stored.form}); pass those, or reset=True to fetch "
            "the table again"
        )
        raise ExportError(message, path=name)
    if not is_intact(extent, stored):
        found = f"{counted(extent.rows, 'row')} up to height {extent.highest}"
        difference = f"{found}, and sync left {stored.rows:,} up to {stored.height}"
        if extent.rows == stored.rows and extent.highest == stored.height:
            difference = f"{found}, of other heights than sync left"
        message = f"{name} has {difference}: others have changed it; pass reset=True to fetch the table again"
        raise ExportError(message, path=name)
    return stored, Clear.NOTHING
