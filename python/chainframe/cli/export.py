"""Running a query into a file, a directory or standard output, in bounded memory, and the exit code of how it went."""

from __future__ import annotations

import os
import signal
import stat
import sys
import uuid
import warnings
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from chainframe import (
    AuthenticationError,
    ChainframeError,
    Client,
    ExportError,
    IncompleteResultError,
    IncompleteResultWarning,
    InvalidParameterError,
    NumericOverflowError,
    PaginationError,
    Query,
    RateLimitError,
    Report,
    ResponseFormatError,
    ServiceError,
    TransportError,
)
from chainframe.cli.codes import FAILED, INCOMPLETE, USAGE
from chainframe.exports import to_parquet
from chainframe.exports.directory import Directory as Held
from chainframe.exports.directory import Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager
    from io import BufferedWriter

    import pyarrow as pa

    from chainframe.exports import Export

# The first that fits; whatever else chainframe raises is about the command that was given.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (AuthenticationError, 3),
    (RateLimitError, 4),
    (ServiceError, 5),
    (TransportError, 5),
    (ResponseFormatError, 5),
    (PaginationError, INCOMPLETE),
    (ChainframeError, USAGE),
    (ModuleNotFoundError, USAGE),
)
FORMATS = ("parquet", "csv", "jsonl", "arrow")
TEXT_FORMATS = ("csv", "jsonl")
Numbers = Literal["decimal", "float", "string"]
# Would come again, at the same place.
LASTING = (ExportError, IncompleteResultError, NumericOverflowError)
ROWS = 65_536


def exit_code(error: Exception) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), FAILED)


@dataclass(frozen=True)
class Form:
    """What a result is written as."""

    name: str
    numbers: Numbers
    columns: list[str] | None


class Destination(Protocol):
    """Where a result goes."""

    def run(self, query: Query[Any], client: Client) -> Report:
        """The report of the run, once everything is written."""
        ...

    def kept(self) -> int:
        """Records of a run that was cut short, which `--resume` need not ask for again."""
        ...


def destination(
    output: str | None,
    form: str | None,
    numbers: Numbers | None,
    columns: list[str] | None,
    *,
    resume: bool,
    overwrite: bool,
) -> Destination:
    """Where a result goes; refuses what cannot be written before anything is asked."""
    if output and output != "-" and (output.endswith(("/", os.sep)) or Path(output).is_dir()):
        if form not in {None, "parquet"}:
            raise InvalidParameterError(f"output: a directory, {output}, gets Parquet files; for {form}, name a file")
        return Directory(Path(output), Form("parquet", numbers or "decimal", columns), resume, overwrite)
    if overwrite:
        raise InvalidParameterError("overwrite: is for an export to a directory; a file is replaced in any case")
    path = None if output in {None, "-"} else Path(str(output)).resolve()
    form = _form(form, output, path)
    if path and not path.parent.is_dir():
        raise InvalidParameterError(f"output: there is no directory {path.parent}; make it first")
    written = Form(form, numbers or ("string" if form in TEXT_FORMATS else "decimal"), columns)
    if path and not (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
        if not os.access(path.parent, os.W_OK):
            raise InvalidParameterError(f"output: {path.parent} cannot be written to; name a file elsewhere")
        return File(path, written, resume)
    if resume:
        raise InvalidParameterError("resume: what was streamed is gone; name a file or a directory, such as -o x.csv")
    if path is None and sys.stdout is None:
        raise InvalidParameterError("output: standard output is closed; name a file")
    return Stream(path, written)


def _form(form: str | None, output: str | None, path: Path | None) -> str:
    form = form or (path.suffix.lower().removeprefix(".") if path else "jsonl")
    if form not in FORMATS:
        raise InvalidParameterError(
            f"output: {output} ends in none of .{', .'.join(FORMATS)}; or say --format, or end a directory with /"
        )
    if path is None and form == "parquet":
        raise InvalidParameterError("output: parquet needs a file; name one, or stream arrow")
    return form


@dataclass(frozen=True)
class Stream:
    """Standard output, or whatever else takes bytes and gives none back."""

    path: Path | None
    """None is standard output."""
    form: Form

    def run(self, query: Query[Any], client: Client) -> Report:
        del client
        # Whoever reads a pipe wants to see the first page soon.
        batches = query._reader(100, self.form.numbers, self.form.columns)  # noqa: SLF001 - made for this
        from chainframe.cli.formats import WRITERS  # noqa: PLC0415 - pyarrow is there, or the reader had said so

        with _incomplete_unsaid(), self._sink() as sink:
            out = WRITERS[self.form.name](sink, batches.schema)
            for batch in batches:
                out.write(batch)
                sink.flush()
            out.close()
            sink.flush()
        return query.report

    def kept(self) -> int:
        return 0

    def _sink(self) -> AbstractContextManager[BufferedWriter]:
        return nullcontext(cast("BufferedWriter", sys.stdout.buffer)) if self.path is None else self.path.open("wb")


@dataclass(frozen=True)
class Directory:
    """Parquet files, each record once whatever happens on the way."""

    path: Path
    form: Form
    resume: bool
    overwrite: bool

    def run(self, query: Query[Any], client: Client) -> Report:
        if not self.resume and not self.overwrite and (self.path / Manifest.NAME).exists():
            raise InvalidParameterError(
                f"output: {self.path} holds an export; say --resume to go on with it, or --overwrite to start over"
            )
        return exported(query, client, self.path, self.form, anew="say --overwrite", overwrite=self.overwrite).report

    def kept(self) -> int:
        return _rows(self.path)


@dataclass(frozen=True)
class File:
    """One file, there when it is whole, or not at all. Until then its records are in a directory beside it."""

    path: Path
    form: Form
    resume: bool

    @property
    def parts(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    def run(self, query: Query[Any], client: Client) -> Report:
        try:
            with _terminable():
                # Read once more and then gone: to be written fast is all that is wanted of these.
                export = exported(
                    query,
                    client,
                    self.parts,
                    self.form,
                    anew="leave out --resume",
                    overwrite=not self.resume,
                    compression="lz4",
                )
                self._assemble(export.parts)
        except ExportError:
            raise
        except BaseException as error:
            if isinstance(error, LASTING) or not self.kept():
                self._discard()
            raise
        self._discard()
        return export.report

    def kept(self) -> int:
        return _rows(self.parts)

    def _assemble(self, parts: Sequence[Path]) -> None:
        import pyarrow.parquet  # noqa: PLC0415 - it is there, since the parts were written with it

        from chainframe.cli.formats import WRITERS  # noqa: PLC0415 - likewise

        with replacing(self.path) as sink:
            schema: pa.Schema = pyarrow.parquet.read_schema(parts[0])
            out = WRITERS[self.form.name](sink, schema)
            for part in parts:
                with pyarrow.parquet.ParquetFile(part) as file:
                    for batch in file.iter_batches(ROWS):
                        out.write(batch)
            out.close()

    def _discard(self) -> None:
        # What others put there stays, and what cannot be removed is no news beside how the run ended.
        with suppress(OSError, ExportError):
            with Held(self.parts) as held:
                held.clear()
            self.parts.rmdir()


def exported(
    query: Query[Any],
    client: Client,
    path: Path,
    form: Form,
    *,
    anew: str,
    overwrite: bool = False,
    compression: str = "zstd",
) -> Export:
    """An export to a directory; its errors say `anew` for how the shell starts over."""
    try:
        with _incomplete_unsaid():
            return to_parquet(
                query,
                client,
                path,
                resume=True,
                overwrite=overwrite,
                since=None,
                numbers=form.numbers,
                columns=form.columns,
                rows_per_part=ROWS,
                compression=compression,
            )
    except ExportError as error:
        message = str(error).replace("say overwrite=True", anew)
        raise ExportError(message, path=error.path, retryable=error.retryable) from None


def _rows(path: Path) -> int:
    """Of the export that is there, if any."""
    try:
        manifest = read_manifest(path / Manifest.NAME)
    except (ExportError, OSError):
        return 0
    return 0 if manifest is None else manifest.rows


@contextmanager
def _incomplete_unsaid() -> Generator[None]:
    """The caller says what the report says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteResultWarning)
        yield


@contextmanager
def replacing(path: Path) -> Generator[BufferedWriter]:
    """A file that takes the place of `path` when all went well, and else is gone."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    with _terminable():
        try:
            with part.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _terminable() -> Generator[None]:
    """SIGTERM ends the command as an error does, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
