"""A cache of results: fewer requests, the same records, and nothing that contradicts the service."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cache_histories
import chainframe as cf
from chainframe.testing import Cassette, LocalService
from repository import ROOT
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "chainframe-2.sqlite3"


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=7, simulated=True) as running:
        yield running


def queries(client: cf.Client) -> dict[str, cf.Query[Any]]:
    """Queries of all kinds that a cache keeps."""
    plain = client.with_options(cache=None)
    newest = plain.transactions(max_items=1).collect()[0]
    low = (newest.height or 0) - 90
    ids = [each.tx_id for each in plain.transactions(start_height=low, end_height=low + 1).collect() if each.tx_id]
    token = plain.tokens(max_items=1).collect()[0].token_contract_address or ""
    return {
        "list without a count": client.transactions(),
        "list with a count": client.blocks(),
        "list with arguments": client.token_transfers(token),
        "list of another chain": client.cross_chain_transactions(),
        "beginning of a list": client.blocks(max_items=250),
        "range of heights": client.transactions(start_height=low, end_height=low + 20),
        "range of times": client.transactions(start_time="2026-01-10T00:00Z", end_time="2026-01-31T00:00Z"),
        "range up to the head": client.transactions(start_height=low),
        "lookups": client.transactions_by_hash(ids[:25]),
        "logs": client.logs(ids[:5]),
        "block": client.blocks(height=plain.blocks(max_items=200).collect()[-1].height),
    }


def test_second_read_takes_one_request_at_most_and_returns_the_same_records(
    service: LocalService, tmp_path: Path
) -> None:
    first = {name: query.collect() for name, query in queries(service.client(cache=tmp_path)).items()}
    client = service.client(cache=tmp_path)
    for name, query in queries(client).items():
        before = client.usage
        read = query.collect()
        assert read == first[name], name
        assert (client.usage - before).cached == len(read), name
        assert read.report.requests <= 1, (name, read.report)
        assert read.report.complete
        assert read.report.records == len(read)
        assert read.report.evidence == first[name].report.evidence, name
        used = read.report.cache
        assert used is not None
        assert (used["records"], used["reason"]) == (len(read), None), name
        assert used["as_of"].tzinfo is not None
        assert first[name].report.cache == {"records": 0, "as_of": None, "reason": None}


def test_all_collecting_methods_use_the_cache_and_streams_do_not(service: LocalService, tmp_path: Path) -> None:
    with service.client(cache=tmp_path) as client:
        records = client.blocks().collect()
        frame = client.blocks().to_pandas()

        def requests_of(read: Any) -> int:
            before = client.usage.requests
            read()
            return client.usage.requests - before

        assert requests_of(lambda: client.blocks().to_arrow()) == 1
        assert requests_of(lambda: client.blocks().to_polars()) == 1
        assert requests_of(lambda: client.blocks().to_dicts()) == 1
        assert requests_of(lambda: asyncio.run(client.blocks().collect_async())) == 1
        assert requests_of(lambda: asyncio.run(client.blocks().to_pandas_async())) == 1
        assert client.blocks().to_pandas().equals(frame)
        assert client.blocks().to_dicts() == records.to_dicts()
        pages = -(-len(records) // 100)
        assert requests_of(lambda: list(client.blocks())) >= pages
        assert requests_of(lambda: list(client.blocks().pages())) >= pages
        assert requests_of(lambda: client.blocks().to_parquet(tmp_path / "export")) >= pages
        assert requests_of(lambda: client.with_options(cache=None).blocks().collect()) >= pages
        assert client.with_options(cache=None).blocks().collect().report.cache is None


def test_new_records_are_read_and_joined_with_those_that_are_kept(service: LocalService, tmp_path: Path) -> None:
    with service.client(cache=tmp_path) as client:
        before = client.blocks().collect()
        service.growth = 40
        client.transactions_by_hash("0x00").report  # noqa: B018 - a query, without a request
        client.with_options(cache=None).blocks(max_items=1).collect()
        service.growth = 0
        read = client.blocks().collect()
        assert len(read) == len(before) + 40
        assert read == client.with_options(cache=None).blocks().collect()
        assert read.report.requests == 1
        assert read.report.cache is not None
        assert len(read) - 100 <= read.report.cache["records"] < len(before)


@pytest.mark.parametrize("page_size", [50, 20])
@pytest.mark.parametrize("growth", [0, 20])
@pytest.mark.parametrize("settle", [64, 100])
def test_settled_records_behind_the_first_page_take_the_pages_down_to_them(
    tmp_path: Path, page_size: int, growth: int, settle: int
) -> None:
    with LocalService(transactions=3_000, seed=7, simulated=True) as service:
        cache = cf.Cache(tmp_path, settle=settle)
        service.client(cache=cache).large_transactions(page_size=page_size).collect()
        service.growth = growth
        service.client().blocks(max_items=1).collect()
        service.growth = 0
        expected = service.client().large_transactions(page_size=page_size).collect()
        heights = [record.height or 0 for record in expected]
        settled = next(row for row, height in enumerate(heights) if height <= heights[0] - settle - growth)
        read = service.client(cache=cache).large_transactions(page_size=page_size).collect()
        assert list(read) == list(expected)
        assert settled > page_size
        assert read.report.cache is not None
        assert read.report.cache["records"] > 0
        assert (read.report.complete, read.report.rereads) == (True, 0)
        # Each page but the first begins with returned records.
        assert read.report.requests <= settled // (page_size - 10) + 2


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_list_that_may_have_lost_its_oldest_records_says_why_it_is_read_again(
    service: LocalService, tmp_path: Path
) -> None:
    newest = service.client().transactions(max_items=300).collect()
    addresses = dict.fromkeys(name for each in newest for name in (each.input or "").split(",") if name)
    reasons = []
    for address in addresses:
        first, again = [service.client(cache=tmp_path).address_transactions(address).collect() for _ in range(2)]
        assert list(first) == list(again)
        used = again.report.cache
        assert used is not None
        # It was requested as a whole, for a reason.
        assert (used["records"] == 0) == (used["reason"] is not None)
        reasons.append(used["reason"])
    aged = "The list may have lost its oldest records since it was kept, and was read again as a whole"
    assert {None, aged} <= set(reasons)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_list_that_ends_earlier_than_the_one_that_is_kept_is_read_again(tmp_path: Path) -> None:
    def row(height: int) -> dict[str, str]:
        return {"txid": f"0x{height}", "height": str(height), "blockHash": f"0xb{height}", "state": "success"}

    heights = list(range(300, 0, -1))

    def respond(request: Request) -> Response:
        page, limit = (int(request.query[name]) for name in ("page", "limit"))
        shown = [row(height) for height in heights[(page - 1) * limit : page * limit]]
        return page_of("transactions", shown, limit=str(limit), totalPage=str(-(-len(heights) // limit)))

    with StrictServer() as server:
        server.on("transactions", respond)
        for expected in (list(heights), [301, *heights], [302, 301, *heights[:-60]]):
            heights[:] = expected
            with server.client(cache=cf.Cache(tmp_path, settle=10)) as client:
                records = client.transactions(page_size=50).collect()
            assert [record.height for record in records] == expected
            cache = records.report.cache
            assert cache is not None
            assert (cache["records"] > 0) == (expected[0] == 301)
            # Nothing says that the API drops old records of this list.
            assert records.report.complete == (expected[0] != 302)


def test_reorganization_below_settled_heights_removes_all_that_is_kept_of_the_service(
    service: LocalService, tmp_path: Path
) -> None:
    plain = service.client()
    for query in queries(service.client(cache=tmp_path)).values():
        query.collect()
    service.reorg = (1, 100)
    plain.blocks(max_items=1).collect()
    service.reorg = None
    client = service.client(cache=tmp_path)
    read = client.blocks().collect()
    assert read == plain.blocks().collect()
    assert read.report.cache == {
        "records": 0,
        "as_of": None,
        "reason": "What was kept contradicted the service, and was removed",
    }
    assert [entry["call"] for entry in cf.Cache(tmp_path).entries()] == ["blocks"]


def test_lookups_of_one_request_are_compared_once_a_minute_and_always_if_strict(
    service: LocalService, tmp_path: Path
) -> None:
    with service.client(cache=tmp_path) as client:
        low = (client.transactions(max_items=1).collect()[0].height or 0) - 80
        newest = client.transactions(start_height=low, end_height=low + 3).collect()
        ids = [each.tx_id for each in newest if each.state == "success"][:3]
        for tx_id in ids:
            client.transactions_by_hash(tx_id or "").collect()
        second = service.client(cache=tmp_path)

        def requests(client: cf.Client) -> list[int]:
            return [client.transactions_by_hash(tx_id or "").collect().report.requests for tx_id in ids]

        assert requests(second) == [1, 0, 0]
        assert requests(second) == [0, 0, 0]
        assert requests(second.with_options(strict=True)) == [1, 1, 1]


def test_results_that_may_change_are_not_kept(service: LocalService, tmp_path: Path) -> None:
    with service.client(cache=tmp_path) as client:
        newest = client.blocks(max_items=1).collect()[0].height or 0
        reasons = [
            (client.tokens(), "A list that is not ordered by height is not kept"),
            (client.blocks(height=newest), "The records are not settled yet, and not kept"),
            (client.blocks(height=[newest, newest - 1]), "The records are not settled yet, and not kept"),
            (client.cross_chain_transactions(page_size=5), "Records without the hash of their block are kept in"),
            (client.resume(client.blocks(max_items=5).cursor or ""), "The rest of a result is not kept"),
        ]
        kept = len(client.cache.entries()) if client.cache else 0
        for query, reason in reasons:
            for _ in range(2):
                used = query.collect().report.cache
                assert used is not None
                assert used["records"] == 0
                assert used["reason"].startswith(reason)
        assert client.cache is not None
        assert len(client.cache.entries()) == kept


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"settle": 0}, "settle (0) must be at least 1"),
        ({"max_age": 0}, "max_age (0) must be a number of seconds above 0"),
        ({"max_age": float("nan")}, "max_age (NaN) must be a number of seconds above 0"),
        ({"max_bytes": 0}, "max_bytes (0) must be at least 1"),
        ({"directory": ""}, "directory ('') must name a file or directory"),
        ({"directory": "s3://bucket/cache"}, "directory (s3://...) must be a local path"),
        ({"directory": 5}, "directory must be a str or path; got int"),
    ],
)
def test_settings_out_of_range_are_rejected(given: dict[str, Any], problem: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"directory": tmp_path, **given}
    with pytest.raises(cf.ConfigError) as raised:
        cf.Cache(**settings)
    assert str(raised.value).startswith(problem)


def test_cache_is_a_setting_of_the_client(
    service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(cf.ConfigError, match=r"cache \(.*file\) cannot be created"):
        service.client(cache=file)
    with pytest.raises(cf.ConfigError, match="cache must be a Cache, the path of a directory or None"):
        service.client(cache=5)  # type: ignore[arg-type]
    monkeypatch.setenv("CHAINFRAME_CACHE", str(file))
    with pytest.raises(cf.ConfigError, match=r"CHAINFRAME_CACHE \(.*file\) cannot be created"):
        service.client()
    monkeypatch.setenv("CHAINFRAME_CACHE", str(tmp_path / "of the environment"))
    client = service.client()
    assert client.cache == cf.Cache(tmp_path / "of the environment")
    assert "of the environment" in client._repr_html_()
    assert client.with_options(cache=None).cache is None
    assert client.with_options(cache=tmp_path, strict=True).cache == cf.Cache(tmp_path)
    cache = cf.Cache(tmp_path, settle=3, max_age=5.0, max_bytes=7)
    assert service.client(cache=cache).cache == cache != cf.Cache(tmp_path)
    assert (cache.settle, cache.max_age, cache.max_bytes, cache.directory) == (3, 5.0, 7, tmp_path)
    assert pickle.loads(pickle.dumps(cache)) == cache
    assert repr(cache) == f"Cache({str(tmp_path)!r}, settle=3, max_age=5.0, max_bytes=7)"


def test_client_with_a_cassette_has_no_cache(tmp_path: Path) -> None:
    with LocalService(transactions=200) as service:
        for mode in ("all", "none"):
            client = service.client(cassette=Cassette(tmp_path / "c.jsonl", mode=mode), cache=tmp_path / "cache")
            assert client.blocks().collect().report.cache is None
            assert client.cache is not None
            assert client.cache.entries() == []


def test_report_of_a_cached_result_is_pickled_and_compared(service: LocalService, tmp_path: Path) -> None:
    client = service.client(cache=tmp_path)
    client.blocks().collect()
    report = client.blocks().collect().report
    assert pickle.loads(pickle.dumps(report)) == report
    assert pickle.loads(pickle.dumps(report)).cache == report.cache


def test_verification_does_not_use_the_cache(tmp_path: Path) -> None:
    with LocalService(transactions=300) as service, service.client(cache=tmp_path / "cache") as client:
        export = client.blocks().to_parquet(tmp_path / "export")
        before = client.usage.requests
        verification = export.verify(client, sample=5, seed=1)
        assert not verification.differences
        assert client.usage.requests - before == verification.requests
        assert client.cache is not None
        assert client.cache.entries() == []


def test_reads_through_the_cache_equal_fresh_ones_in_random_histories() -> None:
    outcome = cache_histories.run(range(60))
    assert outcome.different == []
    assert outcome.equal > 60 * cache_histories.READS * 0.9
    assert outcome.served.keys() >= {"blocks", "transactions", "large_transactions", "cross_chain_transactions", "logs"}
    assert outcome.saved > 0


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# Of tokens, which are ranked, nothing is kept; the dataset and the export of blocks request everything.
NOT_KEPT = {"tokens", "blocks"}


class SharedService(LocalService):
    """A service that a notebook does not close."""

    def close(self) -> None: ...


async def run_cells(cells: list[str]) -> None:
    names: dict[str, Any] = {}
    for cell in cells:
        waiting = eval(compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.isawaitable(waiting):
            await waiting


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_second_run_of_a_notebook_sends_one_request_for_each_list_at_most(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.setenv("CHAINFRAME_CACHE", str(tmp_path / "cache"))
    services: list[SharedService] = []

    def shared(**settings: Any) -> LocalService:
        if not services:
            services.append(SharedService(**settings))
        return services[0]

    monkeypatch.setattr("chainframe.testing.LocalService", shared)
    notebook = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = ["".join(cell["source"]) for cell in notebook if cell["cell_type"] == "code"]
    asyncio.run(run_cells(cells))
    first = services[0].request_count
    asyncio.run(run_cells(cells))
    second = services[0].request_log[first:]
    LocalService.close(services[0])
    lists = Counter(
        (each["call"], *sorted(item for item in each["params"].items() if item[0] not in {"page", "limit"}))
        for each in second
    )
    assert [each for each, count in lists.items() if count > 1 and each[0] not in NOT_KEPT] == []
    assert len(second) < first
