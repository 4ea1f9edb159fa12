"""Page objects without records that count none: an empty list, or a throttle in disguise, as others of the run show."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from strict_server import Request, Response, StrictServer, page_of

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
A, B, C = (f"0x{letter * 40}" for letter in "abc")
REASON = "Some responses were empty; some services throttle so: records may be missing."
Place = tuple[str, int]


class Lists:
    """Serves lists in pages. Those of some places are empty, as often as is given, and count no records."""

    def __init__(self, server: StrictServer, call: str, lists: dict[str, int], emptied: dict[Place, int]) -> None:
        self.call, self.lists, self.emptied = call, lists, dict(emptied)
        self.asked: Counter[Place] = Counter()
        newest = {"txid": "0x1", "height": "2000", "blockHash": "0x2000", "transactionTime": "1700000000000"}
        server.on("transactions", page_of("transactions", [newest]))
        server.on(call, self.respond)

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows = []
        for number in range(self.lists[name], 0, -1):
            height = name if self.call == "transactions" else str(1000 + number)
            shown = {"txid": f"0x{name[-1]}{number}", "txId": f"0x{name[-1]}{number}", "height": height}
            rows.append({**shown, "blockHash": f"0x{height}", "from": name, "to": "0x1"})
        return rows

    def respond(self, request: Request) -> Response:
        query = request.query
        name = query.get("tokenContractAddress") or query.get("address") or query["height"]
        page, limit = int(query["page"]), int(query["limit"])
        self.asked[name, page] += 1
        rows = self.rows(name)
        if self.emptied.get((name, page), 0) > 0:
            self.emptied[name, page] -= 1
            rows = []
        shown = rows[(page - 1) * limit : page * limit]
        counts = {"totalPage": str(-(-len(rows) // limit))}
        if self.call == "token_transfers":
            counts["totalTransfer"] = str(len(rows))
        return page_of(self.call, shown, page=str(page), limit=str(limit), **counts)


def disproved(server: StrictServer, call: str = "token_transfers") -> Lists:
    """The first page of one list is emptied, and then the second page of the other one, which its first page counts."""
    return Lists(server, call, {A: 4, B: 4, C: 40}, {(A, 1): 1, (B, 2): 1})


def values_of(records: Any) -> list[str]:
    return sorted(record.queried[0] for record in records)


@pytest.mark.parametrize("max_retries", [0, 2])
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    ("call", "unique"),
    [("token_transfers", False), ("address_transactions", False), ("address_transactions", True)],
)
def test_list_of_a_set_that_counted_none_is_read_again_if_such_a_page_is_disproved(
    server: StrictServer, call: str, *, unique: bool, concurrency: int, max_retries: int
) -> None:
    lists = disproved(server, call)
    with server.client(max_retries=max_retries, concurrency=concurrency) as client:
        options: dict[str, Any] = {"unique": True} if unique else {}
        records = getattr(client, call)([A, B, C], page_size=2, **options).collect()
    assert values_of(records) == [A] * 4 + [B] * 4 + [C] * 40
    assert lists.asked[A, 1] >= 2
    assert REASON not in records.report.reasons


def test_list_is_read_again_if_the_request_for_the_length_of_another_one_is_disproved(server: StrictServer) -> None:
    lists = Lists(server, "address_transactions", {A: 3, B: 7}, {(A, 1): 1})
    is_due = [True]

    def respond(request: Request) -> Response:
        if request.query["address"] == B and request.query["limit"] == "1" and is_due:
            is_due.clear()
            lists.emptied[B, 1] = 1
        return lists.respond(request)

    server.on("address_transactions", respond)
    with server.client(max_retries=2, concurrency=1) as client:
        records = client.address_transactions([A, B], page_size=3).collect()
    assert not is_due
    assert values_of(records) == [A] * 3 + [B] * 7


def test_height_that_counted_none_is_a_reason_if_a_first_page_is_disproved(server: StrictServer) -> None:
    lists = Lists(server, "transactions", {"1001": 3, "1002": 3, "1003": 3}, {("1001", 1): 1})

    def respond(request: Request) -> Response:
        # The last look at the list of a block, all of whose records were received.
        if request.query.get("height") == "1003" and lists.asked["1003", 2] == 1 and lists.asked["1003", 1] == 1:
            lists.emptied["1003", 1] = 1
        return lists.respond(request)

    server.on("transactions", respond)
    with server.client(max_retries=2, concurrency=1) as client:
        records = client.transactions(start_height=1001, end_height=1003, page_size=2).collect()
    assert lists.asked["1003", 1] == 3
    assert (len(records), records.report.reasons) == (6, [REASON])


def test_list_that_counts_none_each_time_is_a_reason_if_such_a_page_was_disproved(server: StrictServer) -> None:
    Lists(server, "token_transfers", {A: 4, B: 4}, {(A, 1): 99, (B, 2): 1})
    with server.client(max_retries=2) as client:
        report = client.token_transfers([A, B], page_size=2).collect().report
    assert report.reasons == [REASON]
    assert [report.by_argument[name]["complete"] for name in (A, B)] == [False, True]


def test_honest_list_that_counts_none_is_requested_once(server: StrictServer) -> None:
    lists = Lists(server, "token_transfers", {A: 0, B: 4, C: 0}, {})
    with server.client(max_retries=2) as client:
        report = client.token_transfers([A, B, C], page_size=2).collect().report
    assert report.complete
    assert (lists.asked[A, 1], lists.asked[C, 1]) == (1, 1)


def test_height_of_a_range_that_counted_none_is_a_reason_if_such_a_page_is_disproved(server: StrictServer) -> None:
    Lists(server, "transactions", {"1": 1, "2": 3}, {("1", 1): 1, ("2", 2): 1})
    with server.client(max_retries=2, concurrency=1) as client:
        records = client.transactions(start_height=1, end_height=2, page_size=2).collect()
    assert len(records) == 3
    assert records.report.reasons == [REASON]


def test_later_query_repeats_a_page_that_counts_none_if_such_a_page_was_disproved(server: StrictServer) -> None:
    lists = Lists(server, "token_transfers", {A: 4, B: 4}, {(B, 2): 1})
    with server.client(max_retries=2) as client:
        assert client.token_transfers(B, page_size=2).collect().report.complete
        lists.emptied[A, 1] = 2
        records = client.token_transfers(A, page_size=2).collect()
    assert (len(records), records.report.complete) == (4, True)


def test_run_that_continues_a_set_reads_a_list_again_that_counted_none(server: StrictServer) -> None:
    Lists(server, "token_transfers", {A: 4, B: 8}, {(A, 1): 1, (B, 2): 1})
    with server.client(max_retries=2, concurrency=1) as client:
        query = client.token_transfers([A, B], page_size=2)
        taken = list(islice(query, 5))
        cursor = query.cursor
    assert cursor is not None
    with server.client(max_retries=2) as client:
        rest = client.resume(cursor).collect()
    assert values_of([*taken, *rest]) == [A] * 4 + [B] * 8


def test_followed_list_that_counted_none_is_a_reason_if_such_a_page_is_disproved(server: StrictServer) -> None:
    disproved(server)
    with server.client(max_retries=2, concurrency=1) as client:
        query = client.token_transfers([A, B], page_size=2)
        events = query.follow(start="beginning", settle=0, poll=None)
        followed = [record for event in events for record in event]
    assert values_of(followed) == [B] * 4
    assert REASON in events.report.reasons
