"""`compact`: a series as few files in order of height, for readers that skip what a query does not need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from chainframe._arguments import suggesting
from chainframe._checks import MAX_COUNT, check_choice, check_count
from chainframe._declared import height_column, time_column
from chainframe._objects import is_url, location
from chainframe._text import counted
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.exports.destinations import destination
from chainframe.exports.locations import NUMBERED, exports_in, is_within, place_of
from chainframe.exports.series import read
from chainframe.exports.tables import ROWS_PER_GROUP, Encoding, write_table
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset

    from chainframe._objects import Location, ObjectPath
    from chainframe.exports.export import Export

PARTITIONS = ("day", "height")
FRAGMENT = "__fragment_index"
"""Column of a scan: the number of the file that has the row."""


@dataclass(frozen=True)
class Compaction:
    """Data set that `compact` wrote.

    Attributes
    ----------
    path : Path or ObjectPath
        Its directory.
    files : tuple of Path or ObjectPath
        Its Parquet files, in ascending order of their heights within a partition.
    rows : int
        Number of rows.

    Examples
    --------
    >>> compaction = chainframe.exports.compact("transfers", "transfers-2026-01")
    >>> print(compaction.rows, len(compaction.files))
    """

    path: Path
    files: tuple[Path, ...]
    rows: int


@suggesting
def compact(
    series: Export | ObjectPath | str | PathLike[str] | Sequence[Export | ObjectPath | str | PathLike[str]],
    path: str | PathLike[str],
    *,
    partition_by: Literal["day", "height"] | None = None,
    heights_per_partition: int = 100_000,
    max_rows_per_file: int = 1_000_000,
    rows_per_group: int = ROWS_PER_GROUP,
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd",
    storage_options: Mapping[str, Any] | None = None,
) -> Compaction:
    """Copy a finished export or a series into few files, sorted by height, with the corrections applied.

    The checksums of the files are compared first. A local directory appears when it is complete; a run that was killed
    leaves nothing there, and the next one begins again. In an object store files appear one by one, and
    `_compaction.json` says `"finished": true` when they are complete; the next run removes those of a killed one.
    Memory holds the heights of all rows, and one file.

    Parameters
    ----------
    series : Export, str or path, or a sequence of them
        What to copy, as for `read`.
    path : str or path
        Local directory, which must not exist; or the URL of a prefix in an object store, which must hold nothing.
    partition_by : {"day", "height"}, optional
        Hive partitions: "day" makes a directory `day=2026-01-05` for each day of the records' times, in UTC, and
        "height" a directory `height_from=4300000` for each span of heights.
    heights_per_partition : int
        Heights of a partition, if `partition_by` is "height".
    max_rows_per_file : int
        Maximum number of rows of a file. A height is not divided.
    rows_per_group : int
        Maximum number of rows of a row group. Readers skip row groups, and pages within them.
    compression : {"zstd", "snappy", "gzip", "lz4", "none"}
        Compression of the columns.
    storage_options : dict, optional
        Options of the object store that has the series or gets the copy.

    Returns
    -------
    Compaction

    Raises
    ------
    ExportError
        The series is unfinished or damaged, the directory exists or cannot be written, or another process is writing it
        (`retryable`); or the object store does not keep the conditions of a put.
    InvalidParameterError
        A value is out of range, or the records have no height or no time.

    Examples
    --------
    >>> chainframe.exports.compact("transfers", "lake/transfers", partition_by="day")
    >>> chainframe.exports.compact("s3://bucket/transfers", "s3://bucket/lake/2026-01", partition_by="day")
    """
    if partition_by is not None:
        check_choice(partition_by, PARTITIONS, "partition_by")
    encoding = Encoding(compression, rows_per_group)
    check_count(heights_per_partition, "heights_per_partition")
    check_count(max_rows_per_file, "max_rows_per_file")

    def located(given: Any, parameter: str) -> Location:  # noqa: ANN401 - as above
        return location(given, parameter, storage_options if is_url(given) else None)

    target = located(path, "path")
    sources = [located(place_of(each), "series") for each in exports_in(series)]
    if storage_options is not None and all(isinstance(each, Path) for each in [target, *sources]):
        message = "needs a URL that begins with s3://, gs:// or az://"
        raise InvalidParameterError(message, parameter="storage_options")
    _check_outside(target, sources)
    rows = read(sources)
    plan = _Plan(rows, partition_by, heights_per_partition, max_rows_per_file)
    with destination(target) as files:
        written = 0
        for name, table in plan.files():
            files.write(name, partial(write_table, table, encoding=encoding))
            written += table.num_rows
        if written != plan.num_rows:
            message = (
                f"{written} of {counted(plan.num_rows, 'row')} could be read, since the series changed; run it again"
            )
            raise ExportError(f"{target}: {message}", path=str(target), retryable=True)
        return Compaction(cast("Path", target), cast("tuple[Path, ...]", files.complete()), written)


def _check_outside(target: Location, sources: Sequence[Location]) -> None:
    """Raise `ExportError` if readers of the directory of an export or series would read its copy as well."""
    series = [each.parent for each in sources if NUMBERED.fullmatch(each.name)]
    for each in [*sources, *series]:
        if is_within(target, each):
            message = f"{target} is within {each}, which it is a copy of; name a directory elsewhere"
            raise ExportError(message, path=str(target))


class _Plan:
    """Files of a data set: a partition and a range of heights each."""

    def __init__(
        self, rows: pyarrow.dataset.Dataset, partition_by: str | None, heights_per_partition: int, max_rows: int
    ) -> None:
        self._pc: Any = load("pyarrow.compute")
        self._rows = rows
        height = height_column(rows.schema.names)
        if height is None:
            raise InvalidParameterError("must be of records with a height", parameter="series")
        self._height = height
        self._by = partition_by
        self._span = heights_per_partition
        self._max_rows = max_rows
        self._time = time_column(rows.schema.names) or ""
        if partition_by == "day" and not self._time:
            raise InvalidParameterError("must be height, since the records have no time", parameter="partition_by")
        columns = [self._height, *([self._time] if partition_by == "day" else []), FRAGMENT]
        self._index = rows.to_table(columns=columns).combine_chunks()
        self._fragments = list(rows.get_fragments())
        self.num_rows = self._index.num_rows

    def files(self) -> Iterator[tuple[str, pa.Table]]:
        if not self.num_rows:
            # An empty result has a schema too.
            yield "part-000000.parquet", self._rows.schema.empty_table()
        for folder, selection, heights in self._partitions():
            for number, bounds in enumerate(self._ranges(heights)):
                selected = bounds if selection is None else selection & bounds
                table = self._selected(selected)
                yield f"{folder}part-{number:06}.parquet", table.sort_by([(self._height, "ascending")])

    def _selected(self, selection: Any) -> pa.Table:  # noqa: ANN401 - of pyarrow
        """Read the selected rows from the files that have some: a scan of the data set would open all of them."""
        arrow: Any = load("pyarrow")
        numbers = self._pc.unique(self._index.filter(selection)[FRAGMENT]).to_pylist()
        schema = self._rows.schema
        tables = [self._fragments[number].to_table(schema=schema, filter=selection) for number in sorted(numbers)]
        selected: pa.Table = arrow.concat_tables(tables)
        return selected

    def _partitions(self) -> Iterator[tuple[str, Any, Any]]:
        """Return the name, the selection of rows and the heights of each partition."""
        pc = self._pc
        heights = self._index[self._height]
        if self._by is None:
            yield "", None, heights
            return
        if self._by == "day":
            name = "day"
            column = pc.field(self._time)
            span: Any = timedelta(days=1) - timedelta.resolution
            starts: Any = pc.floor_temporal(self._index[self._time], unit="day")
        else:
            name = "height_from"
            column = pc.field(self._height)
            span = self._span - 1
            starts = pc.multiply(pc.divide(heights, self._span), self._span)
        for start in sorted(pc.unique(starts.drop_null()).to_pylist()):
            text = start.date().isoformat() if self._by == "day" else str(start)
            # The next start may be beyond the last time or height that there is.
            last = start + span if self._by == "day" else min(start + span, MAX_COUNT)
            selection = (column >= start) & (column <= last)
            yield f"{name}={text}/", selection, heights.filter(pc.equal(starts, start))
        if starts.null_count:
            yield f"{name}=__HIVE_DEFAULT_PARTITION__/", column.is_null(), heights.filter(pc.is_null(starts))

    def _ranges(self, heights: Any) -> Iterator[Any]:  # noqa: ANN401 - of pyarrow
        """Return selections of whole heights, of about as many rows as a file has."""
        pc = self._pc
        column = self._pc.field(self._height)
        counts = sorted((each["values"], each["counts"]) for each in pc.value_counts(heights.drop_null()).to_pylist())
        first = None
        last = None
        rows = 0
        for height, count in counts:
            if first is not None and rows + count > self._max_rows:
                yield (column >= first) & (column <= last)
                first = None
                rows = 0
            first = height if first is None else first
            last = height
            rows += count
        if first is not None:
            yield (column >= first) & (column <= last)
        if heights.null_count:
            yield column.is_null()
