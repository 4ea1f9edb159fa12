"""`LocalService(simulated=True)`: the service in virtual time, without a socket."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService
from conftest import needs_extra

MINUTE = 60.0


def journal(service: LocalService) -> list[tuple[datetime, str, str, str]]:
    return [(entry["time"], entry["query"], str(entry["status"]), entry["code"]) for entry in service.request_log]


def test_every_call_returns_what_the_server_returns() -> None:
    with LocalService(transactions=400, seed=3) as real, LocalService(transactions=400, seed=3, simulated=True) as fake:
        for call in ("blocks", "transactions", "cross_chain_transactions", "tokens", "large_transactions"):
            there, here = (getattr(service.client(), call)().collect() for service in (real, fake))
            assert here.to_dicts() == there.to_dicts()
            assert here.report.complete


def test_retries_that_would_take_minutes_take_no_time() -> None:
    with LocalService(transactions=100, simulated=True) as service:
        service.faults = [{"kind": "throttle", "retry_after": 5 * MINUTE, "times": 3}]
        records = service.client(deadline=None, max_retries=5).blocks().collect()
    assert records.report.complete
    assert records.report.retries == 3
    # `Retry-After` is honoured up to a minute.
    assert records.report.elapsed > 3 * MINUTE
    times = [entry["time"] for entry in service.request_log]
    assert all((later - earlier).total_seconds() >= MINUTE for earlier, later in pairwise(times[:4]))


def test_failing_requests_are_repeated_until_max_retries() -> None:
    with LocalService(transactions=100, simulated=True) as service:
        service.faults = [{"kind": "status", "status": 503}]
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            service.client(max_retries=8, deadline=None).blocks().collect()
    assert caught.value.attempts == service.request_count == 9


@pytest.mark.parametrize(
    ("fault", "kind", "phase"),
    [
        ({"kind": "delay", "seconds": 100}, cf.RequestTimeoutError, "read"),
        ({"kind": "slow_body", "seconds": 100}, cf.RequestTimeoutError, "body"),
        ({"kind": "truncate"}, cf.TransportError, "body"),
        ({"kind": "reset"}, cf.TransportError, "read"),
        ({"kind": "oversized", "size_mib": 65}, cf.TransportError, "body"),
    ],
)
def test_faults_of_the_network_are_simulated(fault: Any, kind: type[cf.TransportError], phase: str) -> None:
    with LocalService(transactions=100, simulated=True, faults=[fault]) as service:
        client = service.client(max_retries=1)
        with pytest.raises(kind) as caught:
            client.blocks().collect()
        assert caught.value.phase == phase
        service.faults = []
        assert client.blocks().collect().report.complete


def test_deadline_ends_a_request_in_virtual_time() -> None:
    with LocalService(transactions=100, simulated=True, faults=[{"kind": "delay", "seconds": 50}]) as service:
        query = service.client(timeout=60, deadline=40).blocks()
        with pytest.raises(cf.RequestTimeoutError, match="deadline of 40 s exceeded") as caught:
            query.collect()
    assert caught.value.phase == "deadline"
    assert query.report.elapsed == pytest.approx(40, abs=1)


def test_rate_limits_of_client_and_service_take_virtual_time() -> None:
    with LocalService(transactions=400, simulated=True, rate_limit=2) as service:
        limited = service.client(rate_limit=0.5).blocks(page_size=5, max_items=100).collect()
        assert limited.report.elapsed >= 19 / 0.5
        assert limited.report.retries == 0
        fast = service.client(rate_limit="auto", max_retries=20, deadline=None).blocks(page_size=5).collect()
        assert fast.report.retries > 0


def test_clock_skew_is_corrected() -> None:
    with LocalService(transactions=100, simulated=True) as service:
        service.clock_skew = 3_600
        assert service.client().blocks(max_items=3).collect().report.retries == 1


def test_growth_per_second_follows_virtual_time() -> None:
    with LocalService(transactions=400, simulated=True, growth_rate=1) as service:
        client = service.client(rate_limit=0.1)
        heights = [block.height for block in client.blocks(page_size=10, max_items=50)]
        newest = client.blocks().first()
    assert newest is not None
    assert newest.height is not None
    assert heights[0] is not None
    assert newest.height - heights[0] >= 40
    assert heights == list(range(heights[0], heights[0] - 50, -1))


SCRIPT = """
import asyncio
import chainframe as cf
from chainframe.testing import Cassette, LocalService

faults = [{"kind": "throttle", "every": 3}, {"kind": "status", "status": 502, "every": 5}]
with LocalService(transactions=300, seed=%d, simulated=True, growth=2, faults=faults) as service:
    client = service.client(max_retries=20, deadline=None)
    read = len(client.blocks(page_size=7).collect())
    for page in client.transactions(page_size=20).pages():
        read += len(page.records)

    async def both():
        async with service.client(max_retries=20, deadline=None) as other:
            queries = (other.blocks(page_size=10), other.cross_chain_transactions(page_size=9))
            return await asyncio.gather(*(query.collect_async() for query in queries))

    read += sum(map(len, asyncio.run(both())))
    print(read)
    for entry in service.request_log:
        print(entry["time"], entry["path"], entry["query"], entry["status"], entry["code"], entry["faults"])
"""


def test_two_processes_with_one_seed_have_the_same_journal() -> None:
    def run(seed: int) -> str:
        done = subprocess.run([sys.executable, "-c", SCRIPT % seed], capture_output=True, text=True, check=True)
        return done.stdout

    first = run(5)
    assert first.count("\n") > 100
    assert run(5) == first
    assert run(6) != first


def test_awaited_queries_share_virtual_time() -> None:
    async def read(service: LocalService) -> tuple[list[int], float]:
        async with service.client(concurrency=8, deadline=None) as client:
            queries = [client.blocks(page_size=5, max_items=40) for _ in range(3)]
            results = await asyncio.gather(*(query.collect_async() for query in queries))
            rows = [block.height async for block in client.blocks(max_items=7)]
            assert rows == [block.height for block in results[0]][:7]
            return [len(result) for result in results], results[0].report.elapsed

    with LocalService(transactions=400, simulated=True) as service:
        service.faults = [{"kind": "throttle", "retry_after": 30, "times": 1}]
        lengths, seconds = asyncio.run(read(service))
    assert lengths == [40, 40, 40]
    assert seconds >= 30


def test_cancelled_await_ends_its_requests() -> None:
    async def cancel(service: LocalService) -> None:
        task = asyncio.ensure_future(service.client(deadline=None, max_retries=1_000).blocks().collect_async())
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with LocalService(transactions=100, simulated=True, faults=[{"kind": "throttle", "retry_after": 60}]) as service:
        asyncio.run(cancel(service))
        before = service.request_count
        service.faults = []
        assert service.client().blocks(max_items=1).collect().report.complete
        assert service.request_count == before + 1


def test_threads_share_a_simulated_client() -> None:
    with LocalService(transactions=400, simulated=True) as service, ThreadPoolExecutor(8) as pool:
        service.faults = [{"kind": "throttle", "retry_after": 20, "every": 7}]
        client = service.client(max_retries=50, deadline=None)
        expected = [block.height for block in client.blocks(page_size=20)]
        read = pool.map(lambda _: [block.height for block in client.blocks(page_size=20)], range(16))
        assert all(heights == expected for heights in read)


def test_iterator_is_read_by_several_threads() -> None:
    with LocalService(transactions=400, simulated=True) as service:
        stream, lock, seen = iter(service.client().blocks(page_size=5)), threading.Lock(), []

        def read() -> None:
            for block in stream:
                with lock:
                    seen.append(block.height)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(height or 0 for height in seen) == sorted(
            block.height or 0 for block in service.client().blocks()
        )


def attempt(service: LocalService, directory: Any) -> Any:
    client = service.client(max_retries=1)
    try:
        return client.blocks(page_size=10).to_parquet(directory, max_rows_per_file=40)
    except (cf.ServiceUnavailableError, cf.TransportError):
        return None


@needs_extra
def test_export_is_continued_after_failures(tmp_path: Any) -> None:
    """A run gives up when a request fails twice in a row; the next one continues it."""
    with LocalService(transactions=600, simulated=True, growth=1) as service:
        expected = [block.height for block in service.client().blocks()]
        service.faults = [{"kind": "status", "status": 503, "every": 3}, {"kind": "reset", "every": 4}]
        runs = 0
        while (export := attempt(service, tmp_path)) is None:
            runs += 1
            assert runs < 200
    assert runs >= 3
    assert export.complete
    parquet = pytest.importorskip("pyarrow.parquet")
    heights: list[int] = [row["height"] for part in export.parts for row in parquet.read_table(part).to_pylist()]
    assert len(set(heights)) == len(heights)
    assert set(heights) >= set(expected)


def test_settings_of_the_network_are_rejected() -> None:
    with pytest.raises(
        cf.ConfigError, match="port cannot be combined with simulated=True, which has no network; omit it"
    ):
        LocalService(transactions=1, simulated=True, port=8080)
    with pytest.raises(cf.ConfigError, match="compression"):
        LocalService(transactions=1, simulated=True, compression="gzip")
    with LocalService(transactions=1, simulated=True) as service:
        client = service.client(max_retries=0)
        with pytest.raises(cf.ConfigError, match="no URL; use its client"):
            _ = service.url
        assert repr(service).startswith("LocalService(simulated=True, ")
        network: dict[str, Any] = {"proxy": "http://127.0.0.1:1", "base_url": "http://127.0.0.1:1", "ca_bundle": "x"}
        for name, value in network.items():
            with pytest.raises(cf.ConfigError, match=name):
                service.client(**{name: value})
        with pytest.raises(TypeError, match="cannot pickle a client of a simulated LocalService"):
            pickle.dumps(client)
    with pytest.raises(cf.TransportError, match="the simulated service is closed"):
        client.blocks().collect()


def test_time_of_day_is_that_of_the_simulation() -> None:
    with LocalService(transactions=100, simulated=True) as service:
        service.client().blocks(max_items=1).collect()
        (entry,) = service.request_log
    assert entry["time"].date() == datetime(2026, 1, 31, tzinfo=UTC).date()


def test_options_and_cassettes_keep_a_client_simulated(tmp_path: Any) -> None:
    with LocalService(transactions=100, simulated=True) as service:
        service.faults = [{"kind": "throttle", "retry_after": 60, "times": 2}]
        client = service.client().with_options(deadline=None)
        assert client.blocks(max_items=2).collect().report.retries == 2
        path = tmp_path / "recorded.jsonl"
        recorded = service.client(cassette=Cassette(path, mode="all")).blocks(max_items=2).collect()
        replayed = service.client(cassette=Cassette(path, mode="none")).blocks(max_items=2)
        before = service.request_count
        assert replayed.collect().to_dicts() == recorded.to_dicts()
        assert service.request_count == before
