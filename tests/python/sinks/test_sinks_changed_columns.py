"""Columns of a table of `sync` that others drop, rename or give another type."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaProtocolError

import chainframe as cf
from chainframe.testing import LocalService, make_records
from sets.test_sets import senders
from sync_places import TABLE, execute, others, synced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _pytest.fixtures import FixtureRequest

AMOUNTS = [Decimal(f"{number}.000000000000000001") for number in range(1, 7)]


def batch(height: int) -> Any:
    time = f"2026-01-01T00:00:00.00{height}Z"
    row = {"tx_id": f"0x{height}", "height": height, "amount": AMOUNTS[height - 1], "transaction_time": time}
    return SimpleNamespace(to_arrow=make_records("transactions", [row]).to_arrow, cursor=str(height))


EVENTS = [batch(height) for height in range(1, 7)]


@pytest.fixture
def where(request: FixtureRequest, tmp_path: Path, database: str) -> str:
    return str(tmp_path / "x") if database == "duckdb" else request.getfixturevalue("url")


@pytest.mark.parametrize(
    ("database", "change"),
    [
        ("duckdb", "alter amount type decimal(38, 2)"),
        ("duckdb", "alter amount type double"),
        ("duckdb", "alter transaction_time type timestamp_s using transaction_time::timestamp::timestamp_s"),
        ("duckdb", "alter transaction_time type timestamp"),
        ("duckdb", "alter transaction_time type date"),
        ("duckdb", "drop column tx_id"),
        ("duckdb", "rename height to chain_height"),
        ("postgresql", "alter amount type numeric(38, 2)"),
        ("postgresql", "alter transaction_time type timestamptz(0)"),
        ("postgresql", "alter transaction_time type timestamp"),
        ("postgresql", "alter amount type double precision"),
        ("postgresql", "drop column tx_id"),
        ("postgresql", "rename height to chain_height"),
    ],
)
def test_column_that_would_change_values_is_an_error_and_reset_makes_the_table_again(
    database: str, where: str, change: str
) -> None:
    synced((database, where), EVENTS[:3])
    others((database, where), f'alter table "{TABLE}" {change}')
    with pytest.raises(cf.ExportError, match=r"pass reset=True to (make|fetch) the table again"):
        synced((database, where), EVENTS)
    assert others((database, where), f'select count(*) from "{TABLE}"') == [(3,)]
    assert synced((database, where), EVENTS, reset=True).rows_added == 6
    found = others((database, where), f'select height, cast(amount as text) from "{TABLE}" order by height')
    assert found == [(height, str(amount)) for height, amount in enumerate(AMOUNTS, 1)]
    assert synced((database, where), EVENTS).commits == 0


@pytest.mark.parametrize(
    ("database", "change"),
    [
        ("duckdb", "alter amount type varchar"),
        ("duckdb", "alter height type hugeint"),
        ("duckdb", "alter transaction_time type timestamptz"),
        ("duckdb", "rename tx_id to TX_ID"),
        ("duckdb", "add column note union(number integer, text varchar)"),
        ("postgresql", "alter amount type numeric(38, 18)"),
        ("postgresql", "alter transaction_time type timestamptz(3)"),
        ("postgresql", "alter tx_id type varchar(80)"),
        ("postgresql", "add column note interval"),
    ],
)
def test_column_that_keeps_values_is_continued(database: str, where: str, change: str) -> None:
    synced((database, where), EVENTS[:3])
    others((database, where), f'alter table "{TABLE}" {change}')
    assert synced((database, where), EVENTS).rows_added == 3
    found = others((database, where), f'select height, cast(amount as text) from "{TABLE}" order by height')
    assert found == [(height, str(amount)) for height, amount in enumerate(AMOUNTS, 1)]


@pytest.mark.parametrize(
    ("database", "kind"), [("duckdb", "decimal(38, 18)"), ("postgresql", "numeric"), ("postgresql", "numeric(38, 18)")]
)
@pytest.mark.parametrize("column", ["amount", "tx_fee"])
def test_table_of_a_release_without_a_column_is_continued_once_it_is_added(
    database: str, where: str, kind: str, column: str
) -> None:
    synced((database, where), EVENTS[:3])
    others((database, where), f'alter table "{TABLE}" drop column {column}')
    added = rf"no column {column}: .* an earlier release made the table; add it, of the Arrow type decimal128\(38, 18\)"
    with pytest.raises(cf.ExportError, match=added):
        synced((database, where), EVENTS)
    others((database, where), f'alter table "{TABLE}" add column {column} {kind}')
    assert synced((database, where), EVENTS).rows_added == 3
    found = others((database, where), f'select height, cast(amount as text) from "{TABLE}" order by height')
    kept = 3 if column == "amount" else 0
    assert found == [(height, None if height <= kept else str(amount)) for height, amount in enumerate(AMOUNTS, 1)]


def test_domain_that_rounds_is_an_error(url: str) -> None:
    synced(("postgresql", url), EVENTS[:3])
    execute(url, "create domain cents as numeric(38, 2)", f'alter table "{TABLE}" alter amount type cents')
    with pytest.raises(cf.ExportError, match="column amount has 2 decimal places, and sync stores 18"):
        synced(("postgresql", url), EVENTS)


def cast(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind, safe=False))


@pytest.mark.parametrize(
    "change",
    [
        cast("amount", pa.float64()),
        cast("amount", pa.decimal128(38, 2)),
        cast("transaction_time", pa.date32()),
        cast("height", pa.string()),
        lambda table: table.drop_columns(["tx_id"]),
    ],
)
def test_delta_table_with_other_columns_is_made_again_with_reset(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    place = ("delta", str(tmp_path / "x"))
    synced(place, EVENTS[:3])
    table = change(deltalake.DeltaTable(place[1]).to_pyarrow_table())
    deltalake.write_deltalake(place[1], table, mode="overwrite", schema_mode="overwrite")
    if pa.types.is_string(table["height"].type):
        # The values are those of sync.
        synced(place, EVENTS)
    else:
        with pytest.raises(cf.ExportError, match="pass reset=True to make the table again"):
            synced(place, EVENTS)
        assert synced(place, EVENTS, reset=True).rows_added == 6
    rows = deltalake.DeltaTable(place[1]).to_pyarrow_table().to_pylist()
    assert sorted((int(row["height"]), row["amount"]) for row in rows) == list(enumerate(AMOUNTS, 1))


def test_damaged_position_names_reset(tmp_path: Path) -> None:
    with (
        LocalService(transactions=50) as service,
        service.client() as client,
        duckdb.connect(tmp_path / "x") as connection,
    ):
        client.blocks().sync(connection, table="t")
        connection.execute("update _chainframe set cursor = 'x', rows = null")
        count = connection.sql("select count(*) from t").fetchall()
        with pytest.raises(cf.ExportError, match="pass reset=True"):
            client.blocks().sync(connection, table="t")
        connection.execute(f"update _chainframe set rows = {count[0][0]}")
        with pytest.raises(cf.ExportError, match="the stored position is not one that sync wrote; pass reset=True"):
            client.blocks().sync(connection, table="t")
        with pytest.raises(cf.InvalidParameterError, match="settle"):
            client.blocks().sync(connection, table="t", settle=-1)
        connection.execute("update _chainframe set rows = null")
        client.blocks().sync(connection, table="t", reset=True)
        assert connection.sql("select count(*) from t").fetchall() == count
        wallets = client.address_transactions(senders(service, 2))
        wallets.sync(connection, table="wallets")
        connection.execute("update _chainframe set cursor = 'x' where name = 'wallets'")
        with pytest.raises(cf.ExportError, match="the stored position is not one that sync wrote; pass reset=True"):
            wallets.sync(connection, table="wallets")
        connection.execute("""update _chainframe set cursor = '{"follow": 9}' where name = 'wallets'""")
        with pytest.raises(cf.ExportError, match=r"has unsupported version 9 .*; use the release that wrote it, or"):
            wallets.sync(connection, table="wallets")


@pytest.mark.parametrize("kind", ["duckdb", "delta"])
def test_table_of_another_query_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    target = tmp_path / ("x.duckdb" if kind == "duckdb" else "x")
    options: dict[str, Any] = {"table": "t"} if kind == "duckdb" else {}

    def rows() -> Any:
        if kind == "delta":
            return deltalake.DeltaTable(target).to_pyarrow_table()
        with duckdb.connect(target) as connection:
            return connection.sql("from t").to_arrow_table()

    with LocalService(transactions=50) as service, service.client() as client:
        client.blocks().sync(target, **options)
        before = rows()
        for query, theirs, ours in (
            (client.transactions(), "call blocks", "transactions"),
            (client.address_transactions(senders(service, 2)), "call blocks", "address_transactions"),
            (client.blocks(chain=service.main_chain), "chain ZONE_CHAIN", "MAIN"),
        ):
            problem = f"its position belongs to the {theirs}; this one is {ours}; name another table"
            with pytest.raises(cf.ExportError, match=f"has the records of another query: {problem}") as caught:
                query.sync(target, **options)
            assert "reset" not in str(caught.value)
        assert rows().equals(before)


def test_delta_table_with_features_that_pyarrow_lacks_is_continued(tmp_path: Path) -> None:
    place = ("delta", str(tmp_path / "x"))
    synced(place, EVENTS[:3])
    table = deltalake.DeltaTable(place[1])
    table.alter.add_feature(deltalake.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(DeltaProtocolError):
        deltalake.DeltaTable(place[1]).to_pyarrow_dataset()
    assert synced(place, EVENTS).rows_added == 3


def test_column_that_the_role_may_not_use_is_not_called_missing(url: str) -> None:
    synced(("postgresql", url), EVENTS[:3])
    columns = ", ".join(name for name in EVENTS[0].to_arrow().schema.names if name != "amount")
    execute(
        url,
        "drop role if exists narrow",
        "create role narrow",
        "grant usage, create on schema public to narrow",
        "grant select, insert, update, delete on _chainframe to narrow",
        f'grant select ({columns}), insert ({columns}) on "{TABLE}" to narrow',
    )
    with pytest.raises(cf.ExportError, match="permission denied"):
        synced(("postgresql", f"{url}&options=-crole%3Dnarrow"), EVENTS)
    assert execute(url, f'select count(*) from "{TABLE}"') == [(3,)]
