"""Arguments of the calls: validation before a request, and the parameters sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import pytest

import chainframe as cf
import reference_client
from strict_server import Request, Response, StrictServer, page_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from chainframe.testing import LocalService

HASH = "0x" + "1" * 64

# Rejected arguments: the call, the parameter of the error, and the limit in the message.
REJECTED: list[tuple[Callable[[cf.Client], object], str, str]] = [
    (lambda c: c.tokens(page_size=51), "page_size", "50"),
    (lambda c: c.tokens(page_size=0), "page_size", "1"),
    (lambda c: c.tokens(page_size=-1), "page_size", "1"),
    (lambda c: c.blocks(page_size=101), "page_size", "100"),
    (lambda c: c.cross_chain_transactions(page_size=101), "page_size", "100"),
    (lambda c: c.token_transfers("0xa", page_size=51), "page_size", "50"),
    (lambda c: c.address_transactions("0xa", page_size=51), "page_size", "50"),
    (lambda c: c.large_transactions(page_size=51), "page_size", "50"),
    (lambda c: c.transactions(page_size=51), "page_size", "50"),
    (lambda c: c.tokens(max_items=-1), "max_items", "0"),
    (lambda c: c.tokens(chain=""), "chain", "empty"),
    (lambda c: c.tokens(protocol_type="token_404"), "protocol_type", "token_1155"),  # type: ignore[arg-type]
    (lambda c: c.tokens(order_by="price"), "order_by", "totalMarketCap"),  # type: ignore[arg-type]
    (lambda c: c.tokens(start_time=datetime(2026, 1, 1)), "start_time", "naive"),  # noqa: DTZ001
    (lambda c: c.tokens(end_time="2026-01-01T00:00:00"), "end_time", "offset"),
    (lambda c: c.tokens(start_time="yesterday"), "start_time", "ISO 8601"),
    (lambda c: c.tokens(start_time=2_000_000_000_000, end_time=1_000_000_000_000), "start_time", "end_time"),
    (lambda c: c.tokens(token_contract_address=""), "token_contract_address", "empty"),
    (lambda c: c.token_transfers(""), "token_contract_address", "is required and must not be empty"),
    (lambda c: c.token_transfers("0xa", min_amount="ten"), "min_amount", "number"),
    (lambda c: c.token_transfers("0xa", min_amount=-1), "min_amount", "0"),
    (lambda c: c.token_transfers("0xa", max_amount=Decimal("NaN")), "max_amount", "number"),
    (lambda c: c.token_transfers("0xa", min_amount=0.1), "min_amount", "float"),  # type: ignore[arg-type]
    (lambda c: c.token_transfers("0xa", min_amount=2, max_amount=1), "min_amount", "max_amount"),
    (lambda c: c.large_transactions(min_amount=99), "min_amount", "100"),
    (lambda c: c.large_transactions(min_amount=Decimal("99.999999999999999999")), "min_amount", "100"),
    (lambda c: c.large_transactions(min_amount="99"), "min_amount", "100"),
    (lambda c: c.blocks(height=-1), "height", "0"),
    (lambda c: c.blocks(height=2**63), "height", "2^63-1"),
    (lambda c: c.cross_chain_transactions(start_height=2, end_height=1), "start_height", "end_height"),
    (lambda c: c.address_transactions("0xa", start_height=2, end_height=1), "start_height", "end_height"),
    (lambda c: c.transactions(start_height=2, end_height=1), "start_height", "end_height"),
    (lambda c: c.transactions(end_height=2), "start_height", "required with end_height"),
    (lambda c: c.transactions(height=1, start_height=1, end_height=2), "height", "start_height"),
    (lambda c: c.address_transactions("0xa", direction="both"), "direction", "from"),  # type: ignore[arg-type]
    (lambda c: c.address_transactions(""), "address", "empty"),
    (lambda c: c.transactions_by_hash([HASH, ""]), "tx_ids[1]", "hash"),
    (lambda c: c.transactions_by_hash(f"{HASH},{HASH}"), "tx_ids[0]", "list"),
    (lambda c: c.logs(""), "tx_ids[0]", "hash"),
    (lambda c: c.logs([]), "tx_ids", "must not be empty"),
    (lambda c: c.transactions_by_hash(iter(())), "tx_ids", "must not be empty"),
    (lambda c: c.token_transfers("0xa").batches(batch_size=0), "batch_size", "1"),
    (lambda c: c.token_transfers(None), "token_contract_address", "required"),  # type: ignore[arg-type]
    (lambda c: c.logs(3), "tx_ids", "list"),  # type: ignore[arg-type]
    (lambda c: c.blocks(height=True), "height", "bool"),
    (lambda c: c.blocks(height=10**5000), "height", "integer"),
    (lambda c: c.blocks(max_items=2**63), "max_items", "64-bit integer"),
    (lambda c: c.blocks(chain="\ud800"), "chain", "Unicode"),
    (lambda c: c.blocks(height="\ud800"), "height", "Unicode"),  # type: ignore[arg-type]
    (lambda c: c.logs(["\ud800"]), "tx_ids[0]", "Unicode"),
    (lambda c: c.resume("\ud800"), "cursor", "Unicode"),
    (lambda c: c.blocks().batches(batch_size=10**5000), "batch_size", "1"),
    (lambda c: c.blocks(page_size=1.5), "page_size", "integer"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(REJECTED)))
def test_invalid_argument_is_rejected_before_a_request(service: LocalService, client: cf.Client, number: int) -> None:
    call, parameter, limit = REJECTED[number]
    before = service.request_count
    with pytest.raises(cf.InvalidParameterError) as caught:
        call(client)
    message = str(caught.value)
    assert caught.value.parameter == parameter
    assert message.startswith(parameter)
    assert limit in message
    assert isinstance(caught.value, ValueError)
    assert service.request_count == before


def test_all_but_the_first_argument_are_keyword_only(client: cf.Client) -> None:
    with pytest.raises(TypeError):
        client.tokens("token_20")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.token_transfers("0xa", 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.token_transfers()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        client.blocks(hight=1)  # type: ignore[call-arg]


def sent(server: StrictServer, call: str, run: Callable[[cf.Client], cf.Query[Any]]) -> dict[str, str]:
    """The parameters of the one request that this query makes, less those that every request of a list has."""
    server.on(call, page_of(call, []))
    with server.client() as client:
        run(client).collect()
    assert len(server.requests) == 1
    return {k: v for k, v in server.requests[0].query.items() if k not in {"chainShortName", "page", "limit"}}


ODD = [
    "a+b",
    "a&b=c",
    "100%",
    "a/b?c#d",
    "é",
    "日本",
    "😀",
    'a"b',
    "{target}",
    "a~b",
    "%2C",
    "..",
    "\\",
]


@pytest.mark.parametrize("text", ODD)
def test_special_characters_are_sent_unchanged(server: StrictServer, text: str) -> None:
    assert sent(server, "token_transfers", lambda c: c.token_transfers(text)) == {"tokenContractAddress": text}


FOREIGN = {
    "0xa\n": "U+000A",
    " 0xa": "U+0020",
    "0x a": "U+0020",
    "0xa\t": "U+0009",
    "0xa\x00": "U+0000",
    "0xa\x85": "U+0085",
    "0xa\xa0": "U+00A0",
    "0xa\u3000": "U+3000",
    "\ufeff0xa": "U+FEFF",
    "0x\u200ba": "U+200B",
    "0xa\u2060": "U+2060",
    "0xa\u00ad": "U+00AD",
    "0xa\u202e": "U+202E",
    "0xa\u2028": "U+2028",
    "0xa\ufe0f": "U+FE0F",
    "0xa\U000e0020": "U+E0020",
    "0xa\u3164": "U+3164",
    "0xa,": "a comma",
    ",0xa": "a comma",
    "0xa,0xb": "a comma",
}
ADDRESSES: dict[str, Callable[[cf.Client, str], cf.Query[Any]]] = {
    "token_contract_address": lambda client, text: client.token_transfers(text),
    "token_contract_address of tokens": lambda client, text: client.tokens(token_contract_address=text),
    "address": lambda client, text: client.address_transactions(text),
    "tx_id": lambda client, text: client.cross_chain_transactions(tx_id=text),
    "address of cross": lambda client, text: client.cross_chain_transactions(address=text),
    "from_address": lambda client, text: client.cross_chain_transactions(from_address=text),
    "to_address": lambda client, text: client.cross_chain_transactions(to_address=text),
    "block_hash": lambda client, text: client.transactions(block_hash=text),
    "tx_ids[0]": lambda client, text: client.logs(text),
    "tx_ids[1]": lambda client, text: client.transactions_by_hash(["0xb", text]),
}


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize("name", ADDRESSES)
def test_character_that_no_address_has_is_named_and_nothing_is_sent(server: StrictServer, name: str, text: str) -> None:
    with server.client() as client, pytest.raises(cf.InvalidParameterError) as raised:
        ADDRESSES[name](client, text)
    message = str(raised.value)
    assert message.startswith(name.partition(" of ")[0] + " must be one")
    assert FOREIGN[text] in message
    assert message.isprintable()
    assert server.requests == []


def test_hashes_are_sent_in_one_parameter(server: StrictServer) -> None:
    server.on("transactions_by_hash", reversed_rows)
    with server.client() as client:
        records = client.transactions_by_hash(["0xa", "0xb+c", "0xd&e"]).collect()
    assert server.requests[0].query["txId"] == "0xa,0xb+c,0xd&e"
    assert [record.tx_id for record in records] == ["0xa", "0xb+c", "0xd&e"]


def reversed_rows(request: Request) -> Response:
    return rows_of("transactions_by_hash", [{"txId": tx_id} for tx_id in request.query["txId"].split(",")[::-1]])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Decimal("0.150851832900380503"), "0.150851832900380503"),
        (Decimal("1E+3"), "1000"),
        (Decimal("2.625E-6"), "0.000002625"),
        (2**70, str(2**70)),
        ("0.10", "0.10"),
        (0, "0"),
    ],
)
def test_amounts_are_sent_to_the_last_digit(server: StrictServer, given: Decimal | int | str, text: str) -> None:
    parameters = sent(server, "token_transfers", lambda c: c.token_transfers("0xa", min_amount=given))
    assert Decimal(parameters["minAmount"]) == Decimal(text)
    assert "e" not in parameters["minAmount"].lower()


NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)


@pytest.mark.parametrize(
    "given",
    [
        NOON,
        NOON.astimezone(timezone(timedelta(hours=5, minutes=30))),
        "2026-01-31T12:00:00.250Z",
        "2026-01-31T13:00:00.250+01:00",
        1_769_860_800_250,
    ],
)
def test_times_are_inclusive_milliseconds(server: StrictServer, given: datetime | str | int) -> None:
    # The API excludes both ends, so the client requests one millisecond more at each.
    start = sent(server, "tokens", lambda c: c.tokens(start_time=given, end_time=given))
    assert start == {"startTime": "1769860800249", "endTime": "1769860800251"}


def test_omitted_arguments_are_not_sent(server: StrictServer) -> None:
    assert sent(server, "cross_chain_transactions", lambda c: c.cross_chain_transactions()) == {}
    query = server.requests[0].query
    assert query == {"chainShortName": "BETA_X", "page": "1", "limit": "100"}


def test_every_parameter_is_sent_under_its_wire_name(server: StrictServer) -> None:
    everything = sent(
        server,
        "cross_chain_transactions",
        lambda c: c.cross_chain_transactions(
            tx_id="0x1",
            start_height=2,
            end_height=3,
            address="0x4",
            from_address="0x5",
            to_address="0x6",
            token_contract_address="0x7",
        ),
    )
    assert everything == {
        "txid": "0x1",
        "startBlockHeight": "2",
        "endBlockHeight": "3",
        "address": "0x4",
        "from": "0x5",
        "to": "0x6",
        "tokenContractAddress": "0x7",
    }


def test_chain_argument_overrides_the_client(service: LocalService, client: cf.Client) -> None:
    before = len(service.request_log)
    records = client.tokens(chain=service.main_chain.lower()).collect()
    assert list(records) == list(client.tokens().collect())
    chains = [dict(parse_qsl(entry["query"]))["chainShortName"] for entry in service.request_log[before:]]
    assert chains == sorted(chains, reverse=True)
    assert set(chains) == {service.main_chain.lower(), service.main_chain}


def test_range_over_a_year_is_requested_by_year(service: LocalService, client: cf.Client) -> None:
    everything = reference_client.as_records("Token", reference_client.whole_list(service, "tokens"))
    before = service.request_count
    records = client.tokens(start_time="2000-01-01T00:00:00Z", end_time="2040-01-01T00:00:00Z").collect()
    key = lambda record: str(sorted(record.items(), key=str))  # noqa: E731
    assert sorted((record.to_dict() for record in records), key=key) == sorted(everything, key=key)
    assert len(everything) > 0
    assert service.request_count >= before + 40
