"""Fifteen deviations of deployed servers that the client accepts, with the names of another deployment."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import chainframe as cf
from conftest import needs_extra
from strict_server import Response, StrictServer, envelope, error, key_of, member_of, page_of, query_of, rows_of


def collect(server: StrictServer, call: str, *responses: Response, **settings: Any) -> cf.Records[Any]:
    server.on(call, *responses)
    with server.client(**settings) as client:
        return query_of(client, call).collect()


def one(server: StrictServer, call: str, **members: object) -> Any:
    """The record that a single row of these members becomes."""
    (record,) = collect(server, call, rows_of(call, [{member_of(call, key_of(call)): "0xa", **members}]))
    return record


def test_1_numbers_may_be_strings_or_numbers(server: StrictServer) -> None:
    page = {"page": 1, "limit": 50, "totalPage": 1, "transactionList": [{"height": 12, "amount": 1.5, "txFee": "2"}]}
    for code in ("0", 0):
        (record,) = collect(server, "transactions", Response(envelope([page], code=code)))
        assert (record.height, record.amount, record.tx_fee) == (12, Decimal("1.5"), Decimal(2))


def test_1_a_json_number_keeps_its_digits(server: StrictServer) -> None:
    body = b'{"code":0,"msg":"","data":[{"totalPage":1,"transactionList":[{"amount":0.150851832900380503}]}]}'
    (record,) = collect(server, "transactions", Response(body))
    assert record.amount == Decimal("0.150851832900380503")


def test_2_empty_string_is_a_missing_number_time_or_flag(server: StrictServer) -> None:
    empty = {"height": "", "transactionTime": "", "isFromContract": "", "amount": ""}
    record = one(server, "transactions", txid=None, txfee=None, **empty)
    assert set(record.to_dict().values()) == {None}
    assert one(server, "cross_chain_transactions", valueRaw="").value_raw is None


def test_3_integer_may_have_a_decimal_point(server: StrictServer) -> None:
    assert one(server, "transactions", height="4307974.0").height == 4307974


@pytest.mark.parametrize("text", ["4307974.5", "abc", "0x10", "9223372036854775808"])
def test_3_fraction_in_an_integer_field_is_an_error(server: StrictServer, text: str) -> None:
    with pytest.raises(cf.ResponseFormatError) as caught:
        collect(server, "transactions", page_of("transactions", [{"txid": "0xa"}, {"txid": "0xb", "height": text}]))
    assert caught.value.path == "data[0].transactionList[1].height"
    assert caught.value.endpoint == "transactions"
    assert text in (caught.value.excerpt or "")
    assert "height" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["0.150851832900380503", "2.625E-6", "1e3", "-0.5", "123456789012345678901234567890.123456789012345678901"],
)
def test_4_decimal_keeps_every_digit(server: StrictServer, text: str) -> None:
    assert one(server, "transactions", amount=text).amount == Decimal(text)
    assert one(server, "tokens", price=text).price == Decimal(text)


@needs_extra
def test_4_raw_integer_may_have_78_digits(server: StrictServer) -> None:
    most = 2**256 - 1
    record = one(server, "cross_chain_transactions", valueRaw=str(most))
    assert record.value_raw == most
    with server.client() as client:
        table = client.cross_chain_transactions().to_arrow()
    assert table.column("value_raw").to_pylist() == [str(most)]


def test_5_nonce_may_exceed_32_bits(server: StrictServer) -> None:
    assert one(server, "address_transactions", nonce="1779161496872").nonce == 1779161496872


@pytest.mark.parametrize("text", ["1700000000", "1700000000000"])
def test_6_times_may_be_seconds_or_milliseconds(server: StrictServer, text: str) -> None:
    assert one(server, "blocks", blockTime=text).block_time == datetime.fromtimestamp(1_700_000_000, UTC)


def test_6_milliseconds_are_kept(server: StrictServer) -> None:
    time = one(server, "blocks", blockTime="1700000000123").block_time
    assert time == datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_000)
    assert time.utcoffset().total_seconds() == 0


def test_7_several_addresses_stay_one_string(server: StrictServer) -> None:
    text = "0xaa,0xbb,0xaa"
    assert one(server, "large_transactions", input=text, output=text).input == text
    assert one(server, "address_transactions", **{"from": text}).from_address == text


def test_8_empty_and_unknown_values_are_kept(server: StrictServer) -> None:
    record = one(server, "token_transfers", methodId="", tokenId="", tokenContractAddress="", state="")
    assert (record.method_id, record.token_id, record.token_contract_address, record.state) == ("", "", "", "")
    assert one(server, "token_transfers", state="dropped").state == "dropped"
    assert one(server, "tokens", protocolType="ERC9999").protocol_type == "ERC9999"
    assert one(server, "cross_chain_transactions", txType="Sideways").tx_type == "Sideways"


def test_9_letter_case_is_kept(server: StrictServer) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"from": "0xabc"}], chainShortName="ALPHA"))
    with server.client() as client:
        (page,) = client.token_transfers("0xABC").pages()
    assert page.chain_short_name == "ALPHA"
    assert page.records[0].from_address == "0xabc"
    assert server.requests[0].query["tokenContractAddress"] == "0xABC"


def test_9_hashes_match_in_either_case(server: StrictServer) -> None:
    server.on("transactions_by_hash", rows_of("transactions_by_hash", [{"txId": "0xbb"}, {"txId": "0xaa"}]))
    with server.client() as client:
        records = client.transactions_by_hash(["0xAA", "0xBB"]).collect()
    assert [record.tx_id for record in records] == ["0xaa", "0xbb"]
    assert records.report.missing == []


def test_10_members_may_be_reordered_missing_or_unknown(server: StrictServer) -> None:
    body = b"""{"data": [{"new": {"a": [1, {"height": "7"}]}, "blockList": [], "data": [
        {"later": null, "height": "3", "extra": [[]], "hash": "0x1"}, {"hash": "0x4", "miner": "0x2", "height": null}],
        "totalPage": "1"}], "detail": "", "msg": "", "code": "0"}"""
    records = collect(server, "blocks", Response(body))
    assert list(records) == [cf.Block(hash="0x1", height=3), cf.Block(hash="0x4", miner="0x2")]


@pytest.mark.parametrize(
    ("call", "wires", "name"),
    [
        ("token_transfers", ("txid", "txId"), "tx_id"),
        ("token_transfers", ("symbol", "transactionSymbol"), "transaction_symbol"),
        ("transactions", ("txfee", "txFee"), "tx_fee"),
        ("transactions", ("isInputContract", "isFromContract"), "is_input_contract"),
        ("transactions", ("isOutputContract", "isToContract"), "is_output_contract"),
        ("large_transactions", ("isInputContract", "isFromContract"), "is_input_contract"),
        ("address_transactions", ("symbol", "transactionSymbol"), "symbol"),
        ("transactions_by_hash", ("methodId", "method"), "method_id"),
    ],
)
def test_11_alternative_member_names_are_read(
    server: StrictServer, call: str, wires: tuple[str, str], name: str
) -> None:
    value: Any = {"tx_fee": "2.5"}.get(name, name.startswith("is_") or "0xa")
    wanted = Decimal("2.5") if name == "tx_fee" else value
    assert [getattr(one(server, call, **{wire: value}), name) for wire in wires] == [wanted, wanted]


@pytest.mark.parametrize("call", ["tokens", "blocks", "logs"])
@pytest.mark.parametrize("data", [[], None])
def test_12_empty_results_have_several_forms(server: StrictServer, call: str, data: object) -> None:
    records = collect(server, call, Response(envelope(data)))
    assert len(records) == 0
    assert records.report.complete


@pytest.mark.parametrize("data", [[], None])
def test_12_unknown_hash_is_reported_missing(server: StrictServer, data: object) -> None:
    with pytest.warns(cf.IncompleteResultWarning, match="not returned"):
        records = collect(server, "transactions_by_hash", Response(envelope(data)))
    assert records.report.missing == ["0xa"]
    assert len(records) == 0


def test_12_single_object_is_read_as_a_list(server: StrictServer) -> None:
    page = {"page": "1", "totalPage": "1", "data": [{"height": "3"}]}
    assert [block.height for block in collect(server, "blocks", Response(envelope(page)))] == [3]
    log = {"logIndex": "4", "topics": ["0x1", "0x2"]}
    assert [log.topics for log in collect(server, "logs", Response(envelope(log)))] == [["0x1", "0x2"]]


@pytest.mark.parametrize(("total_page", "requests"), [("0", 1), (0, 1), ("", 3), (None, 3)])
def test_13_total_pages_may_be_missing(server: StrictServer, total_page: object, requests: int) -> None:
    assert len(collect(server, "blocks", page_of("blocks", [], totalPage=total_page))) == 0
    # An empty page that counts no pages may be a throttle, and is requested again.
    assert len(server.requests) == requests


def test_13_a_list_without_counts_ends_with_its_first_short_page_and_is_incomplete(server: StrictServer) -> None:
    rows = [{"hash": f"0x{number}", "height": str(number)} for number in range(250)]

    def page(request: Any) -> Response:
        end = int(request.query["page"]) * 100
        return Response(envelope([{"page": request.query["page"], "limit": "100", "data": rows[end - 100 : end]}]))

    server.on("blocks", page)
    with server.client() as client, pytest.warns(cf.IncompleteResultWarning, match="confirms how many records"):
        records = client.blocks().collect()
    assert [block.height for block in records] == list(range(250))
    assert not records.report.complete


@pytest.mark.parametrize(
    ("response", "kind", "code", "msg"),
    [
        (Response(b'{"code":"50014","msg":"empty"}', 400), cf.BadRequestError, "50014", "empty"),
        (Response(b'{"msg":"empty","code":50014,"data":[]}', 400), cf.BadRequestError, "50014", "empty"),
        (Response(b'{"data":{"a":1},"msg":"empty","code":"50014"}'), cf.BadRequestError, "50014", "empty"),
        (Response(b"<html><body>bad gateway</body></html>", 502), cf.ServiceUnavailableError, None, None),
        (Response(b"", 503), cf.ServiceUnavailableError, None, None),
        (Response(b"", 404), cf.NotFoundError, None, None),
        (Response(b"not json", 401), cf.AuthenticationError, None, None),
        (Response(b"[]", 429), cf.RateLimitError, None, None),
    ],
)
def test_14_error_bodies_have_several_forms(
    server: StrictServer,
    response: Response,
    kind: type[cf.ServiceError],
    code: str | None,
    msg: str | None,
) -> None:
    with pytest.raises(kind) as caught:
        collect(server, "blocks", response)
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert (caught.value.msg or None) == msg or code is None
    assert caught.value.status == response.status
    assert caught.value.endpoint == "blocks"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"not json", b"[]", b'{"code":"0","msg":""}', b'{"code":"0","data":[{"data":', b'{"code":"0","data":"x"}'],
)
def test_14_success_status_with_an_error_code_is_an_error(server: StrictServer, body: bytes) -> None:
    with pytest.raises(cf.ResponseFormatError) as caught:
        collect(server, "blocks", Response(body))
    assert caught.value.endpoint == "blocks"


@pytest.mark.parametrize(
    ("wire", "neutral"),
    [("AlphaToBETA", "MainToZone"), ("BETAToAlpha", "ZoneToMain"), ("alphatobeta", "MainToZone")],
)
def test_names_of_a_deployment_are_normalized(server: StrictServer, wire: str, neutral: str) -> None:
    record = one(
        server,
        "cross_chain_transactions",
        txType=wire,
        alphaTxHash="0x1",
        alphaBlockHeight="2",
        alphaBlockTime="1700000000000",
        betaTxHash="0x3",
        betaBlockHeight="4",
        betaBlockTime="1700000001000",
    )
    assert record == cf.CrossChainTransaction(
        id="0xa",
        tx_type=neutral,
        main_tx_hash="0x1",
        main_block_height=2,
        main_block_time=datetime.fromtimestamp(1_700_000_000, UTC),
        zone_tx_hash="0x3",
        zone_block_height=4,
        zone_block_time=datetime.fromtimestamp(1_700_000_001, UTC),
    )


def test_every_attempt_is_signed_again(server: StrictServer) -> None:
    def fail(_: object) -> Response:
        time.sleep(0.002)  # A timestamp has milliseconds, and the wait before another attempt may be none.
        return error(503, "50001")

    server.on("blocks", fail, page_of("blocks", [{"height": "1"}]))
    with server.client(max_retries=2) as client:
        records = client.blocks().collect()
    first, second = server.requests
    assert first.target == second.target
    assert first.timestamp != second.timestamp
    assert first.signature != second.signature
    assert (records.report.requests, records.report.retries) == (2, 1)


def test_clock_is_corrected_once(server: StrictServer) -> None:
    with pytest.raises(cf.ClockSkewError) as caught:
        collect(server, "blocks", error(401, "50102"), max_retries=5)
    assert len(server.requests) <= 2
    assert not caught.value.retryable


def test_redirects_are_not_followed(server: StrictServer) -> None:
    with pytest.raises(cf.ServiceError) as caught:
        collect(server, "blocks", Response(b"", 302, {"Location": "/elsewhere"}))
    assert caught.value.status == 302
    assert len(server.requests) == 1


def test_empty_page_in_the_middle_is_not_the_end(server: StrictServer) -> None:
    """A throttle may come as code 0 with no data; that is never taken for the end of a list of three pages."""

    def page(number: int) -> Response:
        return page_of("blocks", [{"hash": f"0x{number}"}], totalPage="3", page=str(number), limit="1")

    pages = {"1": page(1), "2": page(2), "3": page(3)}
    seen: list[str] = []

    def script(request: Any) -> Response:
        number = request.query["page"]
        seen.append(number)
        return Response(envelope([])) if number == "2" and seen.count("2") == 1 else pages[number]

    server.on("blocks", script)
    with server.client(max_retries=3) as client:
        records = client.blocks(page_size=1).collect()
    assert [block.hash for block in records] == ["0x1", "0x2", "0x3"]
    assert seen.count("2") > 1


def test_json_of_every_string(server: StrictServer) -> None:
    text = 'a"b\\c\n\u2028 é 日本 😀 \x00'
    assert one(server, "tokens", tokenFullName=text).token_full_name == text
    escaped = json.dumps(
        {"code": "0", "data": [{"totalPage": "1", "tokenList": [{"token": text, "tokenContractAddress": "0xa"}]}]},
        ensure_ascii=False,
    ).encode()
    (record,) = collect(server, "tokens", Response(escaped))
    assert record.token == text
