"""`sync`: what a follower delivers is in the table once, with exact amounts, wherever the process is killed."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import adbc_driver_postgresql.dbapi as postgresql
import deltalake
import duckdb
import pytest

import chainframe as cf
import postgres
from chainframe.sinks import Synced
from chainframe.sinks.duckdb import DuckDbSink
from chainframe.sinks.postgresql import PostgresqlSink
from chainframe.sinks.sync import TableForm, run, run_async
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService, make_records

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MOST, LEAST = Decimal("99999999999999999999.999999999999999999"), Decimal("0.000000000000000001")
TARGETS = ["duckdb", "delta", "postgresql"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def batch(height: int, branch: str, amount: Decimal) -> Any:
    rows = [{"tx_id": f"0x{branch}{height}{index}", "height": height, "amount": amount} for index in range(2)]
    return SimpleNamespace(to_arrow=make_records("transactions", rows).to_arrow, cursor=f"{branch}{height}")


EVENTS = [
    *(batch(height, "a", MOST) for height in range(1, 6)),
    SimpleNamespace(after_height=3, cursor="undo"),
    *(batch(height, "b", LEAST) for height in range(4, 7)),
]
FINAL = sorted(
    (height, f"0x{branch}{height}{index}", amount)
    for branch, heights, amount in (("a", range(1, 4), MOST), ("b", range(4, 7), LEAST))
    for height in heights
    for index in range(2)
)


class Query:
    """A query whose follower delivers prepared events."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def follow(self, *, start: str, settle: int, poll: None, undo: bool) -> Any:
        assert (settle, poll, undo) == (12, None, True)
        first = 0 if start == "beginning" else 1 + [event.cursor for event in self.events].index(start)

        class Follow:
            report = SimpleNamespace(requests=1)
            cursor = self.events[-1].cursor

            def __iter__(_self) -> Iterator[Any]:  # noqa: N805
                return iter(self.events[first:])

            async def __aiter__(_self) -> AsyncIterator[Any]:  # noqa: N805
                for event in self.events[first:]:
                    yield event

        return Follow()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if postgres.INITDB is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running() as url:
        yield url


@pytest.fixture(params=TARGETS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A kind of target, and where it is."""
    if request.param != "postgresql":
        return request.param, str(tmp_path / "table")
    url = request.getfixturevalue("server")
    with postgresql.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute('DROP TABLE IF EXISTS "t t", _chainframe')
        connection.commit()
    return request.param, url


def opened(place: tuple[str, str]) -> Any:
    kind, where = place
    return {"duckdb": duckdb.connect, "delta": Path, "postgresql": postgresql.connect}[kind](where)


def synced(place: tuple[str, str], events: list[Any]) -> Synced:
    target = opened(place)
    try:
        return run(Query(events), sink_of(target, None if place[0] == "delta" else "t t"), 12)
    finally:
        if place[0] != "delta":
            target.close()


def stored(place: tuple[str, str]) -> list[tuple[Any, ...]]:
    select = 'select height, tx_id, amount::text from "t t"'
    if place[0] == "delta":
        table = deltalake.DeltaTable(place[1]).to_pyarrow_dataset().to_table(columns=["height", "tx_id", "amount"])
        rows: list[Any] = [tuple(row.values()) for row in table.to_pylist()]
    elif place[0] == "duckdb":
        with closing(opened(place)) as connection:
            rows = connection.execute(select).fetchall()
    else:
        with opened(place) as connection, connection.cursor() as cursor:
            cursor.execute(select)
            rows = cursor.fetchall()
    return sorted((height, tx_id, Decimal(amount)) for height, tx_id, amount in rows)


@pytest.mark.parametrize("cut", range(1, len(EVENTS)))
def test_runs_add_what_is_new_and_replace_what_was_undone(place: tuple[str, str], cut: int) -> None:
    first = synced(place, EVENTS[:cut])
    second = synced(place, EVENTS)
    assert stored(place) == FINAL
    assert first.rows_added + second.rows_added == 16
    assert first.rows_removed + second.rows_removed == 4
    assert (second.height, second.requests) == (6, 1)
    again = synced(place, EVENTS)
    assert again == Synced(rows_added=0, rows_removed=0, height=6, requests=1, commits=0, report=again.report)


def test_table_of_another_program_is_rejected(place: tuple[str, str]) -> None:
    rows = make_records("transactions", [{"tx_id": "0x1"}]).to_arrow()
    if place[0] == "delta":
        deltalake.write_deltalake(place[1], rows)
    elif place[0] == "duckdb":
        with closing(opened(place)) as connection:
            connection.sql('create table "t t" as from rows')
    else:
        with opened(place) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("t t", rows)
            connection.commit()
    with pytest.raises(cf.ExportError, match="was not made by sync"):
        synced(place, EVENTS)


def test_run_that_another_one_overtook_commits_nothing(place: tuple[str, str]) -> None:
    synced(place, EVENTS[:2])
    events = EVENTS[:2]

    class Overtaken(Query):
        def follow(self, **options: Any) -> Any:
            follow = super().follow(**options)
            if place[0] != "duckdb":
                synced(place, EVENTS)
            else:
                run(Query(EVENTS), DuckDbSink(target.cursor(), "t t"), 12)
            return follow

    target = opened(place)
    sink = sink_of(target, None if place[0] == "delta" else "t t")
    with pytest.raises(cf.ExportError, match="another run of sync has committed meanwhile"):
        run(Overtaken([*events, batch(3, "c", MOST)]), sink, 12)
    if place[0] != "delta":
        target.close()
    assert stored(place) == FINAL


def test_what_arrived_before_an_error_is_committed(place: tuple[str, str]) -> None:
    class Failing(Query):
        def follow(self, **options: Any) -> Any:
            events = list(super().follow(**options))

            def fail() -> Iterator[Any]:
                yield from events
                raise cf.TransportError("gone", retryable=True)

            return fail()

    target = opened(place)
    with pytest.raises(cf.TransportError, match="gone") as caught:
        run(Failing(EVENTS[:3]), sink_of(target, None if place[0] == "delta" else "t t"), 12)
    assert caught.value.__notes__ == ["6 rows are committed; the same call continues"]
    if place[0] != "delta":
        target.close()
    assert synced(place, EVENTS).rows_added == 10
    assert stored(place) == FINAL


async def synced_async(place: tuple[str, str], query: Any) -> Synced:
    target = opened(place)
    try:
        return await run_async(
            query, sink_of(target, None if place[0] == "delta" else "t t"), 12, TableForm(), reset=False
        )
    finally:
        if place[0] != "delta":
            target.close()


def test_async_runs_add_what_the_blocking_ones_add(place: tuple[str, str]) -> None:
    first = asyncio.run(synced_async(place, Query(EVENTS[:3])))
    second = asyncio.run(synced_async(place, Query(EVENTS)))
    assert (first.rows_added, second.rows_added, second.rows_removed) == (6, 10, 4)
    assert stored(place) == FINAL


def test_cancelled_run_commits_what_arrived(place: tuple[str, str]) -> None:
    async def main() -> None:
        reached = asyncio.Event()

        class Endless(Query):
            def follow(self, **options: Any) -> Any:
                events = super().follow(**options)

                async def follow() -> AsyncIterator[Any]:
                    async for event in events:
                        yield event
                    reached.set()
                    await asyncio.Event().wait()

                return follow()

        task = asyncio.ensure_future(synced_async(place, Endless(EVENTS[:3])))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert synced(place, EVENTS).rows_added == 10
    assert stored(place) == FINAL


def test_target_and_table_are_checked() -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"target must be a DuckDB connection, .*; got int"):
        sink_of(3, "t")
    with duckdb.connect() as connection, pytest.raises(cf.InvalidParameterError, match="table must name a table"):
        sink_of(connection, None)
    with pytest.raises(cf.InvalidParameterError, match="table must not be given for Delta Lake"):
        sink_of("somewhere", "t")
    for name in ("a\0b", "a\ud800b"):
        with pytest.raises(cf.InvalidParameterError, match=r"^table \('a.*b'\) must be Unicode text without null"):
            sink_of("x.duckdb", name)
    with pytest.raises(cf.InvalidParameterError, match=r"target \(x\.duckdb\) is a database, .*pass table= too"):
        sink_of("x.duckdb", None)


def test_query_and_table_agree_after_growth_and_reorganizations(place: tuple[str, str]) -> None:
    with LocalService(transactions=300, seed=7) as service, service.client(rate_limit=None) as client:
        query = client.transactions()
        table = None if place[0] == "delta" else "t t"

        def sync() -> Synced:
            target = opened(place)
            try:
                return query.sync(target, table=table)
            finally:
                if table:
                    target.close()

        first = sync()
        assert first.rows_added == len(stored(place)) > 0
        service.reset_request_log()
        assert sync() == replace(first, rows_added=0, requests=1, commits=0, report=first.report)
        assert service.request_count == 1
        removed = 0
        for _ in range(3):
            # Each request adds records and replaces the newest six heights.
            service.growth, service.reorg = 2, (1, 6)
            query.first()
            service.growth, service.reorg = 0, None
            removed += sync().rows_removed
            height = sync().height
            assert height is not None
            listed = [record for record in query.collect() if record.height is not None and record.height <= height]
            expected = sorted((record.height, record.tx_id, record.amount) for record in listed)
            assert stored(place) == expected
        assert removed > 0


def test_list_whose_newest_records_wait_is_one_request_without_news(place: tuple[str, str]) -> None:
    with LocalService(transactions=1_500, seed=7) as service, service.client(rate_limit=None) as client:
        query, counts = client.large_transactions(), []
        for _ in range(4):
            target = opened(place)
            first = query.sync(target, table=None if place[0] == "delta" else "t t")
            before = client.usage
            again = query.sync(target, table=None if place[0] == "delta" else "t t")
            if place[0] != "delta":
                target.close()
            counts.append((first.rows_added > 0, again.commits, again.requests))
            assert again.requests == (client.usage - before).requests
            service.growth = 40
            query.first()
            service.growth = 0
        assert counts == [(True, 0, 1)] * 4


def test_driver_that_stores_other_amounts_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbc_driver_postgresql.__version__", "1.10.0")
    connection: Any = SimpleNamespace(
        adbc_get_info=lambda: {"vendor_name": "PostgreSQL"},
        adbc_connection=SimpleNamespace(get_option=lambda _name: "idle"),
    )
    with pytest.raises(
        cf.InvalidParameterError, match=r"^target must be a .*adbc-driver-postgresql >= 1\.11, .*; got 1\.10\.0"
    ):
        PostgresqlSink(connection, "t")
