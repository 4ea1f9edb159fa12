"""What the service cannot do in one list is asked in several, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

import chainframe as cf
from strict_server import Answer, Request, Script, StrictServer, envelope, page_of, rows_of

CAP = 10_000


def capped(records: list[dict[str, str]]) -> Script:
    """A list of which nobody reaches more than the first 10,000, and which can be cut off above a height."""

    def answer(request: Request) -> Answer:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        top = int(request.query.get("endBlockHeight", 1 << 40))
        shown = [record for record in records if int(record["height"]) <= top][:CAP]
        part = shown[(page - 1) * limit : page * limit]
        return page_of("address_transactions", part, limit=str(limit), totalPage=str(-(-len(shown) // limit)))

    return answer


@pytest.mark.filterwarnings("ignore:.*last year of an address")
@pytest.mark.parametrize("a_block", [1, 7, 130])
def test_a_list_goes_on_below_where_its_reach_ends(server: StrictServer, a_block: int) -> None:
    records = [{"txId": f"0x{n}", "height": str(n // a_block)} for n in range(21_050, 0, -1)]
    server.on("address_transactions", capped(records))
    read = server.client().address_transactions("0xa").collect()
    assert [record.tx_id for record in read] == [record["txId"] for record in records]
    assert not any("10000" in reason or "perhaps more. Narrow" in reason for reason in read.report.reasons)
    assert len(server.requests) < 21_050 / 50 * 1.3


@pytest.mark.filterwarnings("ignore:.*last year of an address")
def test_one_block_beyond_reach_cannot_be_passed(server: StrictServer) -> None:
    records = [{"txId": f"0x{n}", "height": "5"} for n in range(12_000)]
    server.on("address_transactions", capped(records))
    with pytest.warns(cf.IncompleteResultWarning, match=r"perhaps more\. Narrow the query with direction\."):
        assert len(server.client().address_transactions("0xa").collect()) == CAP


ADVICE: list[tuple[str, dict[str, Any], str]] = [
    ("transactions", {}, "Narrow the query with block_hash, height or start_height with end_height."),
    ("transactions", {"height": 7}, "No parameter of this call makes it shorter."),
    ("transactions", {"block_hash": "0x7"}, "No parameter of this call makes it shorter."),
    ("large_transactions", {}, "Narrow the query with min_amount or height."),
    ("large_transactions", {"height": 7, "min_amount": 200}, "Narrow the query with a higher min_amount."),
    ("token_transfers", {"token_contract_address": "0x1"}, "Narrow the query with min_amount or max_amount."),
    (
        "token_transfers",
        {"token_contract_address": "0x1", "max_amount": 9},
        "Narrow the query with min_amount or a lower max_amount.",
    ),
    ("tokens", {"order_by": "totalMarketCap"}, "with token_contract_address, start_time or end_time."),
    (
        "tokens",
        {"start_time": "2025-01-01T00:00Z", "end_time": "2025-02-01T00:00Z"},
        "with token_contract_address, a later start_time or an earlier end_time.",
    ),
    ("logs", {"tx_ids": "0x1"}, "No parameter of this call makes it shorter."),
]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("call", "given", "said"), ADVICE)
def test_advice_can_be_followed(server: StrictServer, call: str, given: dict[str, Any], said: str) -> None:
    def answer(request: Request) -> Answer:
        if call == "logs":
            return rows_of("logs", [{"txId": "0x1"}] * 1_000)
        page, limit = int(request.query["page"]), int(request.query["limit"])
        rows = [{"txid": f"0x{(page - 1) * limit + n}", "height": "7"} for n in range(limit)]
        return page_of(call, rows, limit=str(limit), totalPage=str(CAP // limit))

    server.on(call, answer)
    (reason,) = getattr(server.client(), call)(**given).collect().report.reasons
    assert reason.endswith(said)


def test_a_block_beyond_reach_is_refused_by_name(server: StrictServer) -> None:
    full = [{"txid": f"0x{n}", "height": "7"} for n in range(50)]

    def answer(request: Request) -> Answer:
        pages = "200" if request.query["height"] == "7" else "1"
        rows = full if pages == "200" else [{"txid": "0xa", "height": request.query["height"]}]
        return page_of("transactions", rows, limit="50", totalPage=pages)

    server.on("transactions", answer)
    query = server.client(concurrency=2).transactions(start_height=5, end_height=9)
    with pytest.raises(cf.ResultWindowError, match=r"block 7 .* ask for the heights below it and above it") as caught:
        query.collect()
    assert [record.height for record in query.partial] == [5, 6]
    assert caught.value.cursor is not None


def test_190_heights_cost_a_request_each_and_come_in_order(server: StrictServer) -> None:
    def answer(request: Request) -> Answer:
        height = int(request.query["height"])
        rows: list[Any] = [{"txid": f"0x{height}-{row}", "height": str(height)} for row in range(height % 3)]
        return page_of("transactions", rows, limit="50", totalPage=str(min(len(rows), 1)))

    server.on("transactions", answer)
    records = server.client(concurrency=8).transactions(start_height=1_000, end_height=1_189).collect()
    assert [record.height for record in records] == [h for h in range(1_000, 1_190) for _ in range(h % 3)]
    assert len(server.requests) == 190
    assert records.report.complete


def test_a_block_with_nothing_at_all_is_asked_for_once_more(server: StrictServer) -> None:
    throttled = {5}

    def answer(request: Request) -> Answer:
        height = int(request.query["height"])
        if height in throttled:
            throttled.discard(height)
            return Answer(envelope([]))
        return page_of("transactions", [{"txid": f"0x{height}", "height": str(height)}], limit="50")

    server.on("transactions", answer)
    records = server.client(max_retries=2).transactions(start_height=4, end_height=6).collect()
    assert [record.height for record in records] == [4, 5, 6]
    assert len(server.requests) == 4
