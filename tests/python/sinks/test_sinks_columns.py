"""Columns and numbers of a table of `sync`, and what a list costs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest

import chainframe as cf
from chainframe.sinks.sync import TableForm, run
from chainframe.sinks.targets import sink_of
from chainframe.testing import Fault, LocalService
from strict_server import StrictServer, page_of
from sync_places import EVENTS, FINAL, TABLE, Query, execute, opened, others, stored, synced

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def test_columns_and_numbers_are_those_of_the_first_run(place: tuple[str, str]) -> None:
    form = TableForm(columns=("height", "tx_id", "amount"), numbers="string")
    synced(place, EVENTS[:3], form)
    with pytest.raises(cf.ExportError, match=r"was made with other columns .*string.*; pass those, or reset=True"):
        synced(place)
    synced(place, form=form)
    assert stored(place) == FINAL
    if place[0] == "delta":
        row = deltalake.DeltaTable(place[1]).to_pyarrow_dataset().to_table().to_pylist()[0]
        assert row.keys() == {"height", "tx_id", "amount"}
        assert row["amount"] == "0.5"
    else:
        assert others(place, f'select * from "{TABLE}" order by 1, 2')[0] == (1, "0x10", "0.5")
    synced(place, reset=True)
    assert stored(place) == FINAL


def test_columns_without_the_height_and_unknown_ones_are_rejected_before_a_request() -> None:
    with LocalService(transactions=50) as service, service.client() as client, duckdb.connect() as connection:
        sync: Any = client.transactions().sync
        cases: list[tuple[dict[str, Any], str]] = [
            ({"columns": ["tx_id"]}, r"columns \(tx_id\) must contain the height"),
            ({"columns": ["height", "hight"]}, "hight"),
            ({"numbers": "exact"}, "numbers must be one of"),
            ({"reset": "yes"}, "reset must be True or False"),
            ({"table": 3}, "table must be a string; got int"),
        ]
        for options, message in cases:
            with pytest.raises(cf.InvalidParameterError, match=message):
                sync(connection, **({"table": "t"} | options))
        with pytest.raises(TypeError, match="columns"):
            sync(connection, table="t", colums=["height"])
        assert service.request_count == 0


LARGE = [
    {"token_contract_address": "0xc", "tx_id": f"0x{height}", "height": height, "amount": str(2**256 - 1)}
    for height in range(40, 0, -1)
]


def test_amount_beyond_a_decimal_is_stored_as_text(place: tuple[str, str]) -> None:
    data = {"token_transfers": LARGE}
    table = None if place[0] == "delta" else TABLE
    with LocalService(transactions=50, data=data) as service, service.client(rate_limit=None) as client:
        target = opened(place)
        with pytest.raises(cf.NumericOverflowError, match='pass numbers="string"'):
            client.token_transfers("0xc").sync(target, table=table)
        client.token_transfers("0xc").sync(target, table=table, numbers="string")
        if place[0] != "delta":
            target.close()
    if place[0] == "delta":
        amounts = deltalake.DeltaTable(place[1]).to_pyarrow_dataset().to_table()["amount"].unique().to_pylist()
    else:
        amounts = [row[0] for row in others(place, f'select distinct amount from "{TABLE}"')]
    assert amounts == [str(2**256 - 1)]


def test_amount_beyond_a_decimal_in_a_table_with_rows_names_reset(tmp_path: Path) -> None:
    place = ("duckdb", str(tmp_path / "x"))
    synced(place, EVENTS[:2])
    overflow = cf.NumericOverflowError('amount does not fit; pass numbers="string"', column="amount", row=3, text="9")
    with closing(opened(place)) as target, pytest.raises(cf.NumericOverflowError, match="reset=True too") as caught:
        run(Query(EVENTS, overflow), sink_of(target, TABLE), 12)
    assert (caught.value.column, caught.value.row, caught.value.text) == ("amount", 3, "9")
    assert stored(place) == FINAL


@pytest.mark.parametrize("kind", ["text", "numeric", "double precision", "date"])
@pytest.mark.parametrize("database", ["duckdb", "postgresql"])
def test_type_of_the_height_that_others_changed_is_no_wrong_height(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, kind: str
) -> None:
    where = str(tmp_path / "x") if database == "duckdb" else request.getfixturevalue("url")
    synced((database, where), EVENTS[:3])
    change = "varchar" if (kind, database) == ("text", "duckdb") else kind
    conversion = "date '2026-01-01' + cast(height as integer)" if kind == "date" else f"cast(height as {change})"
    others((database, where), f'alter table "{TABLE}" alter height type {change} using {conversion}')
    if database == "postgresql" or kind == "date":
        with pytest.raises(cf.ExportError) as raised:
            synced((database, where))
        assert not raised.value.retryable
        count = others((database, where), f'select count(*) from "{TABLE}"')
        assert count == [(6,)]
    else:
        synced((database, where))
        assert sorted((int(height), tx_id) for height, tx_id in stored((database, where))) == FINAL


@pytest.mark.parametrize(
    ("column", "kind"),
    [("amount", "text"), ("tx_id", "bytea"), ("transaction_time", "bigint")],
)
def test_type_of_a_column_that_others_changed_is_an_export_error(url: str, column: str, kind: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, f'alter table "{TABLE}" drop {column}', f'alter table "{TABLE}" add {column} {kind}')
    with pytest.raises(cf.ExportError, match=f"column {column} has type {kind}, and sync stores "):
        synced(place)
    assert len(stored(place)) == 6


def test_types_that_the_driver_cannot_read_are_an_export_error(url: str) -> None:
    with pytest.raises(cf.ExportError, match="set quote_all_identifiers = off"):
        synced(("postgresql", f"{url}&options=-cquote_all_identifiers%3Don"))


def test_long_list_of_an_address_takes_hardly_more_requests_than_pages() -> None:
    arrow: Any = pytest.importorskip("pyarrow")
    count, address = 30_000, "0x" + "ab" * 20
    heights = [18_000_000 + (row * row // 20_000 if row % 3 else row) for row in range(count)]
    heights.sort(reverse=True)
    columns: dict[str, Any] = {
        "tx_id": [f"0x{row:064x}" for row in range(count, 0, -1)],
        "block_hash": [f"0x{height:064x}" for height in heights],
        "height": heights,
        "transaction_time": [1_769_000_000_000 + height for height in heights],
        "from_address": [address] * count,
        "to_address": ["0xb"] * count,
        "amount": ["1"] * count,
        "state": ["success"] * count,
        "symbol": ["X"] * count,
    }
    data = {"address_transactions": arrow.table(columns)}
    with LocalService(transactions=0, data=data) as service, service.client(rate_limit=None) as client:
        with duckdb.connect() as connection:
            synced = client.address_transactions(address, start_height=18_000_000).sync(connection, table="t")
            rows = connection.sql("select tx_id from t order by tx_id").fetchall()
        assert synced.requests == service.request_count <= 1.1 * count / 50
    expected = [tx for tx, height in zip(columns["tx_id"], heights, strict=True) if height < heights[0]]
    assert [row[0] for row in rows] == sorted(expected)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), cf.TransportError("gone")])
def test_what_arrived_before_an_interrupt_is_committed(place: tuple[str, str], error: BaseException) -> None:
    target = opened(place)
    with pytest.raises(type(error)):
        run(Query(EVENTS[:4], error), sink_of(target, None if place[0] == "delta" else TABLE), 12)
    if place[0] != "delta":
        target.close()
    assert synced(place).rows_added == 4
    assert stored(place) == FINAL


def test_error_of_a_run_has_no_advice_of_a_follower(tmp_path: Path) -> None:
    fault: Fault = {"kind": "status", "status": 503, "times": 1}
    with LocalService(transactions=50, faults=[fault]) as service, service.client(max_retries=0) as client:
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            client.blocks().sync(tmp_path / "x.duckdb", table="t")
        assert not any("cursor" in note for note in getattr(caught.value, "__notes__", []))
        rows = client.blocks().sync(tmp_path / "x.duckdb", table="t").rows_added
        service.faults = [fault]
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            client.blocks().sync(tmp_path / "x.duckdb", table="t")
        notes = [note for note in caught.value.__notes__ if "committed" in note or "cursor" in note]
        assert notes == [f"{rows} rows are committed; the same call continues"]


def test_records_that_contradict_the_arguments_are_reported() -> None:
    def row(number: int, sender: str) -> dict[str, str]:
        return {"txId": f"0x{number}", "blockHash": f"0x{number}", "height": f"{number}", "from": sender, "to": "0xbb"}

    rows = [row(30, "0xcc"), *(row(number, "0xaa") for number in range(29, 0, -1))]
    with StrictServer() as server, duckdb.connect() as connection:
        server.on("address_transactions", page_of("address_transactions", rows))
        server.on("transactions", page_of("transactions", [{"txid": "0x99", "blockHash": "0x99", "height": "99"}]))
        query = server.client().address_transactions("0xaa")
        with pytest.warns(cf.IncompleteResultWarning, match="address"):
            result = query.sync(connection, table="t")
        assert (result.rows_added, result.report.dropped > 0, result.report.complete) == (28, True, False)
        assert connection.sql("select count(*) from t").fetchall() == [(28,)]
        # What was read is stored before the error.
        strict = server.client().with_options(strict=True).address_transactions("0xaa")
        with pytest.raises(cf.IncompleteResultError, match="address"):
            strict.sync(connection, table="u")
        assert connection.sql("select count(*) from u").fetchall() == [(28,)]
