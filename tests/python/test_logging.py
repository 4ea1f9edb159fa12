"""What is logged of requests, and where it goes."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from strict_server import Answer, StrictServer, error, page_of

BLOCKS = page_of("blocks", [{"hash": "0x1"}])


def test_debug_tells_of_every_attempt(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chainframe")
    server.on("blocks", error(503, "50001"), Answer(b"<html>"), error(429, "50011"), BLOCKS)
    with server.client(max_retries=3) as client:
        client.blocks().collect()
    attempts = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(attempts) == len(server.requests) == 4
    for number, text in enumerate(attempts, 1):
        assert text.startswith(f"GET {server.requests[0].target} attempt={number} status=")
        assert all(word in text for word in ("bytes=", "wait=", "elapsed="))
    told = [[word for word in text.split() if word.startswith(("status", "code"))] for text in attempts]
    assert told == [
        ["status=503", "code=50001"],
        ["status=200", "code=-"],
        ["status=429", "code=50011"],
        ["status=200", "code=0"],
    ]
    assert f"bytes={len(BLOCKS.body)}" in attempts[-1]


def test_retries_are_warnings_and_throttles_are_not(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chainframe")
    server.on("blocks", error(503, "50001"), error(200, "50011"), BLOCKS)
    with server.client(max_retries=3) as client:
        asyncio.run(client.blocks().collect_async())
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "50001" in caplog.text
    assert "trying again in" in caplog.text


def test_no_answer_is_told_with_its_phase(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chainframe")
    with server.client(base_url="http://127.0.0.1:1") as client, pytest.raises(cf.TransportError):
        client.blocks().collect()
    assert "phase=connect" in caplog.text


def test_a_logger_that_wants_less_is_told_less(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    server.on("blocks", BLOCKS)
    with server.client() as client:
        for level, records in ((logging.DEBUG, 1), (logging.INFO, 0), (logging.DEBUG, 1)):
            caplog.clear()
            caplog.set_level(level, "chainframe")
            client.blocks().collect()
            assert len(caplog.records) == records


def test_a_handler_that_asks_in_turn_is_refused_and_harms_nothing(service: LocalService, client: cf.Client) -> None:
    refusals: list[BaseException] = []

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.name == "chainframe"
            try:
                client.blocks().first()
            except RuntimeError as error:
                refusals.append(error)

    logger, handler = logging.getLogger("chainframe"), Asking()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        assert len(client.tokens().collect()) > 0
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert refusals
    assert service.url


PROGRAM = """
import logging, sys
exec(sys.argv[1])
import chainframe as cf
from chainframe.testing import LocalService
with LocalService(transactions=1, faults=[{"kind": "status", "status": 503, "first": 1}]) as service:
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
def test_the_environment_shows_records(level: str | None, setup: str, lines: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CHAINFRAME_LOG"}
    if level is not None:
        environment["CHAINFRAME_LOG"] = level
    command = [sys.executable, "-c", PROGRAM, setup]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == lines
    assert all("chainframe" in line for line in done.stderr.splitlines())
