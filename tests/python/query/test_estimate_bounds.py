"""Estimates of lists whose responses leave their length open, or contradict the arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from strict_server import page_of, query_of, total_of

if TYPE_CHECKING:
    from strict_server import StrictServer


def test_estimate_uses_the_page_size_of_the_response(server: StrictServer) -> None:
    rows = [{"txid": f"0x{number}"} for number in range(50)]
    server.on("transactions", page_of("transactions", rows, totalPage="7", limit="50"))
    estimate = server.client().transactions().estimate()
    assert (estimate.records_range, estimate.requests_range) == ((301, 350), (10, 10))
    assert (estimate.records, estimate.pages, estimate.is_exact) == (325, 7, False)


def test_unreported_totals_are_bounds(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}] * 100, totalPage=None, limit="100"))
    estimate = server.client().blocks().estimate()
    assert (estimate.records_range, estimate.requests_range, estimate.is_exact) == ((100, None), (1, None), False)
    assert estimate.requests == 1
    assert "(100, None)" in repr(estimate)
    assert "at least 100" in estimate._repr_html_()
    server.on("transactions", page_of("transactions", [{"txid": "0x1"}] * 50, totalPage=None, limit="50"))
    estimate = server.client().transactions().estimate()
    assert (estimate.records, estimate.requests) == (10_000, 200)
    estimate = server.client().transactions(max_items=120).estimate()
    assert (estimate.records, estimate.records_range) == (120, (50, 120))


@pytest.mark.parametrize(
    ("call", "options", "parameter"),
    [
        ("blocks", {"height": 3}, "height"),
        ("token_transfers", {"min_amount": "100"}, "token_contract_address"),
        ("large_transactions", {"height": 3}, "height"),
    ],
)
def test_count_of_records_that_contradict_the_arguments_is_not_exact(
    server: StrictServer, call: str, options: dict[str, Any], parameter: str
) -> None:
    row = {"hash": "0x1", "txid": "0x1", "height": "5", "tokenContractAddress": "0xb", "amount": "1"}
    server.on(call, page_of(call, [row], **total_of(call, 1)))
    estimate = query_of(server.client(), call, **options).estimate()
    assert not estimate.is_exact
    assert estimate.records_range[0] == 0
    assert f"contradict {parameter}" in estimate.limitations[0]


def test_search_that_finds_no_block_in_a_range_of_times_is_counted(server: StrictServer) -> None:
    times = {height: 1_700_000_000_000 + 60_000 * height for height in (3, 2, 1)}
    rows = [
        {"txid": f"0x{height}", "height": str(height), "blockHash": f"0xb{height}", "transactionTime": str(time)}
        for height, time in times.items()
    ]
    server.on("transactions", page_of("transactions", rows, limit="50"))
    between = times[2] + 1_000
    query = server.client().transactions(start_time=between, end_time=between)
    estimate = query.estimate()
    assert (estimate.records, estimate.pages, estimate.is_exact) == (0, 0, True)
    assert len(server.requests) == 1
    assert server.client().transactions(start_time=between, end_time=between).collect().report.requests == 1
    assert (estimate.requests, estimate.requests_range) == (1, (1, 1))
    assert server.client().transactions(start_time=between, end_time=between, max_items=0).estimate().requests == 0
