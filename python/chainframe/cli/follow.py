"""`--follow`: new records as JSON lines on standard output, and the file that holds the position after them."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from chainframe import ExportError, InvalidParameterError
from chainframe._paths import check_file, check_parent, local_path, reachable
from chainframe._text import shown_in
from chainframe.cli.codes import sync_output
from chainframe.cli.core import flag
from chainframe.cli.export import Destination
from chainframe.cli.options import PARQUET_OPTIONS
from chainframe.cli.settings import Number
from chainframe.errors.base import problem_of
from chainframe.exports.directory import atomic_write, remove_temporaries
from chainframe.exports.locks import acquire_lock, release_lock
from chainframe.exports.signals import DeferredSignals

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from io import BufferedWriter

    from chainframe import Client, Follow, Query, Report
    from chainframe.cli.export import Numbers

OPTIONS = [
    click.Option(
        ["--follow"], is_flag=True, help="Print new records as JSON lines as they appear, each once, until interrupted."
    ),
    click.Option(
        ["--start"],
        metavar="POSITION",
        help="Where --follow begins: now (default), beginning, or the content of a cursor file.",
    ),
    click.Option(
        ["--cursor-file"],
        metavar="FILE",
        type=click.Path(),
        help="File with the position of --follow, written after each batch. If it exists, --follow continues there.",
    ),
    click.Option(
        ["--poll"],
        type=Number(auto="auto", none="none"),
        metavar="SECONDS",
        help="Seconds between requests of --follow; auto (default); or none to end once all settled is printed.",
    ),
    click.Option(
        ["--undo"],
        is_flag=True,
        help='Print heights at once, and {"undo_after_height": N} if a reorganization voids the records above N.',
    ),
]
NAMES = [str(option.name) for option in OPTIONS]


def end_incomplete_line() -> None:
    """Ends the line that a killed run left incomplete in the file to which the output is appended."""
    with suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        # The descriptor itself may be open for writing only.
        with Path(f"/dev/fd/{descriptor}").open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                sys.stdout.buffer.write(b"\n")


def following(given: Mapping[str, Any], output: Mapping[str, Any]) -> Following | None:
    """Checks the options of `--follow` against the others; None without it."""
    if not given["follow"]:
        for name in NAMES:
            # 0 is a value, and false the default of a flag.
            if given[name] is not None and given[name] is not False:
                raise InvalidParameterError(f"{flag(name)} needs --follow")
        return None
    for name in ("mode", "since", "series", *PARQUET_OPTIONS, "dry_run"):
        if output[name]:
            raise InvalidParameterError(f"{flag(name)} cannot be combined with --follow")
    if output["output"] not in {None, "-"} or output["format"] not in {None, "jsonl"}:
        name = "output" if output["output"] not in {None, "-"} else "format"
        message = f"{flag(name)}: --follow prints JSON lines to standard output; omit {flag(name)}"
        raise InvalidParameterError(f"{message}, and redirect the output")
    if sys.stdout is None:
        raise InvalidParameterError("--follow prints to standard output, which is closed")
    return Following(
        start=given["start"] or "now",
        settle=output["settle"] or 12,
        poll={None: "auto", "none": None}.get(given["poll"], given["poll"]),
        undo=given["undo"],
        columns=output["columns"],
        numbers=output["numbers"],
        cursor=CursorFile(local_path(given["cursor_file"], "cursor_file")) if given["cursor_file"] else None,
    )


@dataclass(frozen=True)
class CursorFile:
    """A file that holds the cursor of a follower, atomically replaced."""

    path: Path

    @contextmanager
    def locked(self) -> Generator[None]:
        """One run has the file at a time: two would print the same records, and each overwrite the other's position."""
        check_parent(reachable(self.path, "cursor_file"), "cursor_file")
        check_file(self.path)
        lock = self.path.with_name(f".{self.path.name}.lock")
        message = f"--cursor-file {self.path} is locked by another run; wait until it ends, or name another file"
        try:
            descriptor = acquire_lock(lock, self.path, message)
        except OSError as error:
            raise self._error("written", error) from error
        try:
            remove_temporaries(self.path)
            yield
        finally:
            release_lock(descriptor, lock)

    def read(self) -> str | None:
        try:
            cursor = self.path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._error("read", error) from error
        try:
            json.loads(cursor)
        except (ValueError, RecursionError) as error:
            message = f"--cursor-file {self.path} contains no cursor; delete it to start over, or name another file"
            raise ExportError(message, path=str(self.path)) from error
        return cursor

    def follow(self, query: Query[Any], cursor: str, options: Mapping[str, Any]) -> Follow[Any]:
        """The follower that continues at the cursor of the file."""
        try:
            return query.follow(start=cursor, **options)
        except InvalidParameterError as error:
            if error.parameter != "start":
                raise
            message = f"--cursor-file {self.path} cannot be continued by this command: its cursor {problem_of(error)}"
            raise InvalidParameterError(f"{message}; name another file, or delete it to start over") from error

    def write(self, cursor: str) -> None:
        try:
            with atomic_write(self.path) as file:
                file.write(f"{cursor}\n".encode())
        except OSError as error:
            raise self._error("written", error) from error

    def _error(self, verb: str, error: Exception) -> ExportError:
        problem = getattr(error, "strerror", None) or error
        errno = error.errno if isinstance(error, OSError) else None
        return ExportError(f"--cursor-file {self.path} cannot be {verb}: {problem}", path=str(self.path), errno=errno)


@dataclass(frozen=True)
class Following(Destination):
    """Standard output of `--follow`."""

    start: str
    settle: int
    poll: Any
    undo: bool
    columns: list[str] | None
    numbers: Numbers | None
    cursor: CursorFile | None

    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        with self.cursor.locked() if self.cursor else nullcontext():
            resolved = replace(self, numbers=self.numbers or client.numbers or "string")
            return resolved._run(query), ""  # noqa: SLF001 - its own

    def _run(self, query: Query[Any]) -> Report:
        end_incomplete_line()
        options: dict[str, Any] = {"settle": self.settle, "undo": self.undo}
        with DeferredSignals() as signals:
            follow = self._follow(query, options, signals)
            self._deliver(follow, signals)
        if self.cursor:
            self.cursor.write(follow.cursor)
        return follow.report

    def _follow(self, query: Query[Any], options: dict[str, Any], signals: DeferredSignals) -> Follow[Any]:
        start = self.start
        polled = options | {"poll": self.poll}
        if self.cursor is None:
            return query.follow(start=start, **polled)
        if (position := self.cursor.read()) is not None:
            return self.cursor.follow(query, position, polled)
        if start == "now":
            # A run that is killed before its first batch continues here, and not at a later "now".
            first = query.follow(start=start, poll=None, **options)
            self._deliver(first, signals)
            start = first.cursor
            self._save(first)
        return query.follow(start=start, **polled)

    def _deliver(self, follow: Follow[Any], signals: DeferredSignals) -> None:
        """Print each event, and save the position after it before a signal acts."""
        events = iter(follow)
        while (event := signals.interruptible(partial(next, events, None))) is not None:
            # A reader may take the output late or never.
            signals.interruptible(partial(self._print, event))
            self._save(follow)

    def _save(self, follow: Follow[Any]) -> None:
        """Stores the position after what was printed, once the output has it."""
        if self.cursor:
            sync_output()
            self.cursor.write(follow.cursor)

    def _print(self, event: Any) -> None:  # noqa: ANN401 - Records or Undo
        """Prints an event as one write, so that an interrupt falls before or after it."""
        lines: Any = BytesIO()
        if hasattr(event, "after_height"):
            undone = {"undo_after_height": event.after_height}
            if event.queried is not None:
                undone["queried"] = event.queried
            lines.write(json.dumps(undone).encode() + b"\n")
        else:
            from chainframe.exports.formats import WRITERS  # noqa: PLC0415 - needs pyarrow

            table = event.to_arrow(self.numbers, columns=self.columns)
            out = WRITERS["jsonl"](lines, table.schema)
            for batch in table.to_batches():
                out.write(batch)
        sink = shown_in(cast("BufferedWriter", sys.stdout.buffer))
        sink.write(lines.getvalue())
        sink.flush()

    def streams_to_terminal(self) -> bool:
        return sys.stdout.isatty()
