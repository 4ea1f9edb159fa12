"""Queries of several values with a range of times: its heights are those of all lists, and are searched for once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from chainframe.testing import LocalService
from sets.test_sets_followed import query_of, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RANGES = [("start_time",), ("end_time",), ("start_time", "end_time")]
pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=7, simulated=True) as running:
        yield running


def bounds_of(service: LocalService, names: tuple[str, ...], chain: Literal["main", "zone"] = "main") -> dict[str, Any]:
    client = service.client()
    newest = client.transactions(max_items=1_400).collect()
    later, earlier = (newest[row].transaction_time for row in (400, 1_200))
    assert earlier is not None
    bounds = {"start_time": earlier, "end_time": later, "start_height": client.height_at(earlier, chain=chain)}
    return {name: bounds[name] for name in names}


def searches(service: LocalService, run: Callable[[], Any]) -> int:
    """Number of requests for blocks of the chain."""
    before = len(service.request_log)
    run()
    return sum(request["call"] in {"transactions", "blocks"} for request in service.request_log[before:])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        *[(call, names) for call in ("address_transactions", "cross_chain_transactions") for names in RANGES],
        # Lists of addresses request the block of this height: the API has them for a year.
        ("address_transactions", ("start_height",)),
    ],
)
def test_lists_of_a_set_search_for_their_heights_once(service: LocalService, call: str, names: tuple[str, ...]) -> None:
    bounds = bounds_of(service, names, "zone" if call == "cross_chain_transactions" else "main")
    client = service.client()
    values = values_of(service, call, 12)
    alone = {value: query_of(client, call, value, bounds).collect().to_dicts() for value in values}
    of_one = searches(service, query_of(client, call, values[0], bounds).collect)
    together = query_of(client, call, values, bounds)
    assert searches(service, together.collect) == of_one > 0
    found: dict[str, list[dict[str, Any]]] = {value: [] for value in values}
    for row in together.collect().to_dicts():
        found[row.pop("queried")[0]].append(row)
    assert found == alone
    assert any(alone.values())


def test_estimate_of_a_set_searches_for_its_heights_once(service: LocalService) -> None:
    bounds = bounds_of(service, ("start_time", "end_time"))
    client = service.client()
    values = values_of(service, "address_transactions", 40)
    together = query_of(client, "address_transactions", values, bounds)
    of_one = searches(service, query_of(client, "address_transactions", values[0], bounds).collect)
    assert searches(service, together.estimate) == of_one > 0
    least, most = together.estimate().requests_range
    assert most is not None
    assert least <= together.collect().report.requests <= most


def test_followers_of_a_set_search_for_their_first_height_once(service: LocalService) -> None:
    bounds = bounds_of(service, ("start_time",))
    client = service.client()
    values = values_of(service, "address_transactions", 12)

    def catch_up(of: Any) -> None:
        for _ in query_of(client, "address_transactions", of, bounds).follow(start="beginning", poll=None):
            pass

    assert searches(service, lambda: catch_up(values)) == searches(service, lambda: catch_up(values[:1]))


def test_heights_that_empty_responses_hide_are_doubtful_for_every_list(service: LocalService) -> None:
    bounds = bounds_of(service, ("start_time",))
    values = values_of(service, "address_transactions", 6)
    path = next(request["path"] for request in service.request_log if request["call"] == "transactions")
    service.faults = [{"kind": "empty", "path": path}]
    try:
        with service.client(rate_limit=None) as client:
            report = query_of(client, "address_transactions", values, bounds).collect().report
    finally:
        service.faults = []
    assert all("were empty" in str(verdict["reasons"]) for verdict in report.by_argument.values())
    assert len(report.by_argument) == len(values)
