"""Random histories of a chain, read through a cache and without one: both results are equal at any time.

    python tests/python/cache_histories.py 10000

Between two reads the lists grow, transactions settle, and reorganizations replace fewer heights than `settle` or more.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Callable

SETTLE = 6
READS = 8

Query = cf.Query[Any]


@dataclass
class Outcome:
    """Findings of a number of histories."""

    equal: int = 0
    different: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    saved: int = 0
    """Requests that the cache saved."""
    served: Counter[str] = field(default_factory=Counter)
    """Reads with records of the cache, by call."""


class History:
    """One history: a service that changes between reads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.directory = tempfile.mkdtemp(prefix="chainframe-histories-")
        pending = (0.2, 3) if self.random.random() < 0.3 else None
        self.service = LocalService(
            transactions=self.random.choice([40, 150, 400]), seed=seed % 50, pending=pending, simulated=True
        )
        self.plain = self.service.client()
        self.strict = self.random.random() < 0.2

    def close(self) -> None:
        self.service.close()
        shutil.rmtree(self.directory)

    def cached(self) -> cf.Client:
        cache = cf.Cache(self.directory, settle=SETTLE)
        return self.service.client(cache=cache, strict=self.strict, concurrency=self.random.choice([1, 4]))

    def change(self) -> None:
        """Let the chain change, as it does while one request is served."""
        kind = self.random.random()
        if kind < 0.4:
            self.service.growth = self.random.choice([1, 3, 20])
        elif kind < 0.75:
            depth = self.random.randint(1, SETTLE) if self.random.random() < 0.6 else self.random.randint(SETTLE, 60)
            self.service.reorg = (1, depth)
        else:
            return
        self.plain.blocks(max_items=1).collect()
        self.service.growth, self.service.reorg = 0, None

    def calls(self) -> list[Callable[[cf.Client], Query]]:
        """Queries of several kinds, each of which is asked again and again."""
        newest = self.plain.transactions(max_items=self.random.choice([30, 100, 250])).collect()
        first, last = newest[-1].height or 0, newest[0].height or 0
        ids = [transaction.tx_id for transaction in newest[-5:] if transaction.tx_id]
        address = (newest[0].input or "").split(",")[0]
        addresses = [name for each in newest[:5] for name in (each.input or "").split(",") if name]
        tokens = [each.token_contract_address or "" for each in self.plain.tokens(max_items=3).collect()]
        token = tokens[0]
        unique = self.random.random() < 0.5
        zone = self.plain.blocks(max_items=20).collect()[-1].height or 0
        page = self.random.choice([None, 7, 20])
        start, end = (newest[row].transaction_time for row in (-1, len(newest) // 2))
        return [
            lambda client: client.address_transactions(address, start_time=start),
            lambda client: client.address_transactions(address, start_time=start, end_time=end),
            lambda client: client.address_transactions(addresses, start_time=start, unique=unique),
            lambda client: client.cross_chain_transactions(start_time=start),
            lambda client: client.transactions(start_time=end),
            lambda client: client.transactions(start_time=start, end_time=end),
            lambda client: client.transactions(page_size=page),
            lambda client: client.transactions(max_items=25),
            lambda client: client.transactions(start_height=first - 3, end_height=last - 1),
            lambda client: client.transactions(start_height=first, end_height=last + 5, max_items=12),
            lambda client: client.transactions(start_height=first),
            lambda client: client.transactions(height=first),
            lambda client: client.transactions_by_hash(ids),
            lambda client: client.transactions_by_hash(ids[:1]),
            lambda client: client.logs(ids),
            lambda client: client.large_transactions(min_amount=1000, page_size=page),
            lambda client: client.large_transactions(max_items=60),
            lambda client: client.token_transfers(token, page_size=page),
            lambda client: client.address_transactions(address),
            lambda client: client.address_transactions(addresses, unique=unique),
            lambda client: client.token_transfers(tokens),
            lambda client: client.transactions(height=[first, first + 1, last]),
            lambda client: client.blocks(height=[zone, zone - 1]),
            lambda client: client.blocks(page_size=page),
            lambda client: client.blocks(max_items=30),
            lambda client: client.blocks(height=zone),
            lambda client: client.cross_chain_transactions(),
            lambda client: client.cross_chain_transactions(start_height=zone - 20),
            lambda client: client.tokens(max_items=3),
        ]

    def run(self, outcome: Outcome) -> None:
        calls = self.random.sample(self.calls(), 4)
        client = self.cached()
        for _ in range(READS):
            if self.random.random() < 0.6:
                self.change()
                # A comparison with the chain serves lookups of one request for a minute.
                client = self.cached()
            if self.random.random() < 0.3:
                client = self.cached()
            call = self.random.choice(calls)
            if self.random.random() < 0.25:
                self.read_moving(call(client))
            self.compare(call, client, outcome)

    def read_moving(self, query: Query) -> None:
        """Read while the chain changes: what is kept of it has to serve the reads after that."""
        self.service.growth = self.random.choice([0, 1, 3])
        self.service.reorg = self.random.choice([None, (self.random.randint(1, 5), self.random.randint(1, SETTLE))])
        with suppress(cf.ServiceError, cf.PaginationError, cf.IncompleteResultError):
            query.collect()
        self.service.growth, self.service.reorg = 0, None

    def compare(self, call: Callable[[cf.Client], Query], client: cf.Client, outcome: Outcome) -> None:
        query = call(client)
        results = []
        for each in (query, call(self.plain)):
            try:
                results.append(each.collect())
            except (cf.ServiceError, cf.IncompleteResultError, cf.PaginationError) as error:
                outcome.errors[type(error).__name__] += 1
        if len(results) < 2:
            return
        read, fresh = results
        # A client takes an empty response for a throttle, or not, by the responses that it received before.
        is_as_complete = read.report.complete == fresh.report.complete or "logs" in repr(query)
        is_unique = "unique=True" in repr(query)
        if lists_of(read, is_unique=is_unique) == lists_of(fresh, is_unique=is_unique) and is_as_complete:
            outcome.equal += 1
        else:
            outcome.different.append(
                f"seed {self.seed}: {query!r}, {len(read)} and {len(fresh)} records, {read.report}"
            )
        outcome.saved += fresh.report.requests - read.report.requests
        used = read.report.cache
        if used is not None and used["records"]:
            outcome.served[str(query).split()[1]] += 1


def lists_of(records: cf.Records[Any], *, is_unique: bool = False) -> dict[str, list[Any]]:
    """Return the records of each list in their order: those of a set come as they are answered."""
    if not records or getattr(records[0], "queried", None) is None:
        return {"": list(records)}
    if is_unique:
        # Which list returns a record is not fixed.
        return {"": sorted(str({**record, "queried": None}) for record in records.to_dicts())}
    lists: dict[str, list[Any]] = {}
    for record in records:
        lists.setdefault(str(record.queried), []).append(record)
    return lists


def run(seeds: range) -> Outcome:
    outcome = Outcome()
    for seed in seeds:
        history = History(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cf.IncompleteResultWarning)
                history.run(outcome)
        finally:
            history.close()
    return outcome


if __name__ == "__main__":
    first, count = int(sys.argv[2]) if len(sys.argv) > 2 else 0, int(sys.argv[1])
    found = run(range(first, first + count))
    lines = [
        f"{count} histories: {found.equal} reads equal, {len(found.different)} different; errors {dict(found.errors)}",
        f"{found.saved} requests saved; reads with records of the cache: {dict(found.served)}",
        *found.different[:20],
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    sys.exit(bool(found.different))
