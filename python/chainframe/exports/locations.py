"""Locations of exports: the directory of one, and those of a series."""

from __future__ import annotations

import os
import posixpath
import re
from math import inf
from typing import TYPE_CHECKING, Any

from chainframe._objects import Location, ObjectPath, attempt, exists, location
from chainframe._paths import check_directory
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.exports.directory import STAGING
from chainframe.exports.manifest import Manifest
from chainframe.exports.store import read_manifest, store_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NUMBERED = re.compile("export-([0-9]{6,})")
"""Name of an export that `Query.to_parquet_series` made."""


def exports_in(series: object) -> Sequence[object]:
    """Return the exports that are named, by one argument or several."""
    # An Export has a path; its class is above this module.
    if isinstance(series, str | os.PathLike | ObjectPath) or hasattr(series, "path"):
        return [series]
    try:
        several = list[object](series)  # type: ignore[call-overload]
    except TypeError:
        message = f"must be a directory, an Export or a list of them; got {type(series).__name__}"
        raise InvalidParameterError(message, parameter="series") from None
    return [export for export in several if not _is_replaced_without_news(export)] or several


def _is_replaced_without_news(export: Any) -> bool:  # noqa: ANN401 - as above
    """True for an export without records that the next one of its series has replaced."""
    return hasattr(export, "_is_replaced") and not export.rows and not export.corrections and export._is_replaced()  # noqa: SLF001 - of this package


def place_of(export: Any) -> Any:  # noqa: ANN401 - as above
    """Return the path of an Export, unless another has replaced it there, or what names a directory as it is."""
    if hasattr(export, "_current"):
        export._current()  # noqa: SLF001 - of this package
    return getattr(export, "path", export)


def is_within(path: Location, directory: Location) -> bool:
    """True for a directory, and for all that is below it."""
    if isinstance(path, ObjectPath) or isinstance(directory, ObjectPath):
        return f"{path}/".startswith(f"{directory}/")
    return path.resolve().is_relative_to(directory.resolve())


def newest_of(series: Location, below: float = inf) -> tuple[int, Location] | None:
    """Return the number and directory of the newest export that `Query.to_parquet_series` made in a directory."""
    numbered = _numbered(series)
    number = max((number for number in numbered if number < below), default=None)
    return None if number is None else (number, numbered[number])


def _numbered(series: Location) -> dict[int, Location]:
    return {int(match[1]): path for path in entries(series) if (match := NUMBERED.fullmatch(path.name))}


def entries(series: Location) -> Sequence[Location]:
    """Return the directories of a series. A link is one by the name of an export, which was moved elsewhere.

    It is one even if nothing is there now, since readers must not take the export before it for the newest.
    """
    if isinstance(series, ObjectPath):
        found = attempt(lambda: series.objects.list_with_delimiter(f"{series.key}/"), series)
        return [series / posixpath.basename(prefix) for prefix in sorted(found["common_prefixes"])]
    try:
        return sorted(path for path in series.iterdir() if _is_entry(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_entry(path: Path) -> bool:
    return NUMBERED.fullmatch(path.name) is not None if path.is_symlink() else path.is_dir()


def directory_of_earlier(since: object, storage_options: Mapping[str, Any] | None) -> Location:
    """Return the directory of the export that is continued: that of its manifest, or of the newest of a series."""
    path, newest = _located(since, "since", storage_options)
    return newest[1] if newest else path


def finished_in(export: object, parameter: str, storage_options: Mapping[str, Any] | None) -> Location:
    """Return the directory of an export to read: of a series, the one before the newest while that is written."""
    path, newest = _located(export, parameter, storage_options)
    if newest is None:
        return path
    number, directory = newest
    manifest = read_manifest(directory)
    if manifest is None and not exists(directory / STAGING / Manifest.NAME):
        # A run that has just begun has no files yet.
        try:
            store_at(directory).check_no_foreign_files()
        except ExportError:
            # Unless it has begun, or has replaced an export without news, since the manifest was looked for.
            if read_manifest(directory) is None:
                raise
    before = None if manifest is not None and manifest.finished else newest_of(path, number)
    return before[1] if before else directory


def before_in(export: object, newest: Location, storage_options: Mapping[str, Any] | None) -> Sequence[Location]:
    """Return the exports before one that `finished_in` found in a series; none if that was named itself."""
    series, is_series = _located(export, "directory", storage_options)
    if not is_series:
        return []
    paths = [path for _, path in sorted(_numbered(series).items())]
    return paths[: paths.index(newest)]


def _located(
    export: object, parameter: str, storage_options: Mapping[str, Any] | None
) -> tuple[Location, tuple[int, Location] | None]:
    """Return the directory that is named, and if it is a series its newest export."""
    path = location(place_of(export), parameter, storage_options)
    if path.name == Manifest.NAME:
        return path.parent, None
    check_directory(path, parameter)
    return path, None if exists(path / Manifest.NAME) else newest_of(path)
