"""Destination of a command's result: standard output, a file or a directory; and the exit code of the run."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from chainframe import (
    AuthenticationError,
    BudgetExceededError,
    CassetteError,
    ChainframeError,
    Client,
    ExportError,
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
from chainframe._objects import ObjectPath, location
from chainframe._paths import TEXT_FORMATS, check_directory, check_file, check_parent, form_of, suffix_of
from chainframe._text import counted, shown_in
from chainframe.cli.codes import FAILED, INCOMPLETE, LOCKED, NETWORK, REFUSED, TERMINATED, USAGE
from chainframe.cli.core import flag
from chainframe.exports.files import FORMATS, FileRequest, write_file
from chainframe.exports.parquet import write_parquet
from chainframe.exports.series_writer import to_parquet_series
from chainframe.exports.store import saved_rows
from chainframe.exports.tables import encoded
from chainframe.progress import may_be_shown

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from io import BufferedWriter
    from types import FrameType

    from chainframe._objects import Location

# The first that fits; all other errors of chainframe are about the command line.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (AuthenticationError, 3),
    (RateLimitError, 4),
    (ServiceError, NETWORK),
    (TransportError, NETWORK),
    (ResponseFormatError, NETWORK),
    (PaginationError, INCOMPLETE),
    (BudgetExceededError, INCOMPLETE),
    (ChainframeError, USAGE),
    (ModuleNotFoundError, USAGE),
)
Numbers = Literal["decimal", "float", "string"]
Mode = Literal["resume", "overwrite", "error"]


class Terminated(SystemExit):
    """SIGTERM, which ends the command as Ctrl-C does."""


def exit_code(error: Exception) -> int:
    if isinstance(error, ExportError) and error.retryable:
        return LOCKED
    if isinstance(error, ExportError | CassetteError) and error.errno is not None:
        return FAILED
    code = next((code for kind, code in EXIT_CODES if isinstance(error, kind)), FAILED)
    if code == NETWORK and isinstance(error, ChainframeError) and not error.retryable:
        return REFUSED
    return code


@contextmanager
def sigterm_as_exception() -> Generator[None]:
    """Raises `Terminated` at SIGTERM; only the main thread can have a handler."""

    def terminate(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Terminated(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class OutputFormat:
    """File format, number policy and columns of the output."""

    name: str
    numbers: Numbers | None
    columns: list[str] | None

    def numbers_of(self, client: Client) -> Numbers:
        """Return the policy of the option, or of the client, or of the format."""
        return self.numbers or client.numbers or ("string" if self.name in TEXT_FORMATS else "decimal")


class Destination(ABC):
    """Target of a command's result."""

    @abstractmethod
    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        """Writes the result; returns its report and, for files, a line about them."""

    def saved(self) -> int | None:
        """Number of records that the next run need not fetch; None if the output cannot be resumed."""
        return None

    def streams_to_terminal(self) -> bool:
        """True if rows may be printed to a terminal, where a progress bar would overwrite them."""
        return False


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options of the output as they are given; None leaves the default to what is written."""

    output: str | None
    format: str | None
    numbers: Numbers | None
    columns: list[str] | None
    mode: Mode | None
    since: str | None
    series: bool | None
    settle: int | None
    max_rows_per_file: int | None
    compression: str | None
    rows_per_group: int | None

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of these options that are given."""
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def reject(self, problem: str, *names: str) -> None:
        """Raises about the first of these options that is given."""
        for name, value in self.given(*names).items():
            raise InvalidParameterError(f"{flag(value if name == 'mode' else name)} {problem}")


def destination(options: OutputOptions) -> Destination:
    """Checks the options of the output before anything is sent."""
    path = None if options.output in {None, "-"} else location(options.output, "output")
    is_named_directory = path is not None and str(options.output).endswith(("/", os.sep))
    if path is not None and (is_named_directory or (isinstance(path, Path) and path.is_dir())):
        return _directory(path, options, is_named=is_named_directory)
    options.reject("needs a directory, such as -o transfers/", "max_rows_per_file", "settle", "series")
    form, is_compressed = _format(options.format, path)
    if form != "parquet":
        options.reject("needs -o with a directory or a .parquet file", "compression", "rows_per_group")
    if path and _is_file(path):
        given = options.given("mode", "since", "columns", "numbers", "compression", "rows_per_group")
        encoded(given)
        return File(FileRequest(path, form, is_compressed, **given))
    options.reject("needs -o FILE or DIR; a stream cannot be resumed", "mode", "since")
    if form == "parquet":
        raise InvalidParameterError("--output: parquet needs a file; name one, or stream arrow")
    if is_compressed:
        raise InvalidParameterError(f"--output: {path} is a stream, which is not compressed; name it without .gz")
    return _stream(cast("Path | None", path), OutputFormat(form, options.numbers, options.columns))


def _directory(path: Location, options: OutputOptions, *, is_named: bool) -> Directory:
    if options.series:
        options.reject("cannot be combined with --series", "mode", "since")
    check_directory(path, "output")
    named = None if is_named else form_of(suffix_of(path))
    if options.format is None and named and named[0] != "parquet":
        ways = f"for Parquet files in it, name it {options.output}/; for {named[0]}, name a file"
        raise InvalidParameterError(f"--output: {options.output} is a directory; {ways}")
    if options.format not in {None, "parquet"}:
        problem = f"the directory {options.output} gets Parquet files; for {options.format}, name a file"
        raise InvalidParameterError(f"--output: {problem}")
    given = options.given("columns", "mode", "since", "settle", "max_rows_per_file", "compression", "rows_per_group")
    encoded(given)
    return Directory(path, OutputFormat("parquet", options.numbers, options.columns), bool(options.series), given)


def _is_file(path: Location) -> bool:
    """True unless what is at the path is a pipe or a device; raises if no file can be made there."""
    if isinstance(path, ObjectPath):
        return True
    check_parent(path, "output")
    if _is_device(path):
        return False
    check_file(path)
    if not os.access(path.parent, os.W_OK):
        raise InvalidParameterError(f"--output: {path.parent} is not writable; name a file elsewhere")
    return True


def _stream(path: Path | None, form: OutputFormat) -> Stream:
    if path is None and sys.stdout is None:
        raise InvalidParameterError("--output: standard output is closed; name a file")
    if path is None and form.name not in TEXT_FORMATS and sys.stdout.isatty():
        raise InvalidParameterError(
            f"--output: {form.name} is binary, and not for a terminal; redirect it, or name a file"
        )
    return Stream(path, form)


def _is_device(path: Path) -> bool:
    """True for a pipe, a device, and an open file such as /dev/stdout: they are written into, and not replaced."""
    is_special = path.exists() and not path.is_file() and not path.is_dir()
    # Other files in /dev are files: /dev/shm is a folder in memory.
    is_open = str(path) in {"/dev/stdout", "/dev/stderr"} or path.parent == Path("/dev/fd")
    return is_special or is_open or path.parts[:2] == ("/", "proc")


def _format(form: str | None, path: Location | None) -> tuple[str, bool]:
    """The format that the name of the file or the option says, and True if the file is compressed."""
    suffix = suffix_of(path) if path else ""
    named = form_of(suffix)
    if (suffix and named is None) or (path and not suffix and form is None):
        forms = ", ".join(f".{each}" for each in FORMATS)
        message = f"--output must end in {forms}, .csv.gz or .jsonl.gz, or / for a directory, or have no suffix"
        raise InvalidParameterError(f"{message} and --format; got {path}")
    if named is None:
        named = form or "jsonl", False
    if form not in {None, named[0]}:
        raise InvalidParameterError(f"--format {form} contradicts --output {path}; omit --format, or name another file")
    return named


@dataclass(frozen=True)
class Stream(Destination):
    """Standard output, or a path that is no regular file."""

    path: Path | None
    """None is standard output."""
    form: OutputFormat

    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        # Small batches, so that the reader of a pipe sees the first page soon.
        batches = query.to_arrow_batch_reader(100, self.form.numbers_of(client), columns=self.form.columns)
        from chainframe.exports.formats import WRITERS  # noqa: PLC0415 - an extra, which the reader has checked

        with suppress_incomplete_warning(), self._sink() as sink:
            text = shown_in(sink) if self.form.name in TEXT_FORMATS else sink
            out = WRITERS[self.form.name](text, batches.schema)
            for batch in batches:
                out.write(batch)
                sink.flush()
            out.close()
            sink.flush()
        return query.report, ""

    def streams_to_terminal(self) -> bool:
        return self.path is None and may_be_shown(sys.stdout)

    def _sink(self) -> AbstractContextManager[BufferedWriter]:
        return nullcontext(cast("BufferedWriter", sys.stdout.buffer)) if self.path is None else self.path.open("wb")


@dataclass(frozen=True)
class Directory(Destination):
    """Parquet files, written exactly once."""

    path: Location
    form: OutputFormat
    is_series: bool
    options: dict[str, Any]
    """Options of the export that are given."""

    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        options: dict[str, Any] = self.options | {"numbers": self.form.numbers_of(client)}
        write = to_parquet_series if self.is_series else write_parquet
        with suppress_incomplete_warning():
            export = write(query, client, self.path, **options)
        size = f"{counted(export.rows, 'record')} in {counted(len(export.parts), 'file')}"
        return export.report, f"{size} in {export.path}"

    def saved(self) -> int | None:
        return None if self.is_series else saved_rows(self.path)


@dataclass(frozen=True)
class File(Destination):
    """One file, atomically replaced when it is complete."""

    request: FileRequest

    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        with suppress_incomplete_warning():
            request = replace(self.request, numbers=self.request.numbers or client.numbers)
            export = write_file(query, client, request)
        return export.report, f"{counted(export.rows, 'record')} in {self.request.path}"

    def saved(self) -> int | None:
        return saved_rows(self.request.parts)


@contextmanager
def suppress_incomplete_warning() -> Generator[None]:
    """The command prints the report itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteResultWarning)
        yield
