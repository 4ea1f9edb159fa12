"""A result as one file: the records are kept in a directory beside it until the file is complete."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from chainframe._checks import check_choice
from chainframe._native import Hint
from chainframe._objects import ObjectPath, WriteOnly, exists, object_writer, read_object
from chainframe._paths import FORMS, TEXT_FORMATS, check_file, check_parent, refuse_link
from chainframe._threads import in_thread
from chainframe.errors import ExportError, IncompleteResultError, NumericOverflowError
from chainframe.exports.conditional import superseded
from chainframe.exports.directory import atomic_write, disk_error, remove_temporaries
from chainframe.exports.export import Export
from chainframe.exports.parquet import MODES, check_columns, write_parquet, write_parquet_async
from chainframe.exports.sources import arrow_source
from chainframe.exports.store import locked, read_manifest, saved_rows, store_at, verify_parts
from chainframe.exports.tables import Encoding, TableWriter, order_of, order_of_files, release_memory
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from chainframe import Client, Query, Records, Report
    from chainframe._objects import Location

FORMATS = tuple(dict.fromkeys(FORMS.values()))
# A repeated run would raise them again at the same record.
NON_RESUMABLE = (ExportError, IncompleteResultError, NumericOverflowError)
ROWS = 512
"""Rows that are copied at a time."""
BATCHES = 8
"""Batches after which freed memory is returned, which the allocator of pyarrow keeps otherwise."""
BUFFER = 64 << 10
"""Bytes of each column of a part that are read at a time."""


@dataclass(frozen=True)
class FileRequest:
    """A file, its format, and the options of its content."""

    path: Location
    form: str
    is_compressed: bool = False
    mode: str = "resume"
    since: Any = None
    columns: list[str] | None = None
    numbers: str | None = None
    """None is text in text formats, which have no decimals, and decimals in the others."""
    storage_options: dict[str, Any] | None = None
    """Options of the object store of `since`."""
    encoding: Encoding = Encoding()  # noqa: RUF009 - it is frozen

    @property
    def parts(self) -> Location:
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def options(self) -> dict[str, Any]:
        """Options of the export to the directory beside the file."""
        return {
            "mode": "resume",
            "since": self.since,
            "storage_options": self.storage_options,
            "columns": self.columns,
            "numbers": self.numbers or ("string" if self.form in TEXT_FORMATS else "decimal"),
            # Read once and removed. Groups are small, since pyarrow takes four times the memory of one to write it.
            "encoding": Encoding("lz4", ROWS, has_dictionaries=False),
            # The file may be one that only its owner may read.
            "permissions": 0o700,
        }

    def prepare(self) -> None:
        """Check the destination, and remove parts that the run does not continue."""
        load("pyarrow")
        check_choice(self.mode, MODES, "mode")
        check_columns(self.columns)
        path = self.path
        if self.mode == "error" and exists(path):
            hints = (Hint("use_another_file"), Hint("start_over"))
            raise ExportError(f"{path} exists", path=str(path), hints=hints)
        if isinstance(path, Path):
            if path.is_dir():
                raise ExportError(f"{path} is a directory; name a file", path=str(path))
            check_parent(path, "path")
            check_file(path)
            remove_temporaries(path)
        parts = self.parts
        if isinstance(parts, Path):
            refuse_link(parts)
            if not parts.is_dir():
                return
        if not store_at(parts).has_manifest:
            self.discard()
        elif self.mode == "overwrite" or self._is_in_place():
            # Records that stay would be taken for those of this run.
            self._remove_parts()

    def _is_in_place(self) -> bool:
        """Return True if the file has all that the parts have: the run that wrote it could not remove them."""
        manifest = read_manifest(self.parts)
        if manifest is None or not manifest.finished or not exists(self.path):
            return False
        assembled = hashlib.sha256()
        # Parts that cannot be read are the error of the run.
        with suppress(ExportError, OSError, ValueError):
            verify_parts(self.parts, manifest.parts)
            with self._compressed(cast("BinaryIO", WriteOnly(assembled.update))) as sink:
                self._copy([self.parts / part.name for part in manifest.parts], sink)
            return assembled.digest() == self._checksum()
        return False

    def _checksum(self) -> bytes:
        if isinstance(self.path, ObjectPath):
            return hashlib.sha256(read_object(self.path)).digest()
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    def assemble(self, export: Export) -> Export:
        """Writes the parts of an export to the file, and removes them."""
        # The copy takes the place of the last part.
        release_memory()
        try:
            self._replace(lambda sink: self._copy(export.parts, sink))
        except ExportError:
            self._check_not_superseded(export)
            raise
        self.discard()
        return self._written(export.rows, export.report)

    def _check_not_superseded(self, export: Export) -> None:
        """Raises `ExportError` if another run has removed or replaced the parts, which are no longer locked."""
        parts = self.parts
        manifest = read_manifest(parts)
        if manifest is None or [str(parts / part.name) for part in manifest.parts] != list(map(str, export.parts)):
            raise superseded(parts)

    def write(self, records: Records[Any]) -> Export:
        """Writes records in hand to the file."""
        # A page is a chunk, and would be written on its own.
        table = records.to_arrow(self.options["numbers"], columns=self.columns).combine_chunks()
        order = order_of(table) if self.form == "parquet" else None
        self._replace(lambda sink: self._write(sink, table.schema, order, table.to_batches(max_chunksize=ROWS)))
        return self._written(len(records), records.report)

    def _written(self, rows: int, report: Report) -> Export:
        path = cast("Path", self.path)
        return Export(path=path, parts=(path,), rows=rows, report=report, manifest=None)

    def _copy(self, parts: Sequence[Location], sink: BinaryIO) -> None:
        import pyarrow.parquet  # noqa: PLC0415 - an extra, which is installed if there are parts

        schema = pyarrow.parquet.read_schema(arrow_source(parts[0]))
        # The writer must know the order before the first row.
        footers = map(pyarrow.parquet.read_metadata, map(arrow_source, parts))
        order = order_of_files(footers, schema) if self.form == "parquet" else None
        # Each read of an object in a store is a request, and a part of one is small.
        piecewise: dict[str, Any] = {"buffer_size": BUFFER, "pre_buffer": False} if isinstance(self.path, Path) else {}

        def batches() -> Iterator[pa.RecordBatch]:
            for part in parts:
                with pyarrow.parquet.ParquetFile(arrow_source(part), **piecewise) as stored:
                    for number, batch in enumerate(stored.iter_batches(ROWS, use_threads=False), 1):
                        yield batch
                        if number % BATCHES == 0:
                            release_memory()

        self._write(sink, schema, order, batches())

    def _write(self, sink: Any, schema: pa.Schema, order: Any, batches: Iterable[pa.RecordBatch]) -> None:  # noqa: ANN401 - of pyarrow
        from chainframe.exports.formats import WRITERS  # noqa: PLC0415 - needs pyarrow

        is_parquet = self.form == "parquet"
        out = TableWriter(sink, schema, self.encoding, order) if is_parquet else WRITERS[self.form](sink, schema)
        for batch in batches:
            out.write(batch)
        out.close()

    def _replace(self, write: Callable[[BinaryIO], None]) -> None:
        """Writes the file, which replaces an earlier one when it is complete."""
        try:
            with self._opened() as file, self._compressed(file) as sink:
                write(sink)
        except OSError as error:
            if isinstance(self.path, ObjectPath):
                raise
            raise disk_error(error, self.path) from None

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return object_writer(self.path) if isinstance(self.path, ObjectPath) else atomic_write(self.path)

    def _compressed(self, file: BinaryIO) -> AbstractContextManager[Any]:
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
            self._remove_parts()

    def _remove_parts(self) -> None:
        with locked(self.parts):
            store_at(self.parts).discard_all()
        if isinstance(self.parts, Path):
            with suppress(OSError):
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
