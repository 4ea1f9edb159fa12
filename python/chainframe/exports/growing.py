"""`Query.to_parquet_series`: a directory of exports, each of which continues the one before.

The names are numbers, so no clock decides which export is the newest, and the links between the exports are relative,
so the directory can be moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainframe._objects import location
from chainframe._paths import check_directory
from chainframe._threads import in_thread
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.exports import locations, series
from chainframe.exports.directory import STAGING
from chainframe.exports.manifest import AS_TEXT
from chainframe.exports.parquet import WHOLE_LIST, ExportRequest, write_parquet, write_parquet_async
from chainframe.exports.store import locked, read_manifest
from chainframe.exports.tables import encoded

if TYPE_CHECKING:
    from os import PathLike

    from chainframe import Client, Query
    from chainframe._objects import Location
    from chainframe.exports import Export
    from chainframe.exports.manifest import Manifest

SETTLE = 64


def to_parquet_series(
    query: Query[Any],
    client: Client,
    path: Location | str | PathLike[str],
    settle: int | None = SETTLE,
    **options: Any,  # noqa: ANN401
) -> Export:
    options["settle"] = settle
    directory = _checked(query, client, path, options)
    with locked(directory):
        written = [
            write_parquet(query, client, due.directory, **due.options, **options) for due in _due(directory, options)
        ]
    return written[-1]


async def to_parquet_series_async(
    query: Query[Any],
    client: Client,
    path: Location | str | PathLike[str],
    settle: int | None = SETTLE,
    **options: Any,  # noqa: ANN401
) -> Export:
    options["settle"] = settle
    directory = await in_thread(lambda: _checked(query, client, path, options))
    with locked(directory):
        written = [
            await write_parquet_async(query, client, due.directory, **due.options, **options)
            for due in await in_thread(lambda: _due(directory, options))
        ]
    return written[-1]


def _checked(
    query: Query[Any], client: Client, path: Location | str | PathLike[str], options: dict[str, Any]
) -> Location:
    """Return the directory, after a check of the request, before anything is created or sent."""
    encoded(options)
    directory = location(path, "path", options.pop("storage_options", None))
    if query._growth_order() is None and not query._values:  # noqa: SLF001 - of this package
        message = "to_parquet_series needs a list with its newest record first or a range; call to_parquet"
        raise InvalidParameterError(message)
    check_directory(directory, "path")
    manifest = ExportRequest(query, client, directory, **options).new_manifest()
    if manifest.query["max_items"] is not None:
        raise InvalidParameterError(WHOLE_LIST, parameter="max_items")
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
    long as it has news. One that could not hold an amount is begun again when amounts are text, and one that a changed
    height has stopped when `settle` is another.
    """
    number, newest = locations.newest_of(directory) or (-1, None)
    found = None if newest is None else read_manifest(newest)
    if newest is None or found is None:
        # Nothing is in the directory of the newest, if there is one.
        number = max(number, 0)
        return [_Due(directory / _name(number), series.newest_before(directory, number))]
    if not found.finished:
        earlier = series.earlier(newest, found)
        is_too_large = (found.numbers, options.get("numbers")) == AS_TEXT
        is_begun_again = is_too_large or (earlier is not None and _settle(found) != options["settle"])
        unfinished = _Due(newest, earlier, "overwrite", found) if is_begun_again else _Due(newest, earlier)
        return [unfinished, _Due(directory / _name(number + 1), newest)]
    if _has_news(found):
        return [_Due(directory / _name(number + 1), newest)]
    earlier = series.earlier(newest, found)
    staged = read_manifest(newest / STAGING)
    is_begun = staged is not None and _settle(staged) == options["settle"]
    return [_Due(newest, earlier) if is_begun else _Due(newest, earlier, "overwrite", found)]


def _settle(manifest: Manifest) -> int | None:
    return None if manifest.settled is None else manifest.settled.settle


def _has_news(manifest: Manifest) -> bool:
    corrections = manifest.settled.corrections if manifest.settled else []
    return bool(manifest.rows or corrections or manifest.report["reasons"] or manifest.since is None)


def _name(number: int) -> str:
    return f"export-{number:06}"
