"""A subcommand for every call: what it asks, what it writes, and how it ends."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet
import pytest

import by_hand
import chainframe as cf
from chainframe.cli import main
from chainframe.cli.app import app
from chainframe.cli.formats import WRITERS
from chainframe.testing import Fault, LocalService
from conftest import Sample, environment

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")


def asked(sample: Sample, call: str) -> list[str]:
    """The command line of `sample.query`."""
    needed = {
        "token_transfers": ["--token-contract-address", sample.token],
        "address_transactions": ["--address", sample.address],
        "transactions_by_hash": ["--tx-ids", ",".join(sample.tx_ids)],
        "logs": ["--tx-ids", ",".join(sample.tx_ids)],
    }
    return [call.replace("_", "-"), *needed.get(call, [])]


def as_json(record: dict[str, Any]) -> dict[str, Any]:
    """A record as its line has it: big and exact numbers are text, times are ISO 8601."""

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, Decimal) or name == "value_raw":
            return None if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)
        if hasattr(value, "isoformat"):
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return value

    return {name: plain(name, value) for name, value in record.items()}


@pytest.mark.parametrize("call", sorted(by_hand.ENDPOINTS))
def test_every_call_writes_its_records(
    call: str,
    at_service: LocalService,
    client: cf.Client,
    sample: Sample,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    records = sample.query(client, call).collect()
    code = main(asked(sample, call))
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == len(records) > 0
    exact = [{name: _number(value) for name, value in row.items()} for row in rows]
    assert exact == [{name: _number(value) for name, value in as_json(row).items()} for row in records.to_dicts()]
    assert code == (0 if records.report.complete else 6)
    assert err.splitlines() == [f"chainframe: {reason}" for reason in records.report.reasons]


def _number(value: Any) -> Any:
    """The same number whatever its exponent looks like."""
    try:
        return Decimal(value) if isinstance(value, str) and not value.startswith("0x") else value
    except ArithmeticError:
        return value


@pytest.mark.parametrize("call", sorted(by_hand.ENDPOINTS))
def test_the_options_are_the_declared_parameters(call: str) -> None:
    command = app.commands[call.replace("_", "-")]
    names = [param.name for param in command.params]
    endpoint = by_hand.ENDPOINTS[call]
    declared = [param["name"] for param in endpoint["params"]]
    assert names[: len(declared)] == declared
    assert [param.required for param in command.params[: len(declared)]] == [p["required"] for p in endpoint["params"]]
    assert ("max_items" in names) == bool(endpoint["page_size_max"])


def test_the_options_are_the_settings_that_are_no_secrets() -> None:
    names = {param.name for param in app.commands["blocks"].params}
    settings = {*inspect.signature(cf.Client).parameters, *inspect.signature(cf.Deployment).parameters}
    assert settings - names == {"api_key", "secret_key", "passphrase", "deployment", "cassette"}
    assert names >= {"record", "replay"}
    assert len(settings & names) > 12


def test_a_recorded_command_replays_without_a_service(
    at_service: LocalService, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette = str(tmp_path / "blocks.jsonl")
    shown = []
    for _ in range(2):
        assert main(["blocks", "--max-items", "5", "--record", cassette]) == 0
        shown.append(capfd.readouterr().out)
    before = at_service.requests
    for name in ("BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE"):
        monkeypatch.delenv(f"CHAINFRAME_{name}")
    assert main(["blocks", "--max-items", "5", "--replay", cassette]) == 0
    shown.append(capfd.readouterr().out)
    assert len(shown[0].splitlines()) == 5
    assert shown[0] == shown[1] == shown[2]
    assert at_service.requests == before
    assert main(["blocks", "--max-items", "4", "--replay", cassette]) == 2
    assert "holds no answer" in capfd.readouterr().err
    assert main(["blocks", "--record", cassette, "--replay", cassette]) == 2


def test_files_by_suffix(at_service: LocalService, client: cf.Client, sample: Sample, tmp_path: Path) -> None:
    del at_service
    records = client.token_transfers(sample.token).collect()
    for suffix in ("parquet", "arrow", "csv", "jsonl"):
        assert main([*asked(sample, "token_transfers"), "-o", str(tmp_path / f"t.{suffix}")]) == 0
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet") == records.to_arrow()
    with pa.memory_map(str(tmp_path / "t.arrow")) as mapped, pa.ipc.open_file(mapped) as file:
        assert file.read_all() == records.to_arrow()
    amounts = [record.amount for record in records]
    with (tmp_path / "t.csv").open() as text:
        assert [Decimal(row["amount"]) if row["amount"] else None for row in csv.DictReader(text)] == amounts
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert [row and Decimal(row) for row in (json.loads(line)["amount"] for line in lines)] == amounts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.arrow", "t.csv", "t.jsonl", "t.parquet"]


def test_lists_and_nothing_in_csv(
    at_service: LocalService,
    sample: Sample,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    assert main([*asked(sample, "logs"), "--format", "csv", "--columns", "tx_id,topics"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["tx_id", "topics"]
    assert all(isinstance(json.loads(row["topics"]), list) for row in rows)
    assert main(["blocks", "--height", "1", "--format", "csv"]) == 0
    (head,) = capsys.readouterr().out.splitlines()
    assert head == '"hash","height","miner","block_time","transaction_count"'


@pytest.mark.parametrize(
    ("numbers", "kind"), [("decimal", "decimal128(38, 18)"), ("float", "double"), ("string", "string")]
)
def test_numbers(at_service: LocalService, sample: Sample, tmp_path: Path, numbers: str, kind: str) -> None:
    del at_service
    file = tmp_path / "t.parquet"
    assert main([*asked(sample, "token_transfers"), "-o", str(file), "--numbers", numbers, "--columns", "amount"]) == 0
    assert [str(field.type) for field in pyarrow.parquet.read_schema(file)] == [kind]


def test_decimals_as_text_are_their_digits(at_service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    del at_service
    rows = []
    for numbers in ("decimal", "string"):
        assert main(["large-transactions", "--numbers", numbers, "--columns", "tx_fee", "--max-items", "40"]) == 0
        rows.append([Decimal(json.loads(line)["tx_fee"]) for line in capsys.readouterr().out.splitlines()])
    assert rows[0] == rows[1]
    assert len(rows[0]) == 40


def test_no_digit_is_lost_in_text() -> None:
    number = Decimal("12345678901234567890.123456789012345600")
    batch = pa.RecordBatch.from_pydict({"amount": pa.array([number, None], pa.decimal128(38, 18))})
    for form in ("csv", "jsonl"):
        sink = io.BytesIO()
        WRITERS[form](sink, batch.schema).write(batch)  # type: ignore[arg-type]
        assert '"12345678901234567890.1234567890123456"' in sink.getvalue().decode()


def test_hashes_come_from_standard_input(
    at_service: LocalService,
    sample: Sample,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del at_service
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(sample.tx_ids).encode())))
    assert main(["transactions-by-hash", "--tx-ids", "-", "--columns", "tx_id"]) == 0
    assert [json.loads(line)["tx_id"] for line in capsys.readouterr().out.splitlines()] == list(sample.tx_ids)


WRONG = [
    (["tokens", "--page-size", "51"], "--page-size: "),
    (["tokens", "--page-size", "x"], "'--page-size'"),
    (["tokens", "--start-time", "2026-01-01T00:00:00"], "--start-time: "),
    (["tokens", "--protocol-type", "token_1"], "'--protocol-type'"),
    (["large-transactions", "--min-amount", "5"], "--min-amount: "),
    (["token-transfers"], "'--token-contract-address'"),
    (["blocks", "--columns", "hash,size"], "no column 'size'"),
    (["blocks", "--columns", "hash,hash"], "twice"),
    (["blocks", "-o", "blocks.xlsx"], ".parquet, .csv, .jsonl, .arrow"),
    (["blocks", "-o", "nowhere/blocks.csv"], "no directory"),
    (["blocks", "-o", ".", "--format", "csv"], "for csv, name a file"),
    (["blocks", "--format", "parquet"], "--output: parquet needs a file"),
    (["blocks", "--rate-limit", "fast"], "'fast' is neither a number nor auto nor none"),
    (["blocks", "--concurrency", "0"], "concurrency"),
    (["blocks", "--base-url", "http://data.example.com"], "--base-url"),
    (["blocks", "extra"], "extra"),
    (["blocks", "-o", "blocks.csv", "--overwrite"], "--overwrite: is for an export to a directory"),
    (["blocks", "--resume"], "--resume: what was streamed is gone"),
    (["blocks", "-o", os.devnull, "--format", "csv", "--resume"], "--resume: what was streamed is gone"),
    (["blocks", "--max-items", "-1"], "--max-items: -1 is under 0"),
    (["blocks", "--max-items", str(2**64)], "--max-items: is not a whole number of 64 bits"),
    (["blocks", "--height", str(2**64)], "--height: "),
    (["blocks", "--height", "\udcff"], "--height: is not text that UTF-8 can hold"),
    (
        ["transactions", "--start-height", "9", "--end-height", "8"],
        "--start-height: is above --end-height: 9 to 8; exchange them",
    ),
    (["blocks", "--concurrency", str(2**64)], "--concurrency: is not a whole number"),
    (["blocks", "--max-retries", "-1"], "--max-retries: -1 is not within 0 to"),
    (["blocks", "--timeout", "nan"], "--timeout: NaN is not a number of seconds"),
    (["blocks", "--proxy", ""], "--proxy: "),
    (["blocks", "--numbers", "exact"], "'--numbers'"),
    (["block"], "'block'"),
    (["blocks", "--record", "a.jsonl", "--replay", "a.jsonl"], "exclude each other"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_usage_asks_nothing(
    arguments: list[str],
    said: str,
    at_service: LocalService,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = at_service.requests
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("chainframe: ")
    assert said in line
    assert at_service.requests == before


def test_a_missing_setting_is_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CHAINFRAME_BASE_URL", raising=False)
    assert main(["blocks"]) == 2
    assert "CHAINFRAME_BASE_URL" in capsys.readouterr().err


@pytest.mark.usefixtures("at_service")
def test_hashes_that_were_not_returned_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = [f"0x{number:x}" for number in range(12)]
    assert main(["transactions-by-hash", "--tx-ids", ",".join(hashes)]) == 6
    *_, reason, named = capsys.readouterr().err.splitlines()
    assert reason == "chainframe: Some of the transactions asked for were not returned."
    assert named == f"chainframe: not returned: {', '.join(hashes[:10])} and 2 others"


def test_advice_is_in_the_words_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalService(transactions=12_000) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert main(["transactions", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert told.endswith(" Narrow the query with --block-hash, --height or --start-height with --end-height.\n")


def test_a_dry_run_asks_once(at_service: LocalService, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = at_service.requests
    assert main(["blocks", "--page-size", "50", "--dry-run", "-o", str(tmp_path / "blocks.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Query blocks of ZONE_CHAIN, page_size=50"
    assert {"records: 600", "pages: 12", "requests: 12"} < set(lines)
    assert at_service.requests == before + 1
    assert list(tmp_path.iterdir()) == []


def test_a_directory_can_be_gone_on_with(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["blocks", "--page-size", "50", "-o", f"{tmp_path / 'blocks'}/", "--max-retries", "0"]
    fault: Fault = {"kind": "status", "status": 503, "every": 4}
    with LocalService(transactions=300, faults=[fault]) as service, service.client() as client:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert main(arguments) == 5
        assert capsys.readouterr().err.endswith(" records are kept, and --resume goes on from there\n")
        service.faults = []
        assert main(arguments) == 2
        said = "say --resume to go on with it, or --overwrite to start over"
        assert f"blocks holds an export; {said}" in capsys.readouterr().err
        assert main([*arguments, "--resume"]) == 0
        before = service.requests
        assert main([*arguments, "--overwrite"]) == 0
        assert service.requests - before == 6
        expected = client.blocks().to_arrow()
    written = pyarrow.parquet.read_table(sorted((tmp_path / "blocks").glob("*.parquet")))
    assert written == expected


def test_answers_are_recorded_and_replayed(
    at_service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cassette = str(tmp_path / "blocks.jsonl")
    assert main(["blocks", "--max-items", "5", "--record", cassette]) == 0
    recorded = capsys.readouterr().out
    before = at_service.requests
    for name in environment(at_service):
        monkeypatch.delenv(name)
    assert main(["blocks", "--max-items", "5", "--replay", cassette]) == 0
    assert capsys.readouterr().out == recorded
    assert main(["tokens", "--replay", cassette]) == 2
    assert at_service.requests == before
    assert len(recorded.splitlines()) == 5


FAULTS: list[tuple[Fault, int]] = [
    ({"kind": "status", "status": 401, "code": "50113"}, 3),
    ({"kind": "throttle"}, 4),
    ({"kind": "status", "status": 503, "code": "50001"}, 5),
    ({"kind": "html"}, 5),
    ({"kind": "reset"}, 5),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTS)
def test_exit_codes(
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


def test_an_incomplete_result_is_6_and_with_strict_not_written(
    at_service: LocalService,
    sample: Sample,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    missing = [*asked(sample, "transactions_by_hash")[:-1], f"{sample.tx_ids[0]},0x{'0' * 64}"]
    assert main([*missing, "-o", str(tmp_path / "kept.csv")]) == 6
    assert capsys.readouterr().err.startswith("chainframe: ")
    assert main([*missing, "-o", str(tmp_path / "strict.csv"), "--strict"]) == 6
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kept.csv"]
    assert len((tmp_path / "kept.csv").read_text().splitlines()) == 2


def test_a_failure_leaves_an_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.skipif(os.name == "nt", reason="Unix has these signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with LocalService(transactions=300, faults=[{"kind": "stall", "seconds": 60}]) as service:
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
def test_a_reader_that_leaves_is_no_error(service: LocalService, form: str) -> None:
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


def test_without_its_extra_it_names_the_command_to_install_it(
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_CHAINFRAME_COMPLETE" in capsys.readouterr().out


def test_columns_are_completed() -> None:
    command = app.commands["blocks"]
    (columns,) = (param for param in command.params if param.name == "columns")
    context = click.Context(command)
    found = [item.value for item in columns.type.shell_complete(context, columns, "hash,h")]
    assert found == ["hash,hash", "hash,height"]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert len(app.commands) >= 11
    assert [name for name in app.commands if f"  {name} " not in text] == []
