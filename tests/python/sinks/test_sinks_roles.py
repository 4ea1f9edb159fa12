"""PostgreSQL that refuses: roles with few rights, connections, and names that are not those of tables."""

from __future__ import annotations

from typing import Any

import adbc_driver_postgresql.dbapi as postgresql
import pytest

import chainframe as cf
from chainframe.sinks.postgresql import PostgresqlSink
from chainframe.sinks.sync import run
from chainframe.sinks.targets import sink_of
from sync_places import EVENTS, FINAL, TABLE, Query, execute, stored

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.mark.parametrize("missing", ["", "data", "both"])
def test_role_that_may_not_create_tables_keeps_those_that_are_there(url: str, missing: str) -> None:
    with postgresql.connect(url) as owner:
        run(Query(EVENTS[:2]), sink_of(owner, TABLE), 12)
    execute(
        url,
        "drop role if exists clerk",
        "create role clerk login",
        "grant usage on schema public to clerk",
        "revoke create on schema public from public",
        f'grant select, insert, update, delete on "{TABLE}", _chainframe to clerk',
    )
    if missing:
        execute(url, f'drop table "{TABLE}"', *(["drop table _chainframe"] if missing == "both" else []))
    with postgresql.connect(url.replace("tester", "clerk")) as clerk:
        if not missing:
            assert run(Query(EVENTS), sink_of(clerk, TABLE), 12).commits == 1
            assert stored(("postgresql", url)) == FINAL
            return
        with pytest.raises(cf.ExportError, match="permission denied for schema public") as caught:
            run(Query(EVENTS), sink_of(clerk, TABLE), 12)
        assert not caught.value.retryable
    execute(url, "grant create on schema public to public")


@pytest.mark.parametrize(
    "statement",
    [
        "create materialized view taken as select 1 as height",
        "create sequence taken",
        "create index taken on other (height)",
        "create type taken as (height bigint)",
        "create type taken as enum ('a')",
        "create domain taken as bigint",
        "create type taken as range (subtype = bigint)",
        "create view taken as select 1 as height",
    ],
)
def test_name_of_something_else_than_a_table_is_refused_before_a_request(url: str, statement: str) -> None:
    execute(url, "create table other (height bigint)", statement)
    with (
        postgresql.connect(url) as connection,
        pytest.raises(cf.ExportError, match=r"^taken exists and was not made by sync; name another table$") as caught,
    ):
        run(Query([]), sink_of(connection, "taken"), 12)
    assert not caught.value.retryable


def test_name_of_an_array_type_is_taken_by_a_table(url: str) -> None:
    execute(url, "create type other as enum ('a')")
    with postgresql.connect(url) as connection:
        assert run(Query(EVENTS), sink_of(connection, "_other"), 12).commits > 0


def test_temporary_table_is_refused_where_its_connection_is_of_the_run(url: str) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^table \('pg_temp.kept'\) must be a table that stays; one of"):
        run(Query(EVENTS), sink_of(url, "pg_temp.kept"), 12)
    with postgresql.connect(url) as connection:
        assert run(Query(EVENTS[:3]), sink_of(connection, "pg_temp.kept"), 12, commit_rows=2).rows_added == 6
        assert run(Query(EVENTS), sink_of(connection, "pg_temp.kept"), 12, commit_rows=2).rows_added == 6


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("user=tester", "user=stranger"), 'role "stranger" does not exist'),
        (("/postgres?", "/elsewhere?"), 'database "elsewhere" does not exist'),
        (("user=tester", "user=tester&options=-cno_such_setting%3D1"), "unrecognized configuration parameter"),
        (("user=tester", "user=tester&options=-cDateStyle%3Dno"), "invalid value for parameter"),
        (("user=tester", "user=tester&options=--work_mem"), "--work_mem requires a value"),
        (("user=tester", "user=tester&no_such=1"), "invalid URI query parameter"),
        (("user=tester", "user=tester&connect_timeout=soon"), "invalid integer value"),
        (("user=tester", "user=tester&sslmode=some"), "invalid sslmode value"),
        (("user=tester", "user=tester&keepalives=x"), "cannot connect"),
        (("user=tester", "user=tester&port=99999"), "invalid port number"),
        (("user=tester", "user=tester&port=1,2"), "could not match 2 port numbers to 1 hosts"),
        (("user=tester", "user=tester&service=no_such"), 'definition of service "no_such" not found'),
        (("user=tester", "user=tester&channel_binding=require"), "channel binding required"),
        (("user=tester", "user=tester&require_auth=scram-sha-256"), "authentication method requirement"),
    ],
)
def test_connection_that_a_server_refuses_is_no_error_that_passes(
    url: str, change: tuple[str, str], problem: str
) -> None:
    with pytest.raises(cf.ExportError, match="cannot connect") as caught:
        sink_of(url.replace(*change), TABLE)
    # The user is that of the URL, and not shown.
    assert problem.partition('"')[0] in str(caught.value)
    assert not caught.value.retryable


def test_server_that_is_not_there_may_come_back(url: str) -> None:
    for change in (
        ("host=", "host=/nowhere"),
        ("user=tester", "user=tester&port=1"),
        ("host=", "host=no.invalid&user="),
    ):
        with pytest.raises(cf.ExportError, match="cannot connect") as caught:
            sink_of(url.replace(*change), TABLE)
        assert caught.value.retryable


def test_table_that_another_first_run_makes_meanwhile_is_not_foreign(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = PostgresqlSink._columns

    def overtaken(self: PostgresqlSink, cursor: Any, table: str | None = None) -> dict[str, str]:
        columns = ask(self, cursor, table)
        if table is None:
            monkeypatch.setattr(PostgresqlSink, "_columns", ask)
            with postgresql.connect(url) as other:
                run(Query(EVENTS), sink_of(other, TABLE), 12)
        return columns

    execute(url, f'drop table if exists "{TABLE}"', "drop table if exists _chainframe")
    with postgresql.connect(url) as connection:
        monkeypatch.setattr(PostgresqlSink, "_columns", overtaken)
        with pytest.raises(cf.ExportError, match="another run of sync has committed meanwhile; run it again") as caught:
            run(Query(EVENTS), sink_of(connection, TABLE), 12)
    assert caught.value.retryable
    assert stored(("postgresql", url)) == FINAL
