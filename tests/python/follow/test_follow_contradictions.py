"""Followers of lists whose responses contradict themselves."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import key_of, member_of, page_of, query_of, total_of

if TYPE_CHECKING:
    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


class Blocks:
    """Ten blocks and a count, which may be another one; some blocks may have no height."""

    def __init__(self, server: StrictServer, *, total: int = 10, without_height: frozenset[int] = frozenset()) -> None:
        self.total, self.without_height = total, without_height
        server.on("blocks", self.respond)

    def respond(self, request: Request) -> Response:
        heights = range(10, 0, -1)
        rows = [{"hash": f"0x{at:x}", "height": "" if at in self.without_height else str(at)} for at in heights]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "totalPage": str(-(-10 // limit)), "total": str(self.total)}
        return page_of("blocks", rows[(page - 1) * limit : page * limit], **members)


def followed(client: cf.Client, *, undo: bool) -> tuple[list[int | None], cf.Report]:
    options: Any = {"undo": undo}
    follow: Any = client.blocks().follow(start="beginning", poll=None, settle=2, **options)
    return [block.height for batch in follow for block in batch], follow.report


@pytest.mark.parametrize("undo", [False, True])
def test_count_that_is_not_reached_is_reported(server: StrictServer, *, undo: bool) -> None:
    blocks = Blocks(server)
    with server.client() as client:
        heights, report = followed(client, undo=undo)
        assert (heights[:3], report.complete, report.reasons) == ([1, 2, 3], True, [])
        blocks.total = 12
        assert "reports 12 records but returned 10" in followed(client, undo=undo)[1].reasons[0]


@pytest.mark.parametrize("undo", [False, True])
def test_records_without_a_height_below_settled_ones_are_reported(server: StrictServer, *, undo: bool) -> None:
    # The newest record waits for a block.
    blocks = Blocks(server, without_height=frozenset({10}))
    with server.client() as client:
        heights, report = followed(client, undo=undo)
        assert (heights[:3], report.complete) == ([1, 2, 3], True)
        blocks.without_height = frozenset({3})
        heights, report = followed(client, undo=undo)
        assert (heights[:3], report.complete) == ([1, 2, 4], False)
        assert "records without a height" in report.reasons[0]


@pytest.mark.parametrize("call", ["transactions", "large_transactions"])
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("lost", [7, 100])
def test_round_that_lacks_a_record_of_a_discarded_one_is_repeated(
    server: StrictServer, call: str, lost: int, *, undo: bool
) -> None:
    heights = range(130, 0, -1)
    rows = [{"txId": f"0x{at:064x}", "height": str(at), "blockHash": f"0x{at:x}"} for at in heights]
    numbers = count(1)

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        # One part of the service has all records and responds to the beginning, another one to what follows.
        is_whole = next(numbers) <= 4 or next(behind) > 9
        shown = rows if is_whole else [row for row in rows if row["height"] != str(lost)]
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(shown) // limit))}
        return page_of(call, shown[(page - 1) * limit : page * limit], **members)

    behind = count(1)
    server.on("transactions", respond)
    server.on(call, respond)
    with server.client(concurrency=1) as client:
        query: Any = getattr(client, call)()
        options: Any = {"undo": undo}
        follow = query.follow(start="beginning", poll=None, settle=2, **options)
        found = [record.height for batch in follow for record in batch]
    assert found == list(range(1, found[-1] + 1))
    assert next(behind) > 9


class TwoPerBlock:
    """Sixty blocks of two records each, of which one may have a height that is too low."""

    def __init__(self, server: StrictServer, call: str) -> None:
        self.too_low: int | None = None
        self.requests = 0
        # The head of the chain is that of all transactions.
        for each in {call, "transactions"}:
            server.on(each, partial(self.respond, each))

    def respond(self, call: str, request: Request) -> Response:
        self.requests += 1
        heights = ((number, 1000 + number // 2) for number in range(119, -1, -1))
        rows = [
            {"txId": f"0x{number:064x}", "height": str(1 if number == self.too_low else at), "blockHash": f"0x{at:x}"}
            for number, at in heights
        ]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(rows) // limit))}
        return page_of(call, rows[(page - 1) * limit : page * limit], **members)


@pytest.mark.parametrize("call", ["transactions", "large_transactions"])
@pytest.mark.parametrize("undo", [False, True])
def test_block_with_two_heights_does_not_end_a_round(server: StrictServer, call: str, *, undo: bool) -> None:
    """The last record of the first page seems to be below all that is due."""
    service = TwoPerBlock(server, call)
    with server.client(concurrency=1) as client:
        options: Any = {"undo": undo}
        query: Any = getattr(client, call)(page_size=10)
        follow = query.follow(start="beginning", poll=None, settle=2, **options)
        service.too_low = 110
        with pytest.raises(cf.PaginationDriftError, match="two heights, 1055 and 1"):
            list(follow)
        service.too_low = None
        found = [record.height for batch in follow for record in batch]
    assert found == [1000 + number // 2 for number in range(len(found))]
    assert found[-1] >= 1057


def test_long_list_that_contradicts_itself_each_time_is_read_a_few_times(server: StrictServer) -> None:
    service = TwoPerBlock(server, "large_transactions")
    with server.client(concurrency=1) as client:
        query = client.large_transactions(page_size=2)
        list(query.follow(start="beginning", poll=None, settle=2))
        once, service.requests = service.requests, 0
        service.too_low = 1
        with pytest.raises(cf.PaginationDriftError):
            list(query.follow(start="beginning", poll=None, settle=2))
    assert once > 50
    # The first reading, and others until these took more than 150 requests.
    assert service.requests <= 150 + 2 * once


@pytest.mark.parametrize("empty", [1, 2, 3])
@pytest.mark.parametrize("call", ["blocks", "transactions"])
def test_list_that_had_records_is_empty_only_if_several_responses_say_so(
    server: StrictServer, call: str, empty: int
) -> None:
    """Some services throttle by responses that count no records."""
    newest = 20

    def serve(request: Request) -> Response:
        nonlocal empty
        page, limit = int(request.query["page"]), int(request.query["limit"])
        heights = [at for at in range(newest, 0, -1) if request.query.get("height") in {None, str(at)}]
        if newest > 20 and empty:
            empty -= 1
            heights = []
        rows = [
            {member_of(call, key_of(call)): f"0x{at:x}", "height": str(at), "blockHash": f"0xb{at:x}"} for at in heights
        ]
        members = total_of(call, len(rows)) | {"page": str(page), "totalPage": str(-(-len(rows) // limit))}
        return page_of(call, rows[(page - 1) * limit : page * limit], **members)

    server.on(call, serve)
    with server.client() as client:
        query: Any = query_of(client, call)
        follow = query.follow(start="beginning", poll=None, settle=2)
        found = [record.height for batch in follow for record in batch]
        newest = 30
        follow = query.follow(start=follow.cursor, poll=None, settle=2)
        if empty == 3:
            with pytest.raises(cf.ReorganizationError, match="the list is empty, and had records up to height 18"):
                list(follow)
        else:
            found += [record.height for batch in follow for record in batch]
            assert found == list(range(1, 29))
        assert not empty


@pytest.mark.parametrize("empty", [1, 2, 3])
def test_address_that_had_settled_records_has_none_only_if_several_responses_say_so(
    server: StrictServer, empty: int
) -> None:
    newest = 20

    def row(at: int) -> dict[str, str]:
        return {"txId": f"0x{at:x}", "txid": f"0x{at:x}", "height": str(at), "blockHash": f"0xb{at:x}"}

    def serve(call: str, request: Request) -> Response:
        nonlocal empty
        page, limit = int(request.query["page"]), int(request.query["limit"])
        is_empty = call == "address_transactions" and newest > 20 and empty > 0
        empty -= is_empty
        heights = range(0 if is_empty else newest, 0, -1)
        # Blocks are of every minute.
        rows = [{**row(at), "transactionTime": str(1_700_000_000_000 + 60_000 * at)} for at in heights]
        shown = rows[(page - 1) * limit : page * limit]
        return page_of(call, shown, page=str(page), totalPage=str(-(-len(rows) // limit)))

    for call in ("transactions", "address_transactions"):
        server.on(call, partial(serve, call))
    with server.client() as client:
        query: Any = client.address_transactions("0xa")
        follow = query.follow(start="beginning", poll=None, settle=2, undo=True)
        found = [record.height for batch in follow for record in batch]
        newest = 30
        follow = query.follow(start=follow.cursor, poll=None, settle=2, undo=True)
        if empty == 3:
            with pytest.raises(cf.ReorganizationError, match="the list is empty, and had records up to height 19"):
                list(follow)
        else:
            found += [record.height for batch in follow for record in batch]
            assert found == list(range(1, 30))
        assert not empty
