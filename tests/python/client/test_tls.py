"""TLS certificates, certificate bundles, and proxies that tunnel TLS."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
import trustme

import chainframe as cf
from client.test_network import transport_error
from strict_server import StrictServer, page_of

BLOCKS = page_of("blocks", [{"hash": "0x1"}])


pytestmark = pytest.mark.usefixtures("no_network_settings")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls(authority: trustme.CA, *names: str, expired: bool = False) -> ssl.SSLContext:
    times = {}
    if expired:
        now = datetime.now(UTC)
        times = {"not_before": now - timedelta(days=20), "not_after": now - timedelta(days=10)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **times).configure_cert(context)  # type: ignore[arg-type]
    return context


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.mark.parametrize("variable", [None, "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_ca_bundle_is_trusted(
    authority: trustme.CA, bundle: str, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictServer(tls(authority, "127.0.0.1")) as server:
        server.on("blocks", BLOCKS)
        if variable:
            monkeypatch.setenv(variable, bundle)
        with server.client(ca_bundle=None if variable else bundle) as client:
            assert len(client.blocks().collect()) == 1


@pytest.mark.parametrize(
    ("names", "expired", "known", "said"),
    [
        (("127.0.0.1",), True, True, "[Ee]xpired"),
        (("other.example",), False, True, "[Nn]ot ?[Vv]alid"),
        (("127.0.0.1",), False, False, "[Uu]nknown ?[Ii]ssuer"),
    ],
)
def test_certificate_error_is_not_retried(  # noqa: PLR0917 - the columns of a table
    authority: trustme.CA,
    bundle: str,
    names: tuple[str, ...],
    expired: bool,  # noqa: FBT001
    known: bool,  # noqa: FBT001
    said: str,
) -> None:
    with StrictServer(tls(authority, *names, expired=expired)) as server:
        failure = transport_error(server.client(ca_bundle=bundle if known else None, max_retries=5))
        assert (failure.phase, failure.attempts, failure.retryable) == ("tls", 1, False)
        assert "certificate" in str(failure)
        assert re.search(said, str(failure))
        assert server.requests == []


class Proxy:
    """A proxy whose tunnels all lead to one server, whatever the requested host."""

    def __init__(self, port: int) -> None:
        self.heads: list[str] = []
        self._tunnels: list[threading.Thread] = []
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                tunnel = threading.Thread(target=self._tunnel, args=(client,), daemon=True)
                self._tunnels.append(tunnel)
                tunnel.start()

    def _tunnel(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.heads.append(head.decode())
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=self._pour, args=(server, client), daemon=True)
            back.start()
            self._pour(client, server)
            back.join()

    @staticmethod
    def _pour(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in (self._thread, *self._tunnels):
            thread.join(60)


@pytest.mark.parametrize("way", ["proxy=", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_proxy_sees_a_tunnel_without_secrets(
    authority: trustme.CA, bundle: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictServer(tls(authority, "data.example.com")) as server, Proxy(server.port) as proxy:
        server.on("blocks", BLOCKS)
        address = f"http://someone:word@{proxy.address}"
        if way != "proxy=":
            monkeypatch.setenv(way, address)
        settings = {"proxy": address if way == "proxy=" else None, "ca_bundle": bundle}
        with server.client(base_url="https://data.example.com", **settings) as client:
            assert len(client.blocks().collect()) == 1
            assert "word" not in repr(client)
    (head,) = proxy.heads
    assert head.startswith("CONNECT data.example.com:443 HTTP/1.1\r\n")
    assert "roxy-" in head
    assert "XY-ACCESS" not in head.upper()


def test_proxy_of_the_environment_does_not_apply_to_loopback(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("blocks", BLOCKS)
    with Proxy(server.port) as proxy:
        for name in ("HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.address}")
        with server.client() as client:
            assert len(client.blocks().collect()) == 1
    assert proxy.heads == []


def test_a_bundle_may_be_a_directory(authority: trustme.CA, bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Path(bundle).parent
    (directory / "notes.txt").write_text("not a certificate", encoding="utf-8")
    with StrictServer(tls(authority, "127.0.0.1")) as server:
        server.on("blocks", BLOCKS)
        with server.client(ca_bundle=directory) as client:
            assert len(client.blocks().collect()) == 1
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(directory))
        with server.client() as client:
            assert len(client.blocks().collect()) == 1


@pytest.mark.parametrize("bundle_path", ["missing.pem", "."])
def test_an_unusable_bundle_of_the_environment_is_for_https_alone(
    server: StrictServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle_path: str
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / bundle_path))
    server.on("blocks", BLOCKS)
    with server.client() as client:
        assert len(client.blocks().collect()) == 1
    with pytest.raises(cf.ConfigError, match=r"^REQUESTS_CA_BUNDLE "):
        server.client(base_url="https://data.example.com")


class TlsProxy:
    """A proxy with TLS that rejects every tunnel, and keeps what is sent to it without TLS."""

    def __init__(self, context: ssl.SSLContext, response: bytes) -> None:
        self.in_clear: list[bytes] = []
        self.encrypted: list[bytes] = []
        self._context, self._response = context, response
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(10)
                    first = connection.recv(4096, socket.MSG_PEEK)
                    # 0x16 begins a handshake.
                    if first[:1] not in {b"\x16", b""}:
                        self.in_clear.append(first)
                        continue
                    with self._context.wrap_socket(connection, server_side=True) as tls:
                        self.encrypted.append(tls.recv(4096))
                        tls.sendall(self._response)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)


CREDENTIALS = base64.b64encode(b"someone:canary-66")


@pytest.mark.parametrize("way", ["proxy", "HTTPS_PROXY"])
@pytest.mark.parametrize(
    ("response", "said"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", r"rejected the connection \(status 403\)"),
        (b"HTTP/1.1 407 Denied\r\n\r\n", r"did not accept the user name and password \(status 407\)"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", r"rejected the connection \(status 503\)"),
        (b"HTTP/1.1 20", "the proxy https://127"),
        (b"", "the proxy https://127"),
        (b"x" * 20_000, r"rejected the connection \("),
    ],
)
def test_password_of_a_tls_proxy_is_sent_over_tls_only(  # noqa: PLR0917 - fixtures and the columns of a table
    server: StrictServer,
    authority: trustme.CA,
    bundle: str,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    response: bytes,
    said: str,
) -> None:
    with TlsProxy(tls(authority, "127.0.0.1"), response) as proxy:
        address = f"https://someone:canary-66@{proxy.address}"
        if way != "proxy":
            monkeypatch.setenv(way, address)
        settings = {"proxy": address if way == "proxy" else None, "ca_bundle": bundle, "max_retries": 1}
        failure = transport_error(server.client(base_url="https://data.example.com", **settings))
    assert re.search(said, str(failure))
    assert proxy.in_clear == []
    assert all(CREDENTIALS in head for head in proxy.encrypted)
    # One connection for each attempt: nothing else asks the proxy.
    assert len(proxy.encrypted) == failure.attempts


def test_proxy_with_an_unknown_certificate_gets_no_password(server: StrictServer, authority: trustme.CA) -> None:
    with TlsProxy(tls(authority, "127.0.0.1"), b"") as proxy:
        address = f"https://someone:canary-66@{proxy.address}"
        failure = transport_error(server.client(base_url="https://data.example.com", proxy=address))
    assert failure.phase == "tls"
    assert (proxy.in_clear, proxy.encrypted) == ([], [])


def test_tunnel_of_a_tls_proxy_carries_tls(server: StrictServer, authority: trustme.CA, bundle: str) -> None:
    """The response to CONNECT is all that the proxy sends, so the handshake with the service fails in the tunnel."""
    with TlsProxy(tls(authority, "127.0.0.1"), b"HTTP/1.1 200 OK\r\n\r\n") as proxy:
        settings = {"proxy": f"https://{proxy.address}", "ca_bundle": bundle}
        failure = transport_error(server.client(base_url="https://data.example.com", **settings))
    assert "rejected" not in str(failure)
    assert proxy.encrypted[0].startswith(b"CONNECT data.example.com:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization" not in proxy.encrypted[0]
