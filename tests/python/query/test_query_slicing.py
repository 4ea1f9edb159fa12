"""Queries split into slices where one list of the API cannot hold the result."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, Script, StrictServer, envelope, error, page_of, rows_of

CAP = 10_000


def capped(records: list[dict[str, str]], window: int = CAP) -> Script:
    """A list with a result window and an upper height filter."""

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        top = int(request.query.get("endBlockHeight", 1 << 40))
        shown = [record for record in records if int(record["height"]) <= top][:window]
        part = shown[(page - 1) * limit : page * limit]
        return page_of("address_transactions", part, limit=str(limit), totalPage=str(-(-len(shown) // limit)))

    return respond


@pytest.mark.filterwarnings("ignore:.*last 12 months of an address")
@pytest.mark.parametrize("a_block", [1, 7, 130])
def test_list_continues_by_height_below_the_result_window(server: StrictServer, a_block: int) -> None:
    records = [{"txId": f"0x{n}", "height": str(n // a_block)} for n in range(21_050, 0, -1)]
    server.on("address_transactions", capped(records))
    read = server.client().address_transactions("0xa").collect()
    assert [record.tx_id for record in read] == [record["txId"] for record in records]
    assert not any("10000" in reason or "more may exist" in reason for reason in read.report.reasons)
    assert any("confirms how many records" in reason for reason in read.report.reasons)
    assert len(server.requests) < 21_050 / 50 * 1.3


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_missed_above_the_result_window_is_not_called_complete(server: StrictServer) -> None:
    now = str(int(datetime.now(UTC).timestamp() * 1_000))
    records = [
        {"txId": f"0x{n}", "txid": f"0x{n}", "height": str(n), "transactionTime": now} for n in range(300, 0, -1)
    ]
    listed = capped(records, 200)
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=200)

    def respond(request: Request) -> Response:
        response = listed(request)
        if (request.query["page"], request.query["limit"], len(records)) == ("3", "50", 300):
            # The next page begins one record further down.
            del records[40]
        return response

    server.on("address_transactions", respond)
    server.on("transactions", page_of("transactions", records[-1:]))
    client = server.client(deployment=deployment, concurrency=1)
    read = client.address_transactions("0xa", start_height=1).collect()
    assert {f"0x{n}" for n in range(300, 0, -1)} - {record.tx_id for record in read} == {"0x150"}
    (reason,) = read.report.reasons
    assert reason == "No response confirms how many records the list has: some may be missing."


@pytest.mark.filterwarnings("ignore:.*last 12 months of an address")
def test_block_larger_than_the_result_window_is_reported(server: StrictServer) -> None:
    records = [{"txId": f"0x{n}", "height": "5"} for n in range(12_000)]
    server.on("address_transactions", capped(records))
    with pytest.warns(cf.IncompleteResultWarning, match=r"more may exist; narrow the query with direction=\."):
        assert len(server.client().address_transactions("0xa").collect()) == CAP


HINTS: list[tuple[str, dict[str, Any], str]] = [
    ("transactions", {}, "narrow the query with block_hash=, height=, start_height= or start_time=."),
    ("transactions", {"height": 7}, "no parameter of this call narrows it."),
    ("transactions", {"block_hash": "0x7"}, "no parameter of this call narrows it."),
    ("large_transactions", {}, "narrow the query with min_amount= or height=."),
    ("large_transactions", {"height": 7, "min_amount": 200}, "narrow the query with a higher min_amount."),
    ("token_transfers", {"token_contract_address": "0x1"}, "narrow the query with min_amount= or max_amount=."),
    (
        "token_transfers",
        {"token_contract_address": "0x1", "max_amount": 9},
        "narrow the query with min_amount= or a lower max_amount.",
    ),
    ("tokens", {"order_by": "totalMarketCap"}, "with token_contract_address=, start_time= or end_time=."),
    (
        "tokens",
        {"start_time": "2025-01-01T00:00Z", "end_time": "2025-02-01T00:00Z"},
        "with token_contract_address=, a later start_time or an earlier end_time.",
    ),
    ("logs", {"tx_ids": "0x1"}, "no parameter of this call narrows it."),
]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("call", "given", "hint"), HINTS)
def test_hint_names_the_parameters_that_narrow_the_query(
    server: StrictServer, call: str, given: dict[str, Any], hint: str
) -> None:
    def respond(request: Request) -> Response:
        if call == "logs":
            return rows_of("logs", [{"txId": "0x1"}] * 1_000)
        page, limit = int(request.query["page"]), int(request.query["limit"])
        name = "tokenContractAddress" if call == "tokens" else "txid"
        rows = [{name: f"0x{(page - 1) * limit + n}", "height": "7"} for n in range(limit)]
        return page_of(call, rows, limit=str(limit), totalPage=str(CAP // limit))

    server.on(call, respond)
    (reason,) = getattr(server.client(), call)(**given).collect().report.reasons
    assert reason.endswith(hint)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(
    ("size", "outcome"),
    [(150, "complete"), (151, "complete"), (197, "complete"), (199, "unsure"), (200, "error"), (251, "error")],
)
def test_a_block_is_read_up_to_the_result_window(server: StrictServer, size: int, outcome: str) -> None:
    def respond(request: Request) -> Response:
        height, page = request.query["height"], int(request.query["page"])
        count = size if height == "7" else 1
        rows: list[Any] = [{"txid": f"0x{height}-{n}", "height": height} for n in range(min(count, 200))]
        return page_of("transactions", rows[page * 50 - 50 : page * 50], limit="50", totalPage=str(-(-count // 50)))

    server.on("transactions", respond)
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=200)
    query = server.client(deployment=deployment, concurrency=2).transactions(start_height=5, end_height=9)
    if outcome != "error":
        records = query.collect()
        assert len(records) == size + 4
        assert records.report.complete == (outcome == "complete")
        return
    with pytest.raises(
        cf.ResultWindowError, match=r"block 7 exceeds .* \(200\); query the heights around it"
    ) as caught:
        query.collect()
    # A list that ends at the window is read; of one that is longer nothing is.
    assert [record.height for record in query.partial] == [5, 6] + [7] * (200 if size == 200 else 0)
    assert caught.value.cursor is not None


def test_range_of_heights_sends_one_request_each_in_order(server: StrictServer) -> None:
    def respond(request: Request) -> Response:
        height = int(request.query["height"])
        rows: list[Any] = [{"txid": f"0x{height}-{row}", "height": str(height)} for row in range(height % 3)]
        return page_of("transactions", rows, limit="50", totalPage=str(min(len(rows), 1)))

    server.on("transactions", respond)
    records = server.client(concurrency=8).transactions(start_height=1_000, end_height=1_189).collect()
    assert [record.height for record in records] == [h for h in range(1_000, 1_190) for _ in range(h % 3)]
    assert len(server.requests) == 190
    assert records.report.complete


def test_empty_block_is_requested_twice(server: StrictServer) -> None:
    throttled = {5}

    def respond(request: Request) -> Response:
        height = int(request.query["height"])
        if height in throttled:
            throttled.discard(height)
            return Response(envelope([]))
        return page_of("transactions", [{"txid": f"0x{height}", "height": str(height)}], limit="50")

    server.on("transactions", respond)
    records = server.client(max_retries=2).transactions(start_height=4, end_height=6).collect()
    assert [record.height for record in records] == [4, 5, 6]
    assert len(server.requests) == 4


@pytest.mark.parametrize(("pages", "expected"), [("1", 13), ("200", 3)])
def test_range_of_many_heights_begins_with_the_first_block_of_a_list_within_the_window(
    server: StrictServer, pages: str, expected: int
) -> None:
    """A list as long as the result window says nothing of the heights below."""
    heights = range(5_000, 4_989, -1)

    def respond(request: Request) -> Response:
        height = request.query.get("height")
        if height and int(height) < 4_990:
            return error(401, "50113")
        shown = [each for each in heights if height in {None, str(each)}]
        rows = [{"txid": f"0x{each}", "height": str(each), "transactionTime": str(10**12 + each)} for each in shown]
        return page_of("transactions", rows, limit="50", page=request.query["page"], totalPage="1" if height else pages)

    server.on("transactions", respond)
    query = server.client(concurrency=1).transactions(start_height=3)
    if pages == "1":
        assert [record.height for record in query.collect()] == [*reversed(heights)]
    else:
        with pytest.raises(cf.AuthenticationError):
            query.collect()
    assert len(server.requests) == expected


DAY = 86_400_000
NOW = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1_000)


def tokens(times: dict[str, int], undated: set[str], *, in_each: bool) -> Script:
    """Tokens by their times, some of which are not shown: these are in the range of their time, or in each."""

    def respond(request: Request) -> Response:
        low, high = int(request.query["startTime"]), int(request.query["endTime"])
        rows = [
            {"tokenContractAddress": token, "issueDate": "" if token in undated else str(time)}
            for token, time in times.items()
            if low <= time <= high or (in_each and token in undated)
        ]
        return page_of("tokens", rows)

    return respond


@pytest.mark.parametrize("in_each", [False, True])
@pytest.mark.parametrize("undated", [set(), {"0x1"}, {"0x1", "0x3"}, {"0x0", "0x1", "0x2", "0x3", "0x4"}])
def test_each_token_without_a_time_is_returned_once(server: StrictServer, undated: set[str], *, in_each: bool) -> None:
    times = {f"0x{index}": NOW - index * 200 * DAY for index in range(5)}
    server.on("tokens", tokens(times, undated, in_each=in_each))
    query = server.client().tokens(start_time=NOW - 900 * DAY, end_time=NOW)
    assert sorted(str(token.token_contract_address) for token in query.collect()) == sorted(times)
    streamed = [str(token.token_contract_address) for token in query]
    assert sorted(streamed) == sorted(times)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("undated", [f"0x{index}" for index in range(5)])
def test_token_without_a_time_that_an_earlier_run_may_have_returned_is_a_reason(
    server: StrictServer, undated: str
) -> None:
    times = {f"0x{index}": NOW - index * 200 * DAY for index in range(5)}
    server.on("tokens", tokens(times, {undated}, in_each=False))
    client = server.client(concurrency=1)
    query = client.tokens(start_time=NOW - 900 * DAY, end_time=NOW)
    order = [str(token.token_contract_address) for token in query]
    assert sorted(order) == sorted(times)
    assert next(iter(query)).token_contract_address == order[0]
    rest = client.resume(query.cursor or "").collect()
    # Those of the first year are known to be in it.
    is_known = order.index(undated) < 2
    assert [str(token.token_contract_address) for token in rest] == [
        token for token in order[1:] if is_known or token != undated
    ]
    assert rest.report.complete == is_known
    assert is_known or any("records without a time" in reason for reason in rest.report.reasons)
