"""Proxies of `proxy=` and of the environment: malformed, rejecting, and in pickled clients."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import threading
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Generator

BLOCKS = page_of("blocks", [{"hash": "0x1"}])
pytestmark = pytest.mark.usefixtures("no_network_settings")


@contextlib.contextmanager
def rejecting(status: str) -> Generator[str]:
    """The address of a proxy that responds to every request with that status line, without a tunnel."""

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


def failure_of(client: cf.Client) -> cf.TransportError:
    with client, pytest.raises(cf.TransportError) as caught:
        client.blocks().collect()
    return caught.value


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize(
    "value", ["garbage::", "http://", "http//proxy.example.com:3128", "socks9://127.0.0.1:1", "proxy.example.com:99999"]
)
def test_a_malformed_proxy_of_the_environment_is_a_config_error(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(cf.ConfigError, match=f"^{variable} must be the URL of a proxy"):
        server.client(base_url="https://data.example.com")
    # It says nothing about a service on loopback.
    server.on("blocks", BLOCKS)
    with server.client() as client:
        assert len(client.blocks().collect()) == 1


@pytest.mark.parametrize("exempt", ["data.example.com", "data.example.com:443", ".example.com", "*"])
def test_no_proxy_exempts_the_service(server: StrictServer, monkeypatch: pytest.MonkeyPatch, exempt: str) -> None:
    """`.invalid` names are never found, so the error shows who was connected to."""
    with rejecting("403 Forbidden") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", exempt.replace("example.com", "invalid"))
        failure = failure_of(server.client(base_url="https://data.invalid", max_retries=0))
        assert "cannot connect to data.invalid:443: " in str(failure)
        monkeypatch.setenv("NO_PROXY", "data.invalid:8443")
        assert "the proxy" in str(failure_of(server.client(base_url="https://data.invalid", max_retries=0)))


def test_no_proxy_exempts_the_service_from_a_proxy_that_is_not_supported(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9050")
    with pytest.raises(cf.ConfigError, match="ALL_PROXY must be the URL of a proxy for HTTP, not SOCKS"):
        server.client(base_url="https://data.invalid")
    monkeypatch.setenv("NO_PROXY", "data.invalid")
    assert "cannot connect to data.invalid:443: " in str(
        failure_of(server.client(base_url="https://data.invalid", max_retries=0))
    )


@pytest.mark.parametrize(
    ("status", "said", "retryable"),
    [
        ("407 Proxy Authentication Required", "did not accept the user name and password (status 407)", False),
        ("403 Forbidden", "rejected the connection (status 403)", False),
        ("302 Found", "rejected the connection (status 302)", False),
        ("502 Bad Gateway", "rejected the connection (status 502)", True),
    ],
)
def test_a_refused_tunnel_names_the_proxy_and_its_status(
    server: StrictServer, status: str, said: str, *, retryable: bool
) -> None:
    with rejecting(status) as proxy:
        address = proxy.replace("//", "//someone:canary-33@")
        failure = failure_of(server.client(base_url="https://data.example.com", proxy=address, max_retries=1))
        assert f"the proxy {proxy} {said}" in str(failure)
        assert "base_url" not in str(failure)
        assert "canary" not in str(failure)
    assert (failure.phase, failure.retryable, failure.attempts) == ("connect", retryable, 1 + retryable)


def test_a_proxy_that_needs_a_user_says_so(server: StrictServer) -> None:
    with rejecting("407 Proxy Authentication Required") as proxy:
        failure = failure_of(server.client(base_url="https://data.example.com", proxy=proxy))
    assert f"the proxy {proxy} requires a user name and password (status 407)" in str(failure)


def test_failed_connections_name_their_host_and_port(server: StrictServer) -> None:
    direct = failure_of(server.client(base_url="http://127.0.0.1:1", max_retries=0))
    assert "cannot connect to 127.0.0.1:1: Connection refused" in str(direct)
    assert "check base_url" in str(direct)
    through = {"base_url": "https://data.example.com", "proxy": "http://127.0.0.1:1"}
    proxied = failure_of(server.client(**through, max_retries=0))
    assert "cannot connect to the proxy http://127.0.0.1:1: Connection refused" in str(proxied)
    assert "check proxy" in str(proxied)


def test_a_pickled_client_does_not_lose_its_proxy(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "SECRET_KEY", "PASSPHRASE"):
        monkeypatch.setenv(f"CHAINFRAME_{name}", getattr(service, name.lower()))
    base_url = "https://data.example.com"
    plain = service.client(base_url=base_url, proxy="http://127.0.0.1:3128")
    assert pickle.loads(pickle.dumps(plain)) == plain
    secret = service.client(base_url=base_url, proxy="http://someone:canary-44@127.0.0.1:3128")
    pickled = pickle.dumps(secret)
    assert b"canary" not in pickled
    assert b"someone" not in pickled
    with pytest.raises(cf.ConfigError, match=r"^proxy \(http://127\.0\.0\.1:3128\) was pickled without"):
        pickle.loads(pickled)
    monkeypatch.setenv("HTTPS_PROXY", "http://other:word@127.0.0.1:3129")
    with pytest.raises(cf.ConfigError, match=r"^proxy \("):
        pickle.loads(pickled)
    monkeypatch.setenv("ALL_PROXY", "http://someone:canary-44@127.0.0.1:3128")
    assert pickle.loads(pickled) == secret


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:9", "http://localhost:9/api", "http://[::1]:9"])
@pytest.mark.parametrize("proxy", ["http://192.0.2.1:3128", "http://127.0.0.1:3128", "https://someone:canary@[::1]"])
def test_plain_http_does_not_take_a_proxy(server: StrictServer, base_url: str, proxy: str) -> None:
    with pytest.raises(cf.ConfigError, match=r"^proxy cannot be used with plain http") as caught:
        server.client(base_url=base_url, proxy=proxy)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "variable",
    [
        *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"),
        *("CHAINFRAME_BLOCK_NETWORK", "CHAINFRAME_LOG"),
    ],
)
def test_variable_that_is_not_utf8_is_not_taken_for_unset(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    # Latin-1.
    monkeypatch.setenv(variable, os.fsdecode(b"http://someone:canary-\xfc@127.0.0.1:1"))
    with pytest.raises(cf.ConfigError, match=rf"^{variable} must be UTF-8 text") as caught:
        server.client(base_url="https://data.example.com")
    assert "canary" not in str(caught.value)
