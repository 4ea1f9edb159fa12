"""Several runs of one query: each has its own position, and what a run returned says where it continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Response, StrictServer, envelope


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=600) as service:
        yield service


@pytest.fixture
def query(service: LocalService) -> cf.Query[cf.Block]:
    return service.client(rate_limit=None, concurrency=1, max_retries=0).blocks(page_size=20)


TAKERS: list[Callable[[cf.Query[cf.Block]], Iterator[Any]]] = [
    iter,
    lambda query: (record for page in query.pages() for record in page.records),
    lambda query: (record for batch in query.batches(10) for record in batch),
    lambda query: (row for batch in query.to_arrow_batch_reader(10) for row in batch["hash"].to_pylist()),
]


def records_from(service: LocalService, cursor: str) -> int:
    return len(service.client().resume(cursor).collect())


@pytest.mark.parametrize("take", TAKERS, ids=["records", "pages", "batches", "reader"])
def test_error_of_an_iterator_has_its_own_position(
    service: LocalService, query: cf.Query[cf.Block], take: Callable[[cf.Query[cf.Block]], Iterator[Any]]
) -> None:
    whole = len(query.collect())
    iterator = take(query)
    returned = [next(iterator) for _ in range(10)]
    # Two other runs of the query, of which one has ended.
    next(iter(query))
    query.collect()
    service.faults = [{"kind": "status", "status": 503}]
    with pytest.raises(cf.ServiceUnavailableError) as caught:
        returned.extend(iterator)
    service.faults = []
    assert caught.value.cursor is not None
    assert len(returned) + records_from(service, caught.value.cursor) == whole


def test_call_that_is_cancelled_before_it_begins_has_no_position(query: cf.Query[cf.Block]) -> None:
    query.collect()

    async def cancelled() -> BaseException:
        waiting = asyncio.ensure_future(query.collect_async())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await waiting
        return caught.value

    # The end of the earlier run is not its position.
    assert not hasattr(asyncio.run(cancelled()), "cursor")


def test_position_after_a_frame_is_the_end(service: LocalService, query: cf.Query[cf.Block]) -> None:
    client = service.client()
    for convert in (query.to_pandas, query.to_polars, query.to_arrow, query.to_dicts):
        convert()
        assert len(client.resume(query.cursor).collect()) == 0
    asyncio.run(query.to_arrow_async())
    assert len(client.resume(query.cursor).collect()) == 0


def test_first_leaves_the_position_of_the_whole_query(service: LocalService, query: cf.Query[cf.Block]) -> None:
    assert query.first() is not None
    assert records_from(service, query.cursor) == len(query.collect())


def test_first_of_an_incomplete_result_without_records_is_no_empty_result(server: StrictServer) -> None:
    server.on("transactions", Response(envelope([])))
    query = server.client().transactions(start_time="2024-01-01T00:00Z", end_time="2024-02-01T00:00Z")
    with pytest.warns(cf.IncompleteResultWarning):
        assert query.first() is None
    strict = server.client(strict=True).transactions(start_time="2024-01-01T00:00Z", end_time="2024-02-01T00:00Z")
    with pytest.raises(cf.IncompleteResultError):
        strict.first()
