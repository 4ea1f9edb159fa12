"""Eight threads use the same objects: a client, a query, iterators, records. A job runs these tests without the GIL."""

from __future__ import annotations

import asyncio
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

import chainframe as cf
from chainframe.testing import LocalService

THREADS = 8
T = TypeVar("T")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=600, seed=7) as service:
        yield service


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """With the GIL, threads take turns every few microseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def together(function: Callable[[int], T]) -> list[T]:
    """Calls a function in eight threads that begin at the same moment."""
    barrier = threading.Barrier(THREADS)

    def run(number: int) -> T:
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_client_serves_every_call_to_every_thread(client: cf.Client) -> None:
    hashes = [record.tx_id or "" for record in client.transactions(max_items=25)]
    calls: list[Callable[[], cf.Query[Any]]] = [
        client.tokens, client.blocks, client.transactions, client.large_transactions, client.cross_chain_transactions,
        lambda: client.transactions_by_hash(hashes), lambda: client.logs(hashes), lambda: client.blocks(page_size=7),
    ]  # fmt: skip
    expected = [call().collect().to_dicts() for call in calls]

    def read(number: int) -> None:
        for step in range(len(calls)):
            index = (number + step) % len(calls)
            query = calls[index]()
            assert query.collect().to_dicts() == expected[index]
            assert query.report.complete
            assert all((repr(client), repr(query), client.rate_limit_state, query.cursor, query.estimate()))

    together(read)


def test_query_has_a_run_for_each_thread(client: cf.Client) -> None:
    query = client.transactions(page_size=20)
    expected = [record.tx_id for record in query]

    def read(number: int) -> None:
        ways: list[Callable[[], list[str | None]]] = [
            lambda: [record.tx_id for record in query],
            lambda: [record.tx_id for record in query.collect()],
            lambda: [record.tx_id for page in query.pages() for record in page.records],
            lambda: [record.tx_id for records in query.batches(33) for record in records],
            lambda: [record.tx_id for record in asyncio.run(collected(query))],
        ]
        for step in range(len(ways)):
            assert ways[(number + step) % len(ways)]() == expected
            # They are those of some run, which another thread may have begun.
            assert query.report.records <= len(expected)
            assert len(query.partial) <= len(expected)
            assert query.last_error is None

    together(read)


async def collected(query: cf.Query[cf.ChainTransaction]) -> cf.Records[cf.ChainTransaction]:
    return await query.collect_async()


@pytest.mark.parametrize("of", ["records", "pages", "batches"])
def test_iterator_gives_each_item_to_one_thread(client: cf.Client, of: str) -> None:
    query = client.transactions(page_size=10)
    expected = sorted(record.tx_id or "" for record in query)
    iterators: dict[str, Any] = {"records": query, "pages": query.pages(), "batches": query.batches(7)}
    shared = iter(iterators[of])

    def take(_: int) -> list[str]:
        found: list[str] = []
        for item in shared:
            found += [record.tx_id for record in ([item] if of == "records" else getattr(item, "records", item))]
            assert isinstance(repr(shared), str)
        return found

    assert sorted(tx_id for found in together(take) for tx_id in found) == expected


def test_records_are_read_by_every_thread(client: cf.Client) -> None:
    records = client.transactions().collect()
    shared = iter(records)
    page = next(iter(client.blocks(page_size=50).pages()))
    first = records[0]
    expected = (records.to_dicts(), hash(first), len(page.records))

    def read(number: int) -> list[str | None]:
        for step in range(len(records)):
            index = (step * 7 + number) % len(records)
            record = records[index]
            assert record == records[index]
            assert record.to_dict() == expected[0][index]
            assert records[index : index + 3][0] == record
        assert (hash(first), len(page.records)) == expected[1:]
        assert pickle.loads(pickle.dumps(records)).to_dicts() == records.to_dicts() == expected[0]
        assert records._repr_html_() == records._repr_html_()
        assert records.report.complete
        return [record.tx_id for record in shared]

    taken = [tx_id for found in together(read) for tx_id in found]
    assert sorted(map(str, taken)) == sorted(str(record.tx_id) for record in records)


def test_log_records_and_attempts_come_from_every_thread(service: LocalService) -> None:
    reported: list[int] = []
    with service.client(rate_limit=None, on_attempt=lambda attempt: reported.append(attempt.status or 0)) as client:
        requests = together(
            lambda number: client.blocks(page_size=10 + number, max_items=100).collect().report.requests
        )
    assert reported == [200] * sum(requests)


def test_clients_are_made_and_closed_while_others_are_used(service: LocalService, client: cf.Client) -> None:
    def use(number: int) -> int:
        for _ in range(5):
            with service.client(rate_limit=None) as own:
                assert len(own.blocks(max_items=10).collect()) == 10
            with client.with_options(timeout=20 + number) as changed:
                assert len(changed.blocks(max_items=10).collect()) == 10
        return len(client.blocks(max_items=10).collect())

    assert together(use) == [10] * THREADS


def test_imports_leave_the_interpreter_without_its_lock() -> None:
    # An extension module that needs the lock turns it on when it is imported.
    is_enabled: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)
    if is_enabled is None or not sys.version.count("free-threading"):
        pytest.skip("this interpreter has a GIL")
    assert not is_enabled()
