"""The OpenAPI document: valid, complete, and obeyed by the local server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from requests.auth import AuthBase
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

import chainframe as cf
import reference_client
from chainframe.testing import LocalService
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from requests import PreparedRequest

PAYLOADS = ROOT / "tests" / "payloads"
CALLS = sorted(reference_client.ENDPOINTS)
EXAMPLES = 25
YEAR = timedelta(days=365)
# Checks that are left out, each with its reason; `conforms` takes the place of the first two.
EXCLUDED = {
    "negative_data_rejection": "some errors come with HTTP 200 and a code",
    "positive_data_acceptance": "a schema cannot say that a range must not be reversed",
    "missing_required_header": "the headers are those of the signature, which other tests check",
    "unsupported_method": "other methods are not declared, and have a test of their own",
}


class Signed(AuthBase):
    """Signs a request as a client in another language would."""

    def __init__(self, service: LocalService) -> None:
        self.service = service

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        prehash = f"{timestamp}GET{request.path_url}".encode()
        digest = hmac.new(self.service.secret_key.encode(), prehash, hashlib.sha256).digest()
        request.headers["SVC-ACCESS-KEY"] = self.service.api_key
        request.headers["SVC-ACCESS-SIGN"] = base64.b64encode(digest).decode()
        request.headers["SVC-ACCESS-PASSPHRASE"] = self.service.passphrase
        request.headers["SVC-ACCESS-TIMESTAMP"] = timestamp
        return request


def document_of(service: LocalService) -> dict[str, Any]:
    with urlopen(f"{service.url}/openapi.json") as response:
        assert response.headers["Content-Type"] == "application/json"
        document: dict[str, Any] = json.load(response)
    return document


@pytest.fixture(scope="module")
def running() -> Iterator[LocalService]:
    with LocalService(transactions=300) as service:
        yield service


@pytest.fixture(scope="module")
def document(running: LocalService) -> dict[str, Any]:
    return document_of(running)


@pytest.fixture(scope="module")
def schema(running: LocalService, document: dict[str, Any]) -> Any:
    closed = json.loads(json.dumps(document))
    for record in closed["components"]["schemas"].values():
        # Clients have to accept new members; the local server has none.
        record["additionalProperties"] = False
    loaded = schemathesis.openapi.from_dict(closed)
    loaded.config.update(base_url=running.url)
    loaded.config.generation.update(with_security_parameters=False)
    loaded.auth.set_from_requests(Signed(running))
    return loaded


def operation_of(schema: Any, call: str) -> Any:
    operations = (result.ok() for result in schema.get_all_operations())
    return next(each for each in operations if each.definition.raw["operationId"] == call)


def conforms(operation: Any, url: str) -> bool:
    """True if the document allows a request as it was sent. Undeclared parameters are ignored."""
    sent: dict[str, list[str]] = parse_qs(urlsplit(url).query, keep_blank_values=True)
    values: dict[str, Any] = {}
    for declared in operation.definition.raw["parameters"]:
        name, schema = declared["name"], declared["schema"]
        given = sent.get(name)
        if given is None:
            if declared["required"]:
                return False
            continue
        value: Any = ",".join(given).split(",") if schema["type"] == "array" else given[0]
        if schema["type"] == "integer" and re.fullmatch("[0-9]+", given[0]):
            value = int(given[0])
        if (len(given) > 1 and schema["type"] != "array") or not jsonschema_rs.is_valid(schema, value):
            return False
        values[name] = value
    for bounds in operation.definition.raw.get("x-ranges", []):
        start, end = (values.get(bounds[side]) for side in ("start", "end"))
        if start is not None and end is not None:
            too_long = bounds["maximum"] == "P1Y" and end - start > YEAR / timedelta(milliseconds=1)
            if Decimal(start) > Decimal(end) or too_long:
                return False
    return True


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_server_obeys_the_document(schema: Any, call: str, mode: GenerationMode) -> None:
    operation = operation_of(schema, call)
    excluded = [CHECKS.get_one(name) for name in EXCLUDED]
    accepted = rejected = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    def run(case: Any) -> None:
        nonlocal accepted, rejected
        response = case.call()
        case.validate_response(response, excluded_checks=excluded)
        is_accepted = response.json()["code"] == "0"
        assert is_accepted is conforms(operation, response.request.url), response.text
        accepted += is_accepted
        rejected += not is_accepted

    run()
    assert (accepted if mode is GenerationMode.POSITIVE else rejected) > EXAMPLES // 4


def test_document_is_valid_and_describes_every_call(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    operations = {path["get"]["operationId"]: path["get"] for path in document["paths"].values()}
    assert sorted(operations) == CALLS
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    assert operations["transactions"]["x-result-limit"] == 10_000
    assert operations["blocks"]["x-result-limit"] is None
    assert operations["token_transfers"]["x-paging"]["total"] == "totalTransfer"
    limit = next(each for each in operations["blocks"]["parameters"] if each["name"] == "limit")
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert document["x-error-codes"]["50011"] == {
        "description": "Too many requests.",
        "kind": "rate limit",
        "retryable": True,
        "statuses": [429, 200],
    }


@pytest.mark.parametrize("call", CALLS)
def test_members_of_recorded_responses_are_described(document: dict[str, Any], call: str) -> None:
    # The recorded responses do not depend on the declaration: they show a field that is missing there.
    data = json.loads((PAYLOADS / f"{call}.json").read_text(encoding="utf-8"))["data"]
    records = data[0][reference_client.LISTS[call]] if reference_client.ENDPOINTS[call]["page_size_max"] else data
    properties = document["components"]["schemas"][reference_client.ENDPOINTS[call]["record"]]["properties"]
    described = {name for wire, member in properties.items() for name in (wire, *member.get("x-other-names", []))}
    recorded = {name for record in records for name in record}
    assert recorded - described == set()
    absent = [
        wire for wire, member in properties.items() if recorded.isdisjoint({wire, *member.get("x-other-names", [])})
    ]
    assert absent == [], f"tests/payloads/{call}.json has no {absent}"


def test_command_prints_the_document_of_a_deployment() -> None:
    command = [sys.executable, "-m", "chainframe", "openapi", "--main", "alpha", "--zone", "beta", "--main-chain", "A"]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert printed[0] == printed[1]
    document = json.loads(printed[0])
    assert "/api/v5/alpha/beta/block/block-list" in document["paths"]
    with LocalService(transactions=0, deployment=cf.Deployment(main="alpha", zone="beta"), main_chain="A") as service:
        assert document_of(service) == document
        assert service.request_count == 0
