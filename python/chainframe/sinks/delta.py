"""Delta Lake as a target of `sync`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from chainframe._declared import QUERIED, height_column
from chainframe._paths import URL, refuse_link, shown_url
from chainframe._text import without_secrets_of_urls
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.frames import load
from chainframe.sinks.columns import changed_column, fit
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
from chainframe.sinks.sql import is_of, is_row_of

if TYPE_CHECKING:
    from os import PathLike

APP = "chainframe"
"""Identifier of the application transactions, whose version counts the commits of `sync`."""
CURSOR = "chainframe.cursor"
HEIGHT = "chainframe.height"
VERSION = "chainframe.version"
ROWS = "chainframe.rows"
FORM = "chainframe.form"
"""Metadata of a commit of `sync`; properties of the table after a run."""
UNREADABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\x00-\x1f\x7f\\#?\[\]^|]")
"""Parts of a local path that the library decodes, or takes for a part of a URL: it may write there, and not read."""
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

    def look(self) -> tuple[Position | None, Extent | None]:
        with self._errors():
            if self._table is None:
                if not deltalake.DeltaTable.is_deltatable(self._uri):
                    self._check_scheme()
                    return None, None
                self._table = deltalake.DeltaTable(self._uri)
            self._table.update_incremental()
            return self._stored(self._table), _extent(self._table)

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
        stored, _ = self.look()
        change.check_unchanged(stored, self.name)
        with self._errors():
            problem = self._problem(change)
        change = fit(change, problem, self.name)
        table = self._table
        removed = 0
        void: str | None = None
        if change.undo_after is not None and table is not None:
            with self._errors():
                removed, void = _void(table, change)
        version = self._version + 1
        properties = deltalake.CommitProperties(
            custom_metadata=_metadata(change.position(removed), version),
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
        return removed

    def finish(self, position: Position) -> None:
        if len(position.cursor) > MAX_PROPERTY:
            return
        # The run is committed already: what fails here is tried again by the next one.
        with suppress(ExportError), self._errors():
            stored, _ = self.look()
            if self._table is not None and stored == position:
                metadata = _metadata(position, self._version)
                self._table.alter.set_table_properties(metadata, raise_if_not_exists=False)

    def _problem(self, change: Change) -> str | None:
        if change.rows is None or self._table is None:
            return None
        arrow: Any = load("pyarrow")
        # Not the schema of a pyarrow data set: of some tables the library makes none.
        return changed_column(change.rows, arrow.schema(self._table.schema().to_arrow()))

    def _stored(self, table: deltalake.DeltaTable) -> Position | None:
        version = table.transaction_version(APP)
        if version is None:
            return None
        self._version = version
        properties = table.metadata().configuration
        if properties.get(VERSION) == str(version):
            return _position(properties)
        # The last commits first: the log may be long.
        commits = (commit for limit in (10, None) for commit in table.history(limit))
        found = next((commit for commit in commits if commit.get(VERSION) == str(version)), None)
        return LOST if found is None else _position(found)

    def _errors(self) -> Any:  # noqa: ANN401 - a context manager
        return database_errors(self.name, (DeltaError, OSError), _kind)


def _metadata(position: Position, version: int) -> dict[str, str]:
    height = {} if position.height is None else {HEIGHT: str(position.height)}
    # Strings: deltalake 1.5 takes no others.
    rows = {ROWS: str(position.rows), FORM: position.form}
    return {CURSOR: position.cursor, VERSION: str(version)} | height | rows


def _position(metadata: dict[str, Any]) -> Position:
    height = metadata.get(HEIGHT)
    rows = int(metadata.get(ROWS, 0))
    form = str(metadata.get(FORM, ""))
    return Position(metadata[CURSOR], None if height is None else int(height), rows, form)


def _extent(table: deltalake.DeltaTable) -> Extent:
    """Read rows and highest height from the statistics of the files, or from the files if they have none."""
    import pyarrow.compute  # noqa: PLC0415 - deltalake has it

    files: Any = pyarrow.table(table.get_add_actions(flatten=True))
    column = height_column([field.name for field in table.schema().fields])
    names = ["num_records", f"max.{column}"]
    if all(name in files.column_names and files[name].null_count == 0 for name in names):
        rows = pyarrow.compute.sum(files[names[0]])
        highest = pyarrow.compute.max(files[names[1]])
        return Extent(rows.as_py() or 0, _height(highest))
    data: Any = table.to_pyarrow_dataset()
    if column is None:
        return Extent(data.count_rows(), None)
    heights = data.to_table(columns=[column])[column]
    return Extent(len(heights), _height(pyarrow.compute.max(heights)))


def _height(highest: Any) -> int | None:  # noqa: ANN401 - a scalar of pyarrow
    # Others may have changed its type.
    return None if highest.as_py() is None else int(highest.as_py())


def _void(table: deltalake.DeltaTable, change: Change) -> tuple[int, str]:
    """Count the rows that a reorganization has made void; returns the condition for them too."""
    import pyarrow.compute  # noqa: PLC0415 - deltalake has it

    files: Any = table.to_pyarrow_dataset()
    column = height_column(files.schema.names) or "height"
    condition = f"{column} > {int(change.undo_after or 0)}"
    above = pyarrow.compute.field(column) > change.undo_after
    if change.undo_of is None:
        return int(files.count_rows(filter=above)), condition
    found = files.to_table(columns=[QUERIED], filter=above)[QUERIED].to_pylist()
    count = sum(is_row_of(change.undo_of, values) for values in found)
    return count, f"{condition} AND {is_of(change.undo_of)}"


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
