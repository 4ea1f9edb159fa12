"""Links and leftovers in the way of the pytest plugin: it writes through none of them."""

from __future__ import annotations

import sys

import pytest

from chainframe.testing import LocalService
from kit.test_plugin import connect, run

KILLED = """
    import os
    import chainframe as cf


    def test_blocks(cassette):
        with cf.Client() as client:
            print("FIRST", client.blocks(max_items=1).collect()[0].hash, flush=True)
        if os.environ.get("KILL"):
            os._exit(9)
"""


# Copies the file that a killed run has left to every name that another run could use.
LEFTOVERS = """
    import os, pathlib, shutil


    def pytest_runtest_setup(item):
        folder = pathlib.Path("cassettes/test_killed")
        for left in folder.glob("*.part"):
            for name in (os.getpid(), "0", ""):
                shutil.copyfile(left, folder / f"test_blocks.jsonl.{name}.part")
"""


LINKED = """
import chainframe as cf

def test_count(cassette):
    with cf.Client() as client:
        assert client.blocks(max_items=3).collect()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
@pytest.mark.parametrize("mode", ["once", "rewrite"])
def test_cassette_that_is_a_link_is_not_replaced(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, service: LocalService, mode: str
) -> None:
    monkeypatch.delenv("CI", raising=False)
    connect(service, monkeypatch)
    pytester.makepyfile(test_linked=LINKED)
    real = pytester.path / "real.jsonl"
    link = pytester.path / "cassettes" / "test_linked" / "test_count.jsonl"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    result = run(pytester, f"--chainframe-record={mode}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_count.jsonl is a symbolic link*"])
    assert link.readlink() == real
    assert not real.exists()
    assert [file.name for file in link.parent.iterdir()] == [link.name]


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
@pytest.mark.parametrize("linked", ["cassettes", "cassettes/test_linked"])
def test_nothing_is_recorded_through_a_link_in_place_of_a_directory_of_the_plugin(
    pytester: pytest.Pytester, service: LocalService, monkeypatch: pytest.MonkeyPatch, linked: str
) -> None:
    monkeypatch.delenv("CI", raising=False)
    connect(service, monkeypatch)
    pytester.makepyfile(test_linked=LINKED)
    real = pytester.path / "elsewhere"
    (real / "test_linked").mkdir(parents=True)
    link = pytester.path / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(real)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{linked} is a symbolic link*"])
    assert [path.name for path in real.rglob("*")] == ["test_linked"]


def test_recording_of_a_killed_run_is_not_taken_by_the_next(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_killed=KILLED)
    pytester.makeconftest(LEFTOVERS)
    seen = []
    for seed, kill in ((1, "1"), (2, "")):
        monkeypatch.setenv("KILL", kill)
        with LocalService(transactions=50, seed=seed) as service:
            connect(service, monkeypatch)
            result = run(pytester, "-s")
        seen += [line.split()[-1] for line in result.outlines if "FIRST" in line]
    assert len(set(seen)) == 2
    (cassette,) = pytester.path.glob("cassettes/**/*.jsonl")
    text = cassette.read_text(encoding="utf-8")
    assert seen[1] in text
    assert seen[0] not in text
