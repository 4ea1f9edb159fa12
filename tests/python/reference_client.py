"""A client of the local service on the standard library alone: the reference for the results of chainframe."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from chainframe import _native
from repository import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe.testing import LocalService

DECLARATION: dict[str, list[dict[str, Any]]] = json.loads(_native._declaration())
ENDPOINTS = {endpoint["name"]: endpoint for endpoint in DECLARATION["endpoints"]}
RECORDS = {record["name"]: record for record in DECLARATION["records"]}
PAGED = [call for call, endpoint in ENDPOINTS.items() if endpoint["page_size_max"]]
WITH_HEIGHTS = [call for call in PAGED if RECORDS[ENDPOINTS[call]["record"]]["roles"]["height"]]
# Members of a page, by the API's document.
LISTS = {
    "tokens": "tokenList",
    "token_transfers": "transactionList",
    "cross_chain_transactions": "data",
    "blocks": "data",
    "address_transactions": "transactionList",
    "large_transactions": "transactionList",
    "transactions": "transactionList",
}
TOTALS = {"token_transfers": "totalTransfer", "cross_chain_transactions": "total", "blocks": "total"}


def required(call: str) -> list[dict[str, Any]]:
    """Parameters that the call must be given."""
    return [param for param in ENDPOINTS[call]["params"] if param["required"]]


def get(service: LocalService, call: str, **parameters: str) -> list[dict[str, Any]]:
    """Return the `data` of one response."""
    endpoint = ENDPOINTS[call]
    chain = service.zone_chain if endpoint["chain"] == "zone" else service.main_chain
    path = endpoint["path"].replace("{main}", "main").replace("{zone}", "zone")
    target = f"{path}?{urlencode({'chainShortName': chain, **parameters})}"
    timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    digest = hmac.new(service.secret_key.encode(), f"{timestamp}GET{target}".encode(), hashlib.sha256).digest()
    headers = {
        "SVC-ACCESS-KEY": service.api_key,
        "SVC-ACCESS-SIGN": base64.b64encode(digest).decode(),
        "SVC-ACCESS-PASSPHRASE": service.passphrase,
        "SVC-ACCESS-TIMESTAMP": timestamp,
    }
    with urlopen(Request(service.url + target, headers=headers)) as response:
        body = json.load(response)
    assert body["code"] == "0", body
    data: list[dict[str, Any]] = body["data"]
    return data


def whole_list(service: LocalService, call: str, **parameters: str) -> list[dict[str, Any]]:
    """Every record of a paged list, as JSON."""
    rows: list[dict[str, Any]] = []
    size = ENDPOINTS[call]["page_size_max"]
    for number in range(1, 1_000):
        data = get(service, call, page=str(number), limit=str(size), **parameters)
        page = data[0] if data else {}
        rows += page.get(row_of(LISTS, call, "LISTS of reference_client.py"), [])
        if number >= int(page.get("totalPage") or 0):
            return rows
    raise AssertionError("the list does not end")


def as_record(record_type: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the expected `to_dict()` of the record for that JSON."""
    return {field["name"]: _value(field, row) for field in RECORDS[record_type]["fields"]}


def as_records(record_type: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [as_record(record_type, row) for row in rows]


def _value(field: dict[str, Any], row: dict[str, Any]) -> object:
    wires = [wire.replace("{main}", "main").replace("{zone}", "zone") for wire in field["wire"]]
    value = next((row[wire] for wire in wires if wire in row), None)
    if value is None or field["python"] in {"str", "list[str]"}:
        return value
    if value == "":
        return None
    match field["python"]:
        case "bool":
            return value is True or value == "true"
        case "int":
            return int(Decimal(value))
        case "Decimal":
            return Decimal(value)
        case "datetime":
            return datetime.fromtimestamp(int(value) / 1_000, UTC)
        case other:
            raise AssertionError(other)
