"""Standard output of the command: every byte is written before a position is stored, or the command fails."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chainframe.cli import main
from chainframe.testing import LocalService
from conftest import environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits of files and pipes are Unix's")

LIMIT = 100_000
FOLLOW = ["blocks", "--follow", "--start", "beginning", "--poll", "none", "--cursor-file"]
# Everything that prints more than the limit.
COMMANDS = {
    "lines": ["blocks"],
    "csv": ["transactions", "--format", "csv"],
    "arrow": ["transactions", "--format", "arrow"],
    "completion": ["completion", "bash"],
    "openapi": ["openapi"],
    "help": ["blocks", "--help"],
}


@pytest.fixture(scope="module")
def settings() -> Any:
    with LocalService(transactions=3_000) as service:
        yield {**os.environ, **environment(service)}


def run(
    arguments: list[str], settings: Any, unbuffered: str, stdout: Any, limit: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "chainframe", *arguments],
        env={**settings, "PYTHONUNBUFFERED": unbuffered},
        stdout=stdout,
        stderr=subprocess.PIPE,
        preexec_fn=limited,
        check=False,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_follower_stores_no_position_after_output_that_was_cut(settings: Any, tmp_path: Path, unbuffered: str) -> None:
    # Within a write, a full disk cuts it short and raises nothing.
    output, cursor = tmp_path / "blocks.jsonl", tmp_path / "cursor"
    with output.open("wb") as file:
        cut = run([*FOLLOW, str(cursor)], settings, unbuffered, file, LIMIT)
    assert cut.returncode == 1
    assert b"--output cannot be written: File too large" in cut.stderr
    assert not cursor.exists()
    with output.open("ab") as file:
        again = run([*FOLLOW, str(cursor)], settings, unbuffered, file)
    assert again.returncode == 0, again.stderr
    found = set()
    for line in output.read_text().splitlines():
        if line.endswith("}"):
            found.add(json.loads(line)["hash"])
    assert len(found) == 3_000 - 12


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_follower_stores_no_position_for_a_reader_that_ended(settings: Any, tmp_path: Path, unbuffered: str) -> None:
    cursor = tmp_path / "cursor"
    reading, writing = os.pipe()
    reader = subprocess.Popen([sys.executable, "-c", "import os; os.read(0, 100)"], stdin=reading)
    os.close(reading)
    done = run([*FOLLOW, str(cursor)], settings, unbuffered, writing)
    os.close(writing)
    reader.wait()
    assert done.returncode == 141
    assert not cursor.exists()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_follower_stores_no_position_after_a_pipe_that_was_full(settings: Any, tmp_path: Path, unbuffered: str) -> None:
    cursor = tmp_path / "cursor"
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, fcntl.fcntl(writing, fcntl.F_GETFL) | os.O_NONBLOCK)
    done = run([*FOLLOW, str(cursor)], settings, unbuffered, writing)
    os.close(writing)
    os.close(reading)
    assert done.returncode == 1
    assert not cursor.exists()


# Each prints less than a pipe holds.
SHORT = [
    ["--help"],
    ["blocks", "--help"],
    ["--version"],
    ["completion", "bash"],
    ["doctor"],
    ["height-at", "--time", "2025-01-01T00:00:00Z"],
    ["blocks", "--max-items", "1"],
    ["blocks", "--dry-run"],
]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", SHORT, ids=" ".join)
def test_reader_that_has_ended_is_the_same_exit_code_of_every_command(
    settings: Any, arguments: list[str], unbuffered: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(arguments, settings, unbuffered, writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_was_cut_is_an_error(settings: Any, tmp_path: Path, command: str, unbuffered: str) -> None:
    output = tmp_path / "output"
    with output.open("wb") as file:
        whole = run(COMMANDS[command], settings, unbuffered, file)
    assert whole.returncode == 0, whole.stderr
    size = output.stat().st_size
    with output.open("wb") as file:
        cut = run(COMMANDS[command], settings, unbuffered, file, size - 1)
    assert cut.returncode == 1
    assert len(cut.stderr.splitlines()) == 1


def test_recording_that_was_cut_is_an_error_of_the_output(settings: Any, tmp_path: Path) -> None:
    record = ["blocks", "--record", str(tmp_path / "blocks.jsonl"), "-o", str(tmp_path / "blocks.csv")]
    cut = run(record, settings, "", subprocess.DEVNULL, 5_000)
    assert b"blocks.jsonl: cannot be written: File too large" in cut.stderr
    assert cut.returncode == 1


def test_position_is_stored_after_the_output_is_on_the_disk(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    fsync = os.fsync

    def full(descriptor: int) -> None:
        # A file system that finds no room when it writes what it has accepted.
        if os.fstat(descriptor).st_ino == os.fstat(1).st_ino:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    cursor = tmp_path / "cursor"
    assert main([*FOLLOW, str(cursor)]) == 1
    assert "No space left on device" in capfd.readouterr().err
    assert not cursor.exists()
