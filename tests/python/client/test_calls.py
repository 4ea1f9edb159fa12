"""The calls: every way to run one returns all records of the API, once, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import LocalService
from conftest import Sample

CALLS = sorted(reference_client.ENDPOINTS)


def collect(query: cf.Query[Any]) -> list[Any]:
    return list(query.collect())


def iterate(query: cf.Query[Any]) -> list[Any]:
    return list(query)


def pages(query: cf.Query[Any]) -> list[Any]:
    return [record for page in query.pages() for record in page.records]


def batches(query: cf.Query[Any]) -> list[Any]:
    batches = list(query.batches(batch_size=7))
    assert all(len(batch) == 7 for batch in batches[:-1])
    return [record for batch in batches for record in batch]


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
        return [record async for records in query.batches(batch_size=7) for record in records]

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
def test_every_call_returns_the_same_records_in_every_way(
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
    assert {type(record).__name__ for record in records} == {reference_client.ENDPOINTS[call]["record"]}


@pytest.mark.parametrize("call", CALLS)
def test_first_returns_the_first_record(service: LocalService, client: cf.Client, sample: Sample, call: str) -> None:
    query = sample.query(client, call)
    expected = sample.expected(service, call)[0]
    first = query.first()
    assert first is not None
    assert first.to_dict() == expected
    assert asyncio.run(first_async(query)) == first


async def first_async(query: cf.Query[Any]) -> Any:
    return await query.first_async()


def test_query_sends_nothing_until_it_is_read(service: LocalService, client: cf.Client, sample: Sample) -> None:
    before = service.request_count
    queries = [sample.query(client, call) for call in CALLS]
    streams = [(query.pages(), query.batches()) for query in queries]
    assert len(streams) == len(CALLS) > 0
    assert service.request_count == before


@pytest.mark.parametrize("call", CALLS)
def test_first_sends_one_request(
    service: LocalService,
    client: cf.Client,
    sample: Sample,
    call: str,
) -> None:
    before = service.request_count
    sample.query(client, call).first()
    assert service.request_count == before + 1


def test_first_of_an_empty_result_is_none(client: cf.Client) -> None:
    query = client.blocks(height=2**62)
    assert query.first() is None
    assert asyncio.run(first_async(query)) is None


def test_max_items_limits_the_records_and_the_requests(service: LocalService, client: cf.Client) -> None:
    everything = client.transactions().collect()
    before = service.request_count
    some = client.transactions(page_size=10, max_items=25).collect()
    assert list(some) == list(everything[:25])
    # Three pages, each of which begins with records of the one before it.
    assert service.request_count == before + 3
    assert some.report.records == 25
    assert (some.report.pages, some.report.requests) == (3, 3)


def test_page_size_does_not_change_the_result(client: cf.Client, sample: Sample) -> None:
    query = client.token_transfers(sample.token, page_size=3)
    assert list(query.collect()) == list(client.token_transfers(sample.token).collect())
    assert {len(page.records) for page in list(query.pages())[:-1]} == {3}


def test_pages_have_numbers_and_totals(service: LocalService, client: cf.Client) -> None:
    pages = list(client.blocks(page_size=10).pages())
    expected = reference_client.get(service, "blocks", limit="10")[0]
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    assert {(page.total_pages, page.total) for page in pages} == {
        (int(expected["totalPage"]), int(expected["total"])),
    }
    assert {page.chain_short_name for page in pages} == {None}
    tokens = next(iter(client.tokens().pages()))
    assert tokens.chain_short_name == service.main_chain
    assert tokens.total is None


def test_concurrent_runs_can_share_a_client(client: cf.Client, sample: Sample) -> None:
    async def run() -> list[Any]:
        queries = [sample.query(client, call) for call in CALLS]
        return list(await asyncio.gather(*(query.collect_async() for query in queries)))

    together = asyncio.run(run())
    assert [list(records) for records in together] == [list(sample.query(client, call).collect()) for call in CALLS]


def test_range_of_heights_is_inclusive_and_requested_by_height(
    service: LocalService, client: cf.Client, sample: Sample
) -> None:
    low, high = sample.height - 2, sample.height
    expected = [
        row for row in reference_client.whole_list(service, "transactions") if low <= int(row["height"]) <= high
    ]
    before = service.request_count
    records = client.transactions(start_height=low, end_height=high).collect()
    assert {record.tx_id for record in records} == {row["txid"] for row in expected}
    assert len(records) == len(expected)
    assert len(expected) > 0
    assert service.request_count >= before + 3


def test_hashes_keep_their_order_and_missing_ones_are_reported(client: cf.Client, sample: Sample) -> None:
    unknown = "0x" + "ab" * 32
    tx_ids = [sample.tx_ids[0], unknown, *sample.tx_ids[1:]]
    with pytest.warns(cf.IncompleteResultWarning):
        records = client.transactions_by_hash(tx_ids).collect()
    assert [record.tx_id for record in records] == list(sample.tx_ids)
    assert records.report.missing == [unknown]
    assert not records.report.complete


def test_hashes_are_requested_twenty_at_a_time(service: LocalService, client: cf.Client) -> None:
    tx_ids = [record.tx_id for record in client.transactions(max_items=45) if record.tx_id][::-1]
    before = service.request_count
    records = client.transactions_by_hash(tx_ids).collect()
    assert [record.tx_id for record in records] == tx_ids
    assert len(tx_ids) == 45
    assert service.request_count == before + 3


def test_single_hash_is_accepted_as_a_string(client: cf.Client, sample: Sample) -> None:
    one = sample.tx_ids[0]
    assert client.transactions_by_hash(one).collect()[0].tx_id == one
    assert list(client.logs(one)) == list(client.logs([one]))
    assert list(client.transactions_by_hash(iter(sample.tx_ids))) == list(client.transactions_by_hash(sample.tx_ids))


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda client: client.blocks(heigth=3), "Client.blocks.*'heigth'; did you mean 'height'?"),
        (lambda client: client.transactions(startheight=3), "did you mean 'start_height'?"),
        (lambda client: client.logs("0x1", page_size=3), "'page_size'; it takes tx_ids, chain"),
        (lambda client: client.with_options(retries=3), "did you mean 'max_retries'?"),
        (lambda client: type(client)(time_out=3), "Client.*'time_out'; did you mean 'timeout'?"),
        (lambda client: client.blocks(3), "takes 0 positional arguments; got 1"),
        (lambda client: client.address_transactions(), "missing a required argument: 'address'"),
        (lambda client: client.logs("0x1", tx_ids="0x2"), "multiple values for argument 'tx_ids'"),
    ],
)
def test_wrong_arguments_name_the_one_that_was_meant(
    client: cf.Client, call: Callable[[Any], object], advice: str
) -> None:
    with pytest.raises(TypeError, match=advice.replace("?", r"\?")):
        call(client)
