"""Filters at services whose ranges include their ends or not, where the API's document does not say."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

height, column = pc.field("height"), pc.field("amount")
STEP = Decimal("0.000000000000000001")


def amount(value: str | Decimal) -> pa.Scalar[Any]:
    return pa.scalar(Decimal(value), pa.decimal128(38, 18))


def ranged(rows: list[dict[str, str]], member: str, ends: tuple[str, str], *, inclusive: bool) -> Callable[..., Any]:
    """A list whose range includes its ends, or not."""

    def respond(request: Request) -> Response:
        low, high = (Decimal(request.query[end]) if end in request.query else None for end in ends)

        def is_within(row: dict[str, str]) -> bool:
            value = Decimal(row[member])
            above = low is None or value > low or (inclusive and value == low)
            return above and (high is None or value < high or (inclusive and value == high))

        found = [row for row in rows if is_within(row)]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(found) // limit))}
        part = found[(page - 1) * limit : page * limit]
        return page_of("token_transfers", part, totalTransfer=str(len(found)), **members)

    return respond


AMOUNTS = {
    "<=": column <= amount("7"),
    "<": column < amount("7"),
    ">=": column >= amount("7"),
    ">": column > amount("7"),
    "==": column == amount("7"),
    "from 0": (column >= amount("0")) & (column <= amount("1")),
    "between": (column >= amount("3")) & (column <= amount(3 + STEP)),
    "or": (column == amount("2")) | (column == amount("9")) | (column >= amount("12")),
}
HEIGHTS = {
    "<=": height <= 7,
    "<": height < 7,
    ">=": height >= 7,
    "==": height == 7,
    "from 0": (height >= 0) & (height < 2),
    "far apart": (height == 3) | (height == 400) | (height == 800),
}


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("name", AMOUNTS)
def test_filter_on_amounts_loses_no_record_at_an_end(server: StrictServer, name: str, *, inclusive: bool) -> None:
    amounts = [Decimal(number) + part for number in range(15) for part in (0, STEP)]
    rows = [{"txid": f"0x{index:x}", "amount": format(each, "f")} for index, each in enumerate(amounts)]
    server.on("token_transfers", ranged(rows, "amount", ("minAmount", "maxAmount"), inclusive=inclusive))
    with server.client() as client:
        query = client.token_transfers("0xa")
        wanted = query.to_arrow().filter(AMOUNTS[name])
        assert query.dataset().to_table(filter=AMOUNTS[name]) == wanted
    assert wanted.num_rows > 0


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("name", HEIGHTS)
def test_filter_on_heights_loses_no_record_at_an_end(server: StrictServer, name: str, *, inclusive: bool) -> None:
    rows = [{"txId": f"0x{each:x}", "height": str(each)} for each in range(900, -1, -1)]
    ends = ("startBlockHeight", "endBlockHeight")
    # The age of the lowest block shows whether the list reaches back to it.
    server.on("transactions", page_of("transactions", []))
    server.on("address_transactions", ranged(rows, "height", ends, inclusive=inclusive))
    with server.client() as client:
        query = client.address_transactions("0xa")
        wanted = query.to_arrow().filter(HEIGHTS[name]).sort_by("height")
        assert query.dataset().to_table(filter=HEIGHTS[name]).sort_by("height") == wanted
    assert wanted.num_rows > 0


def test_arguments_of_the_call_are_sent_as_given(server: StrictServer) -> None:
    rows = [{"txid": f"0x{number:x}", "amount": str(number)} for number in range(15)]
    server.on("token_transfers", ranged(rows, "amount", ("minAmount", "maxAmount"), inclusive=True))
    with server.client() as client:
        dataset = client.token_transfers("0xa", min_amount=5, max_amount=9).dataset()
        found = dataset.to_table(filter=(column <= amount("7")) & (column >= amount("2")))
    assert found.column("amount").to_pylist() == [5, 6, 7]
    sent = server.requests[0].query
    assert (Decimal(sent["minAmount"]), Decimal(sent["maxAmount"])) == (Decimal(5), 7 + STEP)


RANGED_LISTS: dict[str, tuple[Callable[[cf.Client, Decimal], cf.Query[Any]], tuple[str, str], bool]] = {
    "token_transfers": (
        lambda client, least: client.token_transfers("0xa", min_amount=least, max_amount=least + 3),
        ("minAmount", "maxAmount"),
        True,
    ),
    "large_transactions": (lambda client, least: client.large_transactions(min_amount=least), ("type", ""), False),
}


@pytest.mark.parametrize("beyond", [0, STEP, STEP / 2])
@pytest.mark.parametrize("offset", [-1, -STEP, 0, STEP, 1])
@pytest.mark.parametrize("call", RANGED_LISTS)
def test_filter_near_an_end_that_was_passed_does_not_widen_it(
    server: StrictServer, call: str, beyond: Decimal, offset: Decimal
) -> None:
    query_of, ends, inclusive = RANGED_LISTS[call]
    amounts = [Decimal(number) + part for number in range(1_000, 1_015) for part in (0, STEP)]
    rows = [
        {"txid": f"0x{index:x}", "txId": f"0x{index:x}", "amount": format(each, "f")}
        for index, each in enumerate(amounts)
    ]
    server.on(call, ranged(rows, "amount", ends, inclusive=inclusive))
    least = 1_007 + beyond
    with server.client() as client:
        query = query_of(client, least)
        for wanted in (column >= amount(1_007 + offset), column <= amount(1_010 + offset)):
            assert query.dataset().to_table(filter=wanted) == query.to_arrow().filter(wanted)
    assert all(Decimal(request.query[ends[0]]) >= least for request in server.requests)


@pytest.mark.parametrize("text", ["0xa,0xb", " 0xa", "0xa\u200b"])
def test_text_that_is_no_address_is_compared_locally(server: StrictServer, text: str) -> None:
    rows = [{"id": "0x1", "from": text}, {"id": "0x2", "from": "0xa"}]
    server.on("cross_chain_transactions", page_of("cross_chain_transactions", rows, total="2", limit="100"))
    with server.client() as client:
        dataset = client.cross_chain_transactions().dataset()
        assert dataset.to_table(filter=pc.field("from_address") == text).column("id").to_pylist() == ["0x1"]
        assert dataset.to_table(filter=pc.field("id") == text).num_rows == 0
    assert all("from" not in request.query and "txid" not in request.query for request in server.requests)
