"""Numbers in records and columns: exact values, or an error that shows the value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from strict_server import Response, StrictServer, page_of

# pandas has it from version 3 on.
from_arrow: Any = getattr(pd.DataFrame, "from_arrow", None)
Numbers = Literal["decimal", "float", "string"]

FITTING = [
    "0",
    "1",
    "-1",
    "0.000000000000000001",
    "-0.000000000000000001",
    "9007199254740993",
    "18446744073709551616",
    "99999999999999999999.999999999999999999",
    "2.625E-6",
    "1e18",
    "00012.50",
]
TOO_LARGE = ["100000000000000000000", str(10**38), str(2**256 - 1), "-1e20"]
TOO_FINE = ["0.0000000000000000001", "1e-19"]
EDGES = FITTING + TOO_LARGE + TOO_FINE
NO_NUMBERS = ["NaN", "nan", "inf", "-Infinity", "0x10", "1,000", "1_000", " 1", "1.2.3", "--1", "e5", "\u0661"]


def fetch(server: StrictServer, texts: Sequence[str | None]) -> cf.Records[Any]:
    rows = [{"txid": f"0x{row}", "amount": text} for row, text in enumerate(texts)]
    server.on("token_transfers", page_of("token_transfers", rows))
    with server.client() as client:
        return client.token_transfers("0xa").collect()


def through_duckdb(records: cf.Records[Any], numbers: Numbers) -> list[Any]:
    with duckdb.connect() as connection:
        connection.register("records", records.to_arrow(numbers))
        return [value for (value,) in connection.execute("select amount from records").fetchall()]


def through_parquet(records: cf.Records[Any], numbers: Numbers, folder: Path) -> list[Any]:
    path = folder / "records.parquet"
    pq.write_table(records.to_arrow(numbers), path)
    return pq.read_table(path).column("amount").to_pylist()


def through_duckdbs_parquet(records: cf.Records[Any], numbers: Numbers, folder: Path) -> list[Any]:
    path = folder / "records.parquet"
    pq.write_table(records.to_arrow(numbers), path)
    with duckdb.connect() as connection:
        query = "select amount from read_parquet(?)"
        return [value for (value,) in connection.execute(query, [str(path)]).fetchall()]


def through_polars_parquet(records: cf.Records[Any], numbers: Numbers, folder: Path) -> list[Any]:
    path = folder / "records.parquet"
    records.to_polars(numbers).write_parquet(path)
    return pl.read_parquet(path)["amount"].to_list()


WAYS: dict[str, Callable[[cf.Records[Any], Numbers, Path], list[Any]]] = {
    "pandas": lambda records, numbers, _: records.to_pandas(numbers)["amount"].tolist(),
    "polars": lambda records, numbers, _: records.to_polars(numbers)["amount"].to_list(),
    "pyarrow": lambda records, numbers, _: records.to_arrow(numbers).column("amount").to_pylist(),
    "DuckDB": lambda records, numbers, _: through_duckdb(records, numbers),
    "Parquet": through_parquet,
    "Parquet by polars": through_polars_parquet,
    "Parquet into DuckDB": through_duckdbs_parquet,
}
STREAMED: dict[str, Callable[[Any], list[Any]]] = {
    "polars": lambda stream: pl.DataFrame(stream)["amount"].to_list(),
    "pyarrow": lambda stream: pa.table(stream).column("amount").to_pylist(),
}
if from_arrow is not None:
    STREAMED["pandas"] = lambda stream: from_arrow(stream)["amount"].tolist()


def test_record_holds_every_number_exactly(server: StrictServer) -> None:
    records = fetch(server, EDGES)
    assert [record.amount for record in records] == [Decimal(text) for text in EDGES]
    assert [row["amount"] for row in records.to_dicts()] == [Decimal(text) for text in EDGES]


@pytest.mark.parametrize("way", WAYS)
def test_decimals_are_the_same_number(server: StrictServer, tmp_path: Path, way: str) -> None:
    values = WAYS[way](fetch(server, [*FITTING, None, ""]), "decimal", tmp_path)
    assert all(isinstance(value, Decimal) for value in values[: len(FITTING)])
    assert values[: len(FITTING)] == [Decimal(text) for text in FITTING]
    assert all(value is None or value is pd.NA for value in values[len(FITTING) :])


@pytest.mark.parametrize("way", STREAMED)
def test_streamed_decimals_are_the_same_number(server: StrictServer, way: str) -> None:
    records = fetch(server, FITTING)
    assert STREAMED[way](records) == [Decimal(text) for text in FITTING]


@pytest.mark.parametrize("way", WAYS)
def test_floats_are_the_nearest(server: StrictServer, tmp_path: Path, way: str) -> None:
    assert WAYS[way](fetch(server, EDGES), "float", tmp_path) == [float(text) for text in EDGES]


@pytest.mark.parametrize("way", WAYS)
def test_strings_are_the_digits_as_sent(server: StrictServer, tmp_path: Path, way: str) -> None:
    assert WAYS[way](fetch(server, EDGES), "string", tmp_path) == EDGES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", TOO_LARGE + TOO_FINE)
def test_overflow_names_column_row_and_value(server: StrictServer, tmp_path: Path, way: str, text: str) -> None:
    records = fetch(server, ["1", None, text, "2"])
    with pytest.raises(cf.NumericOverflowError) as caught:
        WAYS[way](records, "decimal", tmp_path)
    assert (caught.value.column, caught.value.row, caught.value.text) == ("amount", 2, text)


@pytest.mark.parametrize("way", STREAMED)
def test_overflow_in_a_stream_names_column_row_and_value(server: StrictServer, way: str) -> None:
    with pytest.raises(cf.NumericOverflowError) as caught:
        STREAMED[way](fetch(server, ["1", "1e20"]))
    assert (caught.value.column, caught.value.row, caught.value.text) == ("amount", 1, "1e20")


def test_overflow_row_counts_over_pages_and_slices(server: StrictServer) -> None:
    def pages(request: Any) -> Response:
        number = request.query["page"]
        texts = ["1", "2", "1e20" if number == "3" else "3"]
        return page_of(
            "token_transfers",
            [{"txid": number, "amount": t} for t in texts],
            totalPage="3",
            totalTransfer="9",
            page=number,
        )

    server.on("token_transfers", pages)
    with server.client() as client:
        query = client.token_transfers("0xa", page_size=3)
        for convert in (query.to_arrow, query.to_pandas, query.to_polars):
            with pytest.raises(cf.NumericOverflowError) as caught:
                convert()
            assert caught.value.row == 8
        for rows in (1, 2, 4, 100):
            with pytest.raises(cf.NumericOverflowError) as caught:
                query.to_arrow_batch_reader(batch_size=rows).read_all()
            assert caught.value.row == 8
        records = query.collect()
    with pytest.raises(cf.NumericOverflowError) as caught:
        records[7:].to_arrow()
    assert caught.value.row == 1
    assert records[:8].to_arrow().num_rows == 8


def test_estimates_are_doubles_in_columns_and_exact_in_records(server: StrictServer) -> None:
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": text, "price": text} for text in EDGES]))
    with server.client() as client:
        records = client.tokens().collect()
    assert [token.price for token in records] == [Decimal(text) for text in EDGES]
    for numbers in ("decimal", "float"):
        assert records.to_arrow(numbers).column("price").to_pylist() == [float(text) for text in EDGES]
    assert records.to_arrow("string").column("price").to_pylist() == EDGES


def test_estimate_beyond_the_range_of_doubles_raises(server: StrictServer) -> None:
    rows = [{"tokenContractAddress": f"0x{row}", "price": price} for row, price in enumerate(("1", "-1e400"))]
    server.on("tokens", page_of("tokens", rows))
    with server.client() as client:
        records = client.tokens().collect()
    assert records[1].price == Decimal("-1e400")
    with pytest.raises(cf.NumericOverflowError) as caught:
        records.to_polars()
    assert (caught.value.column, caught.value.row, caught.value.text) == ("price", 1, "-1e400")


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize(("call", "field"), [("token_transfers", "amount"), ("tokens", "price")])
def test_invalid_number_is_a_format_error_with_its_path(server: StrictServer, call: str, field: str, text: str) -> None:
    server.on(call, page_of(call, [{"tokenContractAddress": "0xa", field: each} for each in ("1", text)]))
    with server.client() as client:
        query = client.tokens() if call == "tokens" else client.token_transfers("0xa")
        with pytest.raises(cf.ResponseFormatError) as caught:
            query.collect()
    listed = "tokenList" if call == "tokens" else "transactionList"
    assert caught.value.path == f"data[0].{listed}[1].{field}"
    assert (caught.value.excerpt or "").strip('"') in {text, json.dumps(text).strip('"')}


@pytest.mark.parametrize("way", ["to_pandas", "to_polars", "to_arrow"])
def test_overflow_keeps_the_collected_records(server: StrictServer, way: str) -> None:
    """One that became a frame is the frame's, and is not kept a second time."""
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1"}, {"amount": "1e20"}]))
    with server.client() as client:
        query = client.token_transfers("0xa")
        with pytest.raises(cf.NumericOverflowError) as caught:
            getattr(query, way)()
        assert query.last_error is caught.value
        assert [record.amount for record in query.partial] == [Decimal(1), Decimal(10**20)]
        assert len(getattr(query, way)("string")) == 2
        assert len(query.partial) == 0


@pytest.mark.parametrize("text", ["short", "x" * 13, "é" * 12, ""])
def test_strings_in_polars_are_unchanged(server: StrictServer, text: str) -> None:
    texts = [text, None, "", "twelve bytes", "thirteen bytes", text]
    rows = [{"tokenContractAddress": f"0x{row}", "token": text} for row, text in enumerate(texts)]
    server.on("tokens", page_of("tokens", rows))
    with server.client() as client:
        frame = client.tokens().to_polars()
        assert frame.equals(pl.DataFrame(client.tokens().collect()))
    assert frame["token"].to_list() == texts
    assert frame.schema["token"] == pl.String


def test_unknown_numbers_option_is_rejected(server: StrictServer) -> None:
    records = fetch(server, ["1"])
    unknown: Any = "double"
    for convert in (records.to_arrow, records.to_pandas, records.to_polars):
        with pytest.raises(cf.InvalidParameterError, match=r"numbers.*decimal, float, string"):
            convert(unknown)
