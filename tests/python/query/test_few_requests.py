"""Runs of a few requests each, of lists and of searches for the heights of times: each run continues the one before."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Request, Response, StrictServer, page_of


def in_runs_of(max_requests: int, client: cf.Client, query: cf.Query[Any]) -> tuple[list[Any], int]:
    """The records of a query that runs with a few requests at a time, and the number of its runs."""
    records: list[Any] = []
    for runs in range(1, 200):
        try:
            records += query.collect()
        except cf.BudgetExceededError:
            records += query.partial
            query = client.with_options(max_requests=max_requests).resume(query.cursor)
        else:
            return records, runs
    raise AssertionError(query.cursor)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(
    ("call", "max_requests"),
    [(call, bound) for call in ("one end", "list", "set", "set without times", "set of tokens") for bound in (3, 5)],
)
def test_lists_progress_with_few_requests_a_run(call: str, max_requests: int) -> None:
    with LocalService(seed=7, transactions=1_000, simulated=True) as service, service.client() as client:
        newest = client.transactions(max_items=700).collect()
        end, start = newest[100].transaction_time, newest[-1].transaction_time
        assert start is not None
        addresses = list(dict.fromkeys(name for each in newest for name in (each.input or "").split(",") if name))
        tokens = [token.token_contract_address or "" for token in client.tokens(max_items=4)]
        calls: dict[str, Any] = {
            "one end": lambda client: client.address_transactions(addresses[0], start_time=start),
            "list": lambda client: client.address_transactions(addresses[0], start_time=start, end_time=end),
            "set": lambda client: client.address_transactions(addresses[:3], start_time=start, end_time=end),
            "set without times": lambda client: client.address_transactions(addresses[:3]),
            "set of tokens": lambda client: client.token_transfers(tokens),
        }
        expected = calls[call](client).collect()
        bounded = client.with_options(max_requests=max_requests)
        records, runs = in_runs_of(max_requests, client, calls[call](bounded))
        assert Counter(records) == Counter(expected)
        assert runs > 1


BORN = datetime(2026, 1, 1, tzinfo=UTC)


def serve_chain(server: StrictServer, delay: int) -> None:
    """200 blocks of one transaction each. Times and hashes from height 100 on tell one fork from another."""

    def row(height: int) -> dict[str, str]:
        is_forked = height >= 100
        time = BORN + timedelta(seconds=10 * height + (delay if is_forked else 0))
        return {
            "txid": f"0x{height}f{delay if is_forked else 0}",
            "height": str(height),
            "blockHash": f"0x{height}b{delay if is_forked else 0}",
            "transactionTime": str(int(time.timestamp() * 1000)),
        }

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        found = [height for height in range(200, 0, -1) if request.query.get("height") in {None, str(height)}]
        shown = [row(height) for height in found[(page - 1) * limit : page * limit]]
        pages = str(-(-len(found) // limit))
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=pages)

    server.on("transactions", respond)


RANGE: dict[str, Any] = {"start_time": BORN + timedelta(seconds=905), "end_time": BORN + timedelta(seconds=1_200)}


@pytest.mark.parametrize("changed_after", range(1, 6))
def test_search_in_runs_of_one_request_finds_the_heights_of_the_chain_as_it_is_now(
    server: StrictServer, changed_after: int
) -> None:
    """The blocks of a fork have other times, and a cursor has blocks that are no longer on both sides of a time."""
    serve_chain(server, 0)
    client = server.client(concurrency=1)
    query = client.with_options(max_requests=1).transactions(**RANGE)
    run = 0
    for run in range(60):
        if run == changed_after:
            serve_chain(server, 60)
        before = client.usage.requests
        with pytest.raises(cf.BudgetExceededError) as stopped:
            query.collect()
        if "needs at least" in str(stopped.value):
            assert client.usage.requests == before
            break
        assert client.usage.requests == before + 1
        query = client.with_options(max_requests=1).resume(query.cursor)
    assert changed_after < run <= 30
    records = client.resume(query.cursor).collect()
    assert [record.height for record in records] == list(range(91, 115))


@pytest.mark.parametrize(("call", "needed"), [("address_transactions", 3), ("tokens", 2)])
def test_list_that_fewer_requests_cannot_continue_is_rejected_before_the_first(call: str, needed: int) -> None:
    with LocalService(seed=7, transactions=1_000, simulated=True) as service, service.client() as client:
        address = (client.transactions(max_items=1).collect()[0].input or "").split(",")[0]
        given = [address] if call == "address_transactions" else []
        query = getattr(client, call)(*given, page_size=5)
        next(iter(query.pages()))
        bounded = client.with_options(max_requests=needed - 1)
        before = client.usage.requests
        with pytest.raises(cf.BudgetExceededError, match=f"the query needs at least {needed}"):
            bounded.resume(query.cursor).collect()
        assert client.usage.requests == before


def test_search_in_runs_sends_one_request_more_for_each_time_than_one_run_does(server: StrictServer) -> None:
    serve_chain(server, 0)
    client = server.client(concurrency=1)
    expected = client.transactions(**RANGE).collect()
    query = client.with_options(max_requests=2).transactions(**RANGE)
    before = client.usage.requests
    while True:
        with pytest.raises(cf.BudgetExceededError) as stopped:
            query.collect()
        if "needs at least" in str(stopped.value):
            break
        query = client.with_options(max_requests=2).resume(query.cursor)
    assert client.resume(query.cursor).collect() == expected
    assert client.usage.requests - before <= expected.report.requests + 2
