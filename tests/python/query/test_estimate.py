"""`Query.estimate`: requests, records and time of a query, from a few requests."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import LocalService, LoggedRequest
from conftest import Sample
from strict_server import Request, Response, StrictServer, page_of, rows_of

CALLS = sorted(reference_client.ENDPOINTS)
# Requests of an estimate, beside repeated ones after empty responses and those that find the heights of times.
MAX_REQUESTS = 3


def promised_and_kept(service: LocalService, query: cf.Query[Any]) -> cf.Estimate:
    """An estimate that a following run without changes to the data confirms."""
    before = service.request_count
    estimate = query.estimate()
    between = service.request_count
    with warnings.catch_warnings(action="ignore"):
        records = query.collect()
    assert between - before <= MAX_REQUESTS
    assert within(service.request_count - between, estimate.requests_range)
    assert estimate.pages == records.report.pages
    assert within(len(records), estimate.records_range)
    assert estimate.is_exact == (estimate.records_range == (estimate.records, estimate.records))
    return estimate


def within(number: int, bounds: tuple[int, int | None]) -> bool:
    return bounds[0] <= number and (bounds[1] is None or number <= bounds[1])


@pytest.mark.parametrize("call", CALLS)
def test_run_without_drift_matches_its_estimate(
    service: LocalService, client: cf.Client, sample: Sample, call: str
) -> None:
    query = client.logs(sample.tx_ids[:3]) if call == "logs" else sample.query(client, call)
    estimate = promised_and_kept(service, query)
    assert estimate.is_exact
    assert estimate.estimated_seconds > 0
    assert bool(estimate.limitations) == (call == "address_transactions")


@pytest.mark.parametrize(
    "options", [{"page_size": 7}, {"max_items": 120}, {"max_items": 3}, {"max_items": 60, "page_size": 10}]
)
@pytest.mark.parametrize("call", ["transactions", "blocks", "token_transfers", "large_transactions"])
def test_estimate_considers_page_size_and_max_items(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
    call: str,
    options: dict[str, int],
) -> None:
    promised_and_kept(service, sample.query(client, call, **options))


def test_estimate_of_no_items_sends_nothing(service: LocalService, client: cf.Client) -> None:
    before = service.request_count
    estimate = client.blocks(max_items=0).estimate()
    assert service.request_count == before
    assert (estimate.requests, estimate.records, estimate.estimated_seconds, estimate.is_exact) == (0, 0, 0.0, True)


@pytest.mark.parametrize("options", [{}, {"max_items": 20}, {"max_items": 120}, {"max_items": 700}])
@pytest.mark.parametrize(
    "call", ["tokens", "token_transfers", "address_transactions", "large_transactions", "transactions", "blocks"]
)
def test_estimate_of_a_list_is_one_request_and_what_its_run_takes(
    service: LocalService, client: cf.Client, sample: Sample, call: str, options: dict[str, int]
) -> None:
    query = sample.query(client, call, page_size=10, **options)
    before = service.request_count
    estimate = query.estimate()
    assert service.request_count == before + 1
    with warnings.catch_warnings(action="ignore"):
        report = query.collect().report
    assert estimate.requests == report.requests == service.request_count - before - 1
    assert report.duplicates_dropped == 0


def test_short_range_of_heights_is_counted(service: LocalService, client: cf.Client, sample: Sample) -> None:
    query = client.transactions(start_height=sample.height - 2, end_height=sample.height)
    before = service.request_count
    estimate = query.estimate()
    assert service.request_count == before + 3
    assert (estimate.num_slices, estimate.requests, estimate.records) == (3, 3, len(query.collect()))


@pytest.fixture(scope="module")
def long_chain() -> Iterator[LocalService]:
    # Of 30,000 transactions, two thirds are below the result window of the list that counts them.
    with LocalService(transactions=30_000) as service:
        yield service


@pytest.mark.parametrize(
    ("below", "blocks"),
    [(0, 300), (0, 600), (200, 400), (200, 1_200), (900, 100), (900, 800), (1_500, 500), (0, 2_000)],
)
def test_range_of_heights_is_estimated_within_a_factor_of_two(
    long_chain: LocalService, below: int, blocks: int
) -> None:
    client = long_chain.client(rate_limit=None)
    newest = client.transactions().first()
    assert newest is not None
    assert newest.height is not None
    high = newest.height - below
    query = client.transactions(start_height=high - blocks + 1, end_height=high)
    before = long_chain.request_count
    estimate = query.estimate()
    assert long_chain.request_count - before <= MAX_REQUESTS
    records = query.collect()
    assert 0.5 <= estimate.records / len(records) <= 2
    assert 0.8 <= estimate.requests / records.report.requests <= 1.25
    assert within(records.report.requests, estimate.requests_range)
    assert not estimate.is_exact


@pytest.mark.parametrize("options", [{}, {"max_items": 5}, {"max_items": 50}])
def test_range_of_few_records_below_the_result_window_is_not_called_exact(options: dict[str, Any]) -> None:
    heights = [10_000 - index // 5 for index in range(2_000)] + [9_000 - 800 * index for index in range(8)]
    newest = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {
            "tx_id": f"0x{index:064x}",
            "height": height,
            "block_hash": f"0x{height:x}",
            "transaction_time": newest - timedelta(minutes=10_000 - height),
        }
        for index, height in enumerate(heights)
    ]
    with LocalService(simulated=True, transactions=0, max_result_window=1_000, data={"transactions": rows}) as service:
        query = service.client(rate_limit=None).transactions(start_height=8_100, end_height=8_500, **options)
        estimate, records = query.estimate(), query.collect()
    assert len(records) == 1
    assert not estimate.is_exact
    assert within(len(records), estimate.records_range)
    assert within(records.report.requests, estimate.requests_range)


def test_years_and_blocks_below_the_first_are_counted(client: cf.Client) -> None:
    tokens = client.tokens(start_time="2024-02-01T00:00Z", end_time="2026-01-31T00:00Z")
    estimate = tokens.estimate()
    assert (estimate.num_slices, estimate.records, estimate.is_exact) == (3, len(tokens.collect()), True)
    estimate = client.transactions(start_height=1, end_height=4_000_100).estimate()
    assert (estimate.num_slices, estimate.records_range, estimate.requests) == (4_000_100, (0, 0), 4_000_100)


def test_range_that_begins_before_the_first_known_block_is_limited(long_chain: LocalService) -> None:
    query = long_chain.client(rate_limit=None).transactions(start_time="2020-01-01T00:00Z", max_items=500)
    limitations = query.estimate().limitations
    assert [text.startswith("The first block is unknown") for text in limitations] == [True]
    with pytest.warns(cf.IncompleteResultWarning):
        assert query.collect().report.reasons == limitations


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_last_year_limits_a_list_unless_max_items_ends_it(client: cf.Client, sample: Sample, more: int) -> None:
    length = client.address_transactions(sample.address).estimate().records
    query = client.address_transactions(sample.address, max_items=length + more)
    with warnings.catch_warnings(action="ignore"):
        complete = query.collect().report.complete
    assert complete == (more <= 0)
    assert bool(query.estimate().limitations) == (not complete)


def test_limit_of_a_range_ends_its_estimate(long_chain: LocalService) -> None:
    client = long_chain.client(rate_limit=None)
    newest = client.transactions().first()
    assert newest is not None
    assert newest.height is not None
    query = client.transactions(start_height=newest.height - 500, max_items=700)
    estimate, records = query.estimate(), query.collect()
    assert estimate.records == len(records) == 700
    assert 0.5 <= estimate.requests / records.report.requests <= 2
    assert estimate.num_slices < 501


@pytest.mark.parametrize(("length", "expected"), [(13_000, True), (90_000, False)])
def test_list_continuing_below_the_result_window_is_measured_in_parts(
    server: StrictServer, length: int, *, expected: bool
) -> None:
    def respond(request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        top = int(request.query.get("endBlockHeight", length))
        height = top - (page - 1) * limit
        rows = [{"txId": f"0x{number}", "height": str(number)} for number in range(height, max(0, height - limit), -1)]
        return page_of("address_transactions", rows, limit=str(limit), totalPage=str(min(10_000, top) // limit))

    server.on("address_transactions", respond)
    estimate = server.client().address_transactions("0x1").estimate()
    assert estimate.limitations == [
        "The API returns only the last 12 months of an address; narrow the query with start_time=.",
        "No response confirms how many records the list has: some may be missing.",
    ]
    low, high = estimate.records_range
    if expected:
        assert high is not None
        assert low <= length <= high + 2
        assert estimate.requests == pytest.approx(length / 50, rel=0.02)
    else:
        assert low >= 19_900
        assert high is None


def test_estimate_of_a_resumed_query_counts_the_remaining_records(service: LocalService, client: cf.Client) -> None:
    pages = client.blocks(page_size=50).pages()
    cursors = [next(pages).cursor for _ in range(12)]
    for cursor in (cursors[0], cursors[7]):
        promised_and_kept(service, client.resume(cursor))
    assert client.resume(cursors[-1]).estimate().records == 0


def test_estimate_counts_one_request_for_twenty_hashes(
    service: LocalService, client: cf.Client, sample: Sample
) -> None:
    hashes = [*sample.tx_ids, *(f"0x{number:064x}" for number in range(41))]
    before = service.request_count
    estimate = client.transactions_by_hash(hashes).estimate()
    # An empty response is repeated, and compared with one that has records.
    sent = service.request_count - before
    assert sent in range(3, 3 + 3 * 2 + 1)
    assert estimate.num_slices == 3
    assert within(sent, estimate.requests_range)
    assert estimate.limitations == [
        "16 of 20 requested transactions are not returned.",
        "20 of 20 requested transactions are not returned.",
        "5 of 5 requested transactions are not returned.",
    ]


NOWHERE = {"0xa", "0xb", *map(str, range(1, 61)), *(f"0x{number:064x}" for number in range(41))}
EMPTY_CALLS: dict[str, Callable[[cf.Client, Sample], cf.Query[Any]]] = {
    "tokens": lambda client, _: client.tokens(token_contract_address="0xa"),
    "token transfers": lambda client, _: client.token_transfers("0xa"),
    "cross-chain transactions": lambda client, _: client.cross_chain_transactions(address="0xa"),
    "a block": lambda client, _: client.blocks(height=5),
    "an address": lambda client, _: client.address_transactions("0xa"),
    "an address from a height on": lambda client, _: client.address_transactions("0xa", start_height=5),
    "large transactions": lambda client, _: client.large_transactions(height=5, max_items=20),
    "transactions of one height": lambda client, _: client.transactions(height=5, page_size=10),
    "two heights": lambda client, _: client.transactions(start_height=1, end_height=2),
    "heights without records": lambda client, _: client.transactions(start_height=1, end_height=50),
    "a set of addresses": lambda client, _: client.address_transactions(["0xa", "0xb"]),
    "a set of which one list has records": lambda client, sample: client.token_transfers([sample.token, "0xa"]),
    "a set of heights": lambda client, sample: client.transactions(height=[1, 2, sample.height]),
    "one hash": lambda client, _: client.transactions_by_hash(f"0x{7:064x}"),
    "hashes": lambda client, _: client.transactions_by_hash([f"0x{number:064x}" for number in range(41)]),
    "logs of one hash": lambda client, _: client.logs(f"0x{7:064x}"),
    "logs": lambda client, _: client.logs([f"0x{number:064x}" for number in range(10)]),
    "some logs": lambda client, sample: client.logs([*sample.tx_ids[:2], f"0x{7:064x}"]),
}


@pytest.mark.parametrize("name", EMPTY_CALLS)
def test_estimate_counts_the_requests_that_check_an_empty_response(sample: Sample, name: str) -> None:
    """Responses without a page object, which may be throttles."""

    def respond(request: LoggedRequest) -> Any:
        asked = [text for name, text in request["params"].items() if name not in {"page", "limit"}]
        is_empty = NOWHERE.intersection(",".join(asked).split(","))
        return {"json": {"code": "0", "msg": "", "data": []}} if is_empty else None

    with LocalService(transactions=600, seed=7, simulated=True, respond=respond) as service:
        clients = [service.client(rate_limit=None) for _ in range(2)]
        estimate = EMPTY_CALLS[name](clients[0], sample).estimate()
        before = service.request_count
        with warnings.catch_warnings(action="ignore"):
            EMPTY_CALLS[name](clients[1], sample).collect()
        sent = service.request_count - before
    assert within(sent, estimate.requests_range)
    assert sent > estimate.pages
    assert 0.7 <= estimate.requests / sent <= 1.4


@pytest.mark.parametrize("counted", [False, True])
def test_records_beyond_the_result_window_are_limitations(server: StrictServer, *, counted: bool) -> None:
    def respond(request: Request) -> Response:
        limit = int(request.query["limit"])
        total = {"totalTransfer": "25000"} if counted else {}
        return page_of(call, [{"txid": "0x1"}] * limit, limit=str(limit), totalPage=str(10_000 // limit), **total)

    call = "token_transfers" if counted else "transactions"
    server.on(call, respond)
    client = server.client()
    every: cf.Query[Any] = client.token_transfers("0x1") if counted else client.transactions()
    estimate = every.estimate()
    if counted:
        # The list is divided.
        assert (estimate.records, estimate.limitations) == (25_000, [])
        assert 500 < estimate.requests < 1_000
        part: cf.Query[Any] = client.token_transfers("0x1", max_items=20_000)
        estimate = part.estimate()
    assert (estimate.records, estimate.pages) == (10_000, 200)
    (sentence,) = estimate.limitations
    assert ("25000" if counted else "10000") in sentence
    few: cf.Query[Any] = client.token_transfers("0x1", max_items=500) if counted else client.transactions(max_items=500)
    assert (few.estimate().records, few.estimate().limitations) == (500, [])


def test_error_of_an_estimate_has_a_cursor(server: StrictServer) -> None:
    query = server.client().blocks()
    with pytest.raises(cf.NotFoundError) as caught:
        query.estimate()
    with pytest.raises(cf.NotFoundError) as awaited:
        asyncio.run(query.estimate_async())
    assert caught.value.cursor == awaited.value.cursor == query.cursor
    with pytest.raises(cf.NotFoundError) as caught:
        server.client().cross_chain_transactions().partitions(3)
    assert caught.value.cursor is not None
    server.on("blocks", page_of("blocks", [{"height": "3"}]))
    assert [block.height for block in server.client().resume(query.cursor)] == [3]


def test_awaited_estimate_equals_the_blocking_one(service: LocalService, client: cf.Client) -> None:
    before = service.request_count
    estimate = asyncio.run(client.blocks().estimate_async())
    assert service.request_count <= before + 5
    assert estimate.records == client.blocks().estimate().records


def test_repr_and_html_show_the_estimate(server: StrictServer) -> None:
    server.on("logs", rows_of("logs", [{"txId": "0x1"}] * 1_000))
    estimate = server.client().logs("<b>0x1</b>").estimate()
    assert repr(estimate).startswith("Estimate(records=1000, pages=1, requests=1, num_slices=1, is_exact=True, ")
    html = estimate._repr_html_()
    assert "<b>0x1" not in html
    assert "&lt;b&gt;0x1" in html


def test_estimate_sends_the_filters_of_the_query(server: StrictServer) -> None:
    seen: list[Request] = []

    def respond(request: Request) -> Response:
        seen.append(request)
        return page_of("transactions", [{"txid": "0x1", "height": "5"}])

    server.on("transactions", respond)
    server.client().transactions(height=5).estimate()
    assert seen[0].query["height"] == "5"


def test_estimate_of_the_widest_range_does_not_overflow(server: StrictServer) -> None:
    rows: list[Any] = [{"txid": f"0x{n}", "height": "0"} for n in range(3)]
    server.on("transactions", page_of("transactions", rows))
    estimate = server.client().transactions(start_height=0, end_height=2**63 - 1).estimate()
    assert estimate.num_slices == 2**63
    assert estimate.requests >= 2**63


@pytest.mark.parametrize("max_items", [1, 2, 3, 10])
@pytest.mark.parametrize("call", ["blocks", "large_transactions", "transactions", "tokens"])
def test_estimate_of_pages_of_one_record_is_what_the_run_takes(
    client: cf.Client, sample: Sample, call: str, max_items: int
) -> None:
    query = sample.query(client, call, page_size=1, max_items=max_items)
    estimate = query.estimate()
    assert estimate.is_exact
    assert estimate.requests == query.collect().report.requests


@pytest.mark.parametrize("pages", [1, 4])
def test_estimate_of_a_position_in_a_limited_list_is_that_of_its_rest(client: cf.Client, pages: int) -> None:
    query = client.blocks(page_size=10, max_items=80)
    iterator = query.pages()
    for _ in range(pages):
        next(iterator)
    rest = client.resume(query.cursor)
    estimate = rest.estimate()
    records = rest.collect()
    assert (estimate.records, estimate.pages) == (len(records), records.report.pages) == (80 - 10 * pages, 8 - pages)


def test_estimate_of_a_position_in_a_set_is_that_of_the_lists_that_are_left(client: cf.Client) -> None:
    tokens = [token.token_contract_address or "" for token in client.tokens(max_items=6)]
    query = client.token_transfers(tokens)
    total = query.estimate().records
    returned = 0
    for page in query.pages():
        returned += len(page.records)
        rest = client.resume(query.cursor).estimate()
        assert rest.records == total - returned
