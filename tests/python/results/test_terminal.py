"""Texts of others on a terminal, which must not obey them, and in redirected output, which must have them exactly."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainframe import _text
from chainframe.testing import LocalService
from conftest import needs_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)
import pty

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")
# Title of the window, clear screen, C1 control sequence, override and isolate of the direction, line separator, delete.
EVIL = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\u2066c\u2028d\x7fe é"
CALLS = {
    "jsonl": ["token-transfers", "--token-contract-address", "0x" + "3" * 40, "--format", "jsonl"],
    "csv": ["token-transfers", "--token-contract-address", "0x" + "3" * 40, "--format", "csv"],
    "follow": [
        *("token-transfers", "--token-contract-address", "0x" + "3" * 40),
        *("--follow", "--start", "beginning", "--poll", "none"),
    ],
}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    with LocalService(transactions=50) as service:
        transfers = [
            {
                "txid": f"0x{height:064x}",
                "blockHash": f"0x{height + 1000:064x}",
                "height": str(height),
                "transactionTime": str(1_700_000_000_000 + height * 1_000),
                "from": "0x" + "1" * 40,
                "to": "0x" + "2" * 40,
                "amount": "1",
                "transactionSymbol": EVIL,
                "tokenContractAddress": "0x" + "3" * 40,
            }
            for height in range(130, 100, -1)
        ]
        service.load("token_transfers", transfers)
        names = ("api_key", "secret_key", "passphrase", "main_chain", "zone_chain")
        settings = {f"CHAINFRAME_{name.upper()}": str(getattr(service, name)) for name in names}
        yield {**os.environ, **settings, "CHAINFRAME_BASE_URL": service.url}


def on_terminal(environment: dict[str, str], *arguments: str) -> str:
    """The output of the command with a terminal as its standard output and standard error."""
    main, side = pty.openpty()
    with subprocess.Popen([COMMAND, *arguments], env=environment, stdout=side, stderr=side, stdin=side) as process:
        os.close(side)
        output = b""
        while True:
            try:
                chunk = os.read(main, 65_536)
            except OSError:
                break
            if not chunk:
                break
            output += chunk
        process.wait(60)
    os.close(main)
    return output.decode().replace("\r\n", "\n")


def redirected(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([COMMAND, *arguments], env=environment, capture_output=True, check=True)
    return done.stdout.decode()


def is_plain(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@needs_extra
@pytest.mark.parametrize("form", CALLS)
def test_records_are_escaped_on_a_terminal_and_exact_elsewhere(environment: dict[str, str], form: str) -> None:
    shown, exact = on_terminal(environment, *CALLS[form]), redirected(environment, *CALLS[form])
    assert is_plain(shown)
    assert not is_plain(exact)
    if form == "csv":
        (name,) = {row["transaction_symbol"] for row in csv.DictReader(io.StringIO(exact))}
        assert name == EVIL
        assert _text.escape(EVIL) in shown
        return
    for text in (shown, exact):
        records = [json.loads(line) for line in text.split("\n") if line.startswith("{")]
        assert {record["transaction_symbol"] for record in records} == {EVIL}


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_cassette_of_others_is_escaped_on_a_terminal(
    environment: dict[str, str], tmp_path: Path, options: list[str]
) -> None:
    recorded = {"method": "GET", "path": f"/api/{EVIL}", "params": {"a": EVIL}, "status": 200, "json": {}}
    file = tmp_path / "cassette.jsonl"
    file.write_text(json.dumps(recorded | {"note": EVIL}) + "\n", encoding="utf-8")
    shown = on_terminal(environment, "cassette", "show", str(file), *options)
    assert "/api/a" in shown
    assert is_plain(shown)
    file.write_text("\x9b31m\u202e {", encoding="utf-8")
    assert is_plain(on_terminal(environment, "cassette", "show", str(file)))


@needs_extra
def test_binary_output_is_not_for_a_terminal(environment: dict[str, str]) -> None:
    shown = on_terminal(environment, "tokens", "--format", "arrow")
    assert "--output: arrow is binary, and not for a terminal; redirect it, or name a file" in shown


def test_log_is_escaped_on_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    code = "import logging, chainframe._logs as logs; logs.logger().warning('%s', '\\x1b[2J\\u202e')"
    main, side = pty.openpty()
    settings = environment | {"CHAINFRAME_LOG": "debug"}
    subprocess.run([sys.executable, "-c", code], env=settings, cwd=tmp_path, stderr=side, check=True)
    os.close(side)
    shown = os.read(main, 65_536).decode().replace("\r\n", "\n")
    os.close(main)
    assert "\\u001b[2J\\u202e" in shown
    assert is_plain(shown)
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, check=True)
    assert "\x1b[2J\u202e" in done.stderr.decode()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain\ttext\nand é漢🙂", "plain\ttext\nand é漢🙂"),
        ("\r\x00\x85", "\\r\\u0000\\u0085"),
        ("\u200b\ufeff\u061c\u2069", "\\u200b\\ufeff\\u061c\\u2069"),
        ("\U000e0041", "\\udb40\\udc41"),
    ],
)
def test_characters_that_do_not_print_are_escaped_as_in_json(text: str, escaped: str) -> None:
    assert _text.escape(text) == escaped
    assert json.loads(f'"{escaped}"', strict=False) == text
