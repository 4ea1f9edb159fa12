"""Conversion of Arrow streams to data frames of optional libraries, which are imported on use."""

from __future__ import annotations

import importlib
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self

from chainframe._reports import described

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from chainframe._native import Report


class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Tables(Protocol):
    def __iter__(self) -> Iterator[ArrowStream]: ...
    def __arrow_c_schema__(self) -> object: ...


# Libraries that each conversion needs, and the extra that installs them.
NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    "to_pandas": (("pandas", "pyarrow"), "pandas"),
    "to_polars": (("polars",), "polars"),
    "to_arrow": (("pyarrow",), "arrow"),
}


def require(conversion: str) -> None:
    """Import the libraries of a conversion, before the first request."""
    names, extra = NEEDS[conversion]
    for name in names:
        load(name, extra=extra)


def to_pandas(stream: ArrowStream, dtype_backend: str | None = None, report: Report | None = None) -> pd.DataFrame:
    """Converts to the dtypes of a backend, named as in pandas' own readers."""
    pandas = load("pandas", extra="pandas")
    pyarrow = load("pyarrow", extra="pandas")
    table = _table(pyarrow, stream)
    frame: pd.DataFrame
    if dtype_backend == "pyarrow":
        frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    else:
        dtypes = _Dtypes(pandas, pyarrow, nullable=dtype_backend == "numpy_nullable")
        columns = {name: dtypes.series(column) for name, column in zip(table.column_names, table.columns, strict=True)}
        frame = pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows), copy=False)
    if report is not None:
        frame.attrs["chainframe"] = described(report)
    return frame


@cache
def _unit() -> str:
    """Unit of times that the installed pandas selects."""
    unit: str = load("pandas", extra="pandas").DatetimeIndex(["2026-01-01"]).unit
    return unit


class _Dtypes:
    """pandas' own dtypes for Arrow columns. Decimals stay in Arrow, the only library of the two that has them."""

    def __init__(self, pandas: Any, pyarrow: Any, *, nullable: bool) -> None:  # noqa: ANN401 - modules
        self._pandas = pandas
        self._pyarrow = pyarrow
        self._nullable = nullable
        self._unit = _unit()
        self._masked = {
            pyarrow.int64(): pandas.Int64Dtype(),
            pyarrow.uint64(): pandas.UInt64Dtype(),
            pyarrow.bool_(): pandas.BooleanDtype(),
        }
        if nullable:
            self._masked |= {pyarrow.float64(): pandas.Float64Dtype(), pyarrow.string(): pandas.StringDtype()}

    def series(self, column: pa.ChunkedArray[Any]) -> pd.Series[Any]:
        pandas = self._pandas
        types = self._pyarrow.types
        series: pd.Series[Any]
        if types.is_decimal(column.type):
            series = pandas.Series(self._exact(column))
        elif types.is_timestamp(column.type):
            series = self._times(column).to_pandas()
        elif types.is_list(column.type):
            series = pandas.Series(column.to_pylist(), dtype=object)
        elif self._nullable or column.null_count:
            # An integer with a null would become a float otherwise, and a flag an object.
            series = column.to_pandas(types_mapper=self._masked.get)
        else:
            series = column.to_pandas()
        return series

    def _exact(self, column: pa.ChunkedArray[Any]) -> Any:  # noqa: ANN401 - a pandas array
        try:
            from chainframe.exact import ExactArray  # noqa: PLC0415 - needs pandas
        except (AttributeError, ImportError, TypeError):
            # pandas' array of Arrow columns has no stable interface. Without it, neither has ours.
            return self._pandas.arrays.ArrowExtensionArray(column)
        return ExactArray(column)

    def _times(self, column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
        """Times in the unit of pandas' own, with which they join; as they are if that unit cannot hold them."""
        try:
            return column.cast(self._pyarrow.timestamp(self._unit, column.type.tz))
        except self._pyarrow.ArrowInvalid:
            return column


def to_polars(stream: ArrowStream) -> pl.DataFrame:
    frame: pl.DataFrame = load("polars", extra="polars").DataFrame(stream)
    return frame


def to_arrow(stream: ArrowStream) -> pa.Table:
    return _table(load("pyarrow"), stream)


def _table(pyarrow: Any, stream: ArrowStream) -> pa.Table:  # noqa: ANN401 - the module
    """Read a stream. `pyarrow.table` would import pandas first, to check for a data frame."""
    table: pa.Table = pyarrow.RecordBatchReader.from_stream(stream).read_all()
    return table


class _Batches:
    """Batches of tables. After an error, a generator or `itertools.chain` would seem to have ended."""

    def __init__(self, pyarrow: Any, tables: Tables) -> None:  # noqa: ANN401 - the module
        self._pyarrow = pyarrow
        self._tables = iter(tables)
        self._batches: deque[pa.RecordBatch] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        while not self._batches:
            self._batches.extend(_table(self._pyarrow, next(self._tables)).to_batches())
        return self._batches.popleft()


def reader(tables: Tables) -> pa.RecordBatchReader:
    """Return a reader that raises the original errors; an Arrow stream carries only their messages."""
    pyarrow = load("pyarrow")
    batches = _Batches(pyarrow, tables)
    opened: pa.RecordBatchReader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema(tables), batches)
    return opened


def load(name: str, *, extra: str = "arrow") -> Any:  # noqa: ANN401 - a module
    """Import a module of the libraries of an extra."""
    module = library(name, f"'chainframe[{extra}]'")
    if name == "pyarrow" and not hasattr(module.RecordBatchReader, "from_stream"):
        message = f"pyarrow {module.__version__} is too old; run: pip install 'chainframe[{extra}]'"
        raise ImportError(message, name=name)
    return module


def library(name: str, packages: str) -> Any:  # noqa: ANN401 - a module
    """Import a module, or raise ModuleNotFoundError with the command that installs these packages."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        # An installed library that lacks one of its own dependencies names it.
        if error.name not in {top, name}:
            raise
        raise ModuleNotFoundError(f"{top} is not installed; run: pip install {packages}", name=top) from None
