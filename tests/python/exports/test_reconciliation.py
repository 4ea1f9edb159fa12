"""The worked examples that reconcile one list with another: each finds a record that either list lacks."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from doc_examples import examples
from repository import ROOT

PAGE = ROOT / "docs" / "guide" / "evidence.md"
ZERO = "0x" + "0" * 40
Row = dict[str, Any]
Lists = dict[str, list[Row]]


def reconciled(lists: Lists) -> list[str]:
    """Output of the examples of the page with these records."""
    data: dict[Any, Any] = lists
    with LocalService(transactions=0, data=data) as service, service.client(rate_limit=None) as client:
        names: dict[str, Any] = {"cf": cf, "client": client}
        output = StringIO()
        with redirect_stdout(output):
            for example in examples(PAGE)[-3:]:
                exec(example, names)
    return output.getvalue().splitlines()


@pytest.fixture(scope="module")
def lists() -> Lists:
    """The records that the examples compare, as the default service has them."""
    with LocalService() as service, service.client(rate_limit=None) as client:
        tokens = client.tokens(max_items=8).to_dicts()
        contract = str(tokens[7]["token_contract_address"])
        transfers = client.token_transfers(contract).to_dicts()
        low, high = transfers[4]["height"] - 1, transfers[0]["height"]
        transactions = client.transactions(start_height=low, end_height=high).to_dicts()
        hashes = dict.fromkeys(row["tx_id"] for row in [*transactions, *transfers[:5]])
        return {
            "tokens": tokens,
            "token_transfers": transfers,
            "transactions": transactions,
            "logs": client.logs(list(hashes)).to_dicts(),
            "cross_chain_transactions": client.cross_chain_transactions(token_contract_address=contract).to_dicts(),
        }


def without(lists: Lists, name: str, gone: Row) -> Lists:
    return {**lists, name: [row for row in lists[name] if row is not gone]}


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_examples_find_what_either_list_lacks(lists: Lists) -> None:
    transfers = [row for row in lists["token_transfers"] if row["state"] == "success"]
    contract = transfers[0]["token_contract_address"]
    minted = next(row for row in transfers if row["from_address"] == ZERO)
    crossed = lists["cross_chain_transactions"][0]
    deposit = next(row for row in transfers if row["tx_id"] == crossed["main_tx_hash"])
    log = next(row for row in lists["logs"] if (row["tx_id"], row["address"]) == (transfers[1]["tx_id"], contract))

    balances, logs, bridge = reconciled(lists)
    assert balances == "True True True"
    assert logs.endswith("transfers missing: 0 logs missing: 0")
    assert bridge.endswith("deposits missing: 0 arrivals missing: 0")

    assert reconciled(without(lists, "token_transfers", minted))[0].startswith("False")
    assert "transfers missing: 1 logs missing: 0" in reconciled(without(lists, "token_transfers", transfers[1]))[1]
    assert "transfers missing: 0 logs missing: 1" in reconciled(without(lists, "logs", log))[1]
    assert "deposits missing: 1 arrivals missing: 0" in reconciled(without(lists, "token_transfers", deposit))[2]
    lacking = reconciled(without(lists, "cross_chain_transactions", crossed))
    assert "deposits missing: 0 arrivals missing: 1" in lacking[2]
