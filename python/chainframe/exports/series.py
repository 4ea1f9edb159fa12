"""A series of exports: each continues the one before, and corrects it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe import _native
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.exports.manifest import Manifest, manifest_checksum, read_manifest
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset

    from chainframe.exports import Export

CHANGE = "_change"
"""Column of corrections: "removed" or "replaced"."""
FIRST_SPAN = 256
"""Heights below those that are compared, in which the next lower record is looked for first."""


def read(series: Export | str | PathLike[str] | Sequence[Export | str | PathLike[str]]) -> pyarrow.dataset.Dataset:
    """Read a series of exports as one data set, with their corrections applied.

    Parameters
    ----------
    series : Export, str or path, or a sequence of them
        The newest export, which names those that it continues; or all exports of the series, the oldest first.

    Returns
    -------
    pyarrow.dataset.Dataset
        Each record once, in no particular order. Files without corrected records are read when the data set is.

    Raises
    ------
    ExportError
        An export is missing, unfinished, not continued by the next one or was replaced since.

    Examples
    --------
    >>> chainframe.exports.read("transfers/tuesday").to_table()
    >>> duckdb.from_arrow(chainframe.exports.read(["transfers/monday", "transfers/tuesday"]))
    """
    from chainframe.exports.parquet import Export  # noqa: PLC0415 - which reads series

    load("pyarrow", extra="arrow")
    given = [series] if isinstance(series, str | os.PathLike | Export) else series
    directories = [_directory_of(each) for each in given]
    if not directories:
        raise InvalidParameterError("must name at least one export", parameter="series")
    members = _chain(directories[0]) if len(directories) == 1 else _checked(directories)
    return _fold(members)


@dataclass(frozen=True)
class Tail:
    """The newest rows of a series, which its next export reads again."""

    end_height: int | None
    """Highest height of the series; None if it has no rows."""
    lowest: int | None
    """Height of the highest record that must not have changed; None if there is none."""
    rows: pa.Table
    """Rows from `lowest` on."""


def read_tail(manifest: Manifest, directory: Path) -> Tail | None:
    """Read the rows that an export in `directory` compares; None if it continues none."""
    if manifest.since is None or manifest.settled is None:
        return None
    pc: Any = load("pyarrow.compute", extra="arrow")
    members = _chain(_linked(directory, manifest.since))
    data, height = _fold(members), height_column(manifest.schema)
    settled = members[-1].manifest.settled
    end = settled.end_height if settled else pc.max(data.to_table(columns=[height])[height]).as_py()
    if end is None:
        return Tail(None, None, data.schema.empty_table())
    above, span = end - manifest.settled.settle, FIRST_SPAN
    while True:
        rows = data.to_table(filter=pc.field(height) > above - span)
        heights: Any = rows[height].to_pylist()
        below = [each for each in heights if each <= above]
        if below or span > above:
            break
        span *= 8
    lowest = max(below, default=None)
    if lowest is not None:
        rows = rows.filter(pc.field(height) >= lowest)
    return Tail(end, lowest, rows)


def link(earlier: Path, directory: Path) -> dict[str, str]:
    """Return what the manifest of an export in `directory` says about the one that it continues."""
    target = earlier.resolve()
    try:
        path = os.path.relpath(target, directory.resolve())
    except ValueError:
        # On another drive.
        path = str(target)
    return {"path": Path(path).as_posix(), "sha256": manifest_checksum(earlier)}


def height_column(names: Iterable[str]) -> str:
    return "height" if "height" in set(names) else "zone_block_height"


def key_columns(manifest: Manifest) -> list[str]:
    """Columns that a settled series needs: the height, and those that identify a record."""
    fields, identity = _declared()[manifest.query["call"]]
    return list(dict.fromkeys([height_column(fields), *identity]))


def row_keys(table: pa.Table, manifest: Manifest) -> list[tuple[Any, ...]]:
    """Keys of the rows: the values that identify a record, or all of them where it has none of those."""
    _, identity = _declared()[manifest.query["call"]]
    keys = _tuples(table.select(identity))
    rows = _tuples(table)
    return [
        key if any(isinstance(value, str) and value for value in key) else row
        for key, row in zip(keys, rows, strict=True)
    ]


@cache
def _declared() -> dict[str, tuple[list[str], list[str]]]:
    """Fields and identifying fields of the records of each call."""
    declaration = json.loads(_native._declaration())  # noqa: SLF001 - of this package
    records = {record["name"]: record for record in declaration["records"]}
    found = {}
    for endpoint in declaration["endpoints"]:
        record = records[endpoint["record"]]
        found[endpoint["name"]] = ([each["name"] for each in record["fields"]], record["identity"])
    return found


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@dataclass(frozen=True)
class _Member:
    path: Path
    manifest: Manifest


def _directory_of(export: Export | str | PathLike[str]) -> Path:
    path = Path(export if isinstance(export, str | os.PathLike) else export.path)
    return path.parent if path.name == Manifest.NAME else path


def _linked(directory: Path, since: dict[str, str]) -> Path:
    earlier = directory / since["path"]
    member = _member(earlier)
    if manifest_checksum(member.path) != since["sha256"]:
        raise ExportError(
            f"{earlier} is not the export that {directory} continues; export {directory} again", path=str(directory)
        )
    return earlier


def _member(directory: Path) -> _Member:
    manifest = read_manifest(directory)
    if manifest is None:
        raise ExportError(f"{directory} holds no export", path=str(directory))
    if not manifest.finished:
        raise ExportError(f"{directory} is not finished; run that export again first", path=str(directory))
    return _Member(directory, manifest)


def _chain(newest: Path) -> list[_Member]:
    """The exports of a series, oldest first."""
    members = [_member(newest)]
    while members[-1].manifest.since is not None:
        members.append(_member(_linked(members[-1].path, members[-1].manifest.since)))
    return members[::-1]


def _checked(directories: list[Path]) -> list[_Member]:
    members = [_member(directory) for directory in directories]
    for index, member in enumerate(members):
        since = member.manifest.since
        before = members[index - 1].path if index else None
        if (since["sha256"] if since else None) != (manifest_checksum(before) if before else None):
            expected = f"does not continue {before}" if before else "is not the first of its series"
            raise ExportError(f"{member.path} {expected}; name all exports, the oldest first", path=str(member.path))
    return members


def _fold(members: list[_Member]) -> pyarrow.dataset.Dataset:
    dataset: Any = load("pyarrow.dataset", extra="arrow")
    parquet: Any = load("pyarrow.parquet", extra="arrow")
    for member in members[1:]:
        if member.manifest.schema != members[0].manifest.schema:
            message = f"{member.path} has other columns than {members[0].path}; read them one by one"
            raise ExportError(message, path=str(member.path))
    pieces: list[Path | pa.Table] = []
    for member in members:
        manifest = member.manifest
        settled = manifest.settled
        if settled is not None and settled.corrections and settled.corrected_above is not None:
            corrections = _concatenated([member.path / part.name for part in settled.corrections])
            rows = corrections.drop_columns([CHANGE])
            gone = set(row_keys(rows, manifest))
            pieces = [_without(piece, gone, settled.corrected_above, manifest) for piece in pieces]
            pieces.append(rows.filter(_is(corrections[CHANGE], "replaced")))
        pieces += [member.path / part.name for part in manifest.parts]
    files = [str(piece) for piece in pieces if isinstance(piece, Path)]
    tables = [piece for piece in pieces if not isinstance(piece, Path)]
    schema = parquet.read_schema(members[0].path / members[0].manifest.parts[0].name)
    found = [dataset.dataset(files, schema=schema, format="parquet")] if files else []
    found += [dataset.dataset(table.cast(schema)) for table in tables]
    whole: pyarrow.dataset.Dataset = found[0] if len(found) == 1 else dataset.dataset(found)
    return whole


def _concatenated(files: list[Path]) -> pa.Table:
    parquet: Any = load("pyarrow.parquet", extra="arrow")
    arrow: Any = load("pyarrow", extra="arrow")
    table: pa.Table = arrow.concat_tables([parquet.read_table(file) for file in files])
    return table


def _is(column: Any, value: str) -> Any:  # noqa: ANN401 - of pyarrow
    compute: Any = load("pyarrow.compute", extra="arrow")
    return compute.equal(column, value)


def _without(piece: Path | pa.Table, gone: set[tuple[Any, ...]], above: int, manifest: Manifest) -> Path | pa.Table:
    """Drop the rows with these keys above a height; a file without such rows stays a file."""
    parquet: Any = load("pyarrow.parquet", extra="arrow")
    height = height_column(manifest.schema)
    if isinstance(piece, Path):
        if _highest(parquet.read_metadata(piece), height) <= above:
            return piece
        table = parquet.read_table(piece)
    else:
        table = piece
    heights = table[height].to_pylist()
    keep = [
        value is None or value <= above or key not in gone
        for value, key in zip(heights, row_keys(table, manifest), strict=True)
    ]
    arrow: Any = load("pyarrow", extra="arrow")
    return piece if all(keep) else table.filter(arrow.array(keep, arrow.bool_()))


def _highest(metadata: Any, column: str) -> float:  # noqa: ANN401 - of pyarrow
    """The highest value in a file by its statistics."""
    highest = float("-inf")
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            part = group.column(index)
            if part.path_in_schema == column:
                statistics = part.statistics
                if statistics is None or not statistics.has_min_max:
                    return float("inf") if group.num_rows else highest
                highest = max(highest, statistics.max)
    return highest
