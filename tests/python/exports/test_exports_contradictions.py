"""Exports of lists whose pages contradict each other."""

from __future__ import annotations

import asyncio
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

import chainframe as cf
import chainframe.exports
from exports.test_exports_since import Chain
from strict_server import error, page_of

if TYPE_CHECKING:
    from strict_server import Request, Response, StrictServer


class Ties(Chain):
    """Lists four records of each height, two of which part of the service has in another order."""

    is_repaired = False

    def record(self, number: int) -> dict[str, str]:
        return {**super().record(number), "height": str(number // 4)}

    def respond(self, request: Request) -> Response:
        swapped = self.rows.copy()
        if request.query["page"] == "2" and request.query["limit"] == "20" and not self.is_repaired:
            swapped[19:21] = reversed(swapped[19:21])
        rows, self.rows = self.rows, swapped
        response = super().respond(request)
        self.rows = rows
        return response


@pytest.mark.parametrize("settle", [None, 10])
def test_order_that_changes_between_pages_is_noticed_before_the_seam(
    server: StrictServer, tmp_path: Path, settle: int | None
) -> None:
    chain = Ties(server, "token_transfers", 101)
    client = server.client()
    first = client.token_transfers("0xa").to_parquet(tmp_path / "0", settle=settle)
    chain.grow(24)
    query = chain.query(client, page_size=20)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            query.to_parquet(tmp_path / "1", since=first, settle=settle)


def test_contradiction_is_not_forgotten_by_the_next_run(server: StrictServer, tmp_path: Path) -> None:
    chain = Ties(server, "token_transfers", 125)
    client = server.client()
    query = chain.query(client, page_size=20)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            query.to_parquet(tmp_path)
    pages = query.pages()
    cursors = [page.cursor for page, _ in zip(pages, range(6), strict=False)]
    assert all('"repeats"' in cursor for cursor in cursors[1:])
    for cursor in cursors[1:]:
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            client.resume(cursor).collect()


WAYS = ["directory", "file.parquet", "file.csv", "file.jsonl"]


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_export_that_the_list_contradicts_is_begun_again(
    server: StrictServer, tmp_path: Path, way: str, *, is_awaited: bool
) -> None:
    """No run can continue the rows of a contradicted one, also after the service has recovered."""
    chain = Ties(server, "token_transfers", 125)
    query = chain.query(server.client(), page_size=20)
    name = {".csv": "to_csv", ".jsonl": "to_json"}.get(Path(way).suffix, "to_parquet")

    def run() -> Any:
        if is_awaited:
            return asyncio.run(getattr(query, f"{name}_async")(tmp_path / way))
        return getattr(query, name)(tmp_path / way)

    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError, match="received twice"):
            run()
    chain.is_repaired = True
    export = run()
    assert export.complete
    text = export.parts[0].read_bytes() if way in {"file.csv", "file.jsonl"} else b""
    found: Any = chainframe.exports.read(export.path).to_table() if way == "directory" else None
    rows = text.count(b"\n") - (way == "file.csv") if text else export.rows
    assert (rows, export.rows) == (125, 125)
    assert found is None or sorted(found["tx_id"].to_pylist()) == sorted(row["txid"] for row in chain.rows)


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("way", ["directory", "file.csv", "series"])
def test_interrupted_export_is_not_replaced_by_an_empty_list(
    server: StrictServer, tmp_path: Path, way: str, *, is_awaited: bool
) -> None:
    chain = Chain(server, "token_transfers", 125)
    query = chain.query(server.client(concurrency=1, max_retries=0), page_size=20)
    path = tmp_path / way
    options = {"settle": 3} if way == "series" else {}
    name = {"file.csv": "to_csv", "series": "to_parquet_series"}.get(way, "to_parquet")

    def run() -> Any:
        if is_awaited:
            return asyncio.run(getattr(query, f"{name}_async")(path, **options))
        return getattr(query, name)(path, **options)

    def failing(request: Request) -> Response:
        return error(400, "50014") if request.query["page"] == "4" else Chain.respond(chain, request)

    def empty(request: Request) -> Response:
        return page_of("token_transfers", [], page=request.query["page"], totalPage="0", totalTransfer="0")

    server.on("token_transfers", failing)
    with pytest.raises(cf.BadRequestError):
        run()
    server.on("token_transfers", empty)
    for _ in range(2):
        problem = "^token_transfers: the list is empty, although [0-9]+ records are written to .*; try again later, or"
        with pytest.raises(cf.PaginationDriftError, match=problem):
            run()
    server.on("token_transfers", chain.respond)
    export = run()
    rows: int = chainframe.exports.read(path).count_rows() if way == "series" else export.rows
    highest = int(chain.rows[0]["height"]) - options.get("settle", 0)
    assert rows == sum(int(row["height"]) <= highest for row in chain.rows) > 0


@pytest.mark.parametrize("is_awaited", [False, True])
def test_list_of_which_nothing_is_written_is_read_again_by_the_same_call(
    server: StrictServer, tmp_path: Path, *, is_awaited: bool
) -> None:
    chain = Ties(server, "token_transfers", 125)
    query = chain.query(server.client(), page_size=20)
    pages = []
    respond = chain.respond

    def repaired(request: Request) -> Response:
        pages.append(request.query["page"])
        chain.is_repaired = pages.count("1") > 1
        return respond(request)

    server.on("token_transfers", repaired)
    export = asyncio.run(query.to_parquet_async(tmp_path)) if is_awaited else query.to_parquet(tmp_path)
    assert (export.rows, export.complete, export.report.reasons) == (125, True, [])
    assert sorted(tmp_path.iterdir()) == sorted([*export.parts, tmp_path / "_manifest.json"])
    found: list[Any] = chainframe.exports.read(tmp_path).to_table()["tx_id"].to_pylist()
    assert sorted(found) == sorted(row["txid"] for row in chain.rows)


def test_long_export_that_is_contradicted_once_continues(server: StrictServer, tmp_path: Path) -> None:
    """Files that were written stay, since another reading of all of the list would take as long."""
    chain = Chain(server, "token_transfers", 125)
    query = chain.query(server.client(concurrency=1), page_size=20)
    respond = chain.respond
    failing = ["5"]

    def contradicting(request: Request) -> Response:
        response = respond(request)
        if request.query["page"] in failing:
            failing.clear()
            return page_of("token_transfers", [], page="1", totalPage="7", totalTransfer="125")
        return response

    server.on("token_transfers", contradicting)
    with pytest.raises(cf.PaginationDriftError):
        query.to_parquet(tmp_path, max_rows_per_file=20)
    written = [path.stat().st_ino for path in sorted(tmp_path.glob("part-*"))]
    assert written
    export = query.to_parquet(tmp_path, max_rows_per_file=20)
    assert export.rows == 125
    assert [path.stat().st_ino for path in map(Path, map(str, export.parts))][: len(written)] == written


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("night", [0, 1])
def test_interrupted_export_that_the_list_contradicts_is_begun_again_by_its_series(
    server: StrictServer, tmp_path: Path, night: int, *, is_awaited: bool
) -> None:
    chain = Ties(server, "token_transfers", 125)
    client = server.client()
    query = chain.query(client, page_size=20)

    def run() -> Any:
        if is_awaited:
            return asyncio.run(query.to_parquet_series_async(tmp_path, settle=3))
        return query.to_parquet_series(tmp_path, settle=3)

    if night:
        chain.is_repaired = True
        run()
        chain.is_repaired = False
        chain.grow(100)
    for _ in range(2):
        with pytest.raises(cf.PaginationDriftError) as caught:
            run()
        assert not any("overwrite" in note for note in getattr(caught.value, "__notes__", []))
    chain.is_repaired = True
    run()
    exported: list[Any] = chainframe.exports.read(tmp_path).to_table()["tx_id"].to_pylist()
    settled = [row["txid"] for row in chain.rows if int(row["height"]) <= int(chain.rows[0]["height"]) - 3]
    assert sorted(exported) == sorted(settled)


def test_settled_series_of_a_list_that_begins_with_its_oldest_record_is_refused(
    server: StrictServer, tmp_path: Path
) -> None:
    chain = Chain(server, "blocks", 6)
    client = server.client()
    first = client.blocks(page_size=3).to_parquet(tmp_path / "0", settle=1)
    chain.grow(6)
    chain.rows.reverse()
    with pytest.raises(cf.ExportError, match="height 3 is listed below height 1; export without settle"):
        client.blocks(page_size=3).to_parquet(tmp_path / "1", since=first, settle=1)


@pytest.mark.parametrize("settle", [1, 3, 40])
@pytest.mark.parametrize("call", ["token_transfers", "large_transactions", "transactions"])
def test_settled_export_of_a_list_in_another_order_than_that_of_heights_is_refused(
    server: StrictServer, tmp_path: Path, call: str, settle: int
) -> None:
    chain = Chain(server, call, 120)
    chain.rows.sort(key=lambda row: int(row["height"]) * 7919 % 121)
    with pytest.raises(cf.ExportError, match=r"is listed below height [0-9]+; export without settle"):
        chain.query(server.client(), page_size=20).to_parquet(tmp_path / "0", settle=settle)


def test_heights_out_of_order_by_no_more_than_is_read_again_are_exported(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "token_transfers", 120)
    # 118, 119, 120, 115, 116, 117 and so on
    chain.rows.sort(key=lambda row: ((120 - int(row["height"])) // 3, int(row["height"])))
    export = chain.query(server.client(), page_size=20).to_parquet(tmp_path / "0", settle=4)
    assert export.report.complete
    assert sorted(export.to_pandas()["height"]) == list(range(1, 115))


@pytest.mark.parametrize("page_size", [5, 13, 14, 50])
@pytest.mark.parametrize("is_late", [False, True])
def test_record_that_is_listed_below_the_heights_that_are_compared_is_found(
    server: StrictServer, tmp_path: Path, page_size: int, *, is_late: bool
) -> None:
    chain = Chain(server, "token_transfers", 120)
    # The first export ends at height 115: the next one compares 111 to 115, and begins to be sure below 110.
    moved = chain.rows.pop(8)
    if not is_late:
        chain.rows.insert(12, moved)
    query = chain.query(server.client(), page_size=page_size)
    first = query.to_parquet(tmp_path / "0", settle=5)
    if is_late:
        # Listed late too, a height that was out of order shows that others may be.
        chain.rows[8:10] = reversed(chain.rows[8:10])
        chain.rows.insert(12, moved)
    chain.grow(5)
    second = query.to_parquet(tmp_path / "1", since=first, settle=5)
    assert (second.complete, second.corrections) == (True, ())
    exported: list[Any] = chainframe.exports.read(second).to_table()["height"].to_pylist()
    assert sorted(exported) == list(range(1, 121))


def test_settled_export_of_a_list_in_order_ends_with_the_page_below_the_heights_that_are_compared(
    server: StrictServer, tmp_path: Path
) -> None:
    chain = Chain(server, "token_transfers", 120)
    query = chain.query(server.client(concurrency=1), page_size=10)
    first = query.to_parquet(tmp_path / "0", settle=30)
    chain.grow(5)
    # Heights 125 to 60, of which those from 61 on are compared.
    second = query.to_parquet(tmp_path / "1", since=first, settle=30)
    assert (second.complete, second.rows, second.report.pages) == (True, 5, 7)


@pytest.mark.parametrize("place", [20, 27, 30])
@pytest.mark.parametrize("call", ["token_transfers", "large_transactions", "transactions"])
def test_record_that_was_listed_below_those_of_the_earlier_export_is_reported(
    server: StrictServer, tmp_path: Path, call: str, place: int
) -> None:
    chain = Chain(server, call, 30)
    query = chain.query(server.client())
    first = query.to_parquet(tmp_path / "0")
    chain.grow(1)
    chain.rows.insert(place, chain.rows.pop(0))
    with pytest.warns(cf.IncompleteResultWarning, match="has 1 of its records"):
        second = query.to_parquet(tmp_path / "1", since=first)
    assert not second.report.complete


@pytest.mark.parametrize("is_resumed", [False, True])
@pytest.mark.parametrize("call", ["transactions", "token_transfers"])
def test_records_without_a_height_below_settled_ones_are_reported(
    server: StrictServer, tmp_path: Path, call: str, *, is_resumed: bool
) -> None:
    chain = Chain(server, call, 260)
    # The newest ones wait for a block.
    for row in chain.rows[:3]:
        row["height"] = ""
    query = chain.query(server.client(concurrency=1, max_retries=0))
    assert query.to_parquet(tmp_path / "0", settle=5).complete
    chain.rows[20]["height"] = ""
    if is_resumed:
        server.on(call, lambda request: error(500, "1") if request.query["page"] == "3" else chain.respond(request))
        with pytest.raises(cf.ChainframeError, match="500"):
            query.to_parquet(tmp_path / "1", settle=5, max_rows_per_file=10)
        server.on(call, chain.respond)
    with pytest.warns(cf.IncompleteResultWarning, match="records without a height below others that are settled"):
        second = query.to_parquet(tmp_path / "1", settle=5, max_rows_per_file=10)
    assert (second.rows, second.complete) == (260 - 3 - 5 - 1, False)


@pytest.mark.parametrize("in_series", [False, True])
@pytest.mark.parametrize("hidden", [108, 101])
def test_export_that_was_interrupted_by_a_contradiction_is_finished_once_it_is_gone(
    server: StrictServer, tmp_path: Path, hidden: int, *, in_series: bool
) -> None:
    chain: dict[str, int] = {"top": 100, "hidden": -1}

    def page(request: Request) -> Response:
        limit = int(request.query["limit"])
        number = int(request.query["page"])
        heights = [height for height in range(chain["top"], 0, -1) if height != chain["hidden"]]
        listed = [
            {"hash": f"0x{height:064x}", "height": str(height), "blockTime": str(1_700_000_000_000 + height)}
            for height in heights[(number - 1) * limit : number * limit]
        ]
        counts = {"total": str(len(heights)), "totalPage": str(-(-len(heights) // limit))}
        return page_of("blocks", listed, page=str(number), limit=str(limit), **counts)

    server.on("blocks", page)

    def export(client: cf.Client, night: int) -> chainframe.exports.Export:
        query = client.blocks(page_size=10)
        if in_series:
            return query.to_parquet_series(tmp_path / "series", settle=3, max_rows_per_file=2)
        since = tmp_path / f"{night - 1}" if night else None
        return query.to_parquet(tmp_path / f"{night}", settle=3, since=since, max_rows_per_file=2)

    with server.client(max_retries=0) as client:
        export(client, 0)
        chain |= {"top": 110, "hidden": hidden}
        for _ in range(2):
            with pytest.raises(cf.ExportError, match="could not be read completely") as caught:
                export(client, 1)
            assert caught.value.retryable
            # The second run writes to a directory below the export's, which is not named.
            assert str(caught.value.path).endswith("export-000001" if in_series else "1")
            assert f"{caught.value.path}: the heights" in str(caught.value)
        chain |= {"top": 111, "hidden": -1}
        finished = export(client, 1)
        assert finished.report.complete
        table = chainframe.exports.read(finished.path).to_table()
        assert table.sort_by("height")["height"].to_pylist() == [*range(1, 109)]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("settle", [3, 12])
def test_short_list_of_an_address_is_compared_to_its_end(server: StrictServer, tmp_path: Path, settle: int) -> None:
    chain = {"top": 4, "fork": 5}
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=20)

    def page(request: Request) -> Response:
        listed = [
            {
                "txId": f"0x{height:064x}",
                "height": str(height),
                "blockHash": f"0x{height + 100 * (height >= chain['fork']):064x}",
                "transactionTime": str(int(start.timestamp() * 1_000) + height),
                "from": "0x" + "a" * 40,
                "to": "0x" + "b" * 40,
                "nonce": "7",
            }
            for height in range(chain["top"], 0, -1)
        ]
        return page_of("address_transactions", listed, page="1", limit=request.query["limit"], totalPage="1")

    server.on("address_transactions", page)
    with server.client() as client:
        for top, fork in ((4, 5), (7, 8), (8, 6), (20, 6)):
            chain |= {"top": top, "fork": fork}
            export = client.address_transactions("0x" + "a" * 40).to_parquet_series(tmp_path, settle=settle)
            assert ["12 months" in reason for reason in export.report.reasons] == [True] * len(export.report.reasons)
        table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
        assert table["height"].to_pylist() == [*range(1, 21 - settle)]
        replaced = table.filter(pc.field("block_hash") >= f"0x{100:064x}")
        assert replaced["height"].to_pylist() == [*range(6, 21 - settle)]
