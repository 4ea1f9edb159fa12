"""The beginning of a chain: no height of a range is requested below the last page of the list that shows the blocks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Row = dict[str, str]
    # The response to a page of a size, without the number of pages.
    Pages = Callable[[list[Row], int, int], dict[str, Any]]

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

HEIGHTS = range(1_001, 1_181)
BEFORE = datetime(2001, 1, 1, tzinfo=UTC)


def cut(rows: list[Row], number: int, size: int) -> dict[str, Any]:
    """The page that was requested."""
    return {"records": rows[(number - 1) * size : number * size], "page": str(number), "limit": str(size)}


def serve(server: StrictServer, heights: range, pages: Pages, **counts: str | None) -> None:
    """One transaction of each height, newest first, in these pages."""
    rows = [
        {"txid": f"0x{height}", "height": str(height), "transactionTime": str(10**12 + 1_000 * height)}
        for height in reversed(heights)
    ]

    def respond(request: Request) -> Response:
        if height := request.query.get("height"):
            return page_of("transactions", [row for row in rows if row["height"] == height])
        number, size = int(request.query["page"]), int(request.query["limit"])
        members: dict[str, Any] = {"totalPage": str(-(-len(rows) // size)), **pages(rows, number, size), **counts}
        return page_of("transactions", **members)

    server.on("transactions", respond)


def read(server: StrictServer, **arguments: Any) -> cf.Report:
    """Read all heights, and return the report."""
    with server.client() as client:
        records = client.transactions(**arguments).collect()
    assert [record.height for record in records] == [*HEIGHTS]
    return records.report


@pytest.mark.parametrize("has_number", [False, True])
@pytest.mark.parametrize("last", [1, 2, 4])
def test_another_page_in_place_of_the_last_one_is_not_the_beginning(
    server: StrictServer, last: int, *, has_number: bool
) -> None:
    """A service ignores the page number, or repeats a page for each that is deeper."""

    def pages(rows: list[Row], number: int, size: int) -> dict[str, Any]:
        shown = cut(rows, min(number, last), size)
        return shown if has_number else {**shown, "page": None}

    serve(server, HEIGHTS, pages)
    assert read(server, start_time=BEFORE).complete == (last == 4)


def test_last_page_of_a_service_with_smaller_pages_is_not_the_beginning(server: StrictServer) -> None:
    serve(server, HEIGHTS, lambda rows, number, size: cut(rows, number, min(size, 20)), totalPage="4")
    assert not read(server, start_time=BEFORE).complete


@pytest.mark.parametrize("pages", ["0", None])
def test_list_that_does_not_count_its_pages_does_not_show_the_beginning(
    server: StrictServer, pages: str | None
) -> None:
    serve(server, HEIGHTS, cut, totalPage=pages)
    assert not read(server, start_time=BEFORE).complete


def test_height_below_a_full_last_page_is_requested_once(server: StrictServer) -> None:
    serve(server, HEIGHTS[30:], cut)
    with server.client() as client:
        assert client.transactions(start_time=BEFORE).collect().report.complete
    assert sum(request.query.get("height") == str(HEIGHTS[30] - 1) for request in server.requests) == 1


def test_last_page_that_is_gone_is_no_error(server: StrictServer) -> None:
    """The list has become shorter. Only the requests for heights without blocks would have been saved."""
    heights = range(1_001, 2_202)

    def pages(rows: list[Row], number: int, size: int) -> dict[str, Any]:
        shown = cut(rows, number, size)
        return {**shown, "records": [], "totalPage": "24"} if number == 25 else shown

    serve(server, heights, pages)
    with server.client() as client:
        records = client.transactions(start_height=1_000).collect()
    assert len(records) == len(heights)


@pytest.mark.parametrize("call", ["transactions", "address_transactions"])
def test_heights_of_another_chain_are_an_error(server: StrictServer, call: str) -> None:
    serve(server, HEIGHTS, cut, chainShortName="OTHER")
    arguments = {"address": "0x1"} if call == "address_transactions" else {}
    with server.client() as client, pytest.raises(cf.ResponseFormatError, match=r"chainShortName.*OTHER"):
        getattr(client, call)(start_time=BEFORE, **arguments).collect()
