"""Records of several look-ups or lists: one height has one block, and one block has one height."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, member_of, page_of, query_of, rows_of, total_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

Row = dict[str, Any]
HASHES = [f"0x{index:064x}" for index in range(25)]
WALLETS = [f"0x{index:040x}" for index in range(3)]
TWO_BLOCKS = "Records of height 7 are of two blocks"
TWO_HEIGHTS = "Records of one block hash have two heights, "


def block_of(index: int, second: Row) -> Row:
    """The block of the record of that index: the last one has another."""
    others = {"height": "5", "blockHash": "0x5"}
    last = {"height": "7", "blockHash": "0x7", **second}
    return {0: {"height": "7", "blockHash": "0x7"}, 24: last, 2: last}.get(index, others)


def read(server: StrictServer, call: str, second: Row, *, is_streamed: bool) -> cf.Report:
    def transactions(request: Request) -> Response:
        ids = request.query["txId"].split(",")
        indices = [HASHES.index(tx_id) for tx_id in ids]
        rows = [{"txId": HASHES[index], "logIndex": "1", **block_of(index, second)} for index in indices]
        return rows_of(call, rows)

    def of_wallet(request: Request) -> Response:
        index = WALLETS.index(request.query["address"])
        row = {"txId": HASHES[index], "from": WALLETS[index], "to": "0xfe", **block_of(index, second)}
        return page_of(call, [row])

    server.on(call, of_wallet if call == "address_transactions" else transactions)
    with server.client() as client:
        queries: dict[str, cf.Query[Any]] = {
            "transactions_by_hash": client.transactions_by_hash(HASHES),
            "logs": client.logs(HASHES),
            "address_transactions": client.address_transactions(WALLETS),
        }
        query = queries[call]
        count = len(list(query)) if is_streamed else len(query.collect())
        assert count == (3 if call == "address_transactions" else 25)
        report = query.report if is_streamed else query.collect().report
    assert report is not None
    return report


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("call", ["transactions_by_hash", "logs", "address_transactions"])
@pytest.mark.parametrize(
    ("second", "problem"),
    [({"blockHash": "0x9"}, TWO_BLOCKS), ({"height": "8"}, TWO_HEIGHTS)],
    ids=["two blocks", "two heights"],
)
def test_records_of_two_responses_that_are_not_of_one_chain_are_reported(
    server: StrictServer, call: str, second: Row, problem: str, *, is_streamed: bool
) -> None:
    report = read(server, call, second, is_streamed=is_streamed)
    assert any(reason.startswith(problem) for reason in report.reasons), report.reasons
    assert not report.complete


@pytest.mark.parametrize("call", ["transactions_by_hash", "logs", "address_transactions"])
@pytest.mark.parametrize(
    "second",
    [{}, {"blockHash": "0x9", "height": "9"}, {"blockHash": "", "height": ""}, {"blockHash": "0x0000"}],
    ids=["same", "other block", "pending", "unknown hash"],
)
def test_records_of_one_chain_have_no_such_reason(server: StrictServer, call: str, second: Row) -> None:
    report = read(server, call, second, is_streamed=False)
    assert not any("block" in reason for reason in report.reasons if "12 months" not in reason), report.reasons


def test_one_hash_for_all_blocks_is_none(server: StrictServer) -> None:
    rows = [{"txId": HASHES[index], "height": str(index), "blockHash": "0xsame"} for index in range(3)]
    server.on("transactions_by_hash", rows_of("transactions_by_hash", rows))
    with server.client() as client:
        assert client.transactions_by_hash(HASHES[:3]).collect().report.complete


def test_block_hash_of_two_heights_of_a_set_is_reported(server: StrictServer) -> None:
    hashes = {"5": "0xsame", "6": "0xsame", "7": "0x7"}

    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("blocks", [{"hash": hashes[height], "height": height}])

    server.on("blocks", block)
    with server.client() as client:
        report = client.blocks(height=[5, 6, 7]).collect().report
        assert any(reason.startswith(TWO_HEIGHTS) for reason in report.reasons), report.reasons
        hashes["6"] = "0x6"
        assert client.blocks(height=[5, 6, 7]).collect().report.complete


@pytest.mark.parametrize("is_streamed", [False, True])
def test_transaction_of_two_heights_of_a_range_is_reported(server: StrictServer, *, is_streamed: bool) -> None:
    ids = {"5": "0xa", "6": "0xa", "7": "0xc"}

    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("transactions", [{"txid": ids[height], "blockHash": f"0x{height}", "height": height}])

    server.on("transactions", block)
    with server.client() as client:
        queries: list[Callable[[], cf.Query[Any]]] = [
            lambda: client.transactions(start_height=5, end_height=7),
            lambda: client.transactions(height=[5, 6, 7]),
        ]
        for make in queries:
            query = make()
            assert len(list(query) if is_streamed else query.collect()) == 3
            assert query.report is not None
            moved = "A transaction is in two blocks, of the heights 5 and 6"
            assert any(reason.startswith(moved) for reason in query.report.reasons), query.report.reasons
        ids["6"] = "0xb"
        assert all(make().collect().report.complete for make in queries)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("call", ["transactions", "large_transactions", "token_transfers"])
def test_transaction_of_two_heights_of_a_list_is_reported(server: StrictServer, call: str) -> None:
    rows = [{"txid": f"0x{row}", "height": str(1_000 - row), "blockHash": f"0xb{row}"} for row in range(10)]
    rows[7]["txid"] = "0x2"

    def respond(request: Request) -> Response:
        number, size = int(request.query["page"]), int(request.query["limit"])
        counts = {"totalPage": str(-(-len(rows) // size)), "limit": str(size), **total_of(call, len(rows))}
        return page_of(call, rows[(number - 1) * size : number * size], **counts)

    server.on(call, respond)
    with server.client() as client:
        query = query_of(client, call, page_size=5)
        assert len(query.collect()) == 10
        assert query.report is not None
        moved = "A transaction is in two blocks, of the heights 993 and 998"
        assert any(reason.startswith(moved) for reason in query.report.reasons), query.report.reasons
        rows[7]["txid"] = "0x7"
        assert query_of(client, call, page_size=5).collect().report.complete


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("how", ["unchanged", "reorganized", "two parts"])
def test_transaction_between_the_chains_that_moves_is_returned_once(server: StrictServer, how: str, size: int) -> None:
    """Such records do not show their blocks. The list keeps its length and the order of the others."""
    of = partial(member_of, "cross_chain_transactions")
    places = [(height, index) for height in range(19, 9, -1) for index in (0, 1)]

    def rows(*, is_moved: bool) -> list[Row]:
        # The lower transaction of block 18 is the upper one of block 17 then.
        heights = {(18, 1): 17} if is_moved else {}
        names = [f"0x{height}{index}" for height, index in places]
        return [
            {of("zone_tx_hash"): name, of("zone_block_height"): str(heights.get(place, place[0]))}
            for name, place in zip(names, places, strict=True)
        ]

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        is_moved = {"unchanged": False, "reorganized": len(server.requests) > 2, "two parts": page * size > 4}[how]
        listed = rows(is_moved=is_moved)
        if is_moved:
            at = places.index((18, 1))
            listed[at : at + 2] = [listed[at + 1], listed[at]]
        members = {"page": str(page), "limit": str(limit), "total": "20", "totalPage": str(-(-20 // limit))}
        return page_of("cross_chain_transactions", listed[(page - 1) * limit : page * limit], **members)

    server.on("cross_chain_transactions", respond)
    query = server.client(concurrency=1).cross_chain_transactions(page_size=size)
    if how == "two parts":
        with pytest.raises(cf.PaginationDriftError, match="a transaction was received at two heights"):
            query.collect()
    else:
        assert len({record.zone_tx_hash for record in query.collect()}) == 20


LISTS: list[tuple[str, Row]] = [
    ("blocks", {}),
    ("blocks", {"height": 7}),
    ("transactions", {}),
    ("transactions", {"height": 7}),
    ("large_transactions", {}),
    ("token_transfers", {"token_contract_address": "0xa"}),
    ("address_transactions", {"address": WALLETS[0]}),
    ("transactions_by_hash", {"tx_ids": HASHES[:4]}),
]


@pytest.mark.parametrize("is_both", [False, True])
@pytest.mark.parametrize(("call", "arguments"), LISTS)
def test_response_with_two_blocks_of_one_height_is_reported(
    server: StrictServer, call: str, arguments: Row, *, is_both: bool
) -> None:
    heights = [7, 7] if "height" in arguments else [8, 7, 7, 6]
    rows: list[Row] = []
    for index, height in enumerate(heights):
        # Two transactions of one block, or of a block and of one that it has replaced.
        block = f"0x{height}{'f' if is_both and index == heights.index(7) else ''}"
        of_block = {"height": str(height), "blockHash": block, "hash": block}
        rows.append({**of_block, "txid": HASHES[index], "txId": HASHES[index], "from": WALLETS[0]})
    if call == "blocks" and not is_both:
        del rows[heights.index(7)]
    server.on(call, rows_of(call, rows) if call == "transactions_by_hash" else page_of(call, rows))
    with server.client() as client:
        reasons = getattr(client, call)(**arguments).collect().report.reasons
    assert any(reason.startswith(TWO_BLOCKS) for reason in reasons) == is_both, reasons


@pytest.mark.parametrize("is_streamed", [False, True])
def test_block_hash_of_two_heights_of_a_range_is_reported(server: StrictServer, *, is_streamed: bool) -> None:
    hashes = {"5": "0x5", "6": "0x5", "7": "0x7"}

    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("transactions", [{"txid": "0xa", "blockHash": hashes[height], "height": height}])

    server.on("transactions", block)
    with server.client() as client:
        query = client.transactions(start_height=5, end_height=7)
        records = list(query) if is_streamed else query.collect()
        assert len(records) == 3
        assert any(reason.startswith(TWO_HEIGHTS) for reason in query.report.reasons), query.report.reasons
        hashes["6"] = "0x6"
        assert client.transactions(start_height=5, end_height=7).collect().report.complete


def test_block_that_is_absent_between_others_of_a_set_is_reported(server: StrictServer) -> None:
    def block(request: Request) -> Response:
        height = request.query["height"]
        rows = [] if height in {"7", "99"} else [{"hash": f"0x{height}", "height": height}]
        return page_of("blocks", rows)

    server.on("blocks", block)
    with server.client() as client:
        records = client.blocks(height=[5, 7, 9, 99]).collect()
        assert "no block of height 7, although" in records.report.reasons[0]
        incomplete = {value for value, verdict in records.report.by_argument.items() if not verdict["complete"]}
        assert incomplete == {"7"}
        # There may be none beyond.
        assert client.blocks(height=[7, 9, 99]).collect().report.complete


def test_block_that_an_earlier_run_returned_is_not_absent(server: StrictServer) -> None:
    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("blocks", [{"hash": f"0x{height}", "height": height}])

    server.on("blocks", block)
    heights = [1, 3, 5, 7, 9]
    with server.client(concurrency=1) as client:
        for returned, page in enumerate(client.blocks(height=heights).pages(), 1):
            rest = client.resume(page.cursor).collect()
            assert (len(rest), rest.report.reasons) == (len(heights) - returned, [])


def test_block_that_was_absent_before_a_cursor_is_reported(server: StrictServer) -> None:
    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("blocks", [] if height in {"2", "7"} else [{"hash": f"0x{height}", "height": height}])

    server.on("blocks", block)
    with server.client(concurrency=1) as client:
        for page in client.blocks(height=[*range(5, 40)]).pages():
            reasons = client.resume(page.cursor).collect().report.reasons
            assert any("no block of height 7, although" in reason for reason in reasons), page.number
        # There may be none below.
        for page in client.blocks(height=[2, *range(8, 40)]).pages():
            assert client.resume(page.cursor).collect().report.complete


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("absent", ["5", "8", "11"])
def test_block_that_was_absent_when_a_run_was_interrupted_is_reported(
    server: StrictServer, absent: str, concurrency: int
) -> None:
    def block(request: Request) -> Response:
        height = request.query["height"]
        return page_of("blocks", [] if height == absent else [{"hash": f"0x{height}", "height": height}])

    server.on("blocks", block)
    with server.client(concurrency=concurrency) as client:
        for page in client.blocks(height=[*range(4, 13)]).pages():
            for later in client.resume(page.cursor).pages():
                for cursor in (page.cursor, later.cursor):
                    reasons = client.resume(cursor).collect().report.reasons
                    assert any(f"no block of height {absent}, although" in reason for reason in reasons), cursor


@pytest.mark.parametrize("heights", [[11, 12, 9], [12, 11, 9], [9, 11, 12], [9, 12, 11], [11, 9, 12], [12, 9, 11]])
def test_block_that_was_not_mined_at_its_request_is_not_absent(server: StrictServer, heights: list[int]) -> None:
    head = [10]

    def block(request: Request) -> Response:
        height = request.query["height"]
        rows = [{"hash": f"0x{height}", "height": height}] if int(height) <= head[0] else []
        head[0] += 0 if rows else 90
        return page_of("blocks", rows)

    server.on("blocks", block)
    with server.client(concurrency=1) as client:
        report = client.blocks(height=heights).collect().report
        assert report.reasons == []
        requests = {height: verdict["requests"] for height, verdict in report.by_argument.items()}
        assert sum(requests.values()) == report.requests
        sent = Counter(request.query["height"] for request in server.requests)
        assert requests == sent
