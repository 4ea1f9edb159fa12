"""Running a query into a file or to standard output, in bounded memory, and the exit code of how it went."""

from __future__ import annotations

import os
import signal
import stat
import sys
import uuid
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from chainframe import (
    AuthenticationError,
    ChainframeError,
    IncompleteResultWarning,
    InvalidParameterError,
    PaginationError,
    Query,
    RateLimitError,
    Report,
    ResponseFormatError,
    ServiceError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from io import BufferedWriter

FAILED, USAGE, INCOMPLETE, INTERRUPTED = 1, 2, 6, 130
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


def exit_code(error: Exception) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), FAILED)


def destination(
    output: str | None,
    form: str | None,
    numbers: Numbers | None,
    columns: list[str] | None,
    *,
    resume: bool,
    overwrite: bool,
) -> File | Directory:
    """Where a result goes; refuses what cannot be written before anything is asked."""
    if output and output != "-" and (output.endswith(("/", os.sep)) or Path(output).is_dir()):
        if columns or form not in {None, "parquet"}:
            raise InvalidParameterError(f"output: a directory, {output}, gets Parquet files with all columns")
        return Directory(Path(output), numbers or "decimal", resume, overwrite)
    path = None if output in {None, "-"} else Path(str(output)).resolve()
    if resume:
        raise InvalidParameterError("resume: only a directory can be gone on with; name one, such as -o transfers/")
    if overwrite:
        raise InvalidParameterError("overwrite: is for an export to a directory; a file is replaced in any case")
    form = form or (path.suffix.lower().removeprefix(".") if path else "jsonl")
    if form not in FORMATS:
        raise InvalidParameterError(
            f"output: {output} ends in none of .{', .'.join(FORMATS)}; or say --format, or end a directory with /"
        )
    if path is None and form == "parquet":
        raise InvalidParameterError("output: parquet needs a file; name one, or stream arrow")
    if path and not path.parent.is_dir():
        raise InvalidParameterError(f"output: there is no directory {path.parent}")
    return File(form, numbers or ("string" if form in TEXT_FORMATS else "decimal"), path, columns)


@dataclass(frozen=True)
class Directory:
    """Parquet files, each record once whatever happens on the way."""

    path: Path
    numbers: Numbers
    resume: bool
    overwrite: bool

    def run(self, query: Query[Any]) -> Report:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteResultWarning)
            made = query.to_parquet(self.path, resume=self.resume, overwrite=self.overwrite, numbers=self.numbers)
        return made.report


@dataclass(frozen=True)
class File:
    """One file, or standard output."""

    form: str
    numbers: Numbers
    path: Path | None
    """None is standard output."""
    columns: list[str] | None

    def run(self, query: Query[Any]) -> Report:
        """The report of the run, once everything is written. A file is there when it is whole, or not at all."""
        # Whoever reads a pipe wants to see the first page soon; a file is best in large pieces.
        rows = 65_536 if self.path else 100
        batches = query.reader(rows, self.numbers)
        from chainframe.cli.formats import WRITERS  # noqa: PLC0415 - pyarrow is there, or the reader had said so

        with warnings.catch_warnings(), self._sink() as sink:
            # The caller says what the report says.
            warnings.simplefilter("ignore", IncompleteResultWarning)
            columns = self.columns or batches.schema.names
            out = WRITERS[self.form](sink, batches.schema.empty_table().select(columns).schema)
            for batch in batches:
                out.write(batch.select(columns))
                if self.path is None:
                    sink.flush()
            out.close()
            sink.flush()
        return query.report

    def _sink(self) -> AbstractContextManager[BufferedWriter]:
        if self.path is None:
            return nullcontext(cast("BufferedWriter", sys.stdout.buffer))
        if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
            return self.path.open("wb")
        return replacing(self.path)


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
