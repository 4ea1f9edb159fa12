"""A service written by hand from the interface alone, to hold the client against: nothing of the client is in it.

It speaks another deployment's words, checks every request as strictly as a deployed service would, and answers what a
test scripts, byte for byte. What it finds wrong with a request it puts into `refusals` and refuses.
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
LISTS = {"tokens": "tokenList", "cross_chain_transactions": "data", "blocks": "data"}
CLOCK_TOLERANCE = 30


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    target: str
    path: str
    query: dict[str, str]
    timestamp: str
    signature: str


@dataclass(frozen=True)
class Answer:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[Request], Answer]


def envelope(data: object, *, code: object = "0", msg: str = "") -> bytes:
    return json.dumps({"code": code, "msg": msg, "data": data}).encode()


def page_of(call: str, records: list[Any], **members: object) -> Answer:
    """A page that holds these records, and is the only one unless `members` say otherwise."""
    page: dict[str, object] = {"page": "1", "limit": "50", "totalPage": "1", **members}
    page[LISTS.get(call, "transactionList")] = records
    return Answer(envelope([page]))


def rows_of(call: str, records: list[Any]) -> Answer:
    """An answer that holds these records, in the shape of that call."""
    if call in {"transactions_by_hash", "logs"}:
        return Answer(envelope(records))
    return page_of(call, records)


def error(status: int, code: object, msg: str = "no", **headers: str) -> Answer:
    return Answer(envelope([], code=code, msg=msg), status, headers)


class StrictServer:
    """Serves `scripts`, one for each call; a script takes the request and gives the answer."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.refusals: list[str] = []
        self._scripts: dict[str, Script] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            # Shaking hands is for the thread of the connection: a client that dislikes it must not end the server.
            wrapped = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
            self._http.socket = wrapped
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._http.server_port

    def on(self, call: str, *answers: Answer | Script) -> None:
        """Answer that call with these, one after the other, and with the last from then on."""
        left = list(answers)

        def script(request: Request) -> Answer:
            answer = left.pop(0) if len(left) > 1 else left[0]
            return answer(request) if callable(answer) else answer

        self._scripts[PATHS[call]] = script

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

    def answer(self, target: str, headers: dict[str, str]) -> Answer:
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
            self.refusals.append(wrong)
            return error(401, "50113", wrong)
        script = self._scripts.get(path)
        return error(404, "50404", f"no such path: {path}") if script is None else script(request)

    def _wrong(self, request: Request, headers: dict[str, str], pairs: list[tuple[str, str]]) -> str:
        """Return the reason why a deployed server would reject the request, or None."""
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
        return ", ".join(what for what, right in checks.items() if not right)

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
        # Head and body leave together; apart, the second would wait for the first to be acknowledged.
        wbufsize = -1
        # A client that keeps its connection must not keep the test's server.
        timeout = 5

        def do_GET(self) -> None:
            answer = server.answer(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            if "Transfer-Encoding" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def handle(self) -> None:
            # A client that goes away is a client's right.
            with contextlib.suppress(OSError):
                super().handle()

        def finish(self) -> None:
            with contextlib.suppress(OSError):
                super().finish()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named there
            """Say nothing: what matters is in `requests`."""

    return Handler
