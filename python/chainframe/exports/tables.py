"""Parquet files with what their readers need to skip parts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe.frames import load

if TYPE_CHECKING:
    from typing import BinaryIO

    import pyarrow as pa

HEIGHTS = ("height", "zone_block_height")


def write_table(
    table: pa.Table, file: BinaryIO, *, compression: str = "zstd", rows_per_group: int | None = None
) -> None:
    """Write a Parquet file with what readers need to skip parts of it: the order of its rows, and an index of pages."""
    parquet = load("pyarrow.parquet", extra="arrow")
    parquet.write_table(
        table,
        file,
        compression=compression,
        row_group_size=rows_per_group,
        sorting_columns=_order(table, parquet),
        write_page_index=True,
    )


def _order(table: pa.Table, parquet: Any) -> list[Any] | None:  # noqa: ANN401 - a module
    """Return the order by height, in which lists come, if the rows have it."""
    compute: Any = load("pyarrow.compute", extra="arrow")
    name = next((each for each in HEIGHTS if each in table.column_names), None)
    if name is None or table.num_rows == 0 or table[name].null_count:
        return None
    heights = table[name].combine_chunks()
    before, after = heights.slice(0, len(heights) - 1), heights.slice(1)
    column = table.schema.get_field_index(name)
    for is_descending, is_ordered in ((False, compute.less_equal), (True, compute.greater_equal)):
        if compute.all(is_ordered(before, after), min_count=0).as_py():
            return [parquet.SortingColumn(column, descending=is_descending)]
    return None
