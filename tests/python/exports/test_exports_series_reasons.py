"""A series of which one export is incomplete: the whole has its reason, whatever the exports after it are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chainframe.exports import Export
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

SETTLE = 3


class Blocks:
    """Blocks up to a height, of which one may be lacking."""

    def __init__(self, server: StrictServer) -> None:
        self.newest, self.lacking = 10, 0
        server.on("blocks", self)

    def __call__(self, request: Request) -> Response:
        heights = [height for height in range(self.newest, 0, -1) if height != self.lacking]
        limit, page = int(request.query["limit"]), int(request.query["page"])
        rows = [{"height": str(height), "hash": f"0x{height}"} for height in heights[(page - 1) * limit : page * limit]]
        return page_of("blocks", rows, page=str(page), limit=str(limit), totalPage=str(-(-len(heights) // limit)))


def test_opened_series_has_the_reasons_of_all_its_exports(server: StrictServer, tmp_path: Path) -> None:
    blocks, series = Blocks(server), tmp_path / "s"
    opened = []
    with server.client() as client:
        for blocks.newest, blocks.lacking in ((10, 2), (20, 0), (30, 0)):
            client.blocks().to_parquet_series(series, settle=SETTLE)
            opened.append(Export.open(series))
    assert [export.path.name for export in opened] == [f"export-{number:06}" for number in range(3)]
    assert [export.complete for export in opened] == [False] * 3
    assert [len(export.report.reasons) for export in opened] == [1] * 3
    assert "gaps" in opened[-1].report.reasons[0]
    # Each by itself.
    assert [Export.open(export.path).complete for export in opened] == [False, True, True]


def test_interrupted_export_of_a_series_is_not_waited_for(server: StrictServer, tmp_path: Path) -> None:
    blocks, series = Blocks(server), tmp_path / "s"
    with server.client() as client:
        blocks.lacking = 2
        client.blocks().to_parquet_series(series, settle=SETTLE)
        blocks.newest, blocks.lacking = 20, 0
        export = client.blocks().to_parquet_series(series, settle=SETTLE)
    # The next one has just begun.
    (series / "export-000002").mkdir()
    assert export.complete
    opened = Export.open(series)
    assert (opened.path, opened.complete) == (export.path, False)
