"""The beginning of a list of tokens that move, a list that a cursor continues, and pages with too few tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
MOVED = "The order of the list changed while it was read"
SHRUNK = "The list has fewer records than were received of it"


def serve(server: StrictServer, pages_of: Callable[[int, int, int], list[int]], length: int = 20) -> None:
    """Serves tokens by their numbers, for the number of a request, a page and a limit."""
    count = iter(range(1_000))

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        numbers = pages_of(next(count), page, limit)
        rows = [{"tokenContractAddress": f"0x{number}", "token": f"T{number}"} for number in numbers]
        total = -(-length // limit) if rows else 0
        return page_of("tokens", rows, page=str(page), limit=str(limit), totalPage=str(total))

    server.on("tokens", respond)


def cut(numbers: list[int], page: int, limit: int) -> list[int]:
    return numbers[(page - 1) * limit : page * limit]


def numbers_of(records: Any) -> list[int]:
    return [int(record.token_contract_address, 16) for record in records]


@pytest.mark.parametrize("max_items", range(8, 20))
def test_token_that_moves_to_a_page_that_was_read_is_a_reason(server: StrictServer, max_items: int) -> None:
    before = list(range(20))
    before[3], before[9] = before[9], before[3]
    serve(server, lambda count, page, limit: cut(before if count == 0 else sorted(before), page, limit))
    with server.client(concurrency=1) as client:
        records = client.tokens(page_size=7, max_items=max_items).collect()
    assert [reason.startswith(MOVED) for reason in records.report.reasons] == [True]
    assert (records.report.moved, len(records)) == (1, max_items)


@pytest.mark.parametrize("max_items", range(1, 21))
def test_beginning_of_tokens_that_do_not_move_is_complete(server: StrictServer, max_items: int) -> None:
    serve(server, lambda _, page, limit: cut(list(range(20)), page, limit))
    with server.client() as client:
        records = client.tokens(page_size=7, max_items=max_items).collect()
    assert (len(records), records.report.complete, records.report.reasons) == (max_items, True, [])


@pytest.mark.parametrize("read", [1, 2])
def test_tokens_that_are_gone_when_a_cursor_continues_are_a_reason(server: StrictServer, read: int) -> None:
    gone: list[bool] = []
    serve(server, lambda _, page, limit: [] if gone else cut(list(range(20)), page, limit))
    with server.client() as client:
        pages = client.tokens(page_size=7).pages()
        cursor = [next(pages) for _ in range(read)][-1].cursor
        pages.close()
        gone.append(True)
        try:
            report = client.resume(cursor).collect().report
        except cf.PaginationDriftError:
            return
    assert [reason.startswith(SHRUNK) for reason in report.reasons] == [True]


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("max_items", [8, 13, 14, 15, 18, None])
def test_page_that_has_fewer_tokens_than_others_is_not_passed_over(
    server: StrictServer, max_items: int | None, page: int
) -> None:
    lost = 7 * page - 1

    def served(_: int, number: int, limit: int) -> list[int]:
        return [token for token in cut(list(range(20)), number, limit) if token != lost or limit == 1]

    serve(server, served)
    with server.client() as client:
        try:
            records = client.tokens(page_size=7, max_items=max_items).collect()
        except cf.PaginationDriftError:
            return
    is_right = max_items is not None and numbers_of(records) == list(range(max_items))
    assert is_right or not records.report.complete or lost not in range(max_items or 20)
