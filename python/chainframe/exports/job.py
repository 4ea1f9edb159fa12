"""One export on its way: pages come in, parts go out, and the manifest follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chainframe._native import _restore_report
from chainframe.errors import ExportError, NumericOverflowError
from chainframe.exports.anchor import Anchor
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from chainframe import Page, Query, Records, Report
    from chainframe._native import Stream
    from chainframe.exports.directory import Directory, Manifest, Part

HEAD = 100
"""Newest records that an export is known by to the next one."""
COUNTS = ("requests", "retries", "pages", "duplicates_dropped", "bytes", "elapsed")


@dataclass(frozen=True)
class Waiting:
    """A page that is not written yet, and the place in the result after it."""

    table: pa.Table
    identities: list[str]
    cursor: str

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def head(self, rows: int) -> Waiting:
        return replace(self, table=self.table.slice(0, rows), identities=self.identities[:rows])


class Job:
    """An export of which `manifest` says how far it is."""

    def __init__(
        self,
        directory: Directory,
        manifest: Manifest,
        query: Query[Any],
        *,
        numbers: Any,  # noqa: ANN401 - what a user gave, and the core checks
        columns: list[str] | None,
        most: int,
        compression: str,
    ) -> None:
        self.directory = directory
        self.manifest: Manifest = manifest
        self.query = query
        self.met: bool = False
        """Whether the records that the export continues were met: what follows is known."""
        self._numbers = numbers
        self._columns = columns
        self._most = most
        self._compression = compression
        self._anchor = Anchor(manifest.since) if manifest.since else None
        self._waiting: list[Waiting] = []
        self._rows = 0
        self._passed = 0
        self._before = manifest.report
        self._run: Stream[Page[Any]] | None = None

    def pages(self) -> Stream[Page[Any]]:
        """What is left of the result; its end warns of nothing, since the whole export's does."""
        self._run = self.query._quiet_pages()  # noqa: SLF001 - made for exports
        return self._run

    def add(self, page: Page[Any]) -> bool:
        """Takes a page; whether nothing after it is wanted."""
        waiting = Waiting(self._table(page), self._identities(page), page.cursor)
        known = None if self._anchor is None else self._anchor.feed(waiting.identities)
        if known is None and self._rows and self._rows + waiting.rows > self._most:
            self._write(self._certain(besides=waiting.rows))
        self._waiting.append(waiting)
        self._rows += waiting.rows
        if known is not None:
            self._cut(known - self._passed)
        return self.met

    def _identities(self, page: Page[Any]) -> list[str]:
        """Of the records that are compared, and of those that a later export is to compare."""
        wanted = self._anchor is not None or self.manifest.rows + self._rows < HEAD
        return page.records._identities() if wanted else []  # noqa: SLF001 - made for exports

    def _table(self, page: Page[Any]) -> pa.Table:
        try:
            return self._converted(page.records)
        except NumericOverflowError as error:
            row = self.manifest.rows + self._rows + (error.row or 0)
            raise NumericOverflowError(str(error), column=error.column, row=row, text=error.text) from None

    def _converted(self, records: Records[Any]) -> pa.Table:
        return records._to_arrow(self._numbers, self._columns)  # noqa: SLF001 - made for exports

    def _cut(self, rows: int) -> None:
        """So many of the rows that wait are new; the rest is known."""
        self.met = True
        waiting, self._waiting, self._rows = self._waiting, [], rows
        for page in waiting:
            self._waiting.append(page.head(rows))
            rows = max(0, rows - page.rows)

    def _certain(self, besides: int = 0) -> int:
        """How many of the pages that wait are certain to hold nothing known; `besides` rows came after them."""
        pages = len(self._waiting)
        uncertain = 0 if self._anchor is None or self.met else self._anchor.open - besides
        while uncertain > 0 and pages:
            pages -= 1
            uncertain -= self._waiting[pages].rows
        return pages

    def flush(self) -> None:
        """Keeps what was fetched."""
        self._write(self._certain())

    def finish(self) -> None:
        """The result came to its end."""
        if self._anchor is not None and not self.met:
            if self._anchor.open:
                # The list ends within what is known.
                self._cut(self._rows - self._anchor.open)
            elif self._now().complete:
                self._refuse_repeats()
        self._write(len(self._waiting), finished=True)

    def _refuse_repeats(self) -> None:
        path = self.directory.path
        message = f"{path}: the list was read to its end, and what the export named by since begins with is not in it"
        raise ExportError(f"{message} any more; export it anew, without since", path=str(path))

    def _write(self, count: int, *, finished: bool = False) -> None:
        """Parts first, then the manifest that lists them. Whatever stops it, only both count."""
        pages = self._waiting[:count]
        if not pages and not finished:
            return
        identities = [identity for page in pages for identity in page.identities[:HEAD]]
        known = self.manifest.since if finished and self.met else None
        report = self._account(finished=finished)
        manifest = replace(
            self.manifest,
            parts=[*self.manifest.parts, *self._parts(pages, finished=finished)],
            head=[*self.manifest.head, *identities, *(known or [])][:HEAD],
            cursor=pages[-1].cursor if pages else self.manifest.cursor,
            finished=finished,
            complete=report["complete"],
        )
        manifest.report = {**report, "records": manifest.rows}
        self.directory.commit(manifest)
        self.manifest = manifest
        self._waiting = self._waiting[count:]
        rows = sum(page.rows for page in pages)
        self._rows -= rows
        self._passed += rows

    def _parts(self, pages: Sequence[Waiting], *, finished: bool) -> list[Part]:
        pyarrow, parquet = load("pyarrow", extra="arrow"), load("pyarrow.parquet", extra="arrow")
        tables = [page.table for page in pages if page.rows]
        if not tables:
            # An empty result has a schema too.
            if not finished or self.manifest.parts:
                return []
            tables = [self._converted(self.query.partial[:0])]
        table = pyarrow.concat_tables(tables).combine_chunks()
        pieces = [table.slice(offset, self._most) for offset in range(0, max(1, table.num_rows), self._most)]
        numbered = enumerate(pieces, len(self.manifest.parts))

        def write(number: int, piece: pa.Table) -> Part:
            return self.directory.write_part(
                number, piece.num_rows, lambda file: parquet.write_table(piece, file, compression=self._compression)
            )

        return [write(number, piece) for number, piece in numbered]

    def _now(self) -> Report:
        return self.query.report if self._run is None else self._run._report()  # noqa: SLF001 - made for exports

    def _account(self, *, finished: bool) -> dict[str, Any]:
        """The report over all runs so far."""
        now = self._now()
        counts: dict[str, Any] = {name: getattr(now, name) + self._before.get(name, 0) for name in COUNTS}
        reasons = now.reasons
        if finished and self._anchor is not None and not self.met:
            reasons.append("The records that the export continues were not met: some in between are missing.")
        complete = finished and not reasons and (now.complete or self.met)
        return {**counts, "complete": complete, "reasons": reasons, "missing": now.missing}

    def report(self) -> Report:
        return _restore_report(self.manifest.report)
