"""`check_sink`: sinks of the package pass, wrong ones are shown with the schedule that breaks them."""

from __future__ import annotations

import os
import re
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import chainframe as cf
import kept_sinks
import postgres
import wrong_sinks
from chainframe.testing import check_sink
from chainframe.testing._sink_schedules import _Processes
from chainframe.testing._sink_trial import Task
from repository import ROOT

GUIDE = (ROOT / "docs" / "guide" / "sinks.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r'^```python title="([\w.]+)"\n(.*?)^```', GUIDE, re.MULTILINE | re.DOTALL))
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

# More with `CHAINFRAME_SCHEDULES=1000`, which takes minutes.
SCHEDULES = int(os.environ.get("CHAINFRAME_SCHEDULES", "16"))
FINDINGS = {
    "CommitsRowsBeforePosition": r"^run 1 \(that inserts the first rows\): .* after a call of .*"
    r"\(wrong_sinks\.py:\d+ in commit\); then run 1 .* raises ExportError: rows exists and was not made by sync",
    "CommitsPositionBeforeRows": "run 1 .* in commit.* rows has 2 rows up to height 1, and sync left 4 up to 2",
    "KeepsPositionInAFile": "run 1 .*self.store.* rows has 2 rows up to height 1, and sync left 4 up to 2",
    "AppendsAgainAfterALostResponse": r"is raised after .* the table after run 1 .* has more than once 0xa\d",
    "CommitsAgainAfterALostResponse": "another run commits .* has more than once",
    "IgnoresCorrections": "no interruption; then the table after run 2 .* should not have 0xa30 of height 3",
    "ForgetsADelete": "no interruption; then the table after run 3 .* should not have 0xb40 of height 4",
    "DeletesTooMuch": "no interruption; then the table after run 2 .* lacks 0xa20 of height 2",
    "CountsNoDeletedRows": "no interruption; then look returns .*rows=10.* expected .*rows=8",
    "IgnoresOtherRuns": "run 1 .*: another run commits after this one has read the position; .* more than once",
    "KeepsRowsOnReset": r"no interruption; then the table after run 5 \(with reset=True\) should not have 0xa10",
    "RoundsAmounts": "a float, which does not hold every amount",
    "UndoesAllLists": r"no interruption; then the table after run 8 \(that replaces .*\) lacks 0xc20 of height 2",
    "ComparesLetterCase": r"no interruption; then the table after run 8 \(that replaces .*\) should not have 0xa20",
    "BelievesItsPosition": "self.store.* the table after run 1 .* lacks 0xa10",
}


def check(kind: str, folder: Path, schedules: int = 1_000) -> int:
    return check_sink(partial(wrong_sinks.make, kind, folder), partial(wrong_sinks.read, folder), schedules=schedules)


@pytest.mark.parametrize("kind", wrong_sinks.WRONG)
def test_wrong_sink_is_shown_with_the_schedule_that_breaks_it(kind: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=FINDINGS[kind]) as caught:
        check(kind, tmp_path)
    assert "\n" not in str(caught.value)


def test_right_sink_passes(tmp_path: Path) -> None:
    assert check("RightSink", tmp_path, schedules=60) == 66
    of_sets = tmp_path / "sets"
    of_sets.mkdir()
    assert check("RightSinkOfSets", of_sets, schedules=60) == 68


def check_kept(kind: str, where: str) -> None:
    make, read = partial(kept_sinks.make, kind, where), partial(kept_sinks.read, kind, where)
    assert check_sink(make, read, schedules=SCHEDULES) == SCHEDULES + 8


@pytest.mark.parametrize("kind", ["duckdb", "delta", "iceberg"])
def test_local_sinks_of_the_package_pass(kind: str, tmp_path: Path) -> None:
    check_kept(kind, str(tmp_path))


@pytest.mark.skipif(postgres.INITDB is None, reason="PostgreSQL is not installed")
def test_sink_of_postgresql_passes() -> None:
    with postgres.running() as url:
        check_kept("postgresql", url)


LATE = """
def make(folder, name):
    import wrong_sinks
    return wrong_sinks.make("RightSink", folder, name)

def read(folder, name):
    import wrong_sinks
    return wrong_sinks.read(folder, name)
"""


def test_calls_of_a_module_that_make_imports_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_sink.py").write_text(LATE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    late = import_module("late_sink")
    processes = _Processes(partial(late.make, tmp_path), partial(late.read, tmp_path))
    first = processes.run(Task("first"))
    processes.modules = first.modules
    second = processes.run(Task("second"))
    processes.close()
    assert first.points == second.points
    assert all(first.points)


def test_function_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"no interruption; then read after run 1 .* raises OperationalError"):
        check_sink(partial(wrong_sinks.make, "RightSink", tmp_path), partial(wrong_sinks.read, tmp_path / "elsewhere"))
    with pytest.raises(AssertionError, match=r"no interruption; then run 1 .* raises KeyError: 'NoSink'"):
        check("NoSink", tmp_path)


def test_functions_that_no_other_process_can_import_are_refused() -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^read must be a function of a module, or functools\.partial"):
        check_sink(partial(wrong_sinks.make, "RightSink", Path()), lambda _name: [])
    with pytest.raises(cf.InvalidParameterError, match=r"^schedules must be an integer from 1 to .*; got 0$"):
        check("RightSink", Path(), schedules=0)


def test_interruption_that_does_not_happen_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"^call [\d,]+ of run \d .* was not made again, and so not interrupted: the same runs"
    ):
        check("CallsMoreAtFirst", tmp_path, schedules=10)


def test_sink_whose_calls_cannot_be_interrupted_is_refused(pytester: pytest.Pytester) -> None:
    steps = RECIPES["sqlite_sink.py"].replace("class SqliteSink(Sink)", "class Steps")
    (pytester.path / "steps.py").write_text(steps, encoding="utf-8")
    text = "from chainframe.sinks import Sink\nfrom steps import Steps\nclass SqliteSink(Steps, Sink):\n    pass\n"
    (pytester.path / "sqlite_sink.py").write_text(text, encoding="utf-8")
    (pytester.path / "test_sqlite_sink.py").write_text(RECIPES["test_sqlite_sink.py"], encoding="utf-8")
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "test_sqlite_sink.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: no call could be interrupted: define the sink*"])


def test_sink_of_the_guide_passes(pytester: pytest.Pytester) -> None:
    assert sorted(RECIPES) == ["sqlite_sink.py", "test_sqlite_sink.py"]
    for name, text in RECIPES.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "test_sqlite_sink.py")
    result.assert_outcomes(passed=1)
