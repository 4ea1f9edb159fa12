"""A series of exports: each continues the one before, and corrects it."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe._objects import Location, ObjectPath, exists
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.exports.locations import NUMBERED, entries, exports_in, finished_in, newest_of
from chainframe.exports.manifest import Manifest
from chainframe.exports.rows import amounts, height_name, row_keys
from chainframe.exports.sources import arrow_files, arrow_source
from chainframe.exports.store import finished_manifest, manifest_checksum, verify_parts
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset

    from chainframe.exports import Export

CHANGE = "_change"
"""Column of corrections: "removed" or "replaced"."""
FIRST_SPAN = 256
"""Heights below those that are compared, where the next lower record is looked for first. Most lists have it there."""
BELOW_ALL = -1
"""A height below all others, since `settle` may be greater than every height."""
SPAN_GROWTH = 8
"""Factor by which the span grows until it has a record. Each step reads files again: five cover a million heights."""


def read(
    series: Export | ObjectPath | str | PathLike[str] | Sequence[Export | ObjectPath | str | PathLike[str]],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> pyarrow.dataset.Dataset:
    """Read a series of exports as one data set, with their corrections applied.

    The checksum of each file that has rows is compared first.

    Parameters
    ----------
    series : Export, str or path, or a sequence of them
        The directory of a series that `Query.to_parquet_series` wrote, as its newest finished export left it; the
        newest export, which names those that it continues; or all exports of the series, in any order. An `Export`
        without records that the next one has replaced may be among them.
    storage_options : dict, optional
        Options of the object store, as for `Query.to_parquet`.

    Returns
    -------
    pyarrow.dataset.Dataset
        Each record once, in no particular order. Files without corrected records are read when the data set is. If some
        exports have amounts as text (`numbers="string"`), all amounts are text.

    Raises
    ------
    ExportError
        An export is missing, unfinished, not continued by the next one or was replaced since; or a file is damaged.

    Examples
    --------
    >>> chainframe.exports.read("transfers/tuesday").to_table()
    >>> duckdb.from_arrow(chainframe.exports.read(["transfers/monday", "transfers/tuesday"]))
    """
    load("pyarrow")
    directories = [finished_in(each, "series", storage_options) for each in exports_in(series)]
    if not directories:
        raise InvalidParameterError("must name at least one export", parameter="series")
    members = [*_back(_member(directories[0]))][::-1] if len(directories) == 1 else _ordered(directories)
    from chainframe.exports.checked import checked  # noqa: PLC0415 - needs pyarrow

    return checked(_fold([member.verified() for member in members]), lambda: [member.verified() for member in members])


@dataclass(frozen=True)
class Tail:
    """The newest rows of a series, which its next export reads again."""

    end_height: int | None
    """Highest height of the series; None if it has no rows."""
    lowest: int | None
    """Height of the highest record that must not have changed; None if there is none."""
    rows: pa.Table
    """Rows from `lowest` on."""


def cursor_of_earlier(manifest: Manifest, directory: Location) -> Any:  # noqa: ANN401 - a cursor of a manifest
    """Return the cursor at which an export in `directory` begins; None if it continues none."""
    return None if manifest.since is None else _linked(directory, manifest.since).manifest.cursor


def read_tail(manifest: Manifest, directory: Location) -> Tail | None:
    """Read the rows that an export in `directory` compares; None if it continues none."""
    if manifest.since is None or manifest.settled is None:
        return None
    pc: Any = load("pyarrow.compute")
    height = height_name(manifest)
    newest = _Newest(_back(_linked(directory, manifest.since)), height)
    end = newest.end_height()
    if end is None:
        return Tail(None, None, newest.dataset().schema.empty_table())
    above = end - manifest.settled.settle
    span = FIRST_SPAN
    rows = newest.rows_above(max(above - span, BELOW_ALL))
    while (lowest := _highest_up_to(above, rows[height])) is None and span <= above:
        span *= SPAN_GROWTH
        rows = newest.rows_above(max(above - span, BELOW_ALL))
    if lowest is not None:
        rows = rows.filter(pc.field(height) >= lowest)
    return Tail(end, lowest, rows)


class _Newest:
    """The newest exports of a series, read as far back as heights are asked for: a series may be long."""

    def __init__(self, members: Iterator[_Member], height: str) -> None:
        self._members = members
        self._loaded = [next(members).verified()]
        """Newest first."""
        self._next: _Member | None = None
        self._height = height

    def dataset(self) -> pyarrow.dataset.Dataset:
        return _fold(self._loaded[::-1])

    def end_height(self) -> int | None:
        """Highest height. That of an export without settled heights is found in its rows, and in those it corrects."""
        settled = self._loaded[0].manifest.settled
        if settled is not None:
            return settled.end_height
        pc: Any = load("pyarrow.compute")
        self._loaded += (member.verified() for member in self._members)
        end: int | None = pc.max(self.dataset().to_table(columns=[self._height])[self._height]).as_py()
        return end

    def rows_above(self, height: int) -> pa.Table:
        pc: Any = load("pyarrow.compute")
        if self._next is None:
            self._next = next(self._members, None)
        while self._next is not None and self._next.highest > height:
            self._loaded.append(self._next.verified())
            self._next = next(self._members, None)
        return self.dataset().to_table(filter=pc.field(self._height) > height)


def _highest_up_to(height: int, heights: Any) -> int | None:  # noqa: ANN401 - a column of pyarrow
    return max((each for each in heights.to_pylist() if each <= height), default=None)


def link(earlier: Location, directory: Location) -> dict[str, str]:
    """Return what the manifest of an export in `directory` says about the one that it continues."""
    if isinstance(earlier, Path) and isinstance(directory, Path):
        # An export of a series keeps its name, which may be a link to where it was moved.
        is_numbered = NUMBERED.fullmatch(earlier.name)
        target = earlier.parent.resolve() / earlier.name if is_numbered else earlier.resolve()
        try:
            path = os.path.relpath(target, directory.resolve())
        except ValueError:
            # On another drive.
            path = str(target)
        path = Path(path).as_posix()
    elif isinstance(earlier, ObjectPath) and isinstance(directory, ObjectPath) and earlier.bucket == directory.bucket:
        path = posixpath.relpath(earlier.key, directory.key)
    else:
        message = f"({earlier}) must be an export in the bucket of this one, or both must be local"
        raise InvalidParameterError(message, parameter="since")
    return {"path": path, "sha256": manifest_checksum(earlier)}


def is_same_place(left: Location, right: Location) -> bool:
    if isinstance(left, Path) and isinstance(right, Path):
        return left.resolve() == right.resolve()
    return left == right


def newest_before(series: Location, number: int) -> Location | None:
    """Return the newest of the exports below a number; if there is none, of those that were given other names."""
    numbered = newest_of(series, number)
    if numbered is not None:
        return numbered[1]
    # The one that no other continues.
    directories = [path for path in entries(series) if exists(path / Manifest.NAME)]
    return _ordered(directories)[-1].path if directories else None


def earlier(directory: Location, manifest: Manifest) -> Location | None:
    """Return the export that the one in a directory continues."""
    return None if manifest.since is None else _linked(directory, manifest.since).path


@dataclass(frozen=True)
class _Member:
    """A finished export of a series."""

    path: Location
    manifest: Manifest

    @property
    def sha256(self) -> str:
        return manifest_checksum(self.path)

    @property
    def highest(self) -> float:
        """A height above which it has no record."""
        settled = self.manifest.settled
        if settled is None:
            return inf
        return -inf if settled.end_height is None else settled.end_height

    def verified(self) -> _Member:
        """Return the export once its files were compared with their checksums, before anything else reads them."""
        # An export without rows may be replaced meanwhile, and none of its files is read: except for the columns, if it
        # is the first.
        is_first = self.manifest.since is None
        verify_parts(self.path, [part for part in self.manifest.files if part.rows or is_first])
        return self


def _linked(directory: Location, since: dict[str, str]) -> _Member:
    earlier = linked_path(directory, since["path"])
    member = _member(earlier)
    if member.sha256 != since["sha256"]:
        raise ExportError(
            f"{earlier} is not the export that {directory} continues; export {directory} again", path=str(directory)
        )
    return member


def linked_path(directory: Location, link: str) -> Location:
    """Return the directory to which a link in a manifest leads."""
    if isinstance(directory, ObjectPath):
        key = posixpath.normpath(posixpath.join(directory.key, link))
        if key.startswith(("../", "/")) or key in {"..", "."}:
            raise ExportError(f"{directory} continues an export outside of its bucket", path=str(directory))
        return replace(directory, key=key)
    # The link is relative to where the directory is, through whatever links it was named, or to where a link was left
    # when it was moved. Without "..", the path of the first of a thousand exports is as short as that of the last.
    there, here = (Path(os.path.normpath(path / link)) for path in (directory.resolve(), directory.absolute()))
    return here if directory.is_symlink() and not exists(there / Manifest.NAME) else there


def _member(directory: Location) -> _Member:
    return _Member(directory, finished_manifest(directory))


def _back(newest: _Member) -> Iterator[_Member]:
    """The exports of a series, newest first, each read when it is asked for."""
    member = newest
    yield member
    while (since := member.manifest.since) is not None:
        member = _linked(member.path, since)
        yield member


def before_in_series(directory: Location, manifest: Manifest) -> Location | None:
    """Return the directory of the export that one of `Query.to_parquet_series` continues, if it is there."""
    if manifest.since is None or not NUMBERED.fullmatch(directory.name):
        return None
    before = linked_path(directory, manifest.since["path"])
    return before if NUMBERED.fullmatch(before.name) and exists(before / Manifest.NAME) else None


def _ordered(directories: Sequence[Location]) -> list[_Member]:
    """The exports of a whole series, oldest first, by their links: names and times may be in any order."""
    # One may be named twice.
    members = [*{member.sha256: member for member in map(_member, directories)}.values()]
    after = {member.manifest.since["sha256"] if member.manifest.since else "": member for member in members}
    ordered = list[_Member]()
    while (member := after.pop(ordered[-1].sha256 if ordered else "", None)) is not None:
        ordered.append(member)
    if len(ordered) < len(members):
        path = next(member.path for member in members if member not in ordered)
        known = f"does not continue {ordered[-1].path}" if ordered else "is not the first of its series"
        raise ExportError(f"{path} {known}; name all exports of one series", path=str(path))
    return ordered


@dataclass
class _Piece:
    """Rows of a series: a file, or what is left of one."""

    rows: Location | pa.Table
    highest: float
    """A height above which it has no row."""


def _fold(members: list[_Member]) -> pyarrow.dataset.Dataset:
    compute: Any = load("pyarrow.compute")
    dataset: Any = load("pyarrow.dataset")
    parquet: Any = load("pyarrow.parquet")
    arrow: Any = load("pyarrow")
    texts = _amounts_as_text(members, amounts(members[0].manifest.query["call"]))
    pieces: list[_Piece] = []
    for member in members:
        manifest = member.manifest
        settled = manifest.settled
        if settled is not None and settled.corrections and settled.corrected_above is not None:
            corrections = _concatenated([member.path / part.name for part in settled.corrections])
            removed = set(row_keys(corrections.drop_columns([CHANGE]), manifest))
            for piece in pieces:
                _remove(piece, removed, settled.corrected_above, manifest)
            replaced = corrections.filter(compute.field(CHANGE) == "replaced").drop_columns([CHANGE])
            pieces.append(_Piece(replaced, member.highest))
        pieces += [_Piece(member.path / part.name, member.highest) for part in manifest.parts if part.rows]
    files = [piece.rows for piece in pieces if isinstance(piece.rows, Path | ObjectPath)]
    tables = [piece.rows for piece in pieces if not isinstance(piece.rows, Path | ObjectPath)]
    schema = parquet.read_schema(arrow_source(members[0].path / members[0].manifest.parts[0].name))
    for name in texts:
        schema = schema.set(schema.get_field_index(name), schema.field(name).with_type(arrow.string()))
    found = [dataset.dataset(**arrow_files(files), schema=schema, format="parquet")] if files else []
    if not files and not tables:
        tables.append(schema.empty_table())
    found += [dataset.dataset(table.select(schema.names).cast(schema)) for table in tables]
    whole: pyarrow.dataset.Dataset = found[0] if len(found) == 1 else dataset.dataset(found)
    return whole


def _amounts_as_text(members: list[_Member], amounts: set[str]) -> set[str]:
    """Return the amounts that are text in some of the exports; raises `ExportError` if other columns differ."""
    first = members[0]
    texts = set[str]()
    for member in members[1:]:
        ours = first.manifest.schema
        theirs = member.manifest.schema
        differ = {name for name in ours if ours[name] != theirs.get(name)}
        is_text = all("string" in {ours[name], theirs.get(name)} for name in differ)
        if ours.keys() != theirs.keys() or not differ <= amounts or not is_text:
            message = f"{member.path} has other columns than {first.path}; read them one by one"
            raise ExportError(message, path=str(member.path))
        texts |= differ
    return texts


def _concatenated(files: list[Location]) -> pa.Table:
    parquet: Any = load("pyarrow.parquet")
    arrow: Any = load("pyarrow")
    tables = [parquet.read_table(arrow_source(file)) for file in files]
    table: pa.Table = arrow.concat_tables([table.select(tables[0].column_names) for table in tables])
    return table


def _remove(piece: _Piece, removed: set[tuple[Any, ...]], above: int, manifest: Manifest) -> None:
    """Drop the rows with these keys above a height; a file without such rows stays a file."""
    parquet: Any = load("pyarrow.parquet")
    if piece.highest <= above:
        return
    height = height_name(manifest)
    table = piece.rows
    if isinstance(table, Path | ObjectPath):
        source = arrow_source(table)
        piece.highest = _highest(parquet.read_metadata(source), height)
        if piece.highest <= above:
            return
        table = parquet.read_table(source)
    heights = table[height].to_pylist()
    keep = [
        value is None or value <= above or key not in removed
        for value, key in zip(heights, row_keys(table, manifest), strict=True)
    ]
    if not all(keep):
        arrow: Any = load("pyarrow")
        piece.rows = table.filter(arrow.array(keep, arrow.bool_()))


def _highest(metadata: Any, column: str) -> float:  # noqa: ANN401 - of pyarrow
    """The highest value in a file by its statistics."""
    highest = -inf
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            part = group.column(index)
            if part.path_in_schema == column:
                statistics = part.statistics
                if statistics is None or not statistics.has_min_max:
                    return inf if group.num_rows else highest
                highest = max(highest, statistics.max)
    return highest
