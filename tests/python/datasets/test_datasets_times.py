"""Filters of a dataset on times, which become ranges of heights."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets.narrowing import Narrowing
from chainframe.testing import LocalService
from datasets.test_datasets import rows
from strict_server import Request, Response, StrictServer, page_of

POLARS = int(pl.__version__.partition(".")[0])


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=900, seed=7) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: LocalService) -> Iterator[cf.Client]:
    with service.client(rate_limit=None) as client:
        yield client


def around(time: dt.datetime, minutes: int = 2) -> tuple[dt.datetime, dt.datetime]:
    return time - dt.timedelta(minutes=minutes), time + dt.timedelta(minutes=minutes)


def between(column: str, low: dt.datetime, high: dt.datetime) -> pc.Expression:
    kind = pa.timestamp("ms", "UTC")
    return (pc.field(column) >= pa.scalar(low, kind)) & (pc.field(column) <= pa.scalar(high, kind))


def test_range_of_times_passes_the_result_window() -> None:
    with (
        LocalService(transactions=3_000, seed=7, max_result_window=1_000) as service,
        service.client(strict=True, rate_limit=None) as client,
    ):
        large = client.large_transactions().collect()
        # The list does not reach back to the first block, so a time before it would make the result incomplete.
        deep = next(record for record in reversed(large) if record.height != large[-1].height)
        assert deep.transaction_time is not None
        low, high = around(deep.transaction_time)
        service.reset_request_log()
        expected = client.transactions(start_time=low, end_time=high).collect()
        explicit = service.request_count
        transactions = client.transactions().dataset()
        service.reset_request_log()
        found = transactions.to_table(filter=between("transaction_time", low, high))
        assert service.request_count == transactions.report.requests == explicit + 1
        assert transactions.report.complete
        assert rows(found) == rows(expected.to_arrow())
        assert len(found) > 0
        query = "select count(*) from transactions where transaction_time between ? and ?"
        assert duckdb.execute(query, [low, high]).fetchall() == [(len(found),)]
        if POLARS >= 2:  # earlier versions keep times to themselves
            scanned = client.transactions().scan().filter(pl.col("transaction_time").is_between(low, high)).collect()
            assert len(scanned) == len(found)
        assert "start_time=" in transactions.explain(between("transaction_time", low, high))


def test_times_that_match_much_of_a_short_list_read_the_list(client: cf.Client) -> None:
    newest = client.transactions().first()
    assert newest is not None
    assert newest.transaction_time is not None
    transactions = client.transactions().dataset()
    wanted = between("transaction_time", *around(newest.transaction_time, 60 * 24 * 400))
    assert transactions.count_rows(filter=wanted) > 0
    assert transactions.report.requests == client.transactions().collect().report.requests


SENDER = "0x" + "5" * 40
LISTS: dict[str, Any] = {
    "transactions": ("height", "transaction_time", lambda client: client.transactions()),
    "address_transactions": ("height", "transaction_time", lambda client: client.address_transactions(SENDER)),
    "cross_chain_transactions": (
        "zone_block_height",
        "zone_block_time",
        lambda client: client.cross_chain_transactions(page_size=50),
    ),
}


def timed_records(resource: str, without_height: int | None) -> list[dict[str, Any]]:
    height, time, _ = LISTS[resource]
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    identity = "main_tx_hash" if resource == "cross_chain_transactions" else "tx_id"
    sender = {"from_address": SENDER} if resource == "address_transactions" else {}
    records: list[dict[str, Any]] = [
        {
            identity: f"0x{index:064x}",
            **sender,
            height: 5_000 - index // 4,
            time: start - dt.timedelta(hours=index // 4),
        }
        for index in range(1_500)
    ]
    if without_height is not None:
        del records[without_height][height]
    return records


@pytest.mark.parametrize("without_height", [None, 3, 60, 700, 1_499])
@pytest.mark.parametrize("resource", LISTS)
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_without_a_height_is_found_by_its_time(resource: Any, without_height: int | None) -> None:
    height, time, made = LISTS[resource]
    records = timed_records(resource, without_height)
    with LocalService(transactions=0) as service, service.client(rate_limit=None) as client:
        service.load(resource, records)
        # The heights of times are searched in these lists.
        if resource == "address_transactions":
            service.load("transactions", timed_records("transactions", None))
        elif resource == "cross_chain_transactions":
            service.load("blocks", [{"height": each[height], "block_time": each[time]} for each in records[1::4]])
        low, high = around(records[without_height or 0][time])
        query = made(client)
        whole = query.to_arrow()
        assert len(whole) == len(records)
        service.reset_request_log()
        found = made(client).dataset().to_table(filter=between(time, low, high))
        assert rows(found) == rows(whole.filter(between(time, low, high)))
        assert len(found) == 4
        # The whole list takes more than 30 requests. That of transactions has no range that shows what is missing.
        assert (service.request_count < 30) == (without_height is None and resource != "transactions")


def test_list_that_grows_while_it_is_counted_is_read() -> None:
    with LocalService(transactions=0) as service, service.client(rate_limit=None) as client:
        service.load("cross_chain_transactions", timed_records("cross_chain_transactions", 700))
        query = client.cross_chain_transactions(page_size=50)
        narrowing = Narrowing(query, query.dataset().schema, None)
        for growth in (0, 1, 5):
            service.growth = growth
            assert not narrowing.all_have_heights(query, [])


def test_first_page_with_a_record_without_a_height_reads_a_list_beyond_the_result_window() -> None:
    records = timed_records("transactions", 3)
    with (
        LocalService(transactions=0, max_result_window=1_000) as service,
        service.client(rate_limit=None) as client,
    ):
        service.load("transactions", records)
        wanted = between("transaction_time", *around(records[3]["transaction_time"]))
        dataset = client.transactions().dataset()
        with pytest.warns(cf.IncompleteResultWarning):
            assert len(dataset.to_table(filter=wanted)) == 4
        assert not dataset.report.complete


def test_cross_chain_transactions_are_narrowed_by_time() -> None:
    with LocalService(transactions=20_000, seed=7) as service, service.client(rate_limit=None) as client:
        every = client.cross_chain_transactions(page_size=20).collect()
        time = every[len(every) // 2].zone_block_time
        assert time is not None
        wanted = between("zone_block_time", *around(time, 60))
        dataset = client.cross_chain_transactions(page_size=20).dataset()
        service.reset_request_log()
        found = dataset.to_table(filter=wanted)
        assert service.request_count == dataset.report.requests < every.report.requests
        assert rows(found) == rows(every.to_arrow().filter(wanted))
        assert len(found) > 0


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.6, 0.97])
@pytest.mark.parametrize("minutes", [1, 60, 6_000, None])
def test_times_of_a_list_with_a_count_cost_one_request_more_than_arguments(
    crossed: tuple[LocalService, cf.Records[Any]], share: float, minutes: int | None
) -> None:
    service, every = crossed
    time = every[int(len(every) * share)].zone_block_time
    low, high = around(time, minutes or 0)
    wanted = between("zone_block_time", low, high if minutes else dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    with service.client(rate_limit=None) as client:
        service.reset_request_log()
        client.cross_chain_transactions(start_time=low, end_time=high if minutes else None).collect()
        explicit = service.request_count
        dataset = client.cross_chain_transactions().dataset()
        service.reset_request_log()
        found = dataset.to_table(filter=wanted)
        assert service.request_count == dataset.report.requests <= min(explicit, every.report.requests) + 1
        assert dataset.report.complete
    assert rows(found) == rows(every.to_arrow().filter(wanted))
    assert len(found) > 0


def test_time_that_is_excluded_reads_the_list(crossed: tuple[LocalService, cf.Records[Any]]) -> None:
    service, every = crossed
    wanted = pc.field("zone_block_time") != pa.scalar(every[200].zone_block_time, pa.timestamp("ms", "UTC"))
    with service.client(rate_limit=None) as client:
        dataset = client.cross_chain_transactions().dataset()
        assert rows(dataset.to_table(filter=wanted)) == rows(every.to_arrow().filter(wanted))
        assert dataset.report.requests == every.report.requests


@pytest.fixture(scope="module")
def crossed() -> Iterator[tuple[LocalService, cf.Records[Any]]]:
    with LocalService(transactions=20_000, seed=7) as service, service.client(rate_limit=None) as client:
        yield service, client.cross_chain_transactions().collect()


def test_recent_blocks_are_read_down_to_the_earliest_time_wanted(service: LocalService, client: cf.Client) -> None:
    blocks = client.blocks().collect()
    time = blocks[150].block_time
    assert time is not None
    service.reset_request_log()
    wanted = pc.field("block_time") >= pa.scalar(time, pa.timestamp("us", "UTC"))
    assert client.blocks().dataset().count_rows(filter=wanted) == 151
    assert service.request_count < blocks.report.requests


@pytest.mark.parametrize("intervals", [(1_000,), (5, 5, 5, 60_000), (60_000, 60_000, 5)], ids=str)
@pytest.mark.parametrize("depth", [0, 9, 10, 25, 99, 100, 137, 298, 299, 400])
@pytest.mark.parametrize("max_items", [None, 120])
def test_blocks_down_to_a_time_are_read_once_and_no_page_too_many(
    server: StrictServer, intervals: tuple[int, ...], depth: int, max_items: int | None
) -> None:
    """Intervals change with the height: the pages that a time is away are estimated wrongly, and more are requested."""
    times = [1_700_000_000_000]
    for height in range(299):
        times.append(times[-1] + intervals[height * len(intervals) // 299])
    blocks = [
        {"hash": f"0x{height:03x}", "height": str(height), "blockTime": str(times[height])} for height in range(300)
    ]
    blocks.reverse()

    def page(request: Request) -> Response:
        limit, number = int(request.query["limit"]), int(request.query["page"])
        counts = {"total": "300", "totalPage": str(-(-300 // limit)), "page": str(number), "limit": str(limit)}
        return page_of("blocks", blocks[(number - 1) * limit : number * limit], **counts)

    server.on("blocks", page)
    since = int(blocks[depth]["blockTime"]) if depth < 300 else 0
    # The number of pages in flight when the end is known depends on the speed of the machine.
    with server.client(concurrency=1) as client:
        dataset = client.blocks(page_size=10, max_items=max_items).dataset()
        found = dataset.to_table(filter=pc.field("block_time") >= pa.scalar(since, pa.timestamp("ms", "UTC")))
        wanted = [block["hash"] for block in blocks[:max_items] if int(block["blockTime"]) >= since]
        assert found["hash"].to_pylist() == wanted
        assert dataset.report.complete
    # A page of blocks that are too early shows the end. Each estimate costs a final look at the list.
    needed = min(len(wanted) // 10 + 2, (max_items or 300) // 10)
    assert len(server.requests) <= needed + (1 if len(intervals) == 1 else 16)


def test_newest_blocks_cost_a_page(service: LocalService, client: cf.Client) -> None:
    newest = client.blocks().first()
    assert newest is not None
    assert newest.height is not None
    for count in (2, 12, 60):
        wanted = (pc.field("height") > newest.height - count) & (pc.field("height") <= newest.height)
        service.reset_request_log()
        assert client.blocks().dataset().count_rows(filter=wanted) == count
        assert service.request_count == 1
        assert len(client.blocks().dataset().filter(wanted).head(2)) == 2


def test_empty_page_that_should_have_records_is_no_crash(server: StrictServer) -> None:
    """Pages of the list are requested where the heights of the times may be; one of them is empty."""
    times = [1_700_000_000_000 + 2_000 * height for height in range(400)]
    heights = range(399, -1, -1)
    listed = [
        {"id": f"0x{height:064x}", "betaBlockHeight": str(height), "betaBlockTime": str(times[height])}
        for height in heights
    ]

    def transfers(request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        is_empty = "startBlockHeight" not in request.query and limit == 20 and emptied.pop("next", False)
        found = [] if is_empty else listed[(page - 1) * limit : page * limit]
        count = 0 if is_empty else len(listed)
        return page_of(
            "cross_chain_transactions",
            found,
            page=str(page),
            limit=str(limit),
            total=str(count),
            totalPage=str(-(-count // limit)),
        )

    emptied = {"next": True}
    server.on("cross_chain_transactions", transfers)
    low, high = (dt.datetime.fromtimestamp(times[height] / 1000, dt.UTC) for height in (100, 120))
    with server.client() as client:
        dataset = client.cross_chain_transactions(page_size=20).dataset()
        found = dataset.to_table(filter=between("zone_block_time", low, high))
        assert not emptied
        assert found.column("zone_block_height").to_pylist() == list(range(120, 99, -1))
        assert dataset.report.complete


@pytest.mark.parametrize("older", [0, 1, 20])
def test_times_beyond_the_heights_of_a_filter_return_no_record(
    crossed: tuple[LocalService, cf.Records[Any]], older: int
) -> None:
    service, every = crossed
    height, time = pc.field("zone_block_height"), pc.field("zone_block_time")
    with service.client(rate_limit=None) as client:
        for index in range(300, len(every) - older, 97):
            at = pa.scalar(every[index + older].zone_block_time, pa.timestamp("ms", "UTC"))
            dataset = client.cross_chain_transactions(page_size=20).dataset()
            for wanted in (height > every[index].zone_block_height, height == every[index].zone_block_height):
                assert dataset.to_table(filter=wanted & (time < at)).num_rows == 0
                assert dataset.report.complete


START = 1_700_000_000


class BlocksOfTimes:
    """A chain of blocks with times in seconds, by height; the requested pages."""

    def __init__(self, times: list[int | None]) -> None:
        self.times = times
        self.pages: list[int] = []

    def __call__(self, request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        self.pages.append(page)
        heights = range(len(self.times) - 1, -1, -1)
        rows = [
            {"hash": f"0x{height:02x}", "height": str(height), "blockTime": time and str(1_000 * time)}
            for height in heights[(page - 1) * limit : page * limit]
            for time in self.times[height : height + 1]
        ]
        pages = str(-(-len(heights) // limit))
        return page_of("blocks", rows, page=str(page), limit=str(limit), total=str(len(heights)), totalPage=pages)


def since(seconds: int) -> pc.Expression:
    return pc.field("block_time") >= pa.scalar(1_000 * seconds, pa.timestamp("ms", "UTC"))


@pytest.mark.parametrize("interval", [2, 3, 7, 19])
def test_blocks_are_not_left_out_by_time_where_some_are_earlier_than_those_below(
    server: StrictServer, interval: int
) -> None:
    times: list[int | None] = [START + 600 * height for height in range(120)]
    times[5::interval] = [time and time - 3_000 for time in times[5::interval]]
    server.on("blocks", BlocksOfTimes(times))
    with server.client() as client:
        for first in range(START, START + 72_000, 1_800):
            dataset = client.blocks(page_size=10).dataset()
            expected = [height for height, time in enumerate(times) if time is not None and time >= first]
            found = dataset.to_table(filter=since(first)).sort_by("height")
            assert found["height"].to_pylist() == expected
            assert dataset.report.complete


def test_blocks_without_times_do_not_end_a_list(server: StrictServer) -> None:
    times: list[int | None] = [START + 600 * height for height in range(120)]
    times[85:115] = [None] * 30
    server.on("blocks", BlocksOfTimes(times))
    with server.client() as client:
        found = client.blocks(page_size=10).dataset().to_table(filter=since(START + 600 * 80))
        assert found["height"].to_pylist() == [*range(119, 114, -1), *range(84, 79, -1)]


def test_blocks_in_the_order_of_times_are_read_a_page_past_the_earliest_time(server: StrictServer) -> None:
    blocks = BlocksOfTimes([START + 600 * height for height in range(1_200)])
    server.on("blocks", blocks)
    with server.client(concurrency=1) as client:
        found = client.blocks(page_size=10).dataset().to_table(filter=since(START + 600 * 1_185))
        assert len(found) == 15
        assert max(blocks.pages) == 3
