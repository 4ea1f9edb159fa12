"""Sets whose lists grow, lose records and are reorganized while they are read, and runs that are killed."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from sets.test_sets import PAGE, Wallets

if TYPE_CHECKING:
    from strict_server import Request, Response, StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
LISTS = 50
KILLS = 15


class Weather(Wallets):
    """Lists that change at any request for them."""

    def __init__(self, chance: random.Random) -> None:
        lengths = [chance.choice([0, 1, 2, 3, 4, 7, 25]) for _ in range(LISTS)]
        super().__init__(lengths, frozenset(chance.sample(range(LISTS), 2)))
        self.chance = chance
        self.is_calm = False
        self.listed = {name: {record["txId"] for record in records} for name, records in self.lists.items()}
        """All records that a list has ever had."""
        self.kept = {name: set(found) for name, found in self.listed.items()}
        """Those that it has had all the time."""
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Response:
        name = request.query["address"]
        self.asked[name] += 1
        if not self.is_calm and self.chance.random() < 0.05:
            self.change(name, self.lists[name])
        return super().__call__(request)

    def change(self, name: str, records: list[dict[str, str]]) -> None:
        height = max((int(record["height"]) for record in records), default=0)
        kind = self.chance.choice(["grow", "grow", "lose", "reorganize"])
        if kind == "lose" and records:
            records.pop(self.chance.randrange(len(records)))
        elif kind == "reorganize":
            for index, record in enumerate(records[:2]):
                digits = f"{self.chance.getrandbits(256):064x}"
                records[index] = {**record, "txId": f"0x{digits}", "blockHash": f"0x{digits[::-1]}"}
        else:
            records.insert(0, self.record(name, height + 1))
        found = {record["txId"] for record in records}
        self.listed[name] |= found
        self.kept[name] &= found


@pytest.mark.parametrize("seed", range(4))
def test_each_record_comes_once_or_its_list_is_named(server: StrictServer, seed: int) -> None:
    chance = random.Random(seed)
    wallets = Weather(chance)
    server.on("address_transactions", wallets)
    client = server.client(concurrency=4)
    query: cf.Query[Any] = client.address_transactions(wallets.names, page_size=PAGE)
    found: Counter[tuple[str, str]] = Counter()
    kills = 0
    while True:
        stop_after = chance.randrange(1, 25) if kills < KILLS else 10**9
        try:
            for taken, record in enumerate(query, 1):
                found[record.queried[0], record.tx_id] += 1
                if taken == stop_after:
                    break
            else:
                break
        except cf.PaginationDriftError:
            # A page is empty that the list had a moment ago: it may be a throttle, and the cursor continues.
            pass
        kills += 1
        query = client.resume(query.cursor)
    assert kills >= KILLS // 2
    named = {name for name, verdict in query.report.by_argument.items() if verdict["error"]}
    assert wallets.refused <= named
    # A list that lost records below its head while others came ends with an error; most do not.
    assert len(named) < LISTS // 3
    for name in wallets.names:
        of_list = Counter({tx_id: count for (queried, tx_id), count in found.items() if queried == name})
        assert set(of_list) <= wallets.listed[name]
        if name not in named:
            assert set(of_list.values()) <= {1}
            assert wallets.kept[name] <= set(of_list)
    assert not query.report.complete


def test_killed_runs_of_a_calm_set_cost_their_requests_in_flight(server: StrictServer) -> None:
    chance = random.Random(1)
    wallets = Weather(chance)
    wallets.is_calm = True
    server.on("address_transactions", wallets)
    client = server.client(concurrency=4)
    for name in wallets.names:
        if name not in wallets.refused:
            client.address_transactions(name, page_size=PAGE).collect()
    single = len(server.requests) + len(wallets.refused)
    before = len(server.requests)
    records = client.address_transactions(wallets.names, page_size=PAGE).collect()
    whole = len(server.requests) - before
    assert whole <= single
    before = len(server.requests)
    query: cf.Query[Any] = client.address_transactions(wallets.names, page_size=PAGE)
    count, kills = 0, 0
    while True:
        for taken, _ in enumerate(query, 1):
            count += 1
            if kills < 10 and taken == 20:
                break
        else:
            break
        kills += 1
        query = client.resume(query.cursor)
    assert count == len(records)
    assert kills == 10
    # Of each open list, 4 for each request in flight: a page that was read ahead, and one that finds its place again.
    assert len(server.requests) - before <= whole + kills * 2 * 4 * 4
