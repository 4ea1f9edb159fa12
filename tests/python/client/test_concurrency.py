"""Requests in flight, counted in virtual time: of lists with a fixed concurrency, and with `concurrency="auto"`."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_FLIGHT = 8
SETTINGS: list[Literal["auto"] | int] = [4, 16, 64, "auto"]
# Each seventh response takes three times as long: those after it must not wait for it.
SLOW: list[Any] = [{"kind": "delay", "seconds": 0.3}, {"kind": "delay", "seconds": 0.6, "every": 7}]


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=10_000, seed=7, simulated=True) as running:
        yield running


def counted(attempts: list[cf.Attempt]) -> list[tuple[float, int]]:
    """Times of requests and responses, and how many requests are in flight from then on."""
    starts = [(attempt.started.timestamp(), 1) for attempt in attempts]
    ends = [(attempt.started.timestamp() + attempt.elapsed, -1) for attempt in attempts]
    changes = Counter[float]()
    for at, change in starts + ends:
        changes[round(at, 3)] += change
    in_flight, counts = 0, []
    for at in sorted(changes):
        in_flight += changes[at]
        counts.append((at, in_flight))
    return counts


def mean_while_full(counts: list[tuple[float, int]], limit: int) -> float:
    """The mean between the first time and the last that as many requests as allowed are in flight."""
    full = [index for index, (_, in_flight) in enumerate(counts) if in_flight >= limit]
    middle = counts[full[0] : full[-1] + 2]
    spans = [(later - at, in_flight) for (at, in_flight), (later, _) in pairwise(middle)]
    return sum(seconds * in_flight for seconds, in_flight in spans) / sum(seconds for seconds, _ in spans)


def lists_of(client: cf.Client) -> dict[str, cf.Query[Any]]:
    transactions = client.transactions(max_items=3_000).collect()
    senders = Counter(record.input for record in transactions if record.input and "," not in record.input)
    addresses = [address for address, _ in senders.most_common(3)]
    newest = transactions[0].height or 0
    tokens = [token.token_contract_address or "" for token in client.tokens(max_items=3).collect()]
    # Each of these heights has one page.
    heights: Any = {"start_height": newest - 489, "end_height": newest - 354}
    # Five of these 40 heights have several pages.
    dense: Any = {"start_height": newest - 76, "end_height": newest - 37}
    return {
        "blocks": client.blocks(page_size=50),
        "blocks, limited": client.blocks(page_size=20, max_items=2_000),
        "cross_chain_transactions": client.cross_chain_transactions(page_size=5),
        "cross_chain_transactions, limited": client.cross_chain_transactions(page_size=5, max_items=400),
        "token_transfers": client.token_transfers(tokens[0], page_size=20),
        "token_transfers, limited": client.token_transfers(tokens[0], page_size=20, max_items=2_000),
        "tokens": client.tokens(page_size=3),
        "tokens, limited": client.tokens(page_size=3, max_items=250),
        "transactions": client.transactions(),
        "transactions, limited": client.transactions(max_items=5_000),
        "large_transactions": client.large_transactions(page_size=10),
        "large_transactions, limited": client.large_transactions(page_size=10, max_items=900),
        "address_transactions": client.address_transactions(addresses[0], page_size=10),
        "address_transactions, limited": client.address_transactions(addresses[0], page_size=10, max_items=1_000),
        "heights": client.transactions(**heights),
        "heights, limited": client.transactions(**heights, max_items=1_200),
        "dense heights": client.transactions(**dense),
        "dense heights, limited": client.transactions(start_height=newest - 717, max_items=3_000),
        "hashes": client.logs([record.tx_id or "" for record in transactions[:100]]),
        "set": client.token_transfers(tokens, page_size=20),
        "set, five lists": client.address_transactions([*addresses, addresses[0].upper(), tokens[0]], page_size=10),
    }


@pytest.fixture(scope="module")
def names(service: LocalService) -> list[str]:
    with service.client(rate_limit=None) as client:
        return list(lists_of(client))


def test_no_list_is_read_in_single_file(service: LocalService, names: list[str]) -> None:
    too_few = {}
    for name in names:
        attempts: list[cf.Attempt] = []
        with service.client(rate_limit=None, concurrency=IN_FLIGHT, on_attempt=attempts.append) as client:
            query = lists_of(client)[name]
            attempts.clear()
            service.faults = SLOW
            with warnings.catch_warnings(action="ignore"):
                query.collect()
            service.faults = []
        counts = counted(attempts)
        assert max(in_flight for _, in_flight in counts) <= IN_FLIGHT, name
        mean = mean_while_full(counts, IN_FLIGHT) if max(count for _, count in counts) >= IN_FLIGHT else 1
        full = sum(in_flight >= IN_FLIGHT - 1 for _, in_flight in counts) / len(counts)
        if mean < 0.8 * IN_FLIGHT or full < 0.5:
            too_few[name] = (round(mean, 1), round(full, 2), len(attempts))
    assert too_few == {}


def test_a_client_with_another_concurrency_counts_its_own_requests(service: LocalService) -> None:
    attempts: list[cf.Attempt] = []
    with service.client(rate_limit=None, concurrency=4, on_attempt=attempts.append) as client:
        options: dict[str, Any]
        for options, most in (({"strict": True}, 4), ({"concurrency": 1}, 1), ({"concurrency": IN_FLIGHT}, IN_FLIGHT)):
            attempts.clear()
            client.with_options(**options).blocks(page_size=50, max_items=2_000).collect()
            assert max(in_flight for _, in_flight in counted(attempts)) == most


class Weather(NamedTuple):
    """Seconds of a response, seconds more for each response before it, and requests per second."""

    latency: float
    growth: float
    limit: float | None


WEATHERS = [
    *(Weather(latency, 0.0, limit) for latency in (0.005, 0.1, 1.0, 3.0) for limit in (3.0, 20.0, None)),
    *(Weather(0.05, 0.01, limit) for limit in (20.0, None)),
]


def elapsed(weather: Weather, concurrency: Literal["auto"] | int) -> tuple[float, int]:
    """Seconds that a list of 200 pages takes, and its throttled responses."""
    requests = 0

    def delay_next(_: object = None) -> None:
        nonlocal requests
        limited.faults = [{"kind": "delay", "seconds": weather.latency + weather.growth * requests}]
        requests += 1

    with LocalService(transactions=4_000, seed=7, simulated=True, rate_limit=weather.limit) as limited:
        # In the service, and not after an attempt: then the times would depend on threads.
        limited.respond = delay_next
        delay_next()
        with limited.client(deadline=None, max_retries=50, concurrency=concurrency) as client:
            report = client.blocks(page_size=20).collect().report
            assert report.complete
            return report.elapsed, client.usage.throttled


def test_auto_takes_hardly_longer_than_the_best_fixed_setting() -> None:
    slower = {}
    throttled = Counter[object]()
    for weather in WEATHERS:
        runs = {setting: elapsed(weather, setting) for setting in SETTINGS}
        throttled.update({setting: responses for setting, (_, responses) in runs.items()})
        seconds = {setting: taken for setting, (taken, _) in runs.items()}
        best = min(taken for setting, taken in seconds.items() if setting != "auto")
        if seconds["auto"] > 1.15 * best:
            slower[weather] = seconds
    assert slower == {}
    assert throttled["auto"] < 1.1 * throttled[64]


def test_auto_is_the_default_and_is_kept_by_pickling(service: LocalService) -> None:
    with LocalService(transactions=100) as real, real.client() as client:
        assert "auto (4 requests)" in client._repr_html_()
        settings = pickle.dumps(client)
        assert b"auto" in settings
    with service.client(rate_limit=1) as limited:
        limited.blocks(max_items=1).collect()
        assert "auto (2 requests)" in limited._repr_html_()


@pytest.mark.parametrize("given", [True, "many", 1.5, None])
def test_other_values_are_refused(service: LocalService, given: Any) -> None:
    with pytest.raises(cf.ConfigError, match='concurrency must be "auto" or an integer from 1 to 256'):
        service.client(concurrency=given)
