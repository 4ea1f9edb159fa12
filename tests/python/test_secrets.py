"""The key, the secret and the passphrase show up nowhere."""

from __future__ import annotations

import pickle
import traceback
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from strict_server import API_KEY, PASSPHRASE, SECRET_KEY, Answer, StrictServer, envelope, error

if TYPE_CHECKING:
    from chainframe.testing import LocalService

SECRETS = (API_KEY, SECRET_KEY, PASSPHRASE)


def shown(subject: object) -> str:
    return f"{subject!r} {subject!s} {subject:}"


def test_the_client_and_its_queries_show_none(server: StrictServer) -> None:
    with server.client() as client:
        text = shown(client) + shown(client.tokens()) + shown(client.deployment)
    assert server.url in text
    assert "ALPHA" in text
    assert not any(secret in text for secret in SECRETS)


def test_the_local_service_shows_none(service: LocalService) -> None:
    text = shown(service)
    assert service.url in text
    assert not any(secret in text for secret in (service.api_key, service.secret_key, service.passphrase))


def test_a_client_pickles_without_them(server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client(timeout=7.0) as client:
        pickled = pickle.dumps(client)
        whole = repr(client)
    assert not any(secret.encode() in pickled for secret in SECRETS)
    with pytest.raises(cf.ConfigError, match="CHAINFRAME_API_KEY"):
        pickle.loads(pickled)
    monkeypatch.setenv("CHAINFRAME_API_KEY", API_KEY)
    monkeypatch.setenv("CHAINFRAME_SECRET_KEY", SECRET_KEY)
    monkeypatch.setenv("CHAINFRAME_PASSPHRASE", PASSPHRASE)
    server.on("tokens", Answer(envelope([])))
    with pickle.loads(pickled) as again:
        assert repr(again) == whole
        again.tokens().collect()
    assert len(server.requests) == 1


ECHOES = [
    error(401, "50111", "unknown key {key}"),
    error(400, "50014", "signature {sign} of {phrase} with {secret}"),
    Answer(b'{"msg":"{key}: {sign}","code":"99999"}', 500),
    Answer(b"<html>bad gateway: XY-ACCESS-SIGN: {sign} {key} {phrase}</html>", 502),
    Answer(b'{"code":"0","msg":"","data":[{"transactionList":[{"height":"{key}"}]}]}'),
    Answer(b'{"code":"0","msg":"","data":[{"transactionList":[{"height":"{sign}"}]}]}'),
]


@pytest.mark.parametrize("number", range(len(ECHOES)))
def test_an_answer_that_echoes_them_is_redacted(server: StrictServer, number: int) -> None:
    signatures: list[str] = []

    def echo(request: object) -> Answer:
        signature = getattr(request, "signature", "")
        signatures.append(signature)
        body = ECHOES[number].body
        for word, value in (("key", API_KEY), ("sign", signature), ("phrase", PASSPHRASE), ("secret", SECRET_KEY)):
            body = body.replace(f"{{{word}}}".encode(), value.encode())
        return Answer(body, ECHOES[number].status)

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
        assert not any(secret in text for text in everything), secret
    assert "\n" not in str(caught.value)


def test_a_settings_error_shows_none() -> None:
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(base_url="http://data.example.com", api_key=API_KEY, secret_key=SECRET_KEY, passphrase=PASSPHRASE)
    assert "base_url" in str(caught.value)
    with pytest.raises(cf.ConfigError) as bad_key:
        cf.Client(base_url="https://x.example", api_key=API_KEY + "\n", secret_key=SECRET_KEY, passphrase=PASSPHRASE)
    assert "api_key" in str(bad_key.value)
    for secret in SECRETS:
        assert secret not in str(caught.value)
        assert secret not in str(bad_key.value)
