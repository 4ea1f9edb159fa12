"""Runs on one directory or file at the same time: one at a time has it, and none ends with an error of the disk."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports import locks
from chainframe.exports.files import FileRequest

WRITES: dict[str, Callable[[Any, Path], Any]] = {
    "to_csv": lambda query, path: query.to_csv(path / "b.csv"),
    "to_json_async": lambda query, path: asyncio.run(query.to_json_async(path / "b.jsonl")),
    "to_parquet of a file": lambda query, path: query.to_parquet(path / "b.parquet"),
    "to_parquet": lambda query, path: query.to_parquet(path / "b"),
    "to_parquet_async": lambda query, path: asyncio.run(query.to_parquet_async(path / "b")),
    "compact": lambda query, path: chainframe.exports.compact(query.to_parquet(path / "b"), path / "c"),
}


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("write", WRITES)
def test_directory_that_another_run_removes_before_it_is_locked_is_made_again(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, write: str
) -> None:
    removed: list[Path] = []
    acquire = locks.acquire_lock

    def acquire_late(path: Path, locked: Path, message: str) -> int:
        if len(removed) < times:
            with suppress(OSError):
                locked.rmdir()
                removed.append(locked)
        return acquire(path, locked, message)

    monkeypatch.setattr("chainframe.exports.directory.acquire_lock", acquire_late)
    assert WRITES[write](client.blocks(max_items=20), tmp_path).rows == 20
    assert removed
    assert {path.name for path in tmp_path.iterdir()} <= {"b", "b.csv", "b.jsonl", "b.parquet", "c"}


@pytest.mark.parametrize("write", WRITES)
def test_directory_in_which_no_file_can_be_created_is_an_error(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """Such as those of processes in `/proc`, where a new file is one that is not found."""
    attempts: list[Path] = []

    def acquire(path: Path, *_: object) -> int:
        attempts.append(path)
        assert len(attempts) < 100
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setattr("chainframe.exports.directory.acquire_lock", acquire)
    with pytest.raises(cf.ExportError, match="No such file or directory"):
        WRITES[write](client.blocks(max_items=20), tmp_path)
    assert attempts


@pytest.mark.parametrize("is_awaited", [False, True])
def test_parts_that_another_run_removes_while_they_are_copied_are_named_as_such(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_awaited: Any
) -> None:
    copy = FileRequest._copy

    def copy_late(request: FileRequest, *arguments: Any) -> None:
        request.discard()
        copy(request, *arguments)

    monkeypatch.setattr(FileRequest, "_copy", copy_late)
    query = client.blocks(max_items=20)
    path = tmp_path / "b.csv"
    with pytest.raises(cf.ExportError, match=r"b\.csv\.part was changed by another export; try again") as caught:
        asyncio.run(query.to_csv_async(path)) if is_awaited else query.to_csv(path)
    assert caught.value.retryable
    monkeypatch.undo()
    assert query.to_csv(path).rows == 20


def test_runs_to_one_file_end_with_the_file_or_with_its_lock(client: cf.Client, tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    expected = client.blocks().to_csv(tmp_path / "expected.csv").path.read_bytes()
    outcomes: Counter[str] = Counter()
    barrier = Barrier(3)

    def run() -> None:
        barrier.wait()
        try:
            client.blocks().to_csv(path)
            outcomes["written"] += 1
        except cf.ExportError as error:
            outcomes["locked" if error.retryable else str(error)] += 1

    for _ in range(5):
        path.unlink(missing_ok=True)
        threads = [Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert path.read_bytes() == expected
    assert outcomes.keys() <= {"written", "locked"}
