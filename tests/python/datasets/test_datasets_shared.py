"""Scans of one `LazyFrame`: what they fetch is shared."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
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


def warned(action: Callable[[], pl.DataFrame]) -> tuple[list[int], int]:
    """The heights of a frame, and the number of warnings that it is incomplete."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heights = action()["height"].to_list()
    return heights, sum(issubclass(each.category, cf.IncompleteResultWarning) for each in caught)


@pytest.fixture(scope="module")
def deep() -> Iterator[LocalService]:
    """A list of transactions that the result window cuts."""
    with LocalService(transactions=600, seed=7, max_result_window=200) as service:
        yield service


def test_list_cut_at_the_result_window_does_not_answer_a_filter_that_narrows(deep: LocalService) -> None:
    with deep.client(rate_limit=None) as client:
        listed, _ = warned(lambda: client.transactions().to_polars())
        height = listed[-1] - 20
        ranged = client.transactions(start_height=height - 40, end_height=height).to_polars()
        wanted: list[int] = ranged["height"].to_list()
        assert wanted
        frame = client.transactions().scan()
        below = pl.col("height").is_between(height - 40, height)
        assert warned(frame.collect) == (listed, 1)
        assert warned(frame.filter(below).collect) == (wanted, 0)
        joined = frame.filter(below).select("height").unique().join(frame.filter(below), on="height")
        assert sorted(warned(joined.collect)[0]) == sorted(wanted)


@pytest.mark.parametrize(
    "later",
    [
        pl.LazyFrame.collect,
        lambda frame: frame.select("height").collect(),
        lambda frame: frame.filter(pl.col("amount").is_not_null()).collect(),
        lambda frame: frame.select(pl.len().alias("height")).collect(),
        lambda frame: frame.join(frame.select("tx_id"), on="tx_id").collect(),
    ],
)
def test_each_terminal_that_reads_an_incomplete_fetch_to_its_end_warns(
    deep: LocalService, later: Callable[[pl.LazyFrame], pl.DataFrame]
) -> None:
    with deep.client(rate_limit=None) as client:
        frame = client.transactions().scan()
        assert warned(frame.collect)[1] == 1
        deep.reset_request_log()
        assert [warned(lambda: later(frame))[1] > 0 for _ in range(2)] == [True, True]
        assert deep.request_count == 0
        # The first rows are those of the list itself.
        assert warned(frame.head(5).collect)[1] == 0


def test_strict_scan_raises_each_time(deep: LocalService) -> None:
    with deep.client(rate_limit=None, strict=True) as client:
        frame = client.transactions().scan()
        for _ in range(2):
            with pytest.raises(Exception, match="more may exist"):
                frame.collect()
