"""What stands between this machine and an answer: settings, names, proxy, TLS, clock, signature, one signed request.

Each finding is one line without secrets. Where a step fails, the steps that need it are left out.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from chainframe import (
    AuthenticationError,
    ChainframeError,
    Client,
    ConfigError,
    Deployment,
    PermissionDeniedError,
    RateLimitError,
)
from chainframe._native import _signature

if TYPE_CHECKING:
    from collections.abc import Iterator

USAGE, AUTHENTICATION, RATE_LIMIT, NETWORK = 2, 3, 4, 5
TIMEOUT = 10.0
# Signatures older than this are refused.
TOLERANCE = 30.0
SETTINGS: dict[str, str | None] = {"base_url": None, "main_chain": "MAIN", "zone_chain": "ZONE_CHAIN"}
SECRETS = ("api_key", "secret_key", "passphrase")
VECTOR = (
    "S3CR3T",
    "2026-01-31T09:08:57.715Z",
    "/api/v5/main/token/token-list?chainShortName=MAIN&limit=50&page=1",
    "ZpvBqVUogWHz1JYrxIkDnYvuADwoLgixTVVRgVU++V4=",
)


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and the exit code if that is a failure."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    code: int = 0


def examine(
    *, deployment: Deployment, proxy: str | None, ca_bundle: str | None, given: dict[str, str]
) -> Iterator[Finding]:
    """The findings, as they come; `given` are settings that are not taken from the environment."""
    settings = list(_settings(given))
    yield from settings
    yield _self_test()
    if any(finding.status == "fail" for finding in settings):
        return
    try:
        client = Client(
            deployment=deployment,
            proxy=proxy,
            ca_bundle=ca_bundle,
            timeout=TIMEOUT,
            deadline=3 * TIMEOUT,
            max_retries=1,
            **given,  # type: ignore[arg-type]
        )
    except ConfigError as error:
        yield Finding("settings", "fail", str(error), USAGE)
        return
    with client:
        network = list(_network(urlsplit(client.base_url), proxy, ca_bundle or os.environ.get("REQUESTS_CA_BUNDLE")))
        yield from network
        # The client may still get through where the standard library does not, and its own words are the ones to go by.
        yield _request(client)


def _settings(given: dict[str, str]) -> Iterator[Finding]:
    for name, default in SETTINGS.items():
        variable = f"CHAINFRAME_{name.upper()}"
        if name in given:
            yield Finding(name, "ok", f"{_without_user(given[name])} (as given)")
        elif value := os.environ.get(variable, ""):
            # Who put a password there is told so by the client, not shown it.
            yield Finding(name, "ok", f"{_without_user(value)} (from {variable})")
        elif default:
            yield Finding(name, "ok", f"{default} (the default; {variable} is not set)")
        else:
            yield Finding(name, "fail", f"is missing; set {variable}", USAGE)
    for name in SECRETS:
        variable = f"CHAINFRAME_{name.upper()}"
        if os.environ.get(variable):
            yield Finding(name, "ok", f"is set (from {variable})")
        else:
            yield Finding(name, "fail", f"is missing; set {variable}", USAGE)


def _self_test() -> Finding:
    secret, timestamp, target, expected = VECTOR
    if _signature(secret, timestamp, target) == expected:
        return Finding("signature", "ok", "self-test: a known request is signed as it should be")
    return Finding("signature", "fail", "a known request is signed wrongly; reinstall chainframe", AUTHENTICATION)


def _network(url: SplitResult, given: str | None, ca_bundle: str | None) -> Iterator[Finding]:
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    proxy, why = _proxy(url, given)
    yield Finding("proxy", "ok", f"{_without_user(proxy)} ({why})" if proxy else f"none ({why})")
    near = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else url
    near_host, near_port = near.hostname or host, near.port or (port if not proxy else 80)
    try:
        found = socket.getaddrinfo(near_host, near_port, type=socket.SOCK_STREAM)
        addresses = ", ".join(sorted({str(address[4][0]) for address in found}))
        yield Finding("name", "ok", f"{near_host} is {addresses}")
    except OSError as error:
        yield Finding("name", "fail", f"{near_host} is not known: {error}; check base_url, proxy and DNS", NETWORK)
        return
    if near.scheme.startswith("socks"):
        return
    try:
        with socket.create_connection((near_host, near_port), TIMEOUT):
            yield Finding("tcp", "ok", f"{near_host} port {near_port} takes connections")
    except OSError as error:
        yield Finding(
            "tcp", "fail", f"{near_host} port {near_port}: {error}; check base_url, proxy and firewall", NETWORK
        )
        return
    yield from _tls_and_clock(url, near if proxy else None, ca_bundle)


def _proxy(url: SplitResult, given: str | None) -> tuple[str, str]:
    host = url.hostname or ""
    if given:
        return given, "as given"
    if host in {"127.0.0.1", "::1"} or host == "localhost" or host.endswith(".localhost"):
        return "", "the service is on this machine"
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if proxy and proxy_bypass(host):
        return "", "NO_PROXY names the service"
    return proxy, "from the environment" if proxy else "the environment names none"


def _tls_and_clock(url: SplitResult, proxy: SplitResult | None, ca_bundle: str | None) -> Iterator[Finding]:
    """A look without a key: who answers, and what time it is there."""
    connection = _connection(url, proxy, ca_bundle)
    try:
        connection.connect()
        if isinstance(connection.sock, ssl.SSLSocket):
            yield Finding("tls", "ok", _certificate(connection.sock))
        # On the way of an answer's Date; what the answer is does not matter.
        connection.request("HEAD", url.path or "/")
        date = connection.getresponse().headers.get("Date")
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        yield Finding("tls", "fail", f"{reason}; check base_url, or give the authority to trust as ca_bundle", NETWORK)
        return
    except (OSError, http.client.HTTPException) as error:
        yield Finding("http", "fail", f"{str(error) or type(error).__name__}; check base_url and proxy", NETWORK)
        return
    finally:
        connection.close()
    try:
        ahead = time.time() - parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        yield Finding("clock", "warn", "the service does not tell its time")
        return
    side = "ahead of" if ahead > 0 else "behind"
    text = f"this machine is {abs(ahead):.0f} s {side} the service"
    if abs(ahead) < TOLERANCE:
        yield Finding("clock", "ok", text)
    else:
        yield Finding("clock", "warn", f"{text}; the client makes up for it, but set the clock")


def _connection(url: SplitResult, proxy: SplitResult | None, ca_bundle: str | None) -> http.client.HTTPConnection:
    near = proxy or url
    host, port = near.hostname or "", near.port
    if url.scheme != "https":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    context = ssl.create_default_context(cafile=ca_bundle or None)
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=context)
    if proxy:
        headers = {}
        if proxy.username:
            pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        connection.set_tunnel(url.hostname or "", url.port or 443, headers)
    return connection


def _certificate(connection: ssl.SSLSocket) -> str:
    certificate = connection.getpeercert() or {}
    issuer: Any = certificate.get("issuer", ())
    names = {key: value for pairs in issuer for key, value in pairs}
    authority = names.get("organizationName") or names.get("commonName") or "an authority without a name"
    return f"{connection.version()}, a certificate of {authority}, good until {certificate.get('notAfter', 'unknown')}"


def _request(client: Client) -> Finding:
    try:
        token = client.tokens().first()
    except ChainframeError as error:
        return Finding("request", "fail", f"{type(error).__name__}: {error}", _code(error))
    return Finding("request", "ok", "a signed request was answered" + ("" if token else ", with no records"))


def _code(error: ChainframeError) -> int:
    if isinstance(error, AuthenticationError | PermissionDeniedError):
        return AUTHENTICATION
    return RATE_LIMIT if isinstance(error, RateLimitError) else NETWORK


def _without_user(url: str) -> str:
    before, at, after = url.rpartition("@")
    scheme, slashes, _ = before.rpartition("//")
    return f"{scheme}{slashes}***@{after}" if at else url
