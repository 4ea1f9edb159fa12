"""From an Arrow stream to the data frame of a library that may not be installed; imported only when asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa


class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Tables(Protocol):
    def __iter__(self) -> Iterator[ArrowStream]: ...
    def __arrow_c_schema__(self) -> object: ...


# What each way needs, and the extra that brings it.
_NEEDS = {
    "to_pandas": (("pandas", "pyarrow"), "pandas"),
    "to_polars": (("polars",), "polars"),
    "to_arrow": (("pyarrow",), "arrow"),
}


def require(way: str) -> None:
    """Loads what a way needs. Asked for before the first request, so that a missing library costs none."""
    names, extra = _NEEDS[way]
    for name in names:
        load(name, extra=extra)


def to_pandas(stream: ArrowStream) -> pd.DataFrame:
    """Columns stay Arrow's own (`pandas.ArrowDtype`): nothing is copied, and no null, no decimal, no int64 is bent."""
    pandas = load("pandas", extra="pandas")
    table = _table(load("pyarrow", extra="pandas"), stream)
    frame: pd.DataFrame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    return frame


def to_polars(stream: ArrowStream) -> pl.DataFrame:
    frame: pl.DataFrame = load("polars", extra="polars").DataFrame(stream)
    return frame


def to_arrow(stream: ArrowStream) -> pa.Table:
    return _table(load("pyarrow", extra="arrow"), stream)


def _table(pyarrow: Any, stream: ArrowStream) -> pa.Table:  # noqa: ANN401 - the module
    """`pyarrow.table` would load pandas first, to see whether the stream is a data frame."""
    table: pa.Table = pyarrow.RecordBatchReader.from_stream(stream).read_all()
    return table


def reader(tables: Tables) -> pa.RecordBatchReader:
    """pyarrow hands on what is raised in a loop of Python, while an Arrow stream could only tell its text."""
    pyarrow = load("pyarrow", extra="arrow")
    batches = (batch for table in tables for batch in _table(pyarrow, table).to_batches())
    made: pa.RecordBatchReader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema(tables), batches)
    return made


def load(name: str, *, extra: str) -> Any:  # noqa: ANN401 - a module, of which no more is known here
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A library that is there but lacks one of its own parts has a better message than this one.
        if error.name != name:
            raise
        message = f"{name} is not installed; run: pip install 'chainframe[{extra}]'"
        raise ModuleNotFoundError(message, name=name) from None
