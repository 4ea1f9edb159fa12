"""The testing kit as suites use it: mistakes are not silent, and apps that make their own client are reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import chainframe as cf
from chainframe.testing import Call, Cassette, LocalService


@pytest.fixture
def service() -> Any:
    with LocalService(transactions=50) as running:
        yield running


def test_misspelt_parameter_of_an_assertion_is_refused(service: LocalService) -> None:
    with service.client() as client:
        client.blocks(height=4_300_000).collect()
    for names in ({"heigth": 5}, {"tx_ids": 5}, {"start_time": 5}):
        with pytest.raises(cf.ConfigError, match=f"blocks sends no parameter '{next(iter(names))}'"):
            service.assert_requested("blocks", times=0, **names)
        with pytest.raises(cf.ConfigError, match="height"):
            service.find_requests("blocks", **names)
    with pytest.raises(cf.ConfigError, match="did you mean 'height'"):
        service.find_requests(heigth=5)
    with pytest.raises(cf.ConfigError, match="page_size"):
        service.find_requests("logs", page_size=5)
    assert len(service.find_requests(height=4_300_000, limit=100, chain="ZONE_CHAIN")) == 1
    assert len(service.find_requests("blocks", start_height=None)) == 1


def test_arguments_are_asserted_as_the_call_takes_them(service: LocalService) -> None:
    time = datetime(2026, 1, 20, tzinfo=UTC)
    milliseconds = int(time.timestamp() * 1_000)
    with service.client() as client:
        hashes = [str(each.tx_id) for each in client.transactions(max_items=2).collect()]
        service.reset_request_log()
        client.tokens(start_time=time, end_time=time).collect()
        client.large_transactions(min_amount=Decimal("500.0")).collect()
        client.transactions_by_hash(hashes).collect()
        client.logs(hashes[0]).collect()
    sent: list[tuple[Call, dict[str, Any]]] = [
        *(("tokens", {name: time}) for name in ("start_time", "end_time")),
        ("tokens", {"start_time": milliseconds, "end_time": time.isoformat()}),
        ("tokens", {"start_time": time.astimezone(timezone(timedelta(hours=9)))}),
        ("tokens", {"startTime": milliseconds - 1, "endTime": time + timedelta(milliseconds=1)}),
        *(("large_transactions", {"min_amount": amount}) for amount in (500, "500", Decimal("5E+2"))),
        ("transactions_by_hash", {"tx_ids": hashes}),
        ("logs", {"tx_ids": bytes.fromhex(hashes[0][2:])}),
    ]
    for call, given in sent:
        service.assert_requested(call, **given)
    not_sent: list[tuple[Call, dict[str, Any]]] = [
        ("tokens", {"start_time": time + timedelta(seconds=1)}),
        ("tokens", {"startTime": milliseconds}),
        ("large_transactions", {"min_amount": 501}),
        ("transactions_by_hash", {"tx_ids": hashes[::-1]}),
    ]
    for call, given in not_sent:
        service.assert_requested(call, times=0, **given)


NAIVE = datetime.fromisoformat("2026-01-20")


@pytest.mark.parametrize("value", ["yesterday", "2026-01-20", True, {"height": 3}, object(), NAIVE, [None, False]])
def test_value_that_no_call_takes_is_refused_in_an_assertion(service: LocalService, value: object) -> None:
    with pytest.raises(cf.ConfigError, match="start_time must "):
        service.assert_requested("tokens", times=0, start_time=value)


@pytest.mark.parametrize("times", [True, -1, 1.0, "1"])
def test_number_of_requests_that_cannot_be_is_refused(service: LocalService, times: Any) -> None:
    with pytest.raises(cf.ConfigError, match="times must be a number of requests"):
        service.assert_requested("blocks", times=times)


def test_fault_that_was_replaced_before_it_applied_is_unused(service: LocalService) -> None:
    never: Any = {"kind": "reset", "path": "token-list"}
    with service.client() as client:
        service.faults = [never]
        # Replaced before any request: an override.
        service.faults = [never, {"kind": "delay", "seconds": 0.0}]
        client.blocks(max_items=1).collect()
        service.faults = []
        assert service.unused_faults == [never]
        service.faults = [{"kind": "delay", "seconds": 0.0}]
        client.blocks(max_items=1).collect()
        service.reset_request_log()
        service.faults = []
        assert service.unused_faults == [never]
        service.faults = [{"kind": "reset", "path": "by-transaction"}]
        client.blocks(max_items=1).collect()
        service.reset_request_log()
        service.faults = []
    assert len(service.unused_faults) == 2


def test_fault_for_no_endpoint_is_refused_and_unused_faults_are_listed(service: LocalService) -> None:
    with pytest.raises(cf.ConfigError, match="blok-list"):
        service.faults = [{"kind": "reset", "path": "blok-list"}]
    with pytest.raises(cf.ConfigError, match="blok-list"):
        LocalService(transactions=0, faults=[{"kind": "reset", "path": "blok-list"}])
    never: Any = {"kind": "status", "status": 500, "path": "token-list"}
    service.faults = [{"kind": "delay", "seconds": 0.0}, never, {"kind": "reset", "every": 9}]
    with service.client() as client:
        client.blocks(max_items=1).collect()
    assert service.unused_faults == [never, {"kind": "reset", "every": 9}]


def test_own_body_status_and_headers_are_served(service: LocalService) -> None:
    service.faults = [
        {"kind": "body", "status": 429, "text": "slow down", "headers": {"Retry-After": "0"}, "times": 1},
        {"kind": "body", "json": {"code": "0", "msg": "", "data": []}, "path": "token-list"},
    ]
    with service.client() as client:
        assert client.tokens().collect().report.retries >= 1
        assert len(client.blocks(max_items=3).collect()) == 3
    assert [entry["status"] for entry in service.request_log[:2]] == [429, 200]
    for invalid in ({"kind": "body"}, {"kind": "body", "text": "", "headers": {"a b": "c"}}):
        with pytest.raises(cf.ConfigError):
            service.faults = [invalid]  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("kind", "phase", "retryable"),
    [("refused", "connect", True), ("unknown_host", "connect", True), ("tls", "tls", False)],
)
def test_connection_that_is_not_made_has_its_phase(kind: Any, phase: str, *, retryable: bool) -> None:
    with LocalService(transactions=50, simulated=True, faults=[{"kind": kind, "times": 3}]) as service:
        client = service.client(max_retries=1)
        with pytest.raises(cf.TransportError) as caught:
            client.blocks().collect()
        assert (caught.value.phase, caught.value.retryable) == (phase, retryable)
        assert service.request_log[0]["status"] == 0
    with pytest.raises(cf.ConfigError, match="simulated=True"):
        LocalService(transactions=0, faults=[{"kind": kind}])


@pytest.mark.parametrize("simulated", [False, True])
def test_function_answers_requests(*, simulated: bool) -> None:
    asked = []

    def respond(request: Any) -> Any:
        asked.append((request["call"], request["params"].get("height"), request["headers"]["svc-access-key"]))
        if request["call"] == "blocks":
            page = {"page": "1", "limit": "100", "totalPage": "1", "data": [{"hash": "0xab", "height": "7"}]}
            return {"json": {"code": "0", "msg": "", "data": [page]}}
        return {"kind": "status", "status": 500} if request["call"] == "tokens" else None

    with LocalService(transactions=50, simulated=simulated, respond=respond) as service:
        client = service.client(max_retries=0)
        assert [block.hash for block in client.blocks(height=7)] == ["0xab"]
        assert client.transactions().first()
        with pytest.raises(cf.ServiceUnavailableError):
            client.tokens().collect()
        assert asked[0] == ("blocks", "7", "*")
        service.respond = lambda _: {"text": 1 / 0}
        with pytest.raises(cf.ServiceError, match="ZeroDivisionError"), mock.patch("sys.unraisablehook"):
            client.blocks().collect()
        service.respond = None
        assert len(client.blocks(max_items=2).collect()) == 2


def test_log_has_headers_without_secrets(service: LocalService) -> None:
    with service.client() as client:
        client.blocks(max_items=1).collect()
    headers = service.request_log[0]["headers"]
    assert headers["user-agent"].startswith("chainframe/")
    assert [headers[f"svc-access-{name}"] for name in ("key", "passphrase", "sign")] == ["*"] * 3
    assert headers["svc-access-timestamp"].endswith("Z")
    assert not {service.api_key, service.passphrase} & set(headers.values())


AUTOSPEC = """
{imports}
from unittest import mock
client = mock.create_autospec(cf.Client)
try:
    client.tokens(limit=4)
except TypeError:
    print("checked")
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import unittest.mock; import chainframe as cf",
        "import chainframe as cf; import unittest.mock; import chainframe.testing",
    ],
)
def test_arguments_of_an_autospec_are_checked_without_pytest(imports: str) -> None:
    run = [sys.executable, "-c", AUTOSPEC.format(imports=imports)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "checked\n"


def test_traceback_of_a_program_ends_at_its_own_line() -> None:
    client = "cf.Client(cassette=chainframe.testing.Cassette('none', mode='none'))"
    program = f"import chainframe as cf, chainframe.testing\n{client}.tokens(limit=4)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "did you mean 'max_items'" in done.stderr
    assert done.stderr.count("File ") == 1


def test_arguments_of_an_autospec_are_checked() -> None:
    client = mock.create_autospec(cf.Client)
    client.tokens(order_by="total_market_cap")
    client.return_value.token_transfers("0xa")
    with pytest.raises(TypeError):
        client.tokens(limit=4)
    with pytest.raises(TypeError):
        client.return_value.token_transfers()


def test_method_of_an_instance_can_be_patched(service: LocalService) -> None:
    with service.client() as client, service.client() as other:
        with mock.patch.object(client, "blocks", return_value=["patched"]) as patched:
            blocks: Any = client.blocks(height=3)
            assert blocks == ["patched"]
            patched.assert_called_once_with(height=3)
            assert len(other.blocks(max_items=2).collect()) == 2
        assert len(client.blocks(max_items=2).collect()) == 2
        for name in ("blokcs", "main_chain", "strict", "__class__"):
            with pytest.raises(AttributeError):
                setattr(client, name, 1)


def test_environment_of_a_service_reaches_clients_of_other_processes() -> None:
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", max_page_size=70)
    script = "import chainframe as cf; c = cf.Client(); print(c.deployment == eval(input()), len(c.blocks().collect()))"
    with LocalService(transactions=90, deployment=deployment, main_chain="A", zone_chain="B") as service:
        environment = {**os.environ, **service.env}
        done = subprocess.run(
            [sys.executable, "-c", script.replace("eval(", "eval('cf.' + ")],
            env=environment,
            input=repr(deployment),
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.split() == ["True", "90"]


@pytest.mark.parametrize("text", ["{", "[]", '{"main": 3}', '{"mian": "a"}', "null"])
def test_invalid_deployment_variable_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINFRAME_DEPLOYMENT", text)
    with pytest.raises((cf.ConfigError, TypeError)) as caught:
        cf.Client(base_url="http://127.0.0.1:1", api_key="a", secret_key="b", passphrase="c")
    assert "\n" not in str(caught.value)


def test_deployment_with_larger_pages_takes_fewer_requests() -> None:
    deployment = cf.Deployment(max_page_size=100)
    with LocalService(transactions=400, deployment=deployment) as service, service.client() as client:
        assert len(client.transactions().collect()) == 400
        assert service.request_log[0]["params"]["limit"] == "100"
        with pytest.raises(cf.InvalidParameterError, match="between 1 and 100"):
            client.transactions(page_size=101)
    for size in (0, 1_000_001, 2_000_000_000):
        with pytest.raises(cf.ConfigError, match=f"max_page_size must be between 1 and 1000000; got {size}"):
            cf.Deployment(max_page_size=size)


def test_deployment_without_signatures_needs_the_key_alone() -> None:
    deployment = cf.Deployment(signed=False)
    with LocalService(transactions=50, deployment=deployment) as service:
        with cf.Client(base_url=service.url, api_key=service.api_key, deployment=deployment) as client:
            assert len(client.blocks(max_items=3).collect()) == 3
        names = {name for name in service.request_log[0]["headers"] if name.startswith("svc-")}
        assert names == {"svc-access-key"}
        with (
            cf.Client(base_url=service.url, api_key="other", deployment=deployment) as client,
            pytest.raises(cf.AuthenticationError),
        ):
            client.blocks().collect()
        with service.client() as client:
            assert client.tokens().first()


def test_recorded_body_loads_as_a_dict_with_members_of_the_vendor() -> None:
    row = {"txId": "0xa", "height": "3", "amount": "1.5", "challengeStatus": "1"}
    body = {"code": "0", "msg": "", "data": [{"page": "1", "totalPage": "1", "transactionList": [row], "more": 1}]}
    with LocalService(transactions=0) as service, service.client() as client:
        for data in (body, [row], json.loads(json.dumps(body))):
            service.load("transactions", data)
            (record,) = client.transactions().collect()
            assert (record.tx_id, record.height, record.amount) == ("0xa", 3, Decimal("1.5"))
        for misspelt in (
            {**row, "blokHash": "0x1"},
            {"tx_id": "0xa", "hight": 3},
            {"tx_id": "0xa", "challengeStatus": 1},
        ):
            with pytest.raises(cf.ConfigError, match="unknown field"):
                service.load("transactions", [misspelt])
        with pytest.raises(cf.ConfigError, match="data"):
            service.load("transactions", {"code": "0"})


def test_every_default_service_has_the_same_world() -> None:
    hashes = []
    for simulated in (False, True, False):
        with LocalService(simulated=simulated) as service, service.client() as client:
            hashes.append([block.hash for block in client.blocks(max_items=3)])
    assert hashes[0] == hashes[1] == hashes[2]
    with LocalService(seed=8) as service, service.client() as client:
        assert [block.hash for block in client.blocks(max_items=3)] != hashes[0]


def cassette_client(service: LocalService, path: Path, mode: Any, **options: Any) -> cf.Client:
    return service.client(cassette=Cassette(path, mode=mode, **options))


def test_recording_is_replayed_for_a_time_that_is_not_compared(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with cassette_client(service, path, "all") as client:
        recorded = client.tokens(start_time="2025-06-01T00:00:00Z", end_time="2025-12-01T00:00:00Z").collect()
    later: dict[str, Any] = {"start_time": "2027-06-01T00:00:00Z", "end_time": "2027-12-01T00:00:00Z"}
    with cassette_client(service, path, "none") as client, pytest.raises(cf.CassetteMissError):
        client.tokens(**later).collect()
    left_out = ["-start_time", "-end_time"]
    with cassette_client(service, path, "none", match_on=left_out) as client:
        replayed = client.tokens(**later).collect()
    assert list(replayed) == list(recorded)
    assert len(replayed) > 0
    assert replayed.report.complete
    with cassette_client(service, path, "none", match_on=["page", "chain"]) as client:
        assert len(client.tokens(**later).collect()) == len(recorded)
    with pytest.raises(cf.ConfigError, match="match_on"):
        Cassette(path, match_on=["-start_tiem"])


def test_scrub_replaces_own_data_before_it_is_written(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client() as client:
        customer = next(record.input for record in client.transactions(max_items=20) if record.input)
    alias = "0x" + "c0" * 20

    def scrub(text: str) -> str:
        return text.replace(customer, alias)

    with cassette_client(service, path, "all", scrub=scrub) as client:
        recorded = client.address_transactions(customer).collect()
    content = path.read_text(encoding="utf-8")
    assert customer not in content
    assert alias in content
    for address in (customer, alias):
        with cassette_client(service, path, "none", scrub=scrub) as client:
            replayed = client.address_transactions(address).collect()
        assert [record.tx_id for record in replayed] == [record.tx_id for record in recorded]
        assert replayed.report.dropped == 0
    for broken in (lambda _: 1 / 0, lambda _: None):
        with (
            cassette_client(service, tmp_path / "d.jsonl", "all", scrub=broken) as client,
            pytest.raises(cf.CassetteError),
        ):
            client.blocks(max_items=1).collect()
    with pytest.raises(cf.ConfigError, match="scrub"):
        Cassette(path, scrub="text")  # type: ignore[arg-type]


def test_rewrite_leaves_no_stale_recording(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with cassette_client(service, path, "all") as client:
        client.blocks(max_items=5).collect()
        client.blocks(height=4_300_000).collect()
    path.write_text(path.read_text().replace('{"method"', '{"note":"kept","method"'))
    with cassette_client(service, path, "rewrite") as client:
        before = path.read_bytes()
        client.blocks(max_items=6).collect()
        client.blocks(height=4_300_000).collect()
        assert path.read_bytes() != before
    interactions = Cassette(path, mode="none").interactions
    assert [(one["params"].get("limit"), one["note"]) for one in interactions] == [("6", None), ("100", "kept")]


def test_each_record_of_a_recording_has_a_line(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with cassette_client(service, path, "all") as client:
        recorded = client.blocks(max_items=20).collect()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum('"blockTime"' in line or '"height"' in line for line in lines) >= 20
    assert max(map(len, lines)) < 700
    with cassette_client(service, path, "none") as client:
        assert client.blocks(max_items=20).collect().to_dicts() == recorded.to_dicts()
    command = [sys.executable, "-m", "chainframe", "cassette", "show", str(path)]
    shown = subprocess.run([*command, "--body"], capture_output=True, text=True, check=True).stdout
    assert str(recorded[0].hash) in shown
    assert str(recorded[0].hash) not in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    one, other = (
        subprocess.run([*command, "--body", "--only", number], capture_output=True, text=True, check=False)
        for number in ("1", "2")
    )
    assert (one.returncode, other.returncode) == (0, 2)
    assert str(recorded[0].hash) in one.stdout
    assert other.stderr == "chainframe: --only must be at most 1, the number of interactions; got 2\n"


def test_used_up_recording_names_the_option(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with cassette_client(service, path, "all") as client:
        client.blocks(height=4_300_000).collect()
    with cassette_client(service, path, "none") as client:
        client.blocks(height=4_300_000).collect()
        with pytest.raises(cf.CassetteMissError, match="allow_playback_repeats=True"):
            client.blocks(height=4_300_000).collect()
