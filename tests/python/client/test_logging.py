"""Log records of requests."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Response, StrictServer, error, page_of

BLOCKS = page_of("blocks", [{"hash": "0x1"}])


def test_debug_logs_every_attempt(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chainframe")
    server.on("blocks", error(503, "50001"), Response(b"<html>"), error(429, "50011"), BLOCKS)
    with server.client(max_retries=3) as client:
        client.blocks().collect()
    attempts = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(attempts) == len(server.requests) == 4
    for number, text in enumerate(attempts, 1):
        assert text.startswith(f"GET {server.requests[0].target} attempt={number} status=")
        assert all(word in text for word in ("bytes=", "wait=", "elapsed="))
    fields = [[word for word in text.split() if word.startswith(("status", "code"))] for text in attempts]
    assert fields == [
        ["status=503", "code=50001"],
        ["status=200", "code=-"],
        ["status=429", "code=50011"],
        ["status=200", "code=0"],
    ]
    assert f"bytes={len(BLOCKS.body)}" in attempts[-1]


def test_retries_are_logged_as_warnings_and_throttles_as_info(
    server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "chainframe")
    server.on("blocks", error(503, "50001"), error(200, "50011"), BLOCKS)
    with server.client(max_retries=3) as client:
        asyncio.run(client.blocks().collect_async())
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "50001" in caplog.text
    assert "trying again in" in caplog.text


def test_transport_error_is_logged_with_its_phase(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chainframe")
    with server.client(base_url="http://127.0.0.1:1") as client, pytest.raises(cf.TransportError):
        client.blocks().collect()
    assert "phase=connect" in caplog.text


def test_log_level_of_the_logger_applies(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    server.on("blocks", BLOCKS)
    with server.client() as client:
        for level, records in ((logging.DEBUG, 1), (logging.INFO, 0), (logging.DEBUG, 1)):
            caplog.clear()
            caplog.set_level(level, "chainframe")
            client.blocks().collect()
            assert len(caplog.records) == records


def test_handler_that_sends_requests_is_rejected(service: LocalService, client: cf.Client) -> None:
    errors: list[BaseException] = []

    class Requesting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.name == "chainframe"
            try:
                client.blocks().first()
            except RuntimeError as error:
                errors.append(error)

    logger, handler = logging.getLogger("chainframe"), Requesting()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        assert len(client.tokens().collect()) > 0
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert errors
    assert service.url


PROGRAM = """
import logging, sys
exec(sys.argv[1])
import chainframe as cf
from chainframe.testing import LocalService
with LocalService(transactions=1, faults=[{"kind": "status", "status": 503, "times": 1}]) as service:
    service.client().blocks().collect()
"""


@pytest.mark.parametrize(
    ("level", "setup", "lines"),
    [
        (None, "", 0),
        ("", "", 0),
        ("debug", "", 3),
        ("WARNING", "", 1),
        ("error", "", 0),
        ("loud", "", 2),
        # Who has set up logging sees each record once, in a form of one's own.
        ("debug", "logging.basicConfig()", 3),
        (None, "logging.basicConfig()", 1),
    ],
)
def test_log_level_comes_from_the_environment(level: str | None, setup: str, lines: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CHAINFRAME_LOG"}
    if level is not None:
        environment["CHAINFRAME_LOG"] = level
    command = [sys.executable, "-c", PROGRAM, setup]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == lines
    assert all("chainframe" in line for line in done.stderr.splitlines())


def while_handling(client: cf.Client, handle: Callable[[], object]) -> list[BaseException]:
    """Errors of `handle`, which runs in a handler of each record while `client` collects."""
    errors: list[BaseException] = []

    class Handling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.name == "chainframe"
            try:
                handle()
            except cf.ChainframeError as error:
                errors.append(error)

    logger, handler = logging.getLogger("chainframe"), Handling()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        assert len(client.tokens().collect()) > 0
        assert len(asyncio.run(collected(client))) > 0
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    return errors


async def collected(client: cf.Client) -> cf.Records[cf.Token]:
    return await client.tokens().collect_async()


async def first_anext(client: cf.Client) -> object:
    return await anext(aiter(client.blocks()))


HANDLERS: dict[str, Callable[[cf.Client], object]] = {
    "collect": lambda client: client.blocks().collect(),
    "next": lambda client: next(iter(client.blocks())),
    "await": lambda client: asyncio.run(collected(client)),
    "anext": lambda client: asyncio.run(first_anext(client)),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_a_wait_in_a_handler_is_an_error(client: cf.Client, name: str) -> None:
    errors = while_handling(client, lambda: HANDLERS[name](client))
    assert errors
    assert all(isinstance(error, cf.ContextError) and "logging handler" in str(error) for error in errors)


def test_a_handler_that_waits_for_another_thread_delays_and_does_not_hang(client: cf.Client) -> None:
    done: list[int] = []

    def wait() -> None:
        if not done:
            done.append(0)
            thread = threading.Thread(target=lambda: done.append(len(client.blocks(max_items=3).collect())))
            thread.start()
            thread.join()

    assert while_handling(client, wait) == []
    assert done == [0, 3]


def test_handlers_run_with_the_context_of_the_caller_in_a_named_thread(client: cf.Client) -> None:
    request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")
    seen: set[tuple[str, str]] = set()

    async def run() -> None:
        request_id.set("async")
        async for _ in client.transactions(page_size=50):
            pass

    def iterate() -> None:
        request_id.set("sync")
        for _ in client.transactions(page_size=50):
            pass

    class Seeing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.name == "chainframe"
            seen.add((request_id.get(), threading.current_thread().name))

    logger, handler = logging.getLogger("chainframe"), Seeing()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        contextvars.copy_context().run(iterate)
        asyncio.run(run())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert seen == {("sync", "chainframe-log"), ("async", "chainframe-log")}
