"""The directory of a cache: who reads it, what it holds, damage, links, bounds, and the command for it."""

from __future__ import annotations

import pickle
import sqlite3
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import LocalService
from client.test_cache import FILE, queries

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=7, simulated=True) as running:
        yield running


def test_directory_has_no_secret_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "cache"
    with LocalService(transactions=1_500) as service:
        for query in queries(service.client(cache=directory)).values():
            query.collect()
        secrets = [service.api_key, service.secret_key, service.passphrase]
    written = b"".join(file.read_bytes() for file in directory.iterdir())
    assert b"transactions" in written
    assert not [secret for secret in secrets if secret.encode() in written]
    if sys.platform != "win32":
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / FILE).stat().st_mode) == 0o600


def test_accounts_share_results_and_services_do_not(tmp_path: Path) -> None:
    with LocalService(transactions=300, seed=1) as one, LocalService(transactions=300, seed=2) as other:
        first, second = one.client(cache=tmp_path), other.client(cache=tmp_path)
        assert first.blocks().collect() != second.blocks().collect()
        assert second.blocks().collect() == other.client().blocks().collect()
        renamed = one.client(cache=tmp_path, max_retries=0, numbers="string")
        assert renamed.blocks().collect().report.requests == 1
        with pytest.raises(cf.ChainframeError):
            one.client(cache=tmp_path, main_chain="OTHER").transactions().collect()


@pytest.mark.parametrize("damage", ["foreign", "cut", "changed", "directory"])
def test_damaged_database_is_a_miss(service: LocalService, tmp_path: Path, damage: str) -> None:
    client = service.client(cache=tmp_path)
    blocks = client.blocks().collect()
    file = tmp_path / FILE
    if damage == "foreign":
        file.write_bytes(b"no database" * 1_000)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif damage == "directory":
        file.unlink()
        file.mkdir()
    else:
        with sqlite3.connect(file) as connection:
            rows = connection.execute("select rows from entries").fetchone()[0]
            connection.execute("update entries set rows = ?", (rows.replace(b"0x", b"0y", 1),))
        connection.close()
    read = client.blocks().collect()
    assert read == blocks
    used = read.report.cache
    assert used is not None
    assert used["records"] == 0
    if damage != "changed":
        assert FILE in used["reason"]


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege there")
@pytest.mark.parametrize("content", [None, b""])
def test_nothing_is_kept_through_a_symbolic_link(service: LocalService, tmp_path: Path, content: bytes | None) -> None:
    elsewhere, directory = tmp_path / "elsewhere", tmp_path / "cache"
    directory.mkdir()
    if content is not None:
        elsewhere.write_bytes(content)
    with service.client(cache=directory) as client:
        client.blocks(max_items=5).collect()
        (database,) = directory.iterdir()
        database.unlink()
        database.symlink_to(elsewhere)
        report = client.blocks(max_items=5).collect().report
    assert report.cache is not None
    assert "is a symbolic link; remove it" in str(report.cache["reason"])
    assert report.requests > 0
    assert (elsewhere.read_bytes() if elsewhere.exists() else None) == content


def test_bounds_of_size_and_age(service: LocalService, tmp_path: Path) -> None:
    client = service.client(cache=cf.Cache(tmp_path, max_bytes=200_000))
    for count in range(200, 1_200, 100):
        client.blocks(max_items=count).collect()
    assert client.cache is not None
    entries = client.cache.entries()
    assert 0 < sum(entry["bytes"] for entry in entries) <= 200_000
    assert entries[0]["query"]["max_items"] == 1_100
    assert (tmp_path / FILE).stat().st_size < 400_000
    aged = service.client(cache=cf.Cache(tmp_path, max_age=1e-9))
    assert aged.blocks(max_items=1_100).collect().report.requests > 1


def test_threads_and_processes_share_a_directory(tmp_path: Path) -> None:
    with LocalService(transactions=600, seed=3) as service:
        expected = service.client().blocks().collect()
        barrier = threading.Barrier(6)

        def read(number: int) -> bool:
            client = service.client(cache=tmp_path, strict=number % 2 == 0)
            barrier.wait()
            return all(
                client.blocks(max_items=None if n % 2 else 300).collect() == expected[: 300 * (1 - n % 2) or None]
                for n in range(6)
            )

        with ThreadPoolExecutor(6) as threads:
            assert all(threads.map(read, range(6)))
        copied = pickle.dumps(expected.to_dicts())
        assert pickle.loads(copied) == service.client(cache=tmp_path).blocks().to_dicts()


def test_command_lists_and_clears(
    service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service.client(cache=tmp_path)
    client.blocks(max_items=120).collect()
    (tmp_path / "chainframe-0.sqlite3").write_bytes(b"another version")
    assert main(["cache", "list", "--directory", str(tmp_path)]) == 0
    assert "120 records" in (line := capsys.readouterr().out)
    assert "blocks of ZONE_CHAIN max_items=120" in line
    client.height_at(start := min(block.block_time for block in client.blocks() if block.block_time))
    assert main(["cache", "list", "--directory", str(tmp_path)]) == 0
    assert f"height_at of MAIN time={int(start.timestamp() * 1_000)}" in capsys.readouterr().out
    monkeypatch.setenv("CHAINFRAME_CACHE", str(tmp_path))
    assert main(["cache", "list", "--json"]) == 0
    assert '"records": 120' in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "2 results removed\n"
    assert list(tmp_path.iterdir()) == []
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.delenv("CHAINFRAME_CACHE")
    assert main(["cache", "list"]) == 2
    assert "no cache: pass --directory or set CHAINFRAME_CACHE" in capsys.readouterr().err
    assert main(["cache", "clear", "--directory", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err
