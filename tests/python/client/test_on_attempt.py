"""Reports of attempts: one for each request that was sent, on the caller's side, without secrets."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import multiprocessing
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, Fault, LocalService

CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="none")
FAULTS: list[Fault] = [
    {"kind": "status", "status": 503, "code": "50001", "times": 1},
    {"kind": "reset", "every": 4, "times": 8},
]


@pytest.fixture
def faulty() -> Iterator[LocalService]:
    with LocalService(transactions=300, faults=FAULTS) as running:
        yield running


def test_every_attempt_is_reported_before_the_result(faulty: LocalService) -> None:
    seen: list[cf.Attempt] = []
    with faulty.client(on_attempt=seen.append) as client:
        query = client.transactions()
        query.collect()
    assert len(seen) == query.report.requests == faulty.request_count
    assert sorted((each.status or 0) for each in seen) == sorted(entry["status"] for entry in faulty.request_log)
    first = next(each for each in seen if each.status == 503)
    assert (first.endpoint, first.number, first.code, first.error) == ("transactions", 1, "50001", None)
    assert first.url == f"{faulty.url}/api/v5/main/transaction/transaction-list"
    assert first.elapsed > 0
    assert first.started.tzinfo is not None
    assert {each.error for each in seen if each.status is None} <= {"read", "connect"}
    assert sum(each.number > 1 for each in seen) == query.report.retries
    assert all(each.code == "0" and each.bytes > 0 for each in seen if each.status == 200)


@pytest.mark.parametrize(("rate_limit", "rates"), [(40, {40.0}), (None, {None})])
def test_rate_is_that_of_the_rate_limiter(service: LocalService, rate_limit: float | None, rates: set[object]) -> None:
    seen: list[cf.Attempt] = []
    with service.client(rate_limit=rate_limit, on_attempt=seen.append) as client:
        client.blocks(max_items=5).collect()
    assert {each.rate for each in seen} == rates


def test_reports_contain_no_secret_and_no_parameter(service: LocalService) -> None:
    seen: list[cf.Attempt] = []
    with service.client(on_attempt=seen.append) as client:
        client.token_transfers("0xC0FFEE").collect()
    shown = repr(seen)
    assert seen
    assert not any(
        text in shown.lower() for text in (service.api_key, service.secret_key, service.passphrase, "c0ffee")
    )
    assert pickle.loads(pickle.dumps(seen)) == seen


def test_context_of_the_caller_is_kept(service: LocalService) -> None:
    seen: list[tuple[str, str]] = []

    def see(attempt: cf.Attempt) -> None:
        seen.append((attempt.endpoint, CALLER.get()))

    async def run(client: cf.Client) -> None:
        async def one(call: str) -> None:
            CALLER.set(call)
            await getattr(client, call)(max_items=1).collect_async()

        await asyncio.gather(*(one(call) for call in ("blocks", "tokens", "transactions")))

    def in_thread(call: str) -> None:
        CALLER.set(call)
        getattr(client, call)(max_items=1).collect()

    with service.client(on_attempt=see) as client:
        asyncio.run(run(client))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(in_thread, ("blocks", "tokens", "transactions")))
    assert len(seen) >= 6
    assert all(endpoint == caller for endpoint, caller in seen)


def test_replays_and_derived_clients_report(service: LocalService, tmp_path: Path) -> None:
    seen: list[cf.Attempt] = []
    with service.client(cassette=Cassette(tmp_path / "c.jsonl"), on_attempt=seen.append) as client:
        client.blocks(height=1).collect()
        client.with_options(timeout=9.0).blocks(height=2).collect()
    with cf.Client(cassette=Cassette(tmp_path / "c.jsonl", "none"), on_attempt=seen.append) as client:
        client.blocks(height=1).collect()
    assert [each.replayed for each in seen] == [False] * (len(seen) // 2 + 1) + [True] * (
        len(seen) - len(seen) // 2 - 1
    )
    assert seen[-1].status == 200


def test_deadline_and_cancellation_are_reported() -> None:
    seen: list[cf.Attempt] = []
    slow: Fault = {"kind": "delay", "seconds": 30}
    with LocalService(transactions=5, faults=[slow]) as service:
        with service.client(on_attempt=seen.append, deadline=0.1) as client, pytest.raises(cf.RequestTimeoutError):
            client.blocks().collect()
        assert [(each.error, each.status) for each in seen] == [("deadline", None)]
        reported = threading.Event()

        def see(attempt: cf.Attempt) -> None:
            seen.append(attempt)
            reported.set()

        async def cancelled(client: cf.Client) -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.blocks().collect_async(), 0.1)

        with service.client(on_attempt=see) as client:
            asyncio.run(cancelled(client))
            assert reported.wait(20)
        assert seen[-1].error == "cancelled"


def test_exception_of_the_callable_does_not_reach_the_caller(
    service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(unraisable.exc_value))

    def fail(_attempt: cf.Attempt) -> None:
        raise LookupError

    with service.client(on_attempt=fail) as client:
        assert len(client.blocks(max_items=3).collect()) == 3
    assert raised
    assert all(isinstance(error, LookupError) for error in raised)


def test_callable_that_waits_for_requests_raises(service: LocalService) -> None:
    errors: list[str] = []

    def ask(_attempt: cf.Attempt) -> None:
        try:
            client.tokens().first()
        except cf.ContextError as error:
            errors.append(str(error))

    with service.client(on_attempt=ask) as client:
        client.blocks(max_items=1).collect()
    assert "deadlock" in errors[0]


class Owner:
    def __init__(self, service: LocalService) -> None:
        self.attempts = 0
        self.client = service.client(on_attempt=self.see)
        self.other = self.client.with_options(timeout=7.0)
        self.query = self.other.blocks(max_items=1)

    def see(self, _attempt: cf.Attempt) -> None:
        self.attempts += 1


def test_owner_of_callable_and_client_is_collected(service: LocalService) -> None:
    owner = Owner(service)
    owner.query.collect()
    assert owner.attempts > 0
    dead = weakref.ref(owner)
    del owner
    gc.collect()
    assert dead() is None


def report_to(queue: Any, client: cf.Client) -> None:
    client.blocks(height=2).collect()
    queue.put("done")


def test_forked_child_reports_its_own_attempts(service: LocalService) -> None:
    seen: list[cf.Attempt] = []
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with service.client(on_attempt=seen.append) as client:
        client.blocks(height=1).collect()
        before = len(seen)
        child = context.Process(target=report_to, args=(queue, client))
        child.start()
        assert queue.get(timeout=30) == "done"
        child.join()
        assert len(seen) == before


def test_invalid_callable_is_rejected() -> None:
    with pytest.raises(cf.ConfigError, match=r"^on_attempt must"):
        cf.Client(on_attempt=3)  # type: ignore[arg-type]
