"""A client's settings: where they come from, and what is refused."""

from __future__ import annotations

import inspect
import pickle
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
def test_a_missing_setting_is_named_with_its_variable(name: str, value: str | None) -> None:
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(**given(**{name: value}))
    assert name in str(caught.value)
    assert variable(name) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_the_environment_gives_what_is_not_given(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
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


REFUSED: list[tuple[dict[str, Any], str]] = [
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
    ({"max_body": 10**5_000}, "max_body"),
    ({"rate_limit": 0}, "rate_limit"),
    ({"rate_limit": -2.5}, "rate_limit"),
    ({"rate_limit": "fast"}, "rate_limit"),
    ({"concurrency": 0}, "concurrency"),
    ({"concurrency": -(2**70)}, "concurrency"),
    ({"proxy": "not a url"}, "proxy"),
    ({"ca_bundle": "/no/such/file.pem"}, "ca_bundle"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_malformed_setting_is_named(number: int) -> None:
    changes, name = REFUSED[number]
    with pytest.raises(cf.ConfigError, match=name):
        cf.Client(**{**GIVEN, **changes})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://data.example.com"]
)
def test_plain_http_is_for_loopback(url: str) -> None:
    with cf.Client(**given(base_url=url)) as client:
        assert client.base_url.rstrip("/") == url


def test_a_path_and_a_slash_in_the_base_url(service: LocalService) -> None:
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
        *("timeout", "deadline", "max_retries", "rate_limit", "concurrency", "max_body"),
        *("proxy", "ca_bundle", "main_chain", "api_key"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=rf"^{name}( \(\w+\))?: ") as caught:
        cf.Client(**given(**{name: value}))
    assert len(str(caught.value).splitlines()) == 1


def test_everything_is_by_keyword() -> None:
    parameters = inspect.signature(cf.Client).parameters
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError):
        cf.Client("https://data.example.com")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cf.Client(base_uri="https://data.example.com")  # type: ignore[call-arg]


def test_a_deployment_is_a_value() -> None:
    words = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", signature_encoding="hex")
    same = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", signature_encoding="hex")
    assert words == same
    assert hash(words) == hash(same)
    assert words != cf.Deployment()
    assert pickle.loads(pickle.dumps(words)) == words
    assert eval(repr(words), {"Deployment": cf.Deployment}) == words
    assert (words.header_prefix, words.main, words.zone, words.signature_encoding) == ("XY", "alpha", "beta", "hex")
    assert cf.Deployment().prehash == "{timestamp}{method}{target}{body}"
    with pytest.raises(AttributeError):
        words.main = "gamma"  # type: ignore[misc]


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
    ],
)
def test_a_word_that_cannot_stand_there_is_named(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=name):
        cf.Deployment(**{name: value})
