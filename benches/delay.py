"""Requests small pages while a large one is read: `delay.py ORIGIN` prints the longest of their times in milliseconds.

Both run in one event loop and one runtime, as in a service that answers several users.
"""

from __future__ import annotations

import asyncio
import sys
import time

from clients import client_of


async def longest_delay(origin: str) -> float:
    client = client_of(origin)
    small, large = client.token_transfers("0xa", max_items=50), client.tokens()
    await small.collect_async()
    delays = []
    reading = asyncio.create_task(large.collect_async())
    while not reading.done():
        started = time.perf_counter()
        await small.collect_async()
        delays.append(time.perf_counter() - started)
    if not await reading:
        sys.exit("delay: the large page has no records")
    return max(delays)


def main() -> None:
    (origin,) = sys.argv[1:]
    print(asyncio.run(longest_delay(origin)) * 1e3)


if __name__ == "__main__":
    main()
