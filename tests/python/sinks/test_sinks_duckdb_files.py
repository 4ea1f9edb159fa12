"""Files of DuckDB as targets of `sync`: what is in their place or beside them, and how they are made."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import chainframe as cf
from chainframe.sinks.duckdb import _temporary_name
from chainframe.sinks.sync import run
from chainframe.sinks.targets import sink_of
from sync_places import EVENTS, TABLE, Query


def opened(path: Path) -> None:
    sink_of(path, TABLE).close()


def refused(path: Path) -> cf.ExportError:
    """The error of a target that is named, and that no other attempt opens."""
    with pytest.raises(cf.ExportError) as caught:
        opened(path)
    error = caught.value
    shown = str(path).encode(errors="backslashreplace").decode()
    assert str(error).startswith(f"target ({shown}): ")
    assert (error.path, error.retryable) == (str(path), False)
    return error


def run_python(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def with_log(path: Path) -> Path:
    """Make a database whose last row is in its log, which is returned."""
    with duckdb.connect(path) as connection:
        connection.execute("create table t (i int)")
    with duckdb.connect(path) as connection:
        connection.execute("set checkpoint_threshold = '1GB'; pragma disable_checkpoint_on_shutdown")
        connection.execute("insert into t values (1)")
    return path.with_name(f"{path.name}.wal")


def test_log_without_its_database_is_kept_and_named(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    log = with_log(path)
    content = log.read_bytes()
    database = path.rename(tmp_path / "elsewhere")
    assert str(refused(path)).endswith(
        "x.duckdb.wal is of a database that is not there; restore it, or remove the file"
    )
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["elsewhere", "x.duckdb.wal"]
    assert log.read_bytes() == content
    database.rename(path)
    opened(path)
    with duckdb.connect(path) as connection:
        assert connection.sql("select * from t").fetchall() == [(1,)]


def test_log_of_another_database_is_no_error_that_passes(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    opened(path)
    shutil.copy(with_log(tmp_path / "other.duckdb"), tmp_path / "x.duckdb.wal")
    with pytest.raises(cf.ExportError, match="WAL") as caught:
        opened(path)
    assert not caught.value.retryable
    assert "Stack Trace" not in str(caught.value)


@pytest.mark.parametrize("length", [233, 234, 251])
def test_name_as_long_as_the_library_takes_it(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("x" * (length - len(".duckdb")) + ".duckdb")
    assert run(Query(EVENTS), sink_of(path, TABLE), 12).rows_added == 12
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(os.name == "nt", reason="the limits of names are Unix's")
def test_name_that_the_library_cannot_take_is_an_export_error(tmp_path: Path) -> None:
    refused(tmp_path / ("x" * 245 + ".duckdb"))
    assert [*tmp_path.iterdir()] == []


def test_file_that_cannot_be_made_is_named_as_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.duckdb"

    def deny(file: Path) -> None:
        raise duckdb.IOException(f'IO Error: Cannot open file "{file}": {os.strerror(errno.EACCES)}')

    monkeypatch.setattr(duckdb, "connect", deny)
    error = refused(path)
    assert f'Cannot open file "{path}": ' in str(error)
    assert str(error).endswith("; make its directory writable and free space, or name another file")
    assert error.errno == errno.EACCES


KILLED = """
import os
import signal
import sys
from chainframe.sinks.targets import sink_of

link = os.link

def killed(*files):
    if {after}:
        link(*files)
    os.kill(os.getpid(), signal.SIGKILL)

os.link = killed
sink_of("x.duckdb", "t")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
def test_files_of_a_run_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    for after in (False, True):
        assert run_python(KILLED.format(after=after), tmp_path).returncode == -signal.SIGKILL
        assert path.exists() == after
    of_others = tmp_path / f"{_temporary_name(Path('y.duckdb'))}0.tmp"
    of_others.touch()
    assert len([*tmp_path.iterdir()]) == 4
    opened(path)
    assert sorted(tmp_path.iterdir()) == [of_others, path]
    assert path.stat().st_nlink == 1


def test_file_of_another_program_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with sqlite3.connect(path) as connection:
        connection.execute("create table a (b)")
    connection.close()
    for content in (path.read_bytes(), b"hello", b"hello" * 2_000):
        path.write_bytes(content)
        assert str(refused(path)).endswith("): x.duckdb is not a DuckDB database; name another file")
        assert path.read_bytes() == content


def test_encrypted_database_is_left_to_the_library(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect() as connection:
        try:
            # Else an extension is needed to write one.
            connection.execute("set force_mbedtls_unsafe = 'true'")
        except duckdb.CatalogException:
            pytest.skip("needs a newer duckdb")
        connection.execute(f"attach '{path}' as x (encryption_key 'k'); create table x.t (i int); detach x")
    with pytest.raises(cf.ExportError, match="encrypted database"):
        opened(path)


@pytest.mark.skipif(sys.platform == "win32", reason="locks end with another descriptor only on Unix")
def test_lock_of_a_connection_of_this_process_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        opened(path)
        done = run_python("import duckdb; duckdb.connect('x.duckdb')", tmp_path)
        assert "Could not set lock" in done.stderr
        assert connection.sql("select 1").fetchall() == [(1,)]
