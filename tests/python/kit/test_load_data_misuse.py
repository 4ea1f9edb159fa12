"""Loading data into the local service: a row, a file or a fault that is not valid is named."""

from __future__ import annotations

import csv
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from pathlib import Path


NANOS = pd.Timestamp("2026-01-01T00:00:00.001000999Z")
WRONG: list[tuple[Any, str]] = [
    ([{"block_time": 1, "blockTime": 2}], "row 0 has the field block_time twice, as 'block_time' and 'blockTime'"),
    (pd.DataFrame([[1, 2]], columns=["height", "height"]), "the data frame has two columns 'height'"),
    (pa.table([[1], [2]], names=["height", "height"]), "the table has two columns 'height'"),  # type: ignore[list-item]
    (pd.Series([1]), "data must be a data frame of records; got a Series"),
    (pl.Series([1]), "data must be a data frame of records; got a Series"),
    (pl.LazyFrame({"height": [1]}), "data must be a table; got a LazyFrame"),
    (pd.DataFrame({"block_time": [NANOS]}), "row 0: block_time must be a time to the millisecond with"),
    ([{"block_time": NANOS}], "row 0: block_time must be a time to the millisecond"),
    (pa.table({"block_time": pa.array([NANOS.value], pa.timestamp("ns", "UTC"))}), "must be a time to the millisecond"),
    (
        pl.DataFrame({"block_time": [NANOS.value]}).cast(pl.Datetime("ns", "UTC")),
        "block_time must be a time to the millisecond with a UTC offset; got nanoseconds",
    ),
    ([{"height": 1}, {"hight": 2}], "blocks: row 1 has an unknown field 'hight'; expected height, block_time"),
    ([{"height": "4.5"}], "blocks: row 0: height must be an integer from 0 to 2^63-1; got '4.5'"),
    ([{"height": True}], "must be an integer from 0 to 2^63-1; got True"),
    ([{"height": -1}], "must be an integer from 0 to 2^63-1; got -1"),
    ([{"height": float("nan")}], "must be an integer from 0 to 2^63-1; got nan"),
    ([{"height": float("inf")}], "must be an integer from 0 to 2^63-1"),
    ([{"hash": 1.5}], "hash must be a string"),
    ([{"block_time": "yesterday"}], "block_time must be a time"),
    ([{"block_time": 10**30}], "block_time must be a time"),
    ([{"block_time": datetime(2026, 1, 1)}], "row 0: block_time must be a time to the millisecond with"),  # noqa: DTZ001
    ([{"block_time": "2026-01-01T00:00:00"}], "with a UTC offset; got '2026-01-01T00:00:00'"),
    ([{"height": 2**64}], "row 0: height must be"),
    ([{"height": 1}, 5], "row 1 must be a record or a mapping of its fields; got 5"),
    ([[1, 2]], "row 0 must be a record or a mapping"),
    ({"height": [1]}, "must be a list of records or a data frame; got a mapping"),
    (7, "data must be a table, a list of records or a path; got 7"),
    (b"{}", "blocks: the response: code: the code is missing"),
    ("blocks.txt", "blocks.txt must be the directory of an export or end in .parquet"),
    ("a\ud800.jsonl", "data ('a\\ud800.jsonl') must name a file or directory"),
    ("s3://bucket/blocks.jsonl", "data (s3://...) must be a local path"),
    ("no-such.jsonl", "no-such.jsonl cannot be read: No such file or directory"),
    ("no-such.parquet", "no-such.parquet cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_invalid_row_is_named(own: LocalService, ask: cf.Client, data: Any, said: str) -> None:
    own.load("blocks", [{"height": 1}])
    with pytest.raises(cf.ConfigError) as caught:
        own.load("blocks", data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(ask.blocks().collect()) == 1


@pytest.mark.parametrize(
    ("call", "row", "needed"),
    [
        ("token_transfers", {"tx_id": "0x1"}, "token_contract_address"),
        ("address_transactions", {"tx_id": "0x1", "from_address": ""}, "from_address or to_address"),
        ("transactions_by_hash", {"height": 1}, "tx_id"),
        ("logs", {"log_index": 1}, "tx_id"),
    ],
)
def test_row_that_no_request_could_return_is_named(own: LocalService, call: Any, row: Any, needed: str) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        own.load(call, [row])
    problem = f"must have {needed}: no request returns it without"
    assert str(caught.value) == f"{call}: row 0 {problem}"
    own.load(call, [{**row, needed.rsplit(" or ", maxsplit=1)[-1]: "0x1"}])


def test_record_of_a_response_that_no_request_could_return_is_named(own: LocalService) -> None:
    sent = {"txId": "0x1", "from": "0xa", "to": ""}

    def response(*records: dict[str, str]) -> dict[str, Any]:
        page = {"page": "1", "limit": "50", "totalPage": "1", "transactionList": [*records]}
        return {"code": "0", "msg": "", "data": [page]}

    own.load("address_transactions", response(sent))
    with pytest.raises(cf.ConfigError) as caught:
        own.load("address_transactions", response(sent, {**sent, "from": ""}))
    problem = "the response: record 1 must have from_address or to_address: no request returns it without"
    assert str(caught.value) == f"address_transactions: {problem}"


def test_unknown_call_is_named(own: LocalService) -> None:
    with pytest.raises(cf.ConfigError, match="call must be one of tokens, "):
        own.load("block", [])  # type: ignore[arg-type]
    with pytest.raises(cf.ConfigError, match="got 'block'"):
        LocalService(transactions=3, data={"block": []})


FILES = [
    ("short.csv", b"hash,height\n0x1,1\n0x2\n", "short.csv line 3 is not a row of the table"),
    ("twice.csv", b"height,height\n1,2\n", "twice.csv has two columns 'height'"),
    (
        "wrong.csv",
        b"hash,height\n0x1,1\n0x2,-1\n",
        "wrong.csv line 3: height must be an integer from 0 to 2^63-1; got '-1'",
    ),
    ("broken.jsonl", b'{"height": 1}\n{"height":\n', "broken.jsonl line 2 is not JSON"),
    ("list.jsonl", b'{"height": 1}\n\n[1]\n', "list.jsonl line 3 must be a record or a mapping of its fields; got [1]"),
    ("wrong.jsonl", b'\n{"height": -1}\n', "wrong.jsonl line 2: height must be an integer from 0 to 2^63-1; got -1"),
    ("big.jsonl", b'\n{"height": 9223372036854775808}\n', "big.jsonl line 2: height must be"),
    ("nan.jsonl", b'{"height": NaN}', "nan.jsonl line 1 is not JSON: NaN is not a JSON number"),
    ("latin.jsonl", b'{"hash": "\xe9"}', "latin.jsonl line 1 is not UTF-8"),
    ("deep.json", b"[" * 100_000, "deep.json is not JSON"),
    ("deep.csv", b"hash,height\n0x1," + b"[" * 100_000, "deep.csv line 2: height must be an integer"),
    ("text.json", b'"height"', "text.json must hold a list of records or a response; got 'height'"),
    ("rows.json", b"[{}, null]", "rows.json row 1 must be a record"),
    ("response.json", b'{"code":"0","data":[{"data":[{"height":"x"}]}]}', "response.json: data[0].data[0].height"),
    ("not.parquet", b"height\n1\n", "not.parquet is not a Parquet file"),
    ("torn.parquet", b"PAR1" + b"x" * 40, "torn.parquet is a damaged Parquet file: "),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[file[0] for file in FILES])
def test_unreadable_file_is_named(own: LocalService, tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(cf.ConfigError) as caught:
        own.load("blocks", tmp_path / name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (5, "must be a list of mappings"),
        ([object()], "must be a list of mappings"),
        ([{"kind": "delay", "seconds": float("nan")}], "must be a list of mappings"),
        (["reset"], 'expected an object, got string "reset"'),
        ([{"kind": 5}], "expected a string, got integer 5"),
        ([{"kind": "reset", "often": 2}], 'unknown member "often"; expected one of kind, status,'),
        ([{"kind": "reset", "every": -1}], "expected a non-negative integer, got integer -1"),
        ([{"kind": "flood"}], "kind must be one of status, code, throttle, "),
    ],
)
def test_invalid_fault_is_named(own: LocalService, faults: Any, said: str) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        own.faults = faults
    assert str(caught.value).startswith("faults")
    assert said in str(caught.value)


@pytest.mark.parametrize("cell", ["[" * 100_000, "[", "{}", '"0x1"', "1", "[1.5]", "[null]", "0x1"])
def test_cell_of_csv_that_is_no_list_is_named(own: LocalService, tmp_path: Path, cell: str) -> None:
    with (tmp_path / "logs.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("tx_id", "topics"), ("0xa", cell)])
    with pytest.raises(cf.ConfigError, match=r"logs\.csv line 2: topics must be a list of strings; got "):
        own.load("logs", tmp_path / "logs.csv")
