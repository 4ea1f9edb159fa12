"""Recipes of docs/guide/integrations.md, run unchanged, and the data they write."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
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
from conftest import ENVIRONMENT
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs" / "guide" / "integrations.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
BEGIN = PAGE.partition("```python\n")[2].partition("```")[0]
KEYS = ["zone_block_height", "zone_tx_hash", "main_tx_hash", "token_contract_address", "token_id", "value_raw"]

# The least and the most that a column of amounts holds, and raw integers beyond every type of a database.
NUMBERS = [
    (Decimal("0.000000000000000001"), 1),
    (Decimal("99999999999999999999.999999999999999999"), 2**256 - 1),
    (Decimal("-99999999999999999999.999999999999999999"), -(2**255)),
    (Decimal(9007199254740993), 2**53 + 1),
    (Decimal(0), 0),
    (None, None),
]

# Of the libraries among themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    """A service with many cross-chain transactions, and with numbers of every size."""
    with LocalService(transactions=4_000, seed=11) as running:
        gain(running, *NUMBERS)
        yield running


def gain(service: LocalService, *numbers: tuple[Decimal | None, int | None]) -> None:
    """Add cross-chain transactions with these numbers: the first to the newest block, the others to new blocks."""
    with service.client() as client:
        rows = client.cross_chain_transactions().to_dicts()
    newest = max(rows, key=lambda row: row["zone_block_height"])
    for index, (value, value_raw) in enumerate(numbers):
        height = newest["zone_block_height"] + index
        changed = {"zone_block_height": height, "zone_tx_hash": f"0x{len(rows):064x}"}
        rows.insert(0, {**newest, **changed, "value": value, "value_raw": value_raw})
    service.load("cross_chain_transactions", rows)


@pytest.fixture
def run(busy: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a recipe in an empty folder and return the stored rows, in a defined order."""
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
        assert in_order(connection.sql("from cross_chain").to_arrow_table()) == expected


@pytest.mark.skipif(postgres.INITDB is None, reason="PostgreSQL is not installed")
def test_postgresql(run: Any, monkeypatch: pytest.MonkeyPatch, client: cf.Client) -> None:
    with postgres.running() as url:
        monkeypatch.setenv("DATABASE_URL", url)
        expected = run("PostgreSQL")
        run("PostgreSQL")
        with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("select *, value::text as digits from cross_chain")
            table = cursor.fetch_arrow_table()
            digits = table["digits"].cast(pa.decimal128(38, 18))
            position = table.schema.get_field_index("value")
            exact = table.drop_columns(["digits"]).set_column(position, "value", digits)
            assert in_order(exact) == expected
            cursor.execute("select sum(value)::text, sum(value_raw::numeric)::text from cross_chain")
            with localcontext(prec=200):
                totals = [sum(Decimal(row[name] or 0) for row in expected) for name in ("value", "value_raw")]
                assert [Decimal(text) for text in cursor.fetchall()[0]] == totals
            # Lists, flags and doubles have their own types there.
            for name, query in (("logs", client.logs(sample_of(client))), ("tokens", client.tokens())):
                cursor.adbc_ingest(name, query.to_arrow_batch_reader(), mode="create")
                cursor.execute(f"select count(*) from {name}")
                assert cursor.fetchall() == [(len(query.collect()),)]
            cursor.execute("select pg_typeof(topics)::text from logs limit 1")
            assert cursor.fetchall() == [("text[]",)]


@pytest.mark.skipif(postgres.INITDB is None, reason="PostgreSQL is not installed")
def test_failed_write_leaves_existing_data_unchanged(
    run: Any, busy: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(title: str, every: int) -> None:
        busy.faults = [{"kind": "status", "status": 401, "code": "50113", "every": every}]
        names: dict[str, Any] = {}
        with pytest.raises(Exception, match="50113"):
            exec(compile(BEGIN + RECIPES[title], title, "exec"), names)
        busy.faults = []
        query = names.get("newer", names["query"])
        assert isinstance(query.last_error, cf.AuthenticationError)

    with postgres.running() as url:
        monkeypatch.setenv("DATABASE_URL", url)
        expected = run("PostgreSQL")
        fail("PostgreSQL", every=2)
        with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("select count(*) from cross_chain")
            assert cursor.fetchall() == [(len(expected),)]
    expected = run("Delta Lake")
    fail("Delta Lake", every=1)
    assert in_order(deltalake.DeltaTable("cross-chain-delta").to_pyarrow_table()) == expected
    assert deltalake.DeltaTable("cross-chain-delta").version() == 0


def sample_of(client: cf.Client) -> list[str]:
    return [transaction.tx_id or "" for transaction in client.transactions(max_items=40)]


def test_parquet(run: Any) -> None:
    expected = run("Parquet")
    assert in_order(pyarrow.parquet.read_table("cross-chain.parquet")) == expected
    parts = pyarrow.dataset.dataset("cross-chain", partitioning="hive").to_table()
    assert in_order(parts.select(list(expected[0]))) == expected
    assert len(list(Path("cross-chain").iterdir())) == 2


def test_delta_lake(run: Any, busy: LocalService) -> None:
    first = run("Delta Lake")
    assert in_order(deltalake.DeltaTable("cross-chain-delta").to_pyarrow_table()) == first
    gain(busy, *NUMBERS)
    expected = run("Delta Lake")
    assert len(expected) == len(first) + len(NUMBERS)
    assert in_order(deltalake.DeltaTable("cross-chain-delta").to_pyarrow_table()) == expected
    assert deltalake.DeltaTable("cross-chain-delta").version() == 1


@pytest.mark.skipif(ENVIRONMENT == "lowest", reason="dlt would bring a hundred other libraries")
def test_dlt(run: Any, busy: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))
    first = run("dlt")
    gain(busy, *NUMBERS)
    expected = run("dlt")
    assert len(expected) == len(first) + len(NUMBERS)
    with duckdb.connect("pipeline.duckdb") as connection:
        columns = ", ".join(expected[0])
        table = connection.sql(f"select {columns} from chain.cross_chain").to_arrow_table()
    # The newest height is loaded if the chain is known to be longer.
    found = in_order(table)
    reached = max(row["zone_block_height"] for row in found)
    assert found == [row for row in expected if row["zone_block_height"] <= reached]
    assert reached >= sorted({row["zone_block_height"] for row in expected})[-2]
