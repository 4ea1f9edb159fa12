"""`Query.follow`: every list, changes of the chain, faults, interrupts and other processes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pickle
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from followers import Consumer, height, listed
from reference_client import ENDPOINTS, RECORDS, WITH_HEIGHTS
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Sample
    from strict_server import Response


@pytest.fixture
def client(chain: LocalService) -> Iterator[cf.Client]:
    with chain.client(rate_limit=None) as client:
        yield client


@pytest.mark.parametrize("call", WITH_HEIGHTS)
def test_a_list_is_followed_from_its_beginning(sample: Sample, client: cf.Client, call: str) -> None:
    query, consumer = sample.query(client, call), Consumer()
    follow = query.follow(start="beginning", poll=None)
    for batch in follow:
        consumer.take(batch)
    newest = (client.blocks() if ENDPOINTS[call]["chain"] == "zone" else client.transactions()).first()
    assert newest is not None
    assert consumer.records == [record for record in listed(query) if height(record) <= height(newest) - 12]
    report = follow.report
    # This list has no block hashes: a replaced block with the same records cannot be detected.
    is_blind = not RECORDS[ENDPOINTS[call]["record"]]["roles"]["block"]
    is_limited = call == "address_transactions"
    reasons = ["The list has no block hashes"] * is_blind
    reasons += ["The API returns only the last 12 months of an address"] * is_limited
    assert report.complete == (not reasons)
    assert [reason.partition(":")[0] for reason in report.reasons] == reasons
    assert query.follow(undo=True).report.reasons == []
    assert report.records == len(consumer.records)


def test_the_cursor_before_the_first_batch_begins_there(chain: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    follow = query.follow(start="beginning", poll=None)
    assert follow.cursor != query.follow(start="now").cursor
    chain.faults = [{"kind": "status", "status": 400, "code": "50014"}]
    with pytest.raises(cf.BadRequestError) as raised:
        next(follow)
    chain.faults = []
    everything = [list(batch) for batch in query.follow(start="beginning", poll=None)]
    for cursor in (raised.value.cursor, follow.cursor):
        assert cursor is not None
        assert [list(batch) for batch in query.follow(start=cursor, poll=None)] == everything


@pytest.mark.parametrize("call", WITH_HEIGHTS)
def test_the_records_between_two_cursors_can_be_read_again(
    sample: Sample, chain: LocalService, client: cf.Client, call: str
) -> None:
    query, batches, ends = sample.query(client, call), [], ["", ""]
    chain.growth, chain.reorg = 1, (5, 3)
    start = query.follow(start="beginning").cursor
    for number in range(6):
        follow = query.follow(start=start if number == 0 else ends[-1], poll=None, settle=4)
        batches.append([record for batch in follow for record in batch])
        ends.append(follow.cursor)
        for _ in range(12):
            client.blocks().first()
    ends[:2] = [start]
    assert sum(map(bool, batches)) > 1
    for first, last, batch in zip(ends, ends[1:], batches, strict=False):
        again = query._follow_between(first, last, 4)
        assert [record for records in again for record in records] == batch
    again = query._follow_between(ends[0], ends[-1], 4)
    assert [record for records in again for record in records] == [record for batch in batches for record in batch]


def test_records_that_changed_are_not_read_again(chain: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    start = query.follow(start="beginning").cursor
    follow = query.follow(start=start, poll=None, settle=2)
    delivered = [block for batch in follow for block in batch]
    chain.reorg = (1, 6)
    query.first()
    chain.reorg = None
    changed = next(block for block, now in zip(delivered, listed(query), strict=False) if block != now)
    with pytest.raises(cf.ReorganizationError) as raised:
        list(query._follow_between(start, follow.cursor, 2))
    assert raised.value.height == changed.height
    with pytest.raises(cf.InvalidParameterError, match="end must be the cursor of an event"):
        query._follow_between(start, start, 2)


def test_a_round_of_several_pages_looks_at_the_first_one_again(chain: LocalService, client: cf.Client) -> None:
    """Lists without a count: nothing else shows that the newest records were replaced meanwhile."""
    query = client.transactions(page_size=20)
    before = query.follow(start="beginning", poll=None)
    assert sum(len(batch) for batch in before) > 500
    chain.growth = 1
    for _ in range(60):
        client.blocks().first()
    chain.growth = 0
    chain.reset_request_log()
    assert sum(len(batch) for batch in query.follow(start=before.cursor, poll=None)) > 40
    first, *_, last = [request["query"] for request in chain.request_log]
    assert first == last
    assert "page=1&" in f"{first}&"


@pytest.mark.parametrize("undo", [False, True])
def test_growth_is_delivered_once(chain: LocalService, client: cf.Client, *, undo: bool) -> None:
    consumer, query = Consumer(), client.blocks()
    newest = query.first()
    assert newest is not None
    above = height(newest) - (1 if undo else 12)
    chain.growth = 3
    follow = query.follow(poll=0.01, settle=12, undo=True) if undo else query.follow(poll=0.01, settle=12)
    for event in follow:
        consumer.take(event)
        if len(consumer.records) > 60:
            break
    chain.growth = 0
    assert not consumer.undone
    assert height(consumer.records[0]) > above
    consumer.check(query, above=height(consumer.records[0]) - 1)


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("call", WITH_HEIGHTS)
def test_a_round_without_news_is_one_request(
    sample: Sample, chain: LocalService, client: cf.Client, call: str, *, undo: bool
) -> None:
    query, follow = sample.query(client, call), None
    batches: Any
    for growth in (0, 3, 1):
        chain.growth = growth
        for _ in range(5 if growth else 0):
            client.blocks().first()
        chain.growth = 0
        # The newest records wait for a higher block.
        start = "beginning" if follow is None else follow.cursor
        follow = batches = query.follow(start=start, poll=None, undo=undo)  # type: ignore[call-overload]
        assert sum(len(batch) for batch in batches) > 0 or growth
        chain.reset_request_log()
        assert list(query.follow(start=follow.cursor, poll=None, undo=undo)) == []  # type: ignore[call-overload]
        assert chain.request_count == 1


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("call", ["large_transactions", "cross_chain_transactions"])
def test_rounds_without_news_are_one_request_each(
    sample: Sample, chain: LocalService, client: cf.Client, call: str, *, undo: bool
) -> None:
    query = sample.query(client, call)

    async def run() -> None:
        follow = query.follow(start="beginning", poll=0.01, undo=undo)  # type: ignore[call-overload]
        async with contextlib.aclosing(follow):
            async for _ in follow:
                chain.reset_request_log()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await anext(follow)
                break

    asyncio.run(run())
    paths = [request["path"] for request in chain.request_log]
    # The head of the chain and the list in turn, or the list only if no record waits.
    lists = {path.rpartition("/")[2] for path in paths}
    assert len(paths) > 6
    assert all(one != other for one, other in itertools.pairwise(paths)) == (len(lists) == 2)


def test_asyncio_delivers_the_same(chain: LocalService, client: cf.Client) -> None:
    chain.growth = 2

    async def run() -> list[Any]:
        records: list[Any] = []
        async with contextlib.aclosing(client.transactions().follow(poll=0.01, settle=3)) as follow:
            async for batch in follow:
                records += batch
                if len(records) > 20:
                    break
        return records

    records = asyncio.run(run())
    chain.growth = 0
    heights = {record.height for record in records}
    assert records == [record for record in listed(client.transactions()) if record.height in heights]
    assert heights == set(range(min(heights), max(heights) + 1))


def test_cancelled_wait_loses_nothing(chain: LocalService, client: cf.Client) -> None:
    async def run() -> list[int | None]:
        follow = client.blocks().follow(poll=0.05, settle=1)
        heights: list[int | None] = []
        for _ in range(40):
            chain.growth = 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.03):
                    heights += [block.height for block in await anext(follow)]
        return heights

    heights = asyncio.run(run())
    first = heights[0]
    assert first is not None
    assert heights == list(range(first, first + len(heights)))


@pytest.mark.parametrize("call", ["blocks", "transactions", "token_transfers"])
def test_reorganizations_are_undone(sample: Sample, chain: LocalService, client: cf.Client, call: str) -> None:
    query, consumer = sample.query(client, call), Consumer()
    chain.growth, chain.reorg = 1, (7, 4)
    for _ in range(30):
        consumer.follow(query, undo=True)
    chain.growth, chain.reorg = 0, None
    consumer.follow(query, undo=True)
    assert consumer.undone
    consumer.check(query)


def test_late_and_pending_records_are_undone(chain: LocalService, client: cf.Client) -> None:
    query, consumer = client.transactions(), Consumer()
    chain.late, chain.pending, chain.growth = (0.3, 2), (0.3, 3), 2
    follow = query.follow(start="beginning", poll=0.001, settle=6, undo=True)
    for event in follow:
        consumer.take(event)
        if len(consumer.undone) > 10:
            break
    chain.late, chain.pending = None, None
    for event in follow:
        consumer.take(event)
        if height(consumer.records[-1]) > consumer.undone[-1] + 12:
            break
    chain.growth = 0
    consumer.check(query)


def test_late_records_are_undone_after_a_pause(chain: LocalService, client: cf.Client) -> None:
    """As of a table that is brought up to date every night: the chain grows by more than `settle` in between."""
    query, consumer = client.transactions(), Consumer()
    chain.late = (0.01, 4)
    for _ in range(8):
        consumer.follow(query, undo=True)
        before = consumer.records[-1].height
        chain.growth = 60
        for _ in range(12):
            client.blocks().first()
        chain.growth = 0
        newest = query.first()
        assert newest is not None
        assert height(newest) > before + 12
    consumer.follow(query, undo=True)
    assert consumer.undone
    consumer.check(query)


def test_settled_heights_have_their_late_records(chain: LocalService, client: cf.Client) -> None:
    query, consumer = client.transactions(), Consumer()
    chain.late, chain.reorg, chain.growth = (0.5, 2), (9, 3), 2
    for batch in query.follow(start="beginning", poll=0.001, settle=12):
        consumer.take(batch)
        if len(consumer.records) > 1_150:
            break
    chain.growth, chain.reorg = 0, None
    consumer.check(query)


def test_a_change_below_the_settle_distance_names_its_height(chain: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    follow = query.follow(start="beginning", poll=None, settle=2)
    delivered = [block for batch in follow for block in batch]
    chain.reorg = (1, 6)
    query.first()
    chain.reorg = None
    with pytest.raises(
        cf.ReorganizationError, match=r"continue with undo, or begin again with a larger settle than 2$"
    ) as raised:
        list(query.follow(start=follow.cursor, poll=None, settle=2))
    changed = next(block for block, now in zip(delivered, listed(query), strict=False) if block != now)
    assert raised.value.height == changed.height
    assert not raised.value.retryable
    assert pickle.loads(pickle.dumps(raised.value)).height == changed.height
    (undo, batch) = query.follow(start=follow.cursor, poll=None, settle=2, undo=True)
    assert undo == cf.Undo(height(changed) - 1, undo.cursor or "")
    assert pickle.loads(pickle.dumps(undo)) == undo
    assert pickle.loads(pickle.dumps(batch)).cursor == batch.cursor


def test_faults_are_survived_or_continued(chain: LocalService) -> None:
    with chain.client(rate_limit=None, max_retries=1) as client:
        query, consumer = client.blocks(), Consumer()
        # With 20, a follower whose requests fail half of the time may read less than is listed meanwhile, without end.
        chain.growth = 8
        follow = query.follow(start="beginning", poll=0.001)
        chain.faults = [
            {"kind": "status", "status": 503, "every": 5},
            {"kind": "reset", "every": 4},
            {"kind": "empty", "every": 7},
        ]
        # A repeated request may fail again or not, by what runs beside it: these faults may never end in an error.
        while len(consumer.records) < 1_400:
            with contextlib.suppress(cf.ServiceError, cf.TransportError, cf.PaginationError):
                consumer.take(next(follow))
        chain.faults = [{"kind": "status", "status": 503}]
        with pytest.raises(cf.ServiceUnavailableError) as raised:
            list(map(consumer.take, follow))
        assert raised.value.cursor == follow.cursor
        chain.faults = []
        consumer.take(next(follow))
        chain.growth = 0
        consumer.check(query)


def test_another_process_continues(chain: LocalService, client: cf.Client) -> None:
    query = client.blocks()
    first = next(iter(query.follow(start="beginning", poll=None)))
    chain.growth = 1
    for _ in range(20):
        query.first()
    chain.growth = 0
    code = (
        "import sys, chainframe as cf\n"
        "with cf.Client() as client:\n"
        "    for batch in client.blocks().follow(start=sys.stdin.read(), poll=None):\n"
        "        print(*(block.hash for block in batch))\n"
    )
    settings = {
        "CHAINFRAME_BASE_URL": chain.url,
        "CHAINFRAME_API_KEY": chain.api_key,
        "CHAINFRAME_SECRET_KEY": chain.secret_key,
        "CHAINFRAME_PASSPHRASE": chain.passphrase,
    }
    run = subprocess.run(
        [sys.executable, "-c", code], input=first.cursor, capture_output=True, text=True, check=True, env=settings
    )
    hashes = [block.hash for block in first] + run.stdout.split()
    assert len(hashes) > len(first)
    assert hashes == [block.hash for block in listed(query)][: len(hashes)]


@pytest.mark.skipif(sys.platform == "win32", reason="it sends itself signals")
def test_a_signal_that_comes_with_a_response_leaves_the_batch(server: StrictServer) -> None:
    requests = itertools.count(20)

    def respond(request: Any) -> Response:
        """A list of as many blocks as requests, and a signal just before every second response."""
        total = next(requests)
        if total % 2 == 0:
            os.kill(os.getpid(), signal.SIGUSR1)
        page, limit = int(request.query["page"]), int(request.query["limit"])
        blocks = [{"hash": f"0x{height}", "height": str(height)} for height in range(total, 0, -1)]
        members = {"page": str(page), "limit": str(limit), "totalPage": str(-(-total // limit)), "total": str(total)}
        return page_of("blocks", blocks[(page - 1) * limit : page * limit], **members)

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    server.on("blocks", respond)
    before = signal.signal(signal.SIGUSR1, interrupt)
    heights: list[int | None] = []
    interrupts = 0
    try:
        with server.client() as client:
            follow = client.blocks().follow(poll=0.001, settle=1)
            while len(heights) < 30:
                try:
                    batch = next(follow)
                except KeyboardInterrupt:
                    interrupts += 1
                else:
                    heights += [block.height for block in batch]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert interrupts > 5
    assert heights == list(range(20, 20 + len(heights)))


def test_a_closed_follower_ends(client: cf.Client) -> None:
    follow = client.blocks().follow()
    follow.close()
    assert list(follow) == []
    assert repr(follow) == "<Follow blocks of ZONE_CHAIN>"


def test_list_that_changes_in_every_round_raises_without_advice_that_no_follower_can_take(
    chain: LocalService, client: cf.Client
) -> None:
    cursor = client.transactions().follow(start="now", poll=None).cursor
    chain.growth, chain.reorg = 3, (1, 3)

    def rounds() -> None:
        position = cursor
        for _ in range(20):
            follow = client.transactions().follow(start=position, poll=None, undo=True)
            list(follow)
            position = follow.cursor
            client.blocks(max_items=1).collect()

    with pytest.raises(cf.PaginationDriftError) as raised:
        rounds()
    assert [hint.action for hint in raised.value.hints] == ["retry_later"]
