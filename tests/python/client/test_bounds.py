"""Bounds of a request: every way in which a server can hold it ends at the timeout, and holds no other client.

A server sends its own input for much longer than the timeout, and then a valid response, which a client returns if the
timeout does not stop it.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
from typing import TYPE_CHECKING, Self

import pytest

import chainframe as cf
from strict_server import DEPLOYMENT, StrictServer, envelope, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.usefixtures("no_network_settings")

BODY = envelope([{"page": "1", "limit": "50", "totalPage": "1", "data": []}])
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
# Made in the tests, not by every worker that lists them.
UNPACKED_TO_NOTHING: dict[str, Callable[[], bytes]] = {
    "members": lambda: gzip.compress(b"") * 2_500_000 + gzip.compress(BODY),
    # Empty blocks of the fixed code of deflate, ten bits each.
    "blocks": lambda: b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\x02\x08\x20\x80\0" * 10_000_000,
}

# Ways without end: what comes first, what is repeated, and what makes a valid response of it.
ENDLESS = {
    "nothing": (b"", b"", PLAIN),
    "zeros before the size of a chunk": (CHUNKED, b"0", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
    "blanks after the size of a chunk": (CHUNKED + b"%x" % len(BODY), b" ", b"\r\n%s\r\n0\r\n\r\n" % BODY),
    "chunks of one byte": (CHUNKED, b"1\r\n \r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
}
# Ways that are too large at some point.
TOO_LARGE = {
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "more than 100 interim responses"),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "more than 100 interim responses"),
    "blank lines": (b"", b"\r\n", "message head is too large"),
    "a header": (OK + b"X: ", b"x", "message head is too large"),
    "headers": (OK, b"X: y\r\n", "message head is too large"),
    "a status line": (b"HTTP/1.1 200 ", b"x", "message head is too large"),
    "a chunk extension": (CHUNKED + b"1;", b"x", "chunk extensions over limit"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n", "chunk trailers"),
    "a body": (OK + b"\r\n", b" ", "response body exceeds max_response_bytes"),
}


class Sender:
    """A server that sends the same to every client: a start, one part again and again, and an end."""

    def __init__(self, start: bytes, repeated: bytes, end: bytes, size: int) -> None:
        self._start, self._repeated, self._end = start, repeated * (65_536 // max(1, len(repeated))), end
        self._left = size
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connection: socket.socket | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.is_sending = threading.Event()

    def client(self, **settings: float) -> cf.Client:
        return cf.Client(
            base_url=f"http://127.0.0.1:{self._listener.getsockname()[1]}",
            api_key="key-1",
            secret_key="secret-1",
            passphrase="phrase-1",
            deployment=DEPLOYMENT,
            rate_limit=None,
            max_retries=0,
            **settings,  # type: ignore[arg-type]
        )

    def _serve(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connection = connection
                with connection, contextlib.suppress(OSError):
                    self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(self._start)
        self.is_sending.set()
        if not self._repeated:
            # The client closes the connection.
            connection.recv(1)
        left = self._left
        while left > 0 and self._repeated and not self._stopped.is_set():
            connection.sendall(self._repeated)
            left -= len(self._repeated)
        connection.sendall(self._end)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        # A client may keep its connection.
        for opened in filter(None, (self._listener, self._connection)):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)


@contextlib.contextmanager
def sending(start: bytes, repeated: bytes = b"", end: bytes = b"", size: int = 30_000_000) -> Generator[Sender]:
    with Sender(start, repeated, end, size) as sender:
        yield sender


@pytest.mark.parametrize("way", ENDLESS)
def test_timeout_ends_a_response_without_end(way: str) -> None:
    with sending(*ENDLESS[way]) as sender, pytest.raises(cf.RequestTimeoutError):
        sender.client(timeout=0.03, max_response_bytes=2**31 - 1).blocks().collect()


@pytest.mark.parametrize("way", ENDLESS)
def test_deadline_ends_a_response_without_end(way: str) -> None:
    with sending(*ENDLESS[way]) as sender, pytest.raises(cf.RequestTimeoutError) as caught:
        sender.client(deadline=0.03, max_response_bytes=2**31 - 1).blocks().collect()
    assert caught.value.phase == "deadline"


@pytest.mark.parametrize("way", TOO_LARGE)
def test_what_is_too_large_is_rejected(way: str) -> None:
    start, repeated, problem = TOO_LARGE[way]
    with sending(start, repeated) as sender, pytest.raises(cf.TransportError, match=problem):
        sender.client(max_response_bytes=1_000_000).blocks().collect()


def test_interim_responses_of_a_long_request_are_accepted() -> None:
    body = envelope([{"page": "1", "limit": "1", "totalPage": "1", "data": [{"hash": "0x1", "height": "1"}]}])
    head = b"HTTP/1.1 102 Processing\r\n\r\n" * 100 + OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n"
    with sending(head % len(body) + body) as sender, sender.client(timeout=20) as client:
        assert client.blocks(max_items=1).collect()[0].height == 1


@pytest.mark.parametrize("setting", ["timeout", "deadline"])
@pytest.mark.parametrize("kind", UNPACKED_TO_NOTHING)
def test_timeouts_end_what_unpacks_to_nothing(kind: str, setting: str) -> None:
    """Without the limit, the members are a valid response, and the blocks an error that is no timeout."""
    body = UNPACKED_TO_NOTHING[kind]()
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with sending(head + body) as sender, pytest.raises(cf.RequestTimeoutError):
        sender.client(**{setting: 0.7}, max_response_bytes=100_000_000).blocks().collect()


@pytest.mark.parametrize("way", [way for way in ENDLESS if way != "nothing"])
def test_service_that_sends_without_end_does_not_hold_another_client(server: StrictServer, way: str) -> None:
    """The input ends only when the other client has its response: a client that waits for the end never gets it."""
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}]))
    start, repeated, end = ENDLESS[way]
    with sending(start, repeated, end, size=1 << 50) as sender:
        hostile = sender.client(timeout=30, max_response_bytes=2**31 - 1)

        def hold() -> None:
            with contextlib.suppress(cf.ChainframeError):
                hostile.blocks().collect()

        thread = threading.Thread(target=hold)
        thread.start()
        assert sender.is_sending.wait(60)
        with server.client(timeout=20) as client:
            for _ in range(5):
                assert len(client.blocks().collect()) == 1
        assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()
