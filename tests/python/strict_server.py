"""An HTTP server written from the API's document alone, which shares no code with the client.

It implements another deployment, checks every request as strictly as a deployed service would, and sends the responses
of a test byte for byte. A request that fails a check gets an error response, and its reason is added to `rejections`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl

import chainframe as cf
from reference_client import ENDPOINTS, LISTS, PAGED, RECORDS, TOTALS, required
from repository import row_of

API_KEY = "key-1f0c77"
SECRET_KEY = "secret-9b2e41"
PASSPHRASE = "phrase-d5a806"
DEPLOYMENT = cf.Deployment(header_prefix="XY", main="alpha", zone="beta")

PATHS = {
    "tokens": "/api/v5/alpha/token/token-list",
    "token_transfers": "/api/v5/alpha/token/transaction-list",
    "cross_chain_transactions": "/api/v5/alpha/beta/cross/transaction-list",
    "blocks": "/api/v5/alpha/beta/block/block-list",
    "address_transactions": "/api/v5/alpha/address/normal-transaction-list",
    "large_transactions": "/api/v5/alpha/transaction/large-transaction-list",
    "transactions": "/api/v5/alpha/transaction/transaction-list",
    "transactions_by_hash": "/api/v5/alpha/transaction/transaction-multi",
    "logs": "/api/v5/alpha/log/by-transaction",
}
CLOCK_TOLERANCE = 30


@dataclass(frozen=True)
class Request:
    """A received request."""

    target: str
    path: str
    query: dict[str, str]
    timestamp: str
    signature: str


@dataclass(frozen=True)
class Response:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[Request], Response]


def envelope(data: object, *, code: object = "0", msg: str = "") -> bytes:
    return json.dumps({"code": code, "msg": msg, "data": data}).encode()


def page_of(call: str, records: list[Any], **members: object) -> Response:
    """A page without its number; the only page of its list, unless `members` have other counts."""
    page: dict[str, object] = {"limit": "50", "totalPage": "1" if records else "0", **members}
    page[row_of(LISTS, call, "LISTS of reference_client.py")] = records
    return Response(envelope([page]))


def rows_of(call: str, records: list[Any]) -> Response:
    """A response with these records, in the format of that call."""
    return page_of(call, records) if call in PAGED else Response(envelope(records))


def query_of(client: cf.Client, call: str, **options: Any) -> cf.Query[Any]:
    """That call, with a text for each argument that it must be given."""
    arguments = {param["name"]: "0xa" for param in required(call)}
    query: cf.Query[Any] = getattr(client, call)(**arguments, **options)
    return query


def key_of(call: str) -> str:
    """The column that identifies a record of that call."""
    name: str = RECORDS[ENDPOINTS[call]["record"]]["identity"][0]
    return name


def member_of(call: str, column: str) -> str:
    """The member of a record of that call that has the values of a column."""
    fields = RECORDS[ENDPOINTS[call]["record"]]["fields"]
    wire: str = next(field["wire"][0] for field in fields if field["name"] == column)
    return wire.replace("{main}", DEPLOYMENT.main).replace("{zone}", DEPLOYMENT.zone)


def total_of(call: str, count: int) -> dict[str, str]:
    """The member of a page that counts the records of the list, if that call has one."""
    return {TOTALS[call]: str(count)} if ENDPOINTS[call]["is counted"] else {}


def error(status: int, code: object, msg: str = "no", **headers: str) -> Response:
    return Response(envelope([], code=code, msg=msg), status, headers)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # By default 5 connections may wait to be accepted; the system drops what is sent on the others, for seconds.
    request_queue_size = 128


class StrictServer:
    """A server that runs one script per call; a script returns the response to a request."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.rejections: list[str] = []
        self.connections = 0
        self._scripts: dict[str, Script] = {}
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._scheme = "https" if tls else "http"
        if tls:
            # The thread of a connection makes its handshake: a client that rejects it must not end the server.
            wrapped = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
            self._http.socket = wrapped
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._http.server_port

    def on(self, call: str, *responses: Response | Script) -> None:
        """Respond to that call with these in turn, and with the last one from then on."""
        left = list(responses)

        def script(request: Request) -> Response:
            response = left.pop(0) if len(left) > 1 else left[0]
            return response(request) if callable(response) else response

        self._scripts[row_of(PATHS, call, "PATHS of strict_server.py")] = script

    def client(self, **overrides: Any) -> cf.Client:
        settings: dict[str, Any] = {
            "base_url": self.url,
            "api_key": API_KEY,
            "secret_key": SECRET_KEY,
            "passphrase": PASSPHRASE,
            "main_chain": "ALPHA",
            "zone_chain": "BETA_X",
            "deployment": DEPLOYMENT,
            "rate_limit": None,
            "max_retries": 0,
        }
        return cf.Client(**{**settings, **overrides})

    def respond(self, target: str, headers: dict[str, str]) -> Response:
        path, _, query = target.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        request = Request(
            target=target,
            path=path,
            query=dict(pairs),
            timestamp=headers.get("xy-access-timestamp", ""),
            signature=headers.get("xy-access-sign", ""),
        )
        self.requests.append(request)
        wrong = self._wrong(request, headers, pairs)
        if wrong:
            self.rejections.append(wrong)
            return error(401, "50113", wrong)
        script = self._scripts.get(path)
        return error(404, "50404", f"no such path: {path}") if script is None else script(request)

    def _wrong(self, request: Request, headers: dict[str, str], pairs: list[tuple[str, str]]) -> str:
        """Return the reason why a deployed server would reject the request, or an empty string."""
        prehash = f"{request.timestamp}GET{request.target}"
        digest = hmac.new(SECRET_KEY.encode(), prehash.encode(), hashlib.sha256).digest()
        chain = "BETA_X" if "/beta/" in request.path else "ALPHA"
        checks = {
            "key": headers.get("xy-access-key") == API_KEY,
            "passphrase": headers.get("xy-access-passphrase") == PASSPHRASE,
            "timestamp": _is_now(request.timestamp),
            "signature": request.signature == base64.b64encode(digest).decode(),
            "a parameter twice": len(pairs) == len(request.query),
            "an empty parameter": all(request.query.values()),
            "chainShortName": request.query.get("chainShortName") == chain,
            "another deployment's header": not any(name.startswith("svc-") for name in headers),
            "the secret in a header": not any(SECRET_KEY in value for value in headers.values()),
        }
        return ", ".join(check for check, passed in checks.items() if not passed)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _is_now(timestamp: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp):
        return False
    return abs((datetime.now(UTC) - datetime.fromisoformat(timestamp)).total_seconds()) < CLOCK_TOLERANCE


def _handler(server: StrictServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are sent together: otherwise the body waits for the acknowledgement of the head.
        wbufsize = -1
        disable_nagle_algorithm = True
        # A connection that the client keeps open must not keep the server running.
        timeout = 5

        def do_GET(self) -> None:
            response = server.respond(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(response.status)
            for name, value in {"Content-Type": "application/json", **response.headers}.items():
                self.send_header(name, value)
            if "Transfer-Encoding" not in response.headers:
                self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        def handle(self) -> None:
            server.connections += 1
            # A client may close its connection at any time.
            with contextlib.suppress(OSError):
                super().handle()

        def finish(self) -> None:
            with contextlib.suppress(OSError):
                super().finish()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named there
            """Log nothing: `requests` has every request."""

    return Handler
