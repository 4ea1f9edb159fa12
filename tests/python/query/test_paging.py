"""Inconsistent pages: the result is right, or an error names the reason, and reading always ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import count, repeat
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from conftest import Sample
from reference_client import ENDPOINTS, PAGED, RECORDS
from strict_server import Request, Response, Script, StrictServer, key_of, member_of, page_of, query_of, total_of


def listed(first: int, count: int) -> list[dict[str, str]]:
    """Transactions of these heights, newest first."""
    return [{"txId": f"0x{height:x}", "height": str(height)} for height in range(first, first - count, -1)]


def heights(first: int, count: int) -> list[dict[str, str]]:
    return [{"height": str(height), "hash": f"0x{height:x}"} for height in range(first, first - count, -1)]


@pytest.mark.parametrize("total_page", ["40", "0", None])
def test_repeated_page_raises_a_drift_error(server: StrictServer, total_page: str | None) -> None:
    def same(_: Request) -> Response:
        return page_of("blocks", heights(1_000, 100), limit="100", totalPage=total_page)

    server.on("blocks", same)
    query = server.client().blocks()
    with pytest.raises(cf.PaginationDriftError, match="contains none that follows those returned"):
        query.collect()
    assert len(query.partial) == 100
    assert not query.report.complete


def test_continuing_after_a_drift_error_does_not_complete_the_result(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 2), limit="2", totalPage="3"))
    pages = iter(server.client().blocks(page_size=2).pages())
    next(pages)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError):
            next(pages)


def test_block_that_is_on_two_pages_raises(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 1), limit="1", totalPage="2"))
    with pytest.raises(cf.PaginationDriftError, match="received again"):
        server.client().blocks(page_size=1).collect()


def test_unmatched_total_is_reported(server: StrictServer) -> None:
    server.on("blocks", lambda _: page_of("blocks", heights(9, 4), limit="100", totalPage="1", total="5"))
    with pytest.warns(cf.IncompleteResultWarning, match="reports 5 records but returned 4"):
        records = server.client().blocks().collect()
    assert not records.report.complete
    with pytest.raises(cf.IncompleteResultError) as caught:
        server.client(strict=True).blocks().collect()
    assert caught.value.partial == records
    assert caught.value.report is not None
    assert caught.value.report.reasons == records.report.reasons


def growing(list_of: list[dict[str, str]], *, by: int | Iterator[int], counted: bool) -> Script:
    """Pages of a list that gains `by` records at its head after every response."""
    grown = list(list_of)
    gains = repeat(by) if isinstance(by, int) else by

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        part = grown[(page - 1) * limit : page * limit]
        total = {"total": str(len(grown))} if counted else {}
        reply = page_of("blocks", part, limit=str(limit), totalPage=str(-(-len(grown) // limit)), **total)
        top, gain = int(grown[0]["height"]), next(gains)
        grown[:0] = heights(top + gain, gain)
        return reply

    return respond


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("by", [0, 1, 3, 7, 9])
def test_counted_list_is_read_as_its_snapshot(server: StrictServer, by: int, concurrency: int) -> None:
    server.on("blocks", growing(heights(1_000, 95), by=by, counted=True))
    records = server.client(concurrency=concurrency).blocks(page_size=10).collect()
    assert [record.height for record in records] == list(range(1_000, 905, -1))
    assert records.report.complete


def test_duplicates_in_a_growing_list_are_all_kept(server: StrictServer) -> None:
    duplicates = [*heights(1_000, 8), *[{"height": "992", "hash": "0x"}] * 30, *heights(991, 7)]
    blocks = growing(duplicates, by=3, counted=True)
    names = {b'"height"': b'"betaBlockHeight"', b'"hash"': b'"id"'}

    def respond(request: Request) -> Response:
        body = blocks(request).body
        for old, new in names.items():
            body = body.replace(old, new)
        return Response(body)

    server.on("cross_chain_transactions", respond)
    records = server.client().cross_chain_transactions(page_size=10).collect()
    assert [record.zone_block_height for record in records] == [int(record["height"]) for record in duplicates]


def test_list_growing_faster_than_it_is_read_raises(server: StrictServer) -> None:
    server.on("blocks", growing(heights(1_000, 95), by=count(30, 60), counted=True))
    query = server.client().blocks(page_size=10)
    with pytest.raises(cf.PaginationDriftError, match="faster than it can be read") as caught:
        list(query)
    assert caught.value.retryable
    assert "raise page_size" in str(caught.value)
    assert len(server.requests) < 40


@pytest.mark.parametrize("by", [0, 3, 60])
def test_uncounted_list_is_read_as_its_snapshot(server: StrictServer, by: int) -> None:
    server.on("blocks", growing(heights(1_000, 95), by=by, counted=False))
    query = server.client().blocks(page_size=10)
    assert [record.height for record in query] == list(range(1_000, 905, -1))
    assert query.report.complete


def test_shrinking_list_raises(server: StrictServer) -> None:
    server.on(
        "blocks",
        lambda request: page_of(
            "blocks",
            heights(300 - 100 * int(request.query["page"]), 100),
            limit="100",
            totalPage="2",
            total={"1": "200", "2": "199"}[request.query["page"]],
        ),
    )
    with pytest.raises(cf.PaginationDriftError) as caught:
        server.client().blocks().collect()
    # The pages are as large as they can be.
    assert "page_size" not in str(caught.value)


# A list of blocks has one record a block.
LISTS = [call for call in PAGED if not ENDPOINTS[call]["is consecutive"]]


def chain_of(call: str, *, by: int, length: int) -> Script:
    """The list of that call, newest first, three records a block; it can be cut off above a height."""
    ids = list(range(length, 0, -1))
    key = member_of(call, key_of(call))
    column = RECORDS[ENDPOINTS[call]["record"]]["roles"]["height"]
    height = "height" if column is None else member_of(call, column)

    def respond(request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        top = int(request.query.get("endBlockHeight", 1 << 40))
        shown = [n for n in ids if n // 3 <= top]
        part = [{key: f"0x{n}", height: str(n // 3)} for n in shown[(page - 1) * limit : page * limit]]
        total = total_of(call, len(shown))
        ids[:0] = range(ids[0] + by, ids[0], -1)
        return page_of(call, part, limit=str(limit), totalPage=str(-(-len(shown) // limit)), **total)

    return respond


@pytest.mark.filterwarnings("ignore:.*last 12 months of an address")
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    ("call", "by"),
    # Tokens are ranked: those that are added are listed below the others, and read as well.
    [(call, by) for call in LISTS for by in (0, 1, 19, 50, 60) if by == 0 or call != "tokens"],
)
def test_every_list_is_read_as_its_snapshot(server: StrictServer, call: str, by: int, concurrency: int) -> None:
    server.on(call, chain_of(call, by=by, length=330))
    client = server.client(concurrency=concurrency)
    records = query_of(client, call, page_size=50).to_dicts()
    assert [record[key_of(call)] for record in records] == [f"0x{n}" for n in range(330, 0, -1)]
    assert len(server.requests) <= (10 if by == 0 else 3 * 7)


def test_short_page_before_the_end_raises(server: StrictServer) -> None:
    short = {"1": listed(300, 100), "2": listed(200, 7), "3": listed(100, 100)}
    server.on("transactions", lambda request: page_of("transactions", short[request.query["page"]], totalPage="3"))
    with pytest.raises(cf.PaginationDriftError, match="none that follows those returned"):
        server.client().transactions().collect()


def test_address_list_is_reported_as_limited_to_a_year(server: StrictServer) -> None:
    server.on("address_transactions", page_of("address_transactions", listed(9, 1)))
    with pytest.warns(cf.IncompleteResultWarning, match="older records may exist; narrow the query with start_time="):
        assert not server.client().address_transactions("0x1").collect().report.complete
    server.on("address_transactions", page_of("address_transactions", [], totalPage="0"))
    assert server.client().address_transactions("0x1").collect().report.complete


@pytest.mark.parametrize(
    ("given", "advice"),
    [({"start_time": "2020-01-01T00:00Z"}, "a later start_time"), ({"start_height": 1}, "a higher start_height")],
)
def test_advice_on_the_list_of_an_address_is_to_move_a_start_that_is_given(
    client: cf.Client, sample: Sample, given: dict[str, Any], advice: str
) -> None:
    with pytest.warns(cf.IncompleteResultWarning, match=f"older records may exist; narrow the query with {advice}"):
        client.address_transactions(sample.address, **given).collect()


@pytest.mark.parametrize("of", ["rows", "pages", "batches"])
def test_cancelled_anext_keeps_its_item(server: StrictServer, of: str) -> None:
    server.on("blocks", growing(heights(1_000, 40), by=0, counted=True))
    query = server.client().blocks(page_size=2)
    makers: dict[str, Callable[[], Any]] = {
        "rows": query.__aiter__,
        "pages": query.pages,
        "batches": lambda: query.batches(batch_size=2),
    }
    stream = makers[of]()

    async def read() -> list[int | None]:
        seen: list[int | None] = []
        iterator = aiter(stream)
        while True:
            step = asyncio.ensure_future(anext(iterator))
            await asyncio.sleep(0)
            if len(seen) % 3 == 0:
                time.sleep(0.05)  # noqa: ASYNC251 - the response arrives while the loop is busy
                step.cancel()
            try:
                item = await step
            except asyncio.CancelledError:
                step = asyncio.ensure_future(anext(iterator))
                try:
                    item = await step
                except StopAsyncIteration:
                    return seen
            except StopAsyncIteration:
                return seen
            if isinstance(item, cf.Block):
                seen.append(item.height)
            else:
                seen += [block.height for block in (item.records if isinstance(item, cf.Page) else item)]

    assert asyncio.run(read()) == list(range(1_000, 960, -1))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_reorganized_chain_is_read_as_its_snapshot_or_raises(concurrency: int) -> None:
    with (
        LocalService(transactions=600, seed=7, reorg=(3, 5), growth=2) as service,
        LocalService(transactions=600, seed=7) as still,
    ):
        for call in ("transactions", "large_transactions", "cross_chain_transactions", "blocks"):
            # The same request makes both see the same first page only once: what came before must be read first.
            whole = getattr(still.client(), call)().to_dicts()
            records = getattr(service.client(concurrency=concurrency), call)(page_size=20)
            try:
                read = records.to_dicts()
            except cf.PaginationDriftError:
                continue
            except cf.IncompleteResultWarning:
                if call == "cross_chain_transactions":
                    # Without block hashes, a height whose block was replaced looks like one that lacks a record.
                    continue
                raise
            assert read[-len(whole) // 2 :] == whole[-len(whole) // 2 :]
            assert len({row.get("tx_id") or row.get("hash") or row.get("zone_tx_hash") for row in read}) == len(read)


def test_list_growing_over_time_is_read_as_its_snapshot() -> None:
    with LocalService(transactions=600, seed=7, growth_rate=200.0) as service:
        heights = [block.height for block in service.client().blocks(page_size=20)]
        assert None not in heights
        first = heights[0] or 0
        assert heights == list(range(first, first - len(heights), -1))
