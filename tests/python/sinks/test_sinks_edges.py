"""`sync` beside others: tables that they change, their transactions, names and settings, and errors of databases."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import adbc_driver_postgresql.dbapi as postgresql
import deltalake
import duckdb
import pytest
from deltalake.exceptions import CommitFailedError
from deltalake.schema import Field, PrimitiveType

import chainframe as cf
import postgres
from chainframe.sinks import Synced
from chainframe.sinks.base import Form, run
from chainframe.sinks.contract import Change, name_parts
from chainframe.sinks.duckdb import DuckDbSink
from chainframe.sinks.postgresql import PostgresqlSink
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService, make_records
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
TABLE = "t t"


def batch(height: int) -> Any:
    rows = [{"tx_id": f"0x{height}{index}", "height": height, "amount": Decimal("0.5")} for index in range(2)]
    return SimpleNamespace(to_arrow=make_records("transactions", rows).to_arrow, cursor=str(height))


EVENTS = [batch(height) for height in range(1, 7)]
FINAL = sorted((height, f"0x{height}{index}") for height in range(1, 7) for index in range(2))


class Query:
    """A query whose follower delivers prepared events, and then may fail."""

    def __init__(self, events: list[Any], error: BaseException | None = None, wait: float = 0) -> None:
        self.events, self.error, self.wait = events, error, wait

    def follow(self, *, start: str, **_options: object) -> Any:
        first = 0 if start == "beginning" else 1 + [event.cursor for event in self.events].index(start)

        class Follow:
            report = SimpleNamespace(requests=1)
            cursor = self.events[-1].cursor if self.events else "beginning"

            def __iter__(_self) -> Iterator[Any]:  # noqa: N805
                yield from self.events[first:]
                time.sleep(self.wait)
                if self.error:
                    raise self.error

        return Follow()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if postgres.INITDB is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """A database without tables."""
    execute(server, "drop schema if exists app cascade", "drop schema public cascade", "create schema public")
    return server


def execute(url: str, *statements: str) -> list[Any]:
    with postgresql.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["duckdb", "delta", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    where = request.getfixturevalue("url") if request.param == "postgresql" else str(tmp_path / "table")
    return request.param, where


def opened(place: tuple[str, str]) -> Any:
    kind, where = place
    return {"duckdb": duckdb.connect, "delta": str, "postgresql": postgresql.connect}[kind](where)


def synced(place: tuple[str, str], events: list[Any] = EVENTS, form: Form | None = None, **options: Any) -> Synced:
    target = opened(place)
    try:
        return run(
            Query(events), sink_of(target, None if place[0] == "delta" else TABLE), 12, form or Form(), **options
        )
    finally:
        if place[0] != "delta":
            target.close()


def others(place: tuple[str, str], *statements: str) -> list[Any]:
    """Do what other users of the table do."""
    if place[0] == "postgresql":
        return execute(place[1], *statements)
    with closing(duckdb.connect(place[1])) as connection:
        return [connection.execute(statement) for statement in statements][-1].fetchall()


def stored(place: tuple[str, str]) -> list[tuple[Any, ...]]:
    if place[0] == "delta":
        rows = deltalake.DeltaTable(place[1]).to_pyarrow_dataset().to_table(columns=["height", "tx_id"]).to_pylist()
        return sorted(tuple(row.values()) for row in rows)
    return sorted(others(place, f'select height, tx_id from "{TABLE}"'))


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
        synced(place, form=Form(numbers="string"), reset=True)
    assert stored(place) == FINAL


def test_columns_and_numbers_are_those_of_the_first_run(place: tuple[str, str]) -> None:
    form = Form(columns=("height", "tx_id", "amount"), numbers="string")
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


def test_names_of_duckdb_are_those_of_the_database(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{tmp_path / 'wh.duckdb'}' as wh; create schema wh.raw; create schema app")
        for names in (
            ["Blocks", "blocks", "main.BLOCKS", "memory.main.blocks"],
            ["wh.raw.blocks", "WH.RAW.Blocks"],
            ["app.blocks", "APP.blocks"],
            ["wh.other"],
            ['"a.b"', '"A.B"'],
            ['q"uote'],
        ):
            counts = [run(Query(EVENTS), sink_of(connection, name), 12).rows_added for name in names]
            assert counts == [12] + [0] * (len(names) - 1)
        found = connection.sql("select table_catalog, table_schema, table_name from information_schema.tables")
        assert sorted(row for row in found.fetchall() if row[2] != "_chainframe") == [
            ("memory", "app", "blocks"),
            ("memory", "main", "Blocks"),
            ("memory", "main", "a.b"),
            ("memory", "main", 'q"uote'),
            ("wh", "main", "other"),
            ("wh", "raw", "blocks"),
        ]
        connection.execute("set search_path = 'app,main'")
        assert run(Query(EVENTS), sink_of(connection, "a_new_one"), 12).rows_added == 12
        assert run(Query(EVENTS), sink_of(connection, '"A.b"'), 12).rows_added == 0
        assert connection.sql("select count(*) from app.a_new_one").fetchall() == [(12,)]


@pytest.mark.parametrize("name", ["a.b.c.d", "a..b", ".a", "a.", '"a', '""', "_chainframe", "x._CHAINFRAME_batch"])
def test_name_that_is_none_is_rejected(name: str) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^table "):
        name_parts(name, limit=3)


def test_names_of_postgresql_are_those_of_the_database(url: str) -> None:
    execute(url, "create schema app")
    with postgresql.connect(url) as connection:
        for name in ("Blocks", "blocks", "app.blocks", '"app.blocks"', "postgres.app.other"):
            assert run(Query(EVENTS), sink_of(connection, name), 12).rows_added == 12
            assert run(Query(EVENTS), sink_of(connection, name), 12).rows_added == 0
        assert run(Query(EVENTS), sink_of(connection, "public.Blocks"), 12).rows_added == 0
        with pytest.raises(cf.InvalidParameterError, match="must be a table of the connection's database"):
            run(Query(EVENTS), sink_of(connection, "other.app.blocks"), 12)


def test_table_behind_another_schema_of_the_search_path_is_continued(url: str) -> None:
    execute(url, "create schema app")
    synced(("postgresql", url), EVENTS[:3])
    for path in ("app,public", "app,public", "public"):
        place = ("postgresql", f"{url}&options=-csearch_path%3D{path}")
        assert synced(place, EVENTS).height == 6
    assert stored(("postgresql", url)) == FINAL
    assert execute(url, "select table_name from information_schema.tables where table_schema = 'app'") == []
    with pytest.raises(cf.ExportError, match=r"search_path has no schema; name one, as in schema\.t t"):
        synced(("postgresql", f"{url}&options=-csearch_path%3D"))


HOSTILE = [
    "default_transaction_isolation=serializable",
    "idle_in_transaction_session_timeout=50",
    "standard_conforming_strings=off",
    "DateStyle=German",
    "extra_float_digits=-15",
]


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


@pytest.mark.parametrize("setting", HOSTILE)
def test_settings_of_the_server_do_not_matter(url: str, setting: str) -> None:
    with postgresql.connect(f"{url}&options=-c{setting.replace('=', '%3D')}") as connection:
        run(Query(EVENTS[:3]), sink_of(connection, TABLE), 12)
        run(Query(EVENTS, wait=0.2), sink_of(connection, TABLE), 12)
    assert stored(("postgresql", url)) == FINAL


WORK = [
    ["insert into audit values (1)"],
    ["select * from audit for update"],
    ["lock table audit in share mode"],
    ["savepoint a", "insert into audit values (1)"],
    ["select pg_advisory_xact_lock(1)"],
]


@pytest.mark.parametrize("work", WORK)
def test_open_work_on_postgresql_is_neither_rolled_back_nor_committed(url: str, work: list[str]) -> None:
    execute(url, "create table audit (x int)", "insert into audit values (0)")
    with postgresql.connect(url) as connection, connection.cursor() as cursor:
        for statement in work:
            cursor.execute(statement)
        for _ in range(2):
            with pytest.raises(cf.ExportError, match="open transaction; commit it or roll it back"):
                run(Query(EVENTS), sink_of(connection, TABLE), 12)
        assert execute(url, "select count(*) from audit") == [(1,)]
        connection.commit()
        run(Query(EVENTS), sink_of(connection, TABLE), 12)
    assert execute(url, "select count(*) from audit") == [(2 if "insert" in work[-1] else 1,)]


def test_failed_transaction_on_postgresql_is_left_to_its_owner(url: str) -> None:
    with postgresql.connect(url) as connection, connection.cursor() as cursor:
        with pytest.raises(connection.Error):
            cursor.execute("select * from nowhere")
        with pytest.raises(cf.ExportError, match="open transaction"):
            run(Query(EVENTS), sink_of(connection, TABLE), 12)
        connection.rollback()
        cursor.execute("select 1")
        cursor.fetchall()
        # A transaction that has only read may end.
        assert run(Query(EVENTS), sink_of(connection, TABLE), 12).rows_added == 12
        cursor.execute("create table mine (x int)")
        connection.rollback()
        cursor.execute("select to_regclass('mine')::text")
        assert cursor.fetchall() == [(None,)]


def test_connection_with_autocommit_stays_one(url: str) -> None:
    with postgresql.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        run(Query(EVENTS), sink_of(connection, TABLE), 12)
        assert run(Query(EVENTS), sink_of(connection, TABLE), 12).commits == 0
        cursor.execute("create table audit (x int)")
        assert execute(url, "select count(*) from audit") == [(0,)]
        cursor.execute("begin")
        cursor.execute("insert into audit values (1)")
        with pytest.raises(cf.ExportError, match="open transaction"):
            run(Query(EVENTS), sink_of(connection, TABLE), 12)
        cursor.execute("rollback")
    assert execute(url, "select count(*) from audit") == [(0,)]


def test_open_transaction_on_duckdb_is_neither_rolled_back_nor_committed() -> None:
    with duckdb.connect() as connection:
        connection.execute("create table audit (x int)")
        connection.execute("begin; insert into audit values (1)")
        with pytest.raises(cf.ExportError, match="open transaction"):
            run(Query(EVENTS), sink_of(connection, TABLE), 12)
        connection.commit()
        assert connection.sql("select * from audit").fetchall() == [(1,)]


def test_error_of_a_commit_hides_neither_its_cause_nor_that_it_may_pass() -> None:
    class Full(DuckDbSink):
        def _execute(self, statement: str, values: Any = ()) -> list[Any]:
            if statement == "COMMIT":
                self._connection.rollback()
                raise duckdb.TransactionException("Failed to commit: Could not write file: No space left on device")
            return super()._execute(statement, values)

    with duckdb.connect() as connection, pytest.raises(cf.ExportError, match="No space left on device") as caught:
        run(Query(EVENTS), Full(connection, TABLE), 12)
    assert caught.value.retryable
    assert isinstance(caught.value.__cause__, duckdb.TransactionException)


@pytest.mark.parametrize("first", [[], EVENTS[:2]])
def test_runs_of_duckdb_at_the_same_time_are_an_export_error(first: list[Any]) -> None:
    class Overtaken(DuckDbSink):
        """A sink whose transaction is overtaken after its first statement."""

        def commit(self, change: Change) -> int:
            self.is_committing = True
            return super().commit(change)

        def _stored(self) -> Any:
            found = super()._stored()
            if vars(self).pop("is_committing", False):
                run(Query(EVENTS[:3]), DuckDbSink(self._connection.cursor(), TABLE), 12)
            return found

    with duckdb.connect() as connection:
        if first:
            run(Query(first), sink_of(connection, TABLE), 12)
        with pytest.raises(cf.ExportError, match="another run of sync has committed meanwhile") as caught:
            run(Query(EVENTS), Overtaken(connection, TABLE), 12)
        assert caught.value.retryable
        assert isinstance(caught.value.__cause__, duckdb.TransactionException)
        assert connection.sql(f'select count(*) from "{TABLE}"').fetchall() == [(6,)]


def test_connection_of_postgresql_that_is_lost_is_an_export_error(url: str) -> None:
    with postgresql.connect(url) as connection:
        sink = PostgresqlSink(connection, TABLE)

        class Cut(Query):
            def follow(self, **options: Any) -> Any:
                execute(url, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
                return super().follow(**options)

        with pytest.raises(cf.ExportError, match=r"^t t: ") as caught:
            run(Cut(EVENTS), sink, 12)
        assert caught.value.retryable
        assert isinstance(caught.value.__cause__, postgresql.Error)
    assert synced(("postgresql", url)).rows_added == 12


def test_permissions_are_an_error_that_does_not_pass(url: str, tmp_path: Path) -> None:
    execute(url, "drop role if exists guest", "create role guest login", "grant usage on schema public to guest")
    with postgresql.connect(url.replace("tester", "guest")) as guest:
        with pytest.raises(cf.ExportError, match="permission denied") as caught:
            run(Query(EVENTS), sink_of(guest, TABLE), 12)
        assert not caught.value.retryable
    duckdb.connect(tmp_path / "x").close()
    with duckdb.connect(tmp_path / "x", read_only=True) as reader:
        with pytest.raises(cf.ExportError, match="read-only") as caught:
            run(Query(EVENTS), sink_of(reader, TABLE), 12)
        assert not caught.value.retryable


def test_commit_that_another_writer_of_a_delta_table_overtook_is_an_export_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("delta", str(tmp_path / "x"))
    synced(place, EVENTS[:2])

    def fail(*_arguments: object, **_options: object) -> None:
        raise CommitFailedError("Failed to commit transaction: 0")

    with monkeypatch.context() as patch:
        patch.setattr(deltalake, "write_deltalake", fail)
        with pytest.raises(cf.ExportError, match="another run of sync has committed meanwhile") as caught:
            synced(place)
    assert caught.value.retryable
    synced(place)
    assert stored(place) == FINAL


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


def test_delta_table_that_lost_its_position_names_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("delta", str(tmp_path / "x"))
    monkeypatch.setattr("chainframe.sinks.delta.MAX_PROPERTY", 0)
    synced(place, EVENTS[:3])
    monkeypatch.setattr(deltalake.DeltaTable, "history", lambda *_: [])
    with pytest.raises(cf.ExportError, match="no longer holds the last commit of sync; pass reset=True"):
        synced(place)
    synced(place, reset=True)
    assert stored(place) == FINAL


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


def test_url_and_database_file_are_targets(url: str, tmp_path: Path) -> None:
    with LocalService(transactions=120, seed=3) as service, service.client(rate_limit=None) as client:
        for target in (url, tmp_path / "x.duckdb", str(tmp_path / "x.duckdb")):
            client.blocks().sync(target, table="t")
            assert client.blocks().sync(target, table="t").commits == 0
        count = execute(url, "select count(*) from t")
        with duckdb.connect(tmp_path / "x.duckdb") as connection:
            assert connection.sql("select count(*) from t").fetchall() == count


URLS = [
    "postgresql://canary-user:canary-word@127.0.0.1:1/x",
    "postgres://canary-user:canary-word@127.0.0.1:1x/x",
    "postgresql://canary-user:canary%20word@[::1/x",
    "postgresql://127.0.0.1:1/x?user=canary-user&password=canary-word",
    "sqlite://canary-user:canary-word@/x.db",
    "mysql+pymysql://canary-user:canary-word@host/x",
    "POSTGRESQL://canary-user:canary-word@127.0.0.1:1/x",
    "https://bucket.example/x?sig=canary-word",
    "file://canary-user:canary-word@host/x",
    "host=127.0.0.1 password=canary-word",
    "dbname=x password = canary-word",
    "md:x?motherduck_token=canary-word",
    "md:x?motherduck_token=canary-word.db",
    "postgresql:canary-user:canary-word@127.0.0.1/x",
]


@pytest.mark.parametrize("address", URLS)
def test_secrets_of_a_target_are_in_no_message(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with LocalService(transactions=50) as service, service.client() as client:
        for table in ("t", None):
            with pytest.raises(cf.ChainframeError) as caught:
                client.blocks().sync(address, table=table)
            error: BaseException | None = caught.value
            while error is not None:
                assert "canary" not in str(error) + repr(error) + repr(vars(error))
                error = error.__cause__
    assert not any("canary" in path.name for path in tmp_path.rglob("*"))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize(
    ("link", "target"),
    [("x.duckdb", "x.duckdb"), ("x.duckdb.wal", "x.duckdb"), ("lake", "lake"), ("lake/_delta_log", "lake")],
)
def test_local_target_is_not_written_through_a_link(
    link: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(precious / "new" if "duckdb" in link else precious)
    with LocalService(transactions=50) as service, service.client() as client:
        with pytest.raises(cf.ExportError, match=f"{link} is a symbolic link"):
            client.blocks().sync(target, table="t" if "duckdb" in link else None)
        assert service.request_count == 0
    assert [*precious.iterdir()] == []
    assert Path(link).is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="no name of a file has a colon there")
@pytest.mark.parametrize("name", ["s3:lake", "file:lake", "a:b/lake", "a:b.duckdb"])
def test_relative_path_with_a_colon_is_local(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    table = "t" if name.endswith("duckdb") else None
    with LocalService(transactions=50) as service, service.client() as client:
        rows = client.blocks().sync(name, table=table).rows_added
        assert rows > 0
        assert client.blocks().sync(name, table=table).rows_added == 0
    assert Path(name).exists()


def test_records_that_contradict_the_arguments_are_reported() -> None:
    def row(number: int, sender: str) -> dict[str, str]:
        return {"txId": f"0x{number}", "blockHash": f"0x{number}", "height": f"{number}", "from": sender, "to": "0xbb"}

    rows = [row(30, "0xcc"), *(row(number, "0xaa") for number in range(29, 0, -1))]
    with StrictServer() as server, duckdb.connect() as connection:
        server.on("address_transactions", page_of("address_transactions", rows))
        server.on("transactions", page_of("transactions", [{"txid": "0x99", "blockHash": "0x99", "height": "99"}]))
        query = server.client().address_transactions("0xaa", start_height=1)
        with pytest.warns(cf.IncompleteResultWarning, match="address"):
            result = query.sync(connection, table="t")
        assert (result.rows_added, result.report.dropped > 0, result.report.complete) == (28, True, False)
        assert connection.sql("select count(*) from t").fetchall() == [(28,)]
        # What was read is stored before the error.
        strict = server.client().with_options(strict=True).address_transactions("0xaa", start_height=1)
        with pytest.raises(cf.IncompleteResultError, match="address"):
            strict.sync(connection, table="u")
        assert connection.sql("select count(*) from u").fetchall() == [(28,)]
