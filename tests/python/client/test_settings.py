"""Settings of a client: sources and validation."""

from __future__ import annotations

import inspect
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService

GIVEN: dict[str, Any] = {
    "base_url": "https://data.example.com",
    "api_key": "k",
    "secret_key": "s",
    "passphrase": "p",
}


def given(**changes: Any) -> dict[str, Any]:
    return {**GIVEN, **changes}


FROM_ENVIRONMENT = [*GIVEN, "main_chain", "zone_chain"]


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FROM_ENVIRONMENT:
        monkeypatch.delenv(variable(name), raising=False)


def variable(name: str) -> str:
    return f"CHAINFRAME_{name.upper()}"


@pytest.mark.parametrize("name", sorted(GIVEN))
@pytest.mark.parametrize("value", [None, ""])
def test_missing_setting_is_named_with_its_variable(name: str, value: str | None) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(**given(**{name: value}))
    assert name in str(caught.value)
    assert variable(name) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("missing", "variable", "is_meant"),
    [
        ("api_key", "CHAINFRAME_APIKEY", True),
        ("secret_key", "CHAINFRAME_SECRET", True),
        ("passphrase", "CHAINFRAME_PASSWORD", True),
        ("base_url", "CHAINFRAME_URL", True),
        ("api_key", "CHAINFRAME_SECRET", False),
        ("api_key", "CHAINFRAME_LOG", False),
    ],
)
def test_variable_that_may_be_meant_for_a_missing_setting_is_named(
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    variable: str,
    is_meant: bool,  # noqa: FBT001 - a case
) -> None:
    monkeypatch.setenv(variable, "canary")
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(**given(**{missing: None}))
    assert (f"is missing ({variable} is set, which no setting reads); pass" in str(caught.value)) == is_meant
    assert "canary" not in str(caught.value)


def test_base_url_with_a_host_name_that_is_not_ascii_is_rejected() -> None:
    with pytest.raises(cf.ConfigError, match=r"must have its host name in ASCII, such as .*bücher"):
        cf.Client(**given(base_url="https://bücher.example.com"))
    with pytest.raises(cf.ConfigError, match=r"must be a URL such as .*exa mple"):
        cf.Client(**given(base_url="https://exa mple.com"))
    accepted = "https://xn--bcher-kva.example.com"
    assert cf.Client(**given(base_url=accepted)).base_url == accepted


def test_base_url_that_cannot_be_one_is_shown_unless_it_may_be_a_secret() -> None:
    for url in ("127.0.0.1:8080", "localhost:8080", "'http://127.0.0.1'"):
        with pytest.raises(cf.ConfigError, match=re.escape(f'; got "{url}"')):
            cf.Client(**given(base_url=url))
    for secret in ("me:canary@data.example.com:x", "canary", "canary/0=", "canary:0"):
        with pytest.raises(cf.ConfigError) as caught:
            cf.Client(**given(base_url=secret))
        assert "canary" not in str(caught.value)


def test_environment_supplies_omitted_settings(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in GIVEN:
        monkeypatch.setenv(variable(name), getattr(service, name.replace("base_url", "url")))
    with cf.Client() as client:
        assert client.base_url == service.url
        assert (client.main_chain, client.zone_chain) == ("MAIN", "ZONE_CHAIN")
        assert len(client.tokens().collect()) > 0
    monkeypatch.setenv("CHAINFRAME_MAIN_CHAIN", "OTHER")
    with cf.Client() as client:
        assert (client.main_chain, client.zone_chain) == ("OTHER", "ZONE_CHAIN")
    with cf.Client(main_chain="MINE") as client:
        assert client.main_chain == "MINE"


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"base_url": "http://data.example.com"}, "base_url"),
    ({"base_url": "http://localhost.example.com"}, "base_url"),
    ({"base_url": "data.example.com"}, "base_url"),
    ({"base_url": "ftp://data.example.com"}, "base_url"),
    ({"base_url": "https://"}, "base_url"),
    ({"base_url": "https://user:word@data.example.com"}, "base_url"),
    ({"base_url": "https://data.example.com?x=1"}, "base_url"),
    ({"api_key": "a\nb"}, "api_key"),
    ({"passphrase": "é\n"}, "passphrase"),
    ({"main_chain": ""}, "main_chain"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": float("nan")}, "timeout"),
    ({"timeout": float("inf")}, "timeout"),
    ({"deadline": 0}, "deadline"),
    ({"max_retries": -1}, "max_retries"),
    ({"max_retries": 2**70}, "max_retries"),
    ({"max_response_bytes": 10**5_000}, "max_response_bytes"),
    ({"rate_limit": 0}, "rate_limit"),
    ({"rate_limit": -2.5}, "rate_limit"),
    ({"rate_limit": "fast"}, "rate_limit"),
    ({"concurrency": 0}, "concurrency"),
    ({"concurrency": -(2**70)}, "concurrency"),
    ({"proxy": "not a url"}, "proxy"),
    ({"ca_bundle": "/no/such/file.pem"}, "ca_bundle"),
]


@pytest.mark.parametrize("number", range(len(REJECTED)))
def test_malformed_setting_is_named(number: int) -> None:
    changes, name = REJECTED[number]
    with pytest.raises(cf.ConfigError, match=name):
        cf.Client(**{**GIVEN, **changes})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://data.example.com"]
)
def test_plain_http_is_accepted_for_loopback_only(url: str) -> None:
    with cf.Client(**given(base_url=url)) as client:
        assert client.base_url.rstrip("/") == url


def test_base_url_may_have_a_path_and_a_trailing_slash(service: LocalService) -> None:
    with service.client(base_url=f"{service.url}/") as client:
        assert len(client.tokens().collect()) > 0


@pytest.mark.parametrize(
    "value",
    [-(2**64), 10**400, 10**5000, "\ud800", float("nan"), object()],
    ids=["below 64 bits", "above a double", "long", "half a character", "nan", "object"],
)
@pytest.mark.parametrize(
    "name",
    [
        *("timeout", "deadline", "max_retries", "rate_limit", "concurrency", "max_response_bytes"),
        *("proxy", "ca_bundle", "main_chain", "api_key"),
    ],
)
def test_setting_of_another_type_is_rejected_by_name(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=rf"^{name}( \(\w+\))? ") as caught:
        cf.Client(**given(**{name: value}))
    assert len(str(caught.value).splitlines()) == 1


def test_settings_are_keyword_only() -> None:
    parameters = inspect.signature(cf.Client).parameters
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError, match=r"^Client\(\) takes its settings by keyword: Client\(base_url=...\)$"):
        cf.Client("https://data.example.com")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cf.Client(base_uri="https://data.example.com")  # type: ignore[call-arg]


def test_deployment_is_frozen_and_comparable() -> None:
    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", signature_encoding="hex")
    same = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", signature_encoding="hex")
    assert deployment == same
    assert hash(deployment) == hash(same)
    assert deployment != cf.Deployment()
    assert pickle.loads(pickle.dumps(deployment)) == deployment
    assert eval(repr(deployment), {"Deployment": cf.Deployment}) == deployment
    assert (deployment.header_prefix, deployment.main, deployment.zone, deployment.signature_encoding) == (
        "XY",
        "alpha",
        "beta",
        "hex",
    )
    narrow = cf.Deployment(result_window=100, log_window=7)
    assert narrow != cf.Deployment()
    assert (narrow.result_window, narrow.log_window) == (100, 7)
    assert pickle.loads(pickle.dumps(narrow)) == narrow
    assert eval(repr(narrow), {"Deployment": cf.Deployment}) == narrow
    assert cf.Deployment().prehash == "{timestamp}{method}{target}{body}"
    with pytest.raises(AttributeError):
        deployment.main = "gamma"  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_result_windows_of_the_deployment_make_a_list_incomplete() -> None:
    with LocalService(transactions=1_000, max_result_window=100) as service:
        narrow = cf.Deployment(result_window=100)
        with service.client(deployment=narrow) as client:
            report = client.transactions().collect().report
            assert (report.records, report.complete) == (100, False)
        with service.client(deployment=narrow, strict=True) as client, pytest.raises(cf.IncompleteResultError):
            client.tokens().collect()
    with LocalService(transactions=100, deployment=cf.Deployment(log_window=1)) as service, service.client() as client:
        tx_ids = [transaction.tx_id or "" for transaction in client.transactions(max_items=50)]
        report = client.logs(tx_ids).collect().report
        assert report.records <= 50
        assert not report.complete


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("header_prefix", "X Y"),
        ("header_prefix", ""),
        ("main", "a/b"),
        ("zone", "?"),
        ("prehash", "{timestamp}{path}"),
        ("signature_encoding", "base32"),
        ("zone", "\ud800"),
        ("main", 7),
        ("result_window", 0),
        ("log_window", -1),
    ],
)
def test_invalid_name_of_a_deployment_is_rejected(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=name):
        cf.Deployment(**{name: value})


@pytest.mark.parametrize("name", ["base_url", "api_key", "secret_key", "passphrase", "main_chain", "zone_chain"])
def test_setting_of_the_environment_that_is_not_utf8_is_not_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    settings = {"base_url": "https://data.example.com", "api_key": "k", "secret_key": "s", "passphrase": "p"}
    variable = f"CHAINFRAME_{name.upper()}"
    monkeypatch.setenv(variable, os.fsdecode(b"canary-\xfc"))
    with pytest.raises(cf.ConfigError, match=rf"^{name} \({variable}\) must be UTF-8 text") as caught:
        cf.Client(**{other: value for other, value in settings.items() if other != name})  # type: ignore[arg-type]
    assert "canary" not in str(caught.value)
    # An argument takes its place.
    cf.Client(**{"main_chain": "M", "zone_chain": "Z", **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        *("RATE_LIMIT", "MAX_REQUESTS", "NUMBERS", "DEPLOYMENT", "LOG", "BLOCK_NETWORK"),
        *("CASSETTE_MODE", "CASSETTE_MATCH_ON", "CASSETTE_ALLOW_PLAYBACK_REPEATS"),
    ],
)
def test_variable_that_is_not_utf8_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv("CHAINFRAME_CASSETTE", str(tmp_path / "cassette.jsonl"))
    monkeypatch.setenv(f"CHAINFRAME_{name}", os.fsdecode(b"onc\xfc"))
    with pytest.raises(cf.ConfigError, match=rf"^CHAINFRAME_{name} must be UTF-8 text"):
        cf.Client(base_url="https://data.example.com", api_key="k", secret_key="s", passphrase="p")
