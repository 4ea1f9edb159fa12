"""`Client(credentials=...)`: a callable that issues credentials."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService

SECRET = "the-token-of-a-vault-4711"


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=300, seed=7) as service:
        yield service


class Issuer:
    """Issues credentials of a service, after some that it rejects."""

    def __init__(self, service: LocalService, *, rejected: int = 0, lasting: float | None = None) -> None:
        self.service, self.rejected, self.lasting = service, rejected, lasting
        self.calls = 0
        self.threads: set[int] = set()

    def __call__(self) -> cf.Credentials:
        self.calls += 1
        self.threads.add(threading.get_ident())
        key = f"{SECRET}-{self.calls}" if self.calls <= self.rejected else self.service.api_key
        expires = None if self.lasting is None else dt.datetime.now(dt.UTC) + dt.timedelta(seconds=self.lasting)
        return cf.Credentials(key, self.service.secret_key, self.service.passphrase, expires_at=expires)


def client_of(service: LocalService, issue: Callable[[], object], **options: Any) -> cf.Client:
    return service.client(credentials=cast("Any", issue), **options)


def test_callable_is_asked_once_before_the_first_request(service: LocalService) -> None:
    issue = Issuer(service, lasting=3_600)
    with client_of(service, issue) as client:
        assert issue.calls == 0
        for query in (
            client.blocks(max_items=500),
            client.tokens(),
            client.with_options(timeout=5).transactions(max_items=3),
        ):
            assert len(query.collect()) > 0
        asyncio.run(client.blocks(max_items=3).collect_async())
    assert issue.calls == 1
    assert threading.get_ident() not in issue.threads


def test_callable_is_asked_again_before_its_credentials_expire(service: LocalService) -> None:
    issue = Issuer(service, lasting=30)
    with client_of(service, issue, concurrency=1) as client:
        report = client.blocks(max_items=250).collect().report
    assert issue.calls == report.requests > 1


def test_rejected_credentials_are_replaced_once(service: LocalService) -> None:
    issue = Issuer(service, rejected=1)
    with client_of(service, issue) as client:
        assert len(client.blocks(max_items=5).collect()) == 5
        assert len(client.blocks(max_items=5).collect()) == 5
    assert issue.calls == 2
    issue = Issuer(service, rejected=9)
    with client_of(service, issue, max_retries=0) as client, pytest.raises(cf.AuthenticationError) as caught:
        client.blocks(max_items=5).collect()
    assert issue.calls == 2
    assert SECRET not in f"{caught.value!r} {getattr(caught.value, '__notes__', '')}"


def test_same_credentials_after_a_rejection_are_not_sent_again(service: LocalService) -> None:
    before = service.request_count
    wrong = cf.Credentials("wrong-key", "secret", "passphrase")
    with client_of(service, lambda: wrong) as client, pytest.raises(cf.AuthenticationError):
        client.blocks(max_items=5).collect()
    assert service.request_count == before + 1


def test_requests_at_the_same_time_ask_once(service: LocalService) -> None:
    issue = Issuer(service, rejected=1)
    with client_of(service, issue, rate_limit=None) as client, ThreadPoolExecutor(8) as threads:
        lengths = list(threads.map(lambda _: len(client.blocks(max_items=300).collect()), range(8)))
    assert lengths == [300] * 8
    assert issue.calls == 2


def test_callable_may_wait_for_requests(service: LocalService) -> None:
    """It would never end in a thread of the core, which has one."""
    issue = Issuer(service)

    def ask() -> cf.Credentials:
        with service.client() as other:
            assert len(other.blocks(max_items=3).collect()) == 3
        return issue()

    with client_of(service, ask) as client:
        assert len(client.blocks(max_items=3).collect()) == 3


def test_exception_of_the_callable_is_named_without_its_text(
    service: LocalService, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> cf.Credentials:
        raise PermissionError(SECRET)

    before = service.request_count
    caplog.set_level(logging.DEBUG, "chainframe")
    with (
        client_of(service, fail) as client,
        pytest.raises(cf.ConfigError, match="credentials raised PermissionError") as caught,
    ):
        client.blocks(max_items=3).collect()
    assert service.request_count == before
    assert SECRET not in f"{caught.value!r} {caplog.text}"


@pytest.mark.parametrize(
    ("issued", "problem"),
    [
        ("key", r"credentials must return chainframe\.Credentials; got str"),
        (None, r"credentials must return chainframe\.Credentials; got NoneType"),
        (cf.Credentials("key"), "must not be empty"),
        (cf.Credentials("key\n", "secret", "passphrase"), r"api_key .*must not contain control characters"),
        (cf.Credentials(3, "secret", "passphrase"), r"must return chainframe\.Credentials of strings: TypeError"),  # type: ignore[arg-type]
    ],
)
def test_invalid_credentials_raise_before_a_request(service: LocalService, issued: object, problem: str) -> None:
    before = service.request_count
    with client_of(service, lambda: issued) as client, pytest.raises(cf.ConfigError, match=problem):
        client.blocks(max_items=3).collect()
    assert service.request_count == before


def test_settings_that_contradict_each_other_are_refused(service: LocalService) -> None:
    with pytest.raises(cf.ConfigError, match="credentials replaces api_key, secret_key and passphrase"):
        client_of(service, Issuer(service), api_key="key")
    with pytest.raises(cf.ConfigError, match="credentials must be callable"):
        client_of(service, cast("Any", "key"))


def test_credentials_do_not_show_or_pickle_their_secrets() -> None:
    credentials = cf.Credentials(SECRET, SECRET, SECRET, expires_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    assert SECRET not in repr(credentials)
    with pytest.raises(TypeError, match="cannot pickle credentials"):
        pickle.dumps(credentials)
    with pytest.raises(ValueError, match="must have a time zone"):
        cf.Credentials(SECRET, expires_at=dt.datetime(2026, 1, 1))  # noqa: DTZ001


def issue_of_module() -> cf.Credentials:
    return cf.Credentials(SECRET, "secret", "passphrase")


def test_client_pickles_the_name_of_the_callable(service: LocalService) -> None:
    with client_of(service, issue_of_module) as client:
        pickled = pickle.dumps(client)
        assert b"issue_of_module" in pickled
        assert SECRET.encode() not in pickled
        assert pickle.loads(pickled) == client
        assert client != client_of(service, Issuer(service))


def test_rate_limiter_belongs_to_the_account() -> None:
    with LocalService(transactions=300, seed=7, rate_limit=3) as service:
        issue = Issuer(service, rejected=1, lasting=30)
        with client_of(service, issue) as client, client_of(service, issue) as other:
            client.blocks(page_size=10, max_items=200).collect()
            throttled = client.rate_limit_state.throttled
            assert throttled > 0
            assert other.rate_limit_state.throttled == throttled
        assert issue.calls > 2


def test_cassette_of_rotated_credentials_has_no_secret_and_replays(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    issue = Issuer(service, rejected=1)
    with client_of(service, issue, cassette=Cassette(path)) as client:
        blocks = client.blocks(max_items=5).collect().to_dicts()
    recorded = path.read_text(encoding="utf-8")
    assert not any(secret in recorded for secret in (SECRET, service.api_key, service.secret_key, service.passphrase))
    calls = issue.calls
    with client_of(service, issue, cassette=Cassette(path, mode="none")) as client:
        assert client.blocks(max_items=5).collect().to_dicts() == blocks
    assert issue.calls == calls


@pytest.mark.parametrize("derived", [False, True])
def test_callable_that_requests_with_its_own_client_raises(service: LocalService, *, derived: bool) -> None:
    clients: list[cf.Client] = []
    raised: list[Exception] = []

    def issue() -> cf.Credentials:
        try:
            clients[derived].blocks(max_items=3).collect()
        except cf.ContextError as error:
            raised.append(error)
        return Issuer(service)()

    with client_of(service, issue) as client:
        clients += [client, client.with_options(timeout=5)]
        assert len(client.blocks(max_items=3).collect()) == 3
        assert len(client.blocks(max_items=3).collect()) == 3
    assert [str(error).startswith("credentials sends a request with the client") for error in raised] == [True]


def test_callable_that_does_not_return_is_given_up_at_the_deadline(service: LocalService) -> None:
    may_return = threading.Event()

    def issue() -> cf.Credentials:
        may_return.wait()
        return Issuer(service)()

    try:
        with (
            client_of(service, issue, deadline=0.1) as client,
            pytest.raises(cf.RequestTimeoutError, match=r"not issued within the deadline of 0\.1 s"),
        ):
            client.blocks(max_items=3).collect()
    finally:
        may_return.set()


def test_callable_without_a_hash_issues_the_credentials_of_its_own_account(service: LocalService) -> None:
    class Unhashable(Issuer):
        __hash__ = None  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]

    with client_of(service, Unhashable(service)) as client:
        assert len(client.blocks(max_items=3).collect()) == 3


@pytest.mark.parametrize("expires_at", ["2030-01-01", 1e9, dt.date(2030, 1, 1)])
def test_expiry_that_is_no_datetime_is_a_type_error(expires_at: Any) -> None:
    with pytest.raises(
        TypeError, match=f"^expires_at must be a datetime with a time zone; got {type(expires_at).__name__}$"
    ):
        cf.Credentials(SECRET, expires_at=expires_at)
