"""Responses that contradict the request or each other: never a wrong result that is called complete."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import API_KEY, Request, Response, StrictServer, page_of, rows_of

Row = dict[str, Any]


def test_page_of_another_chain_is_dropped(server: StrictServer) -> None:
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": "0xaa"}], chainShortName="ELSEWHERE"))
    with server.client() as client, pytest.warns(cf.IncompleteResultWarning, match="ELSEWHERE"):
        assert len(client.tokens().collect()) == 0


def test_text_of_the_service_in_a_report_is_on_one_line_and_without_secrets(server: StrictServer) -> None:
    name = f"\x1b[31m{API_KEY}\nsecond line {'x' * 5_000}"
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": "0xaa"}], chainShortName=name))
    server.on("blocks", page_of("blocks", [{"hash": "0xaa", f"a\x1b\n{API_KEY}": "x"}]))
    with server.client() as client:
        with pytest.warns(cf.IncompleteResultWarning) as warned:
            reasons = client.tokens().collect().report.reasons
        unknown = client.blocks().collect().report.members_unknown
    shown = [*map(str, reasons), *unknown, str(warned[0].message)]
    assert len(shown) == 3
    for text in shown:
        assert API_KEY not in text
        assert text.isprintable()
        assert len(text) < 400


def listed(call: str, view: Callable[[int, Request], list[Row]], **members: object) -> Callable[[Request], Response]:
    """A list that the n-th request to it sees so."""
    requests = iter(range(1_000_000))

    def respond(request: Request) -> Response:
        rows, limit, page = view(next(requests), request), int(request.query["limit"]), int(request.query["page"])
        pages = {"totalPage": str(math.ceil(len(rows) / limit)), "limit": str(limit)}
        return page_of(call, rows[(page - 1) * limit : page * limit], **{**pages, **members})

    return respond


def block(count: int, name: str = "a") -> list[Row]:
    return [{"txid": f"0x{name}{row:04}", "blockHash": f"0x{name}", "height": "7"} for row in range(count)]


def outcome(client: cf.Client, **arguments: Any) -> list[str | None] | None:
    """Hashes of a result that is called complete, or None."""
    try:
        records = client.transactions(**arguments).collect()
    except cf.PaginationDriftError:
        return None
    return [record.tx_id for record in records] if records.report.complete else None


@pytest.mark.parametrize(("records", "requests"), [(50, 1), (120, 4), (150, 4)])
def test_list_of_one_block_costs_one_request_more_than_its_pages(
    server: StrictServer, records: int, requests: int
) -> None:
    server.on("transactions", listed("transactions", lambda *_: block(records)))
    with server.client() as client:
        assert len(outcome(client, height=7) or []) == records
    assert len(server.requests) == requests


@pytest.mark.parametrize(
    "view",
    [
        lambda number, _request: random.Random(number).sample(block(120), 120),
        lambda number, _request: block(120, "a" if number % 3 == 0 else "b"),
        lambda number, _request: block(120 if number == 0 else 121)[::-1],
        lambda _number, request: block(120)[:50] * 3 if request.query["page"] != "1" else block(120),
    ],
    ids=["reordered", "replaced", "extended", "page ignored"],
)
@pytest.mark.parametrize("arguments", [{"height": 7}, {"block_hash": "0xa"}, {"start_height": 7, "end_height": 7}])
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_list_of_one_block_that_changes_is_never_called_complete(
    server: StrictServer, view: Callable[[int, Request], list[Row]], arguments: Row
) -> None:
    server.on("transactions", listed("transactions", view))
    with server.client() as client:
        found = outcome(client, **arguments)
    assert found is None or sorted(filter(None, found)) in [
        [row["txid"] for row in block(count, name)] for count in (120, 121) for name in "ab"
    ]


def test_cursor_within_a_block_that_was_replaced_is_noticed(server: StrictServer) -> None:
    views = iter(["a", "a", *"bbbbbb"])
    server.on("transactions", listed("transactions", lambda *_: block(120, next(views))))
    with server.client(concurrency=1) as client:
        pages = client.transactions(height=7).pages()
        next(pages)
        cursor = next(pages).cursor
        with pytest.raises(cf.PaginationDriftError):
            client.resume(cursor).collect()


def test_tokens_that_move_with_every_request_are_returned_once_each(server: StrictServer) -> None:
    tokens = [{"tokenContractAddress": f"0x{token:03}"} for token in range(300)]

    def view(number: int, _request: Request) -> list[Row]:
        ranks = random.Random(number)
        return sorted(tokens, key=lambda token: int(token["tokenContractAddress"], 16) + ranks.randrange(60))

    server.on("tokens", listed("tokens", view))
    # The ranks are those of the n-th request.
    with server.client(concurrency=1) as client:
        records = client.tokens().collect()
        assert records.report.complete
        assert records.report.moved > 0
        assert sorted(filter(None, (token.token_contract_address for token in records))) == [
            token["tokenContractAddress"] for token in tokens
        ]
        pages = client.tokens(page_size=20).pages()
        first = next(pages)
        rest = client.resume(first.cursor).collect()
        known = {token.token_contract_address for token in first.records}
        assert known.isdisjoint(token.token_contract_address for token in rest)
        assert len(known) + len(rest) == 300


def test_tokens_that_one_server_lacks_are_requested_again(server: StrictServer) -> None:
    """One server lacks a token and sends page 2 and the length; only the last page shows that there is one more."""
    tokens = [{"tokenContractAddress": f"0x{token:03}"} for token in range(45)]
    answered: set[tuple[str, str]] = set()

    def view(_number: int, request: Request) -> list[Row]:
        sent = (request.query["page"], request.query["limit"])
        is_lacking = sent in {("2", "20"), ("1", "1")} and sent not in answered
        answered.add(sent)
        return tokens[:25] + tokens[26:] if is_lacking else tokens

    server.on("tokens", listed("tokens", view))
    with server.client() as client:
        records = client.tokens(page_size=20).collect()
    assert len({token.token_contract_address for token in records}) == len(records) == 45


@pytest.mark.parametrize(("pages", "reason"), [("100", "how many records"), ("5", "how many records")])
def test_number_of_pages_that_is_capped_is_no_length(server: StrictServer, pages: str, reason: str) -> None:
    rows = [{"txid": f"0x{row:04}", "height": str(9_000 - row)} for row in range(340)]

    def capped(request: Request) -> Response:
        total = min(int(pages), math.ceil(len(rows) / int(request.query["limit"])))
        limit, page = int(request.query["limit"]), int(request.query["page"])
        return page_of("transactions", rows[(page - 1) * limit : page * limit], totalPage=str(total), limit=str(limit))

    server.on("transactions", capped)
    with server.client() as client, pytest.warns(cf.IncompleteResultWarning, match=reason):
        assert len(client.transactions().collect()) == min(340, 50 * int(pages))


@pytest.mark.parametrize("refusal", ["code", "empty", "last page"])
def test_pages_beyond_the_result_window_end_the_list_with_its_reason(server: StrictServer, refusal: str) -> None:
    rows = [{"txid": f"0x{row:04}", "height": str(9_000 - row)} for row in range(400)]

    def respond(request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        counts = {"totalPage": str(math.ceil(len(rows) / limit)), "totalTransfer": "400", "limit": str(limit)}
        if (page - 1) * limit >= 200 and refusal == "code":
            return Response(b'{"code":"50036","msg":"Result window is too large","data":[]}')
        if (page - 1) * limit >= 200 and refusal == "last page":
            page = 200 // limit
        shown = rows[:200] if refusal != "last page" else rows
        return page_of("token_transfers", shown[(page - 1) * limit : page * limit], **counts)

    server.on("token_transfers", respond)
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=200)
    with server.client(deployment=deployment) as client, pytest.warns(cf.IncompleteResultWarning, match="can be paged"):
        assert len(client.token_transfers("0xaa").collect()) == 200


def transactions_with(extra: Callable[[list[Row]], list[Row]]) -> Callable[[Request], Response]:
    """A list of 60 transactions with other records on each page."""
    rows = [{"txid": f"0x{row:04}", "height": str(9_000 - row), "blockHash": f"0xb{row}"} for row in range(60)]

    def respond(request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        shown = extra(rows[(page - 1) * limit : page * limit])
        return page_of("transactions", shown, totalPage=str(math.ceil(60 / limit)), limit=str(limit))

    return respond


def read_beginning(query: cf.Query[Any]) -> cf.Report:
    query.collect()
    return query.report


def read_followed(query: cf.Query[Any]) -> cf.Report:
    follower = query.follow(start="beginning", settle=0, poll=None)
    list(follower)
    return follower.report


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("read", "max_items"), [(read_beginning, 20), (read_followed, None)])
def test_records_that_a_page_has_twice_after_it_was_cut_are_a_reason(
    server: StrictServer, read: Callable[[cf.Query[Any]], cf.Report], max_items: int | None
) -> None:
    server.on("transactions", transactions_with(lambda shown: shown[:1] + shown))
    with server.client() as client:
        report = read(client.transactions(max_items=max_items))
    assert any("equal ones among them" in reason for reason in report.reasons)


def test_pages_larger_than_requested_of_different_records_are_no_reason(server: StrictServer) -> None:
    more = [{"txid": f"0xm{row:04}", "height": "1", "blockHash": "0xm"} for row in range(9)]
    server.on("transactions", transactions_with(lambda shown: shown + more))
    with server.client() as client:
        assert not client.transactions(max_items=20).collect().report.reasons


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_two_versions_of_a_looked_up_record_are_reported(server: StrictServer) -> None:
    versions = [{"txId": "0xaa", "state": "pending"}, {"txId": "0xaa", "state": "success", "height": "7"}]
    server.on("transactions_by_hash", rows_of("transactions_by_hash", versions))
    server.on("logs", rows_of("logs", [{"txId": "0xaa", "logIndex": "1", "data": "0x0"}] * 2))
    with server.client() as client:
        assert "two versions" in client.transactions_by_hash("0xaa").collect().report.reasons[0]
        logs = client.logs("0xaa").collect()
    assert (len(logs), logs.report.complete, logs.report.duplicates_dropped) == (1, True, 1)


@pytest.mark.parametrize("member", ["height", "blockHash"])
def test_logs_of_one_transaction_in_two_blocks_are_reported(server: StrictServer, member: str) -> None:
    logs = [{"txId": "0xaa", "logIndex": str(row), "height": "7", "blockHash": "0xb"} for row in range(3)]
    server.on("logs", rows_of("logs", [*logs[:2], {**logs[2], member: "8"}]))
    with server.client() as client, pytest.warns(cf.IncompleteResultWarning, match="in two blocks"):
        assert len(client.logs("0xaa").collect()) == 3


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_follower_reads_on_below_pages_that_contradict_its_filter(server: StrictServer) -> None:
    """The records that meet the filter are the oldest, below two whole pages of others."""
    rows = [
        {"txId": f"0x{height:04}", "height": str(height), "blockHash": f"0xb{height}", "from": "0xcc", "to": to}
        for height, to in ((height, "0xaa" if height <= 30 else "0xbb") for height in range(80, 0, -1))
    ]
    server.on("address_transactions", listed("address_transactions", lambda *_: rows))
    server.on("transactions", page_of("transactions", [{"txid": "0xhead", "height": "90"}]))
    with server.client() as client:
        query = client.address_transactions("0xaa", direction="to", page_size=20)
        follower = query.follow(start="beginning", poll=None)
        found = [record.height for batch in follower for record in batch]
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= 18
        assert "contradict address" in follower.report.reasons[0]


def test_list_of_one_of_several_senders_has_the_transaction() -> None:
    with LocalService(transactions=1_500, seed=5) as service, service.client() as client:
        together = [each for each in client.transactions() if "," in (each.input or "")]
        assert together
        for transaction in together[:20]:
            for address in set((transaction.input or "").split(",")):
                listed = client.address_transactions(address).collect()
                assert transaction.tx_id in {each.tx_id for each in listed}
                assert not any("contradict" in reason for reason in listed.report.reasons)


@pytest.mark.parametrize("separator", [",", ", "])
def test_address_among_several_senders_decides_for_the_record(server: StrictServer, separator: str) -> None:
    row = {"txId": "0x1", "height": "1", "blockHash": "0xb", "from": f"0xbb{separator}0xaa", "to": "0xcc"}
    server.on("address_transactions", listed("address_transactions", lambda *_: [row]))
    with server.client() as client:
        found = client.address_transactions("0xaa").collect()
    assert len(found) == 1
    assert not any("contradict" in reason for reason in found.report.reasons)
