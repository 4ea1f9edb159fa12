"""Series of exports with amounts that no decimal type holds."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from exports.test_exports_series import read

LARGE = 2**256 - 1


def transactions_with(amounts: list[str]) -> Any:
    """Four transactions a height, newest first."""
    ids = [f"0x{number:064x}" for number in range(len(amounts))]
    heights = [1_000 + number // 4 for number in range(len(amounts))]
    columns: dict[str, list[Any]] = {
        "tx_id": ids,
        "block_hash": [f"0x{height}" for height in heights],
        "height": heights,
        "transaction_time": [1_769_000_000_000 + height * 12_000 for height in heights],
        "amount": amounts,
    }
    return pa.table({name: values[::-1] for name, values in columns.items()})


@pytest.mark.parametrize("small", ["1", "0.000000000000000001", "0.10", "12345678901234567890.5"])
def test_series_continues_as_text_after_an_amount_that_no_decimal_holds(tmp_path: Path, small: str) -> None:
    series, seen = tmp_path / "s", [Decimal(small)] * 240
    # The numbers of records that each night has, and the types of amounts that are tried.
    nights: list[tuple[int, list[Any]]] = [(120, ["decimal"]), (180, ["decimal", "string"]), (240, ["string"])]
    for night, (count, tried) in enumerate(nights):
        amounts = [small] * count
        if count > 120:
            amounts[125], seen[125] = str(LARGE), Decimal(LARGE)
        with (
            LocalService(transactions=0, data={"transactions": transactions_with(amounts)}) as service,
            service.client(rate_limit=None, max_retries=0) as client,
        ):
            for number, numbers in enumerate(tried):
                if number + 1 < len(tried):
                    with pytest.raises(cf.NumericOverflowError, match='numbers="string"'):
                        client.transactions().to_parquet_series(series, settle=6)
                else:
                    export = client.transactions().to_parquet_series(series, settle=6, numbers=numbers)
                    assert export.corrections == ()
        table = read(series)
        assert [Decimal(value) for value in table.sort_by("tx_id")["amount"].to_pylist()] == seen[: table.num_rows]
        assert table.num_rows == count - 4 * 6
        assert pa.types.is_string(table.schema.field("amount").type) == (night > 0)
    with (
        LocalService(transactions=0, data={"transactions": transactions_with([small] * 300)}) as service,
        service.client(rate_limit=None) as client,
        pytest.raises(cf.ExportError, match="numbers is 'string' there and 'decimal' here"),
    ):
        client.transactions().to_parquet_series(series, settle=6)


def test_export_that_cannot_hold_an_amount_is_begun_again_as_its_error_says(tmp_path: Path) -> None:
    table = transactions_with(["1"] * 30 + [str(LARGE)] + ["2"] * 30)
    with LocalService(transactions=0, data={"transactions": table}) as service, service.client() as client:
        with pytest.raises(cf.NumericOverflowError, match=r'numbers="string"') as raised:
            client.transactions().to_parquet(tmp_path / "x", max_rows_per_file=20)
        assert 'mode="overwrite" too' in raised.value.__notes__[-1]
        assert (raised.value.column, raised.value.row, raised.value.text) == ("amount", 30, str(LARGE))
        export = client.transactions().to_parquet(tmp_path / "x", numbers="string", mode="overwrite")
    assert export.rows == 61
    assert str(LARGE) in pq.read_table(export.path)["amount"].to_pylist()


@pytest.mark.parametrize(
    ("method", "name"),
    [("to_csv", "x.csv"), ("to_json", "x.jsonl"), ("to_parquet", "x.parquet"), ("to_parquet_series", "x")],
)
@pytest.mark.parametrize("is_awaited", [False, True])
def test_overflow_of_a_file_or_series_needs_other_numbers_only(
    tmp_path: Path, method: str, name: str, is_awaited: Any
) -> None:
    table = transactions_with(["1"] * 30 + [str(LARGE)] + ["2"] * 30)
    with LocalService(transactions=0, data={"transactions": table}) as service, service.client() as client:
        query = client.transactions()
        options = {"settle": None} if method == "to_parquet_series" else {}
        awaited = getattr(query, f"{method}_async")
        write = (
            (lambda *given, **options: asyncio.run(awaited(*given, **options)))
            if is_awaited
            else getattr(query, method)
        )
        with pytest.raises(cf.NumericOverflowError) as raised:
            write(tmp_path / name, numbers="decimal", **options)
        assert "overwrite" not in "".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        export = getattr(query, method)(tmp_path / name, numbers="string", **options)
    # A series finishes the export that was interrupted, then has nothing new.
    assert (read(tmp_path / name).num_rows if options else export.rows) == 61
