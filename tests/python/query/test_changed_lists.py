"""Lists that lose records while they are read, and pages smaller than requested: right, or not called complete."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count, islice
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of, total_of

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
Row = dict[str, str]


class ChangingList:
    """A list of which each page is cut at its moment, and which is changed after some responses."""

    def __init__(self, call: str, rows: list[Row], change: Callable[[list[Row], int], None] | None = None) -> None:
        self.call, self.rows, self.change = call, rows, change
        self.states = [list(rows)]
        self.responses = 0
        self.max_page = 1_000
        self.numbers: dict[str, object] = {}

    def __call__(self, request: Request) -> Response:
        asked, page = int(request.query["limit"]), int(request.query["page"])
        limit = min(asked, self.max_page)
        numbers = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(self.rows) // limit))}
        if self.call == "token_transfers":
            numbers["totalTransfer"] = str(len(self.rows))
        if self.numbers:
            numbers |= {name: str(number) for name, number in self.numbers.items()}
        response = page_of(self.call, self.rows[(page - 1) * limit : page * limit], **numbers)
        self.responses += 1
        if self.change is not None:
            self.change(self.rows, self.responses)
            self.states.append(list(self.rows))
        return response


def tokens(count: int) -> list[Row]:
    return [{"tokenContractAddress": f"0x{number:02x}", "token": f"T{number}"} for number in range(count)]


def transactions(count: int) -> list[Row]:
    return [{"txid": f"0x{number:02x}", "height": "7", "blockHash": "0xb"} for number in range(count)]


def test_token_that_is_removed_leaves_no_gap(server: StrictServer) -> None:
    moments, whole = 7, 0
    for size, moment, place in [(s, m, p) for s in (7, 8) for m in range(1, moments) for p in range(s)]:

        def remove(rows: list[Row], responses: int, moment: int = moment, place: int = place) -> None:
            if responses == moment:
                del rows[place]

        listed = ChangingList("tokens", tokens(size), remove)
        server.on("tokens", listed)
        with server.client(concurrency=2) as client:
            records = client.tokens(page_size=3).collect()
        found = {record.token_contract_address for record in records}
        assert len(found) == len(records)
        states = [{row["tokenContractAddress"] for row in state} for state in listed.states]
        whole += found in states
        assert found in states or not records.report.complete, (size, moment, place)
        # All that are left are there in any case.
        assert states[-1] <= found
    assert whole > 0


def test_tokens_of_a_service_that_reports_no_pages_are_not_complete(server: StrictServer) -> None:
    listed = ChangingList("tokens", tokens(8))
    listed.numbers = {"totalPage": 0}
    server.on("tokens", listed)
    with server.client() as client:
        records = client.tokens(page_size=3).collect()
    assert len(records) == 8
    assert "length of the list is unknown" in " ".join(records.report.reasons) or not records.report.complete


@pytest.mark.parametrize("max_page", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 9])
def test_pages_counted_by_another_size_are_noticed(server: StrictServer, size: int, max_page: int) -> None:
    for call, arguments in [
        ("transactions", {"height": 7}),
        ("large_transactions", {"height": 7}),
        ("transactions", {}),
    ]:
        listed = ChangingList(call, transactions(size))
        listed.max_page = max_page
        server.on(call, partial(counted_by_request, listed))
        with server.client() as client:
            try:
                records = getattr(client, call)(page_size=4, **arguments).collect()
            except cf.PaginationDriftError:
                continue
        assert len(records) == size or not records.report.complete, (call, arguments)


def counted_by_request(listed: ChangingList, request: Request) -> Response:
    listed.numbers = {"totalPage": -(-len(listed.rows) // int(request.query["limit"]))}
    return listed(request)


@pytest.mark.parametrize("length", range(4, 13))
def test_record_that_one_page_of_a_block_lacks_is_noticed(server: StrictServer, length: int) -> None:
    for lacking in range(2, 5):

        def lack(request: Request, lacking: int = lacking, asked: int = len(server.requests)) -> Response:
            rows = transactions(length)
            limit, page = int(request.query["limit"]), int(request.query["page"])
            shown = rows[(page - 1) * limit : page * limit]
            is_lacking = page == lacking and limit == 3 and len(server.requests) <= asked + 4
            return page_of("transactions", shown[:-1] if is_lacking else shown, totalPage=str(-(-length // limit)))

        server.on("transactions", lack)
        with server.client(concurrency=1) as client:
            try:
                records = client.transactions(height=7, page_size=3).collect()
            except cf.PaginationDriftError:
                continue
        assert len(records) == length, lacking


def test_block_that_changes_between_runs_is_noticed_by_the_last_one(server: StrictServer) -> None:
    for moment in range(1, 6):

        def turn(rows: list[Row], responses: int, moment: int = moment) -> None:
            if responses == moment:
                rows.reverse()

        listed = ChangingList("transactions", transactions(11), turn)
        server.on("transactions", listed)
        with server.client(concurrency=1) as client, pytest.raises(cf.PaginationDriftError):
            read_page_by_page(client, client.transactions(height=7, page_size=3))


def read_page_by_page(client: cf.Client, query: cf.Query[Any]) -> None:
    """Read each page in a run of its own."""
    while (page := next(iter(query.pages()), None)) is not None:
        query = client.resume(page.cursor)


def test_short_list_that_grows_is_not_divided(server: StrictServer) -> None:
    def grow(rows: list[Row], responses: int) -> None:
        if responses == 5:
            new = [{"txid": f"0x9{number}", "height": str(50 + number), "amount": "1"} for number in range(3)]
            rows[:0] = new[::-1]

    rows = [{"txid": f"0x{n:02x}", "height": str(n // 5), "amount": str(n)} for n in range(29, 0, -1)]
    listed = ChangingList("token_transfers", rows, grow)
    server.on("token_transfers", listed)
    with server.client(concurrency=1) as client:
        records = client.token_transfers("0xa", page_size=5).collect()
    assert [record.tx_id for record in records] == [row["txid"] for row in listed.states[0]]
    assert not [request for request in server.requests if "minAmount" in request.query]


def test_pages_that_change_places_are_noticed_across_cursors(server: StrictServer) -> None:
    rows = [{"hash": f"0x{height:x}", "height": str(height)} for height in range(11, 0, -1)]

    def crossed(request: Request) -> Response:
        page = int(request.query["page"])
        first = ({2: 3, 3: 2}.get(page, page) - 1) * 3
        return page_of("blocks", rows[first : first + 3], page=str(page), limit="3", totalPage="4", total="11")

    server.on("blocks", crossed)
    with server.client(concurrency=1) as client:
        query: Any = client.blocks(page_size=3)
        for _ in range(2):
            query = client.resume(next(iter(query.pages())).cursor)
        with pytest.raises(cf.PaginationDriftError, match="a page begins at height 8"):
            next(iter(query.pages()))


def in_own_block(height: int) -> Row:
    return {"txid": f"0x{height:x}", "height": str(height), "blockHash": f"0x{height:064x}"}


@pytest.mark.parametrize("call", ["large_transactions", "token_transfers"])
@pytest.mark.parametrize("lost", [14, 9])
def test_record_that_a_response_shows_below_a_returned_one_is_not_missed(
    server: StrictServer, call: str, lost: int
) -> None:
    # A part of the service lacks a record, and sends all responses but one or two.
    for whole in ({number, number + apart} for number in range(1, 10) for apart in (0, 2)):
        shown: set[int] = set()
        responses = count(1)

        def respond(
            request: Request, whole: set[int] = whole, shown: set[int] = shown, responses: Any = responses
        ) -> Response:
            page, limit = int(request.query["page"]), int(request.query["limit"])
            is_whole = next(responses) in whole
            rows = [height for height in range(20, 0, -1) if is_whole or height != lost]
            cut = rows[(page - 1) * limit : page * limit]
            shown.update(cut[1:])
            members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
            return page_of(call, [in_own_block(height) for height in cut], **members, **total_of(call, len(rows)))

        server.on(call, respond)
        with server.client(concurrency=1) as client, suppress(cf.PaginationDriftError):
            records: Any = query_of(client, call, page_size=4).collect()
            assert shown <= {record.height for record in records} or not records.report.complete, whole


@pytest.mark.parametrize("call", ["transactions", "large_transactions", "blocks"])
@pytest.mark.parametrize(("length", "size"), [(13, 8), (9, 8), (120, 50), (24, 8)])
def test_first_page_that_lacks_the_newest_record_each_time_is_noticed(
    server: StrictServer, call: str, length: int, size: int
) -> None:
    """Pages of another size begin with that record."""

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        rows = [{**in_own_block(height), "hash": f"0x{height:x}"} for height in range(length, 0, -1)]
        cut = rows[(page - 1) * limit : page * limit]
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-length // limit))}
        return page_of(call, cut[1:] if (page, limit) == (1, size) else cut, **members, **total_of(call, length))

    server.on(call, respond)
    with server.client(concurrency=1, max_retries=0) as client, suppress(cf.PaginationDriftError):
        records = query_of(client, call, page_size=size).collect()
        assert len(records) == length or not records.report.complete


def fork(call: str, side: int, depth: int) -> list[Row]:
    """A list of eight blocks, of which those above a depth differ by the side of the fork."""
    blocks = [(height, f"{height}{side if height > 8 - depth else 0}") for height in range(8, 0, -1)]
    name = "hash" if call == "blocks" else "txid"
    return [{name: f"0x{block}", "blockHash": f"0xb{block}", "height": str(height)} for height, block in blocks]


@pytest.mark.parametrize("call", ["blocks", "large_transactions", "token_transfers"])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("returned", [1, 2])
def test_run_that_continues_on_the_other_side_of_a_fork_is_no_result(
    server: StrictServer, call: str, depth: int, returned: int
) -> None:
    sides = [fork(call, side, depth) for side in (1, 2)]
    identity = key_of(call)
    # Each of the next six requests goes to one of two servers.
    for routing in range(64):
        # The first run has one server.
        servers = [0]

        def respond(request: Request, servers: list[int] = servers) -> Response:
            page, limit = int(request.query["page"]), int(request.query["limit"])
            rows = sides[servers.pop() if len(servers) > 1 else servers[0]]
            members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
            cut = rows[(page - 1) * limit : page * limit]
            return page_of(call, cut, **members, **total_of(call, len(rows)))

        server.on(call, respond)
        with server.client(concurrency=1) as client:
            query = query_of(client, call, page_size=4)
            found = [getattr(record, identity) for record in islice(query, returned)]
            servers[1:] = [routing >> number & 1 for number in range(6)]
            with suppress(cf.PaginationDriftError):
                rest = client.resume(query.cursor).collect()
                found += [getattr(record, identity) for record in rest]
                wire = member_of(call, identity)
                assert found in [[row[wire] for row in side] for side in sides] or not rest.report.complete, routing
