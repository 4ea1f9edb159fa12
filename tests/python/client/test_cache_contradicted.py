"""Records that were kept, and are not returned any more although the chain was not reorganized, are missed."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

Row = dict[str, Any]
MISSED = "of this result that the API does not return any more"


def row(height: int, number: int = 0, fork: str = "") -> Row:
    block = {"height": str(height), "blockHash": f"0xb{height}{fork}", "transactionTime": str(10**12 + height)}
    return {"txid": f"0x{height}{number}", "state": "success", **block}


class Chain:
    """Transactions of a chain, two in each block."""

    def __init__(self) -> None:
        self.rows = [row(height, number) for height in range(60, 0, -1) for number in (0, 1)]

    def __call__(self, request: Request) -> Response:
        height, page, limit = request.query.get("height"), int(request.query["page"]), int(request.query["limit"])
        rows = [each for each in self.rows if height in {None, each["height"]}]
        shown = rows[(page - 1) * limit : page * limit]
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=str(-(-len(rows) // limit)))

    def lose(self, *lost: str) -> None:
        self.rows = [each for each in self.rows if each["txid"] not in lost]

    def replace(self, above: int, empty_to: int = 0) -> None:
        """Replace all blocks above a height, each with its first transaction alone, or without one up to a height."""
        kept = [each for each in self.rows if int(each["height"]) <= above]
        self.rows = [row(height, fork="'") for height in range(60, max(above, empty_to), -1)] + kept


QUERIES: dict[str, Row] = {"list": {}, "range": {"start_height": 30, "end_height": 40}, "block": {"height": 30}}


def read(server: StrictServer, path: Path, arguments: Row) -> cf.Records[Any]:
    with server.client(cache=cf.Cache(path, settle=10), max_retries=1) as client:
        return client.transactions(**arguments).collect()


@pytest.mark.parametrize("kind", QUERIES)
def test_records_that_were_kept_and_are_lost_without_a_reorganization_are_a_reason(
    server: StrictServer, tmp_path: Path, kind: str
) -> None:
    chain = Chain()
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]).report.complete
    # The block that shows that the chain is the same is above that of the query, and has gone.
    assert read(server, tmp_path, QUERIES["list"]).report.complete
    chain.lose("0x300", "0x500", "0x501", "0x401", "0x400")
    records = read(server, tmp_path, QUERIES[kind])
    assert any(MISSED in reason for reason in records.report.reasons), (kind, records.report)
    assert not records.report.complete
    # Nothing is kept any more that would show it.
    assert not any(MISSED in reason for reason in read(server, tmp_path, QUERIES[kind]).report.reasons)


@pytest.mark.parametrize("kind", QUERIES)
def test_records_of_replaced_blocks_are_not_missed(server: StrictServer, tmp_path: Path, kind: str) -> None:
    chain = Chain()
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]).report.complete
    chain.replace(above=25)
    records = read(server, tmp_path, QUERIES[kind])
    assert records.report.complete, records.report.reasons
    assert len(records) == {"list": 85, "range": 11, "block": 1}[kind]


@pytest.mark.parametrize(("kind", "empty_to"), [("range", 40), ("block", 30)])
@pytest.mark.parametrize("above", [0, 25])
def test_results_that_a_reorganization_empties_have_no_reason(
    server: StrictServer, tmp_path: Path, kind: str, empty_to: int, above: int
) -> None:
    chain = Chain()
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]).report.complete
    chain.replace(above=above, empty_to=empty_to)
    for _ in range(3):
        records = read(server, tmp_path, QUERIES[kind])
        assert (len(records), records.report.complete, records.report.reasons) == (0, True, [])


@pytest.mark.parametrize("kind", QUERIES)
def test_service_that_shows_nothing_at_all_does_not_empty_the_cache(
    server: StrictServer, tmp_path: Path, kind: str
) -> None:
    chain = Chain()
    server.on("transactions", chain)
    whole = read(server, tmp_path, QUERIES[kind])
    assert whole.report.complete
    server.on("transactions", lambda request: page_of("transactions", [], page=request.query["page"], totalPage="0"))
    records = read(server, tmp_path, QUERIES[kind])
    assert any(MISSED in reason for reason in records.report.reasons), records.report
    assert (len(records), records.report.complete) == (0, False)
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]) == whole


class Hiding:
    """A chain of which a part of the service lacks one transaction. It responds where `hides` says so."""

    def __init__(self, server: StrictServer, lost: str, hides: Callable[[Request], bool]) -> None:
        self.whole, self.part, self.hides = Chain(), Chain(), hides
        self.part.lose(lost)
        server.on("transactions", self)

    def __call__(self, request: Request) -> Response:
        return (self.part if self.hides(request) else self.whole)(request)


def is_read(request: Request) -> bool:
    """True if the request is not for one record, as those of the cache are."""
    return request.query["limit"] != "1"


KEPT_QUERIES: dict[str, tuple[Row, str, int]] = {
    "range": ({"start_height": 45, "end_height": 60}, "0x600", 32),
    "block": ({"height": 30}, "0x300", 2),
    # The highest block is the one that is compared.
    "blocks": ({"height": [20, 30, 10]}, "0x300", 6),
}


@pytest.mark.parametrize("kind", KEPT_QUERIES)
def test_kept_result_that_lacks_a_record_of_the_request_of_the_cache_is_read_again(
    server: StrictServer, tmp_path: Path, kind: str
) -> None:
    arguments, lost, count = KEPT_QUERIES[kind]
    chain = Hiding(server, lost, hides=lambda _request: True)
    assert (len(read(server, tmp_path, arguments)), len(read(server, tmp_path, arguments))) == (count - 1, count - 1)
    chain.hides = lambda _request: False
    records = read(server, tmp_path, arguments)
    assert (len(records), records.report.complete) == (count, True)


@pytest.mark.parametrize("kind", KEPT_QUERIES)
def test_record_that_only_the_requests_of_the_cache_show_is_a_reason(
    server: StrictServer, tmp_path: Path, kind: str
) -> None:
    arguments, lost, count = KEPT_QUERIES[kind]
    chain = Hiding(server, lost, hides=lambda _request: True)
    read(server, tmp_path, arguments)
    chain.hides = is_read
    records = read(server, tmp_path, arguments)
    assert len(records) == count - 1
    assert "lacks records that another response showed" in str(records.report.reasons)
    assert not records.report.complete


@pytest.mark.parametrize("heights", [[40, 60], [60, 40], [20, 40, 60]], ids=str)
@pytest.mark.parametrize("lost", [["0x600"], ["0x600", "0x601"]], ids=["record", "block"])
def test_record_that_requests_of_the_cache_show_is_a_reason_for_a_set_of_blocks(
    server: StrictServer, tmp_path: Path, heights: list[int], lost: list[str]
) -> None:
    chain = Hiding(server, lost[0], hides=lambda request: "height" in request.query)
    chain.part.lose(lost[-1])
    records = read(server, tmp_path, {"height": heights})
    assert len(records) == 2 * len(heights) - len(lost)
    assert "lacks records that another response showed" in str(records.report.reasons)
    assert not read(server, tmp_path, {"height": heights}).report.complete


def test_record_that_the_last_request_of_the_cache_shows_is_a_reason(server: StrictServer, tmp_path: Path) -> None:
    chain = Hiding(server, "0x600", hides=lambda _request: True)
    chain.hides = lambda request: is_read(request) or "height" not in request.query
    records = read(server, tmp_path, {"start_height": 45, "end_height": 60})
    assert "lacks records that another response showed" in str(records.report.reasons)
    # It is not kept.
    chain.hides = lambda _request: False
    assert len(read(server, tmp_path, {"start_height": 45, "end_height": 60})) == 32


def test_block_that_replaces_the_newest_one_after_a_range_was_read_is_no_reason(
    server: StrictServer, tmp_path: Path
) -> None:
    chain, replaced = Chain(), Chain()
    replaced.replace(above=59)

    def respond(request: Request) -> Response:
        is_last = request.query.get("height") == "60" and not is_read(request)
        return (replaced if is_last else chain)(request)

    server.on("transactions", respond)
    records = read(server, tmp_path, {"start_height": 45, "end_height": 60})
    assert (len(records), records.report.complete) == (32, True)


class Wallet:
    """Transactions of an address, on a chain with the blocks of `Chain`."""

    def __init__(self, server: StrictServer, *rows: Row) -> None:
        self.rows = list(rows)
        self.chain = Chain()
        server.on("address_transactions", self)
        server.on("transactions", self.chain)

    def __call__(self, request: Request) -> Response:
        pages = {
            "limit": request.query["limit"],
            "page": request.query["page"],
            "totalPage": str(min(len(self.rows), 1)),
        }
        return page_of("address_transactions", self.rows, **pages)

    def read(self, server: StrictServer, path: Path) -> cf.Records[Any]:
        with server.client(cache=cf.Cache(path, settle=10), max_retries=1) as client:
            return client.address_transactions(ADDRESS).collect()


ADDRESS = "0x" + "1" * 40
NOW = int(time.time() * 1000) - 60_000


def of_wallet(height: int, /, **values: str) -> Row:
    block = {"height": str(height), "blockHash": f"0xb{height}", "transactionTime": str(NOW + height)}
    return {"txId": f"0x{height:064x}", "from": ADDRESS, "to": "0x" + "2" * 40, "amount": "1", **block, **values}


@pytest.mark.parametrize(
    "first",
    [of_wallet(60), of_wallet(60, state="pending", height="", blockHash=""), of_wallet(60, state="pending")],
    ids=["newest", "pending", "pending in a block"],
)
def test_records_that_were_not_settled_are_not_missed(server: StrictServer, tmp_path: Path, first: Row) -> None:
    wallet = Wallet(server, first)
    assert len(wallet.read(server, tmp_path)) == 1
    wallet.rows.clear()
    for _ in range(3):
        records = wallet.read(server, tmp_path)
        assert not any(MISSED in reason for reason in records.report.reasons), records.report.reasons
        assert not records


def test_settled_records_of_an_empty_result_are_missed_once(server: StrictServer, tmp_path: Path) -> None:
    wallet = Wallet(server, of_wallet(60), of_wallet(40), of_wallet(39))
    wallet.read(server, tmp_path)
    wallet.rows.clear()
    reasons = wallet.read(server, tmp_path).report.reasons
    assert any(f"2 records {MISSED}" in reason for reason in reasons), reasons
    assert not any(MISSED in reason for reason in wallet.read(server, tmp_path).report.reasons)


@pytest.mark.parametrize("block_hash", ["0x" + "0" * 64, ""])
def test_unknown_block_hashes_show_no_block(server: StrictServer, tmp_path: Path, block_hash: str) -> None:
    wallet = Wallet(server, of_wallet(60, blockHash=block_hash), of_wallet(59, blockHash=block_hash))
    wallet.read(server, tmp_path)
    del wallet.rows[0]
    for _ in range(3):
        reasons = wallet.read(server, tmp_path).report.reasons
        assert not any(MISSED in reason for reason in reasons), reasons


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("block_hash", ["", "0x" + "0" * 64], ids=["empty", "zeros"])
def test_missing_hashes_of_blocks_do_not_show_that_the_chain_is_the_same(
    server: StrictServer, tmp_path: Path, kind: str, block_hash: str
) -> None:
    chain = Chain()
    chain.rows = [{**each, "blockHash": block_hash} for each in chain.rows]
    server.on("transactions", chain)
    read(server, tmp_path, QUERIES[kind])
    chain.rows = [{**each, "txid": f"{each['txid']}9"} for each in chain.rows]
    with server.client() as plain:
        assert read(server, tmp_path, QUERIES[kind]) == plain.transactions(**QUERIES[kind]).collect()


@pytest.mark.parametrize("arguments", [{"start_height": 30}, {"start_height": 30, "end_time": 10**12 + 1_000}], ids=str)
@pytest.mark.parametrize("lag", [1, 30])
def test_range_that_ends_below_a_block_that_was_seen_is_incomplete_and_not_kept(
    server: StrictServer, tmp_path: Path, arguments: Row, lag: int
) -> None:
    chain = Chain()
    is_first = iter([True])

    def lagging(request: Request) -> Response:
        if not next(is_first, False):
            chain.rows = [row(height) for height in range(60 - lag, 0, -1)]
        return chain(request)

    server.on("transactions", lagging)
    with server.client(cache=cf.Cache(tmp_path, settle=1), max_retries=1) as client:
        query = client.transactions(**arguments)
        report = query.collect().report
        assert not report.complete
        assert any("a part of the service lags behind" in reason for reason in report.reasons)
        chain.rows = [row(height) for height in range(70, 0, -1)]
        server.on("transactions", chain)
        assert [record.height for record in query.collect()] == list(range(30, 71))


def test_result_of_a_chain_that_another_client_has_found_replaced_is_not_kept(tmp_path: Path) -> None:
    """While a block is requested the chain is replaced, and another client with the same cache reads the new one."""
    with StrictServer() as server, ExitStack() as stack:
        chain = "b"
        kept = cf.Cache(tmp_path, settle=10)
        clients = [stack.enter_context(server.client(cache=kept)) for _ in range(4)]

        def blocks(request: Request) -> Response:
            nonlocal chain
            height = request.query.get("height", "100")
            row = {"height": height, "hash": f"0x{chain}{height}", "blockTime": "1788000000000"}
            if (height, chain) == ("20", "b"):
                chain = "c"
                assert [block.hash for block in clients[1].blocks(height=50).collect()] == ["0xc50"]
            return page_of("blocks", [row], limit=request.query["limit"], totalPage="1", total="1")

        server.on("blocks", blocks)
        clients[0].blocks(height=50).collect()
        assert [block.hash for block in clients[2].blocks(height=20).collect()] == ["0xb20"]
        for _ in range(2):
            assert [block.hash for block in clients[3].blocks(height=20).collect()] == ["0xc20"]


OPEN_RANGE: Row = {"start_height": 30}


def test_continued_range_that_ends_below_the_block_it_was_compared_with_is_incomplete(
    server: StrictServer, tmp_path: Path
) -> None:
    chain, old, behind = Chain(), Chain(), Chain()
    old.rows, behind.rows = old.rows[20:], behind.rows[50:]
    server.on("transactions", old)
    assert read(server, tmp_path, OPEN_RANGE)[-1].height == 50
    server.on("transactions", chain)
    assert read(server, tmp_path, {}).report.complete
    # Requests without a height go to a part of the service that is behind.
    server.on("transactions", lambda request: (chain if "height" in request.query else behind)(request))
    records = read(server, tmp_path, OPEN_RANGE)
    assert records[-1].height == 40
    assert not records.report.complete
    assert "ends at height 35, although another response showed height 50" in records.report.reasons[0]


def test_kept_records_that_a_later_response_shows_to_be_replaced_are_a_reason(
    server: StrictServer, tmp_path: Path
) -> None:
    chain, old = Chain(), Chain()
    server.on("transactions", old)
    assert read(server, tmp_path, OPEN_RANGE).report.complete
    chain.replace(above=40)
    compared = []

    def first_comparison_by_the_old_chain(request: Request) -> Response:
        if request.query.get("height") == "50":
            compared.append(request)
            return (old if len(compared) == 1 else chain)(request)
        return chain(request)

    server.on("transactions", first_comparison_by_the_old_chain)
    records = read(server, tmp_path, OPEN_RANGE)
    assert not records.report.complete
    assert any("contradicts records of the cache" in reason for reason in records.report.reasons)
    # Nothing is kept any more of the chain that was replaced.
    records = read(server, tmp_path, OPEN_RANGE)
    assert records.report.complete, records.report.reasons
    assert {each.block_hash for each in records if (each.height or 0) > 40} == {
        f"0xb{number}'" for number in range(41, 61)
    }
