"""Compares `rate_limit="auto"` with `rate_limit=None`: `rate_limit.py`, after `maturin develop`.

The local server answers 50 ms late, so a debug build measures the rate limiter as well as a release build. Every
measurement has a server, and so a rate limiter, of its own; the two settings alternate in one run.
"""

from __future__ import annotations

import statistics
import time

from chainframe.testing import LocalService

ROUNDS = 5
PAGE_SIZE = 10
IN_FLIGHT = 8
ALLOWED = 8.0


def seconds(pages: int, *, automatic: bool) -> float:
    with (
        LocalService(faults=[{"kind": "delay", "seconds": 0.05}]) as service,
        service.client(rate_limit="auto" if automatic else None, concurrency=IN_FLIGHT) as client,
    ):
        query = client.blocks(page_size=PAGE_SIZE, max_items=pages * PAGE_SIZE)
        started = time.perf_counter()
        assert len(query.collect()) == pages * PAGE_SIZE
        return time.perf_counter() - started


def limited(pages: int) -> tuple[float, float]:
    """Shares of the allowed rate that was used, and of the requests that were throttled."""
    with (
        LocalService(rate_limit=ALLOWED, faults=[{"kind": "delay", "seconds": 0.05}]) as service,
        service.client(rate_limit="auto", concurrency=IN_FLIGHT) as client,
    ):
        started = time.perf_counter()
        client.blocks(page_size=PAGE_SIZE, max_items=pages * PAGE_SIZE).collect()
        elapsed = time.perf_counter() - started
        return pages / elapsed / ALLOWED, client.rate_limit_state.throttled / service.request_count


def main() -> None:
    for pages in (5, 20, 80):
        timed = [(seconds(pages, automatic=True), seconds(pages, automatic=False)) for _ in range(ROUNDS)]
        automatic, unlimited = (statistics.median(column) for column in zip(*timed, strict=True))
        print(f"{pages:3} pages: auto {automatic:.3f} s, None {unlimited:.3f} s, ratio {automatic / unlimited:.2f}")
    for pages in (100, 300):
        used, throttled = limited(pages)
        print(f"{pages} pages at {ALLOWED:g}/s: {used:.0%} of the rate used, {throttled:.1%} of the requests throttled")


if __name__ == "__main__":
    main()
