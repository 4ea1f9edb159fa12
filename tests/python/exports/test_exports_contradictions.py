"""Exports of lists whose pages contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from exports.test_exports_since import Chain

if TYPE_CHECKING:
    from pathlib import Path

    from strict_server import Request, Response, StrictServer


class Ties(Chain):
    """Lists four records of each height, two of which part of the service has in another order."""

    def record(self, number: int) -> dict[str, str]:
        return {**super().record(number), "height": str(number // 4)}

    def respond(self, request: Request) -> Response:
        swapped = self.rows.copy()
        if request.query["page"] == "2" and request.query["limit"] == "20":
            swapped[19:21] = reversed(swapped[19:21])
        rows, self.rows = self.rows, swapped
        response = super().respond(request)
        self.rows = rows
        return response


@pytest.mark.parametrize("settle", [None, 10])
def test_order_that_changes_between_pages_is_noticed_before_the_seam(
    server: StrictServer, tmp_path: Path, settle: int | None
) -> None:
    chain = Ties(server, "token_transfers", 101)
    client = server.client()
    first = client.token_transfers("0xa").to_parquet(tmp_path / "0", settle=settle)
    chain.grow(24)
    query = chain.query(client, page_size=20)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            query.to_parquet(tmp_path / "1", since=first, settle=settle)


def test_contradiction_is_not_forgotten_by_the_next_run(server: StrictServer, tmp_path: Path) -> None:
    chain = Ties(server, "token_transfers", 125)
    client = server.client()
    query = chain.query(client, page_size=20)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError, match="received twice") as caught:
            query.to_parquet(tmp_path)
        assert any("overwrite" in note for note in caught.value.__notes__)
    pages = query.pages()
    cursors = [page.cursor for page, _ in zip(pages, range(6), strict=False)]
    assert all('"repeats"' in cursor for cursor in cursors[1:])
    for cursor in cursors[1:]:
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            client.resume(cursor).collect()


def test_settled_series_of_a_list_that_begins_with_its_oldest_record_is_refused(
    server: StrictServer, tmp_path: Path
) -> None:
    chain = Chain(server, "blocks", 6)
    client = server.client()
    first = client.blocks(page_size=3).to_parquet(tmp_path / "0", settle=1)
    chain.grow(6)
    chain.rows.reverse()
    with pytest.raises(cf.ExportError, match="height 3 is listed below height 1; export without settle"):
        client.blocks(page_size=3).to_parquet(tmp_path / "1", since=first, settle=1)
