"""Lists that are longer than the result window, read by ranges of amounts: complete, or incomplete with the reason."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.exports import Export
from strict_server import StrictServer
from transfers import BOUNDS, TOKEN, Transfers, deployment_of, keys, serve

OTHER = "0x" + "cd" * 20

Amount = Callable[[random.Random], str]

AMOUNTS: dict[str, Amount] = {
    "cents": lambda random: f"{random.randint(0, 999)}.{random.randint(0, 99):02}",
    "ties": lambda random: random.choice(["0", "0.0", "1", "5.5", "100", "1e2", "7", "8"]),
    "256 bits": lambda random: str(random.randint(0, 2**256 - 1)),
    "dust": lambda random: f"0.{random.randint(0, 30):018}",
    "all sizes": lambda random: random.choice(["0", "1e-18", "2.625E-6", str(random.random()), str(10**30)]),
}


@pytest.fixture(scope="module")
def server() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


def query_of(server: StrictServer, transfers: Transfers, **options: Any) -> cf.Query[cf.TokenTransfer]:
    return serve(server, transfers, **options).token_transfers(TOKEN, page_size=20)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("amount", AMOUNTS)
def test_list_beyond_the_window_is_complete_whatever_a_range_includes(
    server: StrictServer, bounds: str, amount: str
) -> None:
    seed = hash_of(bounds, amount)
    # Equal amounts fit into the window.
    count = 260 if amount in {"ties", "all sizes"} else 400
    transfers = Transfers(seed, count, bounds=bounds, amount=AMOUNTS[amount], growth=seed % 2 * 0.3)
    expected = transfers.keys()
    records = query_of(server, transfers, concurrency=1 + seed % 3).collect()
    if not records.report.complete:
        # A service that compares doubles cannot tell the amounts next to a frequent one from it.
        assert bounds in {"doubles", "eighteen_decimals"}
        assert amount in {"ties", "all sizes"}
        assert "can be paged through" in records.report.reasons[0]
        return
    assert Counter(keys(records)) == Counter(expected)
    assert records.report.records == count


def hash_of(*names: str) -> int:
    return sum(len(name) * 7 + ord(name[0]) for name in names)


def test_records_of_the_list_itself_come_first_and_newest_first(server: StrictServer) -> None:
    transfers = Transfers(1, 300)
    expected = transfers.keys()
    query = query_of(server, transfers)
    got = keys(query)
    first = next(index for index, (one, other) in enumerate(zip(got, expected, strict=True)) if one != other)
    assert first >= 75
    assert sorted(got) == sorted(expected)
    report = query.report
    assert report is not None
    assert report.complete
    assert report.evidence == {}


def test_limit_within_the_window_takes_its_pages_only(server: StrictServer) -> None:
    transfers = Transfers(2, 300)
    query = serve(server, transfers).token_transfers(TOKEN, page_size=20, max_items=40)
    assert keys(query.collect()) == transfers.keys()[:40]
    assert all("minAmount" not in request.query for request in server.requests[-transfers.requests :])


def test_limit_between_the_window_and_the_length_is_incomplete(server: StrictServer) -> None:
    transfers = Transfers(2, 300)
    query = serve(server, transfers).token_transfers(TOKEN, page_size=20, max_items=200)
    with pytest.warns(cf.IncompleteResultWarning, match=r"only the first 100 can be paged through; omit max_items"):
        records = query.collect()
    assert keys(records) == transfers.keys()[:100]


def test_limit_of_the_length_or_more_is_complete(server: StrictServer) -> None:
    for limit in (300, 1_000):
        transfers = Transfers(2, 300)
        records = serve(server, transfers).token_transfers(TOKEN, page_size=20, max_items=limit).collect()
        assert records.report.complete
        assert sorted(keys(records)) == sorted(transfers.keys())


def test_given_range_is_divided_within_its_ends(server: StrictServer) -> None:
    transfers = Transfers(3, 600)
    query = serve(server, transfers).token_transfers(TOKEN, page_size=20, min_amount="100.5", max_amount="700")
    records = query.collect()
    expected = [row for row in transfers.rows if 100.5 <= float(row["amount"]) <= 700]
    assert len(expected) > 200
    assert records.report.complete
    assert sorted(keys(records)) == sorted((row["txid"], row["blockHash"]) for row in expected)


@pytest.mark.parametrize(
    ("transfers", "reason"),
    [
        (Transfers(4, 300, amount=lambda _: "0"), r"reports 300 records of amount 0 but only the first 100"),
        (Transfers(4, 300, amount=lambda _: "5"), r"reports 300 records of amount 5 but only the first 100"),
        (
            Transfers(4, 300, amount=lambda random: random.choice(["", str(random.randint(0, 99))])),
            r"reports 300 records but its ranges of amounts have \d+: some may have no amount",
        ),
        (Transfers(4, 300, ignored=("minAmount", "maxAmount")), r"since it ignores ranges"),
        (Transfers(4, 300, ignored=("maxAmount",)), r"can be paged through"),
        (Transfers(4, 300, count_of_all=True), r"since it ignores ranges"),
    ],
)
def test_list_that_cannot_be_divided_has_the_reason(server: StrictServer, transfers: Transfers, reason: str) -> None:
    query = query_of(server, transfers)
    with pytest.warns(cf.IncompleteResultWarning, match=reason):
        records = query.collect()
    assert len(set(keys(records))) == len(records)
    assert set(keys(records)) <= set(transfers.keys())
    assert transfers.requests < 60


def change_of(seed: int) -> Callable[[Transfers], None]:
    choose = random.Random(seed)
    kind, size = choose.choice(["lose", "reorganize"]), choose.random()
    if kind == "lose":
        return lambda transfers: transfers.lose(int(size * len(transfers.rows)))
    return lambda transfers: transfers.reorganize(int(size * 400) + 1)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_result_of_a_changing_list_is_that_of_one_moment_or_not_complete(server: StrictServer) -> None:
    """Records are lost, and blocks replaced, after any request."""
    outcomes: Counter[str] = Counter()
    for seed in range(60):
        choose = random.Random(seed)
        amount = choose.choice(list(AMOUNTS.values()))
        changes = {choose.randint(0, 20): change_of(seed)}
        transfers = Transfers(seed, choose.randint(110, 260), growth=choose.choice([0, 0.3, 1]), changes=changes)
        transfers.amount = amount
        try:
            records = query_of(server, transfers, concurrency=choose.choice([1, 3])).collect()
        except cf.PaginationDriftError:
            outcomes["error"] += 1
            continue
        outcomes[f"complete: {records.report.complete}"] += 1
        if records.report.complete:
            assert any(Counter(keys(records)) == Counter(state) for state in transfers.states), f"seed {seed}"
    assert outcomes["complete: True"] > 10
    assert outcomes["error"] > 5


def test_run_that_fails_at_any_request_continues_from_its_cursor(server: StrictServer) -> None:
    whole = Transfers(5, 180, growth=0.3)
    query_of(server, whole).collect()
    for number in range(whole.requests):
        transfers = Transfers(5, 180, growth=0.3, errors={number})
        expected = transfers.keys()
        client = serve(server, transfers)
        query = client.token_transfers(TOKEN, page_size=20)
        with pytest.raises(cf.ServiceError) as caught:
            query.collect()
        assert caught.value.cursor is not None
        rest = client.resume(caught.value.cursor).collect()
        records = [*keys(caught.value.partial), *keys(rest)]
        assert Counter(records) == Counter(expected), f"request {number}"
        assert rest.report.complete, f"request {number}"


def test_cursor_of_any_record_continues_after_it(server: StrictServer) -> None:
    transfers = Transfers(6, 180, growth=0.1)
    client = serve(server, transfers)
    for stop in range(1, 180, 11):
        query = client.token_transfers(TOKEN, page_size=20)
        expected = transfers.keys()
        got = [(record.tx_id, record.block_hash) for _, record in zip(range(stop), query, strict=False)]
        assert query.cursor is not None
        got += keys(client.resume(query.cursor))
        assert Counter(got) == Counter(expected), f"after {stop} records"


def test_members_of_a_set_are_divided(server: StrictServer) -> None:
    transfers = Transfers(7, 180)
    short = Transfers(8, 30, token=OTHER)
    server.on(
        "token_transfers",
        lambda request: (transfers if request.query["tokenContractAddress"] == TOKEN else short).respond(request),
    )
    deployment = deployment_of(transfers)
    query = server.client(deployment=deployment).token_transfers([TOKEN, OTHER])
    records = query.collect()
    assert records.report.complete
    assert Counter(keys(records)) == Counter(transfers.keys() + short.keys())
    for stop in range(1, 200, 37):
        client = server.client(deployment=deployment, concurrency=1)
        query = client.token_transfers([TOKEN, OTHER])
        got = [(record.tx_id, record.block_hash) for _, record in zip(range(stop), query, strict=False)]
        assert query.cursor is not None
        got += keys(client.resume(query.cursor))
        assert Counter(got) == Counter(transfers.keys() + short.keys()), f"after {stop} records"


def test_export_of_a_divided_list_is_resumed_and_its_successor_has_what_is_new(
    server: StrictServer, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    transfers = Transfers(9, 180, errors={12})
    first = transfers.keys()
    client = serve(server, transfers)
    with pytest.raises(cf.ServiceError):
        client.token_transfers(TOKEN, page_size=20).to_parquet(tmp_path / "first")
    export = client.token_transfers(TOKEN, page_size=20).to_parquet(tmp_path / "first")
    assert export.report.complete
    rows = export.to_arrow().to_pylist()
    assert Counter((row["tx_id"], row["block_hash"]) for row in rows) == Counter(first)
    for _ in range(8):
        transfers.grow()
    later = client.token_transfers(TOKEN, page_size=20).to_parquet(tmp_path / "later", since=tmp_path / "first")
    rows = later.to_arrow().to_pylist()
    assert Counter((row["tx_id"], row["block_hash"]) for row in rows) == Counter(transfers.keys()) - Counter(first)


def test_estimate_of_a_divided_list_has_all_records_and_about_its_requests(server: StrictServer) -> None:
    transfers = Transfers(10, 1_200)
    query = query_of(server, transfers)
    estimate = query.estimate()
    assert estimate.records == 1_200
    assert estimate.limitations == []
    before = transfers.requests
    query.collect()
    least, most = estimate.requests_range
    assert most is not None
    assert least <= transfers.requests - before <= most
    assert estimate.requests * 0.7 <= transfers.requests - before <= estimate.requests * 1.3


def test_list_grown_by_more_than_the_window_is_not_called_complete(server: StrictServer) -> None:
    def grow(transfers: Transfers) -> None:
        for _ in range(60):
            transfers.grow()

    transfers = Transfers(11, 180, changes={10: grow})
    with pytest.warns(cf.IncompleteResultWarning, match="has grown by more than the result window"):
        query_of(server, transfers).collect()


def test_equal_records_are_not_taken_for_the_record_of_the_final_look(server: StrictServer) -> None:
    """A record below was deleted, so that each record is where the one below it was."""

    def list_of(changes: dict[int, Callable[[Transfers], None]]) -> Transfers:
        transfers = Transfers(13, 180, changes=changes)
        page = transfers.rows[80:100]
        cut = next(index for index, row in enumerate(page) if row["height"] == page[-1]["height"])
        transfers.rows[80 + cut - 1] = dict(transfers.rows[80 + cut - 2])
        return transfers

    stable = list_of({})
    assert query_of(server, stable).collect().report.complete
    changed = list_of({stable.requests - 2: lambda transfers: transfers.lose(150)})
    with pytest.raises(cf.PaginationDriftError, match="deleted or replaced"):
        list(query_of(server, changed))


@pytest.mark.parametrize("errors", [set(), {12}])
def test_first_export_of_a_settled_series_is_divided(server: StrictServer, tmp_path: Path, errors: set[int]) -> None:
    pytest.importorskip("pyarrow")
    transfers = Transfers(12, 300, errors=errors)
    client = serve(server, transfers)

    def export(name: str, **options: Any) -> Export:
        return client.token_transfers(TOKEN, page_size=20).to_parquet(tmp_path / name, settle=2, **options)

    if errors:
        with pytest.raises(cf.ServiceError):
            export("first")
    first = export("first")
    assert first.report.complete
    settled = max(int(row["height"]) for row in transfers.rows) - 2
    expected = [row for row in transfers.rows if int(row["height"]) <= settled]
    assert sorted(keys_of(first)) == sorted((row["txid"], row["blockHash"]) for row in expected)
    for _ in range(8):
        transfers.grow()
    later = export("later", since=tmp_path / "first")
    assert later.report.complete
    settled = max(int(row["height"]) for row in transfers.rows) - 2
    expected = [row for row in transfers.rows if int(row["height"]) <= settled]
    both = keys_of(first) + keys_of(later)
    assert sorted(both) == sorted((row["txid"], row["blockHash"]) for row in expected)


def keys_of(export: Export) -> list[tuple[str, str]]:
    return [(row["tx_id"], row["block_hash"]) for row in export.to_arrow().to_pylist()]
