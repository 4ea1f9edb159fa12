"""DuckDB as a target of `sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe.exports.series import height_column
from chainframe.sinks.base import Change, Position, check_unchanged, foreign, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

STATE = "_chainframe"
BATCH = "_chainframe_batch"


class DuckDbSink:
    """A table of a DuckDB database; positions of all tables are in the table `_chainframe`."""

    def __init__(self, connection: DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        self._table = table

    def position(self) -> Position | None:
        found = self._position()
        if found is None and self._exists(self._table):
            raise foreign(self._table)
        return found

    def commit(self, change: Change, before: Position | None) -> int:
        execute = self._execute
        rows, name = change.table(), quoted(self._table)
        position = change.position
        assert position is not None  # noqa: S101 - a change ends at a position
        removed = 0
        execute("BEGIN TRANSACTION")
        try:
            check_unchanged(self._position(), before, self._table)
            if change.undo_after is not None and before is not None:
                column = quoted(height_column(self._columns()))
                removed = execute(f"DELETE FROM {name} WHERE {column} > ?", [change.undo_after])[0][0]  # noqa: S608
            if rows is not None:
                self._connection.register(BATCH, rows)
                execute(f"CREATE TABLE IF NOT EXISTS {name} AS FROM {BATCH} LIMIT 0")
                execute(f"INSERT INTO {name} BY NAME FROM {BATCH}")
            execute(f"CREATE TABLE IF NOT EXISTS {STATE} (name VARCHAR PRIMARY KEY, cursor VARCHAR, height BIGINT)")
            execute(
                f"INSERT OR REPLACE INTO {STATE} VALUES (?, ?, ?)",  # noqa: S608 - a constant
                [self._table, position.cursor, position.height],
            )
            execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            if rows is not None:
                self._connection.unregister(BATCH)
        return removed

    def _position(self) -> Position | None:
        if not self._exists(STATE):
            return None
        select = f"SELECT cursor, height FROM {STATE} WHERE name = ?"  # noqa: S608 - a constant
        found = self._execute(select, [self._table])
        return Position(*found[0]) if found else None

    def _exists(self, table: str) -> bool:
        select = (
            "SELECT count(*) FROM information_schema.tables "
            "WHERE table_name = ? AND table_schema = current_schema() AND table_catalog = current_catalog()"
        )
        return bool(self._execute(select, [table])[0][0])

    def _columns(self) -> list[str]:
        return [row[0] for row in self._execute(f"DESCRIBE {quoted(self._table)}")]

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Run a statement and fetch its result, so that the connection is free for the next one."""
        return self._connection.execute(statement, list(values)).fetchall()
