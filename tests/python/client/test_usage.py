"""Usage of a client, and the bound of its requests."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService
from conftest import needs_extra

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=600, seed=11) as running:
        yield running


def test_usage_counts_what_the_service_received(service: LocalService) -> None:
    with service.client() as client:
        assert client.usage == cf.Client(base_url=service.url, api_key="a", secret_key="b", passphrase="c").usage
        before, received = client.usage, service.request_count
        report = client.blocks(page_size=20).collect().report
        client.with_options(timeout=5.0).transactions(max_items=3).collect()
        used = client.usage - before
    assert used.requests == service.request_count - received
    assert used.requests > report.requests
    assert used.bytes > report.bytes > 0
    assert (used.retries, used.throttled, used.replayed) == (0, 0, 0)
    assert str(used).startswith(f"{used.requests} requests, 0 retries, 0 throttled, ")
    assert pickle.loads(pickle.dumps(used)) == used
    assert repr(used).startswith(f"Usage(requests={used.requests}, retries=0, ")
    assert f"{used.requests}" in used._repr_html_()


def test_usage_counts_retries_and_throttles(service: LocalService) -> None:
    service.faults = [{"kind": "throttle", "times": 2}]
    try:
        with service.client() as client:
            client.blocks().first()
    finally:
        service.faults = []
    assert (client.usage.retries, client.usage.throttled) == (2, 2)
    assert client.usage.requests == 3


def test_replayed_requests_are_not_sent(service: LocalService, tmp_path: Path) -> None:
    for mode in ("all", "none"):
        with service.client(cassette=Cassette(tmp_path / "c.jsonl", mode=mode), max_requests=1) as client:
            client.blocks(height=5).collect()
        assert (client.usage.requests, client.usage.replayed) == ((1, 0) if mode == "all" else (0, 1))


@pytest.mark.parametrize("bound", [1, 2, 5, 9])
def test_bounded_runs_resumed_are_the_unbounded_result(service: LocalService, bound: int) -> None:
    with service.client() as client:
        whole = client.blocks(page_size=20).collect()
        query, records, runs = client.with_options(max_requests=bound + 1).blocks(page_size=20), [], 0
        while True:
            received, before, runs = service.request_count, client.usage, runs + 1
            try:
                records += list(query.collect())
            except cf.BudgetExceededError as stopped:
                error = stopped
            else:
                break
            assert service.request_count - received <= bound + 1 == (client.usage - before).requests
            assert (error.max_requests, error.retryable) == (bound + 1, False)
            assert error.cursor is not None
            records += list(query.partial)
            query = client.with_options(max_requests=bound + 1).resume(error.cursor)
        assert runs > 1
        assert records == list(whole)


def test_a_query_that_needs_more_requests_sends_none(service: LocalService) -> None:
    with service.client(max_requests=10) as client:
        newest = client.blocks().first()
        assert newest is not None
        assert newest.height is not None
        received = service.request_count
        query = client.transactions(start_height=newest.height - 19, end_height=newest.height)
        with pytest.raises(cf.BudgetExceededError, match=r"max_requests .*\(10\) leaves 9 requests.*at least 20"):
            query.collect()
        assert service.request_count == received
        assert client.usage.requests == 1


def test_the_bound_holds_for_retries_and_threads_together(service: LocalService) -> None:
    service.faults = [{"kind": "status", "status": 503, "every": 3}]
    received = service.request_count
    try:
        with service.client(max_requests=40, rate_limit=None) as client:

            def read() -> None:
                with suppress(cf.BudgetExceededError):
                    for _ in range(40):
                        client.blocks(page_size=5).first()

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        service.faults = []
    assert service.request_count - received == client.usage.requests == 40
    assert client.usage.retries > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_the_bound_holds_for_forked_children(service: LocalService) -> None:
    received = service.request_count
    with service.client(max_requests=6) as client:
        client.blocks().first()
        child = os.fork()
        if child == 0:
            try:
                for _ in range(4):
                    client.blocks().first()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.blocks().first()
        with pytest.raises(cf.BudgetExceededError):
            client.blocks().first()
    assert service.request_count - received == 6


def test_a_derived_client_counts_against_both_bounds(service: LocalService) -> None:
    with service.client(max_requests=3) as client:
        derived = client.with_options(max_requests=2)
        derived.blocks().first()
        derived.blocks().first()
        with pytest.raises(cf.BudgetExceededError, match=r"\(2\)"):
            derived.blocks().first()
        client.with_options(max_requests=None).blocks().first()
        with pytest.raises(cf.BudgetExceededError, match=r"\(3\)"):
            client.blocks().first()
        assert "3, of which 0 are left" in client._repr_html_()
        assert pickle.loads(pickle.dumps(cf.BudgetExceededError("x", max_requests=3))).max_requests == 3


def test_the_last_allowed_requests_are_for_the_next_pages(service: LocalService) -> None:
    for _ in range(20):
        with service.client(max_requests=3, concurrency=8) as client:
            query = client.blocks(page_size=20)
            with pytest.raises(cf.BudgetExceededError):
                query.collect()
            assert len(query.partial) == 60


def test_an_export_keeps_what_the_bound_allowed(service: LocalService, tmp_path: Path) -> None:
    with service.client() as client:
        whole = client.blocks(page_size=20).collect()
        with pytest.raises(cf.BudgetExceededError):
            client.with_options(max_requests=4).blocks(page_size=20).to_parquet(
                tmp_path / "blocks", max_rows_per_file=20
            )
        before = client.usage
        export = client.blocks(page_size=20).to_parquet(tmp_path / "blocks", max_rows_per_file=20)
    assert export.rows == len(whole)
    assert (client.usage - before).requests < whole.report.requests


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("RATE_LIMIT", "fast", 'CHAINFRAME_RATE_LIMIT must be auto, none or requests per second; got "fast"'),
        ("RATE_LIMIT", "0", "rate_limit .* must be between"),
        ("CONCURRENCY", "several", 'CHAINFRAME_CONCURRENCY must be auto or an integer; got "several"'),
        ("CONCURRENCY", "0", r"concurrency .*\(0\) must be between 1 and 256"),
        ("MAX_REQUESTS", "many", 'CHAINFRAME_MAX_REQUESTS must be an integer; got "many"'),
        ("MAX_REQUESTS", "0", r"max_requests .*\(0\) must be at least 1"),
    ],
)
def test_malformed_variables_are_config_errors(
    service: LocalService, monkeypatch: pytest.MonkeyPatch, name: str, value: str, text: str
) -> None:
    monkeypatch.setenv(f"CHAINFRAME_{name}", value)
    with pytest.raises(cf.ConfigError, match=text):
        service.client()


def shown_by(client: cf.Client, setting: str) -> str:
    _, _, row = client._repr_html_().partition(f"<th>{setting}</th>")
    return row.partition("</td>")[0].rpartition(">")[2]


def test_variables_apply_where_no_argument_is_given(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINFRAME_RATE_LIMIT", "2.5")
    monkeypatch.setenv("CHAINFRAME_MAX_REQUESTS", "7")
    monkeypatch.setenv("CHAINFRAME_CONCURRENCY", "3")
    assert shown_by(service.client(), "concurrency") == "3"
    assert shown_by(service.client(concurrency=9), "concurrency") == "9"
    monkeypatch.setenv("CHAINFRAME_CONCURRENCY", "auto")
    assert "auto" in shown_by(service.client(), "concurrency")
    assert service.client().rate_limit_state.rate == 2.5
    assert "7, of which 7 are left" in service.client()._repr_html_()
    assert service.client(rate_limit=None).rate_limit_state.rate is None
    monkeypatch.setenv("CHAINFRAME_RATE_LIMIT", "none")
    assert service.client().rate_limit_state.rate is None
    # A rate that grew with earlier tests is none.
    assert "auto" in shown_by(service.client(rate_limit="auto"), "rate limit")
    assert shown_by(service.client(), "rate limit") == "none"


@needs_extra
def test_stats_and_max_requests_of_the_command(service: LocalService, tmp_path: Path) -> None:
    settings = {
        f"CHAINFRAME_{name.upper()}": getattr(service, name) for name in ("api_key", "secret_key", "passphrase")
    }
    environment = {**os.environ, **settings, "CHAINFRAME_BASE_URL": service.url}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "chainframe", "blocks", "--page-size", "20", "--stats", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    received = service.request_count
    bounded = run("--max-requests", "3", "-o", f"{tmp_path}/blocks/", "--max-rows-per-file", "20")
    assert service.request_count - received <= 3
    assert bounded.returncode == 6
    lines = bounded.stderr.splitlines()
    assert lines[0].startswith("chainframe: 3 requests, 0 retries, 0 throttled, ")
    assert "--max-requests" in lines[1]
    assert "records saved; rerun with --resume to continue" in lines[1]
    assert run("-o", f"{tmp_path}/blocks/").returncode == 0
