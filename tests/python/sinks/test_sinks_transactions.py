"""Transactions, settings and errors of the databases of `sync`."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import adbc_driver_postgresql.dbapi as postgresql
import deltalake
import duckdb
import pytest
from deltalake.exceptions import CommitFailedError

import chainframe as cf
from chainframe.cli.export import exit_code
from chainframe.sinks.contract import Change, Failure, database_errors
from chainframe.sinks.duckdb import DuckDbSink
from chainframe.sinks.postgresql import PostgresqlSink
from chainframe.sinks.sync import run
from chainframe.sinks.targets import sink_of
from chainframe.testing import make_records
from sync_places import EVENTS, FINAL, TABLE, Query, execute, stored, synced

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


HOSTILE = [
    "default_transaction_isolation=serializable",
    # Which only a hang would meet.
    "idle_in_transaction_session_timeout=600000",
    "idle_session_timeout=600000",
    "standard_conforming_strings=off",
    "DateStyle=German",
    "extra_float_digits=-15",
]


@pytest.mark.parametrize("setting", HOSTILE)
def test_settings_of_the_server_do_not_matter(url: str, setting: str) -> None:
    with postgresql.connect(f"{url}&options=-c{setting.replace('=', '%3D')}") as connection:
        run(Query(EVENTS[:3]), sink_of(connection, TABLE), 12)
        while_read: list[Any] = []
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            ((pid,),) = cursor.fetchall()

        def ask() -> None:
            # Connections of earlier tests may still be ending.
            state = f"select state from pg_stat_activity where pid = {pid}"
            while_read.append(execute(url, state))
            with connection.cursor() as cursor:
                cursor.execute("select setting from pg_settings where name = 'idle_session_timeout'")
                while_read.append(cursor.fetchall())

        run(Query(EVENTS, during=ask), sink_of(connection, TABLE), 12)
        # No transaction waits for the API, and no session ends meanwhile.
        assert while_read == [[("idle",)], [("0",)]]
        name, _, value = setting.partition("=")
        with connection.cursor() as cursor:
            cursor.execute(f"select current_setting('{name}'), set_config('{name}', '{value}', true)")
            ((before, after),) = cursor.fetchall()
            assert before == after
    assert stored(("postgresql", url)) == FINAL


def named(name: str) -> Any:
    """Return an event with a record of a token that is called so."""
    rows = [{"tx_id": "0xa", "height": 1, "transaction_symbol": name}]
    return SimpleNamespace(to_arrow=make_records("transactions", rows).to_arrow, cursor="1")


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "SQL_ASCII"])
def test_text_is_stored_as_it_is_whatever_the_encoding_of_the_connection(url: str, encoding: str) -> None:
    name = "Ünit€漢\\n"
    with postgresql.connect(f"{url}&options=-cclient_encoding%3D{encoding}") as connection:
        run(Query([named(name)]), sink_of(connection, "tafel_ü"), 12)
        with connection.cursor() as cursor:
            cursor.execute("select current_setting('client_encoding')")
            assert cursor.fetchall() == [(encoding,)]
    select = "select transaction_symbol, octet_length(transaction_symbol) from tafel_ü"
    assert execute(url, select) == [(name, len(name.encode()))]


def test_text_that_the_encoding_of_a_database_lacks_is_an_export_error(url: str) -> None:
    execute(url, "drop database if exists western")
    execute(url, "create database western template template0 encoding 'LATIN1' locale 'C'")
    western = url.replace("/postgres?", "/western?")
    with postgresql.connect(western) as connection:
        run(Query([named("Ünit")]), sink_of(connection, TABLE), 12)
    select = f'select octet_length(transaction_symbol) from "{TABLE}"'
    assert execute(western, select) == [(4,)]
    with (
        postgresql.connect(western) as connection,
        pytest.raises(cf.ExportError, match='has no equivalent in encoding "LATIN1"') as caught,
    ):
        run(Query([named("漢")]), sink_of(connection, "other"), 12)
    assert not caught.value.retryable


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


def test_lock_of_a_session_is_no_open_transaction(url: str) -> None:
    with postgresql.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(1)")
        connection.commit()
        if connection.adbc_connection.get_option("adbc.postgresql.transaction_status") != "idle":
            pytest.skip("this driver begins the next transaction at once, to which the lock may belong")
        assert run(Query(EVENTS), sink_of(connection, TABLE), 12).rows_added == 12
        cursor.execute("select pg_advisory_unlock(1)")
        assert cursor.fetchall() == [(True,)]


@pytest.mark.parametrize("is_autocommit", [True, False])
def test_connection_is_left_as_it_was_if_its_setting_cannot_be_restored(url: str, *, is_autocommit: bool) -> None:
    with postgresql.connect(f"{url}&options=-cidle_session_timeout%3D600000", autocommit=is_autocommit) as connection:
        sink = PostgresqlSink(connection, TABLE)
        sink.look()
        sink._idle_timeout = "none"
        sink.close()
        with connection.cursor() as cursor:
            cursor.execute("create table audit (x int)")
        found = execute(url, "select to_regclass('audit')::text")
    assert found == [("audit" if is_autocommit else None,)]


def test_closed_connection_has_no_open_transaction(url: str) -> None:
    connection = postgresql.connect(url)
    connection.close()
    with pytest.raises(cf.ExportError, match=f"^{TABLE}: INVALID_STATE: .*AdbcConnectionNew"):
        run(Query(EVENTS), sink_of(connection, TABLE), 12)


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


def test_full_disk_is_an_error_with_its_number_that_does_not_pass() -> None:
    class Full(DuckDbSink):
        def _execute(self, statement: str, values: Any = ()) -> list[Any]:
            if statement == "COMMIT":
                self._connection.rollback()
                raise duckdb.TransactionException("Failed to commit: Could not write file: No space left on device")
            return super()._execute(statement, values)

    with duckdb.connect() as connection, pytest.raises(cf.ExportError, match="No space left on device") as caught:
        run(Query(EVENTS), Full(connection, TABLE), 12)
    assert (caught.value.errno, caught.value.retryable) == (errno.ENOSPC, False)
    assert isinstance(caught.value.__cause__, duckdb.TransactionException)


FULL_DISK = """
import errno
import resource
import sys
import duckdb
import chainframe as cf
from pathlib import Path
from chainframe.sinks.targets import sink_of
from chainframe.sinks.sync import run
from sync_places import EVENTS, FINAL, TABLE, Query

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
path = Path("chain.duckdb")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), hard))
try:
    run(Query(EVENTS), sink_of(path, TABLE), 12)
except cf.ExportError as error:
    message = str(error)
    print(error.retryable, error.errno == errno.EFBIG, message.startswith(f"target ({path}): "), ".tmp" in message)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
run(Query(EVENTS), sink_of(path, TABLE), 12)
with duckdb.connect(path) as connection:
    print(connection.execute(f'select count(*) from "{TABLE}"').fetchone()[0] == len(FINAL))
print(sorted(path.name for path in Path().iterdir()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are Unix's")
@pytest.mark.parametrize("size", [0, 4_096, 8_192])
def test_database_that_a_full_disk_interrupted_is_made_by_the_next_run(tmp_path: Path, size: int) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["False True True False", "True", "['chain.duckdb']"], "")


def test_damaged_database_is_no_error_that_passes(tmp_path: Path) -> None:
    path = tmp_path / "chain.duckdb"
    run(Query(EVENTS), sink_of(path, TABLE), 12)
    whole = path.read_bytes()
    for damaged in (b"x" * 5_000, whole[:9_000], whole[:4_096] + b"x" * 8_192 + whole[12_288:]):
        path.write_bytes(damaged)
        with pytest.raises(cf.ExportError) as caught:
            run(Query(EVENTS), sink_of(path, TABLE), 12)
        assert not caught.value.retryable, caught.value


@pytest.mark.parametrize("text", ["Unknown error", "Unknown error 122"])
def test_number_without_a_text_is_no_full_disk(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    original = os.strerror
    monkeypatch.setattr(os, "strerror", lambda number: text if number == errno.EDQUOT else original(number))

    def fail(message: str) -> Any:
        with pytest.raises(cf.ExportError) as caught, database_errors(TABLE, OSError, lambda _: Failure.MAY_PASS):
            raise OSError(message)
        return caught.value.errno, caught.value.retryable

    assert fail(f"lost the server: {text}") == (None, True)
    assert fail(f"cannot write: {original(errno.ENOSPC)}") == (errno.ENOSPC, False)


def test_panic_of_a_library_is_an_error_whose_cause_has_no_secrets() -> None:
    panic = type("PanicException", (BaseException,), {})

    def fail(message: str) -> cf.ExportError:
        with pytest.raises(cf.ExportError) as caught, database_errors(TABLE, OSError, lambda _: Failure.MAY_PASS):
            raise panic(message)
        return caught.value

    error = fail("x s3://key:canary-1@host/b")
    assert "canary-1" not in f"{error} {error.__cause__}"
    assert not error.retryable
    assert str(fail("no runtime").__cause__) == "no runtime"


@pytest.mark.parametrize("name", ["x.duckdb", "delta"])
def test_place_where_no_table_can_be_is_named_before_anything_is_sent(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        cf.ExportError, match=r"^target \(.*\): .*file is not a directory; name another path$"
    ) as caught:
        sink_of(tmp_path / "file" / name, TABLE if name == "x.duckdb" else None)
    assert (caught.value.retryable, exit_code(caught.value)) == (False, 2)


def test_missing_directory_of_a_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(cf.ExportError, match=r"^target \(.*\): .*none is not a directory; create it first$"):
        sink_of(tmp_path / "none" / "x.duckdb", TABLE)


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
