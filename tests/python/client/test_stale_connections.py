"""Connections that the server ends while they are idle or when another request arrives on them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import chainframe as cf
from strict_server import StrictServer, page_of

BODY = page_of("blocks", [{"hash": "0x1"}]).body
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY

pytestmark = pytest.mark.usefixtures("no_network_settings")


@contextmanager
def serving(serve: Callable[[socket.socket, int], None]) -> Generator[cf.Client]:
    """A client of a server that has a thread for each connection, which gets its number."""

    def run(connection: socket.socket, number: int) -> None:
        with connection:
            serve(connection, number)

    def accept(listener: socket.socket) -> None:
        for number in range(64):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=run, args=(connection, number), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        server = StrictServer()
        server._http.server_close()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with server.client(base_url=url, max_retries=0) as client:
            yield client


def test_request_on_a_stale_connection_is_sent_again_on_a_new_one() -> None:
    """The server ends each connection when a second request arrives on it: all idle ones are stale."""
    together = threading.Barrier(4)

    def serve(connection: socket.socket, number: int) -> None:
        connection.recv(1 << 16)
        if number < 4:
            together.wait(20)
        connection.sendall(REPLY)
        connection.recv(1 << 16)

    with serving(serve) as client:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: client.blocks().collect(), range(4)))
        for _ in range(6):
            assert len(client.blocks().collect()) == 1


def test_connection_that_is_stale_is_told_from_one_that_another_request_opens() -> None:
    """The server ends the connection that a request takes again once another request has opened one."""
    taken_again, opened = threading.Event(), threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        if number == 1:
            opened.set()
        while connection.recv(1 << 16):
            connection.sendall(REPLY)
            if number == 0:
                connection.recv(1 << 16)
                taken_again.set()
                opened.wait(20)
                return

    with serving(serve) as client, ThreadPoolExecutor(1) as pool:
        assert len(client.blocks().collect()) == 1
        again = pool.submit(client.blocks().collect)
        assert taken_again.wait(20)
        assert len(client.blocks().collect()) == 1
        assert len(again.result()) == 1
