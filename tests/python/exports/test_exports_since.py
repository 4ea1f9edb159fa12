"""`since`: a series of exports has each record once, however the list grew in between."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.exports import Export
from chainframe.testing import LocalService
from reference_client import WITH_HEIGHTS
from repository import ROOT
from strict_server import Request, Response, StrictServer, key_of, member_of, page_of, query_of, total_of

# An export of an address has no newer one without a start.
CALLS = [call for call in WITH_HEIGHTS if call != "address_transactions"]


class Chain:
    """A list that grows at its head on request, or by a number of records with each response."""

    def __init__(self, server: StrictServer, call: str, count: int, *, growth: int = 0, reach: int = 10_000) -> None:
        self.call, self.growth, self.reach = call, growth, reach
        self.rows: list[dict[str, str]] = []
        self.made = 0
        self.lock = Lock()
        self.grow(count)
        server.on(call, self.respond)

    def record(self, number: int) -> dict[str, str]:
        return {member_of(self.call, key_of(self.call)): f"0x{number:x}", "height": str(number)}

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.made += 1
            self.rows.insert(0, self.record(self.made))

    def respond(self, request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        # The rows of a response and its count are those of one instant.
        with self.lock:
            rows = self.rows.copy()
            self.grow(self.growth)
        reached = rows[: self.reach]
        members = {"totalPage": str(-(-len(reached) // limit)), "page": str(page), "limit": str(limit)}
        members |= total_of(self.call, len(rows))
        return page_of(self.call, reached[(page - 1) * limit : page * limit], **members)

    def query(self, client: cf.Client, **options: Any) -> cf.Query[Any]:
        return query_of(client, self.call, **options)


def ids(directory: Path, call: str) -> list[Any]:
    found: list[Any] = pq.read_table(directory).column(key_of(call)).to_pylist()
    return found


def newest_first(first: int, last: int) -> list[str]:
    return [f"0x{number:x}" for number in range(first, last - 1, -1)]


@pytest.mark.parametrize("call", CALLS)
def test_a_series_has_each_record_once(server: StrictServer, tmp_path: Path, call: str) -> None:
    chain = Chain(server, call, 70)
    client = server.client()
    days: list[Path] = []
    for new in (0, 3, 0, 0, 61, 1):
        chain.grow(new)
        day = tmp_path / str(len(days))
        before = len(server.requests)
        export = chain.query(client, page_size=50).to_parquet(
            day, since=days[-1] if days else None, max_rows_per_file=40
        )
        assert export.complete
        assert export.rows == (new if days else 70)
        if days and new < 20:
            assert len(server.requests) == before + 1
        days.append(day)
    assert [one for day in reversed(days) for one in ids(day, call)] == newest_first(135, 1)
    assert len({pq.read_table(day).schema for day in days}) == 1


@pytest.mark.parametrize("growth", [1, 7])
@pytest.mark.parametrize("call", ["blocks", "token_transfers"])
def test_records_added_meanwhile_belong_to_the_next_export(
    server: StrictServer, tmp_path: Path, call: str, growth: int
) -> None:
    chain = Chain(server, call, 40, growth=growth)
    client = server.client()
    days: list[Path] = []
    for number in range(6):
        day = tmp_path / str(number)
        chain.query(client, page_size=20).to_parquet(day, since=days[-1] if days else None, max_rows_per_file=15)
        days.append(day)
        chain.grow(number * 9)
    found = [one for day in reversed(days) for one in ids(day, call)]
    assert found == newest_first(len(found), 1)
    assert len(found) > 100


def test_since_accepts_an_export_its_directory_or_its_manifest(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "first")
    chain.grow(2)
    several: list[Any] = [first, first.path, str(first.path), first.manifest]
    for number, since in enumerate(several):
        assert chain.query(client).to_parquet(tmp_path / str(number), since=since).rows == 2


def test_first_export_of_a_series_may_be_empty(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 0)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.grow(5)
    second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    chain.grow(1)
    third = chain.query(client).to_parquet(tmp_path / "2", since=second)
    assert [first.rows, second.rows, third.rows] == [0, 5, 1]


def test_duplicate_records_are_distinguished_by_their_order(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "token_transfers", 30)
    client = server.client()
    duplicate = chain.rows[0]
    chain.rows[:0] = [duplicate] * 3
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.rows[:0] = [duplicate] * 2
    second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert (first.rows, second.rows) == (33, 2)


def test_record_with_a_changed_state_is_known(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    for row in chain.rows:
        row.update(state="success", blockHash="0xb", height="9", transactionTime="1700000000000")
    chain.grow(4)
    assert chain.query(client).to_parquet(tmp_path / "1", since=first).rows == 4


@pytest.mark.parametrize("stop", range(1, 9))
def test_failed_export_of_a_series_is_resumed(server: StrictServer, tmp_path: Path, stop: int) -> None:
    chain = Chain(server, "blocks", 40)
    client = server.client(concurrency=1)
    first = chain.query(client, page_size=10).to_parquet(tmp_path / "0")
    chain.grow(64)
    start = len(server.requests)

    def failing(request: Request) -> Response:
        return Response(b"", 503) if len(server.requests) == start + stop else chain.respond(request)

    server.on("blocks", failing)
    query = chain.query(client, page_size=10)
    day = tmp_path / "1"
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet(day, since=first, max_rows_per_file=25)
    chain.grow(5)
    with pytest.raises(cf.ExportError, match=r"since is '../0' \(SHA-256 \w{8}\) there and None here"):
        query.to_parquet(day)
    export = query.to_parquet(day, since=first, max_rows_per_file=25)
    # The first failure left no list to hold on to.
    top = 109 if stop == 1 else 104
    assert ids(day, "blocks") == newest_first(top, 41)
    assert export.complete
    sent = len(server.requests)
    assert query.to_parquet(day, since=first) == export
    assert len(server.requests) == sent


def test_watermark_beyond_the_result_window_is_reported(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 120, reach=9_990)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.grow(10_050)
    with pytest.warns(cf.IncompleteResultWarning, match="were not reached"):
        second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert (second.rows, second.complete) == (9_990, False)
    chain.grow(3)
    third = chain.query(client).to_parquet(tmp_path / "2", since=second)
    assert (third.rows, third.complete) == (3, True)


def test_list_without_the_watermark_is_rejected(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.rows = [chain.record(number) for number in range(1_000, 970, -1)]
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="are not in it"):
            chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert not json.loads((tmp_path / "1" / "_manifest.json").read_text())["finished"]


def test_since_rejects_an_export_of_another_query(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client, max_items=25).to_parquet(tmp_path / "0", numbers="string")
    with pytest.raises(
        cf.ExportError, match="chain is 'BETA_X' there and 'OTHER' here; since needs an export of the same query"
    ):
        client.blocks(chain="OTHER").to_parquet(tmp_path / "1", since=first)
    chain.grow(1)
    assert chain.query(client).to_parquet(tmp_path / "2", since=first).rows == 1


def test_since_rejects_lists_that_do_not_grow_at_their_head(client: cf.Client, tmp_path: Path) -> None:
    first = client.tokens().to_parquet(tmp_path / "0")
    with pytest.raises(
        cf.InvalidParameterError, match=r"since needs one list with its newest record first, or a range"
    ):
        client.tokens().to_parquet(tmp_path / "1", since=first)
    with pytest.raises(cf.InvalidParameterError, match="max_items must not be given with settle, with since"):
        client.blocks(max_items=3).to_parquet(tmp_path / "1", since=first)
    with pytest.raises(cf.InvalidParameterError, match=r"since must not be the directory"):
        client.blocks().to_parquet(tmp_path / "0", since=tmp_path / "0")
    with pytest.raises(cf.ExportError, match="holds no export"):
        client.blocks().to_parquet(tmp_path / "1", since=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_since_rejects_an_unfinished_export(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    server.on("blocks", chain.respond, Response(b"", 503))
    with pytest.raises(cf.ServiceUnavailableError):
        chain.query(client, page_size=10).to_parquet(tmp_path / "0")
    with pytest.raises(cf.ExportError, match="is not finished"):
        chain.query(client).to_parquet(tmp_path / "1", since=tmp_path / "0")


@pytest.mark.parametrize("call", ["token_transfers", "cross_chain_transactions", "large_transactions", "transactions"])
def test_series_against_the_local_service_has_each_record_once(tmp_path: Path, call: str) -> None:
    with LocalService(transactions=2_000, growth=5) as service, service.client(rate_limit=None) as client:
        token = next(iter(client.cross_chain_transactions())).token_contract_address
        query: cf.Query[Any] = (
            client.token_transfers(token or "") if call == "token_transfers" else getattr(client, call)()
        )
        exports = [query.to_parquet(tmp_path / "0")]
        for number in range(1, 5):
            exports.append(query.to_parquet(tmp_path / str(number), since=exports[-1]))
        whole = query.to_parquet(tmp_path / "whole")
    parts = [row for export in reversed(exports) for row in pq.read_table(export.path).to_pylist()]
    rows = pq.read_table(whole.path).to_pylist()
    assert parts == rows[len(rows) - len(parts) :]
    assert len(parts) > exports[0].rows


def test_nightly_recipe_of_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "guide" / "exports.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (recipe,) = [block for block in blocks if "to_parquet_series(" in block and "start_time=" not in block]
    monkeypatch.chdir(tmp_path)
    with LocalService(transactions=2_000) as service:
        for name in ("base_url", "api_key", "secret_key", "passphrase"):
            value = service.url if name == "base_url" else getattr(service, name)
            monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", value)
        for _ in range(2):
            exec(compile(recipe, "exports.md", "exec"), {})
            service.growth = 300
            service.client().cross_chain_transactions().first()
            service.growth = 0
        # A night that is cut off.
        service.set_faults([{"kind": "status", "status": 410, "path": "cross"}])
        with pytest.raises(cf.ServiceError):
            exec(compile(recipe, "exports.md", "exec"), {})
        service.set_faults([])
        exec(compile(recipe, "exports.md", "exec"), {})
        newest = [transfer.zone_block_height or 0 for transfer in service.client().cross_chain_transactions()]
    settled = sum(height <= max(newest) - 64 for height in newest)
    assert capsys.readouterr().out.splitlines()[-1] == str(settled)


@pytest.mark.parametrize("call", ["transactions", "blocks", "token_transfers"])
@pytest.mark.parametrize("depth", [1, 20])
def test_reorganized_head_costs_a_page_and_is_reported(
    server: StrictServer, tmp_path: Path, call: str, depth: int
) -> None:
    chain = Chain(server, call, 1_000)
    client = server.client()
    query = chain.query(client, page_size=50)
    first = query.to_parquet(tmp_path / "0")
    for row in chain.rows[:depth]:
        row.update({name: f"{value}f" for name, value in row.items() if name != "height"})
    chain.grow(5)
    before = len(server.requests)
    second = query.to_parquet(tmp_path / "1", since=first)
    assert len(server.requests) - before <= 2
    assert ids(second.path, call)[:5] == newest_first(1_005, 1_001)
    assert (second.rows, second.complete) == (5 + depth, True)
    reached = "1000 to 1000" if depth == 1 else "981 to 1000"
    assert second.report.reasons == [
        f"A reorganization removed {depth} of the newest records of the earlier export (heights {reached})."
    ]
    chain.grow(2)
    third = query.to_parquet(tmp_path / "2", since=second)
    assert (third.rows, third.report.reasons) == (2, [])


def test_records_that_a_reorganization_moved_are_not_exported_again(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 300)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.rows[:4] = [chain.rows[3], chain.rows[1], chain.rows[0]]
    chain.grow(2)
    second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert ids(second.path, "transactions") == newest_first(302, 301)
    (reason,) = second.report.reasons
    assert "removed 1 of the newest records of the earlier export (heights 298 to 298)" in reason
    assert chain.query(client).to_parquet(tmp_path / "2", since=second).rows == 0


def test_list_below_the_remembered_heights_is_not_read(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 1_000)
    client = server.client()
    query = chain.query(client, page_size=50)
    first = query.to_parquet(tmp_path / "0")
    for row in chain.rows[:150]:
        row["txid"] += "f"
    chain.grow(5)
    before = len(server.requests)
    with pytest.warns(cf.IncompleteResultWarning, match="below height 901 too"):
        second = query.to_parquet(tmp_path / "1", since=first)
    assert len(server.requests) - before <= 10
    assert (second.rows, second.complete) == (105, False)
    chain.grow(1)
    assert query.to_parquet(tmp_path / "2", since=second).rows == 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("behind", [1, 3, 60, 99])
def test_list_that_was_behind_for_a_night_repeats_nothing(
    server: StrictServer, tmp_path: Path, call: str, behind: int
) -> None:
    chain = Chain(server, call, 400)
    query = chain.query(server.client(), page_size=50)
    exports = [query.to_parquet(tmp_path / "0")]
    whole, chain.rows = chain.rows, chain.rows[behind:]
    exports += [query.to_parquet(tmp_path / "1", since=exports[-1])]
    chain.rows = whole
    chain.grow(5)
    exports += [query.to_parquet(tmp_path / "2", since=exports[-1])]
    chain.grow(2)
    exports += [query.to_parquet(tmp_path / "3", since=exports[-1])]
    assert [export.rows for export in exports] == [400, 0, 5, 2]
    assert [export.report.reasons for export in exports] == [[]] * 4


def test_list_that_ends_below_the_watermark_says_so_and_loses_nothing(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 400)
    query = chain.query(server.client(), page_size=50)
    first = query.to_parquet(tmp_path / "0")
    whole, chain.rows = chain.rows, chain.rows[150:]
    with pytest.warns(cf.IncompleteResultWarning, match="ends at height 250, below .* 301 and up.* is behind"):
        second = query.to_parquet(tmp_path / "1", since=first)
    assert (second.rows, second.complete) == (0, False)
    chain.rows = whole
    chain.grow(4)
    third = query.to_parquet(tmp_path / "2", since=second)
    assert (third.rows, third.report.reasons) == (4, [])


def test_records_that_were_removed_and_come_back_are_not_exported_again(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 300)
    query = chain.query(server.client(), page_size=50)
    exports = [query.to_parquet(tmp_path / "0")]
    removed, chain.rows = chain.rows[:3], chain.rows[3:]
    # Two nights later they are listed again, one after the other, above records that are new.
    for back in ([], [], removed[:1], removed[1:]):
        chain.grow(2)
        chain.rows[:0] = back
        chain.grow(1)
        exports.append(query.to_parquet(tmp_path / str(len(exports)), since=exports[-1]))
    assert [export.rows for export in exports] == [300, 3, 3, 3, 3]
    assert [len(export.report.reasons) for export in exports] == [0, 1, 0, 0, 0]
    found = [one for export in exports for one in ids(export.path, "transactions")]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("seed", range(25))
def test_series_answered_by_replicas_that_lag_has_each_record_once(
    server: StrictServer, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    call = CALLS[seed % len(CALLS)]
    chain = Chain(server, call, 150)
    query = chain.query(server.client(), page_size=chance.choice([7, 20, 50]))
    exports: list[Export] = []
    for night in range(7):
        chain.grow(chance.choice([0, 1, 4, 30]))
        whole = chain.rows
        chain.rows = whole[chance.choice([0, 0, 1, 5, 40]) :]
        exports.append(query.to_parquet(tmp_path / str(night), since=exports[-1] if exports else None))
        chain.rows = whole
    exports.append(query.to_parquet(tmp_path / "last", since=exports[-1]))
    found = [one for export in reversed(exports) for one in ids(export.path, call)]
    assert found == newest_first(chain.made, 1)
    assert not any(export.report.reasons for export in exports)
