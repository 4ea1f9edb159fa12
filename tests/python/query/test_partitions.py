"""Partitions of a query: disjoint, complete, and readable in any process."""

from __future__ import annotations

import math
import pickle
import random
import re
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.partitions import Partition
from chainframe.testing import LocalService
from repository import ROOT
from strict_server import Request, Response, StrictServer, envelope, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = (ROOT / "docs/guide/distributed.md").read_text(encoding="utf-8")
PARTS = [1, 2, 3, 7, 50]


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    with LocalService(transactions=2_000, seed=11) as running:
        yield running


@pytest.fixture(autouse=True)
def environment(busy: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the secrets that unpickled partitions read from the environment."""
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(busy, name))
    monkeypatch.setenv("CHAINFRAME_BASE_URL", busy.url)


def joined(parts: list[Partition[Any]]) -> list[Any]:
    return [record for part in parts for record in part.collect()]


def in_a_list(query: cf.Query[Any], most: int) -> list[Partition[Any]]:
    parts = query.partitions(most)
    assert 1 <= len(parts) <= most
    assert [part.index for part in parts] == list(range(len(parts)))
    assert {part.num_partitions for part in parts} == {len(parts)}
    return parts


@pytest.mark.parametrize("most", PARTS)
def test_partitions_of_a_height_range_send_nothing(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        newest = client.transactions().first()
        assert newest is not None
        assert newest.height is not None
        query = client.transactions(start_height=newest.height - 20, end_height=newest.height)
        expected = list(query.collect())
        before = busy.request_count
        parts = in_a_list(query, most)
        assert busy.request_count == before
        assert joined(parts) == expected
        assert len(parts) == min(most, 21)


@pytest.mark.parametrize("most", PARTS)
def test_partitions_of_hashes_keep_their_order(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        hashes = [transaction.tx_id or "" for transaction in client.transactions(max_items=110)][::-1]
        query = client.transactions_by_hash(hashes)
        expected = list(query.collect())
        before = busy.request_count
        parts = in_a_list(query, most)
        assert busy.request_count == before
        assert joined(parts) == expected
        assert sum(part.collect().report.requests for part in parts) == query.report.requests


@pytest.mark.parametrize("most", PARTS)
def test_partitions_of_tokens_are_cut_by_time(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        query = client.tokens(start_time="2015-01-01T00:00:00Z", end_time="2026-06-30T00:00:00Z")
        expected = query.collect()
        found = joined(in_a_list(query, most))
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert len(found) > 100


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_without_a_time_is_in_one_partition(server: StrictServer) -> None:
    server.on("tokens", page_of("tokens", [{"tokenContractAddress": "0xa", "issueDate": ""}], totalPage="1", page="1"))
    with server.client() as client:
        parts = client.tokens(start_time=0, end_time=1_000_000_000).partitions(5)
        assert [len(pickle.loads(pickle.dumps(part.query.to_dicts()))) for part in parts] == [1, 0, 0, 0, 0]
        assert parts[1].query != parts[0].query
        # A later one does not know whether the first one has the record.
        reasons = [part.query.collect().report.reasons for part in parts]
        assert ["records without a time" in str(of_part) for of_part in reasons] == [False, True, True, True, True]


@pytest.fixture(scope="module")
def token(busy: LocalService) -> str:
    """The contract that has the most transfers."""
    with busy.client() as client:
        contracts = [token.token_contract_address or "" for token in client.tokens(max_items=20)]
        return max(contracts, key=lambda contract: client.token_transfers(contract).estimate().records or 0)


COUNTED: list[tuple[str, dict[str, Any]]] = [
    ("blocks", {"page_size": 30}),
    ("blocks", {"max_items": 777}),
    ("token_transfers", {"page_size": 5}),
    ("token_transfers", {"page_size": 5, "max_items": 23}),
    ("cross_chain_transactions", {"page_size": 4}),
    ("cross_chain_transactions", {"page_size": 7, "max_items": 50}),
    ("cross_chain_transactions", {"start_height": 1, "page_size": 10}),
]


@pytest.mark.parametrize("most", PARTS)
@pytest.mark.parametrize(("call", "options"), COUNTED)
def test_counted_list_is_partitioned_by_offset(
    busy: LocalService, token: str, call: str, options: dict[str, Any], most: int
) -> None:
    with busy.client() as client:
        arguments = (token,) if call == "token_transfers" else ()
        query = getattr(client, call)(*arguments, **options)
        expected = query.collect()
        before = busy.request_count
        parts = in_a_list(query, most)
        assert (
            busy.request_count - before == len(parts) == min(most, -(-len(expected) // options.get("page_size", 100)))
        )
        again: list[Partition[Any]] = pickle.loads(pickle.dumps(parts))
        assert [part.query for part in again] == [part.query for part in parts]
        results = [part.collect() for part in parts]
        assert [record for records in results for record in records] == list(expected)
        assert all(records.report.complete for records in results)
        assert len({part.__dask_tokenize__() for part in (*parts, *again)}) == len(parts)


@pytest.mark.parametrize("grown", [1, 40, 250])
def test_partitions_by_offset_stay_stable_while_the_list_grows(grown: int) -> None:
    with LocalService(transactions=1_000, seed=11) as service, service.client() as client:
        query = client.blocks(page_size=25)
        expected = list(query.collect())
        parts = query.partitions(6)
        service.growth = grown
        query.first()
        service.growth = 0
        # In another order, as other machines read them.
        found = {part.index: part.collect() for part in reversed(parts)}
        assert [block for number in range(len(parts)) for block in found[number]] == expected


@pytest.mark.parametrize(
    ("call", "size", "grown"), [("blocks", 50, 1), ("blocks", 50, 60), ("cross_chain_transactions", 10, 3)]
)
def test_list_growing_while_it_is_partitioned_has_each_record_once(call: str, size: int, grown: int) -> None:
    with LocalService(transactions=1_000, seed=11) as service, service.client() as client:
        query = getattr(client, call)(page_size=size)
        expected = list(query.collect())
        service.growth = grown
        parts = query.partitions(4)
        assert len(parts) > 1
        assert joined(parts) == expected


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_list_partitioned_on_a_replica_with_a_gap_has_each_record_once(server: StrictServer) -> None:
    """One replica lacks twenty blocks, and says so by its count: plans from two lists would overlap or leave a gap."""
    blocks = [{"height": str(height), "hash": f"0x{height}"} for height in range(343, 0, -1)]
    wrong, right = [], 0
    for seed in range(40):
        chance = random.Random(seed)

        def respond(request: Request, chance: random.Random = chance) -> Response:
            rows = blocks[:160] + blocks[180:] if chance.random() < 0.2 else blocks
            limit, page = int(request.query["limit"]), int(request.query["page"])
            counts = {"total": str(len(rows)), "totalPage": str(math.ceil(len(rows) / limit)), "limit": str(limit)}
            return page_of("blocks", rows[(page - 1) * limit : page * limit], **counts)

        server.on("blocks", respond)
        with server.client(max_retries=1) as client:
            try:
                results = [part.collect() for part in client.blocks(page_size=33).partitions(3)]
            except cf.PaginationDriftError:
                continue
        if all(records.report.complete for records in results):
            heights = sorted(record.height or 0 for records in results for record in records)
            wrong += [seed] * (heights != list(range(1, 344)))
            right += 1
    assert wrong == []
    assert right > 0


def test_partition_whose_first_record_was_replaced_raises() -> None:
    with LocalService(transactions=1_000, seed=11, reorg=(10, 3)) as service, service.client() as client:
        first, *rest = client.blocks(page_size=25).partitions(6)
        assert len(joined(rest)) > 100
        with pytest.raises(cf.PaginationDriftError):
            first.collect()


def test_list_whose_pages_are_not_counted_has_one_partition_with_all_records(server: StrictServer) -> None:
    rows = [{"hash": f"0x{number:x}", "height": str(number)} for number in range(15, 0, -1)]
    server.on("blocks", page_of("blocks", rows, page="1", limit="100", totalPage="0", total="15"))
    with server.client() as client:
        (part,) = client.blocks().partitions(3)
        assert [block.height for block in part.collect()] == list(range(15, 0, -1))


def test_empty_list_has_one_partition(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [], total="0", totalPage="0", page="1"))
    with server.client() as client:
        (part,) = client.blocks().partitions(4)
        server.on("blocks", page_of("blocks", [{"height": "1"}], total="1", totalPage="1", page="1"))
        assert len(part.collect()) == 0


def test_indivisible_query_has_one_partition(busy: LocalService) -> None:
    with busy.client() as client:
        for query in (
            client.blocks(height=5),
            client.transactions(),
            client.transactions(start_height=1, end_height=9, max_items=5),
            client.tokens(),
            client.large_transactions(),
            client.cross_chain_transactions(height=5),
        ):
            before = busy.request_count
            (part,) = query.partitions(9)
            assert part.query == query
            assert busy.request_count == before


@pytest.mark.parametrize("n", [0, -1, 2**64, 10**5000, "x"], ids=["0", "-1", "2**64", "10**5000", "text"])
def test_invalid_num_partitions_is_rejected(client: cf.Client, n: int) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"num_partitions must be an integer from 1 to .*; got "):
        client.blocks().partitions(n)


def test_dask_recipe_of_the_guide_runs(busy: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    pandas = pytest.importorskip("pandas")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "parts.md", "exec"), names)
    expected = names["client"].cross_chain_transactions().to_pandas(dtype_backend="pyarrow")
    assert str(expected.groupby("tx_type").value.sum()) in capsys.readouterr().out
    before = busy.request_count
    frame = names["frame"].compute(scheduler="processes", num_workers=2)
    assert busy.request_count > before
    pandas.testing.assert_frame_equal(frame.reset_index(drop=True), expected)


def test_processes_read_partitions(busy: LocalService) -> None:
    with busy.client() as client, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        query = client.cross_chain_transactions(page_size=10)
        parts = query.partitions(4)
        assert busy.secret_key.encode() not in pickle.dumps(parts)
        results = list(pool.map(Partition.collect, parts))
        assert [record for records in results for record in records] == list(query)


def test_the_number_of_partitions_is_bounded(client: cf.Client) -> None:
    query = client.transactions(start_height=0, end_height=2**63 - 1)
    with pytest.raises(cf.InvalidParameterError, match=r"num_partitions.* must be <= 100000"):
        query.partitions(10**9)
    assert len(query.partitions(1_000)) == 1_000


def test_partitions_of_early_times_keep_them(client: cf.Client) -> None:
    parts = client.tokens(start_time="1970-01-01T00:00Z", end_time="1970-03-01T00:00Z").partitions(2)
    sent = [repr(part.query) for part in parts]
    assert "1970-01-30T12:00:00Z" in sent[1]


def test_range_of_times_of_a_chain_without_blocks_is_an_error_in_place_of_empty_partitions(
    server: StrictServer,
) -> None:
    server.on("transactions", Response(envelope([])))
    with server.client() as client:
        query = client.transactions(start_time="2024-01-01T00:00Z", end_time="2024-02-01T00:00Z")
        with pytest.raises(cf.PaginationDriftError, match="the service may throttle so"):
            query.partitions(2)


@pytest.mark.parametrize("days", [(1, 0), (10, 5)], ids=["records", "before the first block"])
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_partitions_have_the_reasons_of_the_search_of_their_heights(days: tuple[int, int]) -> None:
    with LocalService(transactions=3_000, seed=7, max_result_window=1_000) as service, service.client() as client:
        end = client.large_transactions().collect()[-1].transaction_time
        assert end is not None
        start_time, end_time = (end - timedelta(days=before) for before in days)
        query = client.transactions(start_time=start_time, end_time=end_time)
        records = query.collect()
        assert any("The first block is unknown" in reason for reason in records.report.reasons)
        results = [pickle.loads(pickle.dumps(part)).query.collect() for part in query.partitions(2)]
        assert [result.report.reasons for result in results] == [records.report.reasons] * len(results)
        assert sum(map(len, results)) == len(records)
        assert not any(result.report.complete for result in results)


def blocks_of(server: StrictServer, heights: list[int]) -> None:
    """Serves blocks of these heights, in this order."""
    rows = [{"hash": f"0x{height}", "height": str(height), "blockTime": "1700000000000"} for height in heights]

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        counts = {"total": str(len(rows)), "totalPage": str(-(-len(rows) // limit))}
        return page_of("blocks", rows[(page - 1) * limit : page * limit], page=str(page), limit=str(limit), **counts)

    server.on("blocks", respond)


@pytest.mark.parametrize("most", [2, 3, 4, 5])
@pytest.mark.parametrize("height", range(1_001, 1_015))
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_block_that_a_list_lacks_is_a_reason_wherever_the_partitions_are_cut(
    server: StrictServer, height: int, most: int
) -> None:
    blocks_of(server, [other for other in range(1_015, 999, -1) if other != height])
    with server.client() as client:
        reports = [part.collect().report for part in client.blocks(page_size=3).partitions(most)]
    reasons = [reason for report in reports for reason in report.reasons]
    assert reasons == ["The heights of blocks have gaps: 1 block is missing between the others."]


@pytest.mark.parametrize("most", [2, 3, 4, 5])
@pytest.mark.parametrize("height", range(1_001, 1_015))
def test_block_that_a_list_has_twice_is_an_error_wherever_the_partitions_are_cut(
    server: StrictServer, height: int, most: int
) -> None:
    blocks_of(server, sorted([*range(1_000, 1_016), height], reverse=True))
    with server.client() as client, pytest.raises(cf.PaginationDriftError, match="was received again"):
        joined(client.blocks(page_size=3).partitions(most))


@pytest.mark.parametrize("most", [2, 3, 4, 5])
@pytest.mark.parametrize("order", [1, -1])
def test_blocks_in_either_order_are_in_one_partition_each(server: StrictServer, order: int, most: int) -> None:
    heights = list(range(1_000, 1_016))[::order]
    blocks_of(server, heights)
    with server.client() as client:
        parts = client.blocks(page_size=3).partitions(most)
        assert [block.height for block in joined(parts)] == heights


@pytest.mark.filterwarnings("ignore::chainframe.errors.IncompleteResultWarning")
@pytest.mark.parametrize(("length", "max_items"), [(300, None), (100, None), (300, 30), (90, None)])
def test_partitions_of_a_count_that_may_be_the_result_window_are_one(length: int, max_items: int | None) -> None:
    window = 100
    rows = [
        {"txid": f"0x{number}", "blockHash": f"0xb{number}", "height": str(length - number)} for number in range(length)
    ]

    def serve(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        shown = min(length, window)
        counts = {"totalPage": str(-(-shown // limit)), "totalTransfer": str(shown)}
        return page_of("token_transfers", rows[:shown][(page - 1) * limit : page * limit], page=str(page), **counts)

    deployment = cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=window)
    with StrictServer() as server, server.client(deployment=deployment) as client:
        server.on("token_transfers", serve)
        query = client.token_transfers("0xc", page_size=20, max_items=max_items)
        parts = query.partitions(4)
        assert len(parts) == (4 if length == 90 else 1)
        assert [row.tx_id for row in joined(parts)] == [row.tx_id for row in query.collect()]
