"""Errors of the subcommands: usage errors, exit codes, interrupts and missing extras."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from chainframe.cli import main
from chainframe.testing import Fault, LocalService
from conftest import Sample, environment

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")


WRONG = [
    (["tokens", "--page-size", "51"], "--page-size (51) must be between 1 and 50"),
    (["tokens", "--page-size", "x"], "'--page-size'"),
    (["tokens", "--start-time", "2026-01-01T00:00:00"], "--start-time must have a UTC offset"),
    (["tokens", "--protocol-type", "token_1"], "'--protocol-type'"),
    (["large-transactions", "--min-amount", "5"], "--min-amount (5) must be >= 100"),
    (["token-transfers"], "'--token-contract-address'"),
    (["blocks", "--columns", "hash,hight"], "; got 'hight'; did you mean 'height'?"),
    (["blocks", "--columns", "hash,hash"], "must be distinct"),
    (["blocks", "--columns", "hash", "--columns", "height,hash"], "must be distinct; got 'hash,height,hash'"),
    (["blocks", "-o", "blocks.xlsx"], ".parquet, .csv, .jsonl, .arrow"),
    (["blocks", "-o", "nowhere/blocks.csv"], "nowhere is not a directory; create it first"),
    (["blocks", "-o", ".", "--format", "csv"], "for csv, name a file"),
    (["blocks", "--format", "parquet"], "--output: parquet needs a file"),
    (["blocks", "-o", os.devnull, "--format", "parquet"], "--output: parquet needs a file"),
    (["blocks", "-o", "/dev/stdout", "--format", "parquet"], "--output: parquet needs a file"),
    *((["blocks", "--poll", poll], "--poll needs --follow") for poll in ("0", "auto", "none", "-1")),
    *((["blocks", "--follow", "--poll", poll], "--poll must be") for poll in ("0", "-1", "nan")),
    (["blocks", "--undo"], "--undo needs --follow"),
    (["blocks", "--rate-limit", "fast"], "must be a number or auto or none; got 'fast'"),
    (["blocks", "--concurrency", "0"], "concurrency"),
    (["blocks", "--base-url", "http://data.example.com"], "--base-url"),
    (["blocks", "extra"], "extra"),
    (["blocks", "--sync", ""], "--sync must not be empty"),
    (["blocks", "--sync", "chain.duckdb"], "not the directory of a Delta table; pass --table too"),
    (["blocks", "--follow", "--cursor-file", ""], "--cursor-file must not be empty"),
    (["blocks", "--follow", "--start", ""], "--start must not be empty"),
    (["blocks", "-o", "blocks/", "--since", ""], "--since must not be empty"),
    (
        ["blocks", "-o", "blocks/", "--series", "--max-items", "3"],
        "--max-items must not be given with settle, with since or for a series, which need the whole list; omit",
    ),
    (["tokens", "-o", "tokens/", "--series"], "--series needs a list with its newest record first or a range; omit it"),
    (["tokens", "--sync", "chain.duckdb"], "No such option '--sync'. The list of tokens cannot be followed."),
    (["blocks", "--height", "@"], "must name a file after @, or - for standard input"),
    (["blocks", "--resume"], "--resume needs -o FILE or DIR; a stream cannot be resumed"),
    (["blocks", "--since", "blocks"], "--since needs -o FILE or DIR"),
    (["blocks", "-o", os.devnull, "--format", "csv", "--overwrite"], "--overwrite needs -o FILE or DIR"),
    (["blocks", "-o", "blocks.csv", "--max-rows-per-file", "9"], "--max-rows-per-file needs a directory"),
    (["blocks", "--mode", "append"], "'--mode'"),
    (["blocks", "--max-items", "-1"], "--max-items (-1) must be >= 0"),
    (["blocks", "--max-items", str(2**64)], "--max-items must be a 64-bit integer"),
    (["blocks", "--height", str(2**64)], "--height must be a block height"),
    (["blocks", "--height", "\udcff"], "--height must be a valid Unicode string"),
    (
        ["transactions", "--start-height", "9", "--end-height", "8"],
        "--start-height (9) must be <= --end-height (8)",
    ),
    (["blocks", "--concurrency", str(2**64)], '--concurrency must be "auto" or an integer'),
    (["blocks", "--max-retries", "-1"], "--max-retries (-1) must be between 0 and"),
    (["blocks", "--timeout", "nan"], "--timeout (NaN) must be a number of seconds"),
    (["blocks", "--proxy", ""], "--proxy must be the URL of a proxy"),
    (["blocks", "--numbers", "exact"], "'--numbers'"),
    (["block"], "'block'"),
    (["blocks", "--record", "a.jsonl", "--replay", "a.jsonl"], "cannot be combined"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_usage_error_sends_nothing(
    arguments: list[str],
    said: str,
    at_service: LocalService,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = at_service.request_count
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("chainframe: ")
    assert said in line
    assert at_service.request_count == before


@pytest.mark.parametrize("option", ["--max-items", "--mode", "--columns", "--rate-limit"])
def test_usage_error_keeps_no_password_of_a_url(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blocks", option, "postgresql://user:hunter2@db.example/chain"]) == 2
    printed = capsys.readouterr().err
    assert option in printed
    assert "hunter2" not in printed


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["address-transactions", "--address"], 'must be one address or hash; got "0xb c", which has white space'),
        (["logs", "--tx-ids"], 'must be one transaction hash; got "0xb c", which has white space'),
        (["blocks", "--height"], "must be a block height"),
    ],
)
def test_error_about_a_value_of_a_file_names_its_line(
    arguments: list[str], problem: str, at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values"
    file.write_text("7\n\n0xb c\n")
    before = at_service.request_count
    assert main([*arguments, "5", *arguments[1:], f"@{file}"]) == 2
    assert f"chainframe: {arguments[1]}: line 3 of {file} {problem}" in capsys.readouterr().err
    assert at_service.request_count == before


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["cache", "list", "--cache", "c"], "--cache c; cache list has --directory, --json"),
        (["cassette", "show", "c.jsonl", "--bdy"], "--bdy; did you mean '--body'?"),
    ],
)
def test_unknown_option_of_a_tool_names_those_that_it_has(
    arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert capsys.readouterr().err.endswith(f"error: unrecognized arguments: {advice}\n")


def test_directory_with_the_suffix_of_a_file_gets_an_export_only_if_it_is_named_as_one(
    at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "blocks.csv"
    directory.mkdir()
    before = at_service.request_count
    assert main(["blocks", "--max-items", "3", "-o", str(directory)]) == 2
    way = f"for Parquet files in it, name it {directory}/; for csv, name a file"
    assert way in capsys.readouterr().err
    assert at_service.request_count == before
    assert main(["blocks", "--max-items", "3", "-o", f"{directory}/"]) == 0
    assert (directory / "part-000000.parquet").exists()


def test_missing_setting_exits_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CHAINFRAME_BASE_URL", raising=False)
    assert main(["blocks"]) == 2
    assert "CHAINFRAME_BASE_URL" in capsys.readouterr().err


@pytest.mark.usefixtures("at_service")
def test_missing_hashes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = [f"0x{number:x}" for number in range(12)]
    assert main(["transactions-by-hash", "--tx-ids", ",".join(hashes)]) == 6
    *_, reason, named = capsys.readouterr().err.splitlines()
    assert reason == "chainframe: Some of the requested transactions were not returned."
    assert named == f"chainframe: not returned: {', '.join(hashes[:10])} and 2 others"


def test_hints_name_options_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalService(transactions=12_000) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert main(["transactions", "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert output.endswith("; narrow the query with --block-hash, --height, --start-height or --start-time.\n")


FAULTS: list[tuple[Fault, int]] = [
    ({"kind": "status", "status": 401, "code": "50113"}, 3),
    ({"kind": "throttle"}, 4),
    ({"kind": "status", "status": 503, "code": "50001"}, 5),
    ({"kind": "html"}, 5),
    ({"kind": "reset"}, 5),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTS)
def test_errors_have_documented_exit_codes(
    fault: Fault,
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    with LocalService(transactions=50, faults=[fault]) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        code = main(["blocks", "--max-retries", "0", "-o", str(tmp_path / "blocks.csv")])
    out, err = capsys.readouterr()
    assert (code, out, len(err.splitlines())) == (expected, "", 1)
    assert err.startswith("chainframe: blocks: ")
    assert list(tmp_path.iterdir()) == []


def test_incomplete_result_exits_with_6_and_is_not_written_with_strict(
    at_service: LocalService,
    sample: Sample,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    missing = ["transactions-by-hash", "--tx-ids", f"{sample.tx_ids[0]},0x{'0' * 64}"]
    assert main([*missing, "-o", str(tmp_path / "kept.csv")]) == 6
    assert capsys.readouterr().err.startswith("chainframe: ")
    assert main([*missing, "-o", str(tmp_path / "strict.csv"), "--strict"]) == 6
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kept.csv"]
    assert len((tmp_path / "kept.csv").read_text().splitlines()) == 2


def test_failure_leaves_an_existing_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blocks.csv").write_text("of yesterday")
    with LocalService(transactions=300, faults=[{"kind": "status", "status": 503, "every": 3}]) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        arguments = ["blocks", "--page-size", "50", "-o", str(tmp_path / "blocks.csv")]
        assert main([*arguments, "--max-retries", "0"]) == 5
        assert (tmp_path / "blocks.csv").read_text() == "of yesterday"
        assert main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["blocks.csv"]
    assert len((tmp_path / "blocks.csv").read_text().splitlines()) == 301


def test_a_refusal_that_would_be_repeated_has_an_exit_code_of_its_own(
    at_service: LocalService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["blocks", "--chain", "ELSEWHERE"]) == 9
    assert "50038" in capsys.readouterr().err
    assert main(["blocks", "--base-url", f"{at_service.url}/elsewhere"]) == 9
    assert "404" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Unix has these signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_no_output_file(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with LocalService(transactions=300, faults=[{"kind": "delay", "seconds": 60}]) as service:
        command = [COMMAND, "blocks", "-o", str(tmp_path / "blocks.csv")]
        with subprocess.Popen(
            command, env={**os.environ, **environment(service)}, stderr=subprocess.PIPE, text=True
        ) as process:
            while not list(tmp_path.iterdir()):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Unix has pipes that break")
@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow"])
def test_closed_pipe_is_not_an_error(service: LocalService, form: str) -> None:
    with subprocess.Popen(
        [COMMAND, "transactions", "--format", form],
        env={**os.environ, **environment(service)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(10)) == 10
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_missing_extra_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delitem(sys.modules, "chainframe.cli.app")
    monkeypatch.delattr(sys.modules["chainframe.cli"], "app")
    monkeypatch.setitem(sys.modules, "click", None)
    assert main(["tokens"]) == 2
    assert capsys.readouterr().err == "chainframe: click is not installed; run: pip install 'chainframe[cli]'\n"
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])


@pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 6)])
def test_strict_dry_run_of_an_incomplete_result_has_the_exit_code_of_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], strict: list[str], code: int
) -> None:
    with LocalService(transactions=300) as service, service.client() as client:
        newest = client.transactions().first()
        assert newest is not None
        command = ["address-transactions", "--address", newest.input or ""]
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert main([*command, "--dry-run", *strict]) == code
        assert main([*command, *strict]) == 6
    assert "12 months" in capsys.readouterr().out
