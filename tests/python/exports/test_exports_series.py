"""`to_parquet_series`: a directory of exports that owns their names, order and links."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
import chainframe.exports.series
from chainframe.cli import main
from chainframe.exports import Export
from chainframe.exports.directory import STAGING, locked_dir
from chainframe.exports.manifest import Manifest, local_manifest
from chainframe.exports.store import finished_manifest
from chainframe.testing import LocalService
from conftest import environment
from exports.test_exports_settled import advance, assert_settled, reorganize, rows
from strict_server import Request, Response, StrictServer, page_of


def read(series: Path) -> Any:
    return chainframe.exports.read(series).to_table()


def names(series: Path) -> list[str]:
    return sorted(path.name for path in series.iterdir())


@pytest.fixture
def growing() -> Any:
    with LocalService(transactions=150) as service, service.client(rate_limit=None, max_retries=0) as client:
        advance(service, 10)
        yield service, client.blocks(page_size=50)


def test_series_equals_the_settled_list_after_each_call(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    chance = random.Random(3)
    exports: list[Export] = []
    for _ in range(8):
        exports.append(query.to_parquet_series(tmp_path / "s", settle=6, max_rows_per_file=40))
        assert_settled(query, exports[-1].path)
        assert rows(read(tmp_path / "s")) == rows(read(exports[-1].path))
        reorganize(service, chance.randint(1, 11))
        advance(service, chance.randint(0, 3), chance.randint(1, 3))
    assert names(tmp_path / "s") == [f"export-{number:06}" for number in range(8)]
    assert any(export.corrections for export in exports)
    assert chainframe.exports.Export.open(tmp_path / "s") == exports[-1]
    # In any order, as a listing of a directory may have them.
    chance.shuffle(exports)
    assert rows(read(exports)) == rows(read(tmp_path / "s"))  # type: ignore[arg-type]


def test_series_without_settle_has_each_record_once(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    for new in (0, 4, 0, 60):
        advance(service, 1, new)
        query.to_parquet_series(tmp_path, settle=None)
    found = read(tmp_path)["height"].to_pylist()
    assert sorted(found, reverse=True) == [block.height for block in query]


def test_series_that_was_moved_is_continued(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    query.to_parquet_series(tmp_path / "a" / "s", settle=6)
    deep = tmp_path.joinpath(*["long" * 20] * 8)
    deep.mkdir(parents=True)
    for target in (tmp_path / "b", deep / "s", tmp_path / "c"):
        source = next(path.parent for path in tmp_path.rglob("export-000000"))
        shutil.move(source, target)
        advance(service, 3)
        query.to_parquet_series(target, settle=6)
        assert_settled(query, target / f"export-{len(names(target)) - 1:06}")


def test_interrupted_export_is_finished_first(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    query.to_parquet_series(tmp_path, settle=6)
    advance(service, 5, 40)
    service.faults = [{"kind": "status", "status": 503, "every": 3}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet_series(tmp_path, settle=6, max_rows_per_file=30)
    service.faults = []
    advance(service, 2)
    export = query.to_parquet_series(tmp_path, settle=6, max_rows_per_file=30)
    assert names(tmp_path) == ["export-000000", "export-000001", "export-000002"]
    assert_settled(query, export.path)


def test_report_has_the_reasons_of_the_interrupted_export_that_was_finished(tmp_path: Path) -> None:
    with LocalService(transactions=400, max_result_window=100) as service:
        with service.client(rate_limit=None, max_requests=1) as client, pytest.raises(cf.BudgetExceededError):
            client.transactions(page_size=50).to_parquet_series(tmp_path / "s", settle=None)
        shutil.copytree(tmp_path / "s", tmp_path / "awaited")
        with service.client(rate_limit=None) as client:
            query = client.transactions(page_size=50)
            with pytest.warns(cf.IncompleteResultWarning):
                export = query.to_parquet_series(tmp_path / "s", settle=None)
            with pytest.warns(cf.IncompleteResultWarning):
                awaited = asyncio.run(query.to_parquet_series_async(tmp_path / "awaited", settle=None))
            # The next night has nothing to say about the one before.
            assert query.to_parquet_series(tmp_path / "s", settle=None).complete
    assert [Export.open(tmp_path / "s" / name).complete for name in names(tmp_path / "s")] == [False, True]
    assert not export.complete
    assert not awaited.complete
    assert len(export.report.reasons) == len(awaited.report.reasons) == 1
    assert "can be paged through" in export.report.reasons[0]


def test_series_is_read_as_of_its_newest_finished_export(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    before = rows(read(query.to_parquet_series(tmp_path, settle=6).path))
    advance(service, 5, 40)
    # A run that has begun, and has written nothing yet.
    (tmp_path / "export-000001").mkdir()
    assert rows(read(tmp_path)) == before
    service.faults = [{"kind": "status", "status": 503, "every": 3}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet_series(tmp_path, settle=6, max_rows_per_file=30)
    assert not local_manifest(tmp_path / "export-000001").finished  # type: ignore[union-attr]
    assert rows(read(tmp_path)) == before
    assert Export.open(tmp_path).rows == len(before)
    service.faults = []
    with pytest.raises(cf.ExportError, match="is not finished; run that export again first"):
        query.to_parquet(tmp_path / "other", since=tmp_path, settle=6)
    query.to_parquet_series(tmp_path, settle=6)
    (tmp_path / "export-000002" / Manifest.NAME).unlink()
    with pytest.raises(cf.ExportError, match=r"holds part-000000.parquet, and no manifest"):
        read(tmp_path)


def test_series_whose_only_export_is_not_finished_is_not_read(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    service.faults = [{"kind": "status", "status": 503, "every": 2}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet_series(tmp_path, settle=6)
    with pytest.raises(cf.ExportError, match="export-000000 is not finished"):
        read(tmp_path)
    with pytest.raises(cf.InvalidParameterError, match=r"^series must be a directory, an Export or a list of them"):
        chainframe.exports.read(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_night_after_a_part_was_lost_names_it(growing: Any, tmp_path: Path, damage: Any) -> None:
    service, query = growing
    for _ in range(3):
        query.to_parquet_series(tmp_path, settle=6)
        advance(service, 3)
    damage(tmp_path / "export-000001" / "part-000000.parquet")
    with pytest.raises(cf.ExportError, match=r"export-000001/part-000000.parquet is (missing|damaged)"):
        query.to_parquet_series(tmp_path, settle=6)


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
def test_directory_of_a_series_takes_no_other_export(growing: Any, tmp_path: Path, mode: Any) -> None:
    service, query = growing
    query.to_parquet_series(tmp_path, settle=6)
    sent = service.request_count
    with pytest.raises(cf.ExportError, match="holds a series of exports; call to_parquet_series"):
        query.to_parquet(tmp_path, mode=mode)
    assert (service.request_count, names(tmp_path)) == (sent, ["export-000000"])


def test_call_that_ended_before_its_manifest_is_repeated(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    query.to_parquet_series(tmp_path, settle=6)
    (tmp_path / "export-000001").mkdir()
    advance(service, 5)
    assert query.to_parquet_series(tmp_path, settle=6).path == tmp_path / "export-000001"
    assert_settled(query, tmp_path / "export-000001")


def test_series_of_dated_exports_is_continued_by_its_links(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    before: Path | None = None
    # The clock was years ahead, and then was set back.
    for day in ("2026-01-11", "2030-01-01", "2026-01-12", "2001-01-01"):
        query.to_parquet(tmp_path / day, since=before, settle=6)
        before = tmp_path / day
        advance(service, 4)
    export = query.to_parquet_series(tmp_path, settle=6)
    assert export.path == tmp_path / "export-000000"
    assert_settled(query, export.path)
    advance(service, 4)
    assert_settled(query, query.to_parquet_series(tmp_path, settle=6).path)
    days = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert rows(read(days)) == rows(read(tmp_path))  # type: ignore[arg-type]


def test_series_of_a_thousand_nights_is_read_and_continued(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    # With "../" for each night, the path of the first would be longer than a path may be.
    series = tmp_path / "warehouse" / "chain=main" / "blocks of the zone chain"
    query.to_parquet_series(series, settle=6)
    link_nights(series, 1_000)
    export = query.to_parquet_series(series, settle=6)
    advance(service, 5)
    export = query.to_parquet_series(series, settle=6)
    assert export.rows
    assert_settled(query, export.path)


def test_each_night_opens_the_exports_whose_heights_it_compares(
    growing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, query = growing
    monkeypatch.setattr(chainframe.exports.series, "FIRST_SPAN", 4)
    opened: list[Path] = []

    def recorded(directory: Path) -> Manifest:
        opened.append(directory)
        return finished_manifest(directory)

    monkeypatch.setattr(chainframe.exports.series, "finished_manifest", recorded)
    for _ in range(40):
        opened.clear()
        query.to_parquet_series(tmp_path, settle=6)
        assert len(opened) < 12
        advance(service, 2)
    assert_settled(query, tmp_path / "export-000039")


def test_export_without_news_is_replaced(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    export = query.to_parquet_series(tmp_path, settle=6)
    for news in (0, 0, 3, 0, 0):
        advance(service, news)
        export = query.to_parquet_series(tmp_path, settle=6)
        assert bool(export.rows) == bool(news)
    assert names(tmp_path) == ["export-000000", "export-000001", "export-000002"]
    assert_settled(query, export.path)
    advance(service, 5, 60)
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet_series(tmp_path, settle=6, max_rows_per_file=20)
    service.faults = []
    # The pages that had arrived are kept.
    staged = local_manifest(tmp_path / "export-000002" / STAGING)
    assert staged is not None
    assert staged.rows > 0
    newest = query.to_parquet_series(tmp_path, settle=6, max_rows_per_file=20)
    export = Export.open(tmp_path / "export-000002")
    assert (export.rows, newest.path.name, newest.rows) == (300, "export-000003", 0)
    assert len(export.parts) > 15
    assert_settled(query, newest.path)


def test_reader_finds_the_series_while_an_export_without_news_is_replaced(
    growing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, query = growing
    for _ in range(2):
        query.to_parquet_series(tmp_path, settle=6)
    opened = chainframe.exports.read(tmp_path)
    before = rows(opened.to_table())
    advance(service, 5, 40)
    found: list[Any] = []

    def read_first(step: Any) -> Any:
        def read_and_step(path: Path, *arguments: Any, **options: Any) -> Any:
            found.append(rows(read(tmp_path)))
            return step(path, *arguments, **options)

        return read_and_step

    with monkeypatch.context() as patch:
        for name in ("mkdir", "unlink", "replace", "rmdir"):
            patch.setattr(Path, name, read_first(getattr(Path, name)))
        assert query.to_parquet_series(tmp_path, settle=6).path == tmp_path / "export-000001"
    after = rows(read(tmp_path))
    assert len(after) > len(before)
    assert before in found
    assert all(each in (before, after) for each in found)
    assert rows(opened.to_table()) == before


def link_nights(series: Path, count: int) -> None:
    """Adds exports of nights without news, each of which continues the one before, until there are `count`."""
    first = len(names(series))
    for number in range(first, count):
        before, here = series / f"export-{number - 1:06}", series / f"export-{number:06}"
        here.mkdir()
        state = json.loads((before / Manifest.NAME).read_text())
        (here / "part-000000.parquet").write_bytes((before / state["parts"][0]["name"]).read_bytes())
        if number == first:
            empty = pq.read_table(before / state["parts"][0]["name"])[:0]
            pq.write_table(empty, here / "part-000000.parquet")
        content = (here / "part-000000.parquet").read_bytes()
        part = {
            "name": "part-000000.parquet",
            "rows": 0,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        state["settled"] |= {"corrections": [], "corrected_above": None}
        state |= {"since": chainframe.exports.series.link(before, here), "parts": [part]}
        state["report"] |= {"records": 0}
        (here / Manifest.NAME).write_text(json.dumps(state))


def test_two_runs_do_not_add_at_once(growing: Any, tmp_path: Path) -> None:
    _, query = growing
    with locked_dir(tmp_path), pytest.raises(cf.ExportError, match="is locked") as caught:
        query.to_parquet_series(tmp_path)
    assert caught.value.retryable


def test_awaited_series_is_the_same(growing: Any, tmp_path: Path) -> None:
    service, query = growing

    async def add() -> Export:
        export: Export = await query.to_parquet_series_async(tmp_path, settle=6, columns=["hash", "height"])
        return export

    asyncio.run(add())
    advance(service, 3)
    assert asyncio.run(add()).path == tmp_path / "export-000001"
    assert read(tmp_path).schema.names == ["hash", "height"]


def test_wrong_series_sends_nothing(client: cf.Client, service: LocalService, tmp_path: Path) -> None:
    client.blocks(max_items=3).to_parquet(tmp_path / "export")
    before, sent = names(tmp_path), service.request_count
    wrong: list[tuple[Any, str, dict[str, Any], str]] = [
        (client.tokens(), "a", {}, "to_parquet_series needs a list with its newest record first or a range"),
        (
            client.blocks(max_items=3),
            "a",
            {"settle": None},
            "max_items must not be given with settle, with since or for a series",
        ),
        (client.blocks(max_items=3), "a", {}, "max_items must not be given with settle, with since or for a series"),
        (client.blocks(), "a", {"settle": 0}, "settle"),
        (client.blocks(), "a", {"columns": ["hash"]}, "columns must include height, by which the next export"),
        (
            client.address_transactions(["0xa", "0xb"]),
            "a",
            {"settle": None},
            "settle must be given for a series of several values",
        ),
        (client.blocks(), "export", {}, "export is one export; name another directory"),
        (client.blocks(), "hdfs://host/a", {}, r"path \(hdfs://...\) must be a local path"),
        (client.blocks(), "a", {"mode": "overwrite"}, "mode"),
    ]
    for query, path, options, expected in wrong:
        with pytest.raises((cf.ChainframeError, TypeError), match=expected):
            query.to_parquet_series(path if "://" in path else tmp_path / path, **options)
    assert (names(tmp_path), service.request_count) == (before, sent)


def test_series_of_another_query_needs_another_directory(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet_series(tmp_path)
    with pytest.raises(
        cf.ExportError, match=r": call is 'blocks' there and 'transactions' here; use another directory$"
    ) as caught:
        client.transactions().to_parquet_series(tmp_path)
    assert [hint.action for hint in caught.value.hints] == ["use_another_directory"]


def test_command_adds_to_a_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalService(transactions=150) as service:
        for name, value in environment(service).items():
            monkeypatch.setenv(name, value)
        advance(service, 10)
        for _ in range(2):
            assert main(["blocks", "-o", f"{tmp_path / 's'}/", "--series", "--settle", "5"]) == 0
            advance(service, 3)
        with service.client() as client:
            found = local_manifest(tmp_path / "s" / "export-000001")
            assert found is not None
            assert found.settled is not None
            assert read(tmp_path / "s").num_rows == sum(
                block.height is not None and block.height <= (found.settled.end_height or 0)
                for block in client.blocks()
            )
        for more, expected in (
            (["-o", "x.parquet", "--series"], "--series needs a directory"),
            (["-o", f"{tmp_path}/", "--series", "--since", "x"], "--since cannot be combined with --series"),
            (["-o", f"{tmp_path}/", "--series", "--overwrite"], "--overwrite cannot be combined with --series"),
            (["--follow", "--series"], "--series cannot be combined with --follow"),
        ):
            assert main(["blocks", *more]) == 2
            assert expected in capsys.readouterr().err


def test_damaged_export_is_not_continued(growing: Any, tmp_path: Path) -> None:
    service, query = growing
    for settle in (6, None):
        series = tmp_path / str(settle)
        export = query.to_parquet_series(series, settle=settle)
        with export.parts[0].open("r+b") as file:
            file.seek(100)
            file.write(b"damaged!")
        advance(service, 3)
        with pytest.raises(cf.ExportError, match="is damaged"):
            query.to_parquet_series(series, settle=settle)


@pytest.mark.parametrize("call", ["blocks", "transactions", "transactions from"])
@pytest.mark.parametrize("behind", [1, 7, 9])
def test_list_that_was_behind_removes_nothing_from_a_settled_series(
    server: StrictServer, tmp_path: Path, call: str, behind: int
) -> None:
    name, _, is_range = call.partition(" ")
    key = "hash" if name == "blocks" else "txid"
    heights = range(100, 160)
    head = 159

    def respond(request: Request) -> Response:
        found = [
            {key: f"0x{height:x}", "height": str(height), "transactionTime": "1"}
            for height in heights
            if height <= head
        ]
        if "height" in request.query:
            found = [row for row in found if row["height"] == request.query["height"]]
        page, limit = int(request.query["page"]), int(request.query["limit"])
        total = {"total": str(len(found))} if name == "blocks" else {}
        pages = {"totalPage": str(-(-len(found) // limit)), "page": str(page), "limit": str(limit)}
        return page_of(name, found[::-1][(page - 1) * limit : page * limit], **pages, **total)

    server.on(name, respond)
    client = server.client()
    query = client.transactions(start_height=100) if is_range else getattr(client, name)()
    query.to_parquet_series(tmp_path, settle=5)
    head -= 5 + behind
    if behind > 5:
        with pytest.raises(cf.ExportError, match="it is behind: run the export again later") as caught:
            query.to_parquet_series(tmp_path, settle=5)
        assert caught.value.retryable
    else:
        assert not query.to_parquet_series(tmp_path, settle=5).corrections
        assert read(tmp_path).num_rows == 55
    heights, head = range(100, 164), 163
    assert not query.to_parquet_series(tmp_path, settle=5).corrections
    assert sorted(read(tmp_path)["height"].to_pylist()) == list(range(100, 159))
