"""The type of amounts as a setting of the client: the default of every conversion and export that takes `numbers`."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.testing import LocalService, make_records

Numbers: TypeAlias = Literal["decimal", "float", "string"]
TYPES: dict[Numbers | None, pa.DataType] = {
    None: pa.decimal128(38, 18),
    "decimal": pa.decimal128(38, 18),
    "float": pa.float64(),
    "string": pa.string(),
}


# Its types do not know the protocol of other frames.
from_native: Any = nw.from_native


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=60, seed=5) as service:
        yield service


async def _first_batch(query: cf.Query[Any]) -> pa.Table:
    async for records in query.batches():
        return records.to_arrow()
    raise AssertionError


def _followed(query: cf.Query[Any]) -> pa.Table:
    return next(iter(query.follow(start="beginning", poll=None, settle=1))).to_arrow()


# Every way from a query to a table that takes `numbers`, each without it.
WAYS: dict[str, Callable[[cf.Query[Any]], pa.Table]] = {
    "to_arrow": lambda query: query.to_arrow(),
    "to_polars": lambda query: query.to_polars().to_arrow(),
    "to_pandas": lambda query: pa.Table.from_pandas(query.to_pandas()),
    "to_arrow_batch_reader": lambda query: query.to_arrow_batch_reader().read_all(),
    "collect": lambda query: query.collect().to_arrow(),
    "collect_async": lambda query: asyncio.run(query.collect_async()).to_arrow(),
    "slice": lambda query: query.collect()[::2].to_arrow(),
    "pickle": lambda query: pickle.loads(pickle.dumps(query.collect())).to_arrow(),
    "page": lambda query: next(iter(query.pages())).records.to_arrow(),
    "batch": lambda query: next(iter(query.batches(7, columns=["amount"]))).to_arrow(),
    "async batch": lambda query: asyncio.run(_first_batch(query)),
    "partition": lambda query: query.partitions(2)[0].collect().to_arrow(),
    "follow": _followed,
}


def _type(table: pa.Table) -> pa.DataType:
    found = table.schema.field("amount").type
    return pa.string() if found in (pa.large_string(), pa.string_view()) else found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("numbers", TYPES)
def test_default_of_every_conversion(service: LocalService, way: str, numbers: Numbers | None) -> None:
    with service.client(numbers=numbers) as client:
        assert client.numbers == numbers
        query = client.transactions()
        assert _type(WAYS[way](query)) == TYPES[numbers]


def test_argument_wins_and_options_derive(service: LocalService) -> None:
    with service.client(numbers="string") as client:
        records = client.transactions().collect()
        for numbers in ("decimal", "float", "string"):
            assert _type(records.to_arrow(numbers)) == TYPES[numbers]
            assert _type(client.transactions().to_arrow(numbers)) == TYPES[numbers]
            assert _type(client.with_options(numbers=numbers).transactions().to_arrow()) == TYPES[numbers]
        own = client.with_options(numbers=None)
        assert own.numbers is None
        assert own != client
        assert client.with_options(strict=True).numbers == "string"
        assert _type(own.transactions().to_arrow()) == TYPES["decimal"]
        # None is the client's as well.
        assert _type(records.to_arrow(None)) == TYPES["string"]
        # Records that no client has read, and streams, which take no `numbers`, are exact.
        assert _type(make_records("transactions", [{}]).to_arrow()) == TYPES["decimal"]
        assert _type(pa.table(records)) == TYPES["decimal"]


def test_partial_results_and_resumed_queries_keep_it(service: LocalService) -> None:
    with service.client(numbers="float", max_requests=2, concurrency=1) as client:
        query = client.transactions(page_size=10)
        with pytest.raises(cf.BudgetExceededError):
            query.collect()
        assert _type(query.partial.to_arrow()) == TYPES["float"]
        rest = service.client(numbers="float").resume(query.cursor)
        assert _type(rest.to_arrow()) == TYPES["float"]


def test_decoded_logs(service: LocalService) -> None:
    with service.client() as client:
        tx_ids = [each.tx_id for each in client.transactions().collect() if each.tx_id]
        event = cf.Event("Transfer(address indexed from, address indexed to, uint256 value)")
        types: dict[Numbers | None, pa.DataType] = {
            None: pa.string(),
            "string": pa.string(),
            "float": pa.float64(),
        }
        for numbers, expected in types.items():
            decoded = client.with_options(numbers=numbers).logs(tx_ids).collect().decode(event)
            assert decoded.to_arrow().schema.field("value").type == expected
            assert decoded.to_arrow("string").schema.field("value").type == pa.string()


def test_exports(service: LocalService, tmp_path: Path) -> None:
    defaults = {"parquet": pa.decimal128(38, 18), "csv": pa.string(), "jsonl": pa.string()}
    for numbers in (None, "decimal", "float", "string"):
        with service.client(numbers=numbers) as client:
            query, target = client.transactions(), tmp_path / str(numbers)
            target.mkdir()
            for path in (target / "parts/", target / "one.parquet"):
                export = query.to_parquet(f"{path}/" if not path.suffix else path)
                assert _type(pq.read_table(export.parts[0])) == (TYPES[numbers] if numbers else defaults["parquet"])
            export = asyncio.run(query.to_parquet_async(target / "async.parquet"))
            assert _type(pq.read_table(export.parts[0])) == TYPES[numbers]
            query.to_json(target / "rows.jsonl")
            row = json.loads((target / "rows.jsonl").read_text().splitlines()[0])
            assert isinstance(row["amount"], float if numbers == "float" else str)
            query.to_csv(target / "explicit.csv", numbers="string")
            exact = (target / "explicit.csv").read_bytes()
            query.to_csv(target / "rows.csv")
            assert ((target / "rows.csv").read_bytes() == exact) == (numbers in (None, "string"))


def test_sync(service: LocalService) -> None:
    duckdb = pytest.importorskip("duckdb")
    with service.client(numbers="string") as client, duckdb.connect() as connection:
        client.transactions().sync(connection, table="t", settle=1)
        client.transactions().sync(connection, table="u", settle=1, numbers="float")
        types = connection.sql(
            "select table_name, data_type from information_schema.columns where column_name='amount'"
        )
        assert dict(types.fetchall()) == {"t": "VARCHAR", "u": "DOUBLE"}


def test_variable(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINFRAME_NUMBERS", "float")
    with service.client() as client:
        assert client.numbers == "float"
        assert "float" in client._repr_html_()
        assert _type(client.transactions().to_arrow()) == TYPES["float"]
        assert client.with_options(numbers=None).numbers is None
    assert service.client(numbers="decimal").numbers == "decimal"
    monkeypatch.setenv("CHAINFRAME_NUMBERS", "exact")
    with pytest.raises(cf.ConfigError, match='CHAINFRAME_NUMBERS must be decimal, float or string; got "exact"'):
        service.client()


@pytest.mark.parametrize("bad", ["exact", 5, "Decimal", b"float", True])
def test_malformed(service: LocalService, bad: Any) -> None:
    for make in (service.client, service.client().with_options):
        with pytest.raises(cf.ConfigError, match='numbers must be "decimal", "float", "string" or None'):
            make(numbers=bad)


def test_pickled_client(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    client = service.client(numbers="string")
    assert pickle.loads(pickle.dumps(client)).numbers == "string"
    query = pickle.loads(pickle.dumps(client.transactions()))
    assert _type(query.to_arrow()) == TYPES["string"]


def test_command(service: LocalService, tmp_path: Path) -> None:
    names = ("api_key", "secret_key", "passphrase")
    settings = {f"CHAINFRAME_{name.upper()}": getattr(service, name) for name in names}
    environment = {**os.environ, **settings, "CHAINFRAME_BASE_URL": service.url, "CHAINFRAME_NUMBERS": "float"}

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "chainframe", "transactions", *options]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert isinstance(json.loads(run().splitlines()[0])["amount"], float)
    assert isinstance(json.loads(run("--numbers", "string").splitlines()[0])["amount"], str)
    followed = run("--follow", "--poll", "none", "--start", "beginning", "--settle", "1")
    assert isinstance(json.loads(followed.splitlines()[0])["amount"], float)
    for path in ("parts/", "one.parquet"):
        run("-o", f"{tmp_path}/{path}")
    assert _type(pq.read_table(next((tmp_path / "parts").glob("*.parquet")))) == TYPES["float"]
    assert _type(pq.read_table(tmp_path / "one.parquet")) == TYPES["float"]


@pytest.mark.parametrize("numbers", ["decimal", "float", "string"])
def test_neighbors_get_the_type_of_the_client(service: LocalService, numbers: Numbers) -> None:
    narwhals_type = {"decimal": nw.Decimal, "float": nw.Float64, "string": nw.String}[numbers]
    # The interchange protocol has no decimals: 2 is a double, 21 a text.
    interchange_kind = {"decimal": 2, "float": 2, "string": 21}[numbers]
    with service.client(numbers=numbers) as client:
        query = client.transactions(max_items=5)
        for result in (query, query.collect()):
            assert isinstance(from_native(result).schema["amount"], narwhals_type)
            assert int(result.__dataframe__().get_column_by_name("amount").dtype[0]) == interchange_kind


def test_number_that_does_not_fit_names_the_setting_of_the_client() -> None:
    long = "1" + "0" * 60
    with LocalService(transactions=0, data={"transactions": [{"tx_id": "0x1", "amount": long}]}) as service:
        with service.client() as client, pytest.raises(cf.NumericOverflowError, match="another method that takes it"):
            client.transactions().to_pandas()
        with service.client(numbers="string") as client:
            query = client.transactions()
            assert query.to_pandas().amount[0] == long
            assert from_native(query.collect())["amount"][0] == long
