"""Rounds of followers that are discarded: their records, and their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import page_of, query_of, total_of

if TYPE_CHECKING:
    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

UNKNOWN_LENGTH = "No response confirms how many records the list has: some may be missing."


def row(number: int, height: int, fork: str = "") -> dict[str, str]:
    tx_id = f"0x{number:064x}"
    block = {"height": str(height), "blockHash": f"0x{fork}{height:x}", "transactionTime": str(10**12 + height * 1000)}
    return {"txId": tx_id, "txid": tx_id, **block}


class Service:
    """A list of one call, and a chain whose head is `head`; the list may change before any response."""

    def __init__(self, server: StrictServer, call: str, rows: list[dict[str, str]], head: int) -> None:
        self.call, self.rows, self.head, self.counts_pages = call, rows, head, True
        self.responses = 0
        self.shown: set[int] = set()
        if call != "transactions":
            server.on("transactions", lambda _: page_of("transactions", [row(self.head, self.head)]))
        server.on(call, self.respond)

    def before(self, response: int) -> None:
        """Change the list before that response, the first of which is 1."""

    def respond(self, request: Request) -> Response:
        self.responses += 1
        self.before(self.responses)
        page, limit = int(request.query.get("page", 1)), int(request.query.get("limit", 50))
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(self.rows) // limit))}
        members |= total_of(self.call, len(self.rows))
        shown = self.rows[(page - 1) * limit : page * limit]
        self.shown.update(int(each["height"]) for each in shown)
        if not self.counts_pages:
            del members["totalPage"]
            return page_of(self.call, shown, **members, totalPage="")
        return page_of(self.call, shown, **members)


def follow(client: cf.Client, call: str, *, undo: bool, **options: Any) -> tuple[list[Any], cf.Report]:
    """The records of a consumer at the end of a follower from the beginning."""
    options = {"start": "beginning", "poll": None, "settle": 2, "undo": undo, **options}
    follower: Any = query_of(client, call, page_size=3).follow(**options)
    records: list[Any] = []
    for event in follower:
        if isinstance(event, cf.Undo):
            records = [record for record in records if record.height <= event.after_height]
        else:
            records += event
    return records, follower.report


def reasons_of(report: cf.Report) -> list[str]:
    """The reasons apart from the age of the records, which an address always has."""
    return [reason for reason in report.reasons if "last 12 months" not in reason]


@pytest.mark.parametrize("undo", [False, True])
def test_reason_of_a_round_that_is_repeated_is_dropped(server: StrictServer, *, undo: bool) -> None:
    # Blocks that are not settled are replaced, one of which has records on two pages.
    def rows(fork: str) -> list[dict[str, str]]:
        newest = [row(100, 100, fork), *(row(200 + at, 99, fork) for at in range(4))]
        return newest + [row(at, at, fork if at == 98 else "") for at in range(98, 86, -1)]

    for replaced_before in range(1, 12):
        service = Service(server, "address_transactions", rows("a"), 100)

        def before(response: int, service: Service = service, replaced_before: int = replaced_before) -> None:
            if response == replaced_before:
                service.rows = rows("b")

        service.before = before  # type: ignore[method-assign]
        with server.client(concurrency=1) as client:
            records, report = follow(client, service.call, undo=undo, settle=6)
        highest = 99 if undo else 94
        expected = [int(each["height"]) for each in rows("b") if int(each["height"]) <= highest]
        assert sorted(record.height for record in records) == sorted(expected)
        assert reasons_of(report) == [], replaced_before


@pytest.mark.parametrize("call", ["address_transactions", "transactions", "large_transactions"])
def test_list_whose_length_is_unknown_is_reported(server: StrictServer, call: str) -> None:
    service = Service(server, call, [row(at, at) for at in range(100, 93, -1)], 110)
    with server.client() as client:
        assert reasons_of(follow(client, call, undo=False)[1]) == []
        service.counts_pages = False
        assert UNKNOWN_LENGTH in query_of(client, call, page_size=3).collect().report.reasons
        report = follow(client, call, undo=False)[1]
        assert not report.complete
        assert reasons_of(report) == [UNKNOWN_LENGTH]


def test_list_that_loses_records_when_its_length_is_requested_is_read_again(server: StrictServer) -> None:
    # A reorganization empties the newest block before three requests for the length, two of which are of one reading.
    service = Service(server, "large_transactions", [row(at, 100 - at // 2) for at in range(15)], 100)
    removals = [2, 2, 2]

    def respond(request: Request) -> Response:
        if request.query["limit"] == "1" and request.query["page"] == "1" and removals:
            service.rows = service.rows[removals.pop() :]
        return service.respond(request)

    server.on(service.call, respond)
    with server.client(concurrency=1) as client:
        followed, report = follow(client, service.call, undo=False, settle=4)
    assert [record.height for record in followed] == [100 - at // 2 for at in reversed(range(8, 15))]
    assert not removals
    assert report.complete, reasons_of(report)


@pytest.mark.parametrize("call", ["address_transactions", "transactions", "token_transfers"])
@pytest.mark.parametrize("undo", [False, True])
def test_list_that_is_empty_after_a_discarded_round_is_an_error(server: StrictServer, call: str, *, undo: bool) -> None:
    service = Service(server, call, [row(at, at) for at in range(100, 93, -1)], 110)

    def before(response: int) -> None:
        if response == 3:
            service.rows = []

    service.before = before  # type: ignore[method-assign]
    with server.client(concurrency=1) as client:
        with pytest.raises(cf.PaginationDriftError):
            follow(client, call, undo=undo)
        # The discarded rounds are forgotten with the error.
        assert follow(client, call, undo=undo)[0] == []


@pytest.mark.parametrize("records", [1, 2, 4])
def test_reorganization_that_removes_all_records_of_an_address_is_undone(server: StrictServer, records: int) -> None:
    call = "address_transactions"
    service = Service(server, call, [row(at, at) for at in range(100, 100 - records, -1)], 101)
    with server.client() as client:
        follower: Any = query_of(client, call).follow(start="beginning", poll=None, settle=6, undo=True)
        assert sum(len(batch) for batch in follower) == records
        service.rows, service.head = [], 102
        again = list(query_of(client, call).follow(start=follower.cursor, poll=None, settle=6, undo=True))
    assert [event.after_height for event in again if isinstance(event, cf.Undo)] == [100 - records]


@pytest.mark.parametrize("call", ["address_transactions", "token_transfers"])
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("whole", [{1}, {2}, {3}, {4}, {5}, {2, 3}, {3, 6}])
def test_due_record_that_a_response_of_a_round_showed_is_delivered(
    server: StrictServer, call: str, whole: set[int], *, undo: bool
) -> None:
    # One part of the service lacks the newest record of the list, and the head of the chain is higher.
    rows = [row(at, at) for at in [22, 20, *range(18, 5, -1)]]
    service = Service(server, call, rows, 23)

    def before(response: int) -> None:
        service.rows = rows if response in whole or response > 15 else rows[1:]

    service.before = before  # type: ignore[method-assign]
    with server.client(concurrency=1) as client:
        records, _ = follow(client, call, undo=undo, settle=1)
    heights = [record.height for record in records]
    assert heights == [*range(6, 19), 20, *([22] if 22 in service.shown else [])]
