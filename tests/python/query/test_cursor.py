"""Cursors: resuming from any position and in any process returns exactly the remaining records."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import LocalService
from conftest import needs_extra
from strict_server import Request, Response, StrictServer, error, page_of, rows_of, total_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Sample

CALLS = sorted(reference_client.ENDPOINTS)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("call", CALLS)
def test_cursor_of_every_page_resumes_after_it(client: cf.Client, sample: Sample, call: str) -> None:
    query = sample.query(client, call)
    whole = query.collect().to_dicts()
    seen = 0
    for number, page in enumerate(query.pages()):
        seen += len(page.records)
        if number < 3:
            assert client.resume(page.cursor).to_dicts() == whole[seen:]
    assert seen == len(whole) > 0
    assert client.resume(query.cursor).to_dicts() == []


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_resumed_run_keeps_earlier_reasons(client: cf.Client, sample: Sample) -> None:
    query = sample.query(client, "address_transactions")
    last = list(query.pages())[-1]
    assert query.report.reasons
    for cursor in (last.cursor, query.cursor):
        report = client.resume(cursor).collect().report
        assert (report.complete, report.reasons) == (False, query.report.reasons)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("call", CALLS)
def test_cursor_after_every_record_resumes_with_the_next(client: cf.Client, sample: Sample, call: str) -> None:
    query = sample.query(client, call)
    whole = query.collect().to_dicts()
    stream = iter(query)
    assert len(whole) > 3
    for taken in range(4):
        assert client.resume(query.cursor).to_dicts() == whole[taken:]
        assert next(stream).to_dict() == whole[taken]


# A call with a filter that the server ignores, and a record that meets it or not.
IGNORED: list[tuple[str, dict[str, Any], Callable[[int, bool], dict[str, Any]]]] = [
    (
        "tokens",
        {"protocol_type": "token_20"},
        lambda index, is_met: {"tokenContractAddress": f"0x{index:x}", "protocolType": "ERC20" if is_met else "ERC721"},
    ),
    (
        "token_transfers",
        {"token_contract_address": "0xaa", "min_amount": 5},
        lambda index, is_met: {
            **block_of(index),
            "txid": f"0x{index:x}",
            "tokenContractAddress": "0xaa",
            "amount": "9" if is_met else "1",
        },
    ),
    (
        "large_transactions",
        {"min_amount": 500},
        lambda index, is_met: {**block_of(index), "txid": f"0x{index:x}", "amount": "900" if is_met else "100"},
    ),
]


def block_of(index: int) -> dict[str, str]:
    return {"height": str(1_000 - index), "blockHash": f"0xb{index:x}"}


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("call", "arguments", "record"), IGNORED, ids=[call for call, *_ in IGNORED])
def test_cursor_in_a_page_that_max_items_cuts_resumes_with_the_next_record(
    server: StrictServer, call: str, arguments: dict[str, Any], record: Callable[[int, bool], dict[str, Any]]
) -> None:
    # Two of three records meet the filter; the others are left out.
    records = [record(index, index % 3 != 0) for index in range(40)]

    def page(request: Request) -> Response:
        number, size = int(request.query["page"]), int(request.query["limit"])
        counts = {"totalPage": str(-(-len(records) // size)), "limit": str(size), **total_of(call, len(records))}
        return page_of(call, records[(number - 1) * size : number * size], **counts)

    server.on(call, page)
    client = server.client()
    for max_items in (5, 9, 17, 25):
        query = getattr(client, call)(**arguments, page_size=10, max_items=max_items)
        whole = query.collect().to_dicts()
        assert len(whole) == max_items
        stream = iter(query)
        for taken in range(max_items):
            assert client.resume(query.cursor).to_dicts() == whole[taken:]
            assert next(stream).to_dict() == whole[taken]


def test_cursor_of_a_batch_and_of_a_resumed_query_resumes(client: cf.Client) -> None:
    query = client.transactions(max_items=330)
    whole = query.collect().to_dicts()
    batches = query.batches(batch_size=70)
    assert next(batches).to_dicts() == whole[:70]
    rest = client.resume(query.cursor)
    assert next(iter(rest.batches(batch_size=45))).to_dicts() == whole[70:115]
    assert client.resume(rest.cursor).to_dicts() == whole[115:]
    assert pickle.loads(pickle.dumps(rest.report)).records >= 45


def test_resumed_query_supports_every_method(client: cf.Client) -> None:
    query = client.transactions(max_items=120)
    page = next(iter(query.pages()))
    rest = client.resume(page.cursor)
    assert rest == client.resume(page.cursor)
    assert rest != query
    assert pickle.loads(pickle.dumps(page)).cursor == page.cursor
    assert len(page.cursor) < 1024
    assert rest.first() == query.collect()[50]
    for secret in ("local-key", "local-secret", "local-passphrase", "127.0.0.1"):
        assert secret not in page.cursor


@pytest.fixture
def failing() -> Iterator[LocalService]:
    with LocalService(transactions=400, seed=7) as service:
        yield service


def read_rows(query: cf.Query[Any], rows: list[Any]) -> None:
    for record in query:
        rows.append(record.to_dict())  # noqa: PERF401 - what came before an error stays


def read_pages(query: cf.Query[Any], rows: list[Any]) -> None:
    for page in query.pages():
        rows += page.records.to_dicts()


def read_batches(query: cf.Query[Any], rows: list[Any]) -> None:
    for batch in query.batches(batch_size=13):
        rows += batch.to_dicts()


def read_tables(query: cf.Query[Any], rows: list[Any]) -> None:
    for table in query.to_arrow_batch_reader(batch_size=13):
        rows += table.to_pylist()


def read_all(query: cf.Query[Any], rows: list[Any]) -> None:
    try:
        query.collect()
    finally:
        rows += query.partial.to_dicts()


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    "read", [read_rows, read_pages, read_batches, pytest.param(read_tables, marks=needs_extra), read_all]
)
def test_run_resumed_after_each_failure_is_exact(
    failing: LocalService, read: Callable[[cf.Query[Any], list[Any]], None], concurrency: int
) -> None:
    whole = failing.client().transactions(page_size=20).to_dicts()
    failing.set_faults([{"kind": "status", "status": 403, "every": 4}])
    rows: list[Any] = []
    failures = 0
    query: cf.Query[Any] = failing.client(max_retries=0, concurrency=concurrency).transactions(page_size=20)
    while True:
        try:
            read(query, rows)
            break
        except cf.PermissionDeniedError as caught:
            failures += 1
            assert failures < 200
            cursor = pickle.loads(pickle.dumps(caught)).cursor
            assert cursor == query.cursor
            query = failing.client(max_retries=0, concurrency=concurrency).resume(cursor)
    assert [row["tx_id"] for row in rows] == [row["tx_id"] for row in whole]
    assert failures > 3


DUPLICATE = {"tx_id": "0xa", "height": 7}


def test_cursor_within_duplicate_records_resumes_exactly() -> None:
    records = [
        {"tx_id": "0x1", "height": 9},
        *[DUPLICATE] * 130,
        *({"tx_id": f"0xb{n}", "height": 5} for n in range(30)),
    ]
    with LocalService(transactions=0, data={"transactions": records}) as service, service.client() as client:
        whole = client.transactions().to_dicts()
        seen = 0
        for page in client.transactions(page_size=20).pages():
            seen += len(page.records)
            assert client.resume(page.cursor).to_dicts() == whole[seen:]
        assert seen == len(whole) == 161


@pytest.mark.parametrize("taken", [5, 10, 11, 14, 15, 16])
@pytest.mark.parametrize("back", [1, 2, 5, 8, 9, 12, 15])
def test_record_of_the_last_height_that_comes_again_after_a_cursor_is_noticed(
    server: StrictServer, taken: int, back: int
) -> None:
    # Records of one height, which the service lists in another order after the cursor.
    rows = [{"txid": f"0x{number:x}", "height": "7", "blockHash": "0x7"} for number in range(20)]
    listed = list(rows)

    def page(request: Request) -> Response:
        number, size = int(request.query["page"]), int(request.query["limit"])
        members = {"page": str(number), "limit": str(size), "totalPage": str(-(-20 // size)), "totalTransfer": "20"}
        return page_of("token_transfers", listed[(number - 1) * size : number * size], **members)

    server.on("token_transfers", page)
    client = server.client(concurrency=1)
    query = client.token_transfers("0xaa", page_size=5)
    stream = iter(query)
    first = [next(stream).tx_id for _ in range(taken)]
    cursor = query.cursor
    stream.close()
    assert [*first, *(record.tx_id for record in client.resume(cursor))] == [row["txid"] for row in rows]
    above, below = taken - back, taken + 1
    if above >= 0:
        listed[above], listed[below] = rows[below], rows[above]
        with pytest.raises(cf.PaginationDriftError):
            client.resume(cursor).collect()


def test_cursor_of_a_list_of_duplicates_resumes_at_its_end() -> None:
    with LocalService(transactions=0, data={"transactions": [DUPLICATE] * 60}) as service, service.client() as client:
        pages = list(client.transactions().pages())
        assert sum(len(page.records) for page in pages) == 60
        assert [len(client.resume(page.cursor).collect()) for page in pages[-3:]] == [2, 1, 0]
        assert len(client.resume(pages[0].cursor).collect()) == 10


def test_cursor_carries_the_reasons(server: StrictServer) -> None:
    client = server.client(concurrency=1)
    ids = [f"0x{n}" for n in range(21)]
    server.on("transactions_by_hash", *[_found(ids[:19]), error(500, "50026"), _found(ids[20:])])
    query = client.transactions_by_hash(ids)
    with pytest.raises(cf.ServiceUnavailableError) as caught:
        query.collect()
    assert caught.value.cursor is not None
    with pytest.warns(cf.IncompleteResultWarning, match="were not returned"):
        rest = client.resume(caught.value.cursor).collect()
    assert [record.tx_id for record in rest] == ids[20:]
    assert rest.report.missing == ids[19:20]


def _found(ids: list[str]) -> Response:
    return rows_of("transactions_by_hash", [{"txId": tx_id} for tx_id in ids])


def test_traceback_notes_how_to_resume(server: StrictServer) -> None:
    client = server.client(max_retries=0)
    server.on("blocks", error(503, "50001"))
    with pytest.raises(cf.ServiceUnavailableError) as caught:
        client.blocks().collect()
    # Nothing was fetched: the same call is as good as a resumed one.
    assert not hasattr(caught.value, "__notes__")
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}], totalPage="2"), error(503, "50001"))
    with pytest.raises(cf.ServiceUnavailableError) as caught:
        client.blocks(page_size=1).collect()
    again = pickle.loads(pickle.dumps(caught.value))
    (note,) = again.__notes__
    assert "client.resume(query.cursor)" in note
    assert again.partial == caught.value.partial
    assert len(again.partial) == 1
    assert "resume" not in str(caught.value)
    with pytest.raises(cf.NotFoundError) as hopeless:
        client.tokens().collect()
    assert not hasattr(hopeless.value, "__notes__")


@needs_extra
def test_traceback_of_an_export_notes_how_to_continue(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", error(503, "50001"))
    with pytest.raises(cf.ServiceUnavailableError) as nothing:
        server.client(max_retries=0).blocks().to_parquet(tmp_path / "blocks")
    assert "saved" not in str(getattr(nothing.value, "__notes__", []))
    with (
        LocalService(transactions=600, faults=[{"kind": "status", "status": 503, "every": 4}]) as service,
        service.client(max_retries=0, concurrency=1) as client,
        pytest.raises(cf.ServiceUnavailableError) as caught,
    ):
        client.blocks(page_size=10).to_parquet(tmp_path / "other")
    (note,) = caught.value.__notes__
    assert note.endswith(" records are saved; the same call continues")


def test_invalid_cursor_is_rejected(client: cf.Client, service: LocalService) -> None:
    cursor = next(iter(client.blocks().pages())).cursor
    fields = json.loads(cursor)

    def changed(**members: object) -> str:
        return json.dumps({**fields, **members})

    assert client.resume(json.dumps(fields, indent=1)) == client.resume(cursor)
    for text, complaint in [
        ("", "must be a string from page.cursor"),
        ("[]", "must be a string from page.cursor"),
        ("{}", "must be a string from page.cursor"),
        (cursor[:-9], "must be a string from page.cursor"),
        (changed(more=1), "must be a string from page.cursor"),
        (changed(version=1), r"unsupported version 1 \(expected \d+\)"),
        (changed(call="tokens"), "is corrupted"),
        (changed(offset=7), "is corrupted"),
    ]:
        with pytest.raises(cf.InvalidParameterError, match=f"^cursor .*{complaint}"):
            client.resume(text)
    for value, complaint in [
        (None, "is None where nothing is left to fetch"),
        (1, "must be a string from page.cursor, .*; got 1$"),
    ]:
        with pytest.raises(cf.InvalidParameterError, match=f"^cursor .*{complaint}"):
            client.resume(value)  # type: ignore[arg-type]
    with pytest.raises(cf.InvalidParameterError, match=r"^cursor belongs to the chain ZONE_CHAIN"):
        service.client(zone_chain="OTHER").resume(cursor)
    with pytest.raises(cf.InvalidParameterError, match=r"^cursor belongs to the deployment"):
        service.client(deployment=cf.Deployment(header_prefix="XY")).resume(cursor)


def test_query_that_is_not_the_one_of_the_cursor_is_refused(client: cf.Client) -> None:
    wallets = [f"0x{number:040x}" for number in range(3)]
    of_set = client.address_transactions(wallets, direction="from")
    of_list = client.blocks()
    for query, same in [
        (of_set, client.address_transactions(wallets[::-1], direction="from")),
        (of_list, client.blocks(page_size=7)),
    ]:
        assert client.resume(query.cursor, same) == client.resume(query.cursor)
    for query, other, complaint in [
        (of_set, client.address_transactions(wallets[:2], direction="from"), "is of 3 other values of address; pass"),
        (of_set, client.address_transactions(wallets[0], direction="from"), "is of 3 other values of address; pass"),
        (of_set, client.address_transactions(wallets), "is of a query with other arguments; pass"),
        (
            of_set,
            client.address_transactions(wallets, direction="from", start_height=1),
            "is of a query with other arg",
        ),
        (of_set, client.blocks(), "belongs to the call address_transactions; the query that was passed is of blocks"),
        (of_list, client.transactions(), "belongs to the call blocks; the query that was passed is of transactions"),
        (of_list, client.blocks(height=[1, 2]), "is of a query with other arguments; pass"),
    ]:
        with pytest.raises(cf.InvalidParameterError, match=f"^cursor {complaint}"):
            client.resume(query.cursor, other)


def test_first_record_of_a_resumed_list_of_one_block_is_the_next_one() -> None:
    """The cursor knows the list by its pages, which have to be of the same size."""
    rows = [{"tx_id": f"0x{number:064x}", "height": 5, "block_hash": "0x5"} for number in range(30)]
    with LocalService(transactions=50) as service, service.client() as client:
        service.load("transactions", rows)
        query = client.transactions(height=5, page_size=10)
        ids = [record.tx_id for record in query]
        for page, after in zip(query.pages(), (10, 20), strict=False):
            first = client.resume(page.cursor).first()
            assert first is not None
            assert first.tx_id == ids[after]
            assert [record.tx_id for record in client.resume(page.cursor)] == ids[after:]
