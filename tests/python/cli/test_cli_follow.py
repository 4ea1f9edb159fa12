"""`chainframe COMMAND --follow`: JSON lines of whole heights, positions in a file, interrupts and closed pipes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chainframe.cli import main
from chainframe.cli.codes import sync_output
from chainframe.testing import LocalService
from conftest import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")
FOLLOW = ["blocks", "--follow", "--columns", "height,hash"]


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalService]:
    with LocalService(transactions=300, seed=7) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        yield service


def lines(text: str) -> list[Any]:
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[Any]:
    assert main([*arguments]) == code
    return lines(capsys.readouterr().out)


def blocks(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """All blocks, oldest first."""
    return printed(capsys, "blocks", "--columns", "height,hash")[::-1]


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize("call", ["blocks", "transactions", "large-transactions", "cross-chain-transactions"])
def test_settled_heights_are_printed_oldest_first(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    # A list that does not show every reorganization is not called complete.
    code = 6 if call == "cross-chain-transactions" else 0
    command = [call, "--follow", "--start", "beginning", "--poll", "none", "--settle", "5"]
    found = printed(capsys, *command, code=code)
    assert found == printed(capsys, call)[::-1][: len(found)]
    assert found
    if call == "blocks":
        assert found == printed(capsys, call)[:4:-1]


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_after_a_batch_waits_for_its_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    def interrupted() -> None:
        sync_output()
        signal.raise_signal(number)

    expected = blocks(capsys)[:-12]
    command = [*FOLLOW, "--start", "beginning", "--poll", "none", "--cursor-file", str(tmp_path / "position")]
    with monkeypatch.context() as patched:
        patched.setattr("chainframe.cli.follow.sync_output", interrupted)
        found = printed(capsys, *command, code=code)
    assert found
    assert found + printed(capsys, *command) == expected


def test_what_is_new_is_flushed_after_each_batch(chain: LocalService, tmp_path: Path) -> None:
    position = tmp_path / "position"
    with subprocess.Popen(
        [COMMAND, *FOLLOW, "--poll", "0.05", "--settle", "2", "--cursor-file", str(position)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # The position of "now" is saved before anything is printed.
        while not position.exists():
            assert process.poll() is None
            time.sleep(0.01)
        chain.growth = 1
        assert process.stdout is not None
        # The command runs on: these lines were flushed.
        heights = [json.loads(process.stdout.readline())["height"] for _ in range(5)]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert heights == list(range(heights[0], heights[0] + 5))
    assert (process.returncode, err) == (130, "chainframe: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="Unix has SIGKILL")
def test_killed_runs_leave_no_gap(chain: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, chain.growth = tmp_path / "blocks.jsonl", 2
    command = [*FOLLOW, "--start", "beginning", "--settle", "2", "--cursor-file", str(tmp_path / "position")]
    for run in range(1, 7):
        with output.open("ab") as file, subprocess.Popen([COMMAND, *command, "--poll", "0.01"], stdout=file) as process:
            size = output.stat().st_size
            while output.stat().st_size < size + 200 * run:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
    chain.growth = 0
    rest = printed(capsys, *command, "--poll", "none")
    found = [json.loads(line) for line in output.read_text().splitlines() if line.endswith("}")] + rest
    heights = [block["height"] for block in found]
    # A batch that was printed, and whose position was not saved, is printed once more.
    assert all(later <= before + 1 for before, later in itertools.pairwise(heights))
    everything = {block["height"]: block for block in blocks(capsys)}
    assert [everything[height] for height in heights] == found
    assert set(heights) == {height for height in everything if height <= max(everything) - 2}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/fd")
@pytest.mark.usefixtures("chain")
def test_a_line_that_was_cut_is_ended(tmp_path: Path) -> None:
    output = tmp_path / "blocks.jsonl"
    for text in ("", '{"hash":"0x1"}\n', '{"hash":"0x'):
        output.write_text(text)
        with output.open("ab") as file:
            subprocess.run([COMMAND, *FOLLOW, "--start", "beginning", "--poll", "none"], stdout=file, check=True)
        added = output.read_text().removeprefix(text)
        assert added.startswith("\n" if text.endswith("0x") else "{")
        assert all("height" in json.loads(line) for line in added.splitlines() if line)


def test_another_run_continues_where_the_last_one_ended(
    chain: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*FOLLOW, "--poll", "none", "--start", "beginning", "--cursor-file", str(tmp_path / "position")]
    found = printed(capsys, *command)
    assert printed(capsys, *command) == []
    chain.growth = 1
    for _ in range(10):
        blocks(capsys)
    chain.growth = 0
    found += printed(capsys, *command)
    everything = blocks(capsys)
    assert found == everything[:-12]
    assert [path.name for path in tmp_path.iterdir()] == ["position"]
    # The content of the file is a position that can be passed as well.
    cursor = (tmp_path / "position").read_text()
    assert printed(capsys, *FOLLOW, "--poll", "none", "--settle", "4", "--start", cursor) == everything[-12:-4]


def test_a_cursor_file_has_one_run_at_a_time(
    chain: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*FOLLOW, "--start", "beginning", "--cursor-file", str(tmp_path / "position")]
    chain.growth = 1
    with subprocess.Popen([COMMAND, *command, "--poll", "0.05"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert main([*command, "--poll", "none"]) == 7
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert f"--cursor-file {tmp_path / 'position'} is locked by another run; wait until it ends" in err
        process.kill()
    # The lock of a process that was killed is free.
    chain.growth = 0
    assert printed(capsys, *command, "--poll", "none")
    # A process that is killed while it writes leaves its temporary file.
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".tmp"] == ["position"]


def test_a_reorganization_is_a_line(chain: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*FOLLOW, "--poll", "none", "--start", "beginning", "--undo", "--cursor-file", str(tmp_path / "position")]
    rows = printed(capsys, *command)
    chain.reorg = (1, 4)
    blocks(capsys)
    chain.reorg = None
    undo, *rest = printed(capsys, *command)
    assert list(undo) == ["undo_after_height"]
    kept = [row for row in rows if row["height"] <= undo["undo_after_height"]]
    assert len(kept) < len(rows)
    assert kept + rest == blocks(capsys)[:-1]


@pytest.mark.skipif(os.name == "nt", reason="Unix has pipes that break")
def test_closed_pipe_ends_quietly(chain: LocalService) -> None:
    chain.growth = 1
    with subprocess.Popen(
        [COMMAND, *FOLLOW, "--start", "beginning", "--poll", "0.01"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


WRONG = [
    (["--follow", "-o", "blocks.jsonl"], "--output: --follow prints JSON lines to standard output; omit --output"),
    (["--follow", "--format", "csv"], "--format: --follow prints JSON lines to standard output; omit --format"),
    (["--follow", "--max-items", "5"], "--max-items must not be given where new records are followed"),
    (["--follow", "--since", "blocks"], "--since cannot be combined with --follow"),
    (["--follow", "--resume"], "--mode cannot be combined with --follow"),
    (["--follow", "--dry-run"], "--dry-run cannot be combined with --follow"),
    (["--follow", "--height", "5"], "--follow is not possible for blocks(), whose block has all its records"),
    (["--follow", "--start", "yesterday"], '--start must be "now", "beginning"'),
    (["--follow", "--poll", "-1"], '--poll must be "auto", a positive number of seconds'),
    (["--follow", "--poll", "often"], "must be a number or auto or none; got 'often'"),
    (
        ["--follow", "--cursor-file", "nowhere/position"],
        "--cursor-file (nowhere/position): nowhere is not a directory; create it first",
    ),
    (["--poll", "5"], "--poll needs --follow"),
    (["--undo"], "--undo needs --follow"),
    (["--start", "now"], "--start needs --follow"),
    (["--cursor-file", "position"], "--cursor-file needs --follow"),
]


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_senseless_combination_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["blocks", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "contains no cursor; delete it to start over, or name another file"),
        pytest.param("[" * 100_000, "contains no cursor; delete it to start over, or name another file", id="deep"),
        ("garbage", "contains no cursor; delete it to start over, or name another file"),
        ('{"follow": VERSION}', "cannot be continued by this command: its cursor must be"),
        (None, "cannot be continued by this command: its cursor belongs to the call transactions; this one is blocks"),
    ],
)
def test_cursor_file_of_something_else_is_named(
    chain: LocalService, tmp_path: Path, content: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    position = tmp_path / "position"
    with chain.client() as client:
        of_another_call = client.transactions().follow(poll=None).cursor
    version = json.loads(of_another_call)["follow"]
    position.write_text(of_another_call if content is None else content.replace("VERSION", str(version)))
    assert main([*FOLLOW, "--poll", "none", "--cursor-file", str(position)]) != 0
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert f"--cursor-file {position} {said}" in err
    assert "name another file" in err


def test_lists_without_heights_cannot_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    for call in ("tokens", "logs", "transactions-by-hash"):
        assert main([call, "--follow"]) == 2
        assert "--follow" in capsys.readouterr().err
