"""Sinks on SQLite for `check_sink`: one that is right, and others with one mistake each."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from chainframe.sinks import Change, Clear, Extent, Position, Sink


class RightSink(Sink):
    """A sink whose steps others replace by wrong ones."""

    amount_type = "TEXT"

    def __init__(self, path: Path) -> None:
        self.name = "rows"
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("CREATE TABLE IF NOT EXISTS positions (position TEXT)")

    def look(self) -> tuple[Position | None, Extent | None]:
        return self.position(), self.extent()

    def commit(self, change: Change) -> int:
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            self.check(change)
            removed = self.delete(change)
            self.insert(change)
            self.store(change.position(removed))
        return removed

    def close(self) -> None:
        self.database.close()

    def position(self) -> Position | None:
        found = self.database.execute("SELECT position FROM positions").fetchone()
        return Position.from_json(found[0]) if found else None

    def extent(self) -> Extent | None:
        if not self.database.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone():
            return None
        return Extent(*self.database.execute("SELECT count(*), max(height) FROM rows").fetchone())

    def check(self, change: Change) -> None:
        change.check_unchanged(self.position(), self.name)

    def delete(self, change: Change) -> int:
        if change.clear is not Clear.NOTHING:
            self.database.execute("DELETE FROM rows")
        if change.undo_after is None:
            return 0
        return self.database.execute("DELETE FROM rows WHERE height > ?", [change.undo_after]).rowcount

    def insert(self, change: Change) -> None:
        self.database.execute(
            f"CREATE TABLE IF NOT EXISTS rows (height INTEGER, tx_id TEXT, amount {self.amount_type}, queried TEXT)"
        )
        for row in change.rows.to_pylist() if change.rows else []:
            amount = None if row["amount"] is None else str(row["amount"])
            values = [row["height"], row["tx_id"], amount, ",".join(row.get("queried", []))]
            self.database.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", values)

    def store(self, position: Position) -> None:
        self.database.execute("DELETE FROM positions")
        self.database.execute("INSERT INTO positions VALUES (?)", [position.to_json()])


class RightSinkOfSets(RightSink):
    takes_sets = True
    is_of_list = "lower(queried) = lower(?)"

    def delete(self, change: Change) -> int:
        if change.undo_of is None:
            return super().delete(change)
        statement = f"DELETE FROM rows WHERE height > ? AND {self.is_of_list}"
        return self.database.execute(statement, [change.undo_after, change.undo_of]).rowcount


class ComparesLetterCase(RightSinkOfSets):
    is_of_list = "queried = ?"


class UndoesAllLists(RightSinkOfSets):
    def delete(self, change: Change) -> int:
        return super().delete(replace(change, undo_of=None))


class CommitsRowsBeforePosition(RightSink):
    def commit(self, change: Change) -> int:
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            self.check(change)
            removed = self.delete(change)
            self.insert(change)
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            self.store(change.position(removed))
        return removed


class CommitsPositionBeforeRows(RightSink):
    def commit(self, change: Change) -> int:
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            self.check(change)
            removed = (self.extent() or Extent(0, None)).rows if change.clear is Clear.NOTHING else 0
            removed = (
                self.database.execute("SELECT count(*) FROM rows WHERE height > ?", [change.undo_after]).fetchone()[0]
                if removed
                else 0
            )
            self.store(change.position(removed))
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            self.delete(change)
            self.insert(change)
        return removed


class KeepsPositionInAFile(RightSink):
    """A sink whose position is a file beside the database."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.file = path.with_suffix(".position")

    def position(self) -> Position | None:
        return Position.from_json(self.file.read_text()) if self.file.exists() else None

    def store(self, position: Position) -> None:
        self.file.write_text(position.to_json())


class AppendsAgainAfterALostResponse(RightSink):
    def insert(self, change: Change) -> None:
        try:
            super().insert(change)
        except ConnectionError:
            super().insert(change)


class CommitsAgainAfterALostResponse(RightSink):
    """A sink that repeats a transaction whose response was lost, without a look at whether it was committed."""

    def check(self, change: Change) -> None:
        pass

    def commit(self, change: Change) -> int:
        try:
            return super().commit(change)
        except ConnectionError:
            return super().commit(replace(change, undo_after=None))


class IgnoresCorrections(RightSink):
    def delete(self, change: Change) -> int:
        return super().delete(replace(change, undo_after=None))


class ForgetsADelete(RightSink):
    """A sink that deletes only where it also inserts."""

    def delete(self, change: Change) -> int:
        if change.rows is None:
            return 0
        return super().delete(change)


class DeletesTooMuch(RightSink):
    def delete(self, change: Change) -> int:
        if change.undo_after is not None:
            change = replace(change, undo_after=change.undo_after - 1)
        return super().delete(change)


class CountsNoDeletedRows(RightSink):
    def delete(self, change: Change) -> int:
        super().delete(change)
        return 0


class IgnoresOtherRuns(RightSink):
    def check(self, change: Change) -> None:
        pass


class KeepsRowsOnReset(RightSink):
    def delete(self, change: Change) -> int:
        return super().delete(replace(change, clear=Clear.NOTHING))


class RoundsAmounts(RightSink):
    amount_type = "REAL"


class BelievesItsPosition(RightSink):
    """A sink that does not count what the table holds, and stores the position first."""

    def extent(self) -> Extent | None:
        position = self.position()
        return Extent(position.rows, position.height) if position else None

    def commit(self, change: Change) -> int:
        self.check(change)
        removed = self.delete(change)
        self.store(change.position(removed))
        self.insert(change)
        return removed


class CallsMoreAtFirst(RightSink):
    """A right sink, of which no later run has as many calls as the first."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for _ in range(100 if path.stem == "check_whole" else 0):
            self.database.execute("SELECT 1")


WRONG = {
    kind.__name__: kind
    for kind in (
        CommitsRowsBeforePosition,
        CommitsPositionBeforeRows,
        KeepsPositionInAFile,
        AppendsAgainAfterALostResponse,
        CommitsAgainAfterALostResponse,
        IgnoresCorrections,
        ForgetsADelete,
        DeletesTooMuch,
        CountsNoDeletedRows,
        IgnoresOtherRuns,
        KeepsRowsOnReset,
        RoundsAmounts,
        ComparesLetterCase,
        UndoesAllLists,
        BelievesItsPosition,
    )
}

OTHERS = (RightSink, RightSinkOfSets, CallsMoreAtFirst)


def make(kind: str, folder: Path, name: str) -> Sink:
    return {**WRONG, **{other.__name__: other for other in OTHERS}}[kind](folder / f"{name}.db")


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(folder / f"{name}.db")) as database:
        rows = database.execute("SELECT height, tx_id, amount FROM rows").fetchall()
    return [{"height": height, "tx_id": tx_id, "amount": amount} for height, tx_id, amount in rows]
