"""Queries of several values that are followed, and the tables that `sync` keeps of them."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

import chainframe as cf
import postgres
from chainframe.cli import main
from chainframe.sinks import Change, Sink, sync
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService, make_records
from followers import Consumer, height, listed
from sets.test_sets import PAGE, Wallets, senders
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning", "ignore::DeprecationWarning")
LISTS = ["address_transactions", "token_transfers", "cross_chain_transactions"]


def values_of(service: LocalService, call: str, count: int) -> list[str]:
    client = service.client()
    if call == "address_transactions":
        return senders(service, count)
    if call == "token_transfers":
        return [token.token_contract_address or "" for token in client.tokens(max_items=count)]
    crossed = client.cross_chain_transactions().collect()
    return [name for name, _ in Counter(record.from_address or "" for record in crossed).most_common(count)]


def query_of(client: cf.Client, call: str, values: Any, bounds: Any = None) -> cf.Query[Any]:
    name = {"address_transactions": "address", "token_transfers": "token_contract_address"}.get(call, "from_address")
    query: cf.Query[Any] = getattr(client, call)(**{name: values}, **(bounds or {}))
    return query


def argument_of(event: Any) -> str:
    """The argument of an event, which is of one list."""
    queried = {tuple(event.queried or ())} if isinstance(event, cf.Undo) else {tuple(row.queried) for row in event}
    ((argument,),) = queried
    return str(argument)


class Consumers:
    """The records of a followed set, by the argument that returned them."""

    def __init__(self) -> None:
        self.of: defaultdict[str, Consumer] = defaultdict(Consumer)

    def take(self, event: Any) -> None:
        self.of[argument_of(event)].take(event)

    def check(self, query_of_one: Any, values: list[str], top: int) -> None:
        """Compare each list with what it is now, up to a height."""
        for value in values:
            expected = [record.to_dict() for record in listed(query_of_one(value)) if height(record) <= top]
            found = [record.to_dict() for record in self.of[value].records if height(record) <= top]
            for record in found:
                assert record.pop("queried") == [value]
            assert found == expected


@pytest.mark.parametrize("call", LISTS)
@pytest.mark.parametrize("undo", [False, True])
def test_every_list_of_a_set_is_followed_wherever_a_run_ends(call: str, undo: bool) -> None:  # noqa: FBT001
    chance = random.Random(call)
    with LocalService(transactions=500, seed=44, growth=1, reorg=(17, 3)) as service:
        client = service.client(concurrency=3)
        values = values_of(service, call, 5)
        query = query_of(client, call, values)
        consumers, cursor = Consumers(), "beginning"
        options: dict[str, Any] = {"poll": None, "settle": 6, "undo": undo}
        for run in range(8):
            if run == 7:
                service.growth, service.reorg = 0, None
            left = chance.randrange(1, 6) if run < 7 else 10**6
            with closing(query.follow(start=cursor, **options)) as follow:
                for event in follow:
                    consumers.take(event)
                    cursor = follow.cursor
                    left -= 1
                    if not left:
                        break
                cursor = follow.cursor
        zone = call == "cross_chain_transactions"
        head = (client.blocks() if zone else client.transactions()).first()
        assert head is not None
        top = (head.height or 0) - (1 if undo else 6)
        consumers.check(lambda value: query_of(client, call, value), values, top)
        assert sum(len(consumer.records) for consumer in consumers.of.values()) > 20
        before = service.request_count
        assert list(query.follow(start=cursor, **options)) == []
        # The head of the chain is requested once for all.
        assert service.request_count - before <= 1 + len(values)


def test_set_of_followed_lists_may_grow_and_not_shrink(chain: LocalService) -> None:
    client, values = chain.client(), values_of(chain, "token_transfers", 4)
    follow = client.token_transfers(values[:2]).follow(start="beginning", poll=None)
    first = [argument_of(event) for event in follow]
    assert set(first) == set(values[:2])
    more = client.token_transfers(values[::-1]).follow(start=follow.cursor, poll=None)
    assert {argument_of(event) for event in more} == set(values[2:])
    before = chain.request_count
    one = client.token_transfers(values[0])
    for query, start, problem in [
        (client.token_transfers(values[1:]), more.cursor, "has the position of a list that the query lacks"),
        (one, more.cursor, "belongs to the query .*several values"),
        (client.token_transfers(values), one.follow().cursor, "belongs to the query"),
        (client.token_transfers(values), more.cursor.replace("position", "Position"), "must be "),
        (client.token_transfers(values), more.cursor[:-9] + '0000000"}', "is corrupted"),
    ]:
        with pytest.raises(cf.InvalidParameterError, match=f"^start {problem}"):
            query.follow(start=start)
    with pytest.raises(cf.InvalidParameterError, match=r"^unique must not be given where new records are followed"):
        client.token_transfers(values, unique=True).follow()
    with pytest.raises(cf.InvalidParameterError, match=r"^follow is not possible for blocks\(\), whose block has all"):
        client.blocks(height=[1, 2]).follow()
    assert chain.request_count == before


def test_cursor_of_an_event_continues_its_list_alone(chain: LocalService) -> None:
    client, values = chain.client(), values_of(chain, "address_transactions", 3)
    event = next(client.address_transactions(values).follow(start="beginning", poll=None))
    rest = client.address_transactions(argument_of(event)).follow(start=event.cursor or "", poll=None)
    after = [height(record) for batch in rest for record in batch]
    assert min(after, default=10**9) > max(height(record) for record in event)


def test_refused_lists_are_named_and_the_others_followed(server: StrictServer) -> None:
    wallets = Wallets([7, 4, 1, 9], frozenset({1}))
    server.on("address_transactions", wallets)
    server.on("transactions", page_of("transactions", [wallets.record("0x01", 30)], totalPage="1"))
    client = server.client()
    follow = client.address_transactions(wallets.names, page_size=PAGE).follow(start="beginning", poll=None)
    found = {(record.queried[0], record.height) for event in follow for record in event}
    assert found == wallets.keys([7, 4, 1, 9])
    assert not follow.report.complete
    verdicts = follow.report.by_argument
    assert {name for name, verdict in verdicts.items() if verdict["error"]} == wallets.refused
    assert [verdict["records"] for verdict in verdicts.values()] == [7, 0, 1, 9]
    assert any(wallets.names[1] in reason for reason in follow.report.reasons)
    # It is tried again by the next one.
    wallets.refused = set()
    wallets.lists[wallets.names[3]].insert(0, wallets.record(wallets.names[3], 19))
    server.on("transactions", page_of("transactions", [wallets.record("0x01", 31)], totalPage="1"))
    again = client.address_transactions(wallets.names, page_size=PAGE).follow(start=follow.cursor, poll=None)
    found = {(record.queried[0], record.height) for event in again for record in event}
    assert found == {(wallets.names[1], number) for number in range(1, 5)} | {(wallets.names[3], 19)}
    wallets.refused = set(wallets.names)
    with pytest.raises(cf.PermissionDeniedError):
        list(client.address_transactions(wallets.names).follow(start="beginning", poll=None))


def test_endless_follower_takes_turns_and_states_its_lag(server: StrictServer) -> None:
    wallets = Wallets([3] * 12)
    server.on("address_transactions", wallets)
    heads = 0

    def head(_request: Any) -> Any:
        nonlocal heads
        heads += 10
        return page_of("transactions", [wallets.record("0x01", 100 + heads)], totalPage="1")

    server.on("transactions", head)
    client = server.client(concurrency=2)
    with closing(client.address_transactions(wallets.names).follow(start="beginning", poll=0.01, settle=1)) as follow:
        first = [argument_of(next(follow)) for _ in wallets.names]
        assert sorted(first) == wallets.names
        for _ in range(2):
            new = 100 + heads
            for name in wallets.names:
                wallets.lists[name].insert(0, wallets.record(name, new))
            found = [(argument_of(event), height(event[0])) for _, event in zip(wallets.names, follow, strict=False)]
            assert sorted(found) == [(name, new) for name in wallets.names]
        assert follow.lag >= 0


def test_first_run_of_short_lists_requests_each_page_and_one_head(server: StrictServer, tmp_path: Path) -> None:
    wallets = Wallets([3] * 12)
    server.on("address_transactions", wallets)
    server.on("transactions", lambda _request: page_of("transactions", [wallets.record("0x01", 100)], totalPage="1"))
    query = server.client().address_transactions(wallets.names)
    synced = query.sync(tmp_path / "t.duckdb", table="t")
    assert (synced.rows_added, synced.requests) == (36, 12 + 1)
    # Nothing has changed: a page of each list.
    assert query.sync(tmp_path / "t.duckdb", table="t").requests == 12


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    if postgres.INITDB is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running() as url:
        yield url


@pytest.mark.parametrize("kind", ["duckdb", "delta", "postgresql"])
def test_one_table_has_every_record_once_whatever_interrupts_it(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(kind)
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else ""
    target: Any = {"duckdb": tmp_path / "t.duckdb", "delta": tmp_path / "t", "postgresql": url}[kind]
    options: dict[str, Any] = {"table": None if kind == "delta" else "wallets", "settle": 10}
    monkeypatch.setattr(sync.run, "__kwdefaults__", {"reset": False, "commit_rows": 40})
    take, interrupts = sync._SyncedSet.take, 0

    def interrupted(state: Any, event: Any) -> None:
        nonlocal interrupts
        moment = chance.random()
        if moment < 0.08:
            interrupts += 1
            raise KeyboardInterrupt
        take(state, event)
        if moment > 0.92:
            interrupts += 1
            raise KeyboardInterrupt

    monkeypatch.setattr(sync._SyncedSet, "take", interrupted)
    with LocalService(transactions=500, seed=44, growth=1, reorg=(23, 8)) as service:
        client = service.client(concurrency=3)
        values = senders(service, 6)
        for run in range(10):
            if run == 9:
                service.growth, service.reorg = 0, None
                monkeypatch.setattr(sync._SyncedSet, "take", take)
            # The set grows from run to run.
            query = client.address_transactions(chance.sample(values[: 3 + run // 3], 3 + run // 3))
            try:
                query.sync(target, **options)
            except KeyboardInterrupt:
                continue
        assert interrupts > 0
        head = client.transactions().first()
        assert head is not None
        rows = Counter((row["queried"][0], row["tx_id"], row["block_hash"]) for row in stored(kind, target))
        expected = Counter(
            (value, record.tx_id, record.block_hash)
            for value in values
            for record in client.address_transactions(value)
            if (record.height or 0) < (head.height or 0)
        )
        assert rows == expected
        before = service.request_count
        again = client.address_transactions(values).sync(target, **options)
        assert (again.rows_added, again.commits) == (0, 0)
        assert service.request_count - before <= 1 + len(values)
        with pytest.raises(
            cf.ExportError, match=r"has the position of a list that the query lacks: .*; pass it too, or reset=True to"
        ):
            client.address_transactions(values[1:]).sync(target, **options)
        with pytest.raises(
            cf.ExportError,
            match=rf"has the positions of 2 lists that .*{min(values[:2])}; pass them too, or reset=True to",
        ):
            client.address_transactions(values[2:]).sync(target, **options)
        with pytest.raises(cf.ExportError, match=r"belongs to the query .*several values.*; name another table"):
            client.address_transactions(values[0]).sync(target, **options)
        renewed = asyncio.run(client.address_transactions(values[1:]).sync_async(target, reset=True, **options))
        assert renewed.rows_added == sum(count for (value, *_), count in expected.items() if value != values[0])


class Prepared:
    """A set whose followers deliver prepared events."""

    _values = ("a", "b")

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def follow(self, **_options: Any) -> Any:
        events = self.events

        class Follow:
            report = SimpleNamespace(requests=1)
            cursor = "end"
            _positions = None

            def __iter__(self) -> Iterator[Any]:
                return iter(events)

        return Follow()

    def _moved(self, _positions: Any, lists: list[tuple[str, str]]) -> Any:
        return SimpleNamespace(to_json=lambda: str(lists))


class Mine(Sink):
    """A sink of a user, which knows one list."""

    name = "mine"

    def look(self) -> tuple[None, None]:
        return None, None

    def commit(self, change: Change) -> int:
        raise AssertionError(change)


def prepared(argument: str, heights: range, branch: str) -> Any:
    rows = [{"tx_id": f"{argument}{branch}{height}", "height": height} for height in heights]
    table = make_records("transactions", rows).to_arrow().append_column("queried", pa.array([[argument]] * len(rows)))
    return SimpleNamespace(to_arrow=lambda **_options: table, cursor=branch)


@pytest.mark.parametrize("kind", ["duckdb", "delta", "postgresql"])
def test_undo_of_one_list_leaves_the_rows_of_the_others(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else ""
    target: Any = {"duckdb": tmp_path / "t.duckdb", "delta": tmp_path / "t", "postgresql": url}[kind]
    events = [
        prepared("a", range(1, 6), "x"),
        prepared("b", range(1, 6), "x"),
        cf.Undo(3, "undo", ["A"]),
        prepared("a", range(4, 6), "y"),
    ]
    synced = sync.run(Prepared(events), sink_of(target, None if kind == "delta" else "undone"), 12)
    assert (synced.rows_added, synced.rows_removed, synced.height) == (12, 2, 5)
    found = sorted(row["tx_id"] for row in stored(kind, target, "undone"))
    with pytest.raises(cf.InvalidParameterError, match=r"^target \(mine\) must be one that takes several values"):
        sync.run(Prepared(events), Mine(), 12)
    assert found == [*(f"ax{n}" for n in (1, 2, 3)), *(f"ay{n}" for n in (4, 5)), *(f"bx{n}" for n in range(1, 6))]


def stored(kind: str, target: Any, table: str = "wallets") -> list[dict[str, Any]]:
    if kind == "duckdb":
        with closing(duckdb.connect(target)) as connection:
            rows: list[dict[str, Any]] = connection.table(table).to_arrow_table().to_pylist()
            return rows
    if kind == "delta":
        import deltalake  # noqa: PLC0415 - an extra

        return list(deltalake.DeltaTable(target).to_pyarrow_table().to_pylist())
    import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415 - an extra

    with driver.connect(target) as connection, connection.cursor() as cursor:
        cursor.execute(f"select * from {table}")
        return list(cursor.fetch_arrow_table().to_pylist())


def test_refused_list_leaves_the_rows_of_the_others_in_the_table(server: StrictServer) -> None:
    wallets = Wallets([7, 4, 1, 9], frozenset({1}))
    server.on("address_transactions", wallets)
    server.on("transactions", page_of("transactions", [wallets.record("0x01", 30)], totalPage="1"))
    query = server.client().address_transactions(wallets.names, page_size=PAGE)
    with closing(duckdb.connect()) as connection:
        with pytest.warns(cf.IncompleteResultWarning, match="is not followed any more"):
            synced = query.sync(connection, table="t")
        assert synced.rows_added == 17
        assert {name for name, verdict in synced.report.by_argument.items() if verdict["error"]} == wallets.refused
        wallets.refused = set()
        assert query.sync(connection, table="t").rows_added == 4
        strict = server.client(strict=True).address_transactions([*wallets.names, "0xfe"])
        wallets.refused = {"0xfe"}
        wallets.lists["0xfe"] = []
        with pytest.raises(cf.IncompleteResultError, match="0xfe is not followed any more"):
            strict.sync(connection, table="t")
        with pytest.raises(cf.InvalidParameterError, match=r"^columns .* must contain queried"):
            query.sync(connection, table="u", columns=["height", "tx_id"])
        query.sync(connection, table="u", columns=["queried", "height"])
        assert connection.execute("select count(*), count(distinct queried) from u").fetchone() == (21, 4)


def test_list_with_wrong_records_is_followed_again_after_a_new_beginning(server: StrictServer, tmp_path: Path) -> None:
    wallets = Wallets([7, 4, 9])
    name = wallets.names[0]
    newer = wallets.record(name, 30)
    right = wallets.lists[name]
    wrong = [right[0] | {"blockHash": "0xff"}, *right[1:]]
    server.on("address_transactions", wallets)
    query = server.client().address_transactions(wallets.names, page_size=PAGE)
    cursor = "beginning"
    with closing(duckdb.connect()) as connection:
        for listed, refused in [(wrong, set()), ([newer, *right], {name})]:
            wallets.lists[name] = listed
            head = wallets.record("0x01", int(listed[0]["height"]) + 20)
            server.on("transactions", page_of("transactions", [head], totalPage="1"))
            export = query.to_parquet_series(tmp_path / "old", settle=1)
            synced = query.sync(connection, table="t", settle=1)
            follow = query.follow(start=cursor, settle=1, poll=None)
            list(follow)
            cursor = follow.cursor
            assert [not_followed(each.report) for each in (export, follow)] == [refused] * 2
            # It corrects the last heights.
            assert not not_followed(synced.report)
        synced = query.sync(connection, table="t", settle=1, reset=True)
        export = query.to_parquet_series(tmp_path / "new", settle=1)
        follow = query.follow(start="beginning", settle=1, poll=None)
        assert [synced.rows_added, export.rows, sum(map(len, follow))] == [21] * 3
        assert [not_followed(each.report) for each in (export, synced, follow)] == [set()] * 3


def not_followed(report: Any) -> set[str]:
    """Values whose lists ended with an error."""
    refused = {name for name, verdict in report.by_argument.items() if verdict["error"]}
    assert any("is not followed any more" in reason for reason in report.reasons) == bool(refused)
    return refused


def test_command_follows_several_lists(
    at_service: LocalService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = senders(at_service, 3)
    options = [word for value in values for word in ("--address", value)]
    command = [
        "address-transactions",
        *options,
        "--follow",
        "--poll",
        "none",
        "--cursor-file",
        str(tmp_path / "cursor"),
    ]
    # The lists may have older records than the API returns.
    assert main([*command, "--start", "beginning"]) == 6
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["queried"][0] for row in rows} == set(values)
    assert main(command) == 0
    assert capsys.readouterr().out == ""
