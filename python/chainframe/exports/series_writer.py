"""`Query.to_parquet_series`: a directory of exports, each of which continues the one before.

The names are numbers, so no clock decides which export is the newest, and the links between the exports are relative,
so the directory can be moved.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe._native import Hint
from chainframe._objects import location
from chainframe._paths import check_directory, is_utf8, refuse_link
from chainframe._threads import in_thread
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.errors.base import advice
from chainframe.exports import locations, series
from chainframe.exports.directory import STAGING
from chainframe.exports.export import with_reasons_of
from chainframe.exports.left_rows import LeftRows
from chainframe.exports.manifest import AS_TEXT, OF_ONE_QUERY
from chainframe.exports.parquet import ExportRequest, check_whole, write_parquet, write_parquet_async
from chainframe.exports.store import locked, read_manifest
from chainframe.exports.tables import encoded

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike

    from chainframe import Client, Query
    from chainframe._objects import Location
    from chainframe.exports import Export
    from chainframe.exports.manifest import Manifest

SETTLE = 64
NEEDED = "needs a list with its newest record first or a range"


def to_parquet_series(
    query: Query[Any],
    client: Client,
    path: Location | str | PathLike[str],
    settle: int | None = SETTLE,
    **options: Any,  # noqa: ANN401
) -> Export:
    options["settle"] = settle
    directory = _checked(query, client, path, options)
    written: list[Export] = []
    with _without_options(), locked(directory):
        exports = _due(directory, options)
        options["left"] = LeftRows() if len(exports) > 1 else None
        for due in exports:
            with _noting_reasons(written):
                written.append(write_parquet(query, client, due.directory, **due.options, **options))
    return _last_of(written)


async def to_parquet_series_async(
    query: Query[Any],
    client: Client,
    path: Location | str | PathLike[str],
    settle: int | None = SETTLE,
    **options: Any,  # noqa: ANN401
) -> Export:
    options["settle"] = settle
    directory = await in_thread(lambda: _checked(query, client, path, options))
    written: list[Export] = []
    with _without_options(), locked(directory):
        exports = await in_thread(lambda: _due(directory, options))
        options["left"] = LeftRows() if len(exports) > 1 else None
        for due in exports:
            with _noting_reasons(written):
                written.append(await write_parquet_async(query, client, due.directory, **due.options, **options))
    return await in_thread(lambda: _last_of(written))


@contextmanager
def _without_options() -> Generator[None]:
    """Raises an error of one export without the advice to pass its `mode` or `since`, which a series does not have."""
    try:
        yield
    except ExportError as error:
        hints = [hint for hint in error.hints if hint.action != "start_over"]
        problem = str(error).removesuffix(advice(error.hints))
        if problem.endswith(OF_ONE_QUERY):
            problem = problem.removesuffix(OF_ONE_QUERY)
            hints = [Hint("use_another_directory")]
        elif len(hints) == len(error.hints):
            raise
        plain = ExportError(problem, path=error.path, errno=error.errno, retryable=error.retryable, hints=hints)
        for note in getattr(error, "__notes__", []):
            plain.add_note(note)
        raise plain from error


@contextmanager
def _noting_reasons(written: list[Export]) -> Generator[None]:
    """Notes with an error what is incomplete in an export that the same call has finished, and so does not return."""
    try:
        yield
    except BaseException as error:
        for export in written:
            if not export.complete:
                error.add_note(f"{export.path} was finished before, and is incomplete: {export.report.reasons[0]}")
        raise


def _last_of(written: list[Export]) -> Export:
    """Return the newest export, whose report has the reasons of the interrupted one that the same call finished."""
    return with_reasons_of(written[-1], [export.path for export in written[:-1]])


def _checked(
    query: Query[Any], client: Client, path: Location | str | PathLike[str], options: dict[str, Any]
) -> Location:
    """Return the directory, after a check of the request, before anything is created or sent."""
    encoded(options)
    directory = location(path, "path", options.pop("storage_options", None))
    if query._growth_order() is None and not query._values:  # noqa: SLF001 - of this package
        error = InvalidParameterError(f"to_parquet_series {NEEDED}; call to_parquet")
        error._set_shell_text(f"--series {NEEDED}; omit it")  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        raise error
    if query._values and options["settle"] is None:  # noqa: SLF001 - as above
        raise InvalidParameterError("must be given for a series of several values", parameter="settle")
    check_directory(directory, "path")
    if isinstance(directory, Path) and not is_utf8(str(directory.absolute())):
        problem = f"({directory}) must be UTF-8, since each run of a series reads what is there; rename its directory"
        raise InvalidParameterError(problem, parameter="path")
    manifest = ExportRequest(query, client, directory, **options).new_manifest()
    check_whole(manifest.query)
    if read_manifest(directory) is not None:
        message = f"{directory} is one export; name another directory, or the one in which the exports of a series are"
        raise ExportError(message, path=str(directory))
    return directory


@dataclass(frozen=True)
class _Due:
    """An export to write, the one that it continues, and one that it replaces."""

    directory: Location
    since: Location | None
    mode: str = "resume"
    replaces: Manifest | None = None

    @property
    def options(self) -> dict[str, Any]:
        return {"since": self.since, "mode": self.mode, "replaces": self.replaces}


def _due(directory: Location, options: dict[str, Any]) -> list[_Due]:
    """Return the exports to write.

    One that was interrupted is finished before another begins, and one without news is replaced, so that a series is as
    long as it has news. One that was interrupted with other options is begun again, if it cannot be finished.
    """
    number, newest = locations.newest_of(directory) or (-1, None)
    if isinstance(newest, Path):
        # The run may have to replace it.
        refuse_link(newest)
    found = None if newest is None else read_manifest(newest)
    if newest is None or found is None:
        # Nothing is in the directory of the newest, if there is one.
        number = max(number, 0)
        return [_Due(directory / _name(number), series.newest_before(directory, number))]
    if found.finished and _has_news(found):
        return [_Due(directory / _name(number + 1), newest)]
    begun = _interrupted(newest)
    earlier = series.earlier(newest, found)
    following = _Due(directory / _name(number + 1), newest)
    if begun is not None and not _must_be_begun_again(begun, options):
        # It has the records of the time when it was begun, also where it replaces one without news.
        return [_Due(newest, earlier), following]
    due = _Due(newest, earlier, "overwrite", found)
    return [due] if found.finished else [due, following]


def _must_be_begun_again(begun: Manifest, options: dict[str, Any]) -> bool:
    """True if an interrupted export could not hold an amount that is text now, or has another `settle`.

    A changed height may have stopped it, which a larger one passes.
    """
    settle = None if begun.settled is None else begun.settled.settle
    is_too_large = (begun.numbers, options.get("numbers")) == AS_TEXT
    return is_too_large or (begun.since is not None and settle != options["settle"])


def _interrupted(directory: Location) -> Manifest | None:
    """The unfinished export in a directory: the one that is to replace the other, if it was begun."""
    staged = read_manifest(directory / STAGING)
    if staged is not None:
        return staged
    found = read_manifest(directory)
    return None if found is None or found.finished else found


def _has_news(manifest: Manifest) -> bool:
    corrections = manifest.settled.corrections if manifest.settled else []
    return bool(manifest.rows or corrections or manifest.report["reasons"] or manifest.since is None)


def _name(number: int) -> str:
    return f"export-{number:06}"
