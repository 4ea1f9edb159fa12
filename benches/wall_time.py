"""Compares `concurrency="auto"` with fixed settings: `wall_time.py [virtual]`, after `maturin develop`.

The local server delays its responses and limits the rate of requests. Every run has a server, and so a rate limiter, of
its own. With `virtual`, time is simulated, and the network takes about 40 ms more.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chainframe.testing import LocalService

if TYPE_CHECKING:
    import chainframe as cf

PAGES = 200
PAGE_SIZE = 20
SETTINGS: list[Literal["auto"] | int] = [4, 16, 64, "auto"]
# Runs with a longer latency wait nearly all the time, and may do so together.
FAST = 0.05


@dataclass(frozen=True)
class Weather:
    """Seconds of a response, seconds more for each page before it, and requests per second."""

    latency: float
    growth: float
    limit: float | None

    def __str__(self) -> str:
        grows = f" + {self.growth * 1e3:g} ms a page" if self.growth else ""
        return f"{self.latency * 1e3:g} ms{grows}"


WEATHERS = [
    *(Weather(latency, 0.0, limit) for latency in (0.005, 0.1, 1.0, 3.0) for limit in (3.0, 20.0, None)),
    *(Weather(0.05, 0.01, limit) for limit in (20.0, None)),
]


def measure(weather: Weather, concurrency: Literal["auto"] | int, *, simulated: bool) -> tuple[float, int]:
    """Seconds of one run, and its throttled responses."""
    responses = 0

    def delay() -> None:
        service.faults = [{"kind": "delay", "seconds": weather.latency + weather.growth * responses}]

    def on_attempt(_: cf.Attempt) -> None:
        nonlocal responses
        responses += 1
        delay()

    with LocalService(transactions=PAGES * PAGE_SIZE, rate_limit=weather.limit, simulated=simulated) as service:
        delay()
        grows = on_attempt if weather.growth else None
        with service.client(concurrency=concurrency, deadline=None, max_retries=50, on_attempt=grows) as client:
            report = client.blocks(page_size=PAGE_SIZE).collect().report
            return report.elapsed, client.usage.throttled


def table(*, simulated: bool) -> None:
    names = [f"`{setting}`, s" if isinstance(setting, int) else '`"auto"`, s' for setting in SETTINGS]
    print(f"{PAGES} pages; in brackets: throttled responses\n")
    print("| " + " | ".join(["Latency", "Limit", *names, "`auto` / best"]) + " |")
    print("|---" * (len(SETTINGS) + 3) + "|")
    slow = [weather for weather in WEATHERS if weather.latency >= FAST and not simulated]
    with ThreadPoolExecutor(max(1, len(slow) * len(SETTINGS))) as pool:
        runs = {
            (weather, setting): pool.submit(measure, weather, setting, simulated=simulated)
            for weather in slow
            for setting in SETTINGS
        }
        taken = {key: run.result() for key, run in runs.items()}
    for weather in WEATHERS:
        row = [taken.get((weather, s)) or measure(weather, s, simulated=simulated) for s in SETTINGS]
        best = min(seconds for seconds, _ in row[:-1])
        limit = f"{weather.limit:g}/s" if weather.limit else "none"
        cells = [f"{seconds:.2f} ({throttled})" for seconds, throttled in row]
        print("| " + " | ".join([str(weather), limit, *cells, f"{row[-1][0] / best:.2f}"]) + " |")


if __name__ == "__main__":
    table(simulated=sys.argv[1:] == ["virtual"])
