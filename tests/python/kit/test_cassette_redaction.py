"""Cassettes hold no secrets: content of a recorded request, and redaction of responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService
from recorded import lines, replaying
from strict_server import API_KEY, PASSPHRASE, SECRET_KEY, Response, StrictServer, error, page_of

pytestmark = pytest.mark.usefixtures("no_settings")


def test_cassette_stores_only_path_and_parameters_of_a_request(server: StrictServer, path: Path) -> None:
    echoed: list[str] = []

    def echo(status: int) -> Any:
        def script(request: Any) -> Response:
            secrets = [API_KEY, SECRET_KEY, PASSPHRASE, request.signature, request.timestamp]
            echoed.extend(secrets)
            return Response(json.dumps({"code": "50014", "msg": " ".join(secrets), "detail": secrets}).encode(), status)

        return script

    server.on("blocks", echo(400))
    server.on("tokens", lambda request: Response(f"<p>{request.signature} {server.url}".encode(), 502))
    server.on("transactions", page_of("transactions", [{"txid": "0x1", "transactionSymbol": API_KEY.upper()}]))
    with server.client(cassette=Cassette(path)) as client:
        for call in ("blocks", "tokens"):
            with pytest.raises(cf.ServiceError):
                getattr(client, call)().collect()
        client.transactions().collect()
    text = path.read_text(encoding="utf-8").lower()
    assert len(echoed) == 5
    port = server.url.rpartition(":")[2]
    for canary in (*echoed, "127.0.0.1", port, "access", "user-agent", "date", "header"):
        assert canary.lower() not in text, canary
    first = lines(path)[0]
    assert first.keys() == {"method", "path", "params", "status", "json"}
    assert first["path"] == "/api/v5/alpha/beta/block/block-list"
    assert first["params"] == {"chainShortName": "BETA_X", "limit": "100", "page": "1"}
    assert list(first["params"]) == sorted(first["params"])
    assert first["json"]["detail"] == ["*" * len(word) for word in echoed]


def test_prefix_of_the_base_url_is_not_stored(path: Path) -> None:
    settings: dict[str, Any] = {"api_key": "k1", "secret_key": "s1", "passphrase": "p1", "max_retries": 0}
    client = cf.Client(base_url="http://127.0.0.1:9/gate/way", cassette=Cassette(path), **settings)
    with client, pytest.raises(cf.TransportError) as recorded:
        client.blocks().collect()
    (line,) = lines(path)
    assert line["path"] == "/api/v5/main/zone/block/block-list"
    assert line["error"] == {"phase": "connect", "timed_out": False, "retryable": True}
    with replaying(path) as client, pytest.raises(cf.TransportError) as replayed:
        client.blocks().collect()
    assert replayed.value.phase == recorded.value.phase == "connect"


def test_error_response_is_stored_without_the_host_it_names(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    with LocalService(transactions=50) as service:
        host = service.url.removeprefix("http://")
        service.faults = [{"kind": "code", "code": "50014", "msg": f"asked at {host}"}]
        with pytest.raises(cf.BadRequestError, match=host):
            service.client(cassette=Cassette(path)).tokens(max_items=1).collect()
    assert host not in path.read_text()
    with pytest.raises(cf.BadRequestError, match=r"asked at \*+"):
        cf.Client(cassette=Cassette(path, "none")).tokens(max_items=1).collect()


def test_short_secret_does_not_redact_data(path: Path, server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strict_server.PASSPHRASE", "eth")
    found = page_of("transactions", [{"txid": "0xe7", "transactionSymbol": "WETH"}])
    server.on("transactions", found)
    server.on("tokens", error(400, "50014", "who is eth?"))
    with server.client(cassette=Cassette(path)) as client:
        recorded = client.transactions().collect()
        with pytest.raises(cf.BadRequestError):
            client.tokens().collect()
    with server.client(cassette=Cassette(path, mode="none")) as client:
        assert list(client.transactions()) == list(recorded)
    assert "who is ***?" in path.read_text(encoding="utf-8")


def test_secret_in_the_data_is_redacted_and_reported(
    path: Path, server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("transactions", page_of("transactions", [{"txid": "0x1", "transactionSymbol": API_KEY}]))
    with server.client(cassette=Cassette(path)) as client:
        client.transactions().collect()
    assert "a replay will differ" in caplog.text
    assert API_KEY not in path.read_text(encoding="utf-8")


def test_parameter_with_a_secret_is_neither_sent_nor_stored(path: Path, server: StrictServer) -> None:
    with server.client(cassette=Cassette(path)) as client:
        for address in (API_KEY, f"0x{SECRET_KEY.upper()}", PASSPHRASE):
            with pytest.raises(cf.CassetteError, match="address contains a secret"):
                client.address_transactions(address).collect()
    assert not path.exists()
    assert not server.requests
