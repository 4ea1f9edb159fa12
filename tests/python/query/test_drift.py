"""Comparison of recordings with a service that has changed since."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chainframe.testing import Cassette, Fault, LocalService
from chainframe.testing._drift import _differences, compare
from conftest import environment, needs_extra
from recorded import lines

PATH = "/api/v5/main/zone/block/block-list"


def change(file: Path, edit: Any) -> None:
    """Edits the recorded responses, so that the service seems to have changed."""
    interactions = lines(file)
    for interaction in interactions:
        edit(interaction)
    file.write_text("\n".join(map(json.dumps, interactions)), encoding="utf-8")


def each_block(edit: Any) -> Any:
    def edit_line(line: dict[str, Any]) -> None:
        for block in line["json"]["data"][0]["data"]:
            edit(block)

    return edit_line


@pytest.fixture
def recorded(tmp_path: Path, service: LocalService) -> Path:
    with service.client(cassette=Cassette(tmp_path / "c.jsonl")) as client:
        client.blocks(max_items=150).collect()
    return tmp_path / "c.jsonl"


CHANGES: dict[str, tuple[Any, list[str]]] = {
    "gone": (each_block(lambda block: block.update(old="1")), [f"warning: {PATH}: data[].data[].old is gone"]),
    "new": (each_block(lambda block: block.pop("miner")), [f"info: {PATH}: data[].data[].miner is new (string)"]),
    "kind": (
        each_block(lambda block: block.update(height=int(block["height"]))),
        [f"error: {PATH}: data[].data[].height was a number and is a string"],
    ),
    "renamed": (
        each_block(lambda block: block.update(number=block.pop("height"))),
        [f"warning: {PATH}: data[].data[].number is gone", f"info: {PATH}: data[].data[].height is new (string)"],
    ),
    "code": (lambda line: line["json"].update(code="50013"), [f"error: {PATH}: code was 50013 and is 0"]),
    "status": (lambda line: line.update(status=203), [f"error: {PATH}: status was 203 and is 200"]),
    "null": (each_block(lambda block: block.update(miner=None)), []),
    "values": (each_block(lambda block: block.update(height="1", miner="0x1")), []),
    "empty": (lambda line: line["json"]["data"][0].update(data=[], total="0"), []),
    "nothing": (lambda _line: None, []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_only_the_change_is_found(recorded: Path, service: LocalService, name: str) -> None:
    edit, expected = CHANGES[name]
    change(recorded, edit)
    with service.client() as client:
        assert [str(finding) for finding in compare(recorded, client)] == expected


def test_one_value_of_another_kind_is_found() -> None:
    def response(*heights: object) -> dict[str, object]:
        return {"status": 200, "json": {"code": "0", "data": [{"height": height} for height in heights]}}

    found = [("error", "data[].height was a string and is a number or string")]
    assert list(_differences(response("1", "2"), response("1", 2))) == found
    assert list(_differences(response("1", 2), response("1", "2"))) == []
    assert list(_differences(response("1", "2"), response("1", None))) == []
    assert list(_differences(response(None), response("1"))) == []


def test_growth_and_other_data_are_no_difference(recorded: Path) -> None:
    with LocalService(transactions=900, seed=8, growth=5) as other, other.client() as client:
        assert compare(recorded, client) == []
        assert other.request_count == 2


def test_failures_are_not_compared(tmp_path: Path, service: LocalService) -> None:
    cassette = Cassette(tmp_path / "c.jsonl")
    reset: Fault = {"kind": "reset", "times": 1}
    with LocalService(transactions=5, faults=[reset]) as faulty, faulty.client(cassette=cassette) as client:
        client.blocks(height=1).collect()
    assert "error" in (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    with service.client() as client:
        assert compare(tmp_path / "c.jsonl", client) == []


def test_command_prints_differences_and_fails_for_errors(recorded: Path, service: LocalService) -> None:
    def run(*changes: str, **variables: str) -> subprocess.CompletedProcess[str]:
        for name in changes:
            change(recorded, CHANGES[name][0])
        command = [sys.executable, "-m", "chainframe", "cassette", "diff", str(recorded)]
        return subprocess.run(
            command, env={**environment(service), **variables}, capture_output=True, text=True, check=False
        )

    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("gone")
    assert (done.returncode, done.stdout) == (0, f"{CHANGES['gone'][1][0]}\n")
    done = run("kind")
    assert done.returncode == 1
    assert done.stdout.splitlines() == CHANGES["kind"][1] + CHANGES["gone"][1]
    assert not any(secret in done.stdout for secret in (service.api_key, service.secret_key, service.passphrase))
    done = run(CHAINFRAME_BASE_URL="http://127.0.0.1:1")
    assert done.returncode == 5
    assert "cannot connect" in done.stderr


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-p", "xdist", "-n", "2"), marks=needs_extra)], ids=["one", "xdist"]
)
def test_suite_replays_and_reports(
    pytester: pytest.Pytester, service: LocalService, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(
        test_one="""
        import chainframe as cf

        def test_blocks(cassette):
            with cf.Client() as client:
                assert len(client.blocks(max_items=3).collect()) == 3

        def test_again(module_cassette):
            with cf.Client() as client:
                assert len(client.tokens(max_items=2).collect()) == 2
        """
    )
    arguments = ("-q", "-p", "no:cacheprovider", *workers)
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=2)
    compared = pytester.runpytest_subprocess(*arguments, "--chainframe-record=compare")
    compared.assert_outcomes(passed=2)
    assert compared.ret == 0
    change(pytester.path / "cassettes" / "test_one" / "test_blocks.jsonl", CHANGES["kind"][0])
    before = service.request_count
    compared = pytester.runpytest_subprocess(*arguments, "--chainframe-record=compare")
    compared.assert_outcomes(passed=2)
    assert compared.ret == 1
    compared.stdout.fnmatch_lines(["*recordings that differ from the service*", f"*{PATH}*height was a number*"])
    assert service.request_count == before + 2
