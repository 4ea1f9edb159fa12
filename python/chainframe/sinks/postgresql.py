"""PostgreSQL as a target of `sync`, through ADBC."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from chainframe.errors import InvalidParameterError
from chainframe.exports.series import height_column
from chainframe.sinks.base import Change, Position, check_unchanged, foreign, quoted

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

STATE = "_chainframe"
EXACT = (1, 11)
"""First version of the ADBC driver that stores every decimal as it is."""


class PostgresqlSink:
    """A table of a PostgreSQL database; positions of all tables are in the table `_chainframe`."""

    def __init__(self, connection: Connection, table: str) -> None:
        self._connection: Any = connection
        self._table = table
        vendor = self._connection.adbc_get_info().get("vendor_name")
        if vendor != "PostgreSQL":
            raise InvalidParameterError(f"must be a connection to PostgreSQL; got {vendor}", parameter="target")
        version = getattr(sys.modules.get("adbc_driver_postgresql"), "__version__", None)
        if version is not None and tuple(map(int, version.split(".")[:2])) < EXACT:
            message = (
                f"must be a connection of adbc-driver-postgresql >= 1.11, which stores amounts exactly; got {version}"
            )
            raise InvalidParameterError(message, parameter="target")

    def position(self) -> Position | None:
        with self._connection.cursor() as cursor:
            found = self._position(cursor)
            is_foreign = found is None and self._exists(cursor, self._table)
        # The reading began a transaction.
        self._connection.rollback()
        if is_foreign:
            raise foreign(self._table)
        return found

    def commit(self, change: Change, before: Position | None) -> int:
        rows, position, removed = change.table(), change.position, 0
        assert position is not None  # noqa: S101 - a change ends at a position
        try:
            with self._connection.cursor() as cursor:
                execute = cursor.execute
                execute(
                    f"CREATE TABLE IF NOT EXISTS {STATE} (name text PRIMARY KEY, cursor text NOT NULL, height bigint)"
                )
                # One run at a time: the others wait here, then find another position.
                execute(f"LOCK TABLE {STATE} IN EXCLUSIVE MODE")
                check_unchanged(self._position(cursor), before, self._table)
                if change.undo_after is not None and before is not None:
                    column = quoted(height_column(self._columns(cursor)))
                    above = f"FROM {quoted(self._table)} WHERE {column} > {int(change.undo_after)}"
                    execute(f"SELECT count(*) {above}")
                    removed = cursor.fetchone()[0]
                    execute(f"DELETE {above}")
                if rows is not None:
                    cursor.adbc_ingest(self._table, rows, mode="create_append")
                execute(f"DELETE FROM {STATE} WHERE name = $1", (self._table,))  # noqa: S608 - a constant
                execute(
                    f"INSERT INTO {STATE} VALUES ($1, $2, $3)",  # noqa: S608 - a constant
                    (self._table, position.cursor, position.height),
                )
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return int(removed)

    def _position(self, cursor: Any) -> Position | None:  # noqa: ANN401
        if not self._exists(cursor, STATE):
            return None
        cursor.execute(f"SELECT cursor, height FROM {STATE} WHERE name = $1", (self._table,))  # noqa: S608 - a constant
        found = cursor.fetchone()
        return None if found is None else Position(*found)

    def _exists(self, cursor: Any, table: str) -> bool:  # noqa: ANN401
        cursor.execute(
            "SELECT count(*) FROM information_schema.tables "
            "WHERE table_name = $1 AND table_schema = any(current_schemas(false))",
            (table,),
        )
        return bool(cursor.fetchone()[0])

    def _columns(self, cursor: Any) -> list[str]:  # noqa: ANN401
        cursor.execute(
            "SELECT column_name::text FROM information_schema.columns "
            "WHERE table_name = $1 AND table_schema = any(current_schemas(false))",
            (self._table,),
        )
        return [row[0] for row in cursor.fetchall()]
