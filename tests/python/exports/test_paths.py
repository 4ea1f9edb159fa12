"""Paths that callers give: local ones with `~` expanded, URLs that no store takes, and connection strings."""

from __future__ import annotations

import asyncio
import os
import shutil
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import chainframe as cf
import chainframe.exports
from chainframe._paths import local_path
from chainframe.cli import main
from chainframe.exports import Export
from chainframe.testing import Cassette, LocalService

if TYPE_CHECKING:
    from collections.abc import Callable

URLS = [
    "https://bucket/blocks?signature=password",
    "gs://user:password@bucket/blocks.csv",
    "gs://bucket/blocks.csv?key=password",
    "az://container/blocks#password",
    "file://password/tmp/blocks.parquet",
    "abfss://container@account/blocks.jsonl",
    "hdfs+ssl://host/blocks/",
    "S3://user:password@bucket/blocks.csv",
    Path("s3://user:password@bucket/blocks"),
    "s3://",
    "s3://bucket",
    "s3://bucket/",
    "s3://bucket/a/../b",
    "s3://bucket/a//b",
    " postgresql://user:password@host/blocks",
    "jdbc:postgresql://user:password@host/blocks",
    "s3://bucket/a\tb",
]
CONNECTIONS = [
    "host=h dbname=d password=password",
    "host=h",
    "dbname = 'd' user=u",
    "host=/var/run/postgresql dbname=d",
    "service=password",
    "Server=h;Database=d;Uid=u;Pwd=password;",
    "Data Source=h;Password = password",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=password",
    "BlobEndpoint=h;SharedAccessSignature=password",
    "md:database?motherduck_token=password",
    "postgresql:u:password@h",
    Path("postgresql:u:password@h"),
    "user:password@host:5432",
    "user:pass/password@host",
]
NAMES = ["", "a\0b", "a\ud800b", None, 5, b"blocks", "~unknown-user/blocks"]

CALLS: dict[str, Any] = {
    "to_parquet": lambda query, path: query.to_parquet(path),
    "to_csv": lambda query, path: query.to_csv(path),
    "to_json": lambda query, path: query.to_json(path, mode="overwrite"),
    "to_parquet_series": lambda query, path: query.to_parquet_series(path),
    "to_parquet_async": lambda query, path: asyncio.run(awaited(query.to_parquet_async, path)),
    "to_csv_async": lambda query, path: asyncio.run(awaited(query.to_csv_async, path)),
    "to_json_async": lambda query, path: asyncio.run(awaited(query.to_json_async, path)),
    "to_parquet_series_async": lambda query, path: asyncio.run(awaited(query.to_parquet_series_async, path)),
    "since": lambda query, path: query.to_parquet("new", since=path),
    "read": lambda _, path: chainframe.exports.read(path),
    "read of many": lambda _, path: chainframe.exports.read([path]),
    "open": lambda _, path: Export.open(path),
    "compact": lambda _, path: chainframe.exports.compact(path, "lake"),
    "compact to": lambda _, path: chainframe.exports.compact([], path),
    "cassette": lambda _, path: Cassette(path),
}
ACCOUNT: Any = {"base_url": "http://127.0.0.1:9", "api_key": "k", "secret_key": "s", "passphrase": "p"}
SETTINGS: dict[str, Any] = {
    "cache": cf.Cache,
    "cache of a client": lambda path: cf.Client(**ACCOUNT, cache=path),
    "ca_bundle": lambda path: cf.Client(**ACCOUNT, ca_bundle=path),
    "db": lambda path: LocalService(transactions=1, db=path),
    "data": lambda path: LocalService(transactions=0, data={"blocks": path}),
}


async def awaited(method: Any, path: Any) -> Any:
    return await method(path)


@pytest.fixture
def query(service: LocalService, client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A query, in an empty directory; nothing is sent and nothing written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    sent = service.request_count
    yield client.blocks()
    assert service.request_count == sent
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", [*URLS, *NAMES], ids=repr)
def test_path_that_is_not_local_is_refused(query: Any, call: str, path: Any) -> None:
    if call == "since" and path is None:
        pytest.skip("None is the default")
    if call in {"read of many", "read"} and isinstance(path, int | None):
        pytest.skip("it takes a sequence")
    with pytest.raises(cf.InvalidParameterError) as caught:
        CALLS[call](query, path)
    assert str(caught.value).startswith(("path ", "since ", "series ", "directory "))
    assert "password" not in str(caught.value)


@pytest.mark.parametrize("call", [*CALLS, "sync"])
@pytest.mark.parametrize("text", CONNECTIONS, ids=repr)
def test_connection_string_is_no_path(query: Any, call: str, text: Any) -> None:
    calls = {**CALLS, "sync": lambda query, path: query.sync(path)}
    with pytest.raises(cf.InvalidParameterError, match="connection string") as caught:
        calls[call](query, text)
    assert "password" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("text", [*CONNECTIONS, "s3://user:password@b/c", Path("s3://user:password@b/c")], ids=repr)
def test_connection_string_is_no_path_of_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, text: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cf.ConfigError, match=r"connection string|must be a local path") as caught:
        SETTINGS[setting](text)
    assert "password" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_connection_string_in_the_environment_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAINFRAME_CACHE", "postgresql:u:password@h")
    with pytest.raises(cf.ConfigError, match=r"^CHAINFRAME_CACHE must not be a connection string") as caught:
        cf.Client(**ACCOUNT)
    assert "password" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="no name of a file has a colon there")
@pytest.mark.parametrize(
    "name", ["./10:30@node", "./password=a", "host=a/day=5", "a@b", "run:1/b", "dbname/host=a", "10:30"]
)
def test_name_that_looks_like_a_connection_string_is_a_path(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert client.blocks(max_items=5).to_parquet(name).rows == 5
    assert Export.open(name).rows == 5


@pytest.mark.parametrize(
    "option",
    [
        ["blocks", "-o"],
        ["blocks", "--since"],
        ["blocks", "--record"],
        ["blocks", "--replay"],
        ["blocks", "--follow", "--cursor-file"],
        ["verify"],
        ["cassette", "show"],
        ["cassette", "diff"],
        ["cache", "list", "--directory"],
        ["address-transactions", "--address"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "url",
    [
        "hdfs://host/blocks",
        "gs://user:password@bucket/blocks.csv",
        "s3://bucket/blocks?password",
        "host=h password=password",
        "user:password@h/b.csv",
    ],
)
def test_command_refuses_urls(  # noqa: PLR0917 - fixtures
    at_service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, option: list[str], url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sent = at_service.request_count
    more = ["-o", "new/"] if "--since" in option else []
    assert main([*option, f"@{url}" if "--address" in option else url, *more]) == 2
    error = capsys.readouterr().err
    assert any(problem in error for problem in ("a local path", "must have no user, query or fragment"))
    assert "password" not in error
    assert (at_service.request_count, list(tmp_path.iterdir())) == (sent, [])


def test_home_is_expanded_wherever_a_path_is_taken(
    at_service: LocalService, client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (tmp_path / "here").mkdir()
    home.mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(home))
    del at_service
    query = client.blocks(max_items=5)
    query.to_parquet("~/a")
    client.blocks().to_parquet(Path("~") / "b")
    client.blocks().to_parquet("~/c", since="~/b")
    client.blocks().to_parquet_series("~/s")
    query.to_csv("~/a.csv")
    Cassette("~/cassette.jsonl", "all")
    cf.Cache("~/cache")
    client.with_options(cache="~/kept")
    assert chainframe.exports.read("~/a").count_rows() == Export.open("~/a").rows == 5
    assert main(["blocks", "--max-items", "5", "-o", "~/d.csv"]) == 0
    assert main(["blocks", "--max-items", "5", "-o", "~/e/", "--record", "~/f.jsonl"]) == 0
    assert {"a", "b", "c", "s", "a.csv", "cache", "kept", "d.csv", "e", "f.jsonl"} <= {
        path.name for path in home.iterdir()
    }
    assert list((tmp_path / "here").iterdir()) == []


def test_home_of_another_user_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cf.ConfigError, match=r"directory \(~unknown-user/x\) has no home directory"):
        cf.Cache("~unknown-user/x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="other limits there")
@pytest.mark.parametrize("path", ["x" * 300, "loop", "loop/x"])
def test_path_that_the_system_refuses_is_an_export_error(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    calls: list[Callable[[], object]] = [
        lambda: chainframe.exports.read(path),
        lambda: Export.open(path),
        lambda: chainframe.exports.compact(path, "lake"),
        lambda: client.blocks(max_items=1).to_csv(path),
        lambda: client.blocks().to_parquet("new", since=path),
        lambda: client.blocks(max_items=1).to_parquet(path),
    ]
    for call in calls:
        with pytest.raises(cf.ExportError, match=r"File name too long|Too many levels of symbolic links|symbolic link"):
            call()
    with pytest.raises(cf.ConfigError, match=r"File name too long|Too many levels of symbolic links|symbolic link"):
        LocalService(transactions=1, db=path)
    # A cassette has errors of its own.
    with pytest.raises(cf.CassetteError):
        Cassette(path)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_url_in_the_environment_is_no_cassette(client: cf.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINFRAME_CASSETTE", "s3://bucket/cassette.jsonl")
    with pytest.raises(cf.InvalidParameterError, match=r"CHAINFRAME_CASSETTE \(s3://...\) must be a local path"):
        cf.Client(base_url="http://127.0.0.1:9", api_key="k", secret_key="s", passphrase="p")
    del client


DIRECTORIES = [
    "to_parquet",
    "to_parquet_async",
    "to_parquet_series",
    "to_parquet_series_async",
    "since",
    "read",
    "open",
]
BELOW_A_FILE: dict[str, Any] = {
    **{f"{call} of a directory": CALLS[call] for call in DIRECTORIES},
    **{call: CALLS[call] for call in ("read of many", "cassette")},
    "compact": lambda query, path: chainframe.exports.compact(query.to_parquet("other"), path),
    "sync": lambda query, path: query.sync(path),
    "cache": lambda _, path: cf.Cache(path),
    "db": lambda _, path: LocalService(transactions=1, db=path),
    **{f"{call} of a file": CALLS[call] for call in ("to_parquet", "to_csv", "to_json", "to_csv_async")},
    "to_parquet of records": lambda query, path: query.collect().to_parquet(path.with_suffix(".parquet")),
    "to_csv of records": lambda query, path: query.collect().to_csv(path),
    "sync of a database": lambda query, path: query.sync(path.with_suffix(".duckdb"), table="blocks"),
}


@pytest.mark.parametrize("call", DIRECTORIES)
def test_file_in_place_of_a_directory_is_named(client: cf.Client, tmp_path: Path, call: str) -> None:
    file = tmp_path / "blocks"
    file.touch()
    with pytest.raises(cf.ExportError) as caught:
        CALLS[call](client.blocks(), file)
    parameter = {"since": "since", "read": "series", "open": "directory"}.get(call, "path")
    assert str(caught.value) == f"{parameter} ({file}): {file} is not a directory; name another path"


@pytest.mark.parametrize("below", ["x", "x/y"])
@pytest.mark.parametrize("call", BELOW_A_FILE)
def test_path_below_a_file_is_refused_with_both_paths(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, below: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "plain"
    file.write_text("kept")
    suffix = {"to_parquet of a file": ".parquet", "to_json of a file": ".jsonl"}.get(call, "")
    path = file / f"{below}{suffix}"
    with pytest.raises((cf.ExportError, cf.ConfigError, cf.CassetteError)) as caught:
        BELOW_A_FILE[call](client.blocks(), path)
    problem = f"{file} is not a directory; name another path"
    parameters = {"since": "since", "read": "series", "open": "directory", "sync": "target", "db": "db"}
    if call == "cache":
        assert str(caught.value).startswith(f"directory ({path}) cannot be created: ")
    else:
        shown = path.with_suffix(".duckdb") if call == "sync of a database" else path
        shown = path.with_suffix(".parquet") if call == "to_parquet of records" else shown
        assert str(caught.value) == f"{parameters.get(call.split(maxsplit=1)[0], 'path')} ({shown}): {problem}"
    assert file.read_text() == "kept"


OPTIONS = [
    (["-o", "plain/x/"], "--output (plain/x): plain is not a directory; name another path"),
    (["-o", "plain/x.csv"], "--output (plain/x.csv): plain is not a directory; name another path"),
    (["-o", "plain/"], "--output (plain): plain is not a directory; name another path"),
    (["-o", "new/", "--since", "plain/x"], "--since (plain/x): plain is not a directory; name another path"),
    (["--sync", "plain/x.duckdb"], "--sync (plain/x.duckdb): plain is not a directory; name another path"),
    (
        ["--sync", "absent/x.duckdb", "--table", "t"],
        "--sync (absent/x.duckdb): absent is not a directory; create it first",
    ),
    (["-o", "http://h/x"], "--output (http://...) must be a local path, or begin with s3://, gs://, az:// or file://"),
    (
        ["--follow", "--cursor-file", "plain/x"],
        "--cursor-file (plain/x): plain is not a directory; name another path",
    ),
    (
        ["--follow", "--cursor-file", "http://h/x"],
        "--cursor-file (http://...) must be a local path; use one, and copy its content from or to the URL",
    ),
    (["--record", "plain/x"], "--record (plain/x): plain is not a directory; name another path"),
    (["--replay", "plain/x"], "--replay (plain/x): plain is not a directory; name another path"),
]


@pytest.mark.usefixtures("at_service")
@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_command_names_the_option_of_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").touch()
    assert main(["blocks", *options]) != 0
    assert capsys.readouterr().err == f"chainframe: {message}\n"


class Place(str, Enum):  # noqa: UP042 - that has another __str__
    EXPORT = "of_enum"


def test_member_of_an_enum_is_the_path_of_its_value(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    query = client.blocks(max_items=5)
    query.to_parquet(Place.EXPORT)
    assert chainframe.exports.read(Place.EXPORT).count_rows() == Export.open(Place.EXPORT).rows == 5
    assert [path.name for path in tmp_path.iterdir()] == ["of_enum"]
    shutil.rmtree("of_enum")
    client.blocks().sync(Place.EXPORT)
    assert [path.name for path in tmp_path.iterdir()] == ["of_enum"]
    shutil.rmtree("of_enum")
    assert cf.Cache(Place.EXPORT).directory == tmp_path / "of_enum"


def test_array_without_dimensions_is_no_list(client: cf.Client, tmp_path: Path) -> None:
    client.blocks(max_items=5).to_parquet(tmp_path / "e")
    with pytest.raises(cf.InvalidParameterError, match="series must be a directory, an Export or a list of them; got"):
        chainframe.exports.read(np.array("e"))  # type: ignore[arg-type]
    export = Export.open(tmp_path / "e")
    for columns in (np.array("height"), 5):
        with pytest.raises(cf.InvalidParameterError, match=r"^columns must be a list of names; got"):
            export.to_arrow(columns=columns)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidParameterError, match=r"^columns must be among .*; got"):
        export.to_arrow(columns=pl.DataFrame({"height": ["height"]}))  # type: ignore[arg-type]
    with pytest.raises(cf.ConfigError, match=r"^port "):
        LocalService(transactions=1, simulated=True, port=pd.Series([1]))  # type: ignore[arg-type]


def test_windows_drive_is_not_a_scheme() -> None:
    assert local_path("C:/exports/blocks", "path") == Path("C:/exports/blocks")


@pytest.mark.skipif(os.name == "nt", reason="no name of a file has a colon there")
@pytest.mark.parametrize("name", ["run:1", "a:b/c", "s3:x/y", "file:x"])
def test_relative_path_with_a_colon_is_no_url(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    query = client.blocks(max_items=5)
    assert query.to_parquet(name).to_arrow() == query.to_arrow()
    assert chainframe.exports.read(name).to_table().num_rows == 5
    assert Export.open(name).verify(client, sample=2).ok
    query.to_csv(f"{name}.csv")
    assert len(Path(f"{name}.csv").read_text(encoding="utf-8").splitlines()) == 6
    with LocalService(transactions=0, data={"blocks": Path(name)}) as service, service.client() as other:
        assert len(other.blocks().collect()) == 5
    for _ in range(2):
        client.blocks().to_parquet_series(f"{name}-series", settle=5)
    assert chainframe.exports.read(f"{name}-series").to_table().num_rows > 0


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_database_of_the_local_service_is_a_local_file_and_no_link(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "new.db")
    for db, problem in ((link, "is a symbolic link"), ("s3://user:password@bucket/x", "must be a local path")):
        with pytest.raises(cf.ConfigError, match=problem) as caught:
            LocalService(transactions=5, db=db)
        assert "password" not in str(caught.value)
    assert [*tmp_path.iterdir()] == [link]
