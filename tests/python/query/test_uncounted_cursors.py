"""Cursors of lists whose pages are not counted: nothing but an empty page shows where such a list ends."""

from __future__ import annotations

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


def serve(server: StrictServer, length: int, pages: str | None = None, smallest: int = 1, largest: int = 100) -> None:
    """Records of as many heights, from 1,000 down, in pages of the requested size between two limits."""
    records = [
        {"txid": f"0x{index:x}", "blockHash": f"0xb{index:x}", "height": str(1_000 - index)} for index in range(length)
    ]

    def respond(request: Request) -> Response:
        number, asked = int(request.query["page"]), int(request.query["limit"])
        size = min(max(asked, smallest), largest)
        shown = records[(number - 1) * size : number * size]
        return page_of("large_transactions", shown, totalPage=pages, limit=str(asked))

    server.on("large_transactions", respond)


@pytest.mark.parametrize("pages", [None, "0"])
@pytest.mark.parametrize("length", [40, 51])
def test_each_cursor_resumes_with_the_next_record(server: StrictServer, length: int, pages: str | None) -> None:
    serve(server, length, pages)
    client = server.client()
    query = client.large_transactions(page_size=5)
    for taken, _ in enumerate(query, start=1):
        rest = client.resume(query.cursor).collect()
        assert [record.height for record in rest] == [1_000 - index for index in range(taken, length)]
        assert rest.report.reasons, "the length is not known"


@pytest.mark.parametrize("page_size", [4, 5])
@pytest.mark.parametrize(("smallest", "largest"), [(5, 5), (5, 100), (1, 3)])
def test_list_in_pages_of_other_sizes_is_right_or_not_complete(
    server: StrictServer, smallest: int, largest: int, page_size: int
) -> None:
    """An empty page of a size that the service does not serve does not show the end."""
    serve(server, 12, smallest=smallest, largest=largest)
    client = server.client(concurrency=1)
    query = client.large_transactions(page_size=page_size)
    ends = set()
    for taken, _ in enumerate(query, start=1):
        try:
            rest = client.resume(query.cursor).collect()
        except cf.PaginationDriftError:
            continue
        is_right = [record.height for record in rest] == [1_000 - index for index in range(taken, 12)]
        assert is_right or not rest.report.complete
        ends.add(is_right)
    assert True in ends
