"""Lists that begin with the oldest record, of which the first page does not show the newest block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

HEIGHTS = range(1_000, 1_040)
START = 1_700_000_000_000
PER_BLOCK = 3
Row = dict[str, Any]


def time(height: int) -> int:
    """Time of a block in milliseconds."""
    return START + (height - HEIGHTS.start) * 12_000


def instant(milliseconds: int) -> pa.Scalar[Any]:
    return pa.scalar(milliseconds, pa.timestamp("ms", "UTC"))


def block(height: int) -> Row:
    return {"hash": f"0x{height}", "height": str(height), "blockTime": str(time(height))}


def transaction(height: int, index: int) -> Row:
    shown = {"txid": f"0x{height}{index}", "height": str(height), "blockHash": f"0x{height}"}
    return {**shown, "transactionTime": str(time(height))}


BLOCKS = [block(height) for height in HEIGHTS]
TRANSACTIONS = [transaction(height, index) for height in HEIGHTS for index in range(PER_BLOCK)]


def serve(server: StrictServer, *, order: Callable[[list[Row]], list[Row]]) -> None:
    for call, rows in (("blocks", BLOCKS), ("transactions", TRANSACTIONS)):

        def respond(request: Request, call: str = call, rows: list[Row] = rows) -> Response:
            page, limit = int(request.query["page"]), int(request.query["limit"])
            listed = [row for row in order(rows) if row["height"] == request.query.get("height", row["height"])]
            members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(listed) // limit))}
            return page_of(call, listed[(page - 1) * limit : page * limit], **members)

        server.on(call, respond)


def collected(query: Callable[[cf.Client], cf.Query[Any]]) -> Callable[[cf.Client], int]:
    def run(client: cf.Client) -> int:
        records = query(client).collect()
        assert records.report.complete
        return len(records)

    return run


def filtered(query: Callable[[cf.Client], cf.Query[Any]], accepts: pc.Expression) -> Callable[[cf.Client], int]:
    def run(client: cf.Client) -> int:
        dataset = query(client).dataset()
        rows = dataset.to_table(filter=accepts).num_rows
        assert dataset.report.complete
        return int(rows)

    return run


def blocks(client: cf.Client) -> cf.Query[Any]:
    return client.blocks(page_size=10)


def transactions(client: cf.Client) -> cf.Query[Any]:
    return client.transactions(page_size=10)


CALLS: dict[str, tuple[Callable[[cf.Client], int | None], int]] = {
    "start_height": (collected(lambda client: client.transactions(start_height=1_030)), 30),
    "start_time": (collected(lambda client: client.transactions(start_time=time(1_030))), 30),
    "times": (collected(lambda client: client.transactions(start_time=time(1_010), end_time=time(1_035))), 78),
    "height_at": (lambda client: client.height_at(time(1_035)), 1_035),
    "blocks from a height": (filtered(blocks, pc.field("height") >= 1_030), 10),
    "blocks from a height of the first page": (filtered(blocks, pc.field("height") >= 1_005), 35),
    "blocks to a height": (filtered(blocks, pc.field("height") <= 1_005), 6),
    "blocks from a time": (filtered(blocks, pc.field("block_time") >= instant(time(1_030))), 10),
    "one block": (filtered(blocks, pc.field("height") == 1_039), 1),
    "transactions from a height": (filtered(transactions, pc.field("height") >= 1_030), 30),
    "transactions from a height of the first page": (filtered(transactions, pc.field("height") >= 1_001), 117),
}


@pytest.mark.parametrize("call", CALLS)
def test_list_in_ascending_order_is_read_to_its_end_or_refused(server: StrictServer, call: str) -> None:
    serve(server, order=list)
    run, expected = CALLS[call]
    with server.client() as client:
        try:
            assert run(client) == expected
        except cf.PaginationDriftError as error:
            assert "newest" in str(error)  # noqa: PT017 - one of two outcomes


@pytest.mark.parametrize("call", CALLS)
def test_list_in_descending_order_is_read(server: StrictServer, call: str) -> None:
    serve(server, order=lambda rows: rows[::-1])
    run, expected = CALLS[call]
    with server.client() as client:
        assert run(client) == expected


def test_error_names_the_heights_of_the_first_page(server: StrictServer) -> None:
    serve(server, order=list)
    with server.client() as client, pytest.raises(cf.PaginationDriftError) as caught:
        client.transactions(start_height=1_030).collect()
    assert str(caught.value).startswith(
        "transactions: the newest block is looked for on the first page, where height 1016 comes below 1000: "
        "the list changed, or is in another order"
    )


def test_only_page_in_ascending_order_shows_the_newest_block(server: StrictServer) -> None:
    serve(server, order=lambda rows: rows[-40:])
    with server.client() as client:
        assert len(client.transactions(start_height=1_035).collect()) == 15


def test_estimate_of_heights_in_an_ascending_list_is_not_exact(server: StrictServer) -> None:
    serve(server, order=list)
    with server.client() as client:
        try:
            estimate = client.transactions(start_height=1_030, end_height=1_200).estimate()
        except cf.PaginationDriftError:
            return
        assert not estimate.is_exact or estimate.records == 10 * PER_BLOCK
