"""Records that one call of a series received, and that a later response of the same call lacks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import chainframe.exports
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SETTLE = 12
LOWEST = 100
LOST = 120
REFUSED = Response(status=400, body=b'{"code": "50014", "msg": "", "data": []}')


def row(height: int, number: int, fork: str = "") -> dict[str, str]:
    block = {"height": str(height), "blockHash": f"0x{fork}{height:060x}", "transactionTime": str(10**12 + height)}
    return {"txid": f"0x{fork}{height:058x}{number}", "state": "success", **block}


class Chain:
    """Transactions of a chain, two in each block, some of which a part of the service loses or replaces."""

    def __init__(self) -> None:
        self.newest = 130
        self.failing: set[int] = set()
        self.replaced: dict[int, list[dict[str, str]]] = {}
        """Rows of the second response for a height."""
        self.shown: set[int] = set()

    def __call__(self, request: Request) -> Response:
        page, limit, height = int(request.query["page"]), int(request.query["limit"]), request.query.get("height")
        if height is None:
            rows = rows_of(range(self.newest, LOWEST - 1, -1))
        elif int(height) in self.failing:
            return REFUSED
        else:
            rows = rows_of([int(height)])
            if int(height) in self.shown:
                rows = self.replaced.pop(int(height), rows)
            self.shown.add(int(height))
        shown = rows[(page - 1) * limit : page * limit]
        pages = str(-(-len(rows) // limit))
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=pages)


def rows_of(heights: Iterable[int]) -> list[dict[str, str]]:
    return [row(height, number) for height in heights for number in (1, 0)]


def export(client: cf.Client, path: Path, *, is_awaited: bool = False) -> chainframe.exports.Export:
    query = client.transactions(start_height=LOWEST)
    if is_awaited:
        return asyncio.run(query.to_parquet_series_async(path, settle=SETTLE))
    return query.to_parquet_series(path, settle=SETTLE)


def heights_of(path: Path) -> list[Any]:
    return sorted(chainframe.exports.read(path).to_table()["height"].to_pylist())


@pytest.fixture
def interrupted(server: StrictServer, tmp_path: Path) -> Chain:
    """A chain that has grown since its export was interrupted."""
    chain = Chain()
    server.on("transactions", chain)
    chain.failing = {125}
    with server.client(max_retries=0) as client, pytest.raises(cf.BadRequestError):
        export(client, tmp_path)
    chain.failing = set()
    chain.newest += 60
    chain.shown.clear()
    return chain


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("lost", [[], [row(LOST, 0)]], ids=["all", "one"])
def test_records_that_the_finished_export_received_and_the_next_one_lacks_are_an_error(
    server: StrictServer, tmp_path: Path, interrupted: Chain, lost: list[dict[str, str]], *, is_awaited: bool
) -> None:
    interrupted.replaced = {LOST: lost}
    lacks = r"export-000001: height 120 lacks records that the same call received before: .*; run the export again$"
    with server.client() as client:
        with pytest.raises(cf.ExportError, match=lacks) as raised:
            export(client, tmp_path, is_awaited=is_awaited)
        assert raised.value.retryable
        assert export(client, tmp_path, is_awaited=is_awaited).complete
    highest = interrupted.newest - SETTLE
    assert heights_of(tmp_path) == sorted([*range(LOWEST, highest + 1)] * 2)


def test_records_of_a_block_that_was_replaced_meanwhile_are_not_missed(
    server: StrictServer, tmp_path: Path, interrupted: Chain
) -> None:
    interrupted.replaced = {LOST: [row(LOST, 0, "f")]}
    with server.client() as client:
        assert export(client, tmp_path).complete
    assert heights_of(tmp_path).count(LOST) == 1


def test_list_that_lacks_records_that_the_finished_export_received_is_an_error(
    server: StrictServer, tmp_path: Path
) -> None:
    lost: set[int] = set()
    is_refusing = True

    def respond(request: Request) -> Response:
        if is_refusing:
            return REFUSED
        # The list grows once the interrupted export is finished.
        is_next = (tmp_path / "export-000001").exists()
        newest = 190 if is_next else 130
        rows = rows_of(range(newest, LOWEST - 1, -1))
        rows = [each for each in rows if not is_next or int(each["height"]) not in lost]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        shown = rows[(page - 1) * limit : page * limit]
        pages = str(-(-len(rows) // limit))
        return page_of("large_transactions", shown, limit=str(limit), page=str(page), totalPage=pages)

    server.on("large_transactions", respond)
    with server.client(max_retries=0) as client:
        query = client.large_transactions(min_amount=100)
        with pytest.raises(cf.BadRequestError):
            query.to_parquet_series(tmp_path, settle=SETTLE)
        is_refusing = False
        lost.add(LOST)
        with pytest.raises(cf.ExportError, match="height 120 lacks records that the same call received before"):
            query.to_parquet_series(tmp_path, settle=SETTLE)
        lost.clear()
        assert query.to_parquet_series(tmp_path, settle=SETTLE).complete
    assert heights_of(tmp_path) == sorted([*range(LOWEST, 190 - SETTLE + 1)] * 2)
