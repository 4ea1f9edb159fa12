"""Followers of lists whose responses contradict themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import page_of

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
