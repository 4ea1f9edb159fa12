"""One run of an export: records stay in the core until a file with them is committed."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from chainframe._declared import height_column
from chainframe._native import Hint, _restore_report
from chainframe._reports import merged_members, merged_verdicts
from chainframe._text import counted_are
from chainframe.errors import NumericOverflowError, PaginationDriftError, SettledHeightError
from chainframe.exports.directory import STAGING
from chainframe.exports.manifest import Commit, Part, part_name
from chainframe.exports.tables import release_memory, write_pieces, write_table
from chainframe.exports.watermark import WATERMARK, height_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from chainframe import Query, Records, Report
    from chainframe._native import _FollowBuffer, _PartBuffer
    from chainframe.exports.directory import LocalStore
    from chainframe.exports.manifest import Manifest, Settled
    from chainframe.exports.store import Store
    from chainframe.exports.tables import Encoding

MAX_AGE = 25.0
"""Seconds after which fetched records are written, even if the file is small."""
COUNTS = ("requests", "retries", "pages", "duplicates_dropped", "dropped", "moved", "rereads", "bytes", "elapsed")
MEMBERS: dict[str, Any] = {"records": 0, "members_absent": [], "members_unknown": []}
"""Members of a report that concern the members of its records, with the values before any run."""

B = TypeVar("B", "_PartBuffer", "_FollowBuffer")
"""Records that were fetched and are in no file yet: a buffer of the core."""


@dataclass
class _NextFile:
    """Rows that were taken from the buffer for the next file, with the state after them."""

    tables: list[pa.Table] = field(default_factory=list)
    """The rows that are not stored as pieces."""
    rows: int = 0
    pieces: LocalStore | None = None
    """The pieces that have the others."""
    watermark: list[list[Any]] = field(default_factory=list)
    cursor: Any = None
    queried: Counter[str] = field(default_factory=Counter)
    """Numbers of them by the value of a set whose list returned them."""


class ParquetWriter(ABC, Generic[B]):
    """Writes records of a buffer to a `Store`.

    `fetch` changes nothing but the buffer in the core, and may be interrupted anywhere. `write_due` commits the
    files that are due.
    """

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        query: Query[Any],
        *,
        order: Literal["newest_first", "by_height"] | None,
        columns: list[str] | None,
        max_rows: int,
        encoding: Encoding,
    ) -> None:
        self.store = store
        self.manifest: Manifest = manifest
        self.query = query
        self._columns = columns
        self._max_rows = max_rows
        self._encoding = encoding
        self._order = order
        self._began_at = manifest.cursor
        self._kept_from: Any = None
        """Position after what was written before the run ended early."""
        self._has_gap = False
        """True if rows were taken from the buffer that could not be committed."""
        self._before = manifest.report
        self._queried: Counter[str] = Counter()
        """Records of this run that were written, by the value of a set whose list returned them."""
        self._taken = _NextFile()
        self._buffer: B
        self.replaced_rows = 0
        """Records of the export of the whole list that this one is to replace; 0 if the caller asked for that."""
        # A thread may still be writing when the coroutine that awaits it is closed.
        self._lock = threading.Lock()

    @property
    def _directory(self) -> str:
        """The directory of the export, also while what is to replace it is written to one below it."""
        path = self.store.path
        return str(path.parent if path.name == STAGING else path)

    def verify(self) -> None:
        """Checks the files of earlier runs."""
        self.store.verify(self.manifest.files)

    def begin(self) -> None:
        if self.manifest.finished:
            self.store.remove_leftovers(self.manifest)
            return
        self.store.begin(self.manifest)
        self._buffer = self._new_buffer()

    @abstractmethod
    def _new_buffer(self) -> B: ...

    @property
    def _earlier_requests(self) -> int | None:
        """Requests of earlier runs, if pieces of a file can be stored."""
        return self._before.get("requests", 0) if self.store.pieces is not None else None

    def fetch(self) -> None:
        """Waits until there is something to commit."""
        self._buffer.fetch()

    async def fetch_async(self) -> None:
        await self._buffer.fetch_async()

    def write_due(self) -> None:
        """Writes the files that are due, and after the end of the result the manifest of a finished export."""
        with self._lock:
            self._release_due()
            while self._buffer.is_due():
                self._write()
            if self.store.pieces is not None and self._buffer.is_piece_due():
                self._store_piece(self.store.pieces)
            if self._buffer.ended:
                self._finish()
            elif self._is_met():
                self._end_here()

    def keep(self) -> None:
        """Writes all that was fetched, whether or not a file is due."""
        with self._lock:
            self._buffer.drain()
            self._kept_from = self.manifest.cursor
            if not self._has_gap:
                self._release_due()
                self._write_all()
            self.store.save(self.manifest)

    def is_contradicted_by(self, error: BaseException) -> bool:
        """True if the list, or an earlier export, contradicts what is written, and each further run would end there.

        All of it was fetched by this run and is provisional, or this run continued an earlier one and got no further.
        """
        if self._kept_from is None:
            return isinstance(error, PaginationDriftError)
        return isinstance(error, PaginationDriftError | SettledHeightError) and self.manifest.cursor == self._began_at

    def report(self) -> Report:
        return _restore_report(self.manifest.report)

    def _release_due(self) -> None:
        """Releases the rows to write, if their keys decide; otherwise the core releases all."""

    def _is_met(self) -> bool:
        """True if all that follows in the list is in an earlier export."""
        return False

    def _end_here(self) -> None:
        """Reads no further."""

    def _write_all(self) -> None:
        while self._buffer.rows or self._taken.rows:
            self._write()

    def _write(self) -> None:
        """Writes the released rows to files, then commits the files with the cursor after them."""
        self._take(self._buffer.take())
        taken = self._taken
        if not taken.rows:
            return
        # Until these rows are committed, nothing may be that follows them.
        self._has_gap = True
        self._taken = _NextFile()
        self._queried.update(taken.queried)
        parts = self._parts(taken.tables.pop()) if taken.pieces is None else [self._of_pieces(taken.pieces, taken)]
        release_memory()
        self._commit(parts, taken.watermark, taken.cursor)

    def _of_pieces(self, pieces: LocalStore, taken: _NextFile) -> Part:
        """Writes the rows that were stored as pieces, and those after them."""

        def tables() -> Iterable[pa.Table]:
            return chain(pieces.stored_rows(), taken.tables)

        name = part_name(len(self.manifest.parts))
        return self.store.write_part(name, taken.rows, lambda file: write_pieces(tables, file, self._encoding))

    def _store_piece(self, pieces: LocalStore) -> None:
        """Stores the released rows before they fill a file: if the process is killed, they are not fetched again."""
        self._take(self._buffer.take_piece())
        if not self._taken.tables:
            return
        now = self._buffer.report()
        verdicts = _written(now._changed_verdicts, self._taken.queried)  # noqa: SLF001
        # The others are as they were when the last file was written.
        report = {**self._report(now), "records": self.manifest.rows + self._taken.rows}
        if "verdicts" in self.manifest.report:
            report["verdicts"] = self.manifest.report["verdicts"]
        commit = Commit([], self._taken.watermark, _parsed(self._taken.cursor), report, self.manifest.settled)
        for table in self._taken.tables:
            pieces.add_piece(self.manifest, commit, verdicts, table)
        self._taken.tables.clear()
        self._taken.pieces = pieces

    def _take(self, taken: tuple[Records[Any], Any] | None) -> None:
        if taken is None:
            return
        self._has_gap = True
        records, cursor = taken
        self._taken.queried.update(records._counts_by_queried())  # noqa: SLF001
        watermark = self._new_watermark(records)
        # Texts of amounts, which the table has as numbers, are not kept.
        table = self._table(records)
        self._taken.tables.append(table)
        self._taken.rows += table.num_rows
        self._taken.watermark += watermark
        self._taken.cursor = cursor
        self._has_gap = False

    def _commit(
        self,
        parts: list[Part],
        watermark: list[list[Any]],
        cursor: Any,  # noqa: ANN401 - text, or the positions of a set
        settled: Settled | None = None,
    ) -> None:
        report = {**self._whole_report(), "records": self.manifest.rows + sum(part.rows for part in parts)}
        commit = Commit(parts, watermark, _parsed(cursor), report, settled or self.manifest.settled)
        self.store.commit(self.manifest, commit)
        self._has_gap = False

    def _table(self, records: Records[Any]) -> pa.Table:
        try:
            return records.to_arrow(self.manifest.numbers, columns=self._columns)  # type: ignore[arg-type]
        except NumericOverflowError as error:
            row = self.manifest.rows + self._taken.rows + (error.row or 0)
            raise NumericOverflowError(str(error), column=error.column, row=row, text=error.text) from None

    def _parts(self, table: pa.Table) -> list[Part]:
        slices = [table.slice(offset, self._max_rows) for offset in range(0, max(1, table.num_rows), self._max_rows)]
        first = len(self.manifest.parts)
        return [self._write_part(part_name(number), part) for number, part in enumerate(slices, first)]

    def _write_part(self, name: str, table: pa.Table) -> Part:
        return self.store.write_part(name, table.num_rows, lambda file: write_table(table, file, self._encoding))

    def _new_watermark(self, records: Records[Any]) -> list[list[Any]]:
        if self._order == "by_height":
            return _highest(records)
        wanted = WATERMARK - len(self._watermark)
        if self._order is None or wanted <= 0:
            return []
        return _keys(records[:wanted])

    @property
    def _watermark(self) -> list[list[Any]]:
        return [*self.manifest.watermark, *self._taken.watermark]

    def _whole_report(self) -> dict[str, Any]:
        """The report over all runs so far; of a set with the records that were written of each value."""
        now = self._buffer.report()
        verdicts = _written(now._verdicts, self._queried)  # noqa: SLF001 - of this package
        if before := self._before.get("verdicts"):
            verdicts = merged_verdicts([before, verdicts])
        return {**self._report(now), **({"verdicts": verdicts} if verdicts["argument"] else {})}

    def _report(self, now: Report) -> dict[str, Any]:
        """The report over all runs so far, without verdicts."""
        counts = {name: getattr(now, name) + self._before.get(name, 0) for name in COUNTS}
        earlier = (self._before.get(name, default) for name, default in MEMBERS.items())
        members = merged_members([tuple(earlier), (now.records, now.members_absent, now.members_unknown)])
        return {
            **counts,
            **members,
            # The evidence of a resumed run covers its last part only, so it is left out.
            **({"evidence": now._evidence} if now.evidence and not self._before else {}),  # noqa: SLF001
            "complete": False,
            "reasons": now._reasons,  # noqa: SLF001
            "missing": now.missing,
        }

    def _finish(self) -> None:
        """Writes what is left, and the manifest of a finished export."""
        self._write_all()
        watermark = self.manifest.watermark
        if self._order == "by_height":
            watermark = self._highest_of(self.manifest.since_watermark or [])
        self._save_finished(watermark, [], is_complete=True)

    def _highest_of(self, earlier: list[list[Any]]) -> list[list[Any]]:
        """Keys of the records of the highest block, which an earlier export may have begun."""
        known = [*earlier, *self.manifest.watermark]
        height = height_of(known)
        return [record for record in known if record[1] == height]

    def _save_finished(self, watermark: list[list[Any]], reasons: list[str], *, is_complete: bool) -> None:
        if not self.manifest.rows and self.replaced_rows:
            raise self._emptied()
        parts = self.manifest.parts
        if not parts:
            # An empty result has a schema too.
            parts = self._parts(self._table(self.query.partial[:0]))
        self.store.check_present(self.manifest)
        now = self._buffer.report()
        report: dict[str, Any] = self._whole_report()
        complete = is_complete and not now.reasons and (now.complete or self._is_met())
        # Only an empty result has some.
        remarks = {"remarks": now._remarks} if now.remarks and not self.manifest.rows else {}  # noqa: SLF001
        finished = replace(
            self.manifest,
            parts=parts,
            watermark=watermark,
            report={
                **remarks,
                **report,
                "reasons": [*report["reasons"], *reasons],
                "complete": complete,
                "records": self.manifest.rows,
            },
            complete=complete,
            finished=True,
            revision=self.manifest.revision + 1,
        )
        self.store.save(finished)
        self.manifest = finished

    def _emptied(self) -> PaginationDriftError:
        written = f"{counted_are(self.replaced_rows, 'record')} written to {self._directory}"
        # A series has no mode that begins it again.
        hints = (Hint("retry_later"), Hint("use_another_directory"))
        return PaginationDriftError(
            f"{self.manifest.query['call']}: the list is empty, although {written}", hints=hints
        )


class QueryWriter(ParquetWriter["_PartBuffer"]):
    """Writes the result of a query: all its records, unless a derived class selects them by their keys."""

    _released = 0
    """Number of rows of the list that were written or skipped."""
    _is_keyed = False
    """True if keys of the records decide which of them are written."""

    def _new_buffer(self) -> _PartBuffer:
        options: dict[str, Any] = {"keyed": self._is_keyed, "in_order": self._is_in_order()}
        options["earlier_requests"] = self._earlier_requests
        return self.query._part_buffer(self._max_rows, MAX_AGE, **options)  # noqa: SLF001

    def _is_in_order(self) -> bool:
        """True if the list has to be read in its order, to find the records of an earlier export."""
        return self._is_keyed

    def _end_here(self) -> None:
        # The next fetch proves what was read, or raises.
        self._buffer.end_here()

    def _release(self, end: int) -> None:
        """Releases the rows before index `end` of the list, and writes the files that they fill."""
        while self._released < end:
            rows = min(end - self._released, self._buffer.room)
            self._buffer.accept(rows)
            self._released += rows
            if not self._buffer.room:
                self._write()


def _written(verdicts: dict[str, list[Any]], queried: Counter[str]) -> dict[str, list[Any]]:
    return {**verdicts, "records": [queried[argument] for argument in verdicts["argument"]]}


def _parsed(cursor: Any) -> Any:  # noqa: ANN401 - text, or the positions of a set
    return json.loads(cursor) if isinstance(cursor, str) else cursor


def _keys(records: Records[Any]) -> list[list[Any]]:
    column = height_column(records.schema.names)
    heights = (column and getattr(record, column) for record in records)
    return [list(pair) for pair in zip(records._identities(), heights, strict=True)]  # noqa: SLF001 - of this package


def _highest(records: Records[Any]) -> list[list[Any]]:
    """Keys of the records of the last block."""
    last = records[-1].height
    count = next((at for at, record in enumerate(reversed(records)) if record.height != last), len(records))
    return _keys(records[len(records) - count :])
