"""Sets that return each record once, and cursors of large sets."""

from __future__ import annotations

import pickle
import random
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import LocalService
from conftest import needs_extra
from interrupted_writes import written_in_spite_of_interrupts
from sets.test_sets import PAGE, Wallets, senders
from strict_server import Request, Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=44) as running:
        yield running


class Transfers:
    """Transactions between addresses, each of which is in the lists of its sender and its receiver."""

    def __init__(self, chance: random.Random, addresses: int, transactions: int, refused: int = 0) -> None:
        self.names = [f"0x{index + 1:040x}" for index in range(addresses)]
        self.refused = set(chance.sample(self.names, refused))
        self.records = []
        for height in range(transactions, 0, -1):
            sender, receiver = chance.choice(self.names), chance.choice([*self.names, "0xfe", ""])
            record = {**Wallets.record(sender, height), "to": receiver}
            # Some transactions of one list have equal keys, and are two records.
            self.records += [record] * chance.choice([1, 1, 1, 1, 2])

    def of(self, name: str) -> list[dict[str, str]]:
        return [record for record in self.records if name in {record["from"], record["to"]}]

    def wanted(self, names: list[str]) -> Counter[Any]:
        good = set(names) - self.refused
        records = [record for record in self.records if good & {record["from"], record["to"]}]
        return Counter((record["txId"], int(record["height"])) for record in records)

    def __call__(self, request: Request) -> Response:
        name = request.query["address"]
        if name in self.refused:
            return error(403, "50030", "no permission for this address")
        found = self.of(name)
        page, limit = int(request.query["page"]), int(request.query["limit"])
        part = found[(page - 1) * limit : page * limit]
        pages = str(max(1, -(-len(found) // limit)))
        return page_of("address_transactions", part, page=str(page), limit=str(limit), totalPage=pages)


def counted(records: Any) -> Counter[Any]:
    return Counter((record.tx_id, record.height) for record in records)


@pytest.mark.parametrize("names", ["0xfe", "0xfe,0xff"])
def test_records_that_do_not_show_their_lists_are_returned_once(server: StrictServer, names: str) -> None:
    transfers = Transfers(random.Random(7), addresses=6, transactions=60)
    hidden = {"from": "0xfd,0xfe", "to": names + ",0xfc"}

    def hide(request: Request) -> Response:
        found = [{**record, **hidden} for record in transfers.of(request.query["address"])]
        return page_of("address_transactions", found, page="1", limit="50", totalPage="1")

    server.on("address_transactions", hide)
    query = server.client().address_transactions(transfers.names, unique=True)
    assert counted(query.collect()) == transfers.wanted(transfers.names)


@pytest.mark.parametrize("seed", range(6))
def test_each_record_is_returned_once_whatever_ends_a_run(server: StrictServer, seed: int) -> None:
    chance = random.Random(seed)
    transfers = Transfers(chance, addresses=25, transactions=200, refused=2)
    server.on("address_transactions", transfers)
    client = server.client(concurrency=chance.choice([1, 2, 4]))
    query: cf.Query[Any] = client.address_transactions(transfers.names, page_size=PAGE, unique=True)
    found: list[Any] = []
    kills = 0
    while True:
        stop_after = chance.randrange(1, 30) if kills < 30 else 10**9
        for taken, record in enumerate(query, 1):
            found.append(record)
            if taken == stop_after:
                break
        else:
            break
        kills += 1
        query = client.resume(query.cursor)
    assert kills >= 5
    assert counted(found) == transfers.wanted(transfers.names)
    whole = client.address_transactions(transfers.names, page_size=PAGE, unique=True).collect()
    assert counted(whole) == transfers.wanted(transfers.names)
    every = client.address_transactions(transfers.names, page_size=PAGE).collect()
    assert whole.report.duplicates_dropped == len(every) - len(whole) > 0
    verdicts = whole.report.by_argument
    assert sum(verdict["records"] for verdict in verdicts.values()) == len(whole) == whole.report.records
    assert {name for name, verdict in verdicts.items() if verdict["error"]} == transfers.refused


def test_unique_and_all_records_of_every_kind_of_value_agree(busy: LocalService) -> None:
    client = busy.client()
    heights = [block.height or 0 for block in client.blocks(max_items=5)]
    blocks = client.blocks(height=heights, unique=True)
    assert Counter(block.height for block in blocks) == Counter(heights)
    addresses = [address.upper().replace("0X", "0x") for address in senders(busy, 9)]
    every = client.address_transactions(addresses).collect()
    once = client.address_transactions(addresses, unique=True).collect()
    assert set(counted(once)) == set(counted(every))
    assert len(once) < len(every)
    batches = list(client.address_transactions(addresses, unique=True).batches(7, columns=["height", "tx_id"]))
    assert sum(len(batch) for batch in batches) == len(once)


@needs_extra
@pytest.mark.parametrize("seed", range(3))
def test_interrupted_export_has_each_record_once(
    server: StrictServer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    transfers = Transfers(chance, addresses=20, transactions=150)
    server.on("address_transactions", transfers)

    def query() -> cf.Query[Any]:
        names = chance.sample(transfers.names, len(transfers.names))
        return server.client().address_transactions(names, page_size=PAGE, unique=True)

    export = written_in_spite_of_interrupts(query, tmp_path / "export", chance, 0.4, monkeypatch)
    rows = Counter((row["tx_id"], row["height"]) for row in export.to_arrow().to_pylist())
    assert rows == transfers.wanted(transfers.names)
    with pytest.raises(cf.ExportError, match="an export of another query: unique is"):
        server.client().address_transactions(transfers.names, page_size=PAGE).to_parquet(tmp_path / "export")


def test_unique_is_refused_where_it_cannot_hold(busy: LocalService) -> None:
    client = busy.client()
    before = busy.request_count
    with pytest.raises(cf.InvalidParameterError, match=r"^unique must not be given without several values"):
        client.address_transactions("0xab", unique=True)
    with pytest.raises(cf.InvalidParameterError, match=r"^unique must not be given where a set is split"):
        client.address_transactions(["0xab", "0xcd"], unique=True).partitions(2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'unique'"):
        client.logs(["0xab"], unique=True)  # type: ignore[call-arg]
    assert busy.request_count == before


def test_command_writes_each_record_once(at_service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    values = senders(at_service, 6)
    options = [word for value in values for word in ("--address", value)]
    expected = len(at_service.client().address_transactions(values, unique=True).collect())
    assert main(["address-transactions", *options, "--unique"]) == 6
    assert len(capsys.readouterr().out.splitlines()) == expected


def test_estimate_of_a_unique_set_is_a_bound(server: StrictServer) -> None:
    transfers = Transfers(random.Random(1), addresses=5, transactions=60)
    server.on("address_transactions", transfers)
    query = server.client().address_transactions(transfers.names, unique=True)
    low, high = query.estimate().records_range
    assert high is not None
    assert low <= len(query.collect()) < high


def test_cursor_of_a_large_set_is_small_and_continues_with_its_query(server: StrictServer) -> None:
    chance = random.Random(3)
    wallets = Wallets([chance.choice([0, 1, 2, 12]) for _ in range(2_500)])
    wallets.refused = set(chance.sample(wallets.names, 25))
    server.on("address_transactions", wallets)
    client = server.client(concurrency=16)
    query = client.address_transactions(wallets.names, page_size=PAGE)
    assert len(query.cursor) < 1_000
    found: set[tuple[str, int]] = set()
    longest = 0
    names = wallets.names
    while True:
        stop = chance.randrange(500, 2_000)
        for number, record in enumerate(query, 1):
            assert (record.queried[0], record.height) not in found
            found.add((record.queried[0], record.height or 0))
            if number == stop:
                break
        else:
            break
        cursor = query.cursor
        longest = max(longest, len(cursor))
        # The order of the values does not matter.
        names = chance.sample(names, len(names))
        query = client.resume(cursor, client.address_transactions(names, page_size=PAGE))
    assert longest < 60_000
    good = set(names) - wallets.refused
    assert found == {(name, int(record["height"])) for name in good for record in wallets.lists[name]}
    assert {name for name, verdict in query.report.by_argument.items() if verdict["error"]} == wallets.refused


def test_cursor_of_a_large_set_is_refused_without_its_values(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wallets = Wallets([1] * 1_001)
    server.on("address_transactions", wallets)
    client = server.client()
    query = client.address_transactions(wallets.names)
    next(iter(query))
    cursor = query.cursor
    # Nothing that it sends gets a response.
    offline = server.client(base_url="http://127.0.0.1:1")
    with pytest.raises(cf.InvalidParameterError, match=r"^cursor is of 1001 values of address, .*; pass query too"):
        offline.resume(cursor)
    for names in (wallets.names[1:], [*wallets.names[1:], "0xfe"]):
        with pytest.raises(cf.InvalidParameterError, match=r"^cursor is of 1001 other values of address"):
            offline.resume(cursor, offline.address_transactions(names))
    with pytest.raises(cf.InvalidParameterError, match=r"^cursor is of 1001 other values"):
        offline.resume(cursor, offline.blocks())
    with pytest.raises(cf.InvalidParameterError, match=r"^query must be the Query"):
        offline.resume(cursor, "blocks")  # type: ignore[arg-type]
    resumed = client.resume(cursor, query)
    monkeypatch.setenv("CHAINFRAME_API_KEY", "key")
    monkeypatch.setenv("CHAINFRAME_SECRET_KEY", "secret")
    monkeypatch.setenv("CHAINFRAME_PASSPHRASE", "phrase")
    assert pickle.loads(pickle.dumps(resumed)).cursor == cursor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(resumed.collect()) == 1_000
