"""Scans by the hashes of transactions, whose heights are looked up, while the chain is reorganized."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow.compute as pc
import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
LACKING = "lacks records that another response showed"
REPLACED = "has records of different chains"
PENDING = {"txId": "0x" + "c" * 64, "state": "pending"}

Record = dict[str, Any]


def in_blocks(blocks: dict[str, str]) -> list[Record]:
    """Transactions by their first digit, each in a block: its height, and a letter for its chain."""
    return [
        {"txId": "0x" + digit * 64, "height": block[0], "blockHash": "0x" + block.encode().hex() * 16}
        for digit, block in sorted(blocks.items(), key=lambda item: item[1], reverse=True)
    ]


def serve(server: StrictServer, records: Callable[[], list[Record]]) -> None:
    """Serves transactions as they are at each request."""

    def page(request: Request) -> Response:
        found = [each for each in records() if "height" not in request.query or matches(each, request)]
        return page_of("transactions", found, page="1", limit="100", totalPage="1")

    def matches(record: Record, request: Request) -> bool:
        return bool(record.get("height") == request.query["height"])

    def look_up(request: Request) -> Response:
        wanted = request.query["txId"].split(",")
        found = [{**each, "txid": each["txId"]} for each in records() if each["txId"] in wanted]
        return rows_of("transactions_by_hash", found)

    server.on("transactions", page)
    server.on("transactions_by_hash", look_up)


def scan(client: cf.Client, hashes: str) -> tuple[dict[str, str], cf.Report]:
    """Scans for hashes; returns the block of each transaction."""
    dataset = client.transactions().dataset()
    found = dataset.to_table(filter=pc.field("tx_id").isin(["0x" + digit * 64 for digit in hashes])).to_pylist()
    blocks = {each["tx_id"][2]: bytes.fromhex(each["block_hash"][2:6]).decode() for each in found}
    assert len(found) == len(blocks) or dataset.report.reasons
    return blocks, dataset.report


@dataclass
class Reorganization:
    """The blocks of transactions before and after, and the requests after which a scan is not of one chain."""

    before: dict[str, str]
    after: dict[str, str]
    mixed: set[int]


REORGANIZATIONS = {
    "to another height": Reorganization({"c": "7a"}, {"c": "8b"}, set()),
    "to the height of a higher one": Reorganization({"c": "7a", "d": "8a"}, {"c": "8b", "d": "8b"}, {2}),
    "to another height, below one that stays at its height": Reorganization(
        {"c": "7a", "d": "9a", "e": "8a"}, {"c": "8b", "d": "9b", "e": "8b"}, {2, 3}
    ),
    "to another height, above one that stays in its block": Reorganization(
        {"c": "7a", "d": "9a"}, {"c": "7a", "d": "8b", "e": "9b"}, set()
    ),
    "to a height that is requested later": Reorganization({"c": "7a", "d": "9a"}, {"c": "7b", "d": "7b"}, {2}),
    "all at their heights": Reorganization({"c": "7a", "d": "9a"}, {"c": "7b", "d": "9b"}, {2}),
    "out of the chain": Reorganization({"c": "7a", "d": "9a", "e": "7a"}, {"d": "9b", "e": "7b"}, {2}),
}


@pytest.mark.parametrize("name", REORGANIZATIONS)
def test_result_is_of_one_chain_or_has_a_reason(server: StrictServer, name: str) -> None:
    moved = REORGANIZATIONS[name]
    for since in range(1, 7):
        server.requests.clear()

        def records(since: int = since) -> list[Record]:
            return in_blocks(moved.before if len(server.requests) <= since else moved.after)

        serve(server, records)
        with server.client(concurrency=1) as client:
            blocks, report = scan(client, "".join(moved.before))
        if since in moved.mixed:
            assert any(REPLACED in reason for reason in report.reasons), since
            assert not report.complete
        else:
            wanted = {digit: block for digit, block in moved.after.items() if digit in moved.before}
            assert blocks in (moved.before, wanted), since
            assert not any(REPLACED in reason or LACKING in reason for reason in report.reasons), since


@pytest.mark.parametrize("is_lost", [False, True])
def test_pending_transaction_may_be_missing_from_the_list(server: StrictServer, *, is_lost: bool) -> None:
    serve(server, lambda: in_blocks({"d": "8a"}) + ([PENDING] if not is_lost or is_looked_up(server) else []))
    with server.client() as client:
        blocks, report = scan_pending(client)
        assert len(blocks) == (not is_lost)
        assert not report.reasons


@pytest.mark.parametrize("is_listed", [False, True])
def test_transaction_that_is_pending_no_more_is_read_in_its_block(server: StrictServer, *, is_listed: bool) -> None:
    mined = in_blocks({"c": "7a"})

    def records() -> list[Record]:
        if is_looked_up(server):
            return [PENDING] if len(server.requests) == 1 else mined
        return mined if is_listed and "height" in server.requests[-1].query else []

    serve(server, lambda: in_blocks({"d": "8a"}) + records())
    with server.client() as client:
        heights, report = scan_pending(client)
        assert heights == [7] * is_listed
        assert any(LACKING in reason for reason in report.reasons) is not is_listed


def is_looked_up(server: StrictServer) -> bool:
    return "txId" in server.requests[-1].query


def scan_pending(client: cf.Client) -> tuple[list[int | None], cf.Report]:
    dataset = client.transactions().dataset()
    return dataset.to_table(filter=pc.field("tx_id") == PENDING["txId"])["height"].to_pylist(), dataset.report


def _latest(server: StrictServer, chains: list[list[Record]]) -> list[Record]:
    """The chain of the request that is being served."""
    return chains[min(len(server.requests), len(chains)) - 1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"c": "7a", "d": "8a"}, {"c": "8b", "d": "8b"}),
        ({"c": "7a", "d": "9a", "e": "8a"}, {"c": "8b", "d": "9b", "e": "8b"}),
        ({"c": "7a", "d": "9a"}, {"c": "7b", "d": "7b"}),
    ],
)
def test_no_mixture_of_two_chains_is_called_complete(
    server: StrictServer, before: dict[str, str], after: dict[str, str]
) -> None:
    complete = 0
    for schedule in itertools.product((before, after), repeat=5):
        server.requests.clear()
        chains = [in_blocks(chain) for chain in schedule]
        serve(server, partial(_latest, server, chains))
        with server.client(concurrency=1) as client:
            try:
                blocks, report = scan(client, "".join(before))
            except cf.PaginationDriftError:
                continue
        assert blocks in (before, after) or not report.complete
        complete += report.complete
    assert complete > 2
