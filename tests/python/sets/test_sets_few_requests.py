"""Sets that are read in runs of a few requests: each run continues after the lists that the one before has read."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

ADDRESSES = [f"0x{number:040x}" for number in range(1, 13)]


@pytest.fixture
def lists(server: StrictServer) -> dict[str, list[int]]:
    """Heights of the records of each address. The lists of all others are empty."""
    heights: dict[str, list[int]] = {}

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        address = request.query["address"]
        found = heights.get(address, [])
        sides = {"from": ADDRESSES[0], "to": max(address, ADDRESSES[1])}
        rows = [
            {"txId": f"0x{height}", "blockHash": f"0xb{height}", "height": str(height), **sides}
            for height in found[(page - 1) * limit : page * limit]
        ]
        pages = str(-(-len(found) // limit))
        return page_of("address_transactions", rows, page=str(page), limit=str(limit), totalPage=pages)

    server.on("address_transactions", respond)
    return heights


def collected(query: cf.Query[Any]) -> list[Any]:
    try:
        return list(query.collect())
    except cf.BudgetExceededError:
        return list(query.partial or [])


def iterated(query: cf.Query[Any]) -> list[Any]:
    return list(returned_by(iter(query)))


def paged(query: cf.Query[Any]) -> list[Any]:
    return [record for page in returned_by(query.pages()) for record in page.records]


def returned_by(iterator: Iterator[Any]) -> Iterator[Any]:
    with suppress(cf.BudgetExceededError):
        yield from iterator


def in_runs_of_three(server: StrictServer, read: Callable[..., list[Any]], **arguments: Any) -> list[int]:
    """The heights of the records of runs that send up to three requests each."""
    client = server.client(max_requests=3, concurrency=1)
    query, heights = client.address_transactions(**arguments), []
    for _ in range(6):
        heights += [record.height for record in read(query)]
        if query.last_error is None:
            return heights
        query = server.client(max_requests=3, concurrency=1).resume(query.cursor)
    raise AssertionError(query.cursor)


@pytest.mark.parametrize("read", [collected, iterated, paged])
def test_runs_continue_after_lists_without_records(
    server: StrictServer, lists: dict[str, list[int]], read: Callable[..., list[Any]]
) -> None:
    lists[ADDRESSES[9]] = [9]
    assert in_runs_of_three(server, read, address=ADDRESSES) == [9]
    assert len(server.requests) == len(ADDRESSES), "no list is requested again"


@pytest.mark.parametrize("read", [collected, iterated, paged])
def test_runs_continue_after_a_page_that_another_list_returned(
    server: StrictServer, lists: dict[str, list[int]], read: Callable[..., list[Any]]
) -> None:
    # The first page of the second list comes with the third request of its run.
    lists.update({ADDRESSES[0]: [9, 8], ADDRESSES[1]: [9, 8, 7]})
    assert in_runs_of_three(server, read, address=ADDRESSES[:2], page_size=2, unique=True) == [9, 8, 7]
