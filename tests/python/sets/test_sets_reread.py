"""Lists of a set that are begun again: they are compared with what the first reading received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
Row = dict[str, str]
WALLETS = [f"0x{index:040x}" for index in range(3)]


def rows_of_wallet(name: str, length: int) -> list[Row]:
    wallet = {"from": name, "to": "0xfe"}
    numbers = range(length)
    return [{"txId": f"{name}{n}", "height": str(90 - n), "blockHash": f"0xb{90 - n}", **wallet} for n in numbers]


def page(rows: list[Row], request: Request, **members: str) -> Response:
    number, limit = int(request.query["page"]), int(request.query["limit"])
    counts = {"page": str(number), "limit": str(limit), "totalPage": str(-(-len(rows) // limit)), **members}
    return page_of("address_transactions", rows[(number - 1) * limit : number * limit], **counts)


def block(request: Request) -> Response:
    """The newest block, or that of a height."""
    height = request.query.get("height", "90")
    # Younger than what the API drops, whatever the date is.
    time = str(4 * 10**12 + 1_000 * int(height))
    found = {"txid": "0xa", "height": height, "blockHash": f"0xb{height}", "transactionTime": time}
    return page_of("transactions", [found])


class Wallets:
    """Lists of seven records; the responses for the second of them are those of a function of their number."""

    def __init__(self, of_second: Callable[[int, list[Row], Request], Response]) -> None:
        self.of_second = of_second
        self.responses = 0

    def __call__(self, request: Request) -> Response:
        rows = rows_of_wallet(request.query["address"], 7)
        if request.query["address"] != WALLETS[1]:
            return page(rows, request)
        self.responses += 1
        return self.of_second(self.responses, rows, request)


def emptied(response: int, rows: list[Row], request: Request) -> Response:
    """The first page, and then nothing."""
    if response == 1:
        return page(rows, request)
    return page_of("address_transactions", [], page=request.query["page"], limit="3", totalPage="0")


def lagging(response: int, rows: list[Row], request: Request) -> Response:
    """All records, up to a page in place of another one; then a part of the service that lacks one of them."""
    if response <= 2:
        return page(rows, request)
    return page(rows, request, page="2") if response == 3 else page(rows[:1] + rows[2:], request)


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("of_second", [emptied, lagging])
def test_list_of_a_set_that_lacks_records_of_a_discarded_reading_is_not_complete(
    server: StrictServer,
    tmp_path: Path,
    of_second: Callable[[int, list[Row], Request], Response],
    *,
    is_streamed: bool,
    is_kept: bool,
) -> None:
    server.on("address_transactions", Wallets(of_second))
    server.on("transactions", block)
    options: dict[str, Any] = {"cache": tmp_path} if is_kept else {}
    with server.client(concurrency=1, max_retries=0, **options) as client:
        query: Any = client.address_transactions(WALLETS, start_height=1, page_size=3)
        records = list(query) if is_streamed else query.collect()
        verdicts = query.report.by_argument
    assert len([record for record in records if record.queried[0] != WALLETS[1]]) == 14
    assert not verdicts[WALLETS[1]]["complete"]
    assert verdicts[WALLETS[0]]["complete"]
    assert verdicts[WALLETS[2]]["complete"]
    assert not query.report.complete


def test_list_of_a_set_that_is_whole_again_is_complete(server: StrictServer) -> None:
    def lagging_once(response: int, rows: list[Row], request: Request) -> Response:
        return page(rows, request, page="2") if response == 3 else page(rows, request)

    server.on("address_transactions", Wallets(lagging_once))
    server.on("transactions", block)
    with server.client(concurrency=1, max_retries=0) as client:
        query = client.address_transactions(WALLETS, start_height=1, page_size=3)
        assert len(query.collect()) == 21
        assert (query.report.rereads, query.report.reasons) == (1, [])
        requests = query.report.requests
    # The second reading costs what the first one does.
    assert requests <= 3 * 5 + 4
    assert isinstance(query, cf.Query)
