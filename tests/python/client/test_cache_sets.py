"""A cache of results, and queries of several values: each list is kept and continued by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from cache_histories import lists_of
from chainframe.testing import LocalService, LoggedRequest
from strict_server import Request, Response, StrictServer, error, page_of

ADDRESS = "0x" + "a" * 40

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=7, simulated=True) as running:
        yield running


def names(service: LocalService) -> tuple[list[str], list[str], list[int]]:
    """Return tokens, addresses and settled heights of the service."""
    plain = service.client()
    tokens = [token.token_contract_address or "" for token in plain.tokens(max_items=12).collect()]
    newest = plain.transactions(max_items=300).collect()
    addresses = list(dict.fromkeys(name for each in newest for name in (each.input or "").split(",") if name))
    heights = [block.height or 0 for block in plain.blocks(max_items=300).collect()[100:120]]
    return tokens, addresses[:20], heights


def grow(service: LocalService, blocks: int) -> None:
    service.growth = blocks
    service.client().blocks(max_items=1).collect()
    service.growth = 0


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_second_read_of_a_set_takes_one_request_for_each_settled_list_at_most(
    service: LocalService, tmp_path: Path
) -> None:
    tokens, addresses, heights = names(service)
    # A list with pending transactions is requested down to the oldest of them.
    aged = "The list may have lost its oldest records"
    sets: list[tuple[int, str | None, Callable[[cf.Client], cf.Query[Any]]]] = [
        (len(tokens), None, lambda client: client.token_transfers(tokens)),
        (len(addresses) + 10, aged, lambda client: client.address_transactions(addresses)),
        (1, None, lambda client: client.blocks(height=heights)),
    ]
    cache = cf.Cache(tmp_path, settle=4)
    for at_most, reason, query in sets:
        first = query(service.client(cache=cache)).collect()
        client = service.client(cache=cache)
        read = query(client).collect()
        assert lists_of(read) == lists_of(first) == lists_of(query(service.client()).collect())
        assert read.report.requests <= at_most < first.report.requests
        used = read.report.cache
        assert used is not None
        assert bool(used["reason"]) == bool(reason)
        assert (used["reason"] or "").startswith(reason or "")
        assert client.usage.cached == used["records"] > len(read) / 2
        assert read.report.records == len(read)
        assert read.report.reasons == first.report.reasons
        assert read.report.evidence == first.report.evidence
        counts = [
            {value: verdict["records"] for value, verdict in each.report.by_argument.items()} for each in (read, first)
        ]
        assert counts[0] == counts[1]


def test_sets_and_single_lists_share_what_is_kept_and_unique_records_stay_so(
    service: LocalService, tmp_path: Path
) -> None:
    tokens, *_ = names(service)
    client = service.client(cache=tmp_path)
    kept = client.token_transfers(tokens[0]).collect()
    read = client.token_transfers(tokens[:2]).collect()
    assert read.report.cache is not None
    assert read.report.cache["records"] == len(kept)
    grow(service, 20)
    read = client.token_transfers(tokens, unique=True).collect()
    fresh = service.client().token_transfers(tokens, unique=True).collect()
    assert len(read) == len(fresh)
    assert read.report.complete
    assert client.token_transfers(tokens[1]).collect().report.requests == 1
    single = client.token_transfers([tokens[0]]).collect()
    assert (single.report.requests, len(single)) == (1, len(service.client().token_transfers(tokens[0]).collect()))


@pytest.mark.parametrize("failing", [2, 5, 9])
def test_interrupted_set_is_continued_where_its_lists_end(service: LocalService, tmp_path: Path, failing: int) -> None:
    """Some lists are kept as a whole, some have news, and others are read for the first time."""
    tokens, *_ = names(service)
    service.client(cache=tmp_path).token_transfers(tokens[:8]).collect()
    grow(service, 20)
    client = service.client(cache=tmp_path, concurrency=1)
    sent = 0

    def respond(_: LoggedRequest) -> dict[str, Any] | None:
        nonlocal sent
        sent += 1
        return {"kind": "status", "status": 401} if sent >= failing else None

    service.respond = respond
    with pytest.raises(cf.AuthenticationError) as raised:
        client.token_transfers(tokens).collect()
    service.respond = None
    error = raised.value
    assert error.partial is not None
    assert bool(error.partial) == (failing > 2)
    assert error.cursor
    rest = service.client().resume(error.cursor).collect()
    read = [str(record) + str(record.queried) for records in (error.partial, rest) for record in records]
    fresh = [str(record) + str(record.queried) for record in service.client().token_transfers(tokens).collect()]
    assert sorted(read) == sorted(fresh)


def test_interrupted_range_has_the_records_that_are_kept(service: LocalService, tmp_path: Path) -> None:
    newest = service.client().transactions(max_items=1).collect()[0].height or 0
    client = service.client(cache=tmp_path)
    client.transactions(start_height=newest - 90).collect()
    grow(service, 10)
    fresh = service.client().transactions(start_height=newest - 90).collect()
    for failing in (3, 20):
        sent = 0

        def respond(_: LoggedRequest, last: int = failing) -> dict[str, Any] | None:
            nonlocal sent
            sent += 1
            return {"kind": "status", "status": 400} if sent == last else None

        service.respond = respond
        with pytest.raises(cf.BadRequestError) as raised:
            client.transactions(start_height=newest - 90).collect()
        service.respond = None
        error = raised.value
        assert error.partial is not None
        assert len(error.partial) == error.partial.report.records > 0
        rest = service.client().resume(error.cursor or "").collect()
        assert [*error.partial, *rest] == list(fresh)


@pytest.mark.parametrize(("days", "expected"), [(300, {"requests": 1}), (370, {})])
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_address_list_is_continued_while_the_api_has_all_of_its_records(
    tmp_path: Path, days: int, expected: dict[str, int]
) -> None:
    """Nothing shows that a list without a count has lost its oldest records, those of more than a year ago."""
    with LocalService(transactions=200, simulated=True) as service:
        client = service.client(cache=tmp_path)
        newest = client.blocks(max_items=1).collect()[0].block_time
        assert newest is not None
        rows = [
            {
                "tx_id": f"0x{height:064x}",
                "height": height,
                "block_hash": f"0xb{height:063x}",
                "transaction_time": newest - timedelta(days=days * (250 - height) / 250),
                "from_address": ADDRESS,
                "state": "success",
            }
            for height in range(250, 0, -1)
        ]
        service.load("address_transactions", rows)
        first = client.address_transactions(ADDRESS).collect()
        assert len(first) == 250
        service.load("address_transactions", [{**rows[0], "tx_id": "0xnew", "height": 251, "block_hash": "0xb"}, *rows])
        read = client.address_transactions(ADDRESS).collect()
        fresh = service.client().address_transactions(ADDRESS).collect()
        assert list(read) == list(fresh)
        assert read.report.requests == expected.get("requests", fresh.report.requests)
        assert read.report.reasons == first.report.reasons
        assert read.report.cache is not None
        assert (read.report.cache["records"] > 0) == bool(expected)


class ReorganizedBlocks:
    """A list of blocks with a count. Those at the end of its first page are replaced before its second request."""

    def __init__(self) -> None:
        self.hashes = [f"0xb{height}" for height in range(300, 0, -1)]
        self.requests = 0
        self.is_reorganized = False
        self.fails_from = 0

    def __call__(self, request: Request) -> Response:
        self.requests += 1
        if self.is_reorganized and self.requests == 2:
            self.hashes[45:56] = [text.replace("0xb", "0xc") for text in self.hashes[45:56]]
        if self.fails_from and self.requests >= self.fails_from:
            return error(401, "50113")
        page, limit = (int(request.query[name]) for name in ("page", "limit"))
        shown = self.hashes[(page - 1) * limit : page * limit]
        counts = {"totalPage": str(-(-len(self.hashes) // limit)), "total": str(len(self.hashes))}
        rows = [{"height": text[3:], "hash": text} for text in shown]
        return page_of("blocks", rows, limit=str(limit), **counts)


@pytest.fixture
def reorganized(tmp_path: Path) -> Iterator[tuple[ReorganizedBlocks, cf.Client]]:
    """Blocks that are kept, then gain one, and are reorganized while the list is compared with what is kept."""
    with StrictServer() as server:
        blocks = ReorganizedBlocks()
        server.on("blocks", blocks)
        with server.client(cache=cf.Cache(tmp_path, settle=70)) as client:
            client.blocks(page_size=50).collect()
            blocks.hashes.insert(0, "0xb301")
            blocks.requests, blocks.is_reorganized = 0, True
            yield blocks, client


def test_list_that_changes_while_it_is_compared_is_compared_again(
    reorganized: tuple[ReorganizedBlocks, cf.Client],
) -> None:
    blocks, client = reorganized
    read = client.blocks(page_size=50).collect()
    assert [block.hash for block in read] == blocks.hashes
    assert (read.report.rereads, blocks.requests) == (1, 6)
    assert read.report.cache is not None
    assert read.report.cache["records"] > 200


@pytest.mark.parametrize("fails_from", [5, 6])
def test_list_that_is_compared_again_is_continued_after_an_error(
    reorganized: tuple[ReorganizedBlocks, cf.Client], fails_from: int
) -> None:
    blocks, client = reorganized
    blocks.fails_from = fails_from
    with pytest.raises(cf.AuthenticationError) as raised:
        client.blocks(page_size=50).collect()
    blocks.fails_from = 0
    assert raised.value.partial
    rest = client.resume(raised.value.cursor or "").collect()
    assert [block.hash for records in (raised.value.partial, rest) for block in records] == blocks.hashes


def test_one_comparison_shows_that_the_chain_of_a_set_has_changed(tmp_path: Path) -> None:
    with LocalService(transactions=1_500, seed=7, simulated=True) as service:
        heights = names(service)[2]
        cache = cf.Cache(tmp_path, settle=4)
        first = service.client(cache=cache).blocks(height=heights).collect()
        service.reorg = (1, 250)
        service.client().blocks(max_items=1).collect()
        service.reorg = None
        read = service.client(cache=cache).blocks(height=heights).collect()
        assert lists_of(read) == lists_of(service.client().blocks(height=heights).collect()) != lists_of(first)
        # The comparison of one list does not remove the records of the new chain that another list has kept.
        assert len(cache.entries()) == len(heights)
        assert service.client(cache=cache).blocks(height=heights).collect().report.requests <= 1


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_empty_list_of_a_set_is_a_reason_where_others_show_the_chain_that_is_kept(tmp_path: Path) -> None:
    nothing = {"json": {"code": "0", "msg": "", "data": []}}
    emptied: set[str | None] = set()

    def respond(request: LoggedRequest) -> Any:
        params = request["params"]
        # Nor does the service show the block by which a reorganization is noticed.
        is_of_block = bool(emptied) and "height" in params
        return nothing if is_of_block or params.get("tokenContractAddress") in emptied else None

    with LocalService(transactions=1_500, seed=7, simulated=True, respond=respond) as service:
        tokens = names(service)[0][:3]
        cache = cf.Cache(tmp_path, settle=4)
        whole = service.client(cache=cache).token_transfers(tokens).collect()
        emptied.add(tokens[1])
        read = service.client(cache=cache).token_transfers(tokens).collect()
    assert len(read) == sum(record.queried != [tokens[1]] for record in whole) < len(whole)
    assert "of this result that the API does not return any more" in str(read.report.reasons)
    assert not read.report.complete
