"""Targets of `sync`: names as a database stores them, URLs, files and links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import adbc_driver_postgresql.dbapi as postgresql
import duckdb
import pytest

import chainframe as cf
from chainframe._paths import CONNECTION
from chainframe.sinks.sql import name_parts
from chainframe.sinks.sync import run
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService
from sync_places import EVENTS, FINAL, Query, execute, stored, synced

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


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


def test_names_of_duckdb_that_differ_in_letters_beyond_ascii_are_several() -> None:
    with duckdb.connect() as connection:
        connection.execute("create schema Ö; create schema ö")
        for name in ("Ä", "ä", "K", "\N{KELVIN SIGN}", "Ö.t", "ö.t"):
            assert run(Query(EVENTS), sink_of(connection, name), 12).rows_added == 12
        found = connection.sql("select table_schema, table_name from information_schema.tables").fetchall()
    names = {("main", "Ä"), ("main", "ä"), ("main", "K"), ("main", "\N{KELVIN SIGN}"), ("Ö", "t"), ("ö", "t")}
    assert names <= set(found)


@pytest.mark.parametrize("name", ["a.b.c.d", "a..b", ".a", "a.", '"a', '""', "_chainframe", "x._CHAINFRAME_batch"])
def test_name_that_is_none_is_rejected(name: str) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^table "):
        name_parts(name)


def test_names_of_postgresql_are_those_of_the_database(url: str) -> None:
    execute(url, "create schema app")
    with postgresql.connect(url) as connection:
        for name in ("Blocks", "blocks", "app.blocks", '"app.blocks"', "postgres.app.other"):
            assert run(Query(EVENTS), sink_of(connection, name), 12).rows_added == 12
            assert run(Query(EVENTS), sink_of(connection, name), 12).rows_added == 0
        assert run(Query(EVENTS), sink_of(connection, "public.Blocks"), 12).rows_added == 0
        with pytest.raises(cf.InvalidParameterError, match="must be a table of the connection's database"):
            run(Query(EVENTS), sink_of(connection, "other.app.blocks"), 12)


def test_name_that_postgresql_would_cut_is_rejected(url: str) -> None:
    with postgresql.connect(url) as connection:
        for name in ("x" * 64, "ü" * 32, "s" * 64 + ".t"):
            with pytest.raises(cf.InvalidParameterError, match="must have names of at most 63 bytes"):
                run(Query(EVENTS), sink_of(connection, name), 12)
        assert run(Query(EVENTS[:3]), sink_of(connection, "x" * 63), 12).rows_added == 6
        assert run(Query(EVENTS), sink_of(connection, "x" * 63), 12).rows_added == 6


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


def test_url_and_database_file_are_targets(url: str, tmp_path: Path) -> None:
    with LocalService(transactions=120, seed=3) as service, service.client(rate_limit=None) as client:
        for target in (url, tmp_path / "x.duckdb", str(tmp_path / "x.duckdb")):
            client.blocks().sync(target, table="t")
            assert client.blocks().sync(target, table="t").commits == 0
        count = execute(url, "select count(*) from t")
        with duckdb.connect(tmp_path / "x.duckdb") as connection:
            assert connection.sql("select count(*) from t").fetchall() == count


def test_local_targets_are_paths_like_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    with LocalService(transactions=50) as service, service.client() as client:
        client.blocks().sync("~/lake")
        client.blocks().sync((home / "of-url").as_uri().replace("///", "/"))
        client.blocks().sync("~/X.DuckDB", table="t")
        sent = service.request_count
        for target in (
            "x.sqlite",
            "x.txt",
            "x.csv",
            "x.parquet",
            "x.jsonl.gz",
            "",
            "~unknown-user/x",
            "https://host/x",
        ):
            with pytest.raises(cf.InvalidParameterError, match=r"^target "):
                client.blocks().sync(target)
        with pytest.raises(cf.InvalidParameterError, match=r"^target must be a str: a Path joins"):
            client.blocks().sync(Path("s3://bucket/x"))
        with pytest.raises(cf.ExportError, match="File name too long"):
            client.blocks().sync("x" * 300)
        assert service.request_count == sent
        # A Delta table may have such a name, if its directory is there.
        (here / "x.parquet").mkdir()
        client.blocks().sync("x.parquet")
    assert {path.name for path in home.iterdir()} == {"lake", "of-url", "X.DuckDB"}
    assert [path.name for path in here.iterdir()] == ["x.parquet"]


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
    "Server=h;User Id=canary-user;Password=canary-word;",
    "driver={ODBC Driver 18};server=h;uid=canary-user;PWD = canary-word",
    "DBNAME=x user=canary-user passwd=canary-word",
    "HOST = 127.0.0.1 passfile=canary-word",
    "canary-user:canary-word@127.0.0.1:1/x",
    "canary-user:canary/word@host",
    "MD:x?motherduck_token=canary-word",
    "Server=h;Password=canary-word.db",
]


@pytest.mark.parametrize("name", ["a@b:c", "x/me:b@c", "hosts=1", "pwds", "C:/me@host", "C:\\me@host", "token=0x1"])
def test_names_of_directories_are_no_connection_strings(name: str) -> None:
    assert not CONNECTION.search(name)


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


@pytest.mark.skipif(os.name == "nt", reason="file names of Windows have none of these characters")
@pytest.mark.parametrize("name", ["a%20b", "a#b", "a?b", "[a]", "a|b", "^a", "a\\b", "a\nb"])
def test_local_path_that_the_library_of_delta_reads_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^target .* must not have .*, which deltalake misreads"):
        sink_of(str(tmp_path / name), None)
    with pytest.raises(cf.InvalidParameterError, match=r"^target .* must not have"):
        sink_of(tmp_path / name / "table", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["zip://x.zip", "unity://catalog.table", "wasbs://user:word@host/table"])
def test_url_that_the_library_of_delta_does_not_know_is_refused_before_a_request(target: str) -> None:
    with LocalService(transactions=20) as service, service.client() as client:
        with pytest.raises(cf.InvalidParameterError, match=r"^target \(\w+://\.\.\.\) must be a local path or a URL"):
            client.blocks().sync(target)
        assert service.request_count == 0


@pytest.mark.parametrize("name", ["t.tsv", "t.pq", "t.avro", "t.csv.bz2", "t.jsonl.zst", "t.Parquet.GZ", "t.tar"])
def test_name_of_a_file_is_no_directory_of_a_table(name: str, tmp_path: Path) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^target \(.*\) must not be a file"):
        sink_of(tmp_path / name, None)
    assert list(tmp_path.iterdir()) == []


def test_path_of_a_connection_string_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("host=h password=secret", "postgresql:u:secret@h"):
        with pytest.raises(cf.InvalidParameterError, match="got a connection string") as caught:
            sink_of(Path(text), None)
        assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("password", ["SECRET/x", "x/SECRET", "SECRET?x", "SECRET#x", "a@SECRET/b"])
def test_password_with_characters_of_a_url_is_not_shown(password: str) -> None:
    with pytest.raises(cf.ExportError, match="cannot connect") as caught:
        sink_of(f"postgresql://user:{password}@127.0.0.1:1/db", "t")
    assert "SECRET" not in str(caught.value)
