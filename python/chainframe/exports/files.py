"""A result as one file: the records are kept in a directory beside it until the file is complete."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from gzip import GzipFile
from typing import TYPE_CHECKING, Any

from chainframe._native import Hint
from chainframe._paths import FORMS, TEXT_FORMATS, check_file, refuse_link
from chainframe._threads import in_thread
from chainframe.errors import ExportError, IncompleteResultError, InvalidParameterError, NumericOverflowError
from chainframe.exports.directory import Store, atomic_write, disk_error, locked_dir, saved_rows
from chainframe.exports.parquet import MODES, Export, write_parquet, write_parquet_async
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from io import BufferedWriter
    from pathlib import Path

    import pyarrow as pa

    from chainframe import Client, Query, Records, Report

FORMATS = tuple(dict.fromkeys(FORMS.values()))
# A repeated run would raise them again at the same record.
NON_RESUMABLE = (ExportError, IncompleteResultError, NumericOverflowError)
ROWS = 65_536


@dataclass(frozen=True)
class FileRequest:
    """A file, its format, and the options of its content."""

    path: Path
    form: str
    is_compressed: bool = False
    mode: str = "resume"
    since: Any = None
    columns: list[str] | None = None
    numbers: str | None = None
    """None is text in text formats, which have no decimals, and decimals in the others."""

    @property
    def parts(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def options(self) -> dict[str, Any]:
        """Options of the export to the directory beside the file."""
        return {
            "mode": "resume",
            "since": self.since,
            "columns": self.columns,
            "numbers": self.numbers or ("string" if self.form in TEXT_FORMATS else "decimal"),
            # Read once and removed.
            "compression": "lz4",
            # The file may be one that only its owner may read.
            "permissions": 0o700,
        }

    def prepare(self) -> None:
        """Check the destination, and remove parts that the run does not continue."""
        load("pyarrow", extra="arrow")
        if self.mode not in MODES:
            raise InvalidParameterError(f"mode must be one of {', '.join(MODES)}; got {self.mode!r}")
        if self.mode == "error" and self.path.exists():
            hints = (Hint("use_another_file"), Hint("start_over"))
            raise ExportError(f"{self.path} exists", path=str(self.path), hints=hints)
        if self.path.is_dir():
            raise ExportError(f"{self.path} is a directory; name a file", path=str(self.path))
        if not self.path.parent.is_dir():
            raise ExportError(f"{self.path.parent} is not a directory; create it first", path=str(self.path.parent))
        check_file(self.path)
        refuse_link(self.parts)
        if self.parts.is_dir() and (self.mode == "overwrite" or not Store(self.parts).has_manifest):
            self.discard()

    def assemble(self, export: Export) -> Export:
        """Writes the parts of an export to the file, and removes them."""
        import pyarrow.parquet  # noqa: PLC0415 - an extra, which is installed if there are parts

        def batches() -> Iterator[pa.RecordBatch]:
            for part in export.parts:
                with pyarrow.parquet.ParquetFile(part) as stored:
                    yield from stored.iter_batches(ROWS)

        self._replace(lambda: pyarrow.parquet.read_schema(export.parts[0]), batches())
        self.discard()
        return self._written(export.rows, export.report)

    def write(self, records: Records[Any]) -> Export:
        """Writes records in hand to the file."""
        # A page is a chunk, and would be a group of rows of its own.
        table = records.to_arrow(self.options["numbers"], columns=self.columns).combine_chunks()
        self._replace(lambda: table.schema, table.to_batches(max_chunksize=ROWS))
        return self._written(len(records), records.report)

    def _written(self, rows: int, report: Report) -> Export:
        return Export(path=self.path, parts=(self.path,), rows=rows, report=report, manifest=None)

    def _replace(self, schema: Callable[[], pa.Schema], batches: Iterable[pa.RecordBatch]) -> None:
        """Writes the file, which replaces an earlier one when it is complete."""
        from chainframe.exports.formats import WRITERS  # noqa: PLC0415 - needs pyarrow

        try:
            with atomic_write(self.path) as file, self._compressed(file) as sink:
                out = WRITERS[self.form](sink, schema())
                for batch in batches:
                    out.write(batch)
                out.close()
        except OSError as error:
            raise disk_error(error, self.path) from error

    def _compressed(self, file: BufferedWriter) -> AbstractContextManager[Any]:
        # Without name and time, so that equal results are equal files.
        return GzipFile("", "wb", fileobj=file, mtime=0) if self.is_compressed else nullcontext(file)

    def clean_up(self, error: BaseException) -> None:
        """Remove parts that the next run cannot use."""
        lasting = isinstance(error, NON_RESUMABLE) and not isinstance(error, ExportError)
        if lasting or (not isinstance(error, ExportError) and not saved_rows(self.parts)):
            self.discard()

    def discard(self) -> None:
        # Foreign files stay; a directory that cannot be removed must not hide the outcome of the run.
        with suppress(OSError, ExportError):
            with locked_dir(self.parts):
                Store(self.parts).discard_all()
            self.parts.rmdir()


def write_file(query: Query[Any], client: Client, request: FileRequest) -> Export:
    request.prepare()
    try:
        return request.assemble(write_parquet(query, client, request.parts, **request.options))
    except BaseException as error:
        request.clean_up(error)
        raise


async def write_file_async(query: Query[Any], client: Client, request: FileRequest) -> Export:
    await in_thread(request.prepare)
    try:
        export = await write_parquet_async(query, client, request.parts, **request.options)
        return await in_thread(lambda: request.assemble(export))
    except BaseException as error:
        request.clean_up(error)
        raise
