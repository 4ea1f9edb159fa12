"""Delta Lake as a target of `sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import deltalake

from chainframe.errors import ExportError
from chainframe.exports.series import height_column
from chainframe.sinks.base import Change, Position, check_unchanged, foreign

if TYPE_CHECKING:
    from os import PathLike

APP = "chainframe"
"""Identifier of the application transactions, whose version counts the commits of `sync`."""
CURSOR, HEIGHT, VERSION = "chainframe.cursor", "chainframe.height", "chainframe.version"
"""Metadata of a commit of `sync`."""


class DeltaSink:
    """A Delta Lake table. The metadata of each commit hold the position after it."""

    def __init__(self, target: deltalake.DeltaTable | str | PathLike[str]) -> None:
        self._table = target if isinstance(target, deltalake.DeltaTable) else None
        self._uri = target.table_uri if isinstance(target, deltalake.DeltaTable) else str(target)
        self._version = 0

    def position(self) -> Position | None:
        if self._table is None:
            if not deltalake.DeltaTable.is_deltatable(self._uri):
                return None
            self._table = deltalake.DeltaTable(self._uri)
        self._table.update_incremental()
        version = self._table.transaction_version(APP)
        if version is None:
            raise foreign(self._uri)
        self._version = version
        for commit in self._table.history():
            if commit.get(VERSION) == str(version):
                height = commit.get(HEIGHT)
                return Position(commit[CURSOR], None if height is None else int(height))
        message = f"{self._uri}: the log no longer holds the last commit of sync; write a new table"
        raise ExportError(message, path=self._uri)

    def commit(self, change: Change, before: Position | None) -> int:
        # The library does not reject a repeated transaction; it does reject one that runs at the same time.
        check_unchanged(self.position(), before, self._uri)
        rows, position, removed = change.table(), change.position, 0
        assert position is not None  # noqa: S101 - a change ends at a position
        version = self._version + 1
        height = {} if position.height is None else {HEIGHT: str(position.height)}
        properties = deltalake.CommitProperties(
            # Strings: deltalake 1.5 takes no others.
            custom_metadata={CURSOR: position.cursor, VERSION: str(version)} | height,
            app_transactions=[deltalake.Transaction(APP, version)],
            # Not after a commit of another run.
            max_commit_retries=0,
        )
        above = None
        if change.undo_after is not None and self._table is not None:
            files = self._table.to_pyarrow_dataset()
            column = height_column(files.schema.names)
            above = f"{column} > {int(change.undo_after)}"
            removed = self._count(files, column, change.undo_after)
        if rows is None and self._table is not None:
            self._table.delete(above or "false", commit_properties=properties)
        elif rows is not None:
            mode: Any = "append" if above is None else "overwrite"
            target = self._uri if self._table is None else self._table
            deltalake.write_deltalake(target, rows, mode=mode, predicate=above, commit_properties=properties)
        return removed

    def _count(self, files: Any, column: str, height: int) -> int:  # noqa: ANN401
        import pyarrow.compute  # noqa: PLC0415 - deltalake has it

        return int(files.count_rows(filter=pyarrow.compute.field(column) > height))
