"""Remarks on empty results of what cannot be an address or a hash."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from chainframe.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import chainframe as cf
    from chainframe.testing import LocalService

ADDRESS, HASH = "0x" + "0" * 40, "0x" + "0" * 64
CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("token_transfers", {"token_contract_address": "USDT"}, ["token_contract_address"]),
    ("token_transfers", {"token_contract_address": ADDRESS[2:]}, ["token_contract_address"]),
    ("token_transfers", {"token_contract_address": ADDRESS}, []),
    ("token_transfers", {"token_contract_address": ADDRESS.upper()}, []),
    ("address_transactions", {"address": "0x1234"}, ["address"]),
    ("address_transactions", {"address": HASH}, ["address"]),
    ("cross_chain_transactions", {"from_address": "me", "to_address": "you"}, ["from_address", "to_address"]),
    ("transactions", {"block_hash": "0x12"}, ["block_hash"]),
    ("transactions", {"block_hash": HASH}, []),
    ("tokens", {"token_contract_address": "0x" + "g" * 40}, ["token_contract_address"]),
]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("call", "given", "named"), CASES)
def test_empty_result_of_what_cannot_be_an_address_says_so(
    client: cf.Client, call: str, given: dict[str, Any], named: list[str]
) -> None:
    records = getattr(client, call)(**given).collect()
    assert len(records) == 0
    digits = 64 if "block_hash" in given else 40
    expected = [f'{name} ("{given[name]}") is not 0x and {digits} hexadecimal digits.' for name in named]
    assert records.report.remarks == expected
    assert [line for line in str(records).splitlines() if "hexadecimal" in line] == expected
    assert records._repr_html_().count("hexadecimal digits") == len(expected)  # pyright: ignore[reportPrivateUsage]
    again = pickle.loads(pickle.dumps(records.report))
    assert again == records.report
    assert again.remarks == expected


def test_result_with_records_has_no_remark(client: cf.Client) -> None:
    assert client.blocks(max_items=1).collect().report.remarks == []


def test_command_prints_remarks(
    service: LocalService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    for output in ([], ["-o", str(tmp_path / "a.csv")]):
        assert main(["token-transfers", "--token-contract-address", "USDT", *output]) == 0
        expected = 'chainframe: --token-contract-address ("USDT") is not 0x and 40 hexadecimal digits.\n'
        assert capsys.readouterr().err == expected
