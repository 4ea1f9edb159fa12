"""`explain`: from one request, what a query will take and give."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

import by_hand
import chainframe as cf
from chainframe.testing import LocalService
from conftest import Sample
from strict_server import Answer, Request, StrictServer, page_of, rows_of

CALLS = sorted(by_hand.ENDPOINTS)


def promised_and_kept(service: LocalService, query: cf.Query[Any]) -> cf.Plan:
    """A plan from one request, of which a run in quiet then shows that it holds."""
    before = service.requests
    plan = query.explain()
    between = service.requests
    with warnings.catch_warnings(action="ignore"):
        records = query.collect()
    assert between - before == 1
    assert (plan.requests, plan.pages) == (service.requests - between, records.report.pages)
    assert plan.records == len(records) or not plan.exact
    return plan


@pytest.mark.parametrize("call", CALLS)
def test_a_quiet_run_is_as_explained(service: LocalService, client: cf.Client, sample: Sample, call: str) -> None:
    plan = promised_and_kept(service, sample.query(client, call))
    assert plan.exact == (call != "logs")
    assert plan.seconds is not None
    assert plan.seconds > 0
    assert bool(plan.cannot) == (call == "address_transactions")


@pytest.mark.parametrize(
    "options", [{"page_size": 7}, {"max_items": 120}, {"max_items": 3}, {"max_items": 60, "page_size": 10}]
)
@pytest.mark.parametrize("call", ["transactions", "blocks", "token_transfers", "large_transactions"])
def test_size_and_limit_are_counted_in(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
    call: str,
    options: dict[str, int],
) -> None:
    needed = (sample.token,) if call == "token_transfers" else ()
    promised_and_kept(service, getattr(client, call)(*needed, **options))


def test_nothing_is_asked_for_nothing(service: LocalService, client: cf.Client) -> None:
    before = service.requests
    plan = client.blocks(max_items=0).explain()
    assert service.requests == before
    assert (plan.requests, plan.records, plan.seconds, plan.exact) == (0, 0, 0.0, True)


def test_a_range_of_heights_is_told_from_its_first_block(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
) -> None:
    query = client.transactions(start_height=sample.height - 9, end_height=sample.height)
    before = service.requests
    plan = query.explain()
    assert service.requests == before + 1
    assert (plan.windows, plan.requests, plan.pages, plan.exact) == (10, 10, 10, False)


def test_years_and_an_empty_block_tell_nothing_of_others(service: LocalService, client: cf.Client) -> None:
    before = service.requests
    plan = client.tokens(start_time="2022-02-01T00:00Z", end_time="2026-01-31T00:00Z").explain()
    assert (plan.windows, plan.records, plan.pages, plan.requests) == (5, None, None, None)
    plan = client.transactions(start_height=1, end_height=4_000_100).explain()
    assert (plan.windows, plan.records, plan.requests, plan.seconds, plan.exact) == (4_000_100, None, None, None, False)
    assert service.requests <= before + 3


def test_a_list_that_goes_on_beyond_the_reach_is_open(server: StrictServer) -> None:
    def answer(request: Request) -> Answer:
        limit = int(request.query["limit"])
        row = {"txId": "0x1", "height": "5"}
        return page_of("address_transactions", [row] * limit, limit=str(limit), totalPage=str(10_000 // limit))

    server.on("address_transactions", answer)
    plan = server.client().address_transactions("0x1").explain()
    assert (plan.records, plan.pages, plan.requests, plan.exact) == (None, None, None, False)
    assert plan.cannot == ["The service gives out the last year of an address only."]


def test_what_is_left_after_a_cursor_is_told(service: LocalService, client: cf.Client) -> None:
    pages = client.blocks(page_size=50).pages()
    cursors = [next(pages).cursor for _ in range(12)]
    for cursor in (cursors[0], cursors[7]):
        promised_and_kept(service, client.resume(cursor))
    before = service.requests
    assert client.resume(cursors[-1]).explain().records == 0
    assert service.requests == before


def test_many_hashes_are_asked_twenty_at_a_time(service: LocalService, client: cf.Client, sample: Sample) -> None:
    hashes = [*sample.tx_ids, *(f"0x{number:064x}" for number in range(41))]
    before = service.requests
    plan = client.transactions_by_hash(hashes).explain()
    assert service.requests == before + 1
    assert (plan.windows, plan.requests) == (3, 3)
    assert plan.cannot == ["Of the first 20 transactions asked for, 16 are not returned."]


@pytest.mark.parametrize("counted", [False, True])
def test_what_is_beyond_reach_is_told(server: StrictServer, *, counted: bool) -> None:
    def answer(request: Request) -> Answer:
        limit = int(request.query["limit"])
        total = {"totalTransfer": "25000"} if counted else {}
        return page_of(call, [{"txid": "0x1"}] * limit, limit=str(limit), totalPage=str(10_000 // limit), **total)

    call = "token_transfers" if counted else "transactions"
    server.on(call, answer)
    client = server.client()
    every: cf.Query[Any] = client.token_transfers("0x1") if counted else client.transactions()
    plan = every.explain()
    assert (plan.records, plan.pages) == (10_000, 200)
    (sentence,) = plan.cannot
    assert ("25000" if counted else "10000") in sentence
    few: cf.Query[Any] = client.token_transfers("0x1", max_items=500) if counted else client.transactions(max_items=500)
    assert (few.explain().records, few.explain().cannot) == (500, [])


def test_a_service_of_its_own_page_size_is_believed(server: StrictServer) -> None:
    rows = [{"txid": f"0x{number}"} for number in range(50)]
    server.on("transactions", page_of("transactions", rows, totalPage="7", limit="50"))
    plan = server.client().transactions().explain()
    assert len(server.requests) == 1
    assert (plan.records, plan.pages, plan.exact) == (350, 7, False)


def test_what_is_not_told_is_open(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}] * 100, totalPage=None, limit="100"))
    plan = server.client().blocks().explain()
    assert (plan.records, plan.pages, plan.requests, plan.seconds, plan.exact) == (None, None, None, None, False)
    assert "None" in repr(plan)
    assert "not known" in plan._repr_html_()


def test_the_pace_decides_the_time(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}] * 100, totalPage="50", total="5000", limit="100"))
    plan = server.client(rate_limit=0.5).blocks().explain()
    assert plan.requests == 50
    assert plan.seconds == pytest.approx(100)


def test_an_error_of_the_one_request_is_raised_and_can_be_gone_on_from(server: StrictServer) -> None:
    query = server.client().blocks()
    with pytest.raises(cf.NotFoundError) as caught:
        query.explain()
    with pytest.raises(cf.NotFoundError) as awaited:
        asyncio.run(query.explain_async())
    assert caught.value.cursor == awaited.value.cursor == query.cursor
    with pytest.raises(cf.NotFoundError) as caught:
        server.client().cross_chain_transactions().partitions(3)
    assert caught.value.cursor is not None
    server.on("blocks", page_of("blocks", [{"height": "3"}]))
    assert [block.height for block in server.client().resume(query.cursor)] == [3]


def test_await_gives_the_same(service: LocalService, client: cf.Client) -> None:
    before = service.requests
    plan = asyncio.run(client.blocks().explain_async())
    assert service.requests == before + 1
    assert plan.records == client.blocks().explain().records


def test_it_shows_itself(server: StrictServer) -> None:
    server.on("logs", rows_of("logs", [{"txId": "0x1"}] * 1_000))
    plan = server.client().logs("<b>0x1</b>").explain()
    assert repr(plan).startswith("Plan(records=1000, pages=1, requests=1, windows=1, exact=True, seconds=")
    html = plan._repr_html_()
    assert "<b>0x1" not in html
    assert "&lt;b&gt;0x1" in html


def test_a_request_is_of_the_query(server: StrictServer) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return page_of("transactions", [{"txid": "0x1", "height": "5"}])

    server.on("transactions", answer)
    server.client().transactions(height=5).explain()
    assert seen[0].query["height"] == "5"
