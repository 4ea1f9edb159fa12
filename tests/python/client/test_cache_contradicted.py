"""Records that were kept, and are not returned any more although the chain was not reorganized, are missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

Row = dict[str, Any]
MISSED = "of this result that the API does not return any more"


def row(height: int, number: int = 0, fork: str = "") -> Row:
    block = {"height": str(height), "blockHash": f"0xb{height}{fork}", "transactionTime": str(10**12 + height)}
    return {"txid": f"0x{height}{number}", "state": "success", **block}


class Chain:
    """Transactions of a chain, two in each block."""

    def __init__(self) -> None:
        self.rows = [row(height, number) for height in range(60, 0, -1) for number in (0, 1)]

    def __call__(self, request: Request) -> Response:
        height, page, limit = request.query.get("height"), int(request.query["page"]), int(request.query["limit"])
        rows = [each for each in self.rows if height in {None, each["height"]}]
        shown = rows[(page - 1) * limit : page * limit]
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=str(-(-len(rows) // limit)))

    def lose(self, *lost: str) -> None:
        self.rows = [each for each in self.rows if each["txid"] not in lost]

    def replace(self, above: int) -> None:
        """Replace all blocks above a height, each with its first transaction alone."""
        kept = [each for each in self.rows if int(each["height"]) <= above]
        self.rows = [row(height, fork="'") for height in range(60, above, -1)] + kept


QUERIES: dict[str, Row] = {"list": {}, "range": {"start_height": 30, "end_height": 40}, "block": {"height": 30}}


def read(server: StrictServer, path: Path, arguments: Row) -> cf.Records[Any]:
    with server.client(cache=cf.Cache(path, settle=10), max_retries=1) as client:
        return client.transactions(**arguments).collect()


@pytest.mark.parametrize("kind", QUERIES)
def test_records_that_were_kept_and_are_lost_without_a_reorganization_are_a_reason(
    server: StrictServer, tmp_path: Path, kind: str
) -> None:
    chain = Chain()
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]).report.complete
    # The block that shows that the chain is the same has gone.
    chain.lose("0x300", "0x500", "0x501", "0x401", "0x400", "0x301" if kind == "block" else "")
    records = read(server, tmp_path, QUERIES[kind])
    assert any(MISSED in reason for reason in records.report.reasons), (kind, records.report)
    assert not records.report.complete
    # Nothing is kept any more that would show it.
    assert not any(MISSED in reason for reason in read(server, tmp_path, QUERIES[kind]).report.reasons)


@pytest.mark.parametrize("kind", QUERIES)
def test_records_of_replaced_blocks_are_not_missed(server: StrictServer, tmp_path: Path, kind: str) -> None:
    chain = Chain()
    server.on("transactions", chain)
    assert read(server, tmp_path, QUERIES[kind]).report.complete
    chain.replace(above=25)
    records = read(server, tmp_path, QUERIES[kind])
    assert records.report.complete, records.report.reasons
    assert len(records) == {"list": 85, "range": 11, "block": 1}[kind]
