"""`since`: a series of exports has each record once, however the list grew between them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.exports.anchor import Anchor
from chainframe.testing import LocalService
from strict_server import Answer, Request, StrictServer, page_of

CALLS = ["token_transfers", "cross_chain_transactions", "blocks", "large_transactions", "transactions"]
COUNTS = {"token_transfers": "totalTransfer", "cross_chain_transactions": "total", "blocks": "total"}


class Chain:
    """A list that grows at its head when it is told to, or by so many records with each answer."""

    def __init__(self, server: StrictServer, call: str, count: int, *, growth: int = 0, reach: int = 10_000) -> None:
        self.call, self.growth, self.reach = call, growth, reach
        self.rows: list[dict[str, str]] = []
        self.made = 0
        self.grow(count)
        server.on(call, self.answer)

    def record(self, number: int) -> dict[str, str]:
        name = {"blocks": "hash", "cross_chain_transactions": "id"}.get(self.call, "txid")
        return {name: f"0x{number:x}", "height": str(number)}

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.made += 1
            self.rows.insert(0, self.record(self.made))

    def answer(self, request: Request) -> Answer:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        reached = self.rows[: self.reach]
        members = {"totalPage": str(-(-len(reached) // limit)), "page": str(page), "limit": str(limit)}
        if self.call in COUNTS:
            members[COUNTS[self.call]] = str(len(self.rows))
        reply = page_of(self.call, reached[(page - 1) * limit : page * limit], **members)
        self.grow(self.growth)
        return reply

    def query(self, client: cf.Client, **options: Any) -> cf.Query[Any]:
        needed = ("0xa",) if self.call == "token_transfers" else ()
        query: cf.Query[Any] = getattr(client, self.call)(*needed, **options)
        return query


def ids(directory: Path, call: str) -> list[Any]:
    name = {"blocks": "hash", "cross_chain_transactions": "id"}.get(call, "tx_id")
    found: list[Any] = pq.read_table(directory).column(name).to_pylist()
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
        export = chain.query(client, page_size=50).to_parquet(day, since=days[-1] if days else None, rows_per_part=40)
        assert export.complete
        assert export.rows == (new if days else 70)
        if days and new < 20:
            assert len(server.requests) == before + 1
        days.append(day)
    assert [one for day in reversed(days) for one in ids(day, call)] == newest_first(135, 1)
    assert len({pq.read_table(day).schema for day in days}) == 1


@pytest.mark.parametrize("growth", [1, 7])
@pytest.mark.parametrize("call", ["blocks", "token_transfers"])
def test_a_list_that_grows_meanwhile_is_left_for_the_next(
    server: StrictServer, tmp_path: Path, call: str, growth: int
) -> None:
    chain = Chain(server, call, 40, growth=growth)
    client = server.client()
    days: list[Path] = []
    for number in range(6):
        day = tmp_path / str(number)
        chain.query(client, page_size=20).to_parquet(day, since=days[-1] if days else None, rows_per_part=15)
        days.append(day)
        chain.grow(number * 9)
    found = [one for day in reversed(days) for one in ids(day, call)]
    assert found == newest_first(len(found), 1)
    assert len(found) > 100


def test_it_takes_an_export_its_directory_or_its_manifest(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "first")
    chain.grow(2)
    several: list[Any] = [first, first.path, str(first.path), first.manifest]
    for number, since in enumerate(several):
        assert chain.query(client).to_parquet(tmp_path / str(number), since=since).rows == 2


def test_the_first_of_a_series_may_be_empty(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 0)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.grow(5)
    second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    chain.grow(1)
    third = chain.query(client).to_parquet(tmp_path / "2", since=second)
    assert [first.rows, second.rows, third.rows] == [0, 5, 1]


def test_identical_records_are_told_apart_by_their_places(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "token_transfers", 30)
    client = server.client()
    twin = chain.rows[0]
    chain.rows[:0] = [twin] * 3
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.rows[:0] = [twin] * 2
    second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert (first.rows, second.rows) == (33, 2)


def test_a_record_that_changed_its_state_is_the_same(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    for row in chain.rows:
        row.update(state="success", blockHash="0xb", height="9", transactionTime="1700000000000")
    chain.grow(4)
    assert chain.query(client).to_parquet(tmp_path / "1", since=first).rows == 4


@pytest.mark.parametrize("stop", range(1, 9))
def test_one_that_failed_goes_on(server: StrictServer, tmp_path: Path, stop: int) -> None:
    chain = Chain(server, "blocks", 40)
    client = server.client(concurrency=1)
    first = chain.query(client, page_size=10).to_parquet(tmp_path / "0")
    chain.grow(64)
    start = len(server.requests)

    def failing(request: Request) -> Answer:
        return Answer(b"", 503) if len(server.requests) == start + stop else chain.answer(request)

    server.on("blocks", failing)
    query = chain.query(client, page_size=10)
    day = tmp_path / "1"
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_parquet(day, since=first, rows_per_part=25)
    chain.grow(5)
    with pytest.raises(cf.ExportError, match="since is"):
        query.to_parquet(day)
    export = query.to_parquet(day, since=first, rows_per_part=25)
    # The first failure left no list to hold on to.
    top = 109 if stop == 1 else 104
    assert ids(day, "blocks") == newest_first(top, 41)
    assert export.complete
    sent = len(server.requests)
    assert query.to_parquet(day, since=first) == export
    assert len(server.requests) == sent


def test_what_lies_beyond_reach_is_said(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "transactions", 120, reach=9_990)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.grow(10_050)
    with pytest.warns(cf.IncompleteResultWarning, match="were not met"):
        second = chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert (second.rows, second.complete) == (9_990, False)
    chain.grow(3)
    third = chain.query(client).to_parquet(tmp_path / "2", since=second)
    assert (third.rows, third.complete) == (3, True)


def test_a_list_without_what_is_known_is_refused(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client).to_parquet(tmp_path / "0")
    chain.rows = [chain.record(number) for number in range(1_000, 970, -1)]
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="not in it any more"):
            chain.query(client).to_parquet(tmp_path / "1", since=first)
    assert not json.loads((tmp_path / "1" / "_manifest.json").read_text())["finished"]


def test_only_the_same_query_is_continued(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    first = chain.query(client, max_items=25).to_parquet(tmp_path / "0", numbers="string")
    with pytest.raises(cf.ExportError, match="chain is 'BETA_X' there and 'OTHER' here; only the same query"):
        client.blocks(chain="OTHER").to_parquet(tmp_path / "1", since=first)
    chain.grow(1)
    assert chain.query(client).to_parquet(tmp_path / "2", since=first).rows == 1


def test_what_cannot_be_continued_is_refused(client: cf.Client, tmp_path: Path) -> None:
    first = client.tokens().to_parquet(tmp_path / "0")
    with pytest.raises(cf.InvalidParameterError, match=r"since.*grows at its head"):
        client.tokens().to_parquet(tmp_path / "1", since=first)
    with pytest.raises(cf.InvalidParameterError, match=r"since.*max_items"):
        client.blocks(max_items=3).to_parquet(tmp_path / "1", since=first)
    with pytest.raises(cf.InvalidParameterError, match=r"since.*itself"):
        client.blocks().to_parquet(tmp_path / "0", since=tmp_path / "0")
    with pytest.raises(cf.ExportError, match="holds no export"):
        client.blocks().to_parquet(tmp_path / "1", since=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_an_export_under_way_cannot_be_continued(server: StrictServer, tmp_path: Path) -> None:
    chain = Chain(server, "blocks", 30)
    client = server.client()
    server.on("blocks", chain.answer, Answer(b"", 503))
    with pytest.raises(cf.ServiceUnavailableError):
        chain.query(client, page_size=10).to_parquet(tmp_path / "0")
    with pytest.raises(cf.ExportError, match="is not finished"):
        chain.query(client).to_parquet(tmp_path / "1", since=tmp_path / "0")


@pytest.mark.parametrize("call", ["token_transfers", "cross_chain_transactions", "large_transactions", "transactions"])
def test_the_local_service_has_a_series_too(tmp_path: Path, call: str) -> None:
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


def test_the_nightly_recipe_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    (recipe,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "since=" in block]
    monkeypatch.chdir(tmp_path)
    with LocalService(transactions=2_000, growth=5) as service:
        for name in ("base_url", "api_key", "secret_key", "passphrase"):
            value = service.url if name == "base_url" else getattr(service, name)
            monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", value)
        # A night that was cut off, and one that was not run at all.
        service.set_faults([{"kind": "status", "status": 410, "path": "cross"}])
        query = service.client().cross_chain_transactions()
        with pytest.raises(cf.ServiceError):
            query.to_parquet(tmp_path / "crossings" / "2020-01-01")
        service.set_faults([])
        for _ in range(2):
            exec(compile(recipe, "exports.md", "exec"), {})
        after = service.requests
        exec(compile(recipe, "exports.md", "exec"), {})
        assert service.requests == after
        now = [crossing.zone_tx_hash for crossing in query]
    days = sorted((tmp_path / "crossings").iterdir(), reverse=True)
    found = [one for day in days for one in pq.read_table(day).column("zone_tx_hash").to_pylist()]
    assert found == now[len(now) - len(found) :]
    assert len(found) > 50


def test_an_anchor_is_found_wherever_pages_cut_it() -> None:
    head = [f"{number}" for number in range(100)]
    whole = [*(f"new {number}" for number in range(33)), *head]
    for size in range(1, 60):
        anchor = Anchor(head)
        found = None
        for start in range(0, len(whole), size):
            found = anchor.feed(whole[start : start + size])
            if found is not None:
                break
            certain = start + len(whole[start : start + size]) - anchor.open
            assert certain <= 33
        assert found == 33


def test_an_anchor_of_twins_grows_until_it_is_one() -> None:
    anchor = Anchor(["a"] * 40 + ["b"])
    assert anchor.feed(["a"] * 47) is None
    assert anchor.open == 40
    assert anchor.feed(["b", "c"]) == 7
    with pytest.raises(cf.ExportError, match="cannot be told apart"):
        Anchor(["a", "b"] * 50)
