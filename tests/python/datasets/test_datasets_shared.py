"""Scans of one `LazyFrame`: what they fetch is shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets import shared
from chainframe.datasets.shared import SharedDataset
from chainframe.testing import LocalService
from strict_server import StrictServer, page_of


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=900, seed=7) as service:
        yield service


@pytest.fixture
def query(service: LocalService) -> Iterator[cf.Query[cf.Block]]:
    with service.client(rate_limit=None) as client:
        yield client.blocks(page_size=20)


def requests_of_one_run(service: LocalService, query: cf.Query[cf.Block]) -> int:
    service.reset_request_log()
    query.collect()
    count = service.request_count
    service.reset_request_log()
    return count


def test_self_join_fetches_a_list_once(service: LocalService, query: cf.Query[cf.Block]) -> None:
    needed = requests_of_one_run(service, query)
    frame = query.scan()
    joined = frame.join(frame.select("height", "miner"), on="height").select(pl.len()).collect().item()
    assert (service.request_count, joined) == (needed, len(query.collect()))


def test_later_terminals_and_filters_of_a_scan_fetch_nothing(service: LocalService, query: cf.Query[cf.Block]) -> None:
    frame = query.scan()
    heights = frame.select("height").collect()["height"]
    service.reset_request_log()
    assert frame.select(pl.col("miner").n_unique()).collect().item() > 0
    above = frame.filter(pl.col("height") > heights[10]).collect()
    assert above["height"].to_list() == heights[:10].to_list()
    assert service.request_count == 0
    # Another scan fetches again.
    query.scan().select("height").head(1).collect()
    assert service.request_count == 1


def test_filter_that_narrows_is_fetched_once_and_does_not_stand_for_the_list(
    service: LocalService, query: cf.Query[cf.Block]
) -> None:
    height = query.collect()[30].height
    frame = query.scan()
    service.reset_request_log()
    for _ in range(2):
        assert frame.filter(pl.col("height") == height).collect()["height"].to_list() == [height]
        assert service.request_count == 1
    assert len(frame.collect()) == len(query.collect())


def test_scan_continues_where_an_earlier_one_stopped(service: LocalService, query: cf.Query[cf.Block]) -> None:
    needed = requests_of_one_run(service, query)
    frame = query.scan()
    assert len(frame.head(5).collect()) == 5
    assert service.request_count == 1
    whole = frame.collect()
    assert service.request_count == needed
    assert whole["height"].to_list() == [block.height for block in query]


def test_scan_after_a_failed_one_fetches_again(server: StrictServer) -> None:
    row = {"hash": "0x1", "height": "7"}
    server.on("blocks", page_of("blocks", [{**row, "blockTime": "never"}]))
    frame = server.client().blocks().scan()
    with pytest.raises(Exception, match="blockTime"):
        frame.collect()
    server.on("blocks", page_of("blocks", [row]))
    assert frame.collect()["height"].to_list() == [7]


def test_failed_fetch_fails_every_scan_that_shares_it(service: LocalService, query: cf.Query[cf.Block]) -> None:
    dataset = SharedDataset(query)
    one, other = (dataset.scanner(columns=["height"]).to_batches() for _ in range(2))
    next(one)
    next(other)
    service.faults = [{"kind": "status", "status": 402, "code": "50030"}]
    try:
        for scan in (one, other):
            with pytest.raises(cf.ChainframeError, match="50030"):
                list(scan)
    finally:
        service.faults = []


def test_scans_next_to_each_other_share_each_page(
    service: LocalService, query: cf.Query[cf.Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = requests_of_one_run(service, query)
    heights = [block.height for block in query]
    service.reset_request_log()
    for kept, runs in ((shared.MAX_BYTES, 1), (1_000, 2)):
        monkeypatch.setattr(shared, "MAX_BYTES", kept)
        dataset = SharedDataset(query)
        one, other = (dataset.scanner(columns=["height"]).to_batches() for _ in range(2))
        got = [next(one), next(other)]
        got += [*other, *one]
        assert Counter(height for batch in got for height in batch["height"].to_pylist()) == Counter(heights * 2)
        assert service.request_count == needed
        # Records that are more than may be kept are fetched again.
        assert dataset.to_table(filter=pc.field("height") > 0).num_rows == len(heights)
        assert service.request_count == runs * needed
        service.reset_request_log()


def test_scans_in_threads_fetch_once(service: LocalService, query: cf.Query[cf.Block]) -> None:
    needed = requests_of_one_run(service, query)
    dataset = SharedDataset(query)
    with ThreadPoolExecutor(4) as threads:
        tables = list(
            threads.map(lambda column: dataset.to_table(columns=[column]), ["height", "miner", "hash", "height"])
        )
    assert {table.num_rows for table in tables} == {len(query.collect())}
    assert service.request_count == 2 * needed


def test_report_of_a_shared_scan_is_that_of_its_fetch(query: cf.Query[cf.Block]) -> None:
    dataset = SharedDataset(query)
    for _ in range(2):
        dataset.to_table(columns=["height"])
        assert (dataset.report.complete, dataset.report.records) == (True, len(query.collect()))


def test_long_filters_that_differ_in_the_middle_are_fetched_apart(service: LocalService) -> None:
    client = service.client(rate_limit=None)
    heights = [block.height for block in client.blocks().collect()]
    # Few heights are requested one by one.
    frame = client.blocks(page_size=2).scan()
    for left_out in (20, 22, 24):
        wanted = [height for index, height in enumerate(heights[:80:2]) if index != left_out]
        found = frame.filter(pl.col("height").is_in(wanted)).collect()
        assert sorted(found["height"].to_list(), reverse=True) == wanted


def test_kept_records_of_all_filters_are_bounded(
    service: LocalService, query: cf.Query[cf.Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    heights = [block.height for block in query.collect()]
    dataset = SharedDataset(query)
    filters = [pc.field("height") == height for height in heights[:10]]
    size = next(iter(dataset.to_batches(filter=filters[0]))).nbytes
    monkeypatch.setattr(shared, "MAX_BYTES", 2 * size)

    def requested(number: int) -> int:
        service.reset_request_log()
        assert dataset.to_table(filter=filters[number])["height"].to_pylist() == [heights[number]]
        return service.request_count

    for number in range(10):
        requested(number)
    # The latest ones are kept.
    assert [requested(number) > 0 for number in (9, 8, 0)] == [False, False, True]


def test_scan_whose_fetch_drops_records_before_it_begins_fetches_again(
    query: cf.Query[cf.Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "MAX_BYTES", 1_000)
    dataset = SharedDataset(query)
    heights = [block.height for block in query]
    found_by = SharedDataset.fetch
    first: list[shared.Fetch] = []

    def fetch(shared_dataset: SharedDataset, expression: pc.Expression | None) -> shared.Fetch:
        found = found_by(shared_dataset, expression)
        if not first:
            first.append(found)
            # Another thread reads on, until records are more than may be kept.
            assert len(shared_dataset.to_table(columns=["height"])) == len(heights)
            assert not found.is_kept
        return found

    monkeypatch.setattr(SharedDataset, "fetch", fetch)
    scanner = dataset.scanner(columns=["height"])
    assert scanner.to_table()["height"].to_pylist() == heights
    assert scanner.report.records == len(heights)
