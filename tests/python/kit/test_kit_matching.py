"""Requests and values that the testing kit takes for equal, and its messages about those that it does not know."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService, make_records

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "0xAbCdEf" + "0" * 34
YEAR = timedelta(days=365)
TIME = datetime(2026, 1, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def service() -> Any:
    with LocalService(transactions=200) as running:
        yield running


def test_letter_case_of_addresses_hashes_and_chains_is_not_compared(service: LocalService) -> None:
    with service.client(main_chain="main") as client:
        client.address_transactions(ADDRESS).collect()
        with pytest.warns(cf.IncompleteResultWarning):
            client.transactions_by_hash(["0xAB", "0xCD"]).collect()
    for address in (ADDRESS, ADDRESS.lower(), ADDRESS.upper().replace("X", "x")):
        service.assert_requested("address_transactions", address=address)
    service.assert_requested("transactions_by_hash", tx_ids=["0xab", "0xcd"])
    chains: list[dict[str, Any]] = [
        {"chain": "MAIN"},
        {"chainShortName": "main"},
        {"chain": "Main", "address": ADDRESS},
    ]
    for given in chains:
        service.assert_requested("address_transactions", **given)
    service.assert_requested("address_transactions", times=0, chain="ZONE_CHAIN")
    service.assert_requested("address_transactions", times=0, address=ADDRESS[:-1] + "1")


def test_recording_is_replayed_in_another_letter_case(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "all")) as client:
        recorded = client.address_transactions(ADDRESS).collect()
    with cf.Client(cassette=Cassette(path, "none"), main_chain="main") as client:
        assert list(client.address_transactions(ADDRESS.lower()).collect()) == list(recorded)
    with LocalService(transactions=0, main_chain="Main") as serving, serving.client() as client:
        serving.load_cassette(path)
        assert list(client.address_transactions(ADDRESS.lower()).collect()) == list(recorded)


def miss(path: Path, call: str, options: dict[str, Any], **given: Any) -> str:
    cassette = Cassette(path, "none", **options)
    with cf.Client(cassette=cassette) as client, pytest.raises(cf.CassetteMissError) as caught:
        getattr(client, call)(**given).collect()
    assert len(cassette.missed) == 1
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("call", ["transactions", "cross_chain_transactions", "tokens"])
def test_miss_of_another_time_names_the_option_that_leaves_it_out(
    service: LocalService, tmp_path: Path, call: str
) -> None:
    path, times = tmp_path / "c.jsonl", {"start_time": TIME, "end_time": TIME + timedelta(days=3)}
    with service.client(cassette=Cassette(path, "all")) as client:
        getattr(client, call)(**times).collect()
    both = {name: time - timedelta(days=9) for name, time in times.items()}
    left_out = 'match_on=["-end_time", "-start_time"]', 'match_on=["-start_time", "-end_time"]'
    assert any(advice in miss(path, call, {}, **both) for advice in left_out)
    later = {**times, "end_time": TIME + timedelta(days=2)}
    for options in ({}, {"match_on": ["-start_time"]}):
        said = miss(path, call, options, **later)
        assert 'match_on=["-end_time"] replays it for any time' in said
        assert "no startTime" not in said
    with cf.Client(cassette=Cassette(path, "none", match_on=["-start_time", "-end_time"])) as client:
        getattr(client, call)(**both).collect()


def test_miss_of_another_value_names_no_time(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "all")) as client:
        client.blocks(max_items=2).collect()
    said = miss(path, "blocks", {}, max_items=3)
    assert "limit=2 instead of 3" in said
    assert "match_on" not in said


@pytest.mark.parametrize(
    ("match_on", "said"),
    [
        ([], "must name parameters; got []"),
        ((), "must name parameters; got []"),
        (["page", "-page"], 'names "page" both with and without "-"'),
    ],
)
def test_match_on_that_compares_nothing_is_refused(tmp_path: Path, match_on: Any, said: str) -> None:
    with pytest.raises(cf.ConfigError, match=r"^match_on ") as caught:
        Cassette(tmp_path / "c.jsonl", match_on=match_on)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "body", "text": "", "headers": {"a": 1}}, "headers: expected a string, got integer 1"),
        ({"kind": "body", "text": "", "headers": ["a"]}, "headers: expected an object of strings, got a list"),
        ({"kind": "body", "text": 5}, "text: expected a string, got integer 5"),
        ({"kind": "status", "status": "500"}, 'status: expected an integer from 0 to 65535, got string "500"'),
        ({"kind": "reset", "path": 3}, "path: expected a string, got integer 3"),
    ],
    ids=str,
)
def test_member_of_a_fault_of_another_type_is_named(service: LocalService, fault: Any, said: str) -> None:
    given: list[tuple[Any, str]] = [([fault], ""), ([{"kind": "reset"}, fault], "fault 2: ")]
    for faults, where in given:
        with pytest.raises(cf.ConfigError) as caught:
            service.faults = faults
        assert str(caught.value) == f"faults are invalid: {where}{said}"
    service.respond = lambda _: fault
    with service.client(max_retries=0) as client, pytest.raises(cf.ServiceUnavailableError):
        client.blocks().first()
    service.respond = None
    assert said in service.respond_errors[-1]


def test_member_of_a_quirk_of_another_type_is_named(service: LocalService) -> None:
    quirks: Any = [{"kind": "filter_ignored", "filter": 5}]
    with pytest.raises(cf.ConfigError, match="filter: expected a string, got 5"):
        service.quirks = quirks


RESPONSE = {
    "code": "0",
    "msg": "",
    "data": [{"page": "1", "limit": "50", "totalPage": "1", "data": [{"height": "7", "vendor": {}}]}],
}
ROWS = [{"height": 7}]


@pytest.mark.parametrize("data", [RESPONSE, ROWS], ids=["response", "rows"])
@pytest.mark.parametrize("form", [lambda data: data, json.dumps, lambda data: f" \n{json.dumps(data)}".encode()])
def test_response_and_records_are_taken_as_objects_and_as_json(data: Any, form: Any) -> None:
    made = make_records("blocks", form(data))
    assert [record.height for record in made] == [7]
    assert (made.report.complete, made.report.records) == (True, 1)
    with LocalService(transactions=0, data={"blocks": form(data)}) as loaded, loaded.client() as client:
        assert [record.height for record in client.blocks()] == [7]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", "data is not JSON: "),
        (b"x", "data is not JSON: "),
        (
            '{"code": "50001", "msg": "", "data": []}',
            "blocks: the response: the response is an error with code 50001",
        ),
        ({"code": "0", "data": [{"blockList": 5}]}, "blocks: the response: data[0]"),
        ("rows.txt", "rows.txt must be the directory of an export or end in "),
    ],
)
def test_json_that_is_no_response_is_named(data: Any, said: str) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        make_records("blocks", data)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_replaced_method_stays_in_derived_clients(service: LocalService) -> None:
    with service.client() as client:
        with mock.patch.object(client, "blocks", return_value=["patched"]) as patched:
            found: Any = client.with_options(strict=True).with_options(timeout=5.0).blocks(height=1)
            assert found == ["patched"]
        patched.assert_called_once_with(height=1)
        assert client.with_options(strict=True).blocks().first()


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode, base64.b32encode, base64.b16encode])
def test_encoded_credential_is_not_logged(service: LocalService, encode: Any) -> None:
    text = encode(b"user:" + service.secret_key.encode()).decode()
    request = urllib.request.Request(
        f"{service.url}/api/v5/main/zone/block/block-list?note={text}&limit=3", headers={"X-Copy": f"v={text}"}
    )
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request)
    logged = service.request_log[-1]
    assert text not in str(logged)
    assert logged["params"]["limit"] == "3"


def test_served_deployment_has_larger_pages_and_no_signatures() -> None:
    command = [
        sys.executable,
        "-m",
        "chainframe",
        "serve",
        "--transactions",
        "300",
        "--max-page-size",
        "100",
        "--no-signed",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        exported: dict[str, str] = {}
        for line in server.stdout:
            if line.startswith("#"):
                break
            name, _, value = line.removeprefix("export ").rstrip().partition("=")
            exported[name] = value.strip("'")
        try:
            deployment = json.loads(exported["CHAINFRAME_DEPLOYMENT"])
            assert (deployment["max_page_size"], deployment["signed"]) == (100, False)
            request = urllib.request.Request(
                f"{exported['CHAINFRAME_BASE_URL']}/api/v5/main/transaction/transaction-list?chainShortName=MAIN&limit=100",
                headers={"SVC-ACCESS-KEY": exported["CHAINFRAME_API_KEY"]},
            )
            with urllib.request.urlopen(request) as response:
                assert len(json.load(response)["data"][0]["transactionList"]) == 100
        finally:
            server.terminate()
