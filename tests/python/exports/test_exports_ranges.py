"""`since` for ranges of heights and times: a series of exports has each record once."""

from __future__ import annotations

import contextlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.exports import Export
from chainframe.testing import LocalService
from repository import ROOT
from strict_server import Request, Response, StrictServer, page_of

HOUR = 3_600_000
FIRST = 1_700_000_000_000


class Blocks:
    """A main chain of blocks with any number of transactions, one block an hour."""

    def __init__(self, server: StrictServer, *sizes: int) -> None:
        self.blocks: list[list[dict[str, str]]] = []
        self.made = 0
        self.extend(*sizes)
        server.on("transactions", self.respond)

    def extend(self, *sizes: int) -> None:
        for size in sizes:
            self.blocks.append([])
            self.grow(size)

    def grow(self, count: int) -> None:
        """Lists further transactions of the newest block."""
        height = len(self.blocks) + 99
        for _ in range(count):
            self.made += 1
            row = {"txid": f"0x{self.made:x}", "height": str(height), "transactionTime": str(self.time(height))}
            self.blocks[-1].insert(0, row)

    @staticmethod
    def time(height: int) -> int:
        return FIRST + (height - 100) * HOUR

    def respond(self, request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        if "height" in request.query:
            index = int(request.query["height"]) - 100
            rows = self.blocks[index] if 0 <= index < len(self.blocks) else []
        else:
            rows = [row for block in reversed(self.blocks) for row in block]
        pages = str(-(-len(rows) // limit))
        return page_of(
            "transactions", rows[(page - 1) * limit : page * limit], totalPage=pages, page=str(page), limit=str(limit)
        )


def ids(export: Export) -> list[str]:
    return [str(one) for one in pq.read_table(export.path).column("tx_id").to_pylist()]


@pytest.mark.parametrize("start", [{"start_height": 101}, {"start_time": FIRST + HOUR}])
def test_series_of_a_range_has_each_record_once(server: StrictServer, tmp_path: Path, start: dict[str, Any]) -> None:
    chain = Blocks(server, 3, 2, 0, 70)
    query: cf.Query[Any] = server.client().transactions(**start, page_size=50)
    exports = [query.to_parquet(tmp_path / "0", max_rows_per_file=20)]
    # The newest block grows, nothing happens, blocks are added, and an empty one is followed by a long one.
    for new in ([4], [], [1, 1], [0, 120], [0, 0, 1]):
        if new == [4]:
            chain.grow(4)
        else:
            chain.extend(*new)
        since = exports[-1]
        exports.append(query.to_parquet(tmp_path / str(len(exports)), since=since, max_rows_per_file=20))
    assert [export.rows for export in exports] == [72, 4, 0, 2, 120, 1]
    found = [one for export in exports for one in ids(export)]
    assert sorted(found) == sorted(row["txid"] for block in chain.blocks[1:] for row in block)
    assert all(export.complete and not export.report.reasons for export in exports)


def test_range_is_continued_at_its_last_block(server: StrictServer, tmp_path: Path) -> None:
    chain = Blocks(server, *[2] * 200)
    query = server.client().transactions(start_time=FIRST)
    first = query.to_parquet(tmp_path / "0")
    chain.extend(1)
    before = len(server.requests)
    assert query.to_parquet(tmp_path / "1", since=first).rows == 1
    # The newest block, the last one of the earlier export, and the new one.
    assert len(server.requests) - before == 3


def test_end_of_a_continued_range_may_move(server: StrictServer, tmp_path: Path) -> None:
    chain = Blocks(server, 1, 1, 1, 1, 1, 1)
    client = server.client()
    first = client.transactions(start_height=100, end_height=102).to_parquet(tmp_path / "0")
    second = client.transactions(start_height=100, end_height=104).to_parquet(tmp_path / "1", since=first)
    earlier = client.transactions(start_height=100, end_height=101).to_parquet(tmp_path / "2", since=second)
    last = client.transactions(start_height=100).to_parquet(tmp_path / "3", since=earlier)
    assert [export.rows for export in (first, second, earlier, last)] == [3, 2, 0, 1]
    by_time = client.transactions(start_time=chain.time(100), end_time=chain.time(102))
    first = by_time.to_parquet(tmp_path / "4")
    until = client.transactions(start_time=chain.time(100), end_time=chain.time(104) + 1)
    assert (first.rows, until.to_parquet(tmp_path / "5", since=first).rows) == (3, 2)
    with pytest.raises(cf.ExportError, match="start_height is 100 there and 101 here"):
        client.transactions(start_height=101).to_parquet(tmp_path / "6", since=tmp_path / "0")
    begun = datetime.fromtimestamp(chain.time(100) / 1000, UTC).isoformat()
    with pytest.raises(cf.ExportError, match=re.escape(f"start_time is '{begun}' there and None here")):
        client.transactions(start_height=101).to_parquet(tmp_path / "7", since=tmp_path / "4")


def test_removed_records_of_the_last_block_are_reported(server: StrictServer, tmp_path: Path) -> None:
    chain = Blocks(server, 1, 3)
    query = server.client().transactions(start_height=100)
    first = query.to_parquet(tmp_path / "0")
    chain.blocks[-1].pop()
    chain.extend(2)
    second = query.to_parquet(tmp_path / "1", since=first)
    assert (second.rows, second.complete) == (2, True)
    assert second.report.reasons == ["A reorganization removed 1 of the records of the earlier export at height 101."]


@pytest.mark.parametrize("stop", range(1, 8))
def test_failed_export_of_a_continued_range_is_resumed(server: StrictServer, tmp_path: Path, stop: int) -> None:
    chain = Blocks(server, 2, 3)
    query = server.client(concurrency=1).transactions(start_height=100)
    first = query.to_parquet(tmp_path / "0")
    chain.grow(2)
    chain.extend(2, 60, 1)
    start = len(server.requests)

    def failing(request: Request) -> Response:
        return Response(b"", 503) if len(server.requests) == start + stop else chain.respond(request)

    server.on("transactions", failing)
    with contextlib.suppress(cf.ServiceUnavailableError):
        query.to_parquet(tmp_path / "1", since=first, max_rows_per_file=10)
    second = query.to_parquet(tmp_path / "1", since=first, max_rows_per_file=10)
    assert sorted(ids(first) + ids(second)) == sorted(row["txid"] for block in chain.blocks for row in block)


def test_range_may_have_a_height_at_one_end_and_a_time_at_the_other(server: StrictServer) -> None:
    chain = Blocks(server, 1, 1, 1, 1, 1, 1)
    client = server.client()
    by_time = client.transactions(start_height=102, end_time=chain.time(104)).collect()
    by_height = client.transactions(start_time=chain.time(102), end_height=104).collect()
    assert [record.height for record in by_time] == [record.height for record in by_height] == [102, 103, 104]
    several: list[dict[str, Any]] = [
        {"start_height": 1, "start_time": FIRST},
        {"end_height": 1, "end_time": FIRST, "start_height": 0},
    ]
    for both in several:
        with pytest.raises(cf.InvalidParameterError, match="cannot be combined with"):
            client.transactions(**both)


def transactions_of(directory: Path) -> list[str]:
    files = sorted(directory.rglob("part-*.parquet"))
    return [str(one) for file in files for one in pq.read_table(file).column("tx_id").to_pylist()]


def more_than_a_list_can_hold(service: LocalService) -> None:
    service.growth = 1_500
    client = service.client(rate_limit=None)
    for _ in range(9):
        client.transactions().first()
    service.growth = 0


def test_nightly_recipe_of_many_transactions_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guide" / "exports.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (recipe,) = [block for block in blocks if "to_parquet_series(" in block and "start_time=" in block]
    recipe = f"import chainframe as cf\n{recipe}"
    monkeypatch.chdir(tmp_path)
    with LocalService(transactions=300) as service:
        newest = service.client().transactions(max_items=200).collect()
        begin = newest[-1].transaction_time
        assert begin is not None
        recipe = recipe.replace("2026-01-29T00:00Z", begin.isoformat())
        recipe = recipe.replace('("transactions")', '("transactions", settle=1)')
        for name in ("base_url", "api_key", "secret_key", "passphrase"):
            value = service.url if name == "base_url" else getattr(service, name)
            monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", value)
        exec(compile(recipe, "exports.md", "exec"), {})
        before = len(transactions_of(tmp_path / "transactions"))
        more_than_a_list_can_hold(service)
        exec(compile(recipe, "exports.md", "exec"), {})
        found = transactions_of(tmp_path / "transactions")
        records = service.client().transactions(start_time=begin).collect()
        end = max(record.height or 0 for record in records) - 1
        expected = [str(record.tx_id) for record in records if (record.height or 0) <= end]
    assert len(found) - before > 10_000
    assert sorted(found) == sorted(expected)


def test_command_continues_a_range_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalService(transactions=300) as service:
        for name in ("base_url", "api_key", "secret_key", "passphrase"):
            value = service.url if name == "base_url" else getattr(service, name)
            monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", value)
        client = service.client(rate_limit=None)
        begin = client.transactions(max_items=100).collect()[-1].transaction_time
        assert begin is not None
        call = ["transactions", "--start-time", begin.isoformat(), "-o"]
        assert main([*call, f"{tmp_path / '0'}/"]) == 0
        service.growth = 30
        client.transactions().first()
        service.growth = 0
        assert main([*call, f"{tmp_path / '1'}/", "--since", str(tmp_path / "0")]) == 0
        expected = [str(record.tx_id) for record in client.transactions(start_time=begin)]
    assert capsys.readouterr().err == ""
    assert sorted(transactions_of(tmp_path)) == sorted(expected)
    assert json.loads((tmp_path / "1" / "_manifest.json").read_text())["report"]["records"] >= 30


def test_range_that_was_behind_for_a_night_repeats_nothing(server: StrictServer, tmp_path: Path) -> None:
    chain = Blocks(server, 3, 2, 4, 2)
    query = server.client().transactions(start_height=100)
    exports = [query.to_parquet(tmp_path / "0")]
    whole, chain.blocks = chain.blocks, chain.blocks[:2]
    exports.append(query.to_parquet(tmp_path / "1", since=exports[-1]))
    # The last block is listed in part.
    chain.blocks = [*whole[:3], whole[3][:1]]
    exports.append(query.to_parquet(tmp_path / "2", since=exports[-1]))
    chain.blocks = whole
    chain.extend(1, 2)
    exports.append(query.to_parquet(tmp_path / "3", since=exports[-1]))
    assert [export.rows for export in exports] == [11, 0, 0, 3]
    assert not any(export.report.reasons for export in exports)


def test_transactions_that_moved_out_of_the_last_block_are_not_exported_again(
    server: StrictServer, tmp_path: Path
) -> None:
    chain = Blocks(server, 3, 2)
    query = server.client().transactions(start_height=100)
    exports = [query.to_parquet(tmp_path / "0")]
    moved, dropped = chain.blocks[-1]
    chain.blocks[-1] = []
    chain.extend(1)
    for row in (moved, dropped):
        exports.append(query.to_parquet(tmp_path / str(len(exports)), since=exports[-1]))
        chain.extend(1)
        chain.blocks[-1].append({**row, "height": str(len(chain.blocks) + 99)})
    exports.append(query.to_parquet(tmp_path / str(len(exports)), since=exports[-1]))
    assert [export.rows for export in exports] == [5, 1, 1, 1]
    assert [len(export.report.reasons) for export in exports] == [0, 1, 0, 0]
