"""Scans that request single heights: those beyond the result window, absent ones, and a list that grows."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets.scanner import Scanner
from chainframe.testing import LocalService
from datasets.test_datasets import rows
from strict_server import Request, Response, StrictServer, page_of


def test_range_of_heights_passes_the_result_window() -> None:
    with (
        LocalService(transactions=3_000, seed=7, max_result_window=1_000) as service,
        service.client(strict=True) as client,
    ):
        heights = sorted({record.height or 0 for record in client.large_transactions(max_items=100)})
        low = heights[0] - 100
        transactions = client.transactions().dataset()
        expected = len(client.transactions(start_height=low, end_height=low + 9).collect())
        count = transactions.count_rows(filter=(pc.field("height") >= low) & (pc.field("height") < low + 10))
        assert count == expected > 0
        with pytest.raises(cf.IncompleteResultError):
            transactions.to_table(filter=pc.field("amount") > pa.scalar(Decimal(1), pa.decimal128(38, 18)))
        assert isinstance(transactions.last_error, cf.IncompleteResultError)


class Blocks:
    """A chain of blocks, some of which a request for their height does not return a number of times."""

    def __init__(self, begin: int, absent: dict[int, int]) -> None:
        self.begin = begin
        self.absent = absent

    def __call__(self, request: Request) -> Response:
        limit, page = int(request.query["limit"]), int(request.query["page"])
        heights = [*range(100, self.begin - 1, -1)]
        if "height" in request.query:
            height = int(request.query["height"])
            heights = [height] if height >= self.begin and self.absent.get(height, 0) <= 0 else []
            self.absent[height] = self.absent.get(height, 0) - 1
        rows = [
            {"hash": f"0x{height:02x}", "height": str(height)} for height in heights[(page - 1) * limit : page * limit]
        ]
        pages = str(-(-len(heights) // limit))
        return page_of("blocks", rows, page=str(page), limit=str(limit), total=str(len(heights)), totalPage=pages)


HEIGHTS_5_TO_9 = (pc.field("height") >= 5) & (pc.field("height") <= 9)


@pytest.mark.parametrize("absent", [5, 6, 8, 9])
def test_block_that_stays_absent_above_another_is_an_error(server: StrictServer, absent: int) -> None:
    server.on("blocks", Blocks(1, {absent: 100}))
    with (
        server.client() as client,
        pytest.raises(cf.PaginationDriftError, match=f"no block of height {absent}, although"),
    ):
        client.blocks(page_size=10).dataset().to_table(filter=HEIGHTS_5_TO_9)


@pytest.mark.parametrize("absent", [{5}, {8}, {9}, {5, 6}, {6, 8}, {5, 6, 7, 8, 9}])
def test_block_that_was_absent_once_is_requested_again(server: StrictServer, absent: set[int]) -> None:
    server.on("blocks", Blocks(1, dict.fromkeys(absent, 1)))
    with server.client() as client:
        dataset = client.blocks(page_size=10).dataset()
        heights = dataset.to_table(filter=HEIGHTS_5_TO_9)["height"].to_pylist()
        assert Counter(heights) == dict.fromkeys(range(5, 10), 1)
        assert dataset.report.complete
        assert dataset.report.requests == len(server.requests)


@pytest.mark.parametrize("begin", [6, 9, 10])
def test_chain_that_begins_within_a_range_has_all_its_blocks(server: StrictServer, begin: int) -> None:
    server.on("blocks", Blocks(begin, {}))
    with server.client() as client:
        dataset = client.blocks(page_size=10).dataset()
        heights: list[Any] = dataset.to_table(filter=HEIGHTS_5_TO_9)["height"].to_pylist()
        assert sorted(heights) == [*range(begin, 10)]
        assert dataset.report.complete
        assert [request.query.get("height") for request in server.requests].count("4") == 1


# Conditions that every block satisfies.
ACCEPTED = {
    "height alone": pc.field("height") > 0,
    "miner": pc.field("miner") == "0xa",
    "hash": pc.field("hash") != "0xb",
    "time": pc.field("block_time").is_null() | (pc.field("block_time") > pa.scalar(0, pa.timestamp("ms", "UTC"))),
    "either": (pc.field("miner") == "0xa") | (pc.field("height") == 0),
}


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(
    ("low", "absent", "is_wanted"),
    [(95, 97, True), (95, 96, True), (60, 71, True), (60, 70, True), (95, 92, False)],
)
@pytest.mark.parametrize("with_times", [True, False])
@pytest.mark.parametrize("name", ACCEPTED)
def test_block_that_the_list_lacks_is_a_reason_if_the_filter_accepts_its_height(
    server: StrictServer, low: int, absent: int, name: str, *, is_wanted: bool, with_times: bool
) -> None:
    heights = [height for height in range(100, 0, -1) if height != absent]

    def page(request: Request) -> Response:
        limit, number = int(request.query["limit"]), int(request.query["page"])
        rows = [{"hash": f"0x{height:02x}", "height": str(height), "miner": "0xa"} for height in heights]
        rows = [row | ({"blockTime": row["height"]} if with_times else {}) for row in rows]
        counts = {"total": str(len(rows)), "totalPage": str(-(-len(rows) // limit))}
        return page_of("blocks", rows[(number - 1) * limit : number * limit], page=str(number), **counts)

    server.on("blocks", page)
    with server.client() as client:
        dataset = client.blocks(page_size=10).dataset()
        wanted = (pc.field("height") >= low) & ACCEPTED[name]
        assert len(dataset.to_table(filter=wanted)) == 101 - low - is_wanted
        assert len(dataset.report.reasons) == is_wanted
        assert all("have gaps: 1 block is missing" in reason for reason in dataset.report.reasons)


@pytest.mark.parametrize("absent", [2, 3])
def test_absent_block_below_the_first_page_of_the_list_is_noticed(server: StrictServer, absent: int) -> None:
    server.on("blocks", Blocks(1, {absent: 9}))
    with server.client() as client, pytest.raises(cf.PaginationDriftError, match=f"no block of height {absent}"):
        client.blocks(page_size=10).dataset().to_table(filter=pc.field("height") <= 3)


def test_blocks_are_read_down_to_a_height_while_the_list_grows() -> None:
    with LocalService(transactions=900, growth=3) as service, service.client() as client:
        top = client.blocks().first()
        assert top is not None
        assert top.height is not None
        heights: list[Any] = (
            client.blocks().dataset().to_table(filter=pc.field("height") > top.height - 450)["height"].to_pylist()
        )
    assert heights == list(range(heights[0], top.height - 450, -1))
    assert heights[0] >= top.height


@pytest.mark.parametrize("absent", [{5}, {5, 6}, {5, 7}, set()])
def test_lowest_block_of_a_set_of_heights_that_was_absent_is_requested_again(
    server: StrictServer, absent: set[int]
) -> None:
    server.on("blocks", Blocks(1, dict.fromkeys(absent, 1)))
    with server.client() as client:
        dataset = client.blocks(height=[*range(3, 13)]).dataset()
        heights = dataset.to_table(filter=HEIGHTS_5_TO_9)["height"].to_pylist()
        assert Counter(heights) == dict.fromkeys(range(5, 10), 1)
        assert dataset.report.complete
        assert dataset.report.requests == len(server.requests)


def test_lowest_block_of_a_set_of_heights_that_stays_absent_is_an_error(server: StrictServer) -> None:
    server.on("blocks", Blocks(1, {5: 100}))
    with server.client() as client, pytest.raises(cf.PaginationDriftError, match="no block of height 5, although"):
        client.blocks(height=[*range(3, 13)]).dataset().to_table(filter=HEIGHTS_5_TO_9)


def test_chain_that_begins_within_a_set_of_heights_has_all_its_blocks(server: StrictServer) -> None:
    server.on("blocks", Blocks(7, {}))
    with server.client() as client:
        dataset = client.blocks(height=[*range(3, 13)]).dataset()
        assert sorted(dataset.to_table(filter=HEIGHTS_5_TO_9)["height"].to_pylist()) == [7, 8, 9]  # type: ignore[type-var]
        assert dataset.report.complete
        assert [request.query.get("height") for request in server.requests].count("4") == 1


def test_filter_on_heights_and_another_column_that_no_call_combines_loses_no_record() -> None:
    with LocalService(transactions=900, seed=7) as service, service.client(rate_limit=None) as client:
        table = client.transactions().to_arrow()
        heights = sorted(height or 0 for height in set(table["height"].to_pylist()))
        inner = pc.field("height") == heights[50]
        block_hash = table.filter(inner)["block_hash"][0].as_py()
        outer = (pc.field("height") >= heights[45]) & (pc.field("height") <= heights[55])
        for wanted in (
            ((pc.field("height") == heights[5]) | outer) & (pc.field("block_hash") == block_hash),
            (inner | ((pc.field("height") > heights[5]) & (pc.field("height") < heights[9])))
            & pc.field("block_hash").isin([block_hash, "0x" + "1" * 64]),
        ):
            dataset = client.transactions().dataset()
            assert rows(dataset.to_table(filter=wanted)) == rows(table.filter(wanted)) != []
            assert dataset.report.complete


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(
    ("absent", "is_noticed"),
    # A page is read past the time, in which the run notices a gap whatever the filter is.
    [(97, True), (92, True), (71, False)],
)
@pytest.mark.parametrize("column", ["hash", "block_time"])
def test_block_that_the_list_lacks_is_a_reason_if_it_is_among_those_read_for_a_time(
    server: StrictServer, absent: int, column: str, *, is_noticed: bool
) -> None:
    times = {height: str(1_700_000_000_000 + height * 1_000) for height in range(100, 0, -1) if height != absent}

    def page(request: Request) -> Response:
        limit, number = int(request.query["limit"]), int(request.query["page"])
        rows = [{"hash": f"0x{height:02x}", "height": str(height), "blockTime": times[height]} for height in times]
        counts = {"total": str(len(rows)), "totalPage": str(-(-len(rows) // limit))}
        return page_of("blocks", rows[(number - 1) * limit : number * limit], page=str(number), **counts)

    server.on("blocks", page)
    since = pa.scalar(int(times[95]), pa.timestamp("ms", "UTC"))
    with server.client() as client:
        dataset = client.blocks(page_size=10).dataset()
        found = dataset.to_table(filter=(pc.field("block_time") >= since) & pc.field(column).is_valid())
        assert len(found) == 6 - (absent > 95)
        assert len(dataset.report.reasons) == is_noticed


@pytest.fixture(scope="module")
def recent() -> Iterator[tuple[LocalService, cf.Client, int]]:
    with LocalService(transactions=3_000, seed=7) as service, service.client(rate_limit=None) as client:
        newest = client.transactions().first()
        assert newest is not None
        yield service, client, newest.height or 0


@pytest.mark.parametrize("depth", [0, 1, 9, 30])
def test_open_range_of_recent_heights_is_requested_by_height(
    recent: tuple[LocalService, cf.Client, int], depth: int
) -> None:
    service, client, newest = recent
    expected = client.transactions(start_height=newest - depth).collect()
    service.reset_request_log()
    dataset = client.transactions().dataset()
    assert rows(dataset.to_table(filter=pc.field("height") >= newest - depth)) == rows(expected.to_arrow())
    # The first page of the list shows the newest block, in place of the request for it.
    assert service.request_count == dataset.report.requests == expected.report.requests
    assert dataset.report.complete
    assert [
        query.collect().to_arrow()
        for query in Scanner(client.transactions(), None, pc.field("height") >= newest - depth, 1).queries()
    ] == [expected.to_arrow()]


@pytest.mark.parametrize("low", [-1, 0, 1])
def test_open_range_of_more_heights_than_pages_reads_the_list(
    recent: tuple[LocalService, cf.Client, int], low: int
) -> None:
    service, client, _ = recent
    expected = client.transactions().collect()
    service.reset_request_log()
    found = client.transactions().dataset().to_table(filter=pc.field("height") >= low)
    assert rows(found) == rows(expected.to_arrow())
    assert service.request_count == expected.report.requests


def test_open_range_above_the_newest_block_takes_the_first_page(recent: tuple[LocalService, cf.Client, int]) -> None:
    service, client, newest = recent
    service.reset_request_log()
    assert client.transactions().dataset().count_rows(filter=pc.field("height") > newest) == 0
    assert service.request_count == 1


def test_open_range_within_a_range_that_was_passed(recent: tuple[LocalService, cf.Client, int]) -> None:
    service, client, newest = recent
    expected = client.transactions(start_height=newest - 4).collect()
    service.reset_request_log()
    found = client.transactions(start_height=newest - 40).dataset().to_table(filter=pc.field("height") >= newest - 4)
    assert rows(found) == rows(expected.to_arrow())
    assert service.request_count == expected.report.requests
    ended = client.transactions(start_height=newest - 40, end_height=newest - 20).dataset()
    assert set(ended.to_table(filter=pc.field("height") >= newest - 22)["height"].to_pylist()) == {
        newest - 22,
        newest - 21,
        newest - 20,
    }


def test_open_range_with_times_reads_the_heights_of_the_times(recent: tuple[LocalService, cf.Client, int]) -> None:
    _, client, newest = recent
    every = client.transactions().collect()
    time = next(record.transaction_time for record in every if record.height == newest - 50)
    wanted = (pc.field("height") >= 1) & (pc.field("transaction_time") == pa.scalar(time, pa.timestamp("ms", "UTC")))
    dataset = client.transactions().dataset()
    assert "start_time" in dataset.explain(wanted)
    assert "start_height" not in dataset.explain(wanted)
    assert rows(dataset.to_table(filter=wanted)) == rows(every.to_arrow().filter(wanted)) != []
