"""Recorded responses of tests/payloads through the whole client; the Rust tests read them too."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import Cassette, LocalService
from client.test_error_codes import CASES
from conftest import Sample
from repository import ROOT, row_of

PAYLOADS = ROOT / "tests" / "payloads"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PAYLOADS / "expected.json").read_text(encoding="utf-8"))
ERRORS = [json.loads(line) for line in (PAYLOADS / "errors.jsonl").read_text(encoding="utf-8").splitlines()]


def cassette(file: str, sample: Sample, folder: Path) -> Cassette:
    """A cassette with this payload as the response of the call that its name begins with."""
    call = file.partition(".")[0]
    endpoint = reference_client.ENDPOINTS[call]
    params = {"chainShortName": "ZONE_CHAIN" if endpoint["chain"] == "zone" else "MAIN"}
    if endpoint["page_size_max"]:
        params |= {"limit": str(endpoint["page_size_max"]), "page": "1"}
    given = {"token_contract_address": sample.token, "address": sample.address, "tx_ids": ",".join(sample.tx_ids)}
    params |= {
        param["wire"]: row_of(given, param["name"], "cassette() of test_payloads.py")
        for param in endpoint["params"]
        if param["required"]
    }
    path = endpoint["path"].format(main="main", zone="zone")
    body = (PAYLOADS / file).read_text(encoding="utf-8")
    line = {"method": "GET", "path": path, "params": params, "status": 200, "text": body}
    # An empty list is requested twice.
    (folder / file).write_text("\n".join([json.dumps(line)] * 2), encoding="utf-8")
    return Cassette(folder / file, mode="none")


def plain(value: object, expected: object) -> object:
    """A value as the table of what is expected has it."""
    match value:
        case Decimal():
            return expected if isinstance(expected, str) and Decimal(expected) == value else str(value)
        case datetime():
            return round(value.timestamp() * 1_000)
        case int() if isinstance(expected, str):
            return str(value)
        case _:
            return value


@pytest.mark.parametrize("file", EXPECTED)
def test_response_decodes_to_the_expected_records(file: str, tmp_path: Path) -> None:
    wanted = EXPECTED[file]
    hashes = tuple(record["tx_id"] for record in wanted.get("records", []) if record.get("tx_id")) or ("0xa",)
    # The arguments are those of the first record.
    first = (wanted.get("records") or [{}])[0]
    token = first.get("token_contract_address") or "0xa"
    address = first.get("from_address") or "0xb"
    sample = Sample(token=token, address=address, height=0, tx_ids=hashes[:1] if file.startswith("logs") else hashes)
    with cf.Client(cassette=cassette(file, sample, tmp_path), max_retries=0) as client:
        pages = sample.query(client, file.partition(".")[0]).pages()
        if "path" in wanted:
            with pytest.raises(cf.ResponseFormatError) as caught:
                next(pages)
            assert caught.value.path == wanted["path"]
            return
        page = next(pages)
    assert len(page.records) == len(wanted["records"])
    for record, expected in zip(page.records, wanted["records"], strict=True):
        values = record.to_dict()
        assert {name: plain(values[name], value) for name, value in expected.items()} == expected
    assert page.chain_short_name == wanted.get("chain_short_name", page.chain_short_name)
    assert page.total == wanted.get("total", page.total)


@pytest.mark.parametrize("call", reference_client.ENDPOINTS)
def test_local_service_serves_recorded_responses(call: str) -> None:
    wanted = row_of(EXPECTED, f"{call}.json", "tests/payloads/expected.json")["records"]
    with LocalService(transactions=0, data={call: PAYLOADS / f"{call}.json"}) as service, service.client() as client:
        hashes = tuple(dict.fromkeys(record.get("tx_id") for record in wanted))
        first = wanted[0]
        sample = Sample(first.get("token_contract_address"), first.get("from_address"), 0, hashes)
        page = next(sample.query(client, call).pages())
    values = [record.to_dict() for record in page.records]
    assert [
        {name: plain(value, row_of(row, name, f"{call}.json of expected.json")) for name, value in record.items()}
        for record, row in zip(values, wanted, strict=True)
    ] == wanted


@pytest.mark.parametrize(("status", "code", "kind"), [case[:3] for case in CASES])
def test_recorded_error_raises_its_class(status: int, code: str, kind: type[cf.ServiceError], tmp_path: Path) -> None:
    lines = [line for line in ERRORS if line["params"]["height"] == code and line["status"] == status]
    assert len(lines) == 1
    (tmp_path / "error.jsonl").write_text(json.dumps(lines[0]), encoding="utf-8")
    with cf.Client(cassette=Cassette(tmp_path / "error.jsonl", mode="none")) as client, pytest.raises(kind) as caught:
        client.blocks(height=int(code)).collect()
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.code) == (status, code)


def test_every_known_error_code_has_a_recording() -> None:
    recorded = Counter((line["status"], line["params"]["height"]) for line in ERRORS)
    assert {case[:2] for case in CASES} <= set(recorded)
    assert max(recorded.values()) == 1
    without_code = [line for line in ERRORS if len(line["params"]["height"]) < 5]
    assert len(without_code) > 4


def test_error_without_a_code_is_classified_by_status() -> None:
    kinds = {401: cf.AuthenticationError, 402: cf.PermissionDeniedError, 404: cf.NotFoundError, 429: cf.RateLimitError}
    without_code = [line for line in ERRORS if len(line["params"]["height"]) < 5]
    with cf.Client(cassette=Cassette(PAYLOADS / "errors.jsonl", mode="none"), zone_chain="ZONE_CHAIN") as client:
        for line in without_code:
            with pytest.raises(kinds.get(line["status"], cf.ServiceUnavailableError)) as caught:
                client.blocks(height=int(line["params"]["height"])).collect()
            assert caught.value.code is None
