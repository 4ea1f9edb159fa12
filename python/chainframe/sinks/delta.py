"""Delta Lake as a target of `sync`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError

from chainframe._declared import QUERIED, height_column
from chainframe._paths import URL, refuse_link, shown_url
from chainframe._text import without_secrets_of_urls
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.frames import load
from chainframe.sinks.columns import changed_column, fit, sum_of
from chainframe.sinks.contract import (
    LOST,
    Change,
    Clear,
    Extent,
    Failure,
    Position,
    Sink,
    database_errors,
)
from chainframe.sinks.sql import is_row_of, is_void, position_after

if TYPE_CHECKING:
    from os import PathLike

APP = "chainframe"
"""Identifier of the application transactions, whose version counts the commits of `sync`."""
CURSOR = "chainframe.cursor"
HEIGHT = "chainframe.height"
VERSION = "chainframe.version"
ROWS = "chainframe.rows"
HEIGHTS = "chainframe.heights"
TABLE = "chainframe.table"
FORM = "chainframe.form"
"""Metadata of a commit of `sync`; properties of the table after a run. `TABLE` is the version of the table then."""
UNREADABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\x00-\x1f\x7f\\#?\[\]^|]")
"""Parts of a local path that the library decodes, or takes for a part of a URL: it may write there, and not read."""
NO_TABLE = -1
MAX_PROPERTY = 100_000
"""Characters of a cursor that is stored as a property: each later checkpoint holds it."""


class DeltaSink(Sink):
    """A Delta Lake table. The metadata of each commit hold the position after it.

    After a run the table's properties hold it too: the log forgets old commits.
    """

    takes_sets = True

    def __init__(self, target: deltalake.DeltaTable | str | PathLike[str]) -> None:
        self._table = target if isinstance(target, deltalake.DeltaTable) else None
        self._uri = target.table_uri if isinstance(target, deltalake.DeltaTable) else str(target)
        self.name: str = without_secrets_of_urls(self._uri)
        if self._table is None and not URL.match(self._uri):
            for path in (Path(self._uri), Path(self._uri, "_delta_log")):
                refuse_link(path)
            # The library takes a relative path such as `a:b` for a URL.
            self._uri = str(Path(self._uri).absolute())
            if found := UNREADABLE.search(Path(self._uri).as_posix()):
                message = f"({self._uri}) must not have {found[0]!r}, which deltalake misreads; name another path"
                raise InvalidParameterError(message, parameter="target")
        self._version = 0
        self._known: int | None = NO_TABLE
        """Version of the table that was compared with the position, or that this run committed on top of it."""

    def look(self) -> tuple[Position | None, Extent | None]:
        with self._errors():
            stored, version = self._load()
            if self._table is None:
                self._known = NO_TABLE
                return None, None
            self._known = self._table.version()
            # The sum of the heights takes all files: it is read only if others have committed.
            is_compared = stored is not None and stored.heights is not None and version != str(self._known)
            try:
                return stored, _extent(self._table, with_heights=is_compared)
            except DeltaProtocolError:
                # The library reads no files of a table with deletion vectors.
                return stored, _extent(self._table, with_heights=False)

    def _load(self) -> tuple[Position | None, str | None]:
        """Read the newest version of the table: returns the position, and the version that the table had with it."""
        if self._table is None:
            if not deltalake.DeltaTable.is_deltatable(self._uri):
                self._check_scheme()
                return None, None
            self._table = deltalake.DeltaTable(self._uri)
        self._table.update_incremental()
        return self._stored(self._table)

    def _check_scheme(self) -> None:
        """Raise `InvalidParameterError` for a URL at which the library can make no table."""
        try:
            deltalake.DeltaTable(self._uri)
        except TableNotFoundError as error:
            if str(error).startswith("Unknown scheme"):
                message = (
                    f"({shown_url(self._uri)}) must be a local path or a URL that deltalake knows, such as s3://..."
                )
                raise InvalidParameterError(message, parameter="target") from None

    def commit(self, change: Change) -> int:
        # The library does not reject a repeated transaction; it does reject one that runs at the same time.
        with self._errors():
            stored, _ = self._load()
        change.check_unchanged(stored, self.name)
        with self._errors():
            problem = self._problem(change)
        change = fit(change, problem, self.name)
        table = self._table
        removed = 0
        removed_heights: int | None = None
        void: str | None = None
        if change.undo_after is not None and table is not None:
            with self._errors():
                removed, removed_heights, void = _void(table, change)
        version = self._version + 1
        position = position_after(stored, change, removed, removed_heights)
        known = self._next_version()
        properties = deltalake.CommitProperties(
            custom_metadata=_metadata(position, version, known),
            app_transactions=[deltalake.Transaction(APP, version)],
            # Not after a commit of another run.
            max_commit_retries=0,
        )
        with self._errors():
            if table is None:
                # Without a table there are rows.
                rows: Any = change.rows
                deltalake.write_deltalake(self._uri, rows, commit_properties=properties)
            elif change.rows is None:
                is_emptied = change.clear is not Clear.NOTHING
                table.delete("true" if is_emptied else void or "false", commit_properties=properties)
            else:
                _write(table, change, void, properties)
        self._known = known
        return removed

    def finish(self, position: Position) -> None:
        if len(position.cursor) > MAX_PROPERTY:
            return
        # The run is committed already: what fails here is tried again by the next one.
        with suppress(ExportError), self._errors():
            stored, _ = self._load()
            if self._table is not None and stored is not None and stored == position:
                metadata = _metadata(stored, self._version, self._next_version())
                self._table.alter.set_table_properties(metadata, raise_if_not_exists=False)

    def _next_version(self) -> int | None:
        """Return the version of the table after the next commit; None if others have committed since the comparison."""
        found = NO_TABLE if self._table is None else self._table.version()
        return found + 1 if found == self._known else None

    def _problem(self, change: Change) -> str | None:
        if change.rows is None or self._table is None:
            return None
        arrow: Any = load("pyarrow")
        # Not the schema of a pyarrow data set: of some tables the library makes none.
        return changed_column(change.rows, arrow.schema(self._table.schema().to_arrow()))

    def _stored(self, table: deltalake.DeltaTable) -> tuple[Position | None, str | None]:
        version = table.transaction_version(APP)
        if version is None:
            return None, None
        self._version = version
        properties = table.metadata().configuration
        found: dict[str, Any] | None = properties
        if properties.get(VERSION) != str(version):
            # The last commits first: the log may be long.
            commits = (commit for limit in (10, None) for commit in table.history(limit))
            found = next((commit for commit in commits if commit.get(VERSION) == str(version)), None)
        return (LOST, None) if found is None else (_position(found), found.get(TABLE))

    def _errors(self) -> Any:  # noqa: ANN401 - a context manager
        return database_errors(self.name, (DeltaError, OSError), _kind)


def _metadata(position: Position, version: int, table: int | None) -> dict[str, str]:
    given = {HEIGHT: position.height, HEIGHTS: position.heights, TABLE: table}
    # Strings: deltalake 1.5 takes no others.
    numbers = {name: str(value) for name, value in given.items() if value is not None}
    return {CURSOR: position.cursor, VERSION: str(version), ROWS: str(position.rows), FORM: position.form} | numbers


def _position(metadata: dict[str, Any]) -> Position:
    height, heights = (None if metadata.get(name) is None else int(metadata[name]) for name in (HEIGHT, HEIGHTS))
    return Position(metadata[CURSOR], height, int(metadata.get(ROWS, 0)), str(metadata.get(FORM, "")), heights)


def _extent(table: deltalake.DeltaTable, *, with_heights: bool) -> Extent:
    """Read rows and greatest height from the statistics of the files, or from the files if they have none."""
    import pyarrow.compute  # noqa: PLC0415 - deltalake has it

    files: Any = pyarrow.table(table.get_add_actions(flatten=True))
    column = height_column([field.name for field in table.schema().fields])
    names = ["num_records", f"max.{column}"]
    if not with_heights and all(name in files.column_names and files[name].null_count == 0 for name in names):
        rows = pyarrow.compute.sum(files[names[0]])
        highest = pyarrow.compute.max(files[names[1]])
        return Extent(rows.as_py() or 0, _height(highest))
    data: Any = table.to_pyarrow_dataset()
    if column is None:
        return Extent(data.count_rows(), None)
    heights = data.to_table(columns=[column])[column]
    return Extent(len(heights), _height(pyarrow.compute.max(heights)), sum_of(heights))


def _height(highest: Any) -> int | None:  # noqa: ANN401 - a scalar of pyarrow
    # Others may have changed its type.
    return None if highest.as_py() is None else int(highest.as_py())


def _void(table: deltalake.DeltaTable, change: Change) -> tuple[int, int | None, str]:
    """Return number and sum of heights of the rows that a reorganization has made void, and the condition for them."""
    import pyarrow.compute  # noqa: PLC0415 - deltalake has it

    files: Any = table.to_pyarrow_dataset()
    column = height_column(files.schema.names) or "height"
    above = pyarrow.compute.field(column) > change.undo_after
    of_list = [] if change.undo_of is None else [QUERIED]
    found = files.to_table(columns=[column, *of_list], filter=above)
    if change.undo_of is not None:
        found = found.filter([is_row_of(change.undo_of, values) for values in found[QUERIED].to_pylist()])
    return len(found), sum_of(found[column]), is_void(change, files.schema.names)


def _write(
    table: deltalake.DeltaTable, change: Change, void: str | None, properties: deltalake.CommitProperties
) -> None:
    """Insert rows, in place of those that are void, or of all."""
    is_emptied = change.clear is not Clear.NOTHING
    # The library's types have no call with either mode.
    mode: Any = "overwrite" if is_emptied or void is not None else "append"
    rows: Any = change.rows
    deltalake.write_deltalake(
        table,
        rows,
        mode=mode,
        predicate=None if is_emptied else void,
        # A column that a user added has no value in new rows.
        schema_mode="overwrite" if change.clear is Clear.TABLE else "merge",
        commit_properties=properties,
    )


def _kind(error: Exception) -> Failure:
    if isinstance(error, CommitFailedError):
        return Failure.CONFLICT
    return Failure.of_store(error)
