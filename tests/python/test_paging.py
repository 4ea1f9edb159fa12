"""Services whose pages do not add up: the result is right, or an error says why; nothing is read for ever."""

from __future__ import annotations

import pytest

import chainframe as cf
from strict_server import Answer, Request, StrictServer, page_of


def heights(first: int, count: int) -> list[dict[str, str]]:
    return [{"height": str(height), "hash": f"0x{height:x}"} for height in range(first, first - count, -1)]


@pytest.mark.parametrize("total_page", ["40", "0", None])
def test_a_page_that_repeats_is_refused(server: StrictServer, total_page: str | None) -> None:
    def same(_: Request) -> Answer:
        return page_of("blocks", heights(1_000, 100), limit="100", totalPage=total_page)

    server.on("blocks", same)
    query = server.client().blocks()
    with pytest.raises(cf.PaginationDriftError, match="page 2 is the same as the page before it"):
        query.collect()
    assert len(query.partial) == 100
    assert not query.report.complete


def test_going_on_after_a_refused_page_does_not_make_it_complete(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 2), limit="2", totalPage="3"))
    pages = iter(server.client().blocks(page_size=2).pages())
    next(pages)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError):
            next(pages)


def test_twins_on_pages_of_one_are_both_kept(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 1), limit="1", totalPage="2"))
    assert len(server.client().blocks(page_size=1).collect()) == 2


def test_a_count_that_is_not_met_is_said(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 4), limit="100", totalPage="1", total="5"))
    with pytest.warns(cf.IncompleteResultWarning, match="counted 5 records and returned 4"):
        records = server.client().blocks().collect()
    assert not records.report.complete
    with pytest.raises(cf.IncompleteResultError) as caught:
        server.client(strict=True).blocks().collect()
    assert caught.value.partial == records
    assert caught.value.report is not None
    assert caught.value.report.reasons == records.report.reasons


def test_a_change_under_the_reading_hand_is_said(server: StrictServer) -> None:
    def growing(request: Request) -> Answer:
        page = int(request.query["page"])
        return page_of("blocks", heights(300 - 100 * page, 100), limit="100", totalPage="2", total=str(199 + page))

    server.on("blocks", growing)
    with pytest.warns(cf.IncompleteResultWarning, match="changed while it was read"):
        server.client().blocks().collect()
