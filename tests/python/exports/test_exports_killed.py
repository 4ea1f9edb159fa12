"""Exports that are killed at each step and at any moment, then run again: each record once, no leftover files."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.cli.follow import CursorFile
from chainframe.exports.directory import atomic_write, remove_temporaries
from chainframe.exports.files import FileRequest
from chainframe.exports.locks import marked_as_written
from chainframe.testing import LocalService

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

# What reaches the disk, as the export calls it.
STEPS: list[tuple[object, str]] = [
    (os, "fsync"),
    (Path, "open"),
    (Path, "replace"),
    (Path, "unlink"),
    (Path, "mkdir"),
    (pq, "write_table"),
]


def export(service: LocalService, directory: Path, most: int | None = None, max_rows_per_file: int = 20) -> None:
    with service.client(concurrency=2, rate_limit=None) as client:
        client.blocks(page_size=10, max_items=most).to_parquet(directory, max_rows_per_file=max_rows_per_file)


def die_at(step: int) -> None:
    """Kill this process before its `n`-th step."""
    left = step

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def then(*arguments: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return then

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))


def in_a_child(work: Callable[[], None]) -> int:
    """The child's process id; it ends with 0 if the work was done."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """Return the exit code of the child, or the negative signal that killed it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, -signal.SIGKILL}
    return -code


def hashes(directory: Path) -> list[Any]:
    listed: list[Any] = pq.read_table(directory).column("hash").to_pylist()
    return listed


def assert_tidy(directory: Path) -> None:
    parts = sorted(directory.glob("part-*.parquet"))
    assert sorted(directory.iterdir()) == sorted([*parts, directory / "_manifest.json"])
    assert parts


def test_export_killed_at_any_step_is_complete_after_the_next_run(service: LocalService, tmp_path: Path) -> None:
    with service.client() as client:
        expected = [block.hash for block in client.blocks(max_items=15)]

    def dying(directory: Path, step: int) -> Callable[[], None]:
        def work() -> None:
            die_at(step)
            export(service, directory, 15, max_rows_per_file=4)

        return work

    step = 0
    for step in range(1, 1_000):
        directory = tmp_path / str(step)
        if ended(in_a_child(dying(directory, step))) == 0:
            break
        # In fewer parts, so that what was not listed is not merely written over.
        export(service, directory, 15)
        assert hashes(directory) == expected
        assert_tidy(directory)
        before = service.request_count
        export(service, directory, 15)
        assert service.request_count == before
    assert step > 30


@pytest.mark.parametrize("growth", [0, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_export_killed_repeatedly_has_each_record_once(tmp_path: Path, growth: int, seed: int) -> None:
    chance = random.Random(seed)
    kills = 0
    with LocalService(transactions=400, growth=growth) as service:
        for attempt in range(200):
            child = in_a_child(lambda: export(service, tmp_path))
            # Later kills leave more time, so that it ends.
            time.sleep(chance.uniform(0, 0.01 * (attempt + 2)))
            os.kill(child, signal.SIGKILL)
            if ended(child) == 0:
                break
            kills += 1
        export(service, tmp_path)
        with service.client() as client:
            now = [block.hash for block in client.blocks()]
    found = hashes(tmp_path)
    # The list as it was at some moment: whole from there on, and nothing twice.
    assert found == now[len(now) - len(found) :]
    assert len(found) > 50
    assert growth or found == now
    assert kills
    assert_tidy(tmp_path)


def test_child_process_is_killed_before_it_finishes(service: LocalService, tmp_path: Path) -> None:
    def work() -> None:
        die_at(25)
        export(service, tmp_path)

    assert ended(in_a_child(work)) == signal.SIGKILL
    with service.client() as client, pytest.raises(cf.ExportError, match="holds an export"):
        client.blocks().to_parquet(tmp_path, mode="error")


def test_file_is_kept_until_its_writer_has_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "blocks.csv"
    replace = Path.replace

    def replace_later(temporary: Path, target: Path) -> Path:
        remove_temporaries(path)
        return replace(temporary, target)

    monkeypatch.setattr(Path, "replace", replace_later)
    with atomic_write(path) as file:
        file.write(b"height")
    assert path.read_bytes() == b"height"


@pytest.mark.parametrize("name", ["blocks.csv", "x" * 230 + ".parquet"])
def test_file_whose_writer_was_killed_leaves_nothing_after_the_next_run(
    service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def write() -> None:
        with service.client(rate_limit=None) as client:
            method = "to_csv" if name.endswith(".csv") else "to_parquet"
            getattr(client.blocks(max_items=15), method)(tmp_path / name)

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(FileRequest, "_write", killed)
        assert ended(in_a_child(write)) == signal.SIGKILL
    (left,) = [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
    other = tmp_path / left.name.replace(".", ".a", 1)
    other.touch()
    # One that another process may have created just now stays, so does one that is being written, and another file's.
    write()
    assert left.exists()
    left.write_bytes(b"height")
    with left.open("rb") as file, marked_as_written(file.fileno()):
        file.close()
        write()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, left.name, other.name])
    write()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, other.name])


def test_cursor_file_whose_writer_was_killed_leaves_nothing_after_the_next_run(tmp_path: Path) -> None:
    def killed() -> None:
        with atomic_write(tmp_path / "position") as file:
            file.write(b"cursor")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(in_a_child(killed)) == signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    with CursorFile(tmp_path / "position").locked():
        assert [path.name for path in tmp_path.iterdir()] == [".position.lock"]
