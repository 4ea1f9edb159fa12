"""CSV of a single column: each record is a row to every reader, also one without a value."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.csv
import pytest

from chainframe.testing import LocalService

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "integer": ("height", [1, None, 3, None]),
    "time": ("transaction_time", [datetime(2026, 1, 31, 9, 8, 57, tzinfo=UTC), None, None]),
    "amount": ("amount", [Decimal("1.50"), None, Decimal(10**30)]),
    "boolean": ("is_input_contract", [True, None, False]),
    "string": ("method_id", [None, 'a"b', "x,\n\ny", None, "z"]),
    "nothing": ("state", [None, None, None]),
}
READERS: dict[str, Any] = {
    "pandas": lambda text: len(pd.read_csv(io.StringIO(text))),
    "polars": lambda text: pl.read_csv(text.encode()).height,
    "pyarrow": lambda text: (
        pyarrow.csv.read_csv(
            io.BytesIO(text.encode()), parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)
        ).num_rows
    ),
    "csv": lambda text: len(list(csv.DictReader(io.StringIO(text)))),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_each_record_is_a_row_to_every_reader(tmp_path: Path, column: str) -> None:
    name, values = COLUMNS[column]
    data: Any = {"transactions": [{"tx_id": "0x1", name: value} for value in values]}
    with LocalService(data=data) as service, service.client() as client:
        client.transactions().to_csv(tmp_path / "query.csv", columns=[name])
        client.transactions().to_csv(tmp_path / "query.csv.gz", columns=[name])
        records = client.transactions().collect()
        records.to_csv(tmp_path / "records.csv", columns=[name])
    text = (tmp_path / "query.csv").read_text()
    assert text == (tmp_path / "records.csv").read_text()
    assert text == gzip.decompress((tmp_path / "query.csv.gz").read_bytes()).decode()
    assert {reader: count(text) for reader, count in READERS.items()} == dict.fromkeys(READERS, len(values))
    assert duckdb.execute(f"select count(*) from '{tmp_path / 'query.csv'}'").fetchall() == [(len(values),)]
    rows = list(csv.reader(io.StringIO(text)))
    both = records.to_csv(tmp_path / "both.csv", columns=[name, "tx_id"])
    with both.path.open(newline="") as file:
        assert rows == [row[:1] for row in csv.reader(file)]
    with LocalService(transactions=0) as service, service.client() as client:
        service.load("transactions", tmp_path / "query.csv")
        # The only column of a text has no difference between a missing value and an empty one.
        loaded = [getattr(record, name) for record in client.transactions()]
        assert [None if value == "" else value for value in loaded] == values
