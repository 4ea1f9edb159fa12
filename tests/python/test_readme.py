"""What the README shows is true: its Python runs, in its order, and its tables are whole."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import chainframe as cf
from chainframe import errors
from chainframe.testing import LocalService
from conftest import needs_extra

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def pasted(service: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to be in, with the settings of a service in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAINFRAME_BASE_URL", service.url)
    monkeypatch.setenv("CHAINFRAME_API_KEY", service.api_key)
    monkeypatch.setenv("CHAINFRAME_SECRET_KEY", service.secret_key)
    monkeypatch.setenv("CHAINFRAME_PASSPHRASE", service.passphrase)
    return tmp_path


@needs_extra
@pytest.mark.usefixtures("pasted")
def test_its_python_runs(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    before = service.requests
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)
    assert len(BLOCKS) >= 6
    assert service.requests > before
    assert len(capsys.readouterr().out.splitlines()) >= 8


@needs_extra
@pytest.mark.skipif(os.name == "nt" or shutil.which("jq") is None, reason="it is for a POSIX shell, and jq")
def test_its_commands_run(pasted: Path) -> None:
    section = README.partition("## From the shell")[2]
    commands = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    block = "\n".join(line for line in commands if not line.startswith("pip install"))
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(["sh", "-ec", block], env={**os.environ, "PATH": path}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    sizes = {file.name: file.stat().st_size for file in pasted.iterdir()}
    # Not one of them empty: what it asks for, the local service has.
    assert sorted(name for name, size in sizes.items() if size > 100) == ["transactions.jsonl", "transfers.parquet"]


def test_it_lists_every_setting() -> None:
    table = README.partition("## Settings")[2].partition("\n## ")[0]
    settings = {
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert settings == set(inspect.signature(cf.Client).parameters)
    assert len(settings) > 10


def test_it_lists_every_error_that_a_user_meets() -> None:
    table = README.partition("## Errors")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    parents = {"ChainframeError", "ServiceError", "PaginationError", "IncompleteResultWarning"}
    assert listed == set(errors.__all__) - parents


def test_it_names_every_call() -> None:
    calls = [name for name, member in vars(cf.Client).items() if callable(member) and f"`{name}`" in README]
    assert len(calls) >= 9


def test_its_rooms_exist() -> None:
    root = Path(__file__).parents[2]
    rooms = re.findall(r"`((?:src|python|tests|examples)/[\w/.]*)`", README)
    assert len(rooms) > 8
    assert [room for room in rooms if not (root / room).exists()] == []
