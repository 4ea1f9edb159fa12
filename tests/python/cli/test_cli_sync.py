"""`chainframe COMMAND --sync`: tables that follow a query, from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest
from pyiceberg.utils.config import Config

import kept_sinks
import postgres
from chainframe.cli import main
from chainframe.testing import LocalService
from conftest import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of libraries among themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=200, seed=7) as running:
        yield running


@pytest.fixture(autouse=True)
def settings(service: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


def synced(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["blocks", "--columns", "height,hash", "--sync", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_runs_print_what_they_changed(capsys: pytest.CaptureFixture[str]) -> None:
    first = synced(capsys, "chain.duckdb", "--table", "blocks")
    with duckdb.connect("chain.duckdb") as database:
        found = database.execute("select count(*), max(height) from blocks").fetchall()
    assert found == [(first["rows_added"], first["height"])]
    assert first["commits"] > 0
    again = synced(capsys, "chain.duckdb", "--table", "blocks")
    assert again == {"rows_added": 0, "rows_removed": 0, "height": first["height"], "requests": 1, "commits": 0}
    assert synced(capsys, "chain.duckdb", "--table", "blocks", "--reset")["rows_added"] == first["rows_added"]


def test_delta_and_iceberg_are_named_by_location_and_catalog(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = synced(capsys, "lake/blocks")
    assert deltalake.DeltaTable("lake/blocks").to_pyarrow_table().num_rows == first["rows_added"]
    catalog = kept_sinks.catalog_at(str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__WAREHOUSE", f"file://{tmp_path}/warehouse")
    # The library reads the environment when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    assert synced(capsys, "iceberg://local", "--table", "chain.blocks") == first
    assert catalog.load_table("chain.blocks").scan().count() == first["rows_added"]


@pytest.mark.skipif(postgres.INITDB is None, reason="PostgreSQL is not installed")
def test_postgresql_is_named_by_its_url(capsys: pytest.CaptureFixture[str]) -> None:
    with postgres.running() as url:
        assert synced(capsys, url, "--table", "blocks")["rows_added"] > 0
        assert synced(capsys, url, "--table", "blocks")["commits"] == 0


def test_changes_of_others_name_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    synced(capsys, "chain.duckdb", "--table", "blocks")
    with duckdb.connect("chain.duckdb") as database:
        database.execute("delete from blocks where height = (select max(height) from blocks)")
    assert main(["blocks", "--columns", "height,hash", "--sync", "chain.duckdb", "--table", "blocks"]) == 2
    error = capsys.readouterr().err
    assert "others have changed it; pass --reset to fetch the table again" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "blocks"], "--table needs --sync"),
        (["--reset"], "--reset needs --sync"),
        (["--sync", "x.duckdb"], "--sync (x.duckdb) is a database"),
        (["--sync", "x", "--follow"], "--follow cannot be combined with --sync"),
        (["--sync", "x", "-o", "y.csv"], "--output cannot be combined with --sync"),
        (["--sync", "x", "--dry-run"], "--dry-run cannot be combined with --sync"),
        (["--sync", "x", "--max-rows-per-file", "3"], "--max-rows-per-file cannot be combined with --sync"),
        (["--sync", "iceberg://", "--table", "a.b"], "must be iceberg:// and the name of a catalog"),
        (["--sync", "iceberg://user:pw@host", "--table", "a.b"], "catalog in .pyiceberg.yaml, without user"),
        (["--sync", "iceberg://nowhere", "--table", "a.b"], "iceberg://nowhere cannot be opened"),
        (["--sync", "snowflake://x/y", "--table", "a"], "got a URL of snowflake"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_a_request(
    service: LocalService, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    service.reset_request_log()
    assert main(["blocks", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert service.request_count == 0


def test_calls_that_cannot_be_followed_have_no_such_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "--sync", "x"]) == 2
    assert "No such option '--sync'" in capsys.readouterr().err
