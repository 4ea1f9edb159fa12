"""The key, the secret and the passphrase are never shown."""

from __future__ import annotations

import base64
import contextlib
import gc
import pickle
import traceback
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import chainframe as cf
from strict_server import API_KEY, PASSPHRASE, SECRET_KEY, Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from chainframe.testing import LocalService

SECRETS = (API_KEY, SECRET_KEY, PASSPHRASE)


def shown(subject: object) -> str:
    return f"{subject!r} {subject!s} {subject:}"


def test_client_and_queries_show_no_secret(server: StrictServer) -> None:
    with server.client() as client:
        text = shown(client) + shown(client.tokens()) + shown(client.deployment)
    assert server.url in text
    assert "ALPHA" in text
    assert not any(secret in text for secret in SECRETS)


def test_local_service_shows_no_secret(service: LocalService) -> None:
    text = shown(service)
    assert service.url in text
    assert not any(secret in text for secret in (service.api_key, service.secret_key, service.passphrase))


def test_client_pickles_without_secrets(server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client(timeout=7.0) as client:
        pickled = pickle.dumps(client)
        whole = repr(client)
    assert not any(secret.encode() in pickled for secret in SECRETS)
    with pytest.raises(cf.ConfigError, match="CHAINFRAME_API_KEY"):
        pickle.loads(pickled)
    monkeypatch.setenv("CHAINFRAME_API_KEY", API_KEY)
    monkeypatch.setenv("CHAINFRAME_SECRET_KEY", SECRET_KEY)
    monkeypatch.setenv("CHAINFRAME_PASSPHRASE", PASSPHRASE)
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": "0xa", "token": "A"}]))
    with pickle.loads(pickled) as again:
        assert repr(again) == whole
        again.tokens().collect()
    assert len(server.requests) == 1


ECHOES = [
    error(401, "50111", "unknown key {key}"),
    error(400, "50014", "signature {sign} of {phrase} with {secret}"),
    Response(b'{"msg":"{key}: {sign}","code":"99999"}', 500),
    Response(b"<html>bad gateway: XY-ACCESS-SIGN: {sign} {key} {phrase}</html>", 502),
    Response(b'{"code":"0","msg":"","data":[{"transactionList":[{"height":"{key}"}]}]}'),
    Response(b'{"code":"0","msg":"","data":[{"transactionList":[{"height":"{sign}"}]}]}'),
    Response(b"{}", headers={"Content-Encoding": "{key} {phrase} {secret} {sign}"}),
    Response(b"{}", 302, {"Location": "/{key}/{phrase}?{secret}&{sign}"}),
    Response(b'{"code":"50011","msg":""}', 429, {"Retry-After": "{key} {phrase} {secret} {sign}"}),
]


@pytest.mark.parametrize("number", range(len(ECHOES)))
def test_echoed_secrets_are_redacted(server: StrictServer, number: int) -> None:
    signatures: list[str] = []

    def echo(request: object) -> Response:
        signature = getattr(request, "signature", "")
        signatures.append(signature)
        body = ECHOES[number].body
        headers = ECHOES[number].headers
        for word, value in (("key", API_KEY), ("sign", signature), ("phrase", PASSPHRASE), ("secret", SECRET_KEY)):
            body = body.replace(f"{{{word}}}".encode(), value.encode())
            headers = {name: text.replace(f"{{{word}}}", value) for name, text in headers.items()}
        return Response(body, ECHOES[number].status, headers)

    server.on("transactions", echo)
    with server.client() as client:
        query = client.transactions()
        with pytest.raises(cf.ChainframeError) as caught:
            query.collect()
    everything = [shown(caught.value), repr(vars(caught.value)), pickle.dumps(caught.value).decode("latin-1")]
    everything += traceback.format_exception(caught.value)
    everything += [shown(query), shown(query.report), shown(query.last_error)]
    assert len(signatures) == 1
    for secret in (*SECRETS, signatures[0]):
        assert not any(secret.lower() in text.lower() for text in everything), secret
    assert "\n" not in str(caught.value)


def spread(text: str) -> dict[str, str]:
    """Encodings in which a response may echo a string."""
    encoded = base64.b64encode(text.encode()).decode()
    escaped = "".join(f"\\u{ord(character):04x}" for character in text)
    return {
        "plain": text,
        "upper": text.upper(),
        "lower": text.lower(),
        "URL": quote(text, safe=""),
        "whole URL": "".join(f"%{ord(character):02X}" for character in text),
        "base64": encoded,
        "URL-safe base64": encoded.translate(str.maketrans("+/", "-_")).rstrip("="),
        "URL-safe text": text.translate(str.maketrans("+/", "-_")).rstrip("="),
        "JSON": escaped,
        "upper JSON": escaped.upper().replace("\\U", "\\u"),
        "slashes": text.replace("/", "\\/"),
        "HTML": "".join(f"&#x{ord(character):x};" for character in text),
        "in base64": base64.b64encode(f"u:{text}:p".encode()).decode(),
    }


WRAPPERS = {
    "msg": lambda echo: Response(b'{"code":"50014","msg":"no: ' + echo + b'","data":[]}', 400),
    "code": lambda echo: Response(b'{"code":"' + echo + b'","msg":""}', 500),
    "value": lambda echo: Response(
        b'{"code":"0","data":[{"totalPage":"1","transactionList":[{"height":"' + echo + b'"}]}]}'
    ),
    "page": lambda echo: Response(b"<html><p>what is " + echo + b"</p></html>"),
    "far": lambda echo: Response(b'{"code":"50014","msg":"' + b"x" * 150 + echo + b'","data":[]}', 400),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("way", spread(""))
def test_echoed_secrets_are_redacted_in_every_encoding(
    server: StrictServer, way: str, wrapper: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(1)
    echoes: list[str] = []

    def echo(request: Any) -> Response:
        texts = (API_KEY, SECRET_KEY, PASSPHRASE, request.signature)
        echoes.append(spread(texts[len(echoes)])[way])
        return WRAPPERS[wrapper](echoes[-1].encode())

    server.on("transactions", echo)
    everything = []
    with server.client() as client:
        for _ in range(4):
            with pytest.raises(cf.ChainframeError) as caught:
                client.transactions().collect()
            summary = traceback.TracebackException.from_exception(caught.value, capture_locals=False)
            everything += [shown(caught.value), repr(vars(caught.value)), *summary.format()]
    everything += [record.getMessage() for record in caplog.records]
    assert len(caplog.records) >= 4
    assert len(echoes) == 4
    for secret in echoes:
        # A long echo is cut: not even a part of it may be left.
        parts = {secret[start : start + 12] for start in range(0, max(1, len(secret) - 14), 3)}
        left = [part for part in parts for text in everything if part in text]
        assert left == []
        assert any("*" in text for text in everything)


def test_attributes_frames_and_referents_show_no_secret(server: StrictServer) -> None:
    server.on("blocks", Response(b"", 503))

    def fail(client: cf.Client, query: cf.Query[Any]) -> None:
        state = client.rate_limit_state
        query.collect()
        assert state is not None

    with server.client() as client:
        query = client.blocks()
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            fail(client, query)
        frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        # What this test holds is its own; what the package holds begins in `fail`.
        everything = "".join(str(frame.locals) for frame in frames.stack[1:])
        objects: list[Any] = [client, query, query.report, query.partial, client.rate_limit_state, client.deployment]
        for subject in objects:
            for name in dir(subject):
                value = getattr(subject, name, None)
                everything += f"{name}={value!r} {value!s}"
            everything += repr(gc.get_referents(subject)) + getattr(subject, "_repr_html_", str)()
            with contextlib.suppress(TypeError):
                everything += repr(vars(subject))
    assert "client" in everything
    assert "RateLimitState" in everything
    assert not any(secret in everything for secret in SECRETS)


def test_config_error_shows_no_secret() -> None:
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(base_url="http://data.example.com", api_key=API_KEY, secret_key=SECRET_KEY, passphrase=PASSPHRASE)
    assert "base_url" in str(caught.value)
    with pytest.raises(cf.ConfigError) as bad_key:
        cf.Client(base_url="https://x.example", api_key=API_KEY + "\n", secret_key=SECRET_KEY, passphrase=PASSPHRASE)
    assert "api_key" in str(bad_key.value)
    for secret in SECRETS:
        assert secret not in str(caught.value)
        assert secret not in str(bad_key.value)
