"""A simulated service in a forked child: a typed error, whatever the parent does meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

PROBLEM = "simulated service belongs to the process that made it; in a forked child, make another LocalService"


def raises_in_a_child(read: Callable[[], Any]) -> bool:
    """True if `read` raises `ConfigError` in a forked child, which is killed if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            read()
        except cf.ConfigError as error:
            code = 0 if str(error) == PROBLEM else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_client_of_the_parent_raises_in_a_forked_child() -> None:
    with LocalService(transactions=200, simulated=True) as service:
        client = service.client()
        assert raises_in_a_child(client.blocks().collect)
        stream = iter(client.blocks(page_size=5))
        first = next(stream)
        assert raises_in_a_child(lambda: list(stream))
        assert raises_in_a_child(lambda: asyncio.run(client.blocks().collect_async()))
        assert [first, *stream] == list(client.blocks())


def test_fork_during_requests_of_other_threads_leaves_no_child_waiting() -> None:
    with LocalService(transactions=200, simulated=True) as service:
        client, stop = service.client(), threading.Event()

        def read() -> None:
            while not stop.is_set():
                client.blocks(page_size=5).collect()

        def close() -> None:
            service.close()
            client.blocks().collect()

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            assert all(raises_in_a_child(close) for _ in range(10))
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_child_simulates_a_service_of_its_own() -> None:
    with LocalService(transactions=200, simulated=True) as parent:
        parent.client().blocks().collect()

        def read() -> None:
            with LocalService(transactions=200, simulated=True) as service:
                assert service.client().blocks(page_size=7).collect().report.complete
            parent.client().blocks().collect()

        assert raises_in_a_child(read)
