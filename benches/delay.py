"""Requests small pages beside another request: `delay.py ORIGIN` prints the longest of their times in milliseconds.

The other request reads a large page, or with `delay.py ORIGIN flood` a response of another service whose chunk has a
size without end. Both run in one event loop and one runtime, as in a service that answers several users.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import sys
import time

import chainframe as cf
from clients import TOKEN, client_of

SECONDS = 2
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SIZE = b"0" * 65_536


async def longest_delay(origin: str, hostile: str | None) -> float:
    small = client_of(origin).token_transfers(TOKEN, max_items=50)
    other = client_of(hostile).with_options(timeout=SECONDS, max_retries=0) if hostile else client_of(origin)
    await small.collect_async()
    delays = []
    reading = asyncio.create_task(other.tokens().collect_async())
    while not reading.done():
        started = time.perf_counter()
        await small.collect_async()
        delays.append(time.perf_counter() - started)
    try:
        records = await reading
    except cf.RequestTimeoutError:
        if hostile:
            return max(delays)
        raise
    if not records:
        sys.exit("delay: the large page has no records")
    return max(delays)


def send_without_end(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.recv(65_536)
    try:
        connection.sendall(HEAD)
        while True:
            connection.sendall(SIZE)
    except OSError:
        # The client has closed the connection.
        return


def main() -> None:
    origin, *flood = sys.argv[1:]
    hostile = None
    if flood:
        listener = socket.create_server(("127.0.0.1", 0))
        hostile = f"http://127.0.0.1:{listener.getsockname()[1]}"
        multiprocessing.get_context("fork").Process(target=send_without_end, args=(listener,), daemon=True).start()
    print(asyncio.run(longest_delay(origin, hostile)) * 1e3)


if __name__ == "__main__":
    main()
