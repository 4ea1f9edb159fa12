"""Apache Iceberg as a target of `sync`, through pyiceberg."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.types import LongType

from chainframe._declared import QUERIED, height_column
from chainframe._text import without_secrets_of_urls
from chainframe.errors import InvalidParameterError
from chainframe.sinks.columns import changed_column, fit, sum_of
from chainframe.sinks.contract import LOST, Change, Clear, Extent, Failure, Position, Sink, database_errors
from chainframe.sinks.sql import is_row_of, position_after

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction

POSITION = "chainframe.position"
"""Property of the snapshots that `sync` commits, and of the table."""
COMPARED = "chainframe.compared"
"""Property of such a snapshot if the one before it was compared with the position, or was of the same run."""
MAX_PROPERTY = 100_000
"""Characters of a position that is stored as a property of the table too."""
RETRIES = "commit.retry.num-retries"
PASSING = (
    exceptions.CommitStateUnknownException,
    exceptions.ServerError,
    exceptions.ServiceUnavailableError,
    exceptions.TooManyRequestsError,
    exceptions.WaitingForLockException,
)
KINDS = tuple(kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception))


class IcebergSink(Sink):
    """A table of an Iceberg catalog. The snapshot of each commit holds the position after it.

    A table that was rolled back to a snapshot has the position of that snapshot. The table's properties hold the last
    position for the time after the snapshots of `sync` have expired.
    """

    takes_sets = True

    def __init__(self, catalog: Catalog, table: str) -> None:
        self._catalog = catalog
        self._identifier = Catalog.identifier_to_tuple(table)
        if len(self._identifier) < 2 or not all(self._identifier):  # noqa: PLR2004 - namespace and name
            message = f"({table!r}) must name a namespace and a table, as in chain.blocks"
            raise InvalidParameterError(message, parameter="table")
        self.name: str = without_secrets_of_urls(table)
        self._table: Table | None = None
        self._known: int | None = None
        """Snapshot that was compared with the position, or that this run committed on top of it; 0 if it has none."""

    def look(self) -> tuple[Position | None, Extent | None]:
        with self._errors():
            stored = self._load()
            self._known = _snapshot(self._table)
            if self._table is None:
                return None, None
            # The sum of the heights takes all files: it is read only if others have committed.
            is_compared = stored is not None and stored.heights is not None and not _is_compared(self._table)
            return stored, _extent(self._table, with_heights=is_compared)

    def _load(self) -> Position | None:
        """Read the newest state of the table: returns the position."""
        try:
            self._table = self._catalog.load_table(self._identifier)
        except exceptions.NoSuchTableError:
            self._table = None
            return None
        return _stored(self._table)

    def commit(self, change: Change) -> int:
        with self._errors():
            stored = self._load()
        change.check_unchanged(stored, self.name)
        with self._errors():
            problem = self._problem(change)
        change = fit(change, problem, self.name)
        removed = 0
        removed_heights: int | None = None
        with self._errors():
            is_known = _snapshot(self._table) == self._known
            transaction = self._transaction(change)
            if change.clear is not Clear.NOTHING and self._table is not None and _has_rows(self._table):
                transaction.delete(AlwaysTrue())
            rows = change.rows
            if change.undo_after is not None and self._table is not None:
                column = height_column(self._table.schema().column_names) or "height"
                above = f"{column} > {int(change.undo_after)}"
                found, kept = _found_above(self._table, above, change.undo_of)
                removed = len(found)
                removed_heights = sum_of(found[column])
                if removed:
                    transaction.delete(above)
                    rows = kept if rows is None else rows
            if change.clear is Clear.TABLE and change.rows is not None:
                _replace_columns(transaction, change.rows.schema)
            position = position_after(stored, change, removed, removed_heights).to_json()
            properties = {POSITION: position} | ({COMPARED: "true"} if is_known else {})
            # An append without rows is a snapshot too.
            transaction.append(_no_rows(transaction) if rows is None else rows, snapshot_properties=properties)
            transaction.set_properties({POSITION: position if len(position) <= MAX_PROPERTY else ""})
            table = transaction.commit_transaction()
            self._known = _snapshot(table) if is_known else None
        return removed

    def _problem(self, change: Change) -> str | None:
        if change.rows is None or self._table is None:
            return None
        schema = self._table.schema()
        known = set(schema.column_names)
        # Columns that users added may have types that Arrow lacks.
        own = schema.select(*(name for name in change.rows.schema.names if name in known))
        return changed_column(change.rows, _columns(own))

    def _transaction(self, change: Change) -> Transaction:
        if self._table is not None:
            # Only of this object: the library repeats a commit on top of one that another run has made meanwhile.
            self._table.properties[RETRIES] = "0"
            return self._table.transaction()
        rows: Any = change.rows
        return self._catalog.create_table_transaction(self._identifier, rows.schema)

    def _errors(self) -> Any:  # noqa: ANN401 - a context manager
        # Catalogs in a database raise its errors.
        library = sys.modules.get("sqlalchemy.exc")
        databases = (library.SQLAlchemyError,) if library else ()
        return database_errors(self.name, (*KINDS, *databases, OSError, ValueError), _kind)


def _found_above(table: Table, above: str, undo_of: str | None) -> tuple[pa.Table, pa.Table | None]:
    """Return the rows that a change deletes, and the rows that were found with them and stay."""
    if undo_of is None:
        column = height_column(table.schema().column_names) or "height"
        return table.scan(row_filter=above, selected_fields=(column,)).to_arrow(), None
    # The library has no filter for lists.
    found = table.scan(row_filter=above).to_arrow()
    values: list[Any] = found[QUERIED].to_pylist()
    stays = [not is_row_of(undo_of, each) for each in values]
    return found.filter([not each for each in stays]), found.filter(stays)


def _snapshot(table: Table | None) -> int:
    """Return the current snapshot of a table; 0 if there is none."""
    current = None if table is None else table.current_snapshot()
    return 0 if current is None else current.snapshot_id


def _is_compared(table: Table) -> bool:
    """True if the current snapshot is one of `sync`, and others have not changed the table before it."""
    current = table.current_snapshot()
    summary = None if current is None else current.summary
    return summary is not None and COMPARED in summary.additional_properties


def _stored(table: Table) -> Position | None:
    found = None
    for snapshot in ancestors_of(table.current_snapshot(), table.metadata):
        summary = snapshot.summary
        if summary is not None and POSITION in summary.additional_properties:
            found = summary.additional_properties[POSITION]
            break
    if found is None:
        # The snapshots of `sync` have expired.
        found = table.properties.get(POSITION)
    if found is None:
        return None
    return Position.from_json(found) if found else LOST


def _extent(table: Table, *, with_heights: bool) -> Extent:
    """Read rows and greatest height from the statistics of the files, or from the files if they have none."""
    column = height_column(table.schema().column_names)
    if column is None:
        return Extent(int(table.scan().count()), None)
    field = table.schema().find_field(column).field_id
    tasks = list(table.scan().plan_files())
    bounds = [(task.file.upper_bounds or {}).get(field) for task in tasks]
    if not with_heights and None not in bounds and not any(task.delete_files for task in tasks):
        heights = [int(from_bytes(LongType(), bound)) for bound in bounds if bound is not None]
        return Extent(sum(task.file.record_count for task in tasks), max(heights, default=None))
    found = table.scan(selected_fields=(column,)).to_arrow()[column]
    highest = max((height for height in found.to_pylist() if height is not None), default=None)
    return Extent(len(found), highest, sum_of(found))


def _has_rows(table: Table) -> bool:
    return _extent(table, with_heights=False).rows > 0


def _replace_columns(transaction: Transaction, schema: pa.Schema) -> None:
    """Drop the columns that differ from a schema, and add those that are missing."""
    found = _columns(transaction.table_metadata.schema())
    common = [field for field in schema if field.name in found.names]
    kept = [field.name for field in common if _is_same(found.field(field.name).type, field.type)]
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for name in found.names:
            if name not in kept:
                update.delete_column(name)
    with transaction.update_schema() as update:
        update.union_by_name(schema)


def _is_same(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Compare types as Iceberg stores them: it has one for each kind of text and of list."""
    return str(found).removeprefix("large_") == str(wanted).removeprefix("large_")


def _no_rows(transaction: Transaction) -> pa.Table:
    return _columns(transaction.table_metadata.schema()).empty_table()


def _columns(schema: Schema) -> pa.Schema:
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - needs pyarrow

    return schema_to_pyarrow(schema, include_field_ids=False)


def _kind(error: Exception) -> Failure:
    if isinstance(error, exceptions.CommitFailedException | exceptions.TableAlreadyExistsError):
        return Failure.CONFLICT
    if isinstance(error, PASSING) or type(error).__name__ == "OperationalError":
        return Failure.MAY_PASS
    return Failure.of_store(error)
