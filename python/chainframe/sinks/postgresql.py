"""PostgreSQL as a target of `sync`, through ADBC."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import adbc_driver_manager

from chainframe._declared import height_column
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.sinks.columns import fit
from chainframe.sinks.contract import (
    Change,
    Clear,
    Extent,
    Failure,
    Position,
    Sink,
    database_errors,
    foreign,
    is_intact,
    one_line,
    open_transaction,
)
from chainframe.sinks.postgresql_columns import changed_column, sum_of_heights
from chainframe.sinks.postgresql_url import redacted
from chainframe.sinks.sql import STATE, is_void, name_parts, position_after, position_of_row, quoted

if TYPE_CHECKING:
    from collections.abc import Generator

    from adbc_driver_manager.dbapi import Connection

EXACT = (1, 11)
"""First version of the ADBC driver that stores every decimal as it is."""
# A transaction that has changed nothing and locked nothing may end.
HAS_WORK = (
    "SELECT txid_current_if_assigned() IS NOT NULL OR EXISTS (SELECT FROM pg_locks "
    "WHERE pid = pg_backend_pid() AND mode <> 'AccessShareLock' AND locktype <> 'virtualxid')"
)
# PostgreSQL 13 has no such setting.
STAY_CONNECTED = (
    "SELECT setting::text, set_config(name, '0', false) FROM pg_settings "
    "WHERE name = 'idle_session_timeout' AND setting <> '0'"
)
# Settings of a transaction. The driver sends text as UTF-8, whatever the role, the database or PGCLIENTENCODING sets.
# Literals have no escapes.
TEXT_SETTINGS = (
    "SELECT set_config('client_encoding', 'UTF8', true), set_config('standard_conforming_strings', 'on', true)"
)
# information_schema lacks columns that the role may not use. A domain has the type and limits of what it is based on.
# pg_temp stands for the schema of the session's temporary tables, which has another name.
COLUMNS = (
    "SELECT attname::text, CASE WHEN typtype = 'd' THEN format_type(typbasetype, typtypmod) "
    "ELSE format_type(atttypid, atttypmod) END FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
    "JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE (nspname = $1 OR $1 = 'pg_temp' AND pg_namespace.oid = pg_my_temp_schema()) AND relname = $2 "
    "AND relkind IN ('r', 'p', 'v', 'f') AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
# Relations of all kinds share the names of a schema, and a table has a type of its name. The database renames an array
# type that is in the way. A table may have been made since its columns were asked for.
OTHER_RELATION = (
    "SELECT relkind::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = $1 AND relname = $2 AND relkind NOT IN ('r', 'p', 'v', 'f') "
    "UNION ALL SELECT typtype::text FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace "
    "WHERE nspname = $1 AND typname = $2 AND typrelid = 0 AND typisdefined "
    "AND NOT EXISTS (SELECT FROM pg_type AS element WHERE element.typarray = pg_type.oid)"
)
# Rows inserted, updated and deleted in this transaction, and in those before it that the server has not passed on to
# its statistics: it counts them without reading the table. Of views, and if track_counts is off, all are 0.
# There is no line for a table without triggers and rules. Foreign keys are triggers.
CHANGED_ROWS = (
    "SELECT sum(pg_stat_get_xact_tuples_inserted(part.oid))::bigint, "
    "sum(pg_stat_get_xact_tuples_updated(part.oid))::bigint, sum(pg_stat_get_xact_tuples_deleted(part.oid))::bigint "
    "FROM pg_class AS whole JOIN pg_namespace ON pg_namespace.oid = whole.relnamespace "
    "LEFT JOIN pg_partition_tree(whole.oid) ON true JOIN pg_class AS part ON part.oid = coalesce(relid, whole.oid) "
    "WHERE nspname = $1 AND whole.relname = $2 HAVING bool_or(part.relhastriggers OR part.relhasrules)"
)
RETRYABLE = re.compile(r"08|40|53|57|25P03|55P03|23505|42P07")
"""SQLSTATEs of lost connections, conflicts, limits, shutdowns, timeouts, and of tables that two runs make at once."""

REFUSED = re.compile(
    r"(does not exist|authentication failed|no password supplied|no pg_hba\.conf entry|permission denied|"
    r"is not permitted to log in|unrecognized configuration parameter|invalid value for parameter|requires a value|"
    r"invalid integer value|channel binding required|authentication method requirement|does not support SSL)"
)
"""Texts with which a server refuses each further connection too."""
TRIED = re.compile(r"connection to server|could not connect to server|could not translate host name")
"""Texts of a connection that was tried. libpq refuses most parameters of a URL before it tries any."""


class PostgresqlSink(Sink):
    """A table of a PostgreSQL database; positions are in the table `_chainframe` of its schema."""

    takes_sets = True

    def __init__(self, connection: Connection, table: str, *, is_own: bool = False) -> None:
        self._connection: Any = connection
        self.name = table
        self._is_own = is_own
        # Before the driver asks anything, which begins a transaction.
        self._status = self._transaction_status()
        if self._status == "inerror":
            raise open_transaction(table)
        with self._errors():
            vendor = self._connection.adbc_get_info().get("vendor_name")
        if vendor != "PostgreSQL":
            raise InvalidParameterError(f"must be a connection to PostgreSQL; got {vendor}", parameter="target")
        version = getattr(sys.modules.get("adbc_driver_postgresql"), "__version__", None)
        if version is not None and tuple(map(int, version.split(".")[:2])) < EXACT:
            message = (
                f"must be a connection of adbc-driver-postgresql >= 1.11, which stores amounts exactly; got {version}"
            )
            raise InvalidParameterError(message, parameter="target")
        self._parts = name_parts(table)
        # Schema and name, as the database has them.
        self._place = ("", "")
        self._was_autocommit: bool | None = None
        self._idle_timeout: str | None = None

    def look(self) -> tuple[Position | None, Extent | None]:
        self._take_over()
        with self._transaction() as cursor:
            self._place = self._resolve(cursor)
            stored = self._stored(cursor)
            extent = self._extent(cursor)
            if extent is not None:
                self._check_visible(cursor, self._place[1])
                if stored is None:
                    self._check_visible(cursor, STATE)
            return stored, extent

    def commit(self, change: Change) -> int:
        schema, name = self._place
        with self._transaction() as cursor:
            self._lock_positions(cursor)
            stored = self._stored(cursor)
            change.check_unchanged(stored, self.name)
            changed = self._changed_rows(cursor)
            change = fit(change, self._problem(cursor, change), self.name)
            removed, removed_heights = self._delete(cursor, change)
            if change.rows is not None:
                mode = "append" if self._columns(cursor) else "create"
                cursor.adbc_ingest(name, change.rows, mode=mode, db_schema_name=schema)
            position = position_after(stored, change, removed, removed_heights)
            self._check_stored(cursor, change, position, changed)
            self._store(cursor, position)
        return removed

    def _lock_positions(self, cursor: Any) -> None:  # noqa: ANN401
        """Admit one run at a time: the others wait here, then find another position."""
        state = quoted(self._place[0], STATE)
        # A role that may not create tables keeps those that are there.
        if not self._columns(cursor, STATE):
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {state} "
                "(name text PRIMARY KEY, cursor text NOT NULL, height bigint, rows bigint, form text, heights text)"
            )
        cursor.execute(f"LOCK TABLE {state} IN EXCLUSIVE MODE")

    def _delete(self, cursor: Any, change: Change) -> tuple[int, str | None]:  # noqa: ANN401
        """Delete the rows that a change clears or undoes; returns number and sum of heights of the undone ones."""
        table = quoted(*self._place)
        if change.clear is Clear.TABLE:
            cursor.execute(f"DROP TABLE {table}")
        elif change.clear is Clear.ROWS:
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - quoted
        if change.undo_after is None:
            return 0, None
        types = self._columns(cursor)
        void = f"FROM {table} WHERE {is_void(change, types)}"
        removed: tuple[int, str | None] = _one(cursor, f"SELECT count(*), {sum_of_heights(types)} {void}")
        cursor.execute(f"DELETE {void}")
        return removed

    def _store(self, cursor: Any, position: Position) -> None:  # noqa: ANN401
        schema, name = self._place
        state = quoted(schema, STATE)
        heights = None if position.heights is None else str(position.heights)
        cursor.execute(f"DELETE FROM {state} WHERE name = $1", (name,))  # noqa: S608 - quoted
        # Rows with names are unique: one that is still there would make the next statement fail with another reason.
        if self._stored(cursor) is None:
            cursor.execute(
                f"INSERT INTO {state} (name, cursor, height, rows, form, heights) VALUES ($1, $2, $3, $4, $5, $6)",  # noqa: S608
                (name, position.cursor, position.height, position.rows, position.form, heights),
            )
        if self._stored(cursor) != position:
            message = f"{self.name}: a trigger, rule or policy of {STATE} changes the position; nothing was stored"
            raise ExportError(message, path=self.name)

    def close(self) -> None:
        if self._is_own:
            self._connection.close()
        elif self._was_autocommit is not None:
            with suppress(adbc_driver_manager.Error):
                if self._idle_timeout is not None:
                    with self._connection.cursor() as cursor:
                        cursor.execute("SELECT set_config('idle_session_timeout', $1, false)", (self._idle_timeout,))
            # In a block of its own: it has to happen even if the setting could not be restored.
            with suppress(adbc_driver_manager.Error):
                self._connection.adbc_connection.set_autocommit(self._was_autocommit)

    def _errors(self) -> Any:  # noqa: ANN401 - a context manager
        return database_errors(self.name, adbc_driver_manager.Error, _kind)

    def _transaction_status(self) -> str | None:
        try:
            status: str = self._connection.adbc_connection.get_option("adbc.postgresql.transaction_status")
        except adbc_driver_manager.Error:
            # The connection is closed, or is one to another database.
            return None
        return status

    def _take_over(self) -> None:
        """Check that no work of the caller is open. Between its transactions `sync` holds none."""
        connection = self._connection.adbc_connection
        with self._errors():
            self._was_autocommit = connection.get_option("adbc.connection.autocommit") == "true"
            try:
                if self._status != "idle" and self._has_work():
                    raise open_transaction(self.name)
                connection.set_autocommit(True)
            except ExportError:
                self._was_autocommit = None
                raise
            # While the API is read, the session is idle, for as long as it takes to fetch what one commit stores.
            with self._connection.cursor() as cursor:
                found = _one(cursor, STAY_CONNECTED)
            self._idle_timeout = found and found[0]

    def _has_work(self) -> bool:
        if self._was_autocommit:
            # With autocommit, only a BEGIN of the caller opens a transaction.
            return True
        with self._connection.cursor() as cursor:
            found: bool = _one(cursor, HAS_WORK)[0]
        self._check_read(found, bool)
        return found

    def _check_read(self, value: object, kind: type) -> None:
        if not isinstance(value, kind):
            # The driver asks the server for the names of types, and knows them without quotes only.
            message = f"{self.name}: the driver cannot read the types of the database; set quote_all_identifiers = off"
            raise ExportError(message, path=self.name)

    @contextmanager
    def _transaction(self) -> Generator[Any]:
        connection = self._connection.adbc_connection
        with self._errors():
            connection.set_autocommit(False)
            try:
                with self._connection.cursor() as cursor:
                    # Whatever the server's default is: the position is read after the lock was taken.
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                    cursor.execute(TEXT_SETTINGS)
                    yield cursor
                connection.commit()
            except BaseException:
                # The connection may be lost, and an error of this would hide the cause.
                with suppress(adbc_driver_manager.Error):
                    connection.rollback()
                raise
            finally:
                with suppress(adbc_driver_manager.Error):
                    connection.set_autocommit(True)

    def _resolve(self, cursor: Any) -> tuple[str, str]:  # noqa: ANN401
        """Find the table as the database itself does, or the place of a new one."""
        name, *above = reversed(self._parts)
        select = (
            "SELECT current_database()::text, current_schema()::text, current_setting('max_identifier_length')::int"
        )
        database, schema, longest = _one(cursor, select)
        self._check_read(longest, int)
        if any(len(part.encode()) > longest for part in self._parts):
            # The database would cut it, and the table is not found under the name that was given.
            message = f"({self.name!r}) must have names of at most {longest} bytes, as the database has"
            raise InvalidParameterError(message, parameter="table")
        if above[1:] not in ([], [database]):
            message = f"({self.name!r}) must be a table of the connection's database, which is {database}"
            raise InvalidParameterError(message, parameter="table")
        if self._is_own and above and above[0].lower().startswith("pg_temp"):
            message = f"({self.name!r}) must be a table that stays; one of {above[0]} ends with its connection"
            raise InvalidParameterError(message, parameter="table")
        if above:
            return above[0], name
        found = (
            "SELECT table_schema::text FROM information_schema.tables WHERE table_name = $1 "
            "AND table_schema = any(current_schemas(false)) "
            "ORDER BY array_position(current_schemas(false), table_schema::name) LIMIT 1"
        )
        cursor.execute(found, (name,))
        row = cursor.fetchone()
        if row is None and schema is None:
            message = f"{self.name}: search_path has no schema; name one, as in schema.{self.name}"
            raise ExportError(message, path=self.name)
        return (row[0] if row else schema), name

    def _stored(self, cursor: Any) -> Position | None:  # noqa: ANN401
        schema, name = self._place
        if not self._columns(cursor, STATE):
            return None
        cursor.execute(
            f"SELECT cursor, height, rows, form, heights FROM {quoted(schema, STATE)} WHERE name = $1",  # noqa: S608 - quoted
            (name,),
        )
        return position_of_row(cursor.fetchone())

    def _extent(self, cursor: Any) -> Extent | None:  # noqa: ANN401
        columns = self._columns(cursor)
        if not columns:
            cursor.execute(OTHER_RELATION, self._place)
            if cursor.fetchone() is not None:
                # A materialized view, a sequence, an index, or a type that is not a table's.
                raise foreign(self.name)
            return None
        column = height_column(columns)
        # Others may have changed its type.
        highest = f"max({column})::bigint" if column else "NULL::bigint"
        select = f"SELECT count(*), {highest}, {sum_of_heights(columns)} FROM {quoted(*self._place)}"  # noqa: S608 - quoted
        rows, greatest, heights = _one(cursor, select)
        return Extent(rows, greatest, None if heights is None else int(heights))

    def _check_visible(self, cursor: Any, table: str) -> None:  # noqa: ANN401
        """Check that no policy hides rows of a table, which would be taken for rows that others have deleted."""
        cursor.execute("SELECT row_security_active(to_regclass($1))", (quoted(self._place[0], table),))
        if cursor.fetchone()[0]:
            message = f"{self.name}: row-level security of {table} applies to the role; use a role that has BYPASSRLS"
            raise ExportError(message, path=self.name)

    def _changed_rows(self, cursor: Any) -> tuple[int, int, int] | None:  # noqa: ANN401
        cursor.execute(CHANGED_ROWS, self._place)
        found: tuple[int, int, int] | None = cursor.fetchone()
        return found

    def _check_stored(
        self,
        cursor: Any,  # noqa: ANN401
        change: Change,
        position: Position,
        before: tuple[int, int, int] | None,
    ) -> None:
        """Check the rows of a table with triggers or rules, which may keep rows out, or undeleted."""
        after = self._changed_rows(cursor)
        if after is None:
            return
        # The number of rows that `clear` deletes is not known.
        if before is not None and change.clear is Clear.NOTHING:
            inserted = change.rows.num_rows if change.rows is not None else 0
            removed = change.after.rows - position.rows
            if after == (before[0] + inserted, before[1], before[2] + removed):
                return
        # The counters are of no help; the table is, and takes long to read.
        extent = self._extent(cursor)
        if extent is None or not is_intact(extent, position):
            message = f"{self.name}: a trigger or rule of the table changes what sync stores; nothing was stored"
            raise ExportError(message, path=self.name)

    def _problem(self, cursor: Any, change: Change) -> str | None:  # noqa: ANN401
        types = self._columns(cursor)
        return None if change.rows is None or not types else changed_column(change.rows.schema, types)

    def _columns(self, cursor: Any, table: str | None = None) -> dict[str, str]:  # noqa: ANN401
        """Return the types of a table's columns; none if there is no such table."""
        cursor.execute(COLUMNS, (self._place[0], table or self._place[1]))
        return dict(cursor.fetchall())


def connect(url: str, table: str) -> PostgresqlSink:
    """Open the database of a URL. No message shows its user or password."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an optional library

    try:
        connection = dbapi.connect(url)
    except adbc_driver_manager.Error as error:
        message = f"{table}: cannot connect: {redacted(one_line(error), url)}"
        may_pass = _kind(error) is Failure.MAY_PASS and TRIED.search(str(error)) is not None
        # Not chained: the text of the cause may hold the URL.
        raise ExportError(message, path=table, retryable=may_pass) from None
    return PostgresqlSink(connection, table, is_own=True)


def _one(cursor: Any, statement: str) -> Any:  # noqa: ANN401
    cursor.execute(statement)
    return cursor.fetchone()


def _kind(error: adbc_driver_manager.Error) -> Failure:
    state = error.sqlstate
    if state is None:
        # The driver has no state for a connection that was lost, could not be made, or was refused.
        may_pass = isinstance(error, adbc_driver_manager.OperationalError) and not REFUSED.search(str(error))
    else:
        may_pass = RETRYABLE.match(state) is not None
    return Failure.MAY_PASS if may_pass else Failure.LASTING
