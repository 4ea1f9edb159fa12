"""Sets of all resources, killed at random, against the queries of their values."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from sets.test_sets import of_single_lists, queried_and_record, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
SEEDS = int(os.environ.get("CHAINFRAME_SET_SEEDS", "2"))
KILLS = 6


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=900, seed=47) as running:
        yield running


@pytest.fixture(scope="module")
def cases(service: LocalService) -> list[tuple[str, str, list[Any]]]:
    return values_of(service)


def killed(client: cf.Client, query: cf.Query[Any], chance: random.Random) -> tuple[list[Any], cf.Query[Any]]:
    """Records of a query that is killed after some of them and continued, and the last query."""
    found: list[Any] = []
    for kill in range(KILLS + 1):
        stop = chance.randrange(1, 30) if kill < KILLS else None
        for taken, record in enumerate(query, 1):
            found.append(record)
            if taken == stop:
                break
        else:
            break
        query = client.resume(query.cursor)
    return found, query


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("case", range(9))
def test_killed_set_of_every_list_equals_its_single_lists(
    service: LocalService, cases: list[tuple[str, str, list[Any]]], case: int, seed: int
) -> None:
    chance = random.Random(seed)
    call, name, values = cases[case]
    several = [*dict.fromkeys(values)]
    values = chance.sample(several, chance.randint(1, len(several)))
    client = service.client(rate_limit=None, concurrency=chance.choice([1, 2, 4, 8]))
    is_unique = chance.random() < 0.5
    options = {name: values, "page_size": chance.choice([1, 2, 7, 20]), "unique": is_unique}
    found, last = killed(client, getattr(client, call)(**options), chance)
    expected = of_single_lists(client, call, name, values)
    if is_unique:
        # The records of several lists are in the result once, under one of the values.
        assert set(queried_and_record(found)) <= set(expected)
        once = Counter(record for _, record in queried_and_record(found).elements())
        most: Counter[Any] = Counter()
        for (_, record), count in expected.items():
            most[record] = max(most[record], count)
        assert once == most
    else:
        assert queried_and_record(found) == expected
    assert not any(verdict["error"] for verdict in last.report.by_argument.values())
