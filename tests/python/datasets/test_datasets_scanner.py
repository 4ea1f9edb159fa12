"""Scanners that are used several times: each run has the result and the report of a new scanner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets.scanner import Scanner
from chainframe.testing import LocalService


@pytest.fixture(scope="module")
def client() -> Iterator[cf.Client]:
    with LocalService(transactions=900, seed=7) as service, service.client(rate_limit=None) as client:
        yield client


RUNS: dict[str, Callable[[Scanner], Any]] = {
    "table": Scanner.to_table,
    "count": Scanner.count_rows,
    "batches": lambda scanner: sum(map(len, scanner.to_batches())),
    "head": lambda scanner: scanner.head(3),
}
QUERIES: dict[str, Callable[[cf.Client], cf.Query[Any]]] = {
    "blocks": lambda client: client.blocks(),
    "cross_chain_transactions": lambda client: client.cross_chain_transactions(),
}


@pytest.mark.parametrize("call", QUERIES)
@pytest.mark.parametrize(("first", "second"), list(product(RUNS, RUNS)))
@pytest.mark.parametrize("is_filtered", [False, True])
def test_second_run_of_a_scanner_is_that_of_a_new_one(
    client: cf.Client, call: str, first: str, second: str, *, is_filtered: bool
) -> None:
    dataset = QUERIES[call](client).dataset()
    schema = dataset.schema.names
    first_column = pc.field(schema[0])
    wanted = ~first_column.is_null() if is_filtered else None
    alone = dataset.scanner(filter=wanted, columns=schema[:3])
    expected = RUNS[second](alone)
    scanner = dataset.scanner(filter=wanted, columns=schema[:3])
    RUNS[first](scanner)
    assert RUNS[second](scanner) == expected
    counts = ("records", "pages", "requests", "complete")
    assert [getattr(scanner.report, name) for name in counts] == [getattr(alone.report, name) for name in counts]


@pytest.mark.parametrize("method", ["to_table", "count_rows", "explain"])
def test_filter_with_an_unknown_column_is_an_error_of_one_line_with_the_nearest_name(
    client: cf.Client, method: str
) -> None:
    known = "height, block_time, transaction_count, miner, hash"
    pattern = rf"^filter must refer to columns among {known}; got 'heigth'; did you mean 'height'\?$"
    for expression in (pc.field("heigth") > 5, (pc.field("height") > 5) & pc.field("heigth", "low").is_null()):
        with pytest.raises(cf.InvalidParameterError, match=pattern):
            getattr(client.blocks().dataset(), method)(filter=expression)
    with pytest.raises(cf.InvalidParameterError, match=pattern.replace("filter", "columns")):
        client.blocks().dataset().to_table(columns={"low": pc.field("heigth")})
