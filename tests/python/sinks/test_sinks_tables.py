"""Tables of `sync` that others drop, empty or change, and `reset=True`."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import deltalake
import duckdb
import pytest
from deltalake.schema import Field, PrimitiveType
from pyarrow import compute as pc

import chainframe as cf
from chainframe.sinks.columns import sum_of
from chainframe.sinks.sync import TableForm, _SyncedList, run
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService, make_records
from sync_places import EVENTS, FINAL, TABLE, Query, batch, execute, others, stored, synced

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def rewritten(rows: list[dict[str, Any]]) -> Callable[[deltalake.DeltaTable], None]:
    return lambda table: deltalake.write_deltalake(
        table, make_records("transactions", rows).to_arrow(), mode="overwrite"
    )


EMPTIED: dict[str, Any] = {
    "sql": [f'drop table "{TABLE}"', f'alter table "{TABLE}" rename to kept', f'delete from "{TABLE}"'],
    "delta": [lambda table: shutil.rmtree(table.table_uri.removeprefix("file://")), lambda table: table.delete()],
}


CHANGED: dict[str, Any] = {
    "sql": [
        f'delete from "{TABLE}" where height = 2',
        f'delete from "{TABLE}" where height > 3',
        f'insert into "{TABLE}" select * from "{TABLE}" where height = 1',
        f'update "{TABLE}" set height = height + 100',
    ],
    "delta": [
        lambda table: table.restore(0),
        lambda table: table.delete("height = 2"),
        rewritten([{"tx_id": "0x1", "height": 1}]),
        # As many rows.
        rewritten([{"tx_id": f"0x{row}", "height": 100 + row} for row in range(8)]),
    ],
}


def apply(place: tuple[str, str], case: dict[str, Any], number: int) -> None:
    changes = case["delta" if place[0] == "delta" else "sql"]
    if number >= len(changes):
        pytest.skip("no such change of this target")
    if place[0] == "delta":
        changes[number](deltalake.DeltaTable(place[1]))
    else:
        others(place, changes[number])


@pytest.mark.parametrize("number", range(3))
def test_table_that_is_gone_or_emptied_is_begun_again(place: tuple[str, str], number: int) -> None:
    synced(place, EVENTS[:4])
    apply(place, EMPTIED, number)
    assert synced(place).rows_added == 12
    assert stored(place) == FINAL
    assert synced(place).commits == 0


@pytest.mark.parametrize("number", range(4))
def test_table_that_others_changed_is_an_error_and_reset_fetches_it_again(place: tuple[str, str], number: int) -> None:
    synced(place, EVENTS[:2])
    synced(place, EVENTS[:4])
    apply(place, CHANGED, number)
    for _ in range(2):
        with pytest.raises(cf.ExportError, match=r"others have changed it; pass reset=True to fetch the table again"):
            synced(place)
    assert synced(place, reset=True).rows_added == 12
    assert stored(place) == FINAL
    assert synced(place).commits == 0


# Each leaves as many rows, and the greatest height.
MOVED = [
    [f'update "{TABLE}" set height = 3 where height = 2'],
    [f'delete from "{TABLE}" where height = 2', f'insert into "{TABLE}" select * from "{TABLE}" where height = 1'],
    [f'update "{TABLE}" set height = 4'],
    [f'update "{TABLE}" set height = null where height = 2'],
]


@pytest.mark.parametrize("statements", MOVED)
@pytest.mark.parametrize("database", ["duckdb", "postgresql"])
def test_rows_that_others_moved_to_other_heights_are_an_error(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, statements: list[str]
) -> None:
    where = str(tmp_path / "x") if database == "duckdb" else request.getfixturevalue("url")
    place = (database, where)
    synced(place, EVENTS[:2])
    # Rows above a height are deleted, and others added; and a run without news.
    undo = SimpleNamespace(after_height=1, cursor="undone", queried=None)
    events = [*EVENTS[:2], undo, *(batch(height) for height in (2, 3, 4))]
    synced(place, events)
    assert synced(place, events).commits == 0
    others(place, *statements)
    for _ in range(2):
        message = "has 8 rows up to height 4, of other heights than sync left: others have changed it; pass reset=True"
        with pytest.raises(cf.ExportError, match=message):
            synced(place)
    assert synced(place, reset=True).rows_added == 12
    assert stored(place) == FINAL
    assert synced(place).commits == 0


def replaced(table: deltalake.DeltaTable, predicate: str, kept: int) -> None:
    """Replace some rows by copies of those of another height."""
    copies = table.to_pyarrow_dataset().to_table(filter=pc.field("height") == kept)
    table.delete(predicate)
    deltalake.write_deltalake(table, copies, mode="append")


MOVED_IN_DELTA: dict[str, Callable[[deltalake.DeltaTable], object]] = {
    "updated": lambda table: table.update(updates={"height": "3"}, predicate="height = 2"),
    "replaced": lambda table: replaced(table, "height = 2", 1),
    "nulls": lambda table: table.update(updates={"height": "null"}, predicate="height = 2"),
    "updated and compacted": lambda table: (
        table.update(updates={"height": "4"}, predicate="height = 3"),
        table.optimize.compact(),
    ),
}


@pytest.mark.parametrize("is_between", [False, True], ids=["before a run", "within a run"])
@pytest.mark.parametrize("change", MOVED_IN_DELTA)
def test_rows_that_others_moved_in_a_delta_table_are_an_error(tmp_path: Path, change: str, is_between: bool) -> None:  # noqa: FBT001
    place = ("delta", str(tmp_path / "t"))

    def move() -> None:
        MOVED_IN_DELTA[change](deltalake.DeltaTable(place[1]))

    synced(place, EVENTS[:2])
    if is_between:
        run(Query(EVENTS[:4], during=move), sink_of(place[1], None), 12, commit_rows=2)
    else:
        undo = SimpleNamespace(after_height=1, cursor="undone", queried=None)
        events = [*EVENTS[:2], undo, *(batch(height) for height in (2, 3, 4))]
        synced(place, events)
        assert synced(place, events).commits == 0
        move()
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="of other heights than sync left: others have changed it; pass reset"):
            synced(place)
    assert synced(place, reset=True).rows_added == 12
    assert stored(place) == FINAL
    assert synced(place).commits == 0


def test_heights_of_a_delta_table_are_read_only_if_others_have_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("delta", str(tmp_path / "t"))
    read = mock.Mock(side_effect=sum_of)
    monkeypatch.setattr("chainframe.sinks.delta.sum_of", read)
    for events in (EVENTS[:2], EVENTS[:2], EVENTS[:4], EVENTS):
        synced(place, events, commit_rows=2)
    assert read.call_count == 0
    deltalake.DeltaTable(place[1]).optimize.compact()
    assert synced(place).commits == 0
    assert read.call_count == 1
    assert stored(place) == FINAL


@pytest.mark.parametrize("database", ["duckdb", "postgresql"])
def test_position_whose_type_others_changed_names_reset(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    where = str(tmp_path / "x") if database == "duckdb" else request.getfixturevalue("url")
    synced((database, where), EVENTS[:2])
    others((database, where), "alter table _chainframe alter column rows type varchar(9)")
    with pytest.raises(cf.ExportError, match="the stored position is not one that sync wrote; pass reset=True"):
        synced((database, where))


def test_table_truncated_on_postgresql_is_begun_again(url: str) -> None:
    synced(("postgresql", url))
    execute(url, f'truncate "{TABLE}"')
    assert synced(("postgresql", url)).rows_added == 12


def test_reset_of_a_table_of_another_program_is_rejected(tmp_path: Path) -> None:
    place = ("duckdb", str(tmp_path / "x"))
    others(place, f'create table "{TABLE}" (height bigint)', f'insert into "{TABLE}" values (1)')
    with pytest.raises(cf.ExportError, match="was not made by sync"):
        synced(place, reset=True)
    assert others(place, f'select * from "{TABLE}"') == [(1,)]


def test_reset_without_records_leaves_an_empty_table(place: tuple[str, str]) -> None:
    synced(place)
    assert synced(place, [], reset=True).commits == 1
    assert stored(place) == []
    assert synced(place).rows_added == 12
    assert stored(place) == FINAL


def test_reset_keeps_what_others_made_of_the_table_unless_its_columns_differ(url: str) -> None:
    place = ("postgresql", url)
    synced(place, EVENTS[:3])
    execute(url, f'create view v as select * from "{TABLE}"')
    synced(place, reset=True)
    assert execute(url, "select count(*) from v") == [(12,)]
    with pytest.raises(cf.ExportError, match="other objects depend on it"):
        synced(place, form=TableForm(numbers="string"), reset=True)
    assert stored(place) == FINAL


def test_reorganization_deeper_than_remembered_is_passed_with_reset() -> None:
    with LocalService(transactions=600, seed=3) as service, service.client(rate_limit=None) as client:
        query = client.blocks()
        with duckdb.connect() as connection:
            query.sync(connection, table="t")
            service.growth, service.reorg = 1, (1, 200)
            query.first()
            service.growth, service.reorg = 40, None
            query.first()
            service.growth = 0
            with pytest.raises(cf.ReorganizationError, match="with sync, pass reset=True") as caught:
                query.sync(connection, table="t")
            assert caught.value.height is not None
            query.sync(connection, table="t", reset=True)
            rows = connection.sql("select height, hash from t order by height desc").fetchall()
        assert rows == [(block.height, block.hash) for block in query.collect()][-len(rows) :]


def test_error_names_a_member_that_the_service_sends_no_more() -> None:
    rows = [{"height": height, "hash": f"0x{height}", "miner": "0x1"} for height in range(60, 0, -1)]
    without = [{**row, "miner": None} for row in rows]
    with LocalService(data={"blocks": rows}) as service, service.client() as client, duckdb.connect() as connection:
        client.blocks().sync(connection, table="t")
        service.load("blocks", without)
        with pytest.raises(cf.ReorganizationError, match=r"no record has .*miner.*: if the service sent this before"):
            client.blocks().sync(connection, table="t")
        service.load("blocks", rows)
        client.blocks().sync(connection, table="t")
        assert connection.sql("select count(miner) from t").fetchall() == [(59,)]


def test_list_that_cannot_be_read_in_order_of_heights_names_what_keeps_it() -> None:
    with LocalService(transactions=120, max_result_window=10) as service, service.client(rate_limit=None) as client:
        token = client.tokens().first()
        assert token is not None
        with pytest.raises(cf.FollowGapError, match=r"in place of sync, to_parquet_series\(settle=\.\.\.\)") as raised:
            client.token_transfers(token.token_contract_address or "").sync(duckdb.connect(), table="t")
        assert raised.value.first_height == 0


def test_empty_list_after_rows_is_an_error_until_it_has_records_again() -> None:
    with LocalService(transactions=300, seed=3) as service, service.client(rate_limit=None) as client:
        query = client.blocks()
        follow = query.follow(start="beginning", poll=None)
        assert sum(len(records) for records in follow) > 0
        with LocalService(transactions=0) as empty, empty.client(rate_limit=None) as other, duckdb.connect() as target:
            added = query.sync(target, table="t").rows_added
            for _ in range(2):
                with pytest.raises(cf.ReorganizationError, match="the list is empty, and had records up to height"):
                    other.blocks().sync(target, table="t")
            assert query.sync(target, table="t").rows_added == 0
            assert target.sql("select count(*) from t").fetchall() == [(added,)]


def test_column_that_a_user_added_stays(place: tuple[str, str]) -> None:
    synced(place, EVENTS[:3])
    if place[0] == "delta":
        table = deltalake.DeltaTable(place[1])
        table.alter.add_columns([Field("note", PrimitiveType("string"), nullable=True)])
    else:
        others(place, f'alter table "{TABLE}" add column note text')
    events = [*EVENTS[:4], SimpleNamespace(after_height=3, cursor="undo"), *EVENTS[3:]]
    synced(place, events[:4])
    synced(place, events)
    assert stored(place) == FINAL


def test_log_of_a_delta_table_that_was_cleaned_up_keeps_the_position(tmp_path: Path) -> None:
    place = ("delta", str(tmp_path / "x"))
    synced(place, EVENTS[:3])
    table = deltalake.DeltaTable(place[1])
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    for _ in range(2):
        time.sleep(1.1)
        table = deltalake.DeltaTable(place[1])
        table.create_checkpoint()
        table.cleanup_metadata()
    assert synced(place).rows_added == 6
    assert stored(place) == FINAL


@pytest.mark.parametrize("column", ["cursor", "rows", "form"])
@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_position_that_others_set_to_null_names_reset(url: str, tmp_path: Path, kind: str, column: str) -> None:
    place = (kind, url if kind == "postgresql" else str(tmp_path / "x"))
    synced(place, EVENTS[:3])
    if column == "cursor":
        others(place, "alter table _chainframe alter cursor drop not null")
    others(place, f"update _chainframe set {column} = null")
    with pytest.raises(cf.ExportError) as caught:
        synced(place)
    problem = "the stored position is not one that sync wrote; pass reset=True to fetch the table again"
    assert str(caught.value) == f"{TABLE}: {problem}"
    synced(place, reset=True)
    assert stored(place) == FINAL


def test_delta_table_that_lost_its_position_names_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("delta", str(tmp_path / "x"))
    monkeypatch.setattr("chainframe.sinks.delta.MAX_PROPERTY", 0)
    synced(place, EVENTS[:3])
    monkeypatch.setattr(deltalake.DeltaTable, "history", lambda *_: [])
    with pytest.raises(cf.ExportError, match="no longer holds the last commit of sync; pass reset=True"):
        synced(place)
    synced(place, reset=True)
    assert stored(place) == FINAL


def test_panic_of_a_library_is_an_export_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process has it that was forked after its parent had used the library."""

    class PanicException(BaseException):
        pass

    def panic(_location: str) -> bool:
        raise PanicException("Forked process detected; make sure to use spawn or forkserver")

    monkeypatch.setattr(deltalake.DeltaTable, "is_deltatable", panic)
    with pytest.raises(cf.ExportError, match=r"x: Forked process detected; make sure to use spawn") as caught:
        synced(("delta", str(tmp_path / "x")))
    assert not caught.value.retryable


@pytest.mark.parametrize("step", range(1, 7))
def test_interrupt_while_an_event_is_taken_leaves_rows_and_cursor_of_one_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    place = ("duckdb", str(tmp_path / "x.duckdb"))
    highest = _SyncedList._highest
    steps = iter(range(1, 7))

    def interrupted(self: _SyncedList, rows: Any) -> int | None:
        if next(steps) == step:
            raise KeyboardInterrupt
        return highest(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(_SyncedList, "_highest", interrupted)
        with pytest.raises(KeyboardInterrupt):
            synced(place)
    assert synced(place).rows_added == 12 - 2 * (step - 1)
    assert stored(place) == FINAL
