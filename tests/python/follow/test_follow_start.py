"""`Query.follow`: where it starts, what it rejects, and lists that are no longer returned as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from conftest import needs_extra
from followers import Consumer, height, listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def client(chain: LocalService) -> Iterator[cf.Client]:
    with chain.client(rate_limit=None) as client:
        yield client


def test_calls_that_cannot_be_followed_say_so(client: cf.Client) -> None:
    for query, message in [
        (client.tokens(), r"tokens\(\), whose list is not ordered by age"),
        (client.logs("0x1"), r"logs\(\), a lookup by hash; follow a list"),
        (client.transactions_by_hash("0x1"), "a lookup by hash"),
        (client.blocks(height=1), "omit the filter by block"),
        (client.transactions(block_hash="0x1"), "omit the filter by block"),
        (client.blocks(max_items=1), "max_items must not be given"),
        (client.transactions(start_height=1, end_height=2), "end_height must not be given"),
    ]:
        with pytest.raises(cf.InvalidParameterError, match=message):
            query.follow()


@pytest.mark.parametrize("undo", [False, True])
def test_a_long_list_with_a_count_is_followed_from_its_beginning_by_pages(*, undo: bool) -> None:
    with LocalService(transactions=11_000, seed=7) as chain, chain.client(rate_limit=None) as client:
        consumer, query = Consumer(), client.blocks()
        consumer.follow(query, undo=undo)
        # The list has 110 pages, and more records than may be held at once.
        assert chain.request_count < 110 + 20
        assert len(consumer.records) == 11_000 - (1 if undo else 6)
        consumer.check(query)
        if not undo:
            return
        # So is what was added while it was not followed; the newest heights were replaced.
        chain.growth, chain.reorg = 4_000, (3, 3)
        for _ in range(3):
            query.first()
        chain.growth, chain.reorg = 0, None
        chain.reset_request_log()
        consumer.follow(query, undo=True)
        assert chain.request_count < 120 + 40
        assert len(consumer.records) == 23_000 - 1
        consumer.check(query)


def test_what_is_within_the_result_window_is_read_by_pages() -> None:
    with (
        LocalService(transactions=3_000, seed=7, max_result_window=500) as chain,
        chain.client(rate_limit=None) as client,
    ):
        heights = sorted({row["height"] for row in client.transactions(max_items=400).to_dicts()})
        query = client.transactions(start_height=heights[0] - 60)
        consumer = Consumer()
        chain.reset_request_log()
        consumer.follow(query, undo=False)
        spent = chain.request_count
        expected = list(client.transactions(start_height=heights[0] - 60, end_height=heights[-1] - 6).collect())
        assert sorted(map(str, consumer.records)) == sorted(map(str, expected))
        assert spent < len(expected)


def test_invalid_arguments_are_rejected(client: cf.Client) -> None:
    query = client.blocks()
    cursor = client.transactions().follow().cursor
    arguments: list[tuple[dict[str, Any], str]] = [
        ({"start": "later"}, 'start must be "now", "beginning", an Export, or the cursor of a follower'),
        ({"start": 7}, 'start must be "now"'),
        ({"start": query.cursor}, "pass it to client.resume"),
        ({"start": cursor}, "start belongs to the call transactions; this one is blocks"),
        ({"start": cursor.replace("MAIN", "MAIM")}, "checksum"),
        ({"settle": -1}, "settle must be a number of heights"),
        ({"settle": True}, "settle must be a number of heights"),
        ({"settle": 10_001}, r"settle \(10001\) must be <= 10000"),
        ({"poll": 0}, "poll must be"),
        ({"poll": "often"}, "poll must be"),
    ]
    for given, message in arguments:
        with pytest.raises(cf.InvalidParameterError, match=message):
            query.follow(**given)
    with pytest.raises(cf.InvalidParameterError, match="cursor is that of a follower; pass it to"):
        client.resume(query.follow().cursor)


def test_a_start_height_bounds_the_beginning(client: cf.Client) -> None:
    for query in (client.transactions(), client.cross_chain_transactions()):
        records = listed(query)
        low = height(records[len(records) // 2])
        bounded = getattr(client, repr(query).split()[1])(start_height=low)
        followed = [record for batch in bounded.follow(start="beginning", poll=None) for record in batch]
        assert followed == [record for record in records if low <= height(record) <= height(followed[-1])]


@pytest.mark.parametrize("undo", [False, True])
def test_lists_beyond_the_result_window_are_read_by_height(*, undo: bool) -> None:
    with LocalService(transactions=600, seed=7, max_result_window=100) as service:
        with service.client(rate_limit=None) as client:
            newest = client.transactions().first()
            assert newest is not None
            query, consumer = client.transactions(start_height=height(newest) - 24), Consumer()
            consumer.follow(query, undo=undo)
            with pytest.raises(cf.FollowGapError, match=r"of height 18000030 exceed the API's result window \(100\)"):
                list(client.transactions(start_height=18_000_030).follow(start="beginning", poll=None))
            service.reset_request_log()
            with pytest.raises(cf.InvalidParameterError, match="pass start_height to the call"):
                list(client.transactions().follow(start="beginning", poll=None))
            # The first page, the last one that the API returns, and the lowest heights, which are empty.
            assert service.request_count < 10
        with service.client(rate_limit=None) as client:
            blocks = range(min(map(height, consumer.records)), max(map(height, consumer.records)) + 1)
            expected = list(client.transactions(start_height=blocks[0], end_height=blocks[-1]).collect())
            assert sorted(map(repr, consumer.records)) == sorted(map(repr, expected))
            assert [height(record) for record in consumer.records] == [height(record) for record in expected]
            assert len(blocks) > 10
            token = client.tokens().first()
            assert token is not None
            transfers = client.token_transfers(token.token_contract_address or "")
            with pytest.raises(cf.FollowGapError, match="no longer returns the records of heights 0 to") as raised:
                list(transfers.follow(start="beginning", poll=None))
            assert raised.value.first_height == 0


@needs_extra
@pytest.mark.parametrize("call", ["blocks", "transactions", "cross_chain_transactions"])
@pytest.mark.parametrize("settle", [None, 4])
def test_an_export_is_continued(
    chain: LocalService, client: cf.Client, tmp_path: Path, call: str, settle: int | None
) -> None:
    query = getattr(client, call)()
    export = query.to_parquet(tmp_path / "export", settle=settle)
    exported = listed(query)[: export.rows]
    chain.growth = 3
    for _ in range(30):
        client.blocks().first()
    chain.growth = 0
    followed = [record for batch in query.follow(start=export, poll=None) for record in batch]
    together = exported + followed
    assert len(followed) > 10
    assert together == [record for record in listed(query) if height(record) <= height(followed[-1])]
    with pytest.raises(cf.InvalidParameterError, match="is an export of another query: call is"):
        client.large_transactions().follow(start=export)


@needs_extra
@pytest.mark.parametrize("kind", ["since", "max_items"])
def test_an_export_that_ends_within_a_block_is_continued_with_undo(
    chain: LocalService, client: cf.Client, tmp_path: Path, kind: str
) -> None:
    if kind == "since":
        first = client.transactions().to_parquet(tmp_path / "first")
        chain.growth = 1
        client.blocks().first()
        chain.growth = 0
        export = client.transactions().to_parquet(tmp_path / "export", since=first)
    else:
        # One of the several transactions of the lowest block.
        heights = [transaction.height or 0 for transaction in client.transactions(max_items=100)]
        first_of_two = next(at for at in range(2, 99) if heights[at - 1] > heights[at] == heights[at + 1])
        export = client.transactions(max_items=first_of_two + 1).to_parquet(tmp_path / "export")
    assert 0 < export.rows < 100
    assert list(client.transactions().follow(start=export, poll=None, undo=True)) == []
