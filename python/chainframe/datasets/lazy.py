"""A dataset as a polars `LazyFrame`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pyarrow.dataset as pads

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyarrow import compute as pc

# A test for missing values of anything but a column.
_TESTS_RESULT = re.compile(r"is_(?:null|valid)\((?:(?!\w+[,)])|(?:true|false|null)\b)")


def scan(dataset: pads.Dataset) -> pl.LazyFrame:
    """Return a `LazyFrame` that scans a dataset."""
    # `register_io_source` passes the same, as a function that needs cloudpickle to be pickled.
    schema = _frame(dataset.schema.empty_table()).schema
    return pl.LazyFrame._scan_python_function(schema, PolarsSource(dataset))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


class PolarsSource:
    """The function that polars calls for a scan.

    Filters are passed on to the dataset in Arrow's terms, by which `is_in` of a missing value is false, while polars
    has it missing. polars filters what the dataset returns again: `scan_pyarrow_dataset` does not.
    """

    def __init__(self, dataset: pads.Dataset) -> None:
        self._dataset = dataset

    def __call__(
        self, columns: list[str] | None, predicate: bytes | None, num_rows: int | None, batch_size: int | None
    ) -> tuple[Iterator[pl.DataFrame], bool]:
        """Return the frames, and true if polars does not have to filter them."""
        del batch_size
        try:
            condition = None if predicate is None else pl.Expr.deserialize(predicate)
        except pl.exceptions.ComputeError:
            # Early versions write times that they do not read.
            return self._frames(columns, None, num_rows), False
        return self._frames(columns, condition, num_rows), True

    def _frames(
        self, columns: list[str] | None, condition: pl.Expr | None, num_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = columns
        expression = None
        if condition is not None:
            needed = None if columns is None else list(dict.fromkeys([*columns, *condition.meta.root_names()]))
            # A number of rows is that of the list, and not of those that the filter leaves.
            expression = _passed(self._dataset.schema, condition) if num_rows is None else None
        for batch in self._dataset.to_batches(columns=needed, filter=expression):
            frame = _frame(batch)
            if num_rows is not None:
                frame = frame.head(num_rows)
                num_rows -= len(frame)
            kept = frame if condition is None else frame.filter(condition)
            yield kept if columns is None else kept.select(columns)
            if num_rows == 0:
                return


class _Asked(pads.Dataset):
    """An empty dataset that remembers the filter of its scan."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.asked: pc.Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(  # type: ignore[override]
        self,
        columns: list[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
        **_options: object,
    ) -> pads.Scanner:
        self.asked = filter
        # Raises for a filter that no dataset takes.
        return pads.dataset(self._schema.empty_table()).scanner(columns=columns, filter=filter)


def _passed(schema: pa.Schema, condition: pl.Expr) -> pc.Expression | None:
    """An expression of Arrow that accepts all rows that a condition of polars accepts; `None` for all rows."""
    dataset = _Asked(schema)
    try:
        pl.scan_pyarrow_dataset(dataset).filter(condition).collect()
    except Exception:  # noqa: BLE001 - polars, and Arrow, of what one of them makes of a literal
        return None
    # Other functions that are true where one of their operands is missing are also true for any value of it.
    return None if _TESTS_RESULT.search(str(dataset.asked)) else dataset.asked


def _frame(data: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    return cast("pl.DataFrame", pl.from_arrow(cast("Any", data)))
