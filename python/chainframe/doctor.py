"""`chainframe doctor`: checks of settings, proxy, DNS, TCP, TLS, clock and signature, and one signed request a chain.

Each result is one line without secrets. Checks that depend on a failed one are skipped.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from chainframe import (
    AuthenticationError,
    ChainframeError,
    Client,
    Deployment,
    PermissionDeniedError,
    RateLimitError,
    ResponseFormatError,
    ServiceError,
    TransportError,
)
from chainframe._arguments import similar
from chainframe._native import _proxy, _signature, _without_cassette
from chainframe._paths import is_utf8
from chainframe._text import without_secrets
from chainframe.errors.base import in_shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chainframe import Query

USAGE = 2
AUTHENTICATION = 3
RATE_LIMIT = 4
NETWORK = 5
REFUSED = 9  # as of the other commands: another try is not expected to help
CODES = (0, NETWORK, RATE_LIMIT, REFUSED, AUTHENTICATION, USAGE)
"""If several checks fail, the exit code of the command is that of them which stands last here."""
TIMEOUT = 10.0
# The API rejects signatures that are older.
MAX_CLOCK_SKEW = 30.0
SETTINGS: dict[str, str | None] = {"base_url": None, "main_chain": "MAIN", "zone_chain": "ZONE_CHAIN"}
PORTS = {"http": 80, "https": 443}
SECRETS = ("api_key", "secret_key", "passphrase")
PREFIX = "CHAINFRAME_"
OTHER_VARIABLES = (
    "BLOCK_NETWORK",
    "CACHE",
    "CASSETTE",
    "CASSETTE_ALLOW_PLAYBACK_REPEATS",
    "CASSETTE_MATCH_ON",
    "CASSETTE_MODE",
    "CASSETTE_STAGING",
    "CONCURRENCY",
    "DEPLOYMENT",
    "LOG",
    "MAX_REQUESTS",
    "NUMBERS",
    "RATE_LIMIT",
    "UPDATE_DOCS",
)
NOT_SENDING = ("CASSETTE", "CACHE")
"""Variables by which a client may send nothing."""
ELSEWHERE = {
    " and --chain": "",
    "--chain and ": "",
    "--max-requests": "CHAINFRAME_MAX_REQUESTS",
    "--rate-limit": "CHAINFRAME_RATE_LIMIT",
    "--concurrency": "CHAINFRAME_CONCURRENCY",
}
"""Options in advice that the other commands have, and what this one has in place of them."""
QUOTES = ('"', "'")
VECTOR = (
    "S3CR3T",
    "2026-01-31T09:08:57.715Z",
    "/api/v5/main/token/token-list?chainShortName=MAIN&limit=50&page=1",
    "ZpvBqVUogWHz1JYrxIkDnYvuADwoLgixTVVRgVU++V4=",
)


@dataclass(frozen=True)
class CheckResult:
    """Result of one check; `code` is the exit code if it failed."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    code: int = 0


def run_checks(
    *, deployment: Deployment, proxy: str | None, ca_bundle: str | None, given: dict[str, str]
) -> Iterator[CheckResult]:
    """Runs the checks and yields their results; `given` are settings that are not taken from the environment."""
    settings = [*_settings(deployment, given), *_variables()]
    yield from settings
    yield _self_test()
    if any(result.status == "fail" for result in settings):
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
    except ChainframeError as error:
        # A cassette or a cache of the environment that cannot be opened, too: no other command would run.
        yield CheckResult("settings", "fail", _text(error), USAGE)
        return
    yield from _not_sending()
    with _without_cassette(client).with_options(cache=None) as client:
        yield from _network(client, ca_bundle or os.environ.get("REQUESTS_CA_BUNDLE"))
        # The client may connect where the standard library does not, and its error is the one that counts.
        first = _request("request", client.tokens())
        yield first
        # The next request would wait as long as the service said, up to the deadline.
        if first.code != RATE_LIMIT:
            yield _request("zone request", client.blocks())


def _settings(deployment: Deployment, given: dict[str, str]) -> Iterator[CheckResult]:
    for name in (*SETTINGS, *(SECRETS if deployment.signed else SECRETS[:1])):
        variable = f"{PREFIX}{name.upper()}"
        value = os.environ.get(variable, "")
        if name in given:
            yield CheckResult(name, "ok", f"{without_secrets(given[name])} (from the command line)")
        elif not is_utf8(value):
            yield CheckResult(name, "fail", f"{variable} must be UTF-8 text; set it again in this encoding", USAGE)
        elif surplus := _surplus(value):
            yield CheckResult(name, "warn", f"{variable} has {surplus} around its value; remove it")
        elif value:
            # The client rejects a password in a URL; here it is redacted.
            shown = "set" if name in SECRETS else without_secrets(value)
            yield CheckResult(name, "ok", f"{shown} (from {variable})")
        elif default := SETTINGS.get(name):
            yield CheckResult(name, "ok", f"{default} (the default; {variable} is not set)")
        else:
            yield CheckResult(name, "fail", f"missing; set {variable}", USAGE)


def _variables() -> Iterator[CheckResult]:
    known = [f"{PREFIX}{name.upper()}" for name in (*SETTINGS, *SECRETS, *OTHER_VARIABLES)]
    for variable in sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known):
        yield CheckResult("variables", "warn", f"{variable} is no variable of chainframe{similar(variable, known)}")


def _not_sending() -> Iterator[CheckResult]:
    for name in NOT_SENDING:
        if os.environ.get(f"{PREFIX}{name}"):
            text = f"{PREFIX}{name} is set; these checks do not use it, and send all requests"
            yield CheckResult(name.lower(), "warn", text)


def _surplus(value: str) -> str:
    """Return what a file of settings has left around a value, or nothing."""
    if value != value.strip():
        return "white space"
    return "quotes" if len(value) > 1 and value[0] == value[-1] and value[0] in QUOTES else ""


def _self_test() -> CheckResult:
    secret, timestamp, target, expected = VECTOR
    if _signature(secret, timestamp, target) == expected:
        return CheckResult("signature", "ok", "self-test passed: a known request has the expected signature")
    return CheckResult(
        "signature",
        "fail",
        "self-test failed: wrong signature of a known request; reinstall chainframe",
        AUTHENTICATION,
    )


def _network(client: Client, ca_bundle: str | None) -> Iterator[CheckResult]:
    url = urlsplit(client.base_url)
    proxy, source = _proxy(client)
    yield CheckResult("proxy", "ok", f"{without_secrets(proxy)} (from {source})" if proxy else f"none ({source})")
    next_hop = urlsplit(proxy) if proxy else url
    next_host, next_port = _address(next_hop)
    try:
        found = socket.getaddrinfo(next_host, next_port, type=socket.SOCK_STREAM)
        addresses = ", ".join(sorted({str(address[4][0]) for address in found}))
        yield CheckResult("dns", "ok", f"{next_host} resolves to {addresses}")
    except OSError as error:
        yield CheckResult(
            "dns", "fail", f"DNS lookup of {next_host} failed: {error}; check --base-url, --proxy and DNS", NETWORK
        )
        return
    try:
        with socket.create_connection((next_host, next_port), TIMEOUT):
            yield CheckResult("tcp", "ok", f"TCP connect to {next_host} port {next_port} ok")
    except OSError as error:
        yield CheckResult(
            "tcp",
            "fail",
            f"TCP connect to {next_host} port {next_port} failed: {error}; check --base-url, --proxy and firewall",
            NETWORK,
        )
        return
    yield from _tls_and_clock(url, next_hop if proxy else None, ca_bundle)


def _tls_and_clock(url: SplitResult, proxy: SplitResult | None, ca_bundle: str | None) -> Iterator[CheckResult]:
    """Checks the certificate and the server's clock with a request that is not signed."""
    try:
        with closing(_connection(url, proxy, ca_bundle)) as connection:
            connection.connect()
            if isinstance(connection.sock, ssl.SSLSocket):
                yield CheckResult("tls", "ok", _certificate(connection.sock))
            if _is_encrypted(proxy):
                # The signed request shows the rest.
                return
            # For the Date header; any response has one.
            connection.request("HEAD", url.path or "/")
            date = connection.getresponse().headers.get("Date")
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        # A connection that ended may have been lost.
        code = NETWORK if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) else REFUSED
        text = f"{reason}; check --base-url, or pass the certificate authority with --ca-bundle"
        yield CheckResult("tls", "fail", text, code)
        return
    except (OSError, http.client.HTTPException) as error:
        yield CheckResult(
            "http", "fail", f"{str(error) or type(error).__name__}; check --base-url and --proxy", NETWORK
        )
        return
    try:
        ahead = time.time() - parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        yield CheckResult("clock", "warn", "the response has no Date header")
        return
    side = "ahead of" if ahead > 0 else "behind"
    text = f"the system clock is {abs(ahead):.0f} s {side} the server's"
    if abs(ahead) < MAX_CLOCK_SKEW:
        yield CheckResult("clock", "ok", text)
    else:
        yield CheckResult("clock", "warn", f"{text}; corrected by the client; fix the system clock")


def _is_encrypted(proxy: SplitResult | None) -> bool:
    return proxy is not None and proxy.scheme == "https"


def _address(url: SplitResult) -> tuple[str, int]:
    return url.hostname or "", url.port or PORTS[url.scheme]


def _connection(url: SplitResult, proxy: SplitResult | None, ca_bundle: str | None) -> http.client.HTTPConnection:
    """Return a connection to the service, through a tunnel of its proxy.

    A connection to a proxy with TLS ends there: `http.client` would ask for the tunnel, with the password of the
    proxy, before the TLS.
    """
    next_hop = proxy or url
    host, port = _address(next_hop)
    if url.scheme != "https":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=_context(ca_bundle))
    if proxy and not _is_encrypted(proxy):
        headers = {}
        if proxy.username:
            pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        connection.set_tunnel(url.hostname or "", url.port or 443, headers)
    return connection


def _context(ca_bundle: str | None) -> ssl.SSLContext:
    """Return the TLS settings with the authorities that the client trusts."""
    if not ca_bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not Path(ca_bundle).is_dir():
        context.load_verify_locations(ca_bundle)
        return context
    for file in Path(ca_bundle).iterdir():
        # A directory of certificates holds other files as well. A pipe would be waited for.
        if file.is_file():
            with suppress(OSError):
                context.load_verify_locations(file)
    return context


def _certificate(connection: ssl.SSLSocket) -> str:
    certificate = connection.getpeercert() or {}
    issuer: Any = certificate.get("issuer", ())
    names = {key: value for pairs in issuer for key, value in pairs}
    authority = names.get("organizationName") or names.get("commonName") or "an unknown issuer"
    return (
        f"{connection.version()}, certificate issued by {authority}, expires {certificate.get('notAfter', 'unknown')}"
    )


def _request(check: str, query: Query[Any]) -> CheckResult:
    try:
        record = query.first()
    except ChainframeError as error:
        return CheckResult(check, "fail", f"{type(error).__name__}: {_text(error)}", _code(error))
    return CheckResult(check, "ok", "signed request succeeded" + ("" if record else ", without records"))


def _text(error: ChainframeError) -> str:
    """Return the message with options that this command has."""
    text = in_shell(error)
    for option, here in ELSEWHERE.items():
        text = text.replace(option, here)
    return text


def _code(error: ChainframeError) -> int:
    if isinstance(error, AuthenticationError | PermissionDeniedError):
        return AUTHENTICATION
    if isinstance(error, RateLimitError):
        return RATE_LIMIT
    if isinstance(error, ServiceError | TransportError | ResponseFormatError):
        return NETWORK if error.retryable else REFUSED
    return USAGE
