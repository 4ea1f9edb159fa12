"""Clients with other options that share what the first one has."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Fault, LocalService
from strict_server import StrictServer, page_of

SKEW: Fault = {"kind": "clock_skew", "seconds": 3_600}


def test_options_apply_to_the_new_client_alone() -> None:
    with LocalService(transactions=12, max_result_window=10) as service, service.client() as client:
        strict = client.with_options(strict=True, timeout=7.0, deadline=None, max_retries=0, rate_limit=50)
        assert strict != client
        assert "7 s, none" in strict._repr_html_()
        with pytest.raises(cf.IncompleteResultError):
            strict.transactions().collect()
        with pytest.warns(cf.IncompleteResultWarning):
            client.transactions().collect()
        assert client.with_options() == client
        assert strict.with_options(strict=False).rate_limit_state.rate == 50


def test_connections_are_shared(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"height": "1"}]))
    with server.client() as client:
        for timeout in (5.0, 6.0, 7.0):
            client.with_options(timeout=timeout).blocks().collect()
        client.blocks().collect()
        assert server.connections == 1


def test_clock_correction_is_shared() -> None:
    with LocalService(transactions=5, faults=[SKEW]) as service, service.client() as client:
        client.with_options(timeout=9.0).blocks().collect()
        rejected = [entry for entry in service.request_log if entry["status"] == 401]
        client.blocks().collect()
        client.with_options(max_retries=0).blocks().collect()
        assert [entry for entry in service.request_log if entry["status"] == 401] == rejected
        assert len(rejected) == 1


def test_rate_limiter_is_shared_unless_its_limit_is_another() -> None:
    throttled: Fault = {"kind": "throttle", "times": 2, "retry_after": 0}
    with LocalService(transactions=5, faults=[throttled]) as service, service.client(rate_limit=1e6) as client:
        client.with_options(timeout=9.0).blocks().collect()
        assert client.rate_limit_state.throttled == 2
        assert client.with_options(strict=True).rate_limit_state.throttled == 2
        assert client.with_options(rate_limit=1e6).rate_limit_state.throttled == 2
        assert client.with_options(rate_limit=9).rate_limit_state.throttled == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": None}, cf.ConfigError, "^timeout must be a finite number"),
        ({"timeout": 0}, cf.ConfigError, "^timeout .0. must be a number of seconds above 0"),
        ({"deadline": -1}, cf.ConfigError, "^deadline .-1. must be"),
        ({"max_retries": -1}, cf.ConfigError, "^max_retries .-1. must be between 0"),
        ({"rate_limit": 0}, cf.ConfigError, "^rate_limit .0. must be between"),
        ({"concurrency": 0}, cf.ConfigError, "^concurrency .0. must be between 1 and 256"),
        ({"progress": "never"}, cf.ConfigError, "^progress must be"),
        ({"base_url": "https://x.example"}, TypeError, "unexpected keyword argument 'base_url'"),
    ],
)
def test_invalid_option_is_named(client: cf.Client, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        client.with_options(**options)


def test_options_are_arguments_of_a_client() -> None:
    options = set(inspect.signature(cf.Client.with_options).parameters) - {"self"}
    assert options < set(inspect.signature(cf.Client).parameters)
