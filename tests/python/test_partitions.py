"""Parts of a query: disjoint, together the whole, and readable anywhere."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.partitions import Partition
from chainframe.testing import LocalService
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = [1, 2, 3, 7, 50]


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalService]:
    with LocalService(transactions=2_000, seed=11) as running:
        yield running


def joined(parts: list[Partition[Any]]) -> list[Any]:
    return [record for part in parts for record in part.read()]


def in_a_list(query: cf.Query[Any], most: int) -> list[Partition[Any]]:
    parts = query.partitions(most)
    assert 1 <= len(parts) <= most
    assert [part.number for part in parts] == list(range(len(parts)))
    assert {part.count for part in parts} == {len(parts)}
    return parts


@pytest.mark.parametrize("most", PARTS)
def test_crossings_by_the_heights_that_there_are(
    busy: LocalService, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(busy, name))
    with busy.client() as client:
        query = client.cross_chain_transactions()
        expected = list(query.collect())
        before = busy.requests
        parts = in_a_list(query, most)
        assert busy.requests - before < 100
        assert joined(parts) == expected
        assert len(parts) == most
        # Dask takes parts of one name for one part.
        assert len({part.__dask_tokenize__() for part in (*parts, *pickle.loads(pickle.dumps(parts)))}) == most
        assert len(expected) > 50


@pytest.mark.parametrize("most", PARTS)
def test_a_range_of_heights_asks_nothing_beforehand(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        newest = client.transactions().first()
        assert newest is not None
        assert newest.height is not None
        query = client.transactions(start_height=newest.height - 20, end_height=newest.height)
        expected = list(query.collect())
        before = busy.requests
        parts = in_a_list(query, most)
        assert busy.requests == before
        assert joined(parts) == expected
        assert len(parts) == min(most, 21)


@pytest.mark.parametrize("most", PARTS)
def test_hashes_in_the_order_asked(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        hashes = [transaction.tx_id or "" for transaction in client.transactions(max_items=110)][::-1]
        query = client.transactions_by_hash(hashes)
        expected = list(query.collect())
        before = busy.requests
        parts = in_a_list(query, most)
        assert busy.requests == before
        assert joined(parts) == expected
        assert sum(part.read().report.requests for part in parts) == query.report.requests


@pytest.mark.parametrize("most", PARTS)
def test_tokens_by_time(busy: LocalService, most: int) -> None:
    with busy.client() as client:
        query = client.tokens(start_time="2015-01-01T00:00:00Z", end_time="2026-06-30T00:00:00Z")
        expected = query.collect()
        found = joined(in_a_list(query, most))
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert len(found) > 100


def test_a_record_without_a_time_is_in_one_part(server: StrictServer) -> None:
    server.on("tokens", page_of("tokens", [{"token": "A", "issueDate": ""}], totalPage="1", page="1"))
    with server.client() as client:
        parts = client.tokens(start_time=0, end_time=10_000_000).partitions(5)
        assert [len(pickle.loads(pickle.dumps(part.query.to_dicts()))) for part in parts] == [1, 0, 0, 0, 0]
        assert parts[1].query != parts[0].query


def test_a_list_that_grows_meanwhile() -> None:
    with LocalService(transactions=1_000, seed=11) as service, service.client() as client:
        query = client.cross_chain_transactions()
        expected = list(query.collect())
        parts = query.partitions(4)
        service.growth = 3
        assert joined(parts) == expected


def test_what_cannot_be_cut_is_one_part(busy: LocalService) -> None:
    with busy.client() as client:
        token = client.tokens().first()
        assert token is not None
        for query in (
            client.blocks(),
            client.transactions(),
            client.tokens(),
            client.large_transactions(),
            client.token_transfers(token.token_contract_address or ""),
            client.cross_chain_transactions(max_items=5),
            client.cross_chain_transactions(height=5),
            client.logs([]),
        ):
            before = busy.requests
            (part,) = query.partitions(9)
            assert part.query == query
            assert busy.requests == before


def test_records_without_a_height_are_not_lost(server: StrictServer) -> None:
    rows = [{"id": "0x1", "zoneBlockHeight": "7"}, {"id": "0x2", "zoneBlockHeight": ""}]

    def answer(request: Any) -> Any:
        ranged = {"startBlockHeight", "endBlockHeight"} & set(request.query)
        shown = [row for row in rows if row["zoneBlockHeight"] or not ranged]
        shown = [
            row for row in shown if int(request.query.get("endBlockHeight", "9")) >= int(row["zoneBlockHeight"] or 0)
        ]
        most = int(request.query["limit"])
        pages = str(-(-len(shown) // most))
        return page_of("cross_chain_transactions", shown[:most], total=str(len(shown)), totalPage=pages, page="1")

    server.on("cross_chain_transactions", answer)
    with server.client() as client:
        (part,) = client.cross_chain_transactions().partitions(4)
        assert len(part.read()) == 2


@pytest.mark.parametrize("n", [0, -1, 2**64, 10**5000, "x"], ids=["0", "-1", "2**64", "10**5000", "text"])
def test_a_number_that_cannot_be_is_refused(client: cf.Client, n: int) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^n: "):
        client.blocks().partitions(n)


def test_other_processes_read_them(busy: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(busy, name))
    with busy.client() as client, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        query = client.cross_chain_transactions()
        parts = query.partitions(4)
        assert busy.secret_key.encode() not in pickle.dumps(parts)
        results = list(pool.map(Partition.read, parts))
        assert [record for records in results for record in records] == list(query)
