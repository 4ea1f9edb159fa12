"""Arguments of the testing kit that are refused, and what its request log hides."""

import errno
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import chainframe as cf
from chainframe._native import _LocalService
from chainframe.testing import Cassette, LocalService

CREDENTIAL_LENGTH = 20


@pytest.fixture(scope="module")
def service() -> Any:
    with LocalService(transactions=50) as running:
        yield running


def test_native_service_without_a_setting_names_it() -> None:
    native: Any = _LocalService
    with pytest.raises(TypeError, match="missing argument 'simulated'"):
        native()


INTEGERS = ("transactions", "seed", "growth", "port", "max_result_window")
NUMBERS = ("rate_limit", "growth_rate")
PAIRS = ("reorg", "late", "pending")
BOOLS = [
    *[{name: True} for name in (*INTEGERS, *NUMBERS)],
    *[{name: pair} for name in PAIRS for pair in ((True, 2), (1, True))],
]


def _service(setting: dict[str, Any]) -> LocalService:
    settings: dict[str, Any] = {"transactions": 10, **setting}
    return LocalService(**settings)


@pytest.mark.parametrize("setting", [*BOOLS, *[{name: "x"} for name in (*INTEGERS, *NUMBERS, *PAIRS)]], ids=str)
def test_setting_of_a_service_that_is_no_number_is_refused_with_its_value(setting: dict[str, Any]) -> None:
    ((name, value),) = setting.items()
    with pytest.raises(cf.ConfigError, match=rf"^{name} must be .*; got ") as caught:
        _service(setting)
    assert str(caught.value).endswith(repr(value))


@pytest.mark.parametrize(
    "setting",
    [
        {"deployment": "x"},
        {"deployment": {}},
        {"simulated": 1},
        {"simulated": None},
        {"data": []},
        {"data": "blocks"},
        {"faults": ""},
        {"faults": {"kind": "reset"}},
        {"quirks": "page_ignored"},
        {"quirks": {"kind": "page_ignored"}},
        {"main_chain": " "},
        {"zone_chain": "\t"},
        {"respond": 3},
        {"compression": True},
        {"db": False},
    ],
    ids=str,
)
def test_setting_of_a_service_of_another_kind_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(cf.ConfigError, match=next(iter(setting))) as caught:
        _service(setting)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["growth", "rate_limit", "clock_skew", "reorg", "late", "pending"])
def test_bool_is_refused_while_a_service_runs(service: LocalService, name: str) -> None:
    for value in (True, (True, 1), (1, True)):
        if isinstance(value, tuple) == (name in PAIRS):
            with pytest.raises(cf.ConfigError, match=f"^{name} "):
                setattr(service, name, value)


@pytest.mark.parametrize("name", ["max_page_size", "result_window", "log_window"])
@pytest.mark.parametrize("value", [True, False, "5", 1.0])
def test_limit_of_a_deployment_is_an_integer(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=rf"^{name} must be an integer .*; got {value!r}$"):
        cf.Deployment(**{name: value})


def test_numbers_of_a_client_are_no_bools(service: LocalService) -> None:
    for name in ("timeout", "deadline", "max_retries", "rate_limit", "max_requests", "concurrency"):
        with pytest.raises(cf.ConfigError, match=f"^{name} must be .*; got True$"):
            service.client(**{name: True})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, 3, None, b"x"])
def test_value_of_a_secret_is_not_shown(value: Any) -> None:
    secrets = {"api_key": "a", "secret_key": "b", "passphrase": "c"}
    for name in secrets:
        settings: dict[str, Any] = {"base_url": "http://127.0.0.1:1", **secrets, name: value}
        with pytest.raises(cf.ConfigError, match=rf"^{name} .*") as caught:
            cf.Client(**settings)
        assert repr(value) not in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [{"mode": True}, {"mode": None}, {"match_on": "-start_time"}, {"match_on": 5}, {"match_on": [5]}, {"scrub": 1}],
    ids=str,
)
def test_option_of_a_cassette_of_another_kind_is_refused(tmp_path: Path, option: dict[str, Any]) -> None:
    with pytest.raises(cf.ConfigError, match=next(iter(option))):
        Cassette(tmp_path / "c.jsonl", **option)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "reset", "path": ""},
        {"kind": "reset", "path": " "},
        {"kind": "code", "code": ""},
        {"kind": "status", "status": 500, "code": " "},
        {"kind": "oversized", "size_mib": 0},
        {"kind": "reset", "times": True},
        {"kind": "delay", "seconds": True},
    ],
    ids=str,
)
def test_fault_that_would_do_nothing_is_refused(service: LocalService, fault: Any) -> None:
    with pytest.raises(cf.ConfigError, match=r"^faults "):
        service.faults = [fault]
    assert service.faults == []


UNSENT: list[tuple[str, dict[str, Any]]] = [
    ("blocks", {"height": "x"}),
    ("blocks", {"height": -1}),
    ("blocks", {"height": [1, 2]}),
    ("blocks", {"page": 0}),
    ("blocks", {"page_size": "5"}),
    ("blocks", {"limit": float("nan")}),
    ("tokens", {"order_by": "price"}),
    ("tokens", {"start_time": -5}),
    ("address_transactions", {"direction": ""}),
    ("address_transactions", {"address": " 0x1"}),
    ("large_transactions", {"min_amount": 99}),
    ("large_transactions", {"min_amount": 500.0}),
    ("transactions_by_hash", {"tx_ids": ["0x1", ""]}),
]


@pytest.mark.parametrize(("call", "given"), UNSENT, ids=str)
def test_value_that_the_call_refuses_is_refused_in_an_assertion(
    service: LocalService, call: Any, given: dict[str, Any]
) -> None:
    with pytest.raises(cf.ConfigError, match=next(iter(given))):
        service.assert_requested(call, times=0, **given)


def test_value_that_one_of_the_calls_takes_is_looked_for(service: LocalService) -> None:
    assert service.find_requests(min_amount=5) == []
    with pytest.raises(cf.ConfigError, match="min_amount"):
        service.find_requests(min_amount="much")
    with pytest.raises(cf.ConfigError, match="call must be one of"):
        service.find_requests([])  # type: ignore[arg-type]


def test_missing_cassette_is_not_served(service: LocalService, tmp_path: Path) -> None:
    with pytest.raises(cf.ConfigError, match=r"path must be a file; .* does not exist"):
        service.load_cassette(tmp_path / "c.jsonl")
    with pytest.raises(cf.ConfigError, match=r"path must be a file; .* does not exist"):
        service.load_cassette(tmp_path / ("c" * 300))


def test_cassette_that_may_not_be_looked_up_is_not_called_missing(
    service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "exists", refuse)
    file = tmp_path / "c.jsonl"
    with pytest.raises(
        cf.ConfigError, match=rf"^{re.escape(str(file))} cannot be looked up: Permission denied; correct the path"
    ):
        service.load_cassette(file)


def test_autospec_checks_constructors_and_queries(service: LocalService) -> None:
    client = mock.create_autospec(cf.Client)
    client(base_url="x", strict=True)
    for keyword in ("base_ulr", "url"):
        with pytest.raises(TypeError):
            client(**{keyword: "x"})
    deployment: Any = mock.create_autospec(cf.Deployment)
    deployment(main="x")
    with pytest.raises(TypeError):
        deployment("x")
    query = mock.create_autospec(cf.Query)
    query.to_pandas(columns=["height"])
    with pytest.raises(TypeError):
        query.to_pandas(nunbers="float")
    with pytest.raises(TypeError):
        query.collect(5)
    records: Any = mock.create_autospec(make_one(service))
    with pytest.raises(TypeError):
        records.to_polars("float", 3)
    with mock.patch("chainframe.Client", autospec=True) as patched, pytest.raises(TypeError):
        patched(retries=3)


def make_one(service: LocalService) -> cf.Records[cf.Block]:
    with service.client() as client:
        return client.blocks(max_items=1).collect()


def test_no_credential_is_logged_whatever_its_name(service: LocalService) -> None:
    own = "m" * CREDENTIAL_LENGTH
    request = urllib.request.Request(
        f"{service.url}/api/v5/main/zone/block/block-list?apiKey=a1&note={service.passphrase}&limit=3",
        headers={
            "SVC-ACCESS-KEY": own,
            "X-Api-Key": "abcdefgh",
            "X-Session": "s3ss10n",
            "X-Copy": f"key={own}",
            "X-Secret": service.secret_key,
            "X-Request-Id": "r-1",
        },
    )
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request)
    logged = service.request_log[-1]
    text = str(logged)
    for secret in (own, "abcdefgh", "s3ss10n", service.secret_key, service.passphrase, "a1"):
        assert secret not in text
    assert logged["headers"]["x-request-id"] == "r-1"
    assert logged["params"] == {"apiKey": "*", "note": "*", "limit": "3"}


def test_repeats_of_a_cassette_reach_other_processes(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "all")) as client:
        client.blocks(height=4_300_000).collect()
    script = "import chainframe as cf; [print(len(cf.Client().blocks(height=4_300_000).collect())) for _ in range(3)]"
    variables = {"CHAINFRAME_CASSETTE": str(path), "CHAINFRAME_CASSETTE_MODE": "none"}
    outputs = []
    for repeats in ("1", "0", "yes"):
        environment = {**os.environ, **variables, "CHAINFRAME_CASSETTE_ALLOW_PLAYBACK_REPEATS": repeats}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        outputs.append((done.stdout.split(), done.stderr.splitlines()[-1:]))
    assert outputs[0] == (["1", "1", "1"], [])
    assert outputs[1][0] == ["1"]
    assert "CassetteMissError" in outputs[1][1][0]
    assert 'ALLOW_PLAYBACK_REPEATS must be 0 or 1; got "yes"' in outputs[2][1][0]
