"""The nine calls, in every way to run one: each gives the service's records, all of them, once, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import by_hand
import chainframe as cf
from chainframe.testing import LocalService
from conftest import Sample

CALLS = sorted(by_hand.ENDPOINTS)


def test_there_are_nine() -> None:
    assert len(CALLS) == 9


def collect(query: cf.Query[Any]) -> list[Any]:
    return list(query.collect())


def iterate(query: cf.Query[Any]) -> list[Any]:
    return list(query)


def pages(query: cf.Query[Any]) -> list[Any]:
    return [record for page in query.pages() for record in page.records]


def batches(query: cf.Query[Any]) -> list[Any]:
    pieces = list(query.batches(rows=7))
    assert all(len(piece) == 7 for piece in pieces[:-1])
    return [record for piece in pieces for record in piece]


def collect_async(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return list(await query.collect_async())

    return asyncio.run(run())


def iterate_async(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return [record async for record in query]

    return asyncio.run(run())


def pages_async(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return [record async for page in query.pages() for record in page.records]

    return asyncio.run(run())


def batches_async(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return [record async for records in query.batches(rows=7) for record in records]

    return asyncio.run(run())


def collect_under_a_loop(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return list(query.collect())

    return asyncio.run(run())


def iterate_under_a_loop(query: cf.Query[Any]) -> list[Any]:
    async def run() -> list[Any]:
        return list(query)

    return asyncio.run(run())


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "run",
    [
        collect,
        iterate,
        pages,
        batches,
        collect_async,
        iterate_async,
        pages_async,
        batches_async,
        collect_under_a_loop,
        iterate_under_a_loop,
    ],
)
def test_every_call_in_every_way(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
    call: str,
    run: Callable[[cf.Query[Any]], list[Any]],
) -> None:
    expected = sample.expected(service, call)
    records = run(sample.query(client, call))
    assert len(expected) > 2
    assert [record.to_dict() for record in records] == expected
    assert {type(record).__name__ for record in records} == {by_hand.ENDPOINTS[call]["record"]}


@pytest.mark.parametrize("call", CALLS)
def test_first(service: LocalService, client: cf.Client, sample: Sample, call: str) -> None:
    query = sample.query(client, call)
    expected = sample.expected(service, call)[0]
    first = query.first()
    assert first is not None
    assert first.to_dict() == expected
    assert asyncio.run(first_async(query)) == first


async def first_async(query: cf.Query[Any]) -> Any:
    return await query.first_async()


def test_nothing_is_sent_before_it_is_asked_for(service: LocalService, client: cf.Client, sample: Sample) -> None:
    before = service.requests
    queries = [sample.query(client, call) for call in CALLS]
    streams = [(query.pages(), query.batches()) for query in queries]
    assert len(streams) == 9
    assert service.requests == before


@pytest.mark.parametrize("call", CALLS)
def test_the_first_record_takes_one_request(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
    call: str,
) -> None:
    before = service.requests
    sample.query(client, call).first()
    assert service.requests == before + 1


def test_no_first_of_nothing(client: cf.Client) -> None:
    query = client.blocks(height=2**62)
    assert query.first() is None
    assert asyncio.run(first_async(query)) is None


def test_max_items_ends_the_result_and_asks_for_no_more(service: LocalService, client: cf.Client) -> None:
    everything = client.transactions().collect()
    before = service.requests
    some = client.transactions(page_size=10, max_items=25).collect()
    assert list(some) == list(everything[:25])
    # Three pages, and a last look at the head of a list that the service does not count.
    assert service.requests == before + 4
    assert some.report.records == 25
    assert (some.report.pages, some.report.requests) == (3, 4)


def test_a_smaller_page_size_gives_the_same(client: cf.Client, sample: Sample) -> None:
    query = client.token_transfers(sample.token, page_size=3)
    assert list(query.collect()) == list(client.token_transfers(sample.token).collect())
    assert {len(page.records) for page in list(query.pages())[:-1]} == {3}


def test_pages_say_where_they_are(service: LocalService, client: cf.Client) -> None:
    pages = list(client.blocks(page_size=10).pages())
    expected = by_hand.get(service, "blocks", limit="10")[0]
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    assert {(page.total_pages, page.total) for page in pages} == {
        (int(expected["totalPage"]), int(expected["total"])),
    }
    assert {page.chain_short_name for page in pages} == {None}
    tokens = next(iter(client.tokens().pages()))
    assert tokens.chain_short_name == service.main_chain
    assert tokens.total is None


def test_concurrent_runs_share_a_client(client: cf.Client, sample: Sample) -> None:
    async def run() -> list[Any]:
        queries = [sample.query(client, call) for call in CALLS]
        return list(await asyncio.gather(*(query.collect_async() for query in queries)))

    together = asyncio.run(run())
    assert [list(records) for records in together] == [list(sample.query(client, call).collect()) for call in CALLS]


def test_heights_are_inclusive_and_asked_one_by_one(service: LocalService, client: cf.Client, sample: Sample) -> None:
    low, high = sample.height - 2, sample.height
    expected = [row for row in by_hand.whole_list(service, "transactions") if low <= int(row["height"]) <= high]
    before = service.requests
    records = client.transactions(start_height=low, end_height=high).collect()
    assert {record.tx_id for record in records} == {row["txid"] for row in expected}
    assert len(records) == len(expected)
    assert len(expected) > 0
    assert service.requests >= before + 3


def test_hashes_come_in_the_order_asked_and_the_unknown_are_named(client: cf.Client, sample: Sample) -> None:
    unknown = "0x" + "ab" * 32
    asked = [sample.tx_ids[0], unknown, *sample.tx_ids[1:]]
    with pytest.warns(cf.IncompleteResultWarning):
        records = client.transactions_by_hash(asked).collect()
    assert [record.tx_id for record in records] == list(sample.tx_ids)
    assert records.report.missing == [unknown]
    assert not records.report.complete


def test_many_hashes_are_asked_twenty_at_a_time(service: LocalService, client: cf.Client) -> None:
    tx_ids = [record.tx_id for record in client.transactions(max_items=45) if record.tx_id][::-1]
    before = service.requests
    records = client.transactions_by_hash(tx_ids).collect()
    assert [record.tx_id for record in records] == tx_ids
    assert len(tx_ids) == 45
    assert service.requests == before + 3


def test_one_hash_needs_no_list(client: cf.Client, sample: Sample) -> None:
    one = sample.tx_ids[0]
    assert client.transactions_by_hash(one).collect()[0].tx_id == one
    assert list(client.logs(one)) == list(client.logs([one]))
    assert list(client.transactions_by_hash(iter(sample.tx_ids))) == list(client.transactions_by_hash(sample.tx_ids))
