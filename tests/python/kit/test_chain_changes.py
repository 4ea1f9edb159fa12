"""Changes of the local service below its head: reorganizations, late records, pending transactions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import reference_client
from chainframe.testing import LocalService

ADVANCED = {"transactions": "height", "cross_chain_transactions": "zoneBlockHeight", "blocks": "height"}


def lists(service: LocalService, call: str, **parameters: str) -> list[dict[str, Any]]:
    """The list as it is, without growth."""
    growth, reorg = service.growth, service.reorg
    service.growth, service.reorg = 0, None
    found = reference_client.whole_list(service, call, **parameters)
    service.growth, service.reorg = growth, reorg
    return found


def advance(service: LocalService) -> None:
    reference_client.get(service, "blocks", limit="1")


def sent_to(service: LocalService) -> str:
    return str(lists(service, "tokens")[0]["tokenContractAddress"])


@pytest.mark.parametrize("call", ADVANCED)
@pytest.mark.parametrize("depth", [1, 4])
def test_reorganization_replaces_the_newest_heights(call: str, depth: int) -> None:
    with LocalService(transactions=300, growth=3) as service:
        for _ in range(8):
            advance(service)
        before = lists(service, call)
        service.growth, service.reorg = 0, (1, depth)
        advance(service)
        after = lists(service, call)
    height = ADVANCED[call]
    kept = max(int(row[height]) for row in before) - depth
    count = sum(int(row[height]) > kept for row in before)
    assert len(after) == len(before)
    assert after[count:] == before[count:]
    assert [int(row[height]) for row in after] == sorted((int(row[height]) for row in after), reverse=True)
    if call == "blocks":
        assert not {row["hash"] for row in after[:count]} & {row["hash"] for row in before}
    if call == "transactions":
        assert not {row["blockHash"] for row in after[:count]} & {row["blockHash"] for row in before}
        hashes = {
            height: {row["blockHash"] for row in after if row["height"] == height}
            for height in {r["height"] for r in after}
        }
        assert all(len(each) == 1 for each in hashes.values())
    if call != "blocks" and depth == 4:
        key = "txid" if call == "transactions" else "zoneTxHash"
        again = {row[key] for row in after[:count]} & {row[key] for row in before[:count]}
        assert 0 < len(again) < count


@pytest.mark.parametrize("call", ["transactions", "cross_chain_transactions", "token_transfers"])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_late_records_are_listed_at_their_height(call: str, share: float) -> None:
    with (
        LocalService(transactions=300, growth=2) as plain,
        LocalService(transactions=300, growth=2, late=(share, 3)) as service,
    ):
        parameters = {"tokenContractAddress": sent_to(plain)} if call == "token_transfers" else {}
        height = "zoneBlockHeight" if call == "cross_chain_transactions" else "height"
        missing: set[int] = set()
        for _ in range(20):
            advance(plain)
            advance(service)
            expected, found = lists(plain, call, **parameters), lists(service, call, **parameters)
            # Records of a height keep their order, except that a late one follows the others.
            assert [int(row[height]) for row in found] == sorted((int(row[height]) for row in found), reverse=True)
            keys = [tuple(row.items()) for row in found]
            absent = [int(row[height]) for row in expected if tuple(row.items()) not in keys]
            assert all(row in expected for row in found)
            assert all(top > max(int(row[height]) for row in expected) - 3 for top in absent)
            missing |= {*absent}
        assert missing
        service.late = None
        advance(plain)
        advance(service)
        for name, given in ((call, parameters), ("blocks", {})):
            expected, found = lists(plain, name, **given), lists(service, name, **given)
            assert sorted(map(str, found)) == sorted(map(str, expected))


def test_logs_of_a_late_transaction_come_with_it() -> None:
    with (
        LocalService(transactions=300, growth=1) as plain,
        LocalService(transactions=300, growth=1, late=(1.0, 2)) as service,
    ):
        for _ in range(2):
            advance(plain)
            advance(service)
        tx_id = lists(plain, "transactions")[1]["txid"]
        logs = reference_client.get(plain, "logs", txId=tx_id)
        assert logs
        assert reference_client.get(service, "logs", txId=tx_id) == []
        advance(service)
        assert reference_client.get(service, "logs", txId=tx_id) == logs


@pytest.mark.parametrize("call", ["transactions", "token_transfers"])
def test_pending_transactions_settle(call: str) -> None:
    with (
        LocalService(transactions=300, growth=2) as plain,
        LocalService(transactions=300, growth=2, pending=(0.5, 4)) as service,
    ):
        parameters = {"tokenContractAddress": sent_to(plain)} if call == "token_transfers" else {}
        pending = []
        for _ in range(12):
            advance(plain)
            advance(service)
            found = lists(service, call, **parameters)
            waiting = [row for row in found if row["state"] == "pending"]
            top = max(int(row["height"]) for row in found)
            assert all(int(row["height"]) > top - 4 for row in waiting)
            pending.append(len(waiting))
            settled = [{**row, "state": ""} for row in found]
            assert settled == [{**row, "state": ""} for row in lists(plain, call, **parameters)]
        assert max(pending[4:]) > 1


def test_changes_are_the_same_for_the_same_seed() -> None:
    def changed() -> list[dict[str, Any]]:
        with LocalService(transactions=200, growth=2, late=(0.4, 2), pending=(0.4, 3), reorg=(5, 3)) as service:
            for _ in range(23):
                advance(service)
            return [row for call in ADVANCED for row in lists(service, call)]

    assert changed() == changed()


def test_nonces_are_used_once() -> None:
    with LocalService(transactions=50, growth=3, late=(0.5, 4)) as service:
        for _ in range(10):
            advance(service)
        service.late = None
        advance(service)
        newest = lists(service, "transactions")[:30]
        ids = [row["txid"] for row in newest]
        rows = [reference_client.get(service, "transactions_by_hash", txId=each)[0] for each in ids]
    nonces = sorted(int(row["nonce"]) for row in rows)
    assert all(later - earlier == 1 for earlier, later in pairwise(nonces))


def test_settings_of_changes_can_be_read_and_set() -> None:
    with LocalService(transactions=5, late=(0.5, 3), pending=(1, 2)) as service:
        assert (service.late, service.pending) == ((0.5, 3), (1.0, 2))
        service.late = service.pending = None
        assert (service.late, service.pending) == (None, None)
