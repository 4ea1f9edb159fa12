"""Queries of several values: one result of many lists, and a verdict on each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
import random
import threading
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from conftest import needs_extra
from strict_server import Request, Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PAGE = 3
MISSING = "Records of 1 of the values of"


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=44) as running:
        yield running


def senders(service: LocalService, count: int) -> list[str]:
    """Addresses, the busiest of them first, then others in between."""
    found = Counter(record.input for record in service.client().transactions() if record.input)
    return [address for address, _ in found.most_common() if "," not in address][:count]


def values_of(service: LocalService) -> list[tuple[str, str, list[Any]]]:
    client = service.client()
    heights = sorted({record.height for record in client.transactions(max_items=200) if record.height})
    large = sorted({record.height for record in client.large_transactions(max_items=60) if record.height})
    crossed = client.cross_chain_transactions().collect()
    crossing = sorted({record.zone_block_height for record in crossed if record.zone_block_height})
    tokens = [token.token_contract_address for token in client.tokens(max_items=8)]
    hashes = [record.block_hash for record in client.transactions(max_items=30)]
    return [
        ("tokens", "token_contract_address", tokens),
        ("token_transfers", "token_contract_address", tokens),
        ("cross_chain_transactions", "height", crossing[:7]),
        ("cross_chain_transactions", "address", [record.from_address for record in crossed[:6]]),
        ("blocks", "height", [block.height for block in client.blocks(max_items=9)]),
        ("address_transactions", "address", senders(service, 9)),
        ("large_transactions", "height", large[:5]),
        ("transactions", "height", heights[:7]),
        ("transactions", "block_hash", hashes[:4]),
    ]


def queried_and_record(records: Sequence[Any]) -> Counter[Any]:
    return Counter((record.queried[0], tuple(map(str, list(record.to_dict().items())[:-1]))) for record in records)


def of_single_lists(client: cf.Client, call: str, name: str, values: list[Any]) -> Counter[Any]:
    expected: Counter[Any] = Counter()
    for value in dict.fromkeys(values):
        for record in getattr(client, call)(**{name: value}).collect():
            expected[str(value), tuple(map(str, record.to_dict().items()))] += 1
    return expected


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("case", range(9))
def test_set_of_every_list_equals_its_single_lists_with_as_many_requests(busy: LocalService, case: int) -> None:
    call, name, values = values_of(busy)[case]
    client = busy.client()
    before = busy.request_count
    expected = of_single_lists(client, call, name, values)
    single = busy.request_count - before
    query = getattr(client, call)(**{name: values})
    records = query.collect()
    assert queried_and_record(records) == expected
    assert records.report.requests == busy.request_count - before - single <= single
    assert records.report.records == len(records) == sum(expected.values())
    verdicts = records.report.by_argument
    assert list(verdicts) == [str(value) for value in dict.fromkeys(values)]
    assert sum(verdict["records"] for verdict in verdicts.values()) == len(records)
    assert sum(verdict["requests"] for verdict in verdicts.values()) == records.report.requests
    assert all(verdict["error"] is None for verdict in verdicts.values())
    assert records.report.complete == all(verdict["complete"] for verdict in verdicts.values())


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_every_way_to_read_a_set_returns_the_same_records(busy: LocalService) -> None:
    values = senders(busy, 7)

    def query() -> cf.Query[cf.AddressTransaction]:
        return busy.client().address_transactions(values, page_size=7)

    async def awaited() -> list[Any]:
        iterated = [record async for record in query()]
        batched = [record async for batch in query().batches(5) for record in batch]
        return [await query().collect_async(), iterated, batched]

    expected = queried_and_record(query().collect())
    results = [
        list(query()),
        [record for page in query().pages() for record in page.records],
        [record for batch in query().batches(11) for record in batch],
        *asyncio.run(awaited()),
    ]
    assert [queried_and_record(result) == expected for result in results] == [True] * 6
    assert sorted(str(row) for row in query().to_dicts()) == sorted(str(record.to_dict()) for record in query())
    assert query().first() is not None


@needs_extra
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_queried_is_a_column_of_every_frame(busy: LocalService) -> None:
    values = senders(busy, 4)
    query = busy.client().address_transactions(values)
    count = len(query.collect())
    table = query.to_arrow()
    assert table.column_names[-1] == "queried"
    assert {value for row in table["queried"].to_pylist() for value in row or ()} == set(values)
    assert query.to_polars()["queried"].explode().n_unique() == len(values)
    assert len(query.to_pandas()) == count
    assert set(query.to_pandas(columns=["queried", "tx_id"]).columns) == {"queried", "tx_id"}
    reader = query.to_arrow_batch_reader(columns=["tx_id", "queried"])
    assert reader.read_all().num_rows == count
    projected = list(query.batches(50, columns=["queried", "height"]))
    assert sum(len(batch["queried"]) for batch in projected) == count
    assert "queried" not in busy.client().address_transactions(values[0]).to_arrow().column_names


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_records_and_reports_of_a_set_survive_pickling(busy: LocalService) -> None:
    records = busy.client().address_transactions(senders(busy, 3)).collect()
    copy = pickle.loads(pickle.dumps(records))
    assert list(copy) == list(records)
    assert copy[0].queried == records[0].queried
    assert copy.report == records.report
    assert copy.report.by_argument == records.report.by_argument
    assert pickle.loads(pickle.dumps(records[0])) == records[0]
    single = busy.client().blocks(max_items=1).collect()[0]
    with pytest.raises(AttributeError, match="a query of several values"):
        single.queried  # noqa: B018 - the attribute raises


def test_values_come_from_any_iterable_and_each_once(busy: LocalService) -> None:
    client = busy.client()
    heights = [block.height or 0 for block in client.blocks(max_items=4)]
    for values in (tuple(heights), (height for height in heights), [*heights, heights[0]], {*heights}):
        records = client.blocks(height=values).collect()
        assert sorted(record.height or 0 for record in records) == sorted(heights)
        assert records.report.complete
    address = senders(busy, 1)[0]
    query = client.address_transactions([address, address.upper().replace("0X", "0x")])
    assert "address=1 value>" in repr(query)
    assert query == client.address_transactions([address])
    assert hash(query) == hash(client.address_transactions([address]))


@needs_extra
def test_values_come_from_columns_of_libraries(busy: LocalService) -> None:
    import numpy as np  # noqa: PLC0415 - an extra
    import pandas as pd  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    client = busy.client()
    heights = [block.height or 0 for block in client.blocks(max_items=4)]
    columns: list[Any] = [np.array(heights), pd.Series(heights), pl.Series(heights), pa.array(heights)]
    for column in columns:
        assert client.blocks(height=column) == client.blocks(height=heights)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda c: c.address_transactions([]), "address must not be empty"),
        (lambda c: c.address_transactions(["0xab", ""]), r"address\[1\] is required and must not be empty"),
        (lambda c: c.address_transactions(["0xab", None]), r"address\[1\] must be a string; got None"),
        (lambda c: c.address_transactions(["0xab", "0x c"]), r"address\[1\] must be one address or hash"),
        (lambda c: c.blocks(height=[1, -2]), r"height\[1\] must be a block height"),
        (lambda c: c.blocks(height=[1, True]), r"height\[1\] must not be a bool"),
        (lambda c: c.blocks(height=[1.5]), r"height\[0\] must be a block height"),
        (lambda c: c.blocks(height=[1], max_items=3), "max_items must not be given with several values of height"),
        (lambda c: c.cross_chain_transactions(height=[1], address=["0xab"]), "must be one value where height has sev"),
        (lambda c: c.address_transactions({"a": 1}), "address must be one value or several; got a dict: pass its keys"),
        (lambda c: c.address_transactions("0xab", direction=["from"]), "direction must be a string"),
        (lambda c: c.transactions(start_height=[1]), "start_height must be a block height"),
    ],
)
def test_bad_values_raise_before_anything_is_sent(
    busy: LocalService, make: Callable[[cf.Client], Any], message: str
) -> None:
    before = busy.request_count
    with pytest.raises(cf.InvalidParameterError, match=message) as caught:
        make(busy.client())
    assert "\n" not in str(caught.value)
    assert busy.request_count == before


@needs_extra
def test_what_does_not_take_sets_yet_says_so_before_anything_is_sent(busy: LocalService, tmp_path: Path) -> None:
    query = busy.client().address_transactions(["0xab", "0xcd"])
    before = busy.request_count
    target = tmp_path / "out"
    uses: list[Callable[[], Any]] = [
        lambda: query.to_csv(target, since=target),
        lambda: query.to_json(target, since=target),
    ]
    for use in uses:
        with pytest.raises(
            cf.InvalidParameterError, match=r"^address must be one value for to_.*\(since=\.\.\.\), where to_parquet"
        ):
            use()
    assert busy.request_count == before
    assert list(tmp_path.iterdir()) == []


class Wallets:
    """Lists of transactions by address, some of them refused, which may grow at their heads."""

    def __init__(self, lengths: list[int], refused: frozenset[int] = frozenset(), growth: float = 0.0) -> None:
        self.names = [f"0x{index:040x}" for index in range(len(lengths))]
        self.lists = {
            name: [self.record(name, height) for height in range(length, 0, -1)]
            for name, length in zip(self.names, lengths, strict=True)
        }
        self.refused = {self.names[index] for index in refused}
        self.growth = growth
        self.random = random.Random(len(lengths))
        self.failing = 0.0

    @staticmethod
    def record(name: str, height: int) -> dict[str, str]:
        digits = f"{int(name, 16) * 100_000 + height:064x}"
        return {
            "txId": f"0x{digits}",
            "blockHash": f"0x{height:064x}",
            "height": str(height),
            "transactionTime": str(1_700_000_000_000 + height),
            "from": name,
            "to": "0xfe",
            "amount": str(height),
        }

    def __call__(self, request: Request) -> Response:
        name = request.query["address"]
        if name in self.refused:
            return error(403, "50030", "no permission for this address")
        if self.random.random() < self.failing:
            return error(503, "50001", "try later")
        records = self.lists[name]
        if self.random.random() < self.growth:
            records.insert(0, self.record(name, len(records) + 1))
        page, limit = int(request.query["page"]), int(request.query["limit"])
        pages = max(1, -(-len(records) // limit))
        part = records[(page - 1) * limit : page * limit]
        return page_of("address_transactions", part, page=str(page), limit=str(limit), totalPage=str(pages))

    def keys(self, lengths: list[int]) -> set[tuple[str, int]]:
        good = [(name, length) for name, length in zip(self.names, lengths, strict=True) if name not in self.refused]
        return {(name, height) for name, length in good for height in range(1, length + 1)}


def test_refused_arguments_are_named_and_the_others_kept(server: StrictServer) -> None:
    wallets = Wallets([5, 4, 0, 9], frozenset({1}))
    server.on("address_transactions", wallets)
    query = server.client().address_transactions(wallets.names, page_size=PAGE)
    with pytest.warns(cf.IncompleteResultWarning):
        records = query.collect()
    assert {(record.queried[0], record.height) for record in records} == wallets.keys([5, 4, 0, 9])
    assert len(records) == 14
    assert not records.report.complete
    assert any(reason.startswith(MISSING) and wallets.names[1] in reason for reason in records.report.reasons)
    verdicts = records.report.by_argument
    assert [verdict["records"] for verdict in verdicts.values()] == [5, 0, 0, 9]
    errors = [verdict["error"] for verdict in verdicts.values()]
    assert [index for index, found in enumerate(errors) if found] == [1]
    assert "no permission for this address" in errors[1]
    with pytest.raises(cf.IncompleteResultError) as caught:
        server.client(strict=True).address_transactions(wallets.names).collect()
    assert len(caught.value.partial or ()) == 14


def test_error_of_every_argument_is_the_error_of_the_query(server: StrictServer) -> None:
    wallets = Wallets([5, 4, 3], frozenset({0, 1, 2}))
    server.on("address_transactions", wallets)
    with pytest.raises(cf.PermissionDeniedError):
        server.client().address_transactions(wallets.names).collect()


def test_error_of_the_service_ends_the_run_and_its_cursor_continues(server: StrictServer) -> None:
    lengths = [7, 1, 0, 20, 5]
    wallets = Wallets(lengths)
    server.on("address_transactions", wallets)
    client = server.client()
    query = client.address_transactions(wallets.names, page_size=PAGE)
    found: list[tuple[str, int]] = []
    wallets.failing = 0.3
    failures = 0
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cf.IncompleteResultWarning)
                found.extend((record.queried[0], record.height or 0) for record in query.collect())
            break
        except cf.ServiceUnavailableError as raised:
            failures += 1
            found.extend((record.queried[0], record.height or 0) for record in query.partial)
            query = client.resume(raised.cursor or "")
    assert failures > 0
    assert len(found) == len(set(found))
    assert set(found) == wallets.keys(lengths)


@pytest.mark.parametrize("seed", range(4))
def test_set_that_is_killed_and_grows_has_every_record_once_and_names_the_refused(
    server: StrictServer, seed: int
) -> None:
    chance = random.Random(seed)
    lengths = [chance.choice([0, 1, 2, 3, 4, 7, 25]) for _ in range(60)]
    refused = frozenset(chance.sample(range(60), 3))
    wallets = Wallets(lengths, refused, growth=0.02)
    server.on("address_transactions", wallets)
    client = server.client()
    query: cf.Query[Any] = client.address_transactions(wallets.names, page_size=PAGE)
    found: list[tuple[str, int]] = []
    kills = 0
    while True:
        stop_after = chance.randrange(1, 40) if kills < 40 else 10**9
        taken = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cf.IncompleteResultWarning)
            for record in query:
                found.append((record.queried[0], record.height))
                taken += 1
                if taken == stop_after:
                    break
            else:
                break
        kills += 1
        query = client.resume(query.cursor)
    assert kills >= 5
    assert len(found) == len(set(found))
    # Records that came while a list was read need not be in the result; those that were there at first are.
    assert set(found) >= wallets.keys(lengths)
    named = {name for name, verdict in query.report.by_argument.items() if verdict["error"]}
    assert named == wallets.refused
    assert not query.report.complete


def test_short_lists_do_not_wait_for_long_ones(server: StrictServer) -> None:
    wallets = Wallets([200, 200, 200, 200, *[1] * 40])
    left = set(wallets.names[4:])
    are_short_requested = threading.Event()
    waited: list[bool] = []

    def respond(request: Request) -> Response:
        left.discard(request.query["address"])
        if not left:
            are_short_requested.set()
        if int(request.query["page"]) > 10:
            # Long lists take all requests in flight from here on, until every short one was requested.
            waited.append(are_short_requested.wait(timeout=60))
        return wallets(request)

    server.on("address_transactions", respond)
    pages = list(server.client(concurrency=4).address_transactions(wallets.names, page_size=PAGE).pages())
    assert sum(len(page.records) for page in pages) == 840
    assert len(waited) > 4
    assert all(waited)


def test_cursor_of_a_set_has_only_the_lists_that_are_left(server: StrictServer) -> None:
    wallets = Wallets([2] * 500)
    server.on("address_transactions", wallets)
    client = server.client()
    pages = client.address_transactions(wallets.names).pages()
    cursor = ""
    for number, page in enumerate(pages, 1):
        cursor = page.cursor
        if number == 480:
            break
    assert len(cursor) < 40_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.IncompleteResultWarning)
        rest = client.resume(cursor).collect()
    assert len(rest) == 40
    with pytest.raises(cf.InvalidParameterError, match="checksum mismatch"):
        client.resume(cursor.replace(wallets.names[-1], wallets.names[0]))


def test_cursor_of_a_set_with_a_position_that_no_list_has_is_refused(server: StrictServer) -> None:
    wallets = Wallets([60] * 3)
    server.on("address_transactions", wallets)
    client = server.client(concurrency=2)
    page = next(iter(client.address_transactions(wallets.names, page_size=20).pages()))
    cursor = json.loads(page.cursor)
    del cursor["checksum"]
    client.resume(resealed(cursor))
    for member, value in [("offset", 2**64 - 1), ("slice", 9), ("set", cursor["set"])]:
        rank, position = cursor["set"]["open"][0]
        other = {**cursor, "set": {**cursor["set"], "open": [[rank, {**position, member: value}]]}}
        with pytest.raises(cf.InvalidParameterError, match=r"^cursor must be a string from page\.cursor"):
            client.resume(resealed(other))


def resealed(cursor: dict[str, Any]) -> str:
    """The cursor with the checksum of its members."""
    digest = hashlib.sha256(json.dumps(cursor, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    return json.dumps({**cursor, "checksum": digest[:8]})
