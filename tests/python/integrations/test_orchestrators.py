"""The jobs of docs/guide/orchestrators.md: retries, failures for good and metadata, in stand-ins for the schedulers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import yaml

import chainframe as cf
from chainframe.cli import codes
from chainframe.cli import main as command
from chainframe.cli.export import EXIT_CODES
from chainframe.testing import LocalService
from conftest import environment
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs" / "guide" / "orchestrators.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```(?:python|sh) title="([\w./-]+)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL))
FACTS = {"rows_added", "rows_removed", "height", "requests", "complete"}


class Final(Exception):  # noqa: N818 - the error of each scheduler that ends its retries
    def __init__(self, description: str = "", *, allow_retries: bool = False) -> None:
        super().__init__(description)
        assert not allow_retries


def plain(*_functions: Any, **options: Any) -> Any:
    """Return a function as it is, as the decorators of the schedulers do for tests."""
    if _functions:
        return _functions[0]

    def decorate(function: Any) -> Any:
        function.options = options
        return function

    return decorate


STAND_INS: dict[str, dict[str, Any]] = {
    "airflow": {},
    "airflow.sdk": {"dag": plain, "task": plain},
    "airflow.exceptions": {"AirflowFailException": Final},
    "dagster": {
        "asset": plain,
        "RetryPolicy": SimpleNamespace,
        "Backoff": SimpleNamespace(EXPONENTIAL="exponential"),
        "MaterializeResult": SimpleNamespace,
        "Failure": Final,
    },
    "prefect": {"flow": plain, "task": plain},
}


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=200, seed=7) as running:
        yield running


@pytest.fixture(autouse=True)
def worker(service: LocalService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Schedulers, the job's module and its environment."""
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CHAIN_DATABASE", str(tmp_path / "chain.duckdb"))
    monkeypatch.chdir(tmp_path)
    for name, members in STAND_INS.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "chain_job", loaded("chain_job.py"))


def loaded(name: str) -> Any:
    module = ModuleType(Path(name).stem)
    exec(compile(FILES[name], name, "exec"), vars(module))
    return module


def table() -> int:
    with duckdb.connect("chain.duckdb") as database:
        return int(database.execute("select count(*) from blocks").fetchall()[0][0])


def test_page_has_the_tested_files() -> None:
    assert list(FILES) == ["chain_job.py", "dags/chain.py", "chain_assets.py", "chain_flow.py", "sync-blocks.sh"]


@pytest.mark.parametrize("name", ["dags/chain.py", "chain_assets.py", "chain_flow.py"])
def test_task_returns_the_facts_of_its_run(name: str) -> None:
    module = loaded(name)
    # The example of Airflow has run it once.
    first = module.blocks()
    facts = getattr(first, "metadata", first)
    assert set(facts) == FACTS
    assert facts["complete"]
    again = module.blocks()
    assert getattr(again, "metadata", again) == {**facts, "rows_added": 0, "requests": 1}
    assert table() > 0


ERRORS = [cf.TransportError("connection refused", retryable=True), cf.AuthenticationError("the key is unknown")]


@pytest.mark.parametrize("error", ERRORS, ids=["passing", "lasting"])
def test_task_is_repeated_if_its_error_may_pass(error: cf.ChainframeError) -> None:
    def fail() -> None:
        raise error

    for name in ("dags/chain.py", "chain_assets.py"):
        module = loaded(name)
        module.load_blocks = fail
        with pytest.raises(type(error) if error.retryable else Final) as caught:
            module.blocks()
        assert error in {caught.value, caught.value.__cause__}
    flow = loaded("chain_flow.py")
    condition = flow.blocks.options["retry_condition_fn"]
    assert condition(None, None, SimpleNamespace(result=fail)) == error.retryable


def test_job_of_cron_ends_with_the_code_of_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scripts = sysconfig.get_path("scripts")
    (tmp_path / "sleep").write_text('#!/bin/sh\necho "$1" >> waits\n')
    (tmp_path / "sleep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{scripts}{os.pathsep}{os.environ['PATH']}")

    def run(option: str = "") -> subprocess.CompletedProcess[str]:
        script = FILES["sync-blocks.sh"].replace("--strict", f"--strict {option}")
        return subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)

    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows_added"] == table()
    monkeypatch.setenv("CHAINFRAME_SECRET_KEY", "wrong")
    assert run().returncode == 3
    assert not Path("waits").exists()
    monkeypatch.setenv("CHAINFRAME_BASE_URL", "http://127.0.0.1:1")
    assert run("--max-retries 0").returncode == 5
    assert Path("waits").read_text().split() == ["60", "120", "240", "480", "0"]


def test_manifest_of_kubernetes_names_the_codes_that_last() -> None:
    (manifest,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    job = yaml.safe_load(manifest)["spec"]["jobTemplate"]["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    (container,) = job["template"]["spec"]["containers"]
    passing = {code for kind, code in EXIT_CODES if kind in {cf.RateLimitError, cf.TransportError}} | {codes.LOCKED}
    lasting = {code for _, code in EXIT_CODES} - passing | {codes.REFUSED}
    assert set(rule["onExitCodes"]["values"]) == lasting
    assert rule["onExitCodes"]["containerName"] == container["name"]
    program, call, option, target, *others = container["command"]
    assert (program, option, target) == ("chainframe", "--sync", "s3://lake/blocks")
    assert command([call, option, "lake/blocks", *others]) == 0
