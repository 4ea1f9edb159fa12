"""DuckDB as a target of `sync`."""

from __future__ import annotations

import hashlib
import os
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

import duckdb

from chainframe._declared import height_column
from chainframe._paths import refuse_link
from chainframe.errors import ExportError
from chainframe.sinks.columns import changed_column, fit, lacking
from chainframe.sinks.contract import (
    Change,
    Clear,
    Extent,
    Failure,
    Position,
    Sink,
    database_errors,
    open_transaction,
)
from chainframe.sinks.sql import STATE, is_void, name_parts, position_after, position_of_row, quoted

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from duckdb import DuckDBPyConnection

BATCH = f"{STATE}_batch"
DAMAGED = ("not a valid DuckDB", "Corrupt database", "read enough bytes", "WAL does not match")
"""Parts of the messages for a file that no other attempt opens; the library has one class for all errors of files."""
FOLDED = str.maketrans(ascii_uppercase, ascii_lowercase)
"""DuckDB compares names without the case of ASCII letters, and of no others."""
MAGIC = b"DUCK"
"""Bytes of a database from byte 8 on, also of an encrypted one."""


class DuckDbSink(Sink):
    """A table of a DuckDB database; positions are in the table `_chainframe` of its schema."""

    takes_sets = True

    def __init__(self, connection: DuckDBPyConnection, table: str, *, is_own: bool = False) -> None:
        self._connection = connection
        self.name = table
        self._parts = name_parts(table)
        self._is_own = is_own
        # Catalog, schema and name, as the database has them.
        self._place = ("", "", "")

    def look(self) -> tuple[Position | None, Extent | None]:
        self._check_idle()
        with self._transaction():
            self._place = self._resolve()
            return self._stored(), self._extent()

    def commit(self, change: Change) -> int:
        execute = self._execute
        table = quoted(*self._place)
        state = quoted(*self._place[:2], STATE)
        removed = 0
        removed_heights: str | None = None
        with self._transaction():
            stored = self._stored()
            change.check_unchanged(stored, self.name)
            change = fit(change, self._problem(change), self.name)
            if change.clear is Clear.TABLE:
                execute(f"DROP TABLE {table}")
            elif change.clear is Clear.ROWS:
                execute(f"DELETE FROM {table}")  # noqa: S608 - quoted
            if change.undo_after is not None:
                void = f"FROM {table} WHERE {is_void(change, self._columns())}"
                removed_heights = execute(f"SELECT {self._sum_of_heights()} {void}")[0][0]
                removed = execute(f"DELETE {void}")[0][0]
            if change.rows is not None:
                self._connection.register(BATCH, change.rows)
                try:
                    execute(f"CREATE TABLE IF NOT EXISTS {table} AS FROM {BATCH} LIMIT 0")
                    execute(f"INSERT INTO {table} BY NAME FROM {BATCH}")
                finally:
                    with suppress(duckdb.Error):
                        self._connection.unregister(BATCH)
            execute(
                f"CREATE TABLE IF NOT EXISTS {state} "
                "(name VARCHAR PRIMARY KEY, cursor VARCHAR, height BIGINT, rows BIGINT, form VARCHAR, heights VARCHAR)"
            )
            after = position_after(stored, change, removed, removed_heights)
            values = [self._key(), after.cursor, after.height, after.rows, after.form, after.heights]
            execute(f"INSERT OR REPLACE INTO {state} VALUES (?, ?, ?, ?, ?, ?)", values)  # noqa: S608 - quoted
        return removed

    def close(self) -> None:
        if self._is_own:
            self._connection.close()

    def _check_idle(self) -> None:
        """Check that no transaction of the caller is open. To begin another one would end it."""
        with database_errors(self.name, duckdb.Error, _kind):
            try:
                # Without a transaction, each statement has one of its own.
                first, second = (self._execute("SELECT txid_current()")[0] for _ in range(2))
            except duckdb.TransactionException as error:
                raise open_transaction(self.name) from error
        if first == second:
            raise open_transaction(self.name)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """Run the statements of a transaction of one's own."""
        with database_errors(self.name, duckdb.Error, _kind):
            self._execute("BEGIN TRANSACTION")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                # After an error of COMMIT there is no transaction any more, and that would hide the cause.
                with suppress(duckdb.Error):
                    self._connection.rollback()
                raise

    def _resolve(self) -> tuple[str, str, str]:
        """Find the table as the database itself does, or the place of a new one."""
        name, *above = reversed(self._parts)
        current, schema, path = self._execute("SELECT current_catalog(), current_schema(), current_schemas(false)")[0]
        if len(above) == 2:  # noqa: PLR2004 - schema and catalog
            places: list[tuple[str, str]] = [(above[1], above[0])]
        elif above:
            select = (
                "SELECT count(*) FROM information_schema.schemata "  # noqa: S608 - no values
                f"WHERE {_is_same('catalog_name')} AND {_is_same('schema_name')}"
            )
            is_schema = self._execute(select, [current, above[0]])[0][0]
            places = [(current, above[0])] if is_schema else [(above[0], "main")]
        else:
            places = [(current, each) for each in dict.fromkeys([*path, schema])]
        found = (self._table_in(*place, name) for place in places)
        default: tuple[str, str] = places[0] if above else (current, schema)
        return next((place for place in found if place), (*default, name))

    def _table_in(self, catalog: str, schema: str, name: str) -> tuple[str, str, str] | None:
        select = (
            "SELECT table_catalog, table_schema, table_name FROM information_schema.tables WHERE "  # noqa: S608 - no values
            f"{_is_same('table_catalog')} AND {_is_same('table_schema')} AND {_is_same('table_name')}"
        )
        found = self._execute(select, [catalog, schema, name])
        return found[0] if found else None

    def _key(self) -> str:
        return self._place[2].translate(FOLDED)

    def _stored(self) -> Position | None:
        if self._table_in(*self._place[:2], STATE) is None:
            return None
        state = quoted(*self._place[:2], STATE)
        found = self._execute(f"SELECT cursor, height, rows, form, heights FROM {state} WHERE name = ?", [self._key()])  # noqa: S608
        return position_of_row(found[0] if found else None)

    def _extent(self) -> Extent | None:
        if self._table_in(*self._place) is None:
            return None
        column = height_column(self._columns())
        # Others may have changed its type.
        highest = f"max({column})::BIGINT" if column else "NULL"
        select = f"SELECT count(*), {highest}, {self._sum_of_heights()} FROM {quoted(*self._place)}"  # noqa: S608 - quoted
        rows, greatest, heights = self._execute(select)[0]
        return Extent(rows, greatest, None if heights is None else int(heights))

    def _sum_of_heights(self) -> str:
        """Return the expression for the sum of the heights; a null if others have changed the type of the column."""
        types = {name: kind for name, kind, *_ in self._execute(f"DESCRIBE {quoted(*self._place)}")}
        column = height_column(types)
        return f"coalesce(sum({column}), 0)::VARCHAR" if column and types[column] == "BIGINT" else "NULL"

    def _problem(self, change: Change) -> str | None:
        if change.rows is None or self._table_in(*self._place) is None:
            return None
        known = {name.translate(FOLDED) for name in self._columns()}
        # Those that users added may have types that Arrow lacks.
        own = [f"{quoted(name)} AS {quoted(name)}" for name in change.rows.schema.names if name in known]
        if not own:
            return lacking(change.rows.schema.field(0))
        select = f"SELECT {', '.join(own)} FROM {quoted(*self._place)} LIMIT 0"  # noqa: S608 - quoted
        found: Any = self._connection.sql(select).to_arrow_table().schema
        return changed_column(change.rows, found)

    def _columns(self) -> list[str]:
        return [row[0] for row in self._execute(f"DESCRIBE {quoted(*self._place)}")]

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Run a statement and fetch its result, so that the connection is free for the next one."""
        return self._connection.execute(statement, list(values)).fetchall()


def _is_same(column: str) -> str:
    """Return a condition: the column holds the name of a parameter, as the database compares names."""
    return f"{_folded(column)} = {_folded('?')}"


def _folded(expression: str) -> str:
    return f"translate({expression}, '{ascii_uppercase}', '{ascii_lowercase}')"


def _kind(error: duckdb.Error) -> Failure:
    if isinstance(error, duckdb.TransactionException):
        # COMMIT raises it too, and then its cause may be the disk.
        is_conflict = "conflict" in str(error).lower() or STATE in str(error) or "PRIMARY KEY" in str(error)
        return Failure.CONFLICT if is_conflict else Failure.MAY_PASS
    if any(problem in str(error) for problem in DAMAGED):
        return Failure.LASTING
    may_pass = isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException | duckdb.InterruptException)
    return Failure.MAY_PASS if may_pass else Failure.LASTING


def connect(path: Path, table: str) -> DuckDbSink:
    """Open a database file."""
    try:
        _check_files(path)
        if not path.exists():
            _create(path)
        # A run that was killed left them. They are of no use to any run, since there is a database now.
        with suppress(OSError):
            for file in path.parent.glob(f"{_temporary_name(path)}*"):
                file.unlink()
    except OSError as error:
        message = f"target ({path}): {error.strerror or error}; name another file"
        raise ExportError(message, path=str(path), errno=error.errno) from error
    with database_errors(table, duckdb.Error, _kind):
        # A relative path such as `md:a.db` names a service to the library.
        return DuckDbSink(duckdb.connect(path.absolute()), table, is_own=True)


def _check_files(path: Path) -> None:
    """Raise `ExportError` for files that the library would discard, fail on for good, or open with an extension."""
    log = path.with_name(f"{path.name}.wal")
    has_log = True
    try:
        # Not `exists`, which is also false for a name that is too long.
        log.lstat()
    except FileNotFoundError:
        has_log = False
    for file in (path, log):
        refuse_link(file)
    # In this order, since another run makes the database before its log.
    if has_log and not path.exists():
        message = f"target ({path}): {log.name} is of a database that is not there; restore it, or remove the file"
        raise ExportError(message, path=str(path))
    if not _may_be_database(path):
        raise ExportError(f"target ({path}): {path.name} is not a DuckDB database; name another file", path=str(path))


def _may_be_database(path: Path) -> bool:
    """Tell whether a file begins as a database does. The library would download an extension to read one of SQLite."""
    with suppress(OSError):
        if not path.is_file() or _is_open(path):
            return True
        with path.open("rb") as file:
            start = file.read(12)
        return not start or start[8:] == MAGIC
    return True


def _is_open(path: Path) -> bool:
    """Tell whether this process has a file open. On Unix, to close it once more ends the locks of its connections."""
    file = path.stat()
    for descriptor in Path("/dev/fd").iterdir():
        # The descriptor by which the directory was listed is closed.
        with suppress(OSError):
            if os.path.samestat(os.fstat(int(descriptor.name)), file):
                return True
    return False


def _create(path: Path) -> None:
    """Make an empty database, completely or not at all: a full disk would leave one that no later run opens."""
    temporary = path.absolute().with_name(f"{_temporary_name(path)}{uuid.uuid4().hex[:16]}.tmp")
    try:
        with database_errors(str(path), duckdb.Error, _kind):
            duckdb.connect(temporary).close()
        # If this fails, another run has made the database, which is opened, or the file system has no hard links, and
        # the library creates the file.
        with suppress(OSError):
            os.link(temporary, path)
    except ExportError as error:
        reason = str(error).removeprefix(f"{path}: ").replace(str(temporary), str(path))
        message = f"target ({path}): {reason}; make its directory writable and free space, or name another file"
        raise ExportError(message, path=str(path), errno=error.errno, retryable=error.retryable) from error.__cause__
    finally:
        with suppress(OSError):
            temporary.unlink()


def _temporary_name(path: Path) -> str:
    """The beginning of a name under which a database is made. It is short, since that of the database may be long."""
    return f".duckdb-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"
