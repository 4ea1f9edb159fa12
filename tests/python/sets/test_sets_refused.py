"""Sets of which some lists cannot be read to their end."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from sets.test_sets import PAGE, Wallets
from strict_server import page_of

if TYPE_CHECKING:
    from strict_server import Request, Response, StrictServer


class Drifted(Wallets):
    """Lists of which some say that they have pages which are empty."""

    def __init__(self, lengths: list[int], drifted: frozenset[int], times: int = 10**9) -> None:
        super().__init__(lengths)
        self.left = dict.fromkeys((self.names[index] for index in drifted), times)

    def __call__(self, request: Request) -> Response:
        name, page, limit = (request.query[key] for key in ("address", "page", "limit"))
        is_beginning = page == "1" and int(limit) <= PAGE
        if not is_beginning and self.left.get(name, 0):
            self.left[name] -= 1
            return page_of("address_transactions", [], page=page, limit=limit, totalPage="9")
        return super().__call__(request)


def test_list_with_an_empty_page_is_named_and_the_others_kept(server: StrictServer) -> None:
    lengths = [4, 2, 9, *[1] * 60]
    wallets = Drifted(lengths, frozenset({2}))
    server.on("address_transactions", wallets)
    query = server.client(concurrency=2).address_transactions(wallets.names, page_size=PAGE)
    with pytest.warns(cf.IncompleteResultWarning):
        records = query.collect()
    drifted = wallets.names[2]
    found = Counter((record.queried[0], record.height) for record in records)
    assert set(found) == wallets.keys(lengths) - {(drifted, height) for height in range(1, 7)}
    assert set(found.values()) == {1}
    verdicts = records.report.by_argument
    assert [name for name, verdict in verdicts.items() if verdict["error"]] == [drifted]
    assert "is empty but the API reports more records" in verdicts[drifted]["error"]
    assert verdicts[drifted]["records"] == 3
    assert not verdicts[drifted]["complete"]
    assert sum(verdict["requests"] for verdict in verdicts.values()) == records.report.requests == len(server.requests)
    assert records.report.rereads == 3
    assert any(drifted in reason for reason in records.report.reasons)
    with pytest.raises(cf.IncompleteResultError) as caught:
        server.client(strict=True, concurrency=2).address_transactions(wallets.names, page_size=PAGE).collect()
    assert len(caught.value.partial or ()) == len(records)


def test_list_that_is_replaced_after_an_empty_page_is_named_with_what_was_returned(server: StrictServer) -> None:
    lengths = [4, 2, 9, *[1] * 60]

    class Replaced(Drifted):
        def __call__(self, request: Request) -> Response:
            response = super().__call__(request)
            if self.left[self.names[2]] == 0:
                self.lists[self.names[2]] = [self.record("0x99", height) for height in range(9, 0, -1)]
            return response

    wallets = Replaced(lengths, frozenset({2}), times=1)
    server.on("address_transactions", wallets)
    with pytest.warns(cf.IncompleteResultWarning):
        records = server.client(concurrency=2).address_transactions(wallets.names, page_size=PAGE).collect()
    replaced = wallets.names[2]
    assert [record.from_address for record in records if record.queried[0] == replaced] == [replaced] * 3
    # Once more from its position; what changed below it is not read again.
    assert records.report.rereads == 1
    verdict = records.report.by_argument[replaced]
    assert verdict["error"]
    assert verdict["records"] == 3


def test_list_whose_empty_pages_end_is_complete(server: StrictServer) -> None:
    lengths = [4, 2, 9, *[1] * 60]
    wallets = Drifted(lengths, frozenset({0, 2}), times=2)
    server.on("address_transactions", wallets)
    client = server.client(concurrency=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.IncompleteResultWarning)
        try:
            records = client.address_transactions(wallets.names, page_size=PAGE).collect()
            found = [*records]
        except cf.PaginationDriftError as error:
            # On a busy machine, all others may have ended before the second empty page, which then ends the run.
            records = client.resume(error.cursor or "").collect()
            found = [*(error.partial or ()), *records]
    assert Counter((record.queried[0], record.height) for record in found) == Counter(wallets.keys(lengths))
    assert not any(verdict["error"] for verdict in records.report.by_argument.values())


def test_empty_pages_of_all_lists_that_are_left_end_the_run_and_its_cursor_continues(server: StrictServer) -> None:
    lengths = [2, 7, 8, 9]
    wallets = Drifted(lengths, frozenset({1, 2, 3}))
    server.on("address_transactions", wallets)
    client = server.client()
    query = client.address_transactions(wallets.names, page_size=PAGE)
    with pytest.raises(cf.PaginationDriftError, match="is empty but the API") as caught:
        query.collect()
    wallets.left.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.IncompleteResultWarning)
        rest = client.resume(caught.value.cursor or "").collect()
    found = [(record.queried[0], record.height or 0) for record in [*(query.partial or ()), *rest]]
    assert Counter(found) == Counter(wallets.keys(lengths))


def test_lists_keep_what_is_in_flight_when_no_request_is_left(server: StrictServer) -> None:
    # More values than requests: each run has a request in flight for each of them when the next one is refused.
    wallets = Wallets([1] * 30)
    server.on("address_transactions", wallets)
    bounded = {"concurrency": 8, "max_requests": 8}
    query = server.client(**bounded).address_transactions(wallets.names, page_size=PAGE)
    keys = []
    for run in range(1, 4):
        with pytest.raises(cf.BudgetExceededError) as caught:
            query.collect()
        partial, cursor = caught.value.partial, caught.value.cursor
        assert partial is not None
        assert cursor is not None
        keys += [(record.from_address, record.height) for record in partial]
        assert (len(server.requests), len(keys)) == (8 * run, 8 * run)
        query = server.client(**bounded).resume(cursor)
    keys += [(record.from_address, record.height) for record in query.collect()]
    assert sorted(keys) == sorted(wallets.keys([1] * 30))


class FirstEmptied(Wallets):
    """Lists of which the first has no records, though it counts some."""

    def __call__(self, request: Request) -> Response:
        if request.query["address"] == self.names[0]:
            return page_of("address_transactions", [], page="1", limit=request.query["limit"], totalPage="3")
        return super().__call__(request)


@pytest.mark.parametrize("by_page", [False, True])
def test_list_that_is_read_before_all_others_and_has_an_empty_page_is_named(
    server: StrictServer,
    by_page: bool,  # noqa: FBT001
) -> None:
    lengths = [7, 4, 2, 9, *[1] * 10]
    wallets = FirstEmptied(lengths)
    server.on("address_transactions", wallets)
    query = server.client(concurrency=1).address_transactions(wallets.names, page_size=PAGE)
    with pytest.warns(cf.IncompleteResultWarning):
        records = [record for page in query.pages() for record in page.records] if by_page else list(query.collect())
    found = {(record.queried[0], record.height) for record in records}
    assert found == wallets.keys(lengths) - {(wallets.names[0], height) for height in range(1, 8)}
    assert len(found) == len(records)
    named = [name for name, verdict in query.report.by_argument.items() if verdict["error"]]
    assert named == [wallets.names[0]]
