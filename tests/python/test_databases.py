"""The recipes of docs/guide/databases.md, run as they stand, and what is then in the databases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import adbc_driver_postgresql.dbapi
import deltalake
import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import chainframe as cf
import postgres
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "databases.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## ([^\n]+)\n.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
BEGIN = PAGE.partition("```python\n")[2].partition("```")[0]
KEYS = ["zone_block_height", "zone_tx_hash", "main_tx_hash", "token_contract_address", "token_id", "value_raw"]

# Of the libraries among themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    """A service with many crossings, and so with amounts of every kind."""
    with LocalService(transactions=4_000, seed=11) as running:
        yield running


@pytest.fixture
def run(busy: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs a recipe in an empty folder; gives what is asked for there, exactly, in an order of its own."""
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(busy, name))
    monkeypatch.setenv("CHAINFRAME_BASE_URL", busy.url)
    monkeypatch.chdir(tmp_path)

    def recipe(title: str) -> list[dict[str, Any]]:
        # dlt looks for the module of what it decorates.
        names: dict[str, Any] = {"__name__": __name__}
        exec(compile(BEGIN + RECIPES[title], title, "exec"), names)
        with busy.client() as client:
            return in_order(client.cross_chain_transactions().to_arrow())

    return recipe


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with times as numbers, since databases have them in their own units."""
    rows: list[dict[str, Any]] = table.to_pylist()
    assert len(rows) > 100
    return sorted(rows, key=lambda row: [str(row[key]) for key in KEYS])


def test_every_recipe_is_tested() -> None:
    assert list(RECIPES) == ["DuckDB", "PostgreSQL", "Parquet", "Delta Lake", "dlt"]


def test_duckdb(run: Any) -> None:
    expected = run("DuckDB")
    with duckdb.connect("chain.duckdb") as connection:
        assert in_order(connection.sql("from crossings").to_arrow_table()) == expected


@pytest.mark.skipif(postgres.INITDB is None, reason="PostgreSQL is not installed")
def test_postgresql(run: Any, monkeypatch: pytest.MonkeyPatch, client: cf.Client) -> None:
    with postgres.running() as url:
        monkeypatch.setenv("DATABASE_URL", url)
        expected = run("PostgreSQL")
        run("PostgreSQL")
        with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("select *, value::text as digits from crossings")
            table = cursor.fetch_arrow_table()
            digits = table["digits"].cast(pa.decimal128(38, 18))
            position = table.schema.get_field_index("value")
            exact = table.drop_columns(["digits"]).set_column(position, "value", digits)
            assert in_order(exact) == expected
            cursor.execute("select sum(value)::text from crossings")
            total = sum((row["value"] for row in expected if row["value"] is not None), start=0)
            assert pa.scalar(cursor.fetchall()[0][0]).cast(pa.decimal128(38, 18)).as_py() == total
            # Lists, flags and doubles have their own types there.
            for name, query in (("logs", client.logs(sample_of(client))), ("tokens", client.tokens())):
                cursor.adbc_ingest(name, query.reader(), mode="create")
                cursor.execute(f"select count(*) from {name}")
                assert cursor.fetchall() == [(len(query.collect()),)]
            cursor.execute("select pg_typeof(topics)::text from logs limit 1")
            assert cursor.fetchall() == [("text[]",)]


def sample_of(client: cf.Client) -> list[str]:
    return [transaction.tx_id or "" for transaction in client.transactions(max_items=40)]


def test_parquet(run: Any) -> None:
    expected = run("Parquet")
    assert in_order(pyarrow.parquet.read_table("crossings.parquet")) == expected
    parts = pyarrow.dataset.dataset("crossings", partitioning="hive").to_table()
    assert in_order(parts.select(list(expected[0]))) == expected
    assert len(list(Path("crossings").iterdir())) == 2


def test_delta_lake(run: Any) -> None:
    expected = run("Delta Lake")
    assert in_order(deltalake.DeltaTable("crossings-delta").to_pyarrow_table()) == expected


def test_dlt(run: Any, busy: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))
    first = run("dlt")
    # What is new comes with the second run, and nothing twice.
    busy.growth = 3
    with busy.client() as client:
        client.cross_chain_transactions(max_items=1).collect()
    busy.growth = 0
    expected = run("dlt")
    assert len(expected) > len(first)
    with duckdb.connect("pipeline.duckdb") as connection:
        columns = ", ".join(expected[0])
        table = connection.sql(f"select {columns} from chain.crossings").to_arrow_table()
        assert in_order(table) == expected
