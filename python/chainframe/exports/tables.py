"""Parquet files with what their readers need to skip parts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainframe._declared import height_column
from chainframe.errors import InvalidParameterError
from chainframe.frames import load

if TYPE_CHECKING:
    from typing import BinaryIO

    import pyarrow as pa

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "none")
ROWS_PER_GROUP = 131_072


@dataclass(frozen=True)
class Encoding:
    """Storage of the columns of a Parquet file."""

    compression: str = "zstd"
    rows_per_group: int = ROWS_PER_GROUP

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            message = f"must be one of {', '.join(COMPRESSIONS)}; got {self.compression!r}"
            raise InvalidParameterError(message, parameter="compression")
        check_count(self.rows_per_group, "rows_per_group")


def check_count(value: object, parameter: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParameterError(f"must be an integer from 1; got {value!r}", parameter=parameter)


def encoded(options: dict[str, Any]) -> None:
    """Replace the options of a caller that say how files store their columns."""
    given = {name: options.pop(name) for name in ("compression", "rows_per_group") if name in options}
    if given:
        options["encoding"] = Encoding(**given)


class TableWriter:
    """A Parquet file that is written in pieces, with groups of rows of the same size whatever the pieces are."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, encoding: Encoding, order: list[Any] | None) -> None:
        self._pa: Any = load("pyarrow", extra="arrow")
        parquet = load("pyarrow.parquet", extra="arrow")
        self._writer = parquet.ParquetWriter(file, schema, **_options(encoding, order, schema))
        self._schema = schema
        self._most = encoding.rows_per_group
        self._held: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        if sum(each.num_rows for each in self._held) >= self._most:
            self._write()

    def close(self) -> None:
        if self._held:
            self._write(is_last=True)
        self._writer.close()

    def _write(self, *, is_last: bool = False) -> None:
        table = self._pa.Table.from_batches(self._held, self._schema)
        full = table.num_rows if is_last else table.num_rows // self._most * self._most
        self._writer.write_table(table.slice(0, full), row_group_size=self._most)
        self._held = table.slice(full).to_batches()


def write_table(table: pa.Table, file: BinaryIO, encoding: Encoding) -> None:
    parquet = load("pyarrow.parquet", extra="arrow")
    options = _options(encoding, order_of(table), table.schema)
    parquet.write_table(table, file, row_group_size=encoding.rows_per_group, **options)


def _options(encoding: Encoding, order: list[Any] | None, schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": encoding.compression,
        "sorting_columns": order,
        "write_page_index": True,
        "use_dictionary": _texts(schema),
    }


def _texts(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that get a dictionary. One of numbers makes the file larger, and takes 8 MiB."""
    types: Any = load("pyarrow", extra="arrow").types
    texts = [field.name for field in schema if types.is_string(field.type)]
    return [*texts, *(f"{field.name}.list.element" for field in schema if types.is_list(field.type))]


def order_of(table: pa.Table, schema: pa.Schema | None = None) -> list[Any] | None:
    """Return the order by height, in which lists come, if the rows have it; `schema` is that of the file."""
    parquet = load("pyarrow.parquet", extra="arrow")
    compute: Any = load("pyarrow.compute", extra="arrow")
    name = height_column(table.schema.names)
    if name is None or table.num_rows == 0 or table[name].null_count:
        return None
    heights = table[name].combine_chunks()
    before, after = heights.slice(0, len(heights) - 1), heights.slice(1)
    column = (schema or table.schema).get_field_index(name)
    for is_descending, is_ordered in ((False, compute.less_equal), (True, compute.greater_equal)):
        if compute.all(is_ordered(before, after), min_count=0).as_py():
            return [parquet.SortingColumn(column, descending=is_descending)]
    return None
