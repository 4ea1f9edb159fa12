"""Subcommands of the calls: requests, output files and exit codes."""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import json
import re
import sys
import sysconfig
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.shell_completion import ShellComplete

import chainframe as cf
import reference_client
from chainframe.cli import main
from chainframe.cli.app import app
from chainframe.exports.formats import WRITERS
from chainframe.testing import Fault, LocalService
from conftest import Sample, environment

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")


def arguments(sample: Sample, call: str) -> list[str]:
    """The command line of `sample.query`."""
    line = [call]
    for name, value in sample.arguments(call).items():
        line += [f"--{name}", value if isinstance(value, str) else ",".join(value)]
    return [word.replace("_", "-") for word in line]


def as_json(record: dict[str, Any]) -> dict[str, Any]:
    """A record as its line has it: big and exact numbers are text, times are ISO 8601."""

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, Decimal) or name == "value_raw":
            return None if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)
        if hasattr(value, "isoformat"):
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return value

    return {name: plain(name, value) for name, value in record.items()}


@pytest.mark.parametrize("call", sorted(reference_client.ENDPOINTS))
def test_every_call_writes_its_records(
    call: str,
    at_service: LocalService,
    client: cf.Client,
    sample: Sample,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    records = sample.query(client, call).collect()
    code = main(arguments(sample, call))
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == len(records) > 0
    exact = [{name: _number(value) for name, value in row.items()} for row in rows]
    assert exact == [{name: _number(value) for name, value in as_json(row).items()} for row in records.to_dicts()]
    assert code == (0 if records.report.complete else 6)
    reasons = [reason.replace("start_time=", "--start-time") for reason in records.report.reasons]
    assert err.splitlines() == [f"chainframe: {reason}" for reason in reasons]


def _number(value: Any) -> Any:
    """The same number whatever its exponent looks like."""
    try:
        return Decimal(value) if isinstance(value, str) and not value.startswith("0x") else value
    except ArithmeticError:
        return value


@pytest.mark.parametrize("call", sorted(reference_client.ENDPOINTS))
def test_the_options_are_the_declared_parameters(call: str) -> None:
    command = app.commands[call.replace("_", "-")]
    names = [param.name for param in command.params]
    endpoint = reference_client.ENDPOINTS[call]
    declared = [param["name"] for param in endpoint["params"]]
    assert names[: len(declared)] == declared
    assert [param.required for param in command.params[: len(declared)]] == [p["required"] for p in endpoint["params"]]
    assert ("max_items" in names) == bool(endpoint["page_size_max"])


def test_the_options_are_the_settings_that_a_flag_can_give() -> None:
    names = {param.name for param in app.commands["blocks"].params}
    settings = {*inspect.signature(cf.Client).parameters, *inspect.signature(cf.Deployment).parameters}
    secrets, objects = {"api_key", "secret_key", "passphrase"}, {"deployment", "cassette", "on_attempt", "credentials"}
    # The command writes what it reads, and so requests everything.
    assert settings - names == secrets | objects | {"cache"}
    assert names >= {"record", "replay"}
    assert len(settings & names) > 12


def test_recorded_command_replays_without_a_server(
    at_service: LocalService, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette = str(tmp_path / "blocks.jsonl")
    shown = []
    for _ in range(2):
        assert main(["blocks", "--max-items", "5", "--record", cassette]) == 0
        shown.append(capfd.readouterr().out)
    before = at_service.request_count
    for name in ("BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE"):
        monkeypatch.delenv(f"CHAINFRAME_{name}")
    assert main(["blocks", "--max-items", "5", "--replay", cassette]) == 0
    shown.append(capfd.readouterr().out)
    assert len(shown[0].splitlines()) == 5
    assert shown[0] == shown[1] == shown[2]
    assert at_service.request_count == before
    assert main(["blocks", "--max-items", "4", "--replay", cassette]) == 2
    assert "has no recording of" in capfd.readouterr().err
    assert main(["blocks", "--record", cassette, "--replay", cassette]) == 2


def test_suffix_selects_the_format(at_service: LocalService, client: cf.Client, sample: Sample, tmp_path: Path) -> None:
    del at_service
    records = client.token_transfers(sample.token).collect()
    for suffix in ("parquet", "arrow", "csv", "jsonl"):
        assert main([*arguments(sample, "token_transfers"), "-o", str(tmp_path / f"t.{suffix}")]) == 0
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet") == records.to_arrow()
    with pa.memory_map(str(tmp_path / "t.arrow")) as mapped, pa.ipc.open_file(mapped) as file:
        assert file.read_all() == records.to_arrow()
    amounts = [record.amount for record in records]
    with (tmp_path / "t.csv").open() as text:
        assert [Decimal(row["amount"]) if row["amount"] else None for row in csv.DictReader(text)] == amounts
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert [row and Decimal(row) for row in (json.loads(line)["amount"] for line in lines)] == amounts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.arrow", "t.csv", "t.jsonl", "t.parquet"]


def test_csv_writes_lists_and_missing_values(
    at_service: LocalService,
    sample: Sample,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del at_service
    assert main([*arguments(sample, "logs"), "--format", "csv", "--columns", "tx_id,topics"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["tx_id", "topics"]
    assert all(isinstance(json.loads(row["topics"]), list) for row in rows)
    assert main(["blocks", "--height", "1", "--format", "csv"]) == 0
    (head,) = capsys.readouterr().out.splitlines()
    assert next(csv.reader([head])) == list(cf.Block.__match_args__)


@pytest.mark.parametrize(
    ("numbers", "kind"), [("decimal", "decimal128(38, 18)"), ("float", "double"), ("string", "string")]
)
def test_numbers_option_selects_the_column_types(
    at_service: LocalService, sample: Sample, tmp_path: Path, numbers: str, kind: str
) -> None:
    del at_service
    file = tmp_path / "t.parquet"
    assert (
        main([*arguments(sample, "token_transfers"), "-o", str(file), "--numbers", numbers, "--columns", "amount"]) == 0
    )
    assert [str(field.type) for field in pyarrow.parquet.read_schema(file)] == [kind]


def test_text_formats_write_decimals_as_digits(at_service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    del at_service
    rows = []
    for numbers in ("decimal", "string"):
        assert main(["large-transactions", "--numbers", numbers, "--columns", "tx_fee", "--max-items", "40"]) == 0
        rows.append([Decimal(json.loads(line)["tx_fee"]) for line in capsys.readouterr().out.splitlines()])
    assert rows[0] == rows[1]
    assert len(rows[0]) == 40


def test_text_formats_keep_every_digit() -> None:
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


def test_hashes_come_from_a_file_and_from_several_options(
    at_service: LocalService, sample: Sample, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    del at_service
    file = tmp_path / "hashes.txt"
    file.write_text("\n".join(sample.tx_ids))
    first, *others = sample.tx_ids
    for options in ([f"@{file}"], [first, "--tx-ids", ",".join(others)]):
        assert main(["transactions-by-hash", "--columns", "tx_id", "--tx-ids", *options]) == 0
        assert [json.loads(line)["tx_id"] for line in capsys.readouterr().out.splitlines()] == list(sample.tx_ids)


def test_files_without_a_value_are_refused(
    at_service: LocalService, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "none.txt"
    file.write_text("\n \n")
    before = at_service.request_count
    for options in (["--height", f"@{file}"], ["--height", f"@{file}", "--height", f"@{file}"]):
        assert main(["blocks", *options]) != 0
        assert "--height must not be empty" in capsys.readouterr().err
    assert at_service.request_count == before


def test_only_the_end_of_a_line_ends_a_value(
    at_service: LocalService, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    del at_service
    file = tmp_path / "addresses.txt"
    file.write_text("0xab\x0ccd\r\n0xef\r\n", newline="")
    assert main(["address-transactions", "--address", f"@{file}"]) != 0
    assert "white space" in capsys.readouterr().err


def test_dry_run_sends_a_few_requests(
    at_service: LocalService, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = at_service.request_count
    assert main(["blocks", "--page-size", "50", "--dry-run", "-o", str(tmp_path / "blocks.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Query blocks of ZONE_CHAIN, page_size=50"
    assert {"records: 600", "pages: 12", "requests: 13"} < set(lines)
    (seconds,) = (line for line in lines if line.startswith("estimated_seconds: "))
    assert re.fullmatch(r"estimated_seconds: (about|under) [0-9.]+, unless the service throttles", seconds)
    assert at_service.request_count < before + 12
    assert list(tmp_path.iterdir()) == []


def layout_of(directory: Path) -> list[list[tuple[int, str]]]:
    """Rows of each group, and its compression, in each file."""
    footers = map(pyarrow.parquet.read_metadata, sorted(directory.glob("*.parquet")))
    groups = [[footer.row_group(index) for index in range(footer.num_row_groups)] for footer in footers]
    return [[(group.num_rows, group.column(0).compression) for group in each] for each in groups]


def test_files_of_the_command_have_the_layout_of_the_method_unless_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalService(transactions=3_000) as service, service.client() as client:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        assert client.transactions().to_parquet(tmp_path / "method").rows == 3_000
        assert main(["transactions", "-o", f"{tmp_path / 'command'}/"]) == 0
        assert main(["transactions", "-o", f"{tmp_path / 'series'}/", "--series"]) == 0
        given = ["--max-rows-per-file", "1000", "--rows-per-group", "400", "--compression", "gzip"]
        assert main(["transactions", "-o", f"{tmp_path / 'given'}/", *given]) == 0
    assert layout_of(tmp_path / "command") == layout_of(tmp_path / "method") == [[(3_000, "ZSTD")]]
    assert len(layout_of(next((tmp_path / "series").iterdir()))) == 1
    assert layout_of(tmp_path / "given") == [[(400, "GZIP"), (400, "GZIP"), (200, "GZIP")]] * 3


def test_directory_is_resumed_by_default(
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
        assert capsys.readouterr().err.endswith(" records saved; rerun with --resume to continue\n")
        service.faults = []
        assert main([*arguments, "--mode", "error"]) == 2
        said = "use another directory, or pass --overwrite to start over"
        assert f"blocks holds an export; {said}" in capsys.readouterr().err
        assert main(arguments) == 0
        before = service.request_count
        assert main([*arguments, "--resume"]) == 0
        assert service.request_count == before
        before = service.request_count
        assert main([*arguments, "--overwrite"]) == 0
        assert service.request_count - before == 7
        expected = client.blocks().to_arrow()
    written = pyarrow.parquet.read_table(sorted((tmp_path / "blocks").glob("*.parquet")))
    assert written == expected


def test_record_and_replay_options_use_a_cassette(
    at_service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cassette = str(tmp_path / "blocks.jsonl")
    assert main(["blocks", "--max-items", "5", "--record", cassette]) == 0
    recorded = capsys.readouterr().out
    before = at_service.request_count
    for name in environment(at_service):
        monkeypatch.delenv(name)
    assert main(["blocks", "--max-items", "5", "--replay", cassette]) == 0
    assert capsys.readouterr().out == recorded
    assert main(["tokens", "--replay", cassette]) == 2
    assert at_service.request_count == before
    assert len(recorded.splitlines()) == 5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_CHAINFRAME_COMPLETE" in capsys.readouterr().out


def test_column_names_are_completed() -> None:
    command = app.commands["blocks"]
    (columns,) = (param for param in command.params if param.name == "columns")
    context = click.Context(command)
    found = [item.value for item in columns.type.shell_complete(context, columns, "hash,h")]
    assert found == ["hash,height", "hash,hash"]


@pytest.mark.parametrize(
    ("words", "start", "found"),
    [
        (["serve"], "--tr", ["--transactions"]),
        (["serve", "--compression"], "", ["gzip"]),
        (["serve", "--port", "5", "--compression", "gzip"], "--late", ["--late"]),
        (["doctor"], "--js", ["--json"]),
        (["doctor", "--json"], "--base", ["--base-url"]),
        (["doctor", "--signature-encoding"], "h", ["hex"]),
        (["cassette"], "s", ["show"]),
        (["cassette", "show"], "--b", ["--body"]),
        (["serve", "--port"], "", []),
    ],
)
def test_options_of_commands_without_click_are_completed(words: list[str], start: str, found: list[str]) -> None:
    complete = ShellComplete(app, {}, "chainframe", "_CHAINFRAME_COMPLETE")
    assert [item.value for item in complete.get_completions(words, start)] == found


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["tokens", "--limit", "3"], "--max-items"),
        (["blocks", "-n", "3"], "--max-items"),
        (["tokens", "--sort", "x"], "--order-by"),
        (["transactions", "--from-block", "3"], "--start-height"),
    ],
)
def test_option_of_another_tool_names_the_one_that_was_meant(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith(f"Did you mean '{meant}'?\n")


@pytest.mark.parametrize("command", ["", *app.commands])
def test_help_fits_a_terminal(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    text = capsys.readouterr().out
    assert text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert len(app.commands) >= 11
    assert [name for name in app.commands if f"  {name} " not in text] == []
