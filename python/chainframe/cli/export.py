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
    from collections.abc import Iterator
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


@dataclass(frozen=True)
class Export:
    """What becomes of a result."""

    form: str
    numbers: Numbers
    """Where to, or None for standard output."""
    path: Path | None
    columns: list[str] | None

    @classmethod
    def of(cls, output: str | None, form: str | None, numbers: Numbers | None, columns: list[str] | None) -> Export:
        """Refuses what cannot be written before anything is asked."""
        path = None if output in {None, "-"} else Path(str(output)).resolve()
        suffix = path.suffix.lower().removeprefix(".") if path else ""
        form = form or (suffix if path else "jsonl")
        if form not in FORMATS:
            raise InvalidParameterError(f"output: {output} ends in none of .{', .'.join(FORMATS)}; or say --format")
        if path is None and form == "parquet":
            raise InvalidParameterError("output: parquet needs a file; name one, or stream arrow")
        if path and not path.parent.is_dir():
            raise InvalidParameterError(f"output: there is no directory {path.parent}")
        if path and path.is_dir():
            raise InvalidParameterError(f"output: {path} is a directory; name a file in it")
        return cls(form, numbers or ("string" if form in TEXT_FORMATS else "decimal"), path, columns)

    def run(self, query: Query[Any]) -> Report:
        """The report of the run, once everything is written. A file is there when it is whole, or not at all."""
        # Whoever reads a pipe wants to see the first page soon; a file is best in large pieces.
        rows = 65_536 if self.path else 100
        with warnings.catch_warnings(), self._sink() as sink:
            # The caller says what the report says.
            warnings.simplefilter("ignore", IncompleteResultWarning)
            batches = query.reader(rows, self.numbers)
            from chainframe.cli.formats import WRITERS  # noqa: PLC0415 - pyarrow is there, or the reader had said so

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
def replacing(path: Path) -> Iterator[BufferedWriter]:
    """A file that takes the place of `path` when all went well, and else is gone."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    with part.open("xb") as file, _terminable():
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            part.replace(path)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the command as an error does, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
