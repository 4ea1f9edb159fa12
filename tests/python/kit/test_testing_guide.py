"""Recipes of the testing guide, each run as the suite it shows."""

from __future__ import annotations

import re

import pytest

from chainframe.testing import LocalService
from conftest import needs_extra
from repository import ROOT

GUIDE = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r'^```python title="([\w.]+)"\n(.*?)^```', GUIDE, re.MULTILINE | re.DOTALL))


def connect(service: LocalService, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("CHAINFRAME_BASE_URL", service.url)
    for name in ("api_key", "secret_key", "passphrase"):
        environment.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))


def run(pytester: pytest.Pytester, name: str, *arguments: str) -> pytest.RunResult:
    (pytester.path / name).write_text(RECIPES[name], encoding="utf-8")
    return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", name, *arguments)


def test_guide_has_the_tested_recipes() -> None:
    assert sorted(RECIPES) == [
        "conftest.py",
        "test_app.py",
        "test_faults.py",
        "test_load_data.py",
        "test_report.py",
    ]


def test_record_and_replay_recipe_runs(
    pytester: pytest.Pytester, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with monkeypatch.context() as environment:
        connect(service, environment)
        run(pytester, "test_report.py").assert_outcomes(passed=1)
    before = service.request_count
    monkeypatch.setenv("CI", "true")
    run(pytester, "test_report.py").assert_outcomes(passed=1)
    assert service.request_count == before
    assert (pytester.path / "cassettes" / "test_report" / "test_heights_descend.jsonl").is_file()


@pytest.mark.parametrize(
    ("name", "count"),
    [("test_app.py", 1), ("test_faults.py", 3), pytest.param("test_load_data.py", 1, marks=needs_extra)],
)
def test_local_service_recipe_runs(pytester: pytest.Pytester, name: str, count: int) -> None:
    run(pytester, name).assert_outcomes(passed=count)


def test_guide_lists_every_mode(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_subprocess("--help").stdout.str()
    modes = re.findall(r"^\| `(\w+)`", GUIDE.partition("| Mode |")[2].partition("\n\n")[0], re.MULTILINE)
    assert modes == ["none", "once", "new_episodes", "all", "rewrite"]
    assert all(mode in shown for mode in modes)
