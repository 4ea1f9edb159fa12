"""Directory of an export: overwriting, durability, locks and full disks."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.exports import directory as export_directory
from chainframe.exports import locks, writer
from chainframe.exports.directory import LocalStore, locked_dir
from chainframe.exports.manifest import Commit, Manifest, Part, local_manifest
from chainframe.exports.store import saved_rows
from chainframe.exports.writer import COUNTS
from chainframe.testing import LocalService
from conftest import environment


def heights(directory: Path) -> list[Any]:
    found: list[Any] = pq.read_table(directory).column("height").to_pylist()
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_cursor_of_another_release_is_named_as_such(failing: Any, tmp_path: Path) -> None:
    service, query = failing
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet(tmp_path, max_rows_per_file=20)
    manifest = tmp_path / Manifest.NAME
    state = json.loads(manifest.read_text())
    state["cursor"]["version"] = 2
    manifest.write_text(json.dumps(state))
    with pytest.raises(
        cf.ExportError, match=r"its cursor has unsupported version 2 .*; use the release that wrote it, or"
    ):
        query.to_parquet(tmp_path, max_rows_per_file=20)


def test_overwriting_keeps_the_old_export_until_the_new_one_is_complete(failing: Any, tmp_path: Path) -> None:
    service, query = failing
    old = query.to_parquet(tmp_path, max_rows_per_file=30)
    before = heights(tmp_path)
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    for _ in range(2):
        with pytest.raises(cf.ServiceUnavailableError):
            query.to_parquet(tmp_path, mode="overwrite", max_rows_per_file=20)
        assert heights(tmp_path) == before
        manifest = local_manifest(tmp_path)
        assert manifest is not None
        assert manifest.finished
    service.faults = []
    sent = service.request_count
    new = query.to_parquet(tmp_path, mode="resume", max_rows_per_file=20)
    assert service.request_count - sent < 10
    assert heights(tmp_path) == before
    assert [pq.read_metadata(part).num_rows for part in new.parts] == [20, 10, 20, 20, 20, 10]
    assert len(old.parts) == 4
    assert names(tmp_path) == ["_manifest.json", *(part.name for part in new.parts)]


def test_another_query_does_not_resume_what_is_to_replace(failing: Any, tmp_path: Path) -> None:
    service, query = failing
    query.to_parquet(tmp_path)
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with service.client(max_retries=0) as client, pytest.raises(cf.ServiceUnavailableError):
        client.transactions(page_size=10).to_parquet(tmp_path, mode="overwrite")
    sent = service.request_count
    assert query.to_parquet(tmp_path).rows == 100
    assert service.request_count == sent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_overwriting_that_is_killed_leaves_one_of_the_two_exports(failing: Any, tmp_path: Path) -> None:
    from exports.test_exports_killed import die_at, ended, in_a_child  # noqa: PLC0415 - it forks

    _, query = failing
    step = 0
    for step in range(1, 1_000):
        directory = tmp_path / str(step)
        query.to_parquet(directory, max_rows_per_file=60)

        def work(directory: Path = directory, step: int = step) -> None:
            die_at(step)
            query.to_parquet(directory, mode="overwrite", max_rows_per_file=40)

        finished = ended(in_a_child(work)) == 0
        export = query.to_parquet(directory)
        assert heights(directory) == list(range(max(heights(directory)), max(heights(directory)) - 100, -1))
        assert len(export.parts) == (3 if finished else len(export.parts))
        assert [name for name in names(directory) if name.startswith("part-")] == [part.name for part in export.parts]
        if finished:
            break
    assert step > 30


def test_parts_are_cut_by_time(failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, query = failing
    service.faults = [{"kind": "delay", "seconds": 0.02}]
    monkeypatch.setattr(writer, "MAX_AGE", 0.0)
    export = query.to_parquet(tmp_path)
    assert len(export.parts) > 2
    assert len(heights(tmp_path)) == 100


def test_journal_of_a_set_holds_only_the_positions_that_moved() -> None:
    lists = [[f"0x{number:040x}", {"after": {"position": 7, "known": "A" * 1_000}}] for number in range(200)]
    cursor = {"follow": 4, "position": {"set": {"new": "beginning", "lists": lists}}}
    verdicts = {"argument": [value for value, _ in lists], "records": [0] * 200}
    manifest = Manifest(query={}, numbers="decimal", schema={}, cursor=cursor, report={"verdicts": verdicts})
    moved = json.loads(json.dumps(cursor))
    moved["position"]["set"]["lists"][3][1]["after"]["position"] = 8
    report = {"verdicts": {**verdicts, "records": [*[0] * 199, 5]}, "missing": ["0xa"]}
    progress = Commit(parts=[], watermark=[], cursor=moved, report=report, settled=None)

    line = json.loads(json.dumps(manifest.change(progress)))
    manifest.apply(line)

    assert (manifest.cursor, manifest.report) == (moved, report)
    assert len(json.dumps(line)) < 2_000


def test_journal_holds_only_what_changes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    manifest = Manifest(query={"call": "logs", "chain": "X", "arguments": {}}, numbers="decimal", schema={})
    store.begin(manifest)
    hashes = [f"0x{number:064x}" for number in range(1_000)]
    for number in range(50):
        part = Part(name=f"part-{number:06}.parquet", rows=1, bytes=1, sha256="0")
        report = {**dict.fromkeys(COUNTS, 0), "complete": False, "reasons": [], "missing": hashes[: 20 * number]}
        report["records"] = number + 1
        store.commit(manifest, Commit([part], [], {"args": hashes, "position": number}, report))
    journal = tmp_path / Manifest.JOURNAL
    assert journal.stat().st_size < 4 * len(json.dumps(hashes))
    assert local_manifest(tmp_path) == manifest
    # A line that was cut short, and whatever follows it, does not count.
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:30]) + lines[30][:-9] + b"\n" + b"".join(lines[31:]))
    found = local_manifest(tmp_path)
    assert found is not None
    assert len(found.parts) == 30
    # The manifest that includes a journal may be beside it.
    store.close()
    (tmp_path / Manifest.NAME).write_bytes(manifest.to_json())
    assert local_manifest(tmp_path) == manifest


def test_lock_that_is_taken_can_be_retried(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service, _ = failing
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    with locked_dir(tmp_path):
        assert main(["blocks", "-o", f"{tmp_path}/"]) == 7
    assert "is locked by another export; try again" in capsys.readouterr().err
    assert main(["blocks", "-o", f"{tmp_path}/"]) == 0


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "no answer"), KeyboardInterrupt()])
def test_lock_that_fails_or_is_interrupted_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    opened: list[int] = []

    def fail(descriptor: int) -> None:
        opened.append(descriptor)
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fail)
        with pytest.raises(type(failure)):
            locks.acquire_lock(tmp_path / "lock", tmp_path, "held")
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(opened[0])


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK])
def test_file_system_without_locks_is_an_export_error(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks, "_try_lock", unsupported)
    with pytest.raises(cf.ExportError, match="the file system has no file locks") as caught:
        failing[1].to_parquet(tmp_path)
    assert not caught.value.retryable


def test_directory_that_cannot_be_made_is_an_export_error(failing: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(cf.ExportError, match="file") as caught:
        failing[1].to_parquet(tmp_path / "file" / "below")
    assert str(tmp_path / "file") in str(caught.value.path)
    # It is found before the system refuses it.
    assert caught.value.errno is None
    # The system's error says nothing else, and would be shown first.
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


@pytest.mark.skipif(not hasattr(os, "fsync") or os.name == "nt", reason="directories are synced on Unix")
def test_new_directories_are_synced(failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    sync = export_directory.sync_directory

    def record(path: Path) -> None:
        synced.append(path)
        sync(path)

    monkeypatch.setattr(export_directory, "sync_directory", record)
    failing[1].to_parquet(tmp_path / "a" / "b")
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(synced)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of descriptors are read from /proc")
def test_disk_that_is_full_keeps_what_was_committed(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, query = failing
    left = 3
    fsync = os.fsync

    def full(descriptor: int) -> None:
        nonlocal left
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".jsonl":
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(cf.ExportError, match="No space left on device; what was committed before is kept"):
        query.to_parquet(tmp_path, max_rows_per_file=20)
    monkeypatch.undo()
    manifest = local_manifest(tmp_path)
    assert manifest is not None
    assert manifest.rows == 60
    assert query.to_parquet(tmp_path, max_rows_per_file=20).rows == 100
    assert len(set(heights(tmp_path))) == 100


@pytest.mark.parametrize("failing_part", [0, 1, 2])
def test_rows_after_those_that_could_not_be_written_are_not_kept(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_part: int
) -> None:
    _, query = failing
    write, failed = LocalStore.write_part, False

    def fail_once(self: LocalStore, name: str, *arguments: Any) -> Part:
        nonlocal failed
        if name == f"part-{failing_part:06}.parquet" and not failed:
            failed = True
            raise cf.ExportError("full")
        return write(self, name, *arguments)

    monkeypatch.setattr(LocalStore, "write_part", fail_once)
    with pytest.raises(cf.ExportError, match="full"):
        query.to_parquet(tmp_path, max_rows_per_file=25)
    assert sum(part.rows for part in getattr(local_manifest(tmp_path), "parts", ())) == 20 * failing_part
    assert query.to_parquet(tmp_path, max_rows_per_file=25).rows == 100
    assert len(set(heights(tmp_path))) == 100


def test_columns_in_another_order_are_another_export(failing: Any, tmp_path: Path) -> None:
    failing[1].to_parquet(tmp_path, columns=["height", "hash"])
    with pytest.raises(cf.ExportError, match=r"columns is \['height', 'hash'\] there and \['hash', 'height'\] here"):
        failing[1].to_parquet(tmp_path, columns=["hash", "height"])


def test_coroutine_that_is_dropped_keeps_what_was_fetched(failing: Any, tmp_path: Path) -> None:
    service, query = failing
    service.faults = [{"kind": "delay", "seconds": 30, "every": 5}]
    loop = asyncio.new_event_loop()
    task = loop.create_task(query.to_parquet_async(tmp_path))

    while service.request_count < 5:
        loop.run_until_complete(asyncio.sleep(0.01))
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    task.cancel()
    loop.close()
    del task
    service.faults = []
    assert saved_rows(tmp_path) == 40
    before = service.request_count
    assert query.to_parquet(tmp_path).rows == 100
    assert service.request_count - before <= 8


MEMORY = """
import json, sys, tempfile, time
import chainframe as cf
import pyarrow.parquet

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

hashes = json.load(sys.stdin)
query = cf.Client(rate_limit=None).logs(hashes)
before, began = status("VmRSS"), time.process_time()
rows = len(query.collect())
collected, between = time.process_time() - began, time.process_time()
assert query.to_parquet(tempfile.mkdtemp(dir=sys.argv[1])).rows == rows
print(json.dumps([status("VmHWM") - before, collected, time.process_time() - between]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_lookup_of_many_hashes_takes_little_memory(tmp_path: Path) -> None:
    with LocalService(transactions=5_000) as service, service.client(rate_limit=None) as client:
        hashes = [transaction.tx_id for transaction in client.transactions(max_items=4_000)]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MEMORY, str(tmp_path)],
            input=json.dumps(hashes),
            env={**os.environ, **environment(service)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    growth, *_ = json.loads(done.stdout)
    assert growth < 100 << 20


def test_part_that_is_removed_during_the_run_is_an_error(failing: Any, tmp_path: Path) -> None:
    _, query = failing
    write = LocalStore.write_part

    def remove(self: LocalStore, name: str, *arguments: Any) -> Part:
        part = write(self, name, *arguments)
        if name == "part-000003.parquet":
            (tmp_path / "part-000001.parquet").unlink()
        return part

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "write_part", remove)
        with pytest.raises(cf.ExportError, match=r"part-000001\.parquet is missing"):
            query.to_parquet(tmp_path, max_rows_per_file=20)
    assert not getattr(local_manifest(tmp_path), "finished", True)


def test_finished_export_that_cannot_be_written_to_is_opened(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, query = failing
    export = query.to_parquet(tmp_path)

    # A read-only mount: root is refused as well.
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(export_directory, "acquire_lock", refuse)
    sent = service.request_count
    assert query.to_parquet(tmp_path) == export
    assert asyncio.run(awaited(query, tmp_path)) == export
    assert service.request_count == sent
    with pytest.raises(cf.ExportError, match="Read-only file system"):
        query.to_parquet(tmp_path, mode="overwrite")


async def awaited(query: Any, directory: Path) -> Any:
    return await query.to_parquet_async(directory)
