"""Heights of times in the cache: searched once, and again after a reorganization that may have moved them."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTLE = 6
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Chain:
    """Transactions of a chain some of whose heights have no block."""

    def __init__(self, seed: int, length: int = 80) -> None:
        self.random = random.Random(seed)
        self.rows: list[dict[str, str]] = []
        """The newest first."""
        self.newest = 0
        self.forks = 0
        self.moves: list[tuple[int, Callable[[], None]]] = []
        """Changes of the chain, each after a number of requests."""
        self.grow(length)

    def __call__(self, request: Request) -> Response:
        for due in [move for count, move in self.moves if count == 0]:
            due()
        self.moves = [(count - 1, move) for count, move in self.moves if count > 0]
        height, page, limit = request.query.get("height"), int(request.query["page"]), int(request.query["limit"])
        start, end = (request.query.get(name) for name in ("startHeight", "endHeight"))
        rows = [
            each
            for each in self.rows
            if height in {None, each["height"]} and int(start or 0) <= int(each["height"]) <= int(end or self.newest)
        ]
        shown = rows[(page - 1) * limit : page * limit]
        return page_of("transactions", shown, limit=str(limit), page=str(page), totalPage=str(-(-len(rows) // limit)))

    def grow(self, length: int) -> None:
        milliseconds = int(self.rows[0]["transactionTime"]) if self.rows else int(BEGIN.timestamp()) * 1000
        for height in range(self.newest + 1, self.newest + length + 1):
            milliseconds += self.random.choice([0, 1_000, 2_000, 9_000])
            if self.random.random() < 0.9:
                block = f"0x{height}f{self.forks}"
                times = {"height": str(height), "blockHash": block, "transactionTime": str(milliseconds)}
                self.rows.insert(0, {"txid": f"{block}0", "state": "success", **times})
        self.newest += length

    def replace(self, depth: int) -> None:
        """Replace blocks by others with other times."""
        self.newest -= depth
        self.forks += 1
        self.rows = [each for each in self.rows if int(each["height"]) <= self.newest]
        self.grow(depth + self.random.randint(0, 3))

    def time(self) -> datetime:
        """A time from shortly before the first block to shortly after the last."""
        latest = int(self.rows[0]["transactionTime"]) // 1000 - int(BEGIN.timestamp())
        return BEGIN + timedelta(seconds=self.random.randint(-5, latest + 5))

    def expected(self, time: datetime) -> int | None:
        milliseconds = int(time.timestamp() * 1000)
        return next((int(each["height"]) for each in self.rows if int(each["transactionTime"]) <= milliseconds), None)


def height_at(client: cf.Client, time: datetime) -> int | None:
    try:
        return client.height_at(time)
    except cf.InvalidParameterError:
        return None


@pytest.mark.parametrize("group", range(4))
def test_heights_are_right_whatever_was_reorganized_since_they_were_searched(
    server: StrictServer, tmp_path: Path, group: int
) -> None:
    kept = sum(history(server, tmp_path / str(seed), seed) for seed in range(group * 6, group * 6 + 6))
    assert kept > 20


def history(server: StrictServer, path: Path, seed: int) -> int:
    """Read at several moments of a chain; return how many heights the cache had, all in all."""
    chain = Chain(seed)
    server.on("transactions", chain)
    times = [chain.time() for _ in range(4)]
    kept = 0
    for _ in range(14):
        chance = chain.random.random()
        if chance < 0.3:
            chain.replace(chain.random.randint(1, 60))
        elif chance < 0.6:
            chain.grow(chain.random.randint(1, 20))
        cache = cf.Cache(path, settle=chain.random.choice([SETTLE, 1, 30]))
        with server.client(cache=cache) as client:
            if chain.random.random() < 0.4:
                # Some searches are of two chains.
                chain.moves = [(chain.random.randint(1, 8), lambda: chain.replace(chain.random.randint(1, 60)))]
            for time in chain.random.sample(times, 2):
                height_at(client, time)
            for _, move in chain.moves:
                move()
            chain.moves = []
            for time in chain.random.sample(times, 2):
                assert height_at(client, time) == chain.expected(time)
            with suppress(cf.InvalidParameterError):
                read = client.transactions(start_time=min(times), end_time=max(times)).collect()
                before = chain.expected(min(times) - timedelta(milliseconds=1)) or 0
                last = chain.expected(max(times)) or 0
                heights = [int(each["height"]) for each in chain.rows if before < int(each["height"]) <= last]
                assert sorted(record.height or 0 for record in read) == sorted(heights)
        kept += sum(entry["call"] == "height_at" for entry in cache.entries())
    return kept


def queries(client: cf.Client) -> dict[str, cf.Query[Any]]:
    newest = client.with_options(cache=None).transactions(max_items=700).collect()
    start, end = newest[-1].transaction_time, newest[300].transaction_time
    addresses = [name for each in newest[:20] for name in (each.input or "").split(",") if name]
    return {
        "list": client.address_transactions(addresses[0], start_time=start, end_time=end),
        "open list": client.address_transactions(addresses[0], start_time=start),
        "set": client.address_transactions(addresses, start_time=start),
        "other chain": client.cross_chain_transactions(start_time=start, end_time=end),
    }


def test_list_of_a_range_of_times_takes_its_pages_and_one_comparison_of_the_chain(tmp_path: Path) -> None:
    with LocalService(transactions=1_500, seed=7, simulated=True) as service:
        cache = cf.Cache(tmp_path, settle=SETTLE)
        first = {name: query.collect() for name, query in queries(service.client(cache=cache)).items()}
        client = service.client(cache=cache)
        for name, query in queries(client).items():
            read = query.collect()
            assert Counter(read) == Counter(first[name]), name
            lists = len(read.report.by_argument or [0])
            assert read.report.requests <= lists + 1, (name, read.report)


@pytest.mark.parametrize("hash_of_first", ["", "0x" + "0" * 64])
def test_time_before_a_first_block_without_a_hash_is_before_it_again(
    server: StrictServer, tmp_path: Path, hash_of_first: str
) -> None:
    chain = Chain(1, 100)
    chain.rows[-1]["blockHash"] = hash_of_first
    server.on("transactions", chain)
    expected = len(chain.rows)
    for _ in range(3):
        with server.client(cache=cf.Cache(tmp_path, settle=SETTLE)) as client:
            assert len(client.transactions(start_time=BEGIN - timedelta(hours=1)).collect()) == expected


def test_height_that_is_missing_once_is_searched_again(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(2, 100)
    missing = chain.rows[40]
    time = datetime.fromtimestamp(int(missing["transactionTime"]) / 1000, UTC)
    after = int(chain.rows[39]["height"])

    def once(request: Request) -> Response:
        height = request.query.get("height")
        return (
            page_of("transactions", []) if height and int(missing["height"]) <= int(height) < after else chain(request)
        )

    server.on("transactions", once)
    with server.client(cache=cf.Cache(tmp_path, settle=SETTLE)) as client:
        height_at(client, time)
    server.on("transactions", chain)
    with server.client(cache=cf.Cache(tmp_path, settle=SETTLE)) as client:
        assert client.height_at(time) == chain.expected(time)


def test_height_beside_a_height_without_a_block_is_not_kept_for_a_reason(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(2, 100)
    server.on("transactions", chain)
    rows = list(reversed(chain.rows))
    last = next(
        row
        for row, above in pairwise(rows)
        if int(above["height"]) > int(row["height"]) + 1 and above["transactionTime"] > row["transactionTime"]
    )
    start = datetime.fromtimestamp(int(last["transactionTime"]) / 1000, UTC) + timedelta(milliseconds=1)
    for count in (5, 6):
        cache = cf.Cache(tmp_path, settle=SETTLE)
        with server.client(cache=cache) as client:
            records = client.transactions(start_time=start, max_items=count).collect()
        assert (records[0].height or 0) > int(last["height"]) + 1
        assert records.report.cache is not None
        assert (
            records.report.cache["reason"] == "The height of a time is not kept: no block was found at the next height"
        )
        assert "height_at" not in {entry["call"] for entry in cache.entries()}


@pytest.mark.parametrize("strict", [False, True])
def test_known_height_takes_one_request(tmp_path: Path, strict: object) -> None:
    with LocalService(transactions=1_500, seed=7, simulated=True) as service:
        time = service.client().transactions(max_items=900).collect()[-1].transaction_time
        assert time
        expected = service.client(cache=tmp_path).height_at(time)
        with service.client(cache=tmp_path, strict=bool(strict)) as client:
            for _ in range(3):
                service.reset_request_log()
                assert client.height_at(time) == expected
                assert len(service.request_log) == 1


def test_heights_near_the_head_are_not_kept(tmp_path: Path) -> None:
    with LocalService(transactions=1_500, seed=7, simulated=True) as service:
        near = service.client().transactions(max_items=200).collect()[-1].transaction_time
        assert near
        service.client(cache=tmp_path).height_at(near)
        assert cf.Cache(tmp_path).entries() == []
        service.client(cache=cf.Cache(tmp_path, settle=1)).height_at(near)
        assert [entry["call"] for entry in cf.Cache(tmp_path).entries()] == ["height_at"]
