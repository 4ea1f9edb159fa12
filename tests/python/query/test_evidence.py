"""Evidence of the laws that records obey: one that is missing everywhere is noticed, and odd chains raise no alarm."""

from __future__ import annotations

import pickle
import random
from collections import Counter, defaultdict
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

import reference_client
from chain_laws import PROTOCOLS, ZERO
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chainframe import Client, Query

Row = dict[str, Any]


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=3_000, seed=7) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: LocalService) -> Client:
    return service.client(rate_limit=None)


@pytest.fixture(scope="module")
def transfers(client: Client) -> dict[str, list[Row]]:
    """The transfers of each token that moves, newest first."""
    protocols: tuple[Any, ...] = PROTOCOLS
    tokens = [token for protocol in protocols for token in client.tokens(protocol_type=protocol)]
    addresses = [str(token.token_contract_address) for token in tokens]
    lists = {address: client.token_transfers(address).to_dicts() for address in addresses}
    return {address: rows for address, rows in lists.items() if rows}


def finding(query: Query[Any], law: str) -> dict[str, Any]:
    return query.collect().report.evidence[law]


def senders_of(client: Client, max_items: int | None = None) -> list[str]:
    """Addresses that send alone."""
    senders = {str(row.input) for row in client.transactions(max_items=max_items)}
    return sorted(sender for sender in senders if "," not in sender)


def is_overdrawn(rows: list[Row]) -> bool:
    """True if a balance is negative after some height, by a plain addition from the oldest record on."""
    balances: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    heights: dict[int, list[Row]] = defaultdict(list)
    for row in rows[::-1]:
        if row["state"] == "success":
            heights[row["height"]].append(row)
    for height in heights.values():
        for row in height:
            balances[row["from_address"], row["token_id"]] -= row["amount"]
            balances[row["to_address"], row["token_id"]] += row["amount"]
        if any(balance < 0 for (holder, _), balance in balances.items() if holder != ZERO):
            return True
    return False


def test_intact_lists_obey_every_law(client: Client, transfers: dict[str, list[Row]]) -> None:
    for address in transfers:
        evidence = client.token_transfers(address).collect().report.evidence
        assert all(found["held"] for found in evidence.values()), (address, evidence)
    hashes = [str(row.tx_id) for row in client.transactions(max_items=300)]
    assert finding(client.logs(hashes), "log_indexes")["held"]
    assert finding(client.blocks(), "heights") == {
        "held": True,
        "checked": 3_000,
        "missing": 0,
        "violation": None,
        "earlier": None,
        "assumption": "each height has a block",
    }


def test_missing_transaction_is_found_in_every_list_of_a_sender(client: Client) -> None:
    senders = senders_of(client, 300)
    lists = {sender: client.address_transactions(sender, direction="from").to_dicts() for sender in senders}
    chance = random.Random(5)
    removed, kept = {}, []
    for sender, rows in lists.items():
        # What is pending at the head says nothing of those below it.
        first = next((index for index, row in enumerate(rows) if row["state"] != "pending"), len(rows)) + 1
        if first < len(rows) - 1:
            removed[sender] = rows.pop(chance.randint(first, len(rows) - 2))
        kept += rows
    assert len(removed) > 50
    with LocalService(transactions=1) as changed:
        changed.load("address_transactions", kept)
        for sender, row in removed.items():
            for direction in (None, "from"):
                query = changed.client(rate_limit=None).address_transactions(sender, direction=direction)
                found = finding(query, "nonces")
                expected = f"no record has nonce {row['nonce']}"
                assert (found["held"], found["missing"], found["violation"]) == (False, 1, expected)


@pytest.mark.parametrize("seed", range(3))
def test_missing_transfer_is_found_in_every_list_that_it_breaks(transfers: dict[str, list[Row]], seed: int) -> None:
    chance = random.Random(seed)
    changed: dict[str, list[Row]] = {}
    for address, rows in transfers.items():
        effective = [index for index, row in enumerate(rows) if row["state"] == "success"]
        if rows[0]["protocol_type"] == "ERC721":
            # The last transfer of an id proves nothing, nor does the mint, nor one from a holder to itself. An id
            # that is minted and burned at one height may have been burned and minted.
            ids = [rows[index]["token_id"] for index in effective]
            heights = [(rows[index]["token_id"], rows[index]["height"]) for index in effective]
            pending = {row["token_id"] for row in rows if row["state"] == "pending"}
            effective = [
                index
                for place, index in enumerate(effective)
                if ids[place] in set(ids[:place]) - pending
                and heights.count((ids[place], rows[index]["height"])) == 1
                and rows[index]["from_address"] not in {ZERO, rows[index]["to_address"]}
            ]
        if effective:
            place = chance.choice(effective)
            changed[address] = rows[:place] + rows[place + 1 :]
    changed = {address: rows for address, rows in changed.items() if rows}
    broken = {"custody": 0, "balances": 0}
    with LocalService(transactions=1) as service:
        service.load("token_transfers", [row for rows in changed.values() for row in rows])
        for address, rows in changed.items():
            query = service.client(rate_limit=None).token_transfers(address)
            if rows[0]["protocol_type"] == "ERC721":
                assert finding(query, "custody")["held"] is False
                broken["custody"] += 1
            elif is_overdrawn(rows):
                # A token of few transfers may be one that rebases.
                found = finding(query, "balances")
                assert found["held"] is not True
                assert found["violation"]
                broken["balances"] += 1
            else:
                assert finding(query, "balances")["held"] is True
    assert broken["custody"] > 10
    assert broken["balances"] > 10


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_missing_block_and_log_are_found(client: Client) -> None:
    blocks = client.blocks(max_items=300).to_dicts()
    missing = blocks.pop(120)
    logged = [row.tx_id for row in client.logs([str(row.tx_id) for row in client.transactions(max_items=200)])]
    crowded = str(Counter(logged).most_common(1)[0][0])
    logs = client.logs(crowded).to_dicts()
    gone = logs.pop(1)
    with LocalService(transactions=1) as service:
        service.load("blocks", blocks)
        service.load("logs", logs)
        found = finding(service.client().blocks(), "heights")
        assert (found["held"], found["violation"]) == (False, f"no record has height {missing['height']}")
        found = finding(service.client().logs(crowded), "log_indexes")
        expected = f"no record of {crowded} has log_index {gone['log_index']}"
        assert (found["held"], found["violation"]) == (False, expected)


def odd_token(address: str, chance: random.Random) -> list[Row]:
    """Transfers of a token whose balances also change without one: it rebases, or takes a fee; newest first."""
    shares = {"0x" + f"{index:040x}": Decimal() for index in range(1, 9)}
    people = list(shares)
    rows: list[Row] = []
    rate, fee = Decimal(1), Decimal(chance.choice([0, 0, 2])) / 100
    unit = Decimal("1e-18")

    def record(height: int, sender: str, receiver: str, amount: Decimal) -> None:
        rows.append(
            {
                "height": height,
                "tx_id": f"0x{len(rows):064x}",
                "from_address": sender,
                "to_address": receiver,
                "amount": amount,
                "state": chance.choice(["success"] * 9 + ["fail"]) if sender != ZERO and fee else "success",
                "token_contract_address": address,
                "protocol_type": "ERC20",
                "token_id": "",
            }
        )

    for height in range(100, 160):
        if not fee:
            rate *= 1 + Decimal(chance.randint(-5, 30)) / 10_000
        holders = [holder for holder, held in shares.items() if held * rate > unit]
        if not holders or chance.random() < 0.15:
            receiver, amount = chance.choice(people), Decimal(chance.randint(1, 10**6)) / 100
            shares[receiver] += amount / rate
            record(height, ZERO, receiver, amount)
            continue
        sender, receiver = chance.choice(holders), chance.choice(people)
        part = chance.choice([Decimal(1), Decimal(1), Decimal(chance.randint(1, 99)) / 100])
        amount = (shares[sender] * rate * part).quantize(unit, rounding="ROUND_DOWN")
        record(height, sender, receiver, amount)
        if rows[-1]["state"] == "success":
            shares[sender] = Decimal() if part == 1 else shares[sender] - amount / rate
            shares[receiver] += amount * (1 - fee) / rate
    return rows[::-1]


def test_odd_tokens_raise_no_alarm() -> None:
    chance = random.Random(5)
    tokens = {address: odd_token(address, chance) for address in (f"0x{index:040x}" for index in range(1_000, 1_200))}
    held = []
    with LocalService(transactions=1) as service:
        service.load("token_transfers", [row for rows in tokens.values() for row in rows])
        client = service.client(rate_limit=None)
        held = [finding(client.token_transfers(address), "balances")["held"] for address in tokens]
    assert False not in held
    # Tokens that rebase are noticed to break the assumption; those with a fee obey the law.
    assert held.count(None) > 50
    assert held.count(True) > 30


def test_chain_that_changes_raises_no_alarm() -> None:
    with LocalService(transactions=400, growth=3, reorg=(4, 2), pending=(0.5, 3)) as service:
        client = service.client(rate_limit=None)
        token = reference_client.whole_list(service, "tokens")[0]["tokenContractAddress"]
        sender = reference_client.whole_list(service, "transactions")[0]["input"]
        for _ in range(5):
            for query in (client.token_transfers(token), client.address_transactions(sender), client.blocks()):
                evidence = query.collect().report.evidence
                assert all(found["held"] is not False for found in evidence.values()), evidence


def test_nonces_from_0_on_prove_the_own_history_whole(service: LocalService, client: Client) -> None:
    senders = senders_of(client)
    everything = reference_client.whole_list(service, "transactions")
    counts: dict[str, int] = defaultdict(int)
    for row in everything:
        counts[row["input"]] += 1
    proven = 0
    for sender in senders[:120]:
        records = client.address_transactions(sender, direction="from").collect()
        missing = counts[sender] - len(records)
        assert records.report.evidence["nonces"]["earlier"] == missing
        assert records.report.complete == (missing == 0)
        if missing:
            assert f": {missing} older record" in records.report.reasons[0]
        proven += missing == 0
        # What an address received has no nonces of its own.
        assert not client.address_transactions(sender).collect().report.complete
    assert proven > 20


def test_laws_that_do_not_apply_are_not_checked(client: Client, transfers: dict[str, list[Row]]) -> None:
    address = max(transfers, key=lambda address: len(transfers[address]))
    assert client.token_transfers(address, min_amount=1).collect().report.evidence == {}
    # The beginning of a list has no balances, and a conversion of some columns has no nonces.
    assert client.token_transfers(address, max_items=60).collect().report.evidence == {}
    assert client.transactions(max_items=10).collect().report.evidence == {}
    sender = transfers[address][0]["from_address"]
    assert client.address_transactions(sender, direction="to").collect().report.evidence == {}


def test_evidence_of_a_set_adds_up_and_survives_pickling(client: Client) -> None:
    senders = senders_of(client, 60)[:5]
    records = client.address_transactions(senders, direction="from").collect()
    found = records.report.evidence["nonces"]
    assert (found["held"], found["checked"]) == (True, len(records))
    assert pickle.loads(pickle.dumps(records.report)).evidence == records.report.evidence


def test_resumed_run_has_evidence_on_what_it_read(client: Client) -> None:
    pages = list(client.blocks(page_size=100).pages())
    records = client.resume(pages[3].cursor).collect()
    assert records.report.evidence["heights"]["checked"] == 3_000 - 400


def test_scan_that_reads_one_list_to_its_end_has_its_evidence(client: Client) -> None:
    blocks = client.blocks(page_size=100).dataset()
    newest = blocks.head(5)["height"][0].as_py()
    assert blocks.report.evidence == {}
    blocks.to_table(columns=["height"])
    found = blocks.report.evidence["heights"]
    assert (found["held"], found["checked"]) == (True, 3_000)
    # Two queries, each of one block, are not one list.
    blocks.to_table(filter=pc.field("height").isin([newest, newest - 900]))
    assert blocks.report.pages == 2
    assert blocks.report.evidence == {}


def test_list_that_is_cut_within_a_block_breaks_no_law() -> None:
    """The API may list the records of one block in any order."""
    sender, token = f"0x{7:040x}", f"0x{8:040x}"
    sent = [(5, 8), (4, 6), (4, 7), (4, 5), (3, 4)]
    moved = [(5, "d", "e"), (4, "a", "b"), (4, "c", "d"), (4, "b", "c"), (3, "0", "a")]
    of_token = {"token_contract_address": token, "protocol_type": "ERC721", "token_id": "1", "amount": Decimal(1)}
    transactions = [
        {"height": height, "nonce": nonce, "from_address": sender, "state": "success", "tx_id": f"0x{nonce:064x}"}
        for height, nonce in sent
    ]
    transfers = [
        {
            **of_token,
            "height": height,
            "from_address": f"0x{old:0>40}",
            "to_address": f"0x{new:0>40}",
            "state": "success",
            "tx_id": f"0x{number:064x}",
        }
        for number, (height, old, new) in enumerate(moved)
    ]
    with LocalService(transactions=1) as service:
        service.load("address_transactions", transactions)
        service.load("token_transfers", transfers)
        client = service.client(rate_limit=None)
        makers: tuple[Any, ...] = (
            partial(client.address_transactions, sender),
            partial(client.token_transfers, token),
        )
        for make in makers:
            cursors = [page.cursor for page in make(page_size=1).pages()]
            parts = [make(), *(make(max_items=items) for items in range(1, 5)), *map(client.resume, cursors[:-1])]
            found = [one["held"] for part in parts for one in part.collect().report.evidence.values()]
            assert len(found) > 5
            assert False not in found


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_violation_in_a_set_names_the_argument() -> None:
    senders = [f"0x{number:040x}" for number in (7, 8)]
    rows = [
        {"height": nonce, "nonce": nonce, "from_address": sender, "state": "success", "tx_id": f"{sender}{nonce:024x}"}
        for sender, nonces in zip(senders, ([3, 2, 1, 0], [3, 1, 0]), strict=True)
        for nonce in nonces
    ]
    with LocalService(transactions=1) as service:
        service.load("address_transactions", rows)
        found = finding(service.client().address_transactions(senders, direction="from"), "nonces")
        assert (found["held"], found["violation"]) == (False, f"{senders[1]}: no record has nonce 2")
