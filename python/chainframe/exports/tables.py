"""Parquet files with what their readers need to skip parts of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import ge, le
from typing import TYPE_CHECKING, Any

from chainframe import _native
from chainframe._checks import check_choice, check_count
from chainframe._declared import height_column
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO

    import pyarrow as pa
    import pyarrow.parquet as pq

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")
ROWS_PER_GROUP = 131_072
# A group is held until it is written. With 8 MiB a process takes up to 8 MiB more, and a file is 2 to 5 % smaller.
BYTES_PER_GROUP = 3 << 20
# The writer holds a page and a dictionary of each column. 512 KiB are 11,000 addresses. Files with larger ones were not
# read faster.
BYTES_PER_PAGE = 64 << 10
BYTES_OF_DICTIONARY = 512 << 10


@dataclass(frozen=True)
class Encoding:
    """Storage of the columns of a Parquet file."""

    compression: str = "zstd"
    rows_per_group: int = ROWS_PER_GROUP
    has_dictionaries: bool = True
    """Dictionaries make a file smaller, and its reader holds those of all columns."""

    def __post_init__(self) -> None:
        check_choice(self.compression, COMPRESSIONS, "compression")
        check_count(self.rows_per_group, "rows_per_group")


def encoded(options: dict[str, Any]) -> None:
    """Replace the options of a caller that say how files store their columns."""
    given = {name: options.pop(name) for name in ("compression", "rows_per_group") if name in options}
    if given:
        options["encoding"] = Encoding(**given)


class TableWriter:
    """A Parquet file that is written in pieces, with groups of the same size whatever the pieces are.

    Groups of large rows end earlier.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, encoding: Encoding, order: list[Any] | None) -> None:
        self._pa: Any = load("pyarrow")
        parquet = load("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(file, schema, **_options(encoding, order, schema))
        self._schema = schema
        self._max_rows = encoding.rows_per_group
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._hold(batch)
        is_large = self._bytes >= BYTES_PER_GROUP
        if is_large or self._rows >= self._max_rows:
            self._write(is_whole=is_large)

    def close(self) -> None:
        if self._held:
            self._write(is_whole=True)
        self._writer.close()

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes

    def _write(self, *, is_whole: bool) -> None:
        # The writer takes memory: what the reader of the rows has freed is returned first.
        release_memory()
        table = self._pa.Table.from_batches(self._held, self._schema)
        full = self._rows if is_whole else self._rows // self._max_rows * self._max_rows
        self._writer.write_table(table.slice(0, full), row_group_size=self._max_rows)
        self._held = []
        self._rows = 0
        self._bytes = 0
        for batch in table.slice(full).to_batches():
            self._hold(batch)
        del table
        release_memory()


def release_memory() -> None:
    """Return freed memory to the system: that of the rows that were written, and that of pyarrow's writer."""
    load("pyarrow").default_memory_pool().release_unused()
    _native._release_memory()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def write_table(table: pa.Table, file: BinaryIO, encoding: Encoding) -> None:
    parquet = load("pyarrow.parquet")
    options = _options(encoding, order_of(table), table.schema)
    parquet.write_table(table, file, row_group_size=encoding.rows_per_group, **options)


def write_pieces(tables: Callable[[], Iterable[pa.Table]], file: BinaryIO, encoding: Encoding) -> None:
    """Write a file of tables that are read twice, one after the other: the order must be known before the first row."""
    order = order_of_all(tables())
    writer: TableWriter | None = None
    for table in tables():
        writer = writer or TableWriter(file, table.schema, encoding, order)
        for batch in table.to_batches():
            writer.write(batch)
    if writer is not None:
        writer.close()


def _options(encoding: Encoding, order: list[Any] | None, schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": encoding.compression,
        "sorting_columns": order,
        "write_page_index": True,
        "data_page_size": BYTES_PER_PAGE,
        "dictionary_pagesize_limit": BYTES_OF_DICTIONARY,
        "use_dictionary": _texts(schema) if encoding.has_dictionaries else False,
    }


def _texts(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that get a dictionary. One of numbers makes the file larger, and takes 8 MiB."""
    types: Any = load("pyarrow").types
    texts = [field.name for field in schema if types.is_string(field.type)]
    return [*texts, *(f"{field.name}.list.element" for field in schema if types.is_list(field.type))]


def order_of(table: pa.Table) -> list[Any] | None:
    """Return the order by height, in which lists come, if the rows have it."""
    return order_of_all([table])


def order_of_all(tables: Iterable[pa.Table]) -> list[Any] | None:
    """Return the order by height of the rows of several tables of one schema."""
    parquet = load("pyarrow.parquet")
    orders: list[tuple[bool, Callable[[int, int], bool]]] = [(False, le), (True, ge)]
    column = -1
    last: int | None = None
    for table in tables:
        name = height_column(table.schema.names)
        if name is None or table[name].null_count:
            return None
        column = table.schema.get_field_index(name)
        for heights in (_integers(chunk) for chunk in table[name].chunks if len(chunk)):
            orders = [order for order in orders if _are_in_order(last, heights, order[1])]
            last = heights[-1]
        if not orders:
            return None
    return [parquet.SortingColumn(column, descending=orders[0][0])] if last is not None else None


def order_of_files(files: Iterable[pq.FileMetaData], schema: pa.Schema) -> list[Any] | None:
    """Return the order by height of the rows of several files, which their groups of rows name."""
    parquet = load("pyarrow.parquet")
    name = height_column(schema.names)
    groups = [file.row_group(index) for file in files for index in range(file.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    if name is None or not groups or not all(group.sorting_columns for group in groups):
        return None
    column = schema.get_field_index(name)
    # Groups that name their order have statistics.
    heights: list[Any] = [group.column(column).statistics for group in groups]
    for is_descending in (False, True):
        are_ordered = all(
            height.min == height.max or group.sorting_columns[0].descending == is_descending
            for group, height in zip(groups, heights, strict=True)
        )
        if are_ordered and all(
            before.min >= after.max if is_descending else before.max <= after.min for before, after in pairwise(heights)
        ):
            return [parquet.SortingColumn(column, descending=is_descending)]
    return None


def _integers(chunk: Any) -> memoryview:  # noqa: ANN401 - of pyarrow
    """Return the values of a column of 64-bit integers, uncopied. pyarrow.compute would take 9 MiB to import."""
    values = memoryview(chunk.buffers()[1]).cast("q")
    return values[chunk.offset : chunk.offset + len(chunk)]


def _are_in_order(before: int | None, heights: memoryview, is_ordered: Callable[[int, int], bool]) -> bool:
    follows = before is None or is_ordered(before, heights[0])
    return follows and all(map(is_ordered, heights, heights[1:]))
