"""Interrupted commands: the state they keep and their continuation."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from chainframe._declared import ENDPOINTS
from chainframe.cli import main
from chainframe.cli.app import app
from chainframe.testing import Fault, LocalService
from conftest import environment

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")
BUSY: Fault = {"kind": "status", "status": 503, "every": 4}
SAVED = "records saved; rerun with --resume to continue"


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Generator[LocalService]:
    """A service with 300 blocks in which every fourth request fails."""
    with LocalService(transactions=300, faults=[BUSY], **settings) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        yield service


def arguments(path: Path | str, *more: str) -> list[str]:
    return ["blocks", "--page-size", "50", "--concurrency", "1", "--max-retries", "0", "-o", str(path), *more]


def heights(path: Path) -> Sequence[Any]:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)["height"].to_pylist()
    if path.suffix == ".arrow":
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
            return file.read_all()["height"].to_pylist()
    with path.open() as text:
        rows = csv.DictReader(text) if path.suffix == ".csv" else map(json.loads, text)
        return [int(row["height"]) for row in rows]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "arrow"])
def test_interrupted_file_is_resumed(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"blocks.{form}"
    with failing(monkeypatch) as service:
        assert main(arguments(file)) == 5
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("chainframe: blocks: ")
        assert line.endswith(f"; 150 {SAVED}")
        assert [path.name for path in tmp_path.iterdir()] == [f"blocks.{form}.part"]
        service.faults = []
        before = service.request_count
        assert main(arguments(file, "--resume")) == 0
        # Three pages are left, and the final look.
        assert service.request_count - before < 6
        with service.client() as client:
            expected = [block.height for block in client.blocks()]
    assert heights(file) == expected
    assert len(expected) == 300
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_overwrite_starts_a_file_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "blocks.csv"
    with failing(monkeypatch) as service:
        assert main(arguments(file)) == 5
        service.faults = []
        assert main([*arguments(file), "--max-items", "10"]) == 2
        assert main([*arguments(file), "--max-items", "10", "--overwrite"]) == 0
        assert main([*arguments(file), "--max-items", "10", "--mode", "error"]) == 2
    assert len(heights(file)) == 10
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_resume_without_an_earlier_run_starts_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing(monkeypatch) as service:
        service.faults = []
        assert main(arguments(tmp_path / "blocks.csv", "--resume")) == 0
    assert len(heights(tmp_path / "blocks.csv")) == 300


def test_resume_rejects_another_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "blocks.csv"
    with failing(monkeypatch) as service:
        assert main(arguments(file)) == 5
        capsys.readouterr()
        before = service.request_count
        for other in (["--max-items", "200"], ["--columns", "hash"], ["--numbers", "float"]):
            assert main([*arguments(file, "--resume"), *other]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert "pass --overwrite to start over" in line
            assert other[0].removeprefix("--") in line.replace("_", "-")
        assert service.request_count == before
        service.faults = []
        assert main(arguments(file, "--resume")) == 0
    assert len(heights(file)) == 300


def test_interrupted_directory_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "blocks"
    with failing(monkeypatch) as service, service.client() as client:
        assert main(arguments(f"{folder}/", "--columns", "hash,height")) == 5
        assert capsys.readouterr().err.endswith(f"{SAVED}\n")
        service.faults = []
        assert main(arguments(f"{folder}/", "--columns", "hash,height", "--mode", "error")) == 2
        assert "holds an export" in capsys.readouterr().err
        assert main(arguments(f"{folder}/", "--resume")) == 2
        assert "pass --overwrite to start over" in capsys.readouterr().err
        assert main(arguments(f"{folder}/", "--columns", "hash,height", "--resume")) == 0
        expected = client.blocks().to_arrow().select(["hash", "height"])
    assert pyarrow.parquet.read_table(sorted(folder.glob("*.parquet"))) == expected


@pytest.mark.parametrize("output", ["a.parquet", "a.arrow", "a/", "-"])
def test_column_that_is_not_selected_is_not_converted(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wide = {"transactions": [{"tx_id": "0x01", "amount": "1e-30"}]}
    to = ["-o", output if output == "-" else f"{tmp_path}/{output}"]
    command = ["transactions", "--numbers", "decimal", *to, *(["--format", "arrow"] if output == "-" else [])]
    with LocalService(transactions=1, data=wide) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert main([*command, "--columns", "tx_id"]) == 0
        assert main([*command, "--columns", "amount", *(["--resume"] if output == "a/" else [])]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert ("--overwrite" if output == "a/" else "amount") in line
    assert len(list(tmp_path.iterdir())) == (output != "-")


@pytest.mark.skipif(os.name == "nt", reason="Unix has these signals")
def test_interrupt_keeps_the_records_fetched_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(monkeypatch) as service:
        service.faults = [{"kind": "delay", "seconds": 60, "every": 4}]
        with subprocess.Popen(
            [COMMAND, *arguments(tmp_path / "blocks.csv")], stderr=subprocess.PIPE, text=True
        ) as process:
            while service.request_count < 4:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert err == f"chainframe: interrupted; 150 {SAVED}\n"
        assert [path.name for path in tmp_path.iterdir()] == ["blocks.csv.part"]
        service.faults = []
        assert main(arguments(tmp_path / "blocks.csv", "--resume")) == 0
    assert len(heights(tmp_path / "blocks.csv")) == 300


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is full")
@pytest.mark.parametrize("form", ["csv", "jsonl", "arrow"])
def test_full_disk_is_reported_in_one_line(form: str, service: LocalService) -> None:
    with Path("/dev/full").open("wb") as full:
        for output in ([], ["-o", "/dev/full"]):
            done = subprocess.run(
                [COMMAND, "blocks", "--format", form, *output],
                env={**os.environ, **environment(service)},
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            assert done.returncode == 1
            assert done.stderr.startswith("chainframe: --output cannot be written: No space left on device")
            assert len(done.stderr.splitlines()) == 1


def test_every_call_can_be_resumed() -> None:
    calls = [name.replace("_", "-") for name in ENDPOINTS]
    assert calls
    assert [name for name in calls if "mode" not in {param.name for param in app.commands[name].params}] == []


def test_command_runs_in_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(monkeypatch) as service, ThreadPoolExecutor() as pool:
        service.faults = []
        assert pool.submit(main, arguments(tmp_path / "blocks.csv")).result() == 0
    assert len(heights(tmp_path / "blocks.csv")) == 300
