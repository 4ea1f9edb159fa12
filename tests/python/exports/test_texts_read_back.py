"""Odd names and numbers in CSV and JSON lines, as other libraries read them back."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from chainframe.testing import LocalService, make_records

NAMES = [
    *("NA", "NULL", "null", "nan", "None", "", "#N/A", "inf", "true", "0x10", "1e5", "007", " lead", "trail "),
    *(
        "a,b",
        'q"u"o',
        '""',
        "line\nbreak",
        "cr\rx",
        "crlf\r\n",
        "tab\t",
        "\x01",
        "\x7f",
        "\u202ertl",
        "\u200e",
        "\ufeff",
    ),
    *(
        "=1+1",
        "-1",
        "@x",
        "'x",
        "x" * 70_000,
        "\\N",
        "\\",
        "a;b",
        "\u2028",
        "\x85",
        "\x1b[31m",
        " ",
        "#c",
        "\U0001f600",
    ),
]
# As services send them.
AMOUNTS = [
    "0",
    "0E-18",
    "0E+10",
    "1E-18",
    "1.0e-18",
    "1E+10",
    "12345678901234567890.123456789012345678",
    "-1.50",
    "100",
]
ROWS = [
    {"tx_id": f"0x{row}", "height": row, "transaction_symbol": name, "amount": Decimal(AMOUNTS[row % len(AMOUNTS)])}
    for row, name in enumerate(NAMES)
]
COLUMNS = ["tx_id", "transaction_symbol", "amount"]


def read_csv_with_duckdb(path: Path) -> Any:
    options = "all_varchar = true, allow_quoted_nulls = false"
    select = f"SELECT {', '.join(COLUMNS)} FROM read_csv('{path}', {options})"
    return duckdb.execute(select).fetchall()


READERS: dict[str, Any] = {
    "pandas": lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)[COLUMNS].itertuples(index=False),
    "polars": lambda path: pl.read_csv(path, infer_schema=False).select(COLUMNS).rows(),
    "duckdb": read_csv_with_duckdb,
}


def assert_read_back(rows: Any) -> None:
    found = {key: (name, amount) for key, name, amount in rows}
    assert len(found) == len(ROWS)
    for row in ROWS:
        name, amount = found[row["tx_id"]]
        assert name == row["transaction_symbol"]
        assert Decimal(amount) == row["amount"]
        assert "e" not in amount.lower()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv_is_read_back_exactly(tmp_path: Path, reader: str, suffix: str) -> None:
    make_records("transactions", ROWS).to_csv(tmp_path / f"a{suffix}")
    assert_read_back(READERS[reader](tmp_path / f"a{suffix}"))


def test_json_lines_are_read_back_exactly(tmp_path: Path) -> None:
    with LocalService(transactions=1, simulated=True) as service, service.client() as client:
        service.load("transactions", ROWS)
        client.transactions().to_json(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes().decode().split("\n")[:-1]
    assert_read_back([json.loads(line)[column] for column in COLUMNS] for line in lines)
    assert_read_back(pl.read_ndjson(tmp_path / "a.jsonl").select(COLUMNS).rows())


def test_number_of_digits_without_end_keeps_its_exponent(tmp_path: Path) -> None:
    make_records("transactions", [{"tx_id": "0x1", "amount": Decimal("1E+900000")}]).to_csv(tmp_path / "a.csv")
    assert '"1E+900000"' in (tmp_path / "a.csv").read_text(encoding="utf-8")
