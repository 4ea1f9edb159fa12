"""Ranges of times, and ranges up to the newest block: a run finds their heights first."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DAY = timedelta(days=1)
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture(scope="module")
def quiet() -> Iterator[LocalService]:
    with LocalService(seed=5, transactions=400) as service:
        yield service


def test_transactions_between_two_times(quiet: LocalService) -> None:
    client = quiet.client()
    newest = client.transactions(max_items=60).collect()
    times = sorted({record.transaction_time for record in newest if record.transaction_time})
    start, end = times[1], times[-2]
    expected = {
        record.tx_id for record in newest if record.transaction_time and start <= record.transaction_time <= end
    }
    assert {record.tx_id for record in client.transactions(start_time=start, end_time=end)} == expected
    inside = client.transactions(start_time=start - MILLISECOND, end_time=end + MILLISECOND).collect()
    assert {record.tx_id for record in inside} == expected
    assert inside.report.complete


def test_a_range_without_upper_end_ends_at_the_newest_block(quiet: LocalService) -> None:
    client = quiet.client()
    newest = client.transactions(max_items=60).collect()
    heights = sorted({record.height for record in newest if record.height})
    expected = {record.tx_id for record in newest if record.height and record.height >= heights[2]}
    query = client.transactions(start_height=heights[2])
    records = query.collect()
    assert {record.tx_id for record in records} == expected
    assert [record.height for record in records] == sorted(record.height or 0 for record in records)
    start = next(record.transaction_time for record in newest if record.height == heights[2])
    assert client.transactions(start_time=start).collect().to_dicts() == records.to_dicts()
    assert query.estimate().num_slices == heights[-1] - heights[2] + 1
    assert len(query.partitions(3)) == min(3, heights[-1] - heights[2] + 1)


def test_cross_chain_transactions_by_time(quiet: LocalService) -> None:
    client = quiet.client()
    every = client.cross_chain_transactions().collect()
    times = sorted(record.zone_block_time for record in every if record.zone_block_time)
    start, end = times[len(times) // 3], times[2 * len(times) // 3]
    expected = [record.id for record in every if record.zone_block_time and start <= record.zone_block_time <= end]
    assert [record.id for record in client.cross_chain_transactions(start_time=start, end_time=end)] == expected
    later = [record.id for record in every if record.zone_block_time and start <= record.zone_block_time]
    assert [record.id for record in client.cross_chain_transactions(start_time=start)] == later


@pytest.mark.parametrize("start", ["2024-01-01T00:00Z", None])
@pytest.mark.parametrize("rest", [timedelta(microseconds=1), timedelta(microseconds=999), pd.Timedelta(1, "ns")])
def test_a_range_that_begins_between_two_milliseconds_has_nothing_before_it(
    quiet: LocalService, rest: timedelta, start: str | None
) -> None:
    client = quiet.client()
    every = client.cross_chain_transactions().collect()
    cut = sorted(record.zone_block_time for record in every if record.zone_block_time)[len(every) // 2]
    before = client.cross_chain_transactions(start_time=start, end_time=cut if start else pd.Timestamp(cut) + rest)
    later = client.cross_chain_transactions(start_time=pd.Timestamp(cut) + rest)
    assert sorted(record.id or "" for query in (before, later) for record in query) == sorted(
        record.id or "" for record in every
    )


@pytest.mark.parametrize("call", ["transactions", "cross_chain_transactions", "tokens"])
def test_a_range_within_one_millisecond_is_empty(quiet: LocalService, call: str) -> None:
    start = datetime(2026, 1, 28, 0, 0, 0, 1, tzinfo=UTC)
    records = getattr(quiet.client(), call)(start_time=start, end_time=start + timedelta(microseconds=998)).collect()
    assert (len(records), records.report.complete) == (0, True)


@pytest.mark.parametrize("call", ["transactions", "cross_chain_transactions"])
def test_a_range_without_blocks_is_empty_and_complete(quiet: LocalService, call: str) -> None:
    before = getattr(quiet.client(), call)(start_time="1999-01-01T00:00Z", end_time="1999-02-01T00:00Z").collect()
    after = getattr(quiet.client(), call)(start_time=datetime.now(UTC) + 400 * DAY).collect()
    for records in (before, after):
        assert len(records) == 0
        assert records.report.complete


def test_a_range_that_begins_before_a_capped_list_is_incomplete() -> None:
    with LocalService(transactions=3_000, seed=7, max_result_window=1_000) as service, service.client() as client:
        lowest = client.large_transactions().collect()[-1]
        assert lowest.transaction_time is not None
        end = lowest.transaction_time
        with pytest.warns(cf.IncompleteResultWarning, match="first block is unknown.*start_height"):
            records = client.transactions(start_time=end - DAY, end_time=end).collect()
        assert {record.height for record in records} == {lowest.height}


def test_a_cursor_keeps_the_heights_that_were_found(quiet: LocalService) -> None:
    client = quiet.client()
    newest = client.transactions(max_items=60).collect()
    start = sorted(record.transaction_time for record in newest if record.transaction_time)[10]
    query = client.transactions(start_time=start)
    whole = query.collect().to_dicts()
    for count, _ in enumerate(query, start=1):
        if count % 7 == 0:
            rest = client.resume(query.cursor)
            assert "start_height" in repr(rest)
            assert "start_time" not in repr(rest)
            assert rest.collect().to_dicts() == whole[count:]


def list_of_an_address(server: StrictServer, age: timedelta) -> None:
    time = str(int((datetime.now(UTC) - age).timestamp() * 1_000))

    def respond(request: Request) -> Response:
        rows: list[Any] = [{"txId": "0x1", "txid": "0x1", "height": request.query.get("height", "7")}]
        rows[0]["transactionTime"] = time
        return page_of("transactions", rows, limit="50", totalPage="1")

    server.on("transactions", respond)
    server.on("address_transactions", respond)


@pytest.mark.parametrize("days", [363, 366])
def test_a_list_of_an_address_that_begins_within_a_year_is_complete(server: StrictServer, days: int) -> None:
    list_of_an_address(server, days * DAY)
    complete = days < 365
    client = server.client()
    with warnings.catch_warnings():
        warnings.simplefilter("error" if complete else "ignore")
        records = client.address_transactions("0x1", start_height=7).collect()
    assert records.report.complete == complete
    assert records.report.requests == len(server.requests) == 2


def test_list_of_an_address_that_begins_at_a_height_without_block_is_complete_by_the_block_above(
    server: StrictServer,
) -> None:
    time = str(int((datetime.now(UTC) - 363 * DAY).timestamp() * 1_000))
    block = [{"txid": "0x1", "height": "7", "transactionTime": time}]
    server.on("transactions", lambda request: page_of("transactions", block if request.query["height"] == "7" else []))
    server.on("address_transactions", page_of("address_transactions", [{"txId": "0x1", "height": "7"}]))
    with server.client() as client:
        assert client.address_transactions("0x1", start_height=6).collect().report.complete


@pytest.mark.parametrize("empty", [2, 100])
def test_a_height_that_the_search_found_with_records_is_not_empty(server: StrictServer, empty: int) -> None:
    rows = {
        str(height): {"txid": hex(height), "height": str(height), "transactionTime": f"170000000{height}000"}
        for height in (7, 8, 9)
    }
    left = {"8": empty}

    def respond(request: Request) -> Response:
        height = request.query.get("height", "")
        left[height] = left.get(height, 0) - 1
        listed = [rows[height]] if height in rows and left[height] < 0 else []
        return page_of(
            "transactions", listed if height else [rows["9"], rows["8"], rows["7"]], limit="50", totalPage="1"
        )

    server.on("transactions", respond)
    query = server.client(max_retries=5).transactions(start_time=1_700_000_008, end_time=1_700_000_009)
    if empty > 5:
        with pytest.raises(cf.ChainframeError, match="empty"):
            query.collect()
    else:
        assert [record.height for record in query] == [8, 9]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("later", "lacks"), [([91, 92, 93], 0), ([92, 91], 0), ([91], 1), ([91, 94], 1)])
def test_a_record_that_the_search_found_is_in_the_list_of_its_height(
    server: StrictServer, later: list[int], lacks: int
) -> None:
    def row(number: int) -> dict[str, str]:
        height = number // 10
        return {"txid": hex(number), "height": str(height), "transactionTime": f"170000000{height}000"}

    listed = {"9": later, "8": [81]}

    def respond(request: Request) -> Response:
        numbers = listed[request.query["height"]] if "height" in request.query else [92, 91, 81, 71]
        return page_of("transactions", [row(number) for number in numbers], limit="50", totalPage="1")

    server.on("transactions", respond)
    records = server.client().transactions(start_time=1_700_000_008, end_time=1_700_000_009).collect()
    assert [int(record.tx_id or "", 16) for record in records] == [81, *later]
    assert ["block 9 lacks records that another" in reason for reason in records.report.reasons] == [True] * lacks


def test_records_that_show_no_block_are_not_an_empty_chain(server: StrictServer) -> None:
    row = {"txid": "0x1", "height": "9", "transactiontime": "1700000009000"}
    server.on("transactions", page_of("transactions", [row], limit="50", totalPage="1"))
    with pytest.raises(cf.ResponseFormatError, match="expected a record with a height and a time"):
        server.client().transactions(start_time=1_700_000_008, end_time=1_700_000_009).collect()


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("transactions", {"end_time": "2024-01-01T00:00Z"}, "start_time.* is required"),
        ("transactions", {"start_time": 1_700_000_000, "height": 7}, "height.* cannot be combined"),
        ("transactions", {"start_time": 1_700_000_000, "block_hash": "0x1"}, "block_hash.* cannot be combined"),
        ("cross_chain_transactions", {"end_time": 1_700_000_000, "end_height": 7}, "end_height.* cannot be combined"),
        ("cross_chain_transactions", {"start_time": 1_700_000_001, "end_time": 1_700_000_000}, "start_time"),
    ],
)
def test_invalid_ranges_are_rejected(server: StrictServer, call: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(cf.InvalidParameterError, match=message):
        getattr(server.client(), call)(**given)
    assert server.requests == []


BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HEIGHTS = 60


def time_of(height: int) -> datetime:
    return BEGIN + timedelta(seconds=600 * height)


def service_of(listed: int, times: dict[int, datetime] | None = None) -> LocalService:
    """Lists of 60 blocks, of which the lists that show the blocks of a chain have the first."""
    times = times or {height: time_of(height) for height in range(HEIGHTS)}
    crossing = [
        cf.CrossChainTransaction(zone_block_time=times[height], zone_block_height=height, id=f"0x{height:064x}")
        for height in reversed(range(HEIGHTS))
    ]
    blocks = [
        cf.Block(height=height, block_time=times[height], hash=f"0x{height:064x}") for height in reversed(range(listed))
    ]
    transfers: list[dict[str, Any]] = [
        {
            "height": height,
            "transaction_time": times[height],
            "tx_id": f"0x{height:064x}",
            "block_hash": f"0x{height:064x}",
            "from_address": address,
            "to_address": "0x" + "b" * 40,
        }
        for height in reversed(range(HEIGHTS))
        for address in ADDRESSES
    ]
    chain = [row for row in transfers if row["from_address"] == ADDRESSES[0] and row["height"] < listed]
    service = LocalService(
        transactions=0, simulated=True, data={"cross_chain_transactions": crossing, "blocks": blocks}
    )
    service.load(
        "transactions", [{name: value for name, value in row.items() if "_address" not in name} for row in chain]
    )
    service.load("address_transactions", transfers)
    return service


ADDRESSES = ["0x" + "a" * 40, "0x" + "c" * 40]
LISTS: dict[str, tuple[Callable[..., cf.Query[Any]], str, int]] = {
    "cross chain": (lambda client, **times: client.cross_chain_transactions(**times), "zone_block_height", 1),
    "an address": (lambda client, **times: client.address_transactions(ADDRESSES[0], **times), "height", 1),
    "a set": (lambda client, **times: client.address_transactions(ADDRESSES, **times), "height", 2),
}


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("behind", [0, 1, 20, HEIGHTS])
@pytest.mark.parametrize("of", LISTS)
def test_list_that_is_ahead_of_the_blocks_of_its_chain_has_all_records_of_a_range_of_times(
    of: str, behind: int, tmp_path: Path
) -> None:
    call, column, each = LISTS[of]
    with service_of(HEIGHTS - behind) as service, service.client(rate_limit=None) as client:
        cached = service.client(rate_limit=None, cache=tmp_path)
        for start, end in ((35, 45), (35, 59), (35, 70), (50, 55), (35, None), (None, 45), (55, 70)):
            times = {"start_time": start and time_of(start), "end_time": end and time_of(end)}
            given = {name: time for name, time in times.items() if time}
            query = call(client, **given)
            expected = [
                height
                for height in reversed(range(HEIGHTS))
                if (start or 0) <= height <= (HEIGHTS if end is None else end)
                for _ in range(each)
            ]
            found = query.collect()
            assert sorted((getattr(record, column) for record in found), reverse=True) == expected
            assert {reason for reason in found.report.reasons if "12 months" not in reason} == set()
            assert found.report.dropped == 0
            again = call(cached, **given)
            for _ in range(2):
                assert sorted((getattr(record, column) for record in again.collect()), reverse=True) == expected
            parts = [getattr(record, column) for part in query.partitions(3) for record in part.collect()]
            assert sorted(parts, reverse=True) == expected
            assert (query.estimate().records_range[1] or HEIGHTS) >= len(expected)
            if each == 1:
                next(iter(query), None)
                assert len(client.resume(query.cursor).collect()) == max(len(expected) - 1, 0)
                assert [getattr(record, column) for record in call(client, max_items=3, **given)] == expected[:3]


def test_range_that_ends_at_the_newest_block_takes_no_further_request() -> None:
    with service_of(HEIGHTS) as service, service.client(rate_limit=None) as client:
        inside = client.cross_chain_transactions(start_time=time_of(35), end_time=time_of(58)).collect()
        newest = client.cross_chain_transactions(start_time=time_of(35), end_time=time_of(70)).collect()
    assert (len(inside), len(newest)) == (24, 25)
    assert newest.report.requests <= inside.report.requests


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_blocks_that_are_earlier_than_those_below_them_are_a_reason_of_a_range_of_times() -> None:
    times = {height: time_of(height - 5 if height % 7 == 5 else height) for height in range(HEIGHTS)}
    with service_of(HEIGHTS, times) as service, service.client(rate_limit=None) as client:
        found = client.cross_chain_transactions(start_time=time_of(20), end_time=time_of(40)).collect()
        assert any("A block is earlier than a block below it" in reason for reason in found.report.reasons)
        assert client.cross_chain_transactions(start_height=20).collect().report.complete


@pytest.mark.parametrize("addresses", ["0xa", ["0xa", "0xb"]], ids=["list", "set"])
def test_range_that_ends_at_a_block_which_its_chain_does_not_list_has_the_records_of_the_block(
    server: StrictServer, addresses: str | list[str]
) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) - DAY

    def at(height: int) -> str:
        return str(int((begin + timedelta(seconds=height)).timestamp() * 1_000))

    def blocks(request: Request) -> Response:
        height = int(request.query.get("height", 0))
        heights = [height] if height else [*range(300, 0, -1)]
        listed = [height for height in heights if height not in {200, 201}]
        end = int(request.query["page"]) * int(request.query["limit"])
        shown = listed[end - int(request.query["limit"]) : end]
        rows = [{"txid": f"0x{height}", "height": str(height), "transactionTime": at(height)} for height in shown]
        return page_of("transactions", rows, **({} if height else {"totalPage": "6"}))

    def respond(request: Request) -> Response:
        low, high = (int(request.query[f"{end}BlockHeight"]) for end in ("start", "end"))
        name = request.query["address"]
        heights = [height for height in (201, 200, 199, 100, 99) if low <= height <= high]
        rows = [
            {"txId": f"{name}{height}", "height": str(height), "transactionTime": at(height), "from": name}
            for height in heights
        ]
        return page_of("address_transactions", rows)

    server.on("transactions", blocks)
    server.on("address_transactions", respond)
    start, end = begin + timedelta(seconds=100), begin + timedelta(seconds=201)
    records = server.client().address_transactions(addresses, start_time=start, end_time=end).collect()
    for name in [addresses] if isinstance(addresses, str) else addresses:
        assert [record.height for record in records if record.from_address == name] == [201, 200, 199, 100]
    assert records.report.complete


@pytest.mark.parametrize("disorder", [{0: 20}, {0: 20, 4: -7, 9: 7}, {}])
@pytest.mark.parametrize(("start", "end"), [(0, 12), (-30, 1), (3, 18), (30, 40)])
def test_block_that_was_shown_within_the_times_is_in_the_result_or_there_is_a_reason(
    server: StrictServer, disorder: dict[int, int], start: int, end: int
) -> None:
    epoch = 1_700_000_000
    times = {5000 + index: epoch + 3 * index + disorder.get(index, 0) for index in range(15)}
    rows = [
        {"txid": hex(height), "height": str(height), "blockHash": hex(height), "transactionTime": f"{time}000"}
        for height, time in sorted(times.items(), reverse=True)
    ]

    def transactions(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        listed = [row for row in rows if request.query.get("height", row["height"]) == row["height"]]
        counts = {"page": str(page), "limit": str(limit), "totalPage": str(-(-len(listed) // limit))}
        return page_of("transactions", listed[(page - 1) * limit : page * limit], **counts)

    server.on("transactions", transactions)
    with server.client() as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = client.transactions(start_time=1000 * (epoch + start), end_time=1000 * (epoch + end))
        records = query.collect()
    expected = {height for height, time in times.items() if epoch + start <= time <= epoch + end}
    if records.report.complete:
        assert {record.height for record in records} == expected
    else:
        assert disorder
        assert "earlier than a block below it" in records.report.reasons[0]
