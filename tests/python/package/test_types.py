"""Types of user code: mypy and pyright check the assertions, and the code runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type

import pandas as pd
import polars as pl
import pyarrow as pa

import chainframe as cf
from chainframe.partitions import Partition
from chainframe.testing import LocalService
from conftest import Sample


def test_call_is_typed_by_its_record(client: cf.Client, sample: Sample) -> None:
    assert_type(client.tokens().first(), cf.Token | None)
    assert_type(client.token_transfers(sample.token).first(), cf.TokenTransfer | None)
    assert_type(client.cross_chain_transactions().first(), cf.CrossChainTransaction | None)
    assert_type(client.blocks().first(), cf.Block | None)
    assert_type(client.large_transactions().first(), cf.LargeTransaction | None)
    assert_type(client.transactions().first(), cf.ChainTransaction | None)
    assert_type(client.transactions_by_hash(sample.tx_ids).first(), cf.Transaction | None)
    assert_type(client.logs(sample.tx_ids).collect(), cf.Records[cf.EventLog])
    assert_type(client.address_transactions(sample.address, direction="from"), cf.Query[cf.AddressTransaction])


def test_record_fields_are_typed(client: cf.Client) -> None:
    for transfer in client.cross_chain_transactions(max_items=3):
        assert_type(transfer.value, Decimal | None)
        assert_type(transfer.value_raw, int | None)
        assert_type(transfer.zone_block_time, datetime | None)
        assert_type(transfer.to_dict(), dict[str, Any])
    amounts = (transaction.amount for transaction in client.transactions(max_items=9))
    assert_type(sum((amount for amount in amounts if amount is not None), Decimal()), Decimal)


def test_every_read_method_is_typed_by_its_record(client: cf.Client) -> None:
    query = client.blocks(max_items=30)
    records = query.collect()
    assert_type(records[0], cf.Block)
    assert_type(records[:3], cf.Records[cf.Block])
    assert_type(list(reversed(records)), list[cf.Block])
    assert_type(max(records, key=lambda block: block.transaction_count or 0), cf.Block)
    assert_type(query.partial, cf.Records[cf.Block])
    assert_type(next(iter(query)), cf.Block)
    assert_type(next(query.pages()).records, cf.Records[cf.Block])
    assert_type(next(query.batches(batch_size=10)), cf.Records[cf.Block])
    assert_type(client.resume(query.cursor), cf.Query[Any])
    parts = client.cross_chain_transactions().partitions(2)
    assert_type(parts, list[Partition[cf.CrossChainTransaction]])
    assert_type(parts[0].collect()[0], cf.CrossChainTransaction)


def test_awaited_results_are_typed_by_their_record(client: cf.Client) -> None:
    async def run() -> None:
        async with client as same:
            assert_type(same, cf.Client)
            query = same.blocks(max_items=30)
            assert_type(await query.first_async(), cf.Block | None)
            assert_type(await query.estimate_async(), cf.Estimate)
            assert_type([block async for block in query], list[cf.Block])
            assert_type(await anext(query.pages()), cf.Page[cf.Block])
            async with asyncio.TaskGroup() as group:
                # A task takes a coroutine, which a mere awaitable is not.
                task = group.create_task(query.collect_async())
            assert_type(task.result(), cf.Records[cf.Block])

    asyncio.run(run())


def test_frames_have_the_types_of_their_libraries(client: cf.Client) -> None:
    records = client.blocks(max_items=3).collect()
    assert_type(records.to_pandas(), pd.DataFrame)
    assert_type(records.to_polars(numbers="string"), pl.DataFrame)
    assert_type(records.to_arrow("float"), pa.Table)
    assert_type(client.blocks(max_items=3).to_arrow_batch_reader(batch_size=10), pa.RecordBatchReader)
    assert_type(pl.DataFrame(records), pl.DataFrame)


def test_generic_functions_accept_every_record(client: cf.Client) -> None:
    async def count(records: cf.Records[cf.Record], blocks: Iterable[cf.Block], again: AsyncIterable[cf.Block]) -> int:
        return len(records) + len(list(blocks)) + len([block async for block in again])

    query = client.blocks(max_items=3)
    queries: list[cf.Query[cf.Record]] = [query, client.tokens(max_items=1)]
    assert asyncio.run(count(query.collect(), query, query)) == 9
    assert sum(len(one.collect()) for one in queries) == 4


def test_records_are_a_sequence(client: cf.Client) -> None:
    blocks: Sequence[cf.Block] = client.blocks().collect()
    assert_type(blocks[0], cf.Block)
    assert len(blocks) > 0


def test_error_attributes_are_typed() -> None:
    with LocalService(transactions=1, faults=[{"kind": "status", "status": 429, "code": "50011"}]) as service:
        try:
            service.client(max_retries=0).blocks().collect()
        except cf.RateLimitError as error:
            assert_type(error.retry_after, float | None)
            assert_type(error.status, int | None)
            assert_type(error.cursor, str | None)
            assert_type(error.retryable, bool)
        except cf.TransportError as error:
            lost: ConnectionError = error
            raise lost from None
    assert_type(cf.IncompleteResultError().partial, cf.Records[Any] | None)


def test_export_attributes_are_typed(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks().to_parquet(tmp_path)
    assert_type(export.parts, tuple[Path, ...])
    assert_type(export.report.reasons, list[str])
    assert_type(export.complete, bool)
