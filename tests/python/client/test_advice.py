"""Advice at the end of a message: it names the cause that the response shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from strict_server import API_KEY, PASSPHRASE, SECRET_KEY, Response, StrictServer, envelope, error

if TYPE_CHECKING:
    from chainframe.testing import LocalService


def message(client: cf.Client, kind: type[cf.ChainframeError] = cf.ServiceError, call: str = "blocks") -> str:
    with client, pytest.raises(kind) as caught:
        getattr(client, call)().collect()
    text = str(caught.value)
    assert "\n" not in text
    assert not any(secret in text for secret in (API_KEY, PASSPHRASE, SECRET_KEY))
    return text


KEY, PHRASE = "api_key (CHAINFRAME_API_KEY)", "passphrase (CHAINFRAME_PASSPHRASE)"
SECRET = "secret_key (CHAINFRAME_SECRET_KEY), prehash and signature_encoding"
CODES = {
    "50103": f"check {KEY}",
    "50111": f"check {KEY}",
    "50104": f"check {PHRASE}",
    "50105": f"check {PHRASE}",
    "50106": f"check {SECRET}",
    "50113": f"check {SECRET}",
    "50107": "check header_prefix",
}


@pytest.mark.parametrize("code", CODES)
def test_authentication_error_names_the_setting_of_its_code(server: StrictServer, code: str) -> None:
    server.on("blocks", error(401, code))
    assert message(server.client(), cf.AuthenticationError).endswith(f"; {CODES[code]}")


@pytest.mark.parametrize("call", ["blocks", "tokens"])
def test_unsupported_chain_names_the_setting_and_its_variable(server: StrictServer, call: str) -> None:
    server.on(call, error(200, "50038"))
    setting = "zone_chain (CHAINFRAME_ZONE_CHAIN)" if call == "blocks" else "main_chain (CHAINFRAME_MAIN_CHAIN)"
    assert message(server.client(), cf.BadRequestError, call).endswith(f"; check {setting} and chain")


AROUND = [(name, around) for name in ("api_key", "secret_key", "passphrase") for around in ("'{}'", '"{}"')]


# Blanks at the ends of a header are not sent.
@pytest.mark.parametrize(("name", "around"), [*AROUND, ("secret_key", " {}"), ("secret_key", "{}  ")])
def test_rejected_secret_in_quotes_or_blanks_is_named(service: LocalService, name: str, around: str) -> None:
    settings: dict[str, Any] = {name: around.format(getattr(service, name))}
    client = service.client(**settings)
    problem = "quotes" if "'" in around or '"' in around else "white space"
    expected = f"{name} (CHAINFRAME_{name.upper()}) has {problem} around it"
    assert message(client, cf.AuthenticationError).endswith(expected)


def test_rejected_placeholder_is_named(service: LocalService) -> None:
    text = message(service.client(api_key="<your key>"), cf.AuthenticationError)
    assert text.endswith("api_key (CHAINFRAME_API_KEY) is a placeholder in angle brackets")


@pytest.mark.parametrize("status", [200, 403, 502])
@pytest.mark.parametrize("body", [b"<!DOCTYPE html><title>Just a moment</title>", b" \n<html></html>"])
def test_page_of_html_is_named(server: StrictServer, body: bytes, status: int) -> None:
    server.on("blocks", Response(body, status, {"Content-Type": "text/html"}))
    text = message(server.client(max_retries=0), cf.ChainframeError)
    assert "HTML" in text
    assert "base_url" in text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_names_its_target_without_query_and_user(server: StrictServer, status: int) -> None:
    target = "https://someone:word@other.example.com/api/v5?token=hidden#part"
    server.on("blocks", Response(b"", status, {"Location": target}))
    text = message(server.client())
    assert "a redirect to https://other.example.com/api/v5, which is not followed" in text
    assert "hidden" not in text
    assert "word" not in text
    server.on("blocks", Response(b"", status))
    assert "redirects are not followed" in message(server.client())


def test_reason_of_a_gateway_is_in_the_message(server: StrictServer) -> None:
    server.on("blocks", Response(b'{"message": "payment is required"}', 402))
    assert "payment is required" in message(server.client(), cf.PermissionDeniedError)


@pytest.mark.parametrize(
    ("page", "members"),
    [
        ({"page": "1", "blocks": [], "hits": 3}, "blocks, hits"),
        ({"chainFullName": "A", "list": []}, "list"),
        ({f"member{number}": 1 for number in range(12)}, ", ".join(f"member{number}" for number in range(8))),
    ],
)
def test_list_under_another_name_lists_the_members_found(
    server: StrictServer, page: dict[str, Any], members: str
) -> None:
    server.on("transactions", Response(envelope([page])))
    text = message(server.client(max_retries=0), cf.ResponseFormatError, "transactions")
    assert f"the records are missing; other members are {members}" in text


def test_plain_http_at_an_https_address_is_named(service: LocalService) -> None:
    client = service.client(base_url=service.url.replace("http://", "https://"), max_retries=0)
    text = message(client, cf.TransportError)
    assert "the response is not TLS (is it plain http?)" in text
    assert "check base_url" in text


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("cassette", "calls.jsonl", "must be a chainframe.testing.Cassette.*; got 'calls.jsonl'"),
        ("deployment", "main", "must be a Deployment; got 'main'"),
        ("progress", "yes", "must be \"auto\", True or False; got 'yes'"),
        ("timeout", "30", "must be a finite number; got '30'"),
    ],
)
def test_setting_of_another_type_shows_its_value_on_one_line(
    service: LocalService, setting: str, value: Any, problem: str
) -> None:
    with pytest.raises(cf.ConfigError, match=f"^{setting} {problem}$") as caught:
        cf.Client(base_url=service.url, api_key="k", secret_key="s", passphrase="p", **{setting: value})
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(("name", "value"), [("columns", "height"), ("numbers", "exact"), ("dtype_backend", "numpy")])
def test_argument_of_another_type_is_explained_on_one_line(client: cf.Client, name: str, value: str) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(cf.InvalidParameterError, match=f"^{name} must be .*; got") as caught:
        client.blocks(max_items=1).to_pandas(**given)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(("word", "meant"), [("client", "Client"), ("service_error", "ServiceError"), ("Error", "C")])
def test_name_in_another_case_names_the_class(word: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"; use {meant}"):
        getattr(cf, word)
