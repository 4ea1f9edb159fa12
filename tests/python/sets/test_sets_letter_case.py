"""Values of a set in either letter case: hexadecimal digits are the same, letters of base58 are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from chainframe.sinks.sql import is_of, is_row_of
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
NAMES = ["TaB", "TAb", "0xaB"]


def serve(server: StrictServer) -> None:
    def respond(request: Request) -> Response:
        address = request.query["address"]
        rows = [{"txId": f"{address}-{row}", "height": "7", "blockHash": "0x7", "from": address} for row in "xy"]
        return page_of("address_transactions", rows)

    server.on("address_transactions", respond)


@pytest.mark.parametrize(
    "read",
    [
        cf.Query.collect,
        list,
        lambda query: [record for page in query.pages() for record in page.records],
    ],
    ids=["collect", "iteration", "pages"],
)
@pytest.mark.parametrize("unique", [False, True])
def test_addresses_in_base58_are_lists_of_their_own(
    server: StrictServer,
    read: Callable[[cf.Query[cf.AddressTransaction]], list[cf.AddressTransaction]],
    unique: bool,  # noqa: FBT001
) -> None:
    serve(server)
    query = server.client().address_transactions([*NAMES, "0xAb"], unique=unique)
    found = sorted((record.from_address, record.tx_id) for record in read(query))
    assert found == sorted((name, f"{name}-{row}") for name in NAMES for row in "xy")


def test_rows_of_a_list_in_base58_are_not_those_of_another() -> None:
    assert is_row_of("0xaB", ["0xAb"])
    assert not is_row_of("TaB", ["TAb"])
    assert is_of("0xaB") == "lower(queried[1]) = lower('0xaB')"
    assert is_of("TaB") == "queried[1] = 'TaB'"


def test_cursor_of_a_list_in_base58_is_not_that_of_another(server: StrictServer) -> None:
    serve(server)
    client = server.client()
    query = client.address_transactions("TaB")
    next(iter(query))
    with pytest.raises(cf.InvalidParameterError, match="cursor"):
        client.resume(query.cursor, client.address_transactions("TAb"))
