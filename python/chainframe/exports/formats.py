"""Writers of the formats other than Parquet, batch by batch."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from chainframe._declared import RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedWriter

NUMBERS = {
    field["name"]
    for record in RECORDS.values()
    for field in record["fields"]
    if field["kind"] in {"amount", "estimate"}
}
"""Columns of numbers that are no integers, which may be text."""
MAX_EXPANDED = 1_000
"""Most digits to which an exponent is expanded: more than twice those of 2^256."""


class Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _Arrow:
    """Arrow IPC file, which can be memory-mapped, or an IPC stream if the sink is not seekable."""

    def __init__(self, sink: BufferedWriter, schema: pa.Schema) -> None:
        self._writer = (pa.ipc.new_file if sink.seekable() else pa.ipc.new_stream)(sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, sink: BufferedWriter, schema: pa.Schema) -> None:
        self._sink = sink
        fields = pa.schema([(name, pa.string()) for name in schema.names])
        self._write(pa.Table.from_batches([], fields), header=True)

    def write(self, batch: pa.RecordBatch) -> None:
        rows = _as_text(batch, json.dumps)
        if rows.num_columns == 1:
            self._sink.write(_lines(rows.column(0)))
        else:
            self._write(rows, header=False)

    def _write(self, rows: pa.RecordBatch | pa.Table, *, header: bool) -> None:
        # The default pool keeps what it has got, as large pages of the system.
        pool = pa.system_memory_pool()
        text = pa.BufferOutputStream(pool)
        options = pyarrow.csv.WriteOptions(include_header=header)
        pyarrow.csv.write_csv(rows, text, options, pool)
        self._sink.write(text.getvalue())

    def close(self) -> None:
        pass


def _lines(column: pa.Array[Any]) -> bytes:
    """Return a single column as CSV: a missing value is quoted, since most readers skip a line without anything."""
    texts: Any = column.cast(pa.string())
    if texts.type == column.type:
        texts = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return "".join(f"{text}\n" for text in texts.fill_null('""').to_pylist()).encode()


# `json.dumps` makes an encoder for every call that has options.
_encode = json.JSONEncoder(ensure_ascii=False).encode


class _JsonLines:
    def __init__(self, sink: BufferedWriter, schema: pa.Schema) -> None:
        del schema
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        # In one piece: an object in a store takes each with a call of its own.
        self._sink.write("".join(f"{_encode(row)}\n" for row in _as_text(batch, None).to_pylist()).encode())

    def close(self) -> None:
        pass


WRITERS: dict[str, Callable[[BufferedWriter, pa.Schema], Writer]] = {
    "csv": _Csv,
    "jsonl": _JsonLines,
    "arrow": _Arrow,
}


def _as_text(batch: pa.RecordBatch, lists: Callable[[Any], str] | None) -> pa.RecordBatch:
    """Times as ISO 8601 in UTC and numbers as their digits; lists through `lists`, for a format without lists."""
    columns: list[pa.Array[Any]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if pa.types.is_timestamp(kind):
            # As a naive time, which is UTC, so that no time zone database is needed.
            naive: Any = column.cast(pa.timestamp(kind.unit))
            columns.append(pc.strftime(naive, format="%Y-%m-%dT%H:%M:%SZ"))
        elif pa.types.is_decimal(kind):
            columns.append(_each(column, _digits))
        elif pa.types.is_list(kind) and lists is not None:
            columns.append(_each(column, lists))
        elif name in NUMBERS and pa.types.is_string(kind) and _has_exponent(column):
            columns.append(_each(column, _without_exponent))
        else:
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _each(column: pa.Array[Any], text: Callable[[Any], str]) -> pa.Array[Any]:
    # pyarrow.array would import pandas, where it is installed, which takes 50 MiB.
    texts = cast("Any", pa).lib.StringBuilder()
    texts.append_values([None if value is None else text(value) for value in column.to_pylist()])
    built: pa.Array[Any] = texts.finish()
    return built


def _has_exponent(column: pa.Array[Any]) -> bool:
    return bool(pc.any(pc.match_substring(column, "e", ignore_case=True)).as_py())


def _without_exponent(text: str) -> str:
    """The digits of a number that was sent as text, such as 0 for 0E-18."""
    if "e" not in text.lower():
        return text
    number = Decimal(text)
    return _digits(number) if abs(number.adjusted()) <= MAX_EXPANDED else text


def _digits(value: Decimal) -> str:
    """Digits without the trailing zeros of the scale; arithmetic would round to the precision of the context."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
