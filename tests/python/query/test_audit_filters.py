"""Records that contradict the arguments of the call: they are dropped, with a reason."""

from __future__ import annotations

from typing import Any

import pytest

import chainframe as cf
from reference_client import ENDPOINTS
from strict_server import StrictServer, page_of, rows_of

Row = dict[str, Any]

# A call, its arguments, a record that meets them and one that does not.
FILTERS: list[tuple[str, Row, Row, Row]] = [
    ("tokens", {"token_contract_address": "0xAA"}, {"tokenContractAddress": "0xaa"}, {"tokenContractAddress": "0xbb"}),
    (
        "tokens",
        {"protocol_type": "token_721"},
        {"tokenContractAddress": "0xaa", "protocolType": "ERC721"},
        {"tokenContractAddress": "0xbb", "protocolType": "ERC20"},
    ),
    (
        "token_transfers",
        {"token_contract_address": "0xaa"},
        {"txid": "0x1", "tokenContractAddress": "0xAA"},
        {"txid": "0x2", "tokenContractAddress": "0xbb"},
    ),
    (
        "token_transfers",
        {"token_contract_address": "0xaa", "min_amount": "5"},
        {"txid": "0x1", "amount": "5.0"},
        {"txid": "0x2", "amount": "4.999999999999999999"},
    ),
    (
        "token_transfers",
        {"token_contract_address": "0xaa", "max_amount": "5"},
        {"txid": "0x1", "amount": "5"},
        {"txid": "0x2", "amount": "5.000000000000000001"},
    ),
    (
        "cross_chain_transactions",
        {"tx_id": "0xAB"},
        {"id": "0xab"},
        {"id": "0xcd", "alphaTxHash": "0x1", "betaTxHash": "0x2"},
    ),
    (
        "cross_chain_transactions",
        {"from_address": "0xaa"},
        {"id": "0x1", "from": "0xAA"},
        {"id": "0x2", "from": "0xbb"},
    ),
    ("cross_chain_transactions", {"to_address": "0xaa"}, {"id": "0x1", "to": "0xaa"}, {"id": "0x2", "to": "0xbb"}),
    (
        "cross_chain_transactions",
        {"token_contract_address": "0xaa"},
        {"id": "0x1", "tokenContractAddress": "0xaa"},
        {"id": "0x2", "tokenContractAddress": "0xbb"},
    ),
    (
        "cross_chain_transactions",
        {"address": "0xaa"},
        {"id": "0x1", "from": "0xbb", "to": "0xcc", "sourceAddress": "0xdd", "targetAddress": "0xaa"},
        {"id": "0x2", "from": "0xbb", "to": "0xcc", "sourceAddress": "0xdd", "targetAddress": ""},
    ),
    (
        "cross_chain_transactions",
        {"height": 7},
        {"id": "0x1", "betaBlockHeight": "7"},
        {"id": "0x2", "betaBlockHeight": "8"},
    ),
    (
        "cross_chain_transactions",
        {"start_height": 7},
        {"id": "0x1", "betaBlockHeight": "7"},
        {"id": "0x2", "betaBlockHeight": "6"},
    ),
    (
        "cross_chain_transactions",
        {"end_height": 7},
        {"id": "0x1", "betaBlockHeight": "7"},
        {"id": "0x2", "betaBlockHeight": "8"},
    ),
    ("blocks", {"height": 7}, {"hash": "0x1", "height": "7"}, {"hash": "0x2", "height": "8"}),
    (
        "address_transactions",
        {"address": "0xaa"},
        {"txId": "0x1", "from": "0xAA", "to": "0xbb"},
        {"txId": "0x2", "from": "0xcc", "to": "0xbb"},
    ),
    (
        "address_transactions",
        {"address": "0xaa", "end_height": 7},
        {"txId": "0x1", "from": "0xaa", "height": "7"},
        {"txId": "0x2", "from": "0xaa", "height": "8"},
    ),
    (
        "address_transactions",
        {"address": "0xaa", "direction": "to"},
        {"txId": "0x1", "from": "0xbb", "to": "0xaa"},
        {"txId": "0x2", "from": "0xaa", "to": "0xbb"},
    ),
    ("large_transactions", {"min_amount": 1_000}, {"txid": "0x1", "amount": "1000"}, {"txid": "0x2", "amount": "999"}),
    ("large_transactions", {"height": 7}, {"txid": "0x1", "height": "7"}, {"txid": "0x2", "height": "6"}),
    ("transactions", {"height": 7}, {"txid": "0x1", "height": "7"}, {"txid": "0x2", "height": "6"}),
    (
        "transactions",
        {"block_hash": "0xAA"},
        {"txid": "0x1", "blockHash": "0xaa"},
        {"txid": "0x2", "blockHash": "0xbb"},
    ),
    ("logs", {"tx_ids": "0xAA"}, {"txId": "0xaa", "logIndex": "1"}, {"txId": "0xbb", "logIndex": "2"}),
    ("transactions_by_hash", {"tx_ids": "0xAA"}, {"txId": "0xaa"}, {"txId": "0xbb"}),
]


def test_every_sent_filter_is_in_the_table() -> None:
    # An order is no filter. Slices drop tokens of other times. The age of a lowest height takes another list.
    without = {("tokens", name) for name in ("start_time", "end_time", "order_by")}
    without.add(("address_transactions", "start_height"))
    sent = {
        (call, param["name"]) for call, endpoint in ENDPOINTS.items() for param in endpoint["params"] if param["wire"]
    }
    tested = {(call, name) for call, arguments, *_ in FILTERS for name in arguments}
    assert sent - tested == without, "FILTERS of test_audit_filters.py"


@pytest.mark.parametrize(("call", "arguments", "possible", "impossible"), FILTERS)
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_that_contradicts_an_argument_is_dropped_with_a_reason(
    server: StrictServer, call: str, arguments: Row, possible: Row, impossible: Row
) -> None:
    server.on(call, rows_of(call, [impossible, possible]))
    with server.client() as client:
        records = getattr(client, call)(**arguments).collect()
        assert len(records) == 1
        assert records.report.dropped == 1
        assert not records.report.complete
        with pytest.raises(cf.IncompleteResultError):
            getattr(client.with_options(strict=True), call)(**arguments).collect()
        server.on(call, rows_of(call, [possible]))
        assert getattr(client, call)(**arguments).collect().report.dropped == 0


@pytest.mark.parametrize(("order", "member"), [("totalMarketCap",) * 2, ("transactionAmount24h",) * 2])
def test_beginning_in_another_order_than_the_requested_one_is_a_reason(
    server: StrictServer, order: Any, member: str
) -> None:
    with server.client() as client:
        for values, is_ordered in [(["9", "5", "5.0", "", "1e-3"], True), (["9", "10", "1"], False)]:
            rows: list[Row] = [{"tokenContractAddress": f"0x{n}", member: value} for n, value in enumerate(values)]
            server.on("tokens", rows_of("tokens", rows))
            query = client.tokens(order_by=order, max_items=2)
            if is_ordered:
                assert query.collect().report.complete
            else:
                with pytest.warns(cf.IncompleteResultWarning, match="not in the order of order_by"):
                    query.collect()
            # All tokens are the same set in any order.
            assert client.tokens(order_by=order).collect().report.complete


@pytest.mark.parametrize("value", [None, "", "0xbb,0xcc"], ids=["null", "empty", "list"])
def test_missing_value_and_list_of_addresses_contradict_nothing(server: StrictServer, value: str | None) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"txid": "0x1", "tokenContractAddress": value}]))
    with server.client() as client:
        report = client.token_transfers("0xaa").collect().report
    assert (report.complete, report.records, report.dropped) == (True, 1, 0)
