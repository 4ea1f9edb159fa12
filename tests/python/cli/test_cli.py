"""The `chainframe` command in a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sysconfig
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


@contextmanager
def serving(*arguments: str) -> Generator[tuple[subprocess.Popen[str], list[str]]]:
    """A running `chainframe serve`, and the lines it says before it serves."""
    command = [COMMAND, "serve", "--transactions", "50", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("# serving"):
                break
        try:
            yield process, lines
        finally:
            process.kill()


def settings(lines: list[str]) -> dict[str, str]:
    pairs = [shlex.split(line)[1].partition("=") for line in lines if line.startswith("export ")]
    return {name: value for name, _, value in pairs}


WRONG = [
    (),
    ("sing",),
    ("serve", "--port", "x"),
    ("serve", "--port", "70000"),
    ("serve", "--growth", "-1"),
    ("serve", "--rate-limit", "0"),
    ("serve", "--main", "a/b"),
    ("serve", "--load", "blocks"),
    ("serve", "--load", "block=blocks.jsonl"),
    ("serve", "--load", "blocks=nowhere.jsonl"),
]


def test_version_option_prints_the_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"chainframe {cf.__version__}\n")


@pytest.mark.parametrize("arguments", WRONG)
def test_usage_error_exits_with_2_and_names_the_problem(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("chainframe")
    assert all(name.lstrip("-").split("-")[0] in last for name in arguments[1:2] if name != "--load")
    assert all(name.partition("=")[2] in last or "block" in last for name in arguments[2:] if "=" in name)
    assert "Traceback" not in done.stderr


def test_serve_names_a_port_that_is_in_use() -> None:
    with serving() as (_, lines):
        port = settings(lines)["CHAINFRAME_BASE_URL"].rpartition(":")[2]
        done = run("serve", "--port", port)
    assert done.returncode == 2
    assert done.stderr.startswith("chainframe: ")
    assert port in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is full")
@pytest.mark.parametrize("arguments", [("doctor",), ("serve",)])
def test_write_error_is_reported_in_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "chainframe: --output cannot be written: No space left on device\n")


def test_help_lists_every_option() -> None:
    text = run("serve", "--help").stdout
    for option in ("--port", "--transactions", "--seed", "--db", "--rate-limit", "--growth", "--header-prefix"):
        assert option in text


def test_serve_prints_the_settings_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (_, lines):
        for name, value in settings(lines).items():
            monkeypatch.setenv(name, value)
        assert len(settings(lines)) == 6
        with cf.Client() as client:
            assert len(client.tokens().collect()) > 0


def test_serve_loads_data_and_a_cassette(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blocks.jsonl").write_text('{"height": 7}\n')
    with (
        LocalService(transactions=60) as service,
        service.client(cassette=Cassette(tmp_path / "c.jsonl")) as client,
    ):
        client.transactions().collect()
    database = ("--db", str(tmp_path / "chain.sqlite"))
    own = ("--load", f"blocks={tmp_path / 'blocks.jsonl'}", "--cassette", str(tmp_path / "c.jsonl"))
    for arguments in ((*database, *own), database):
        with serving(*arguments) as (_, lines), monkeypatch.context() as environment:
            for name, value in settings(lines).items():
                environment.setenv(name, value)
            with cf.Client() as client:
                assert [block.height for block in client.blocks()] == [7]
                assert len(client.transactions().collect()) == 60


def test_serve_uses_the_names_of_a_deployment() -> None:
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta")
    served = serving("--header-prefix", "XY", "--main", "alpha", "--zone", "beta")
    with served as (_, lines), pytest.MonkeyPatch.context() as environment:
        for name, value in settings(lines).items():
            environment.setenv(name, value)
        with cf.Client() as client:
            assert client.deployment == deployment
            assert len(client.blocks().collect()) > 0
        assert run("doctor").returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_serve_stops_cleanly(number: signal.Signals, code: int) -> None:
    with serving() as (process, _):
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (code, "", "")


def test_cassette_show_lists_interactions(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with LocalService(transactions=5) as service, service.client(cassette=Cassette(path)) as client:
        client.blocks(height=4_300_001).collect()
        service.faults = [{"kind": "code", "code": "50037"}]
        with pytest.raises(cf.NotFoundError):
            client.tokens().collect()
    noted = path.read_text(encoding="utf-8").replace("{", '{"note":"the newest",', 1)
    path.write_text(noted, encoding="utf-8")
    shown = run("cassette", "show", str(path))
    assert (shown.returncode, shown.stderr) == (0, "")
    note, first, second = shown.stdout.splitlines()
    assert note == "# the newest"
    assert first.split()[:2] == ["1", "200"]
    assert "block-list?" in first
    assert "height=4300001" in first
    assert "token-list?" in second
    (interaction, _) = [json.loads(line) for line in run("cassette", "show", "--json", str(path)).stdout.splitlines()]
    assert interaction["params"]["height"] == "4300001"
    deep = {"method": "GET", "path": "/", "params": {}, "status": 200, "text": "[" * 100_000}
    path.write_text(json.dumps(deep), encoding="utf-8")
    assert run("cassette", "show", "--body", str(path)).stdout.endswith(f" GET /?\n{deep['text']}\n")
    missing = run("cassette", "show", str(tmp_path / "none.jsonl"))
    assert (missing.returncode, missing.stderr) == (2, f"chainframe: {tmp_path / 'none.jsonl'} does not exist\n")
