"""Network faults: slow, truncated and oversized responses, redirects, certificates, proxies and outages."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import Fault, LocalService
from strict_server import PATHS, Request, Response, StrictServer, envelope, error, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BLOCKS = page_of("blocks", [{"hash": "0x1"}])

pytestmark = pytest.mark.usefixtures("no_network_settings")


def transport_error(client: cf.Client) -> cf.TransportError:
    with client, pytest.raises(cf.TransportError) as caught:
        client.blocks().collect()
    assert "\n" not in str(caught.value)
    return caught.value


# Eight ways in which a third of the responses fail; together they select every third request.
STORM: list[Fault] = [
    {"kind": "status", "status": 503, "code": "50001", "every": 21},
    {"kind": "code", "code": "50013", "every": 24},
    {"kind": "throttle", "retry_after": 0.01, "every": 27},
    {"kind": "reset", "every": 6},
    {"kind": "truncate", "every": 15},
    {"kind": "html", "status": 200, "every": 18},
    {"kind": "status", "status": 502, "every": 33},
    {"kind": "empty", "path": "transaction-list", "every": 12},
]


def test_many_faults_lose_and_repeat_no_record() -> None:
    with LocalService(transactions=5_000, seed=3) as service:
        with service.client(rate_limit=None) as calm:
            expected = [record.tx_id for record in calm.transactions()]
        # The first page promises the others; an empty one in its place would be an empty list.
        for faults, concurrency in ((STORM, 4), (STORM[::-1], 16)):
            before = service.request_count
            service.set_faults(faults)
            settings: Any = {"max_response_bytes": 1 << 20, "max_retries": 12, "concurrency": concurrency}
            with service.client(rate_limit=None, **settings) as client:
                records = client.transactions().collect()
            assert [record.tx_id for record in records] == expected
            assert len(expected) == len(set(expected)) == 5_000
            assert records.report.complete
            assert records.report.retries > 0.3 * records.report.pages
            assert service.request_count - before == records.report.requests


@pytest.mark.parametrize("kind", ["truncate", "html", "reset", "empty"])
def test_transient_faults_are_retried(kind: Any) -> None:
    extra: dict[str, Any] = {"html": {"status": 200}}.get(kind, {})
    with (
        LocalService(transactions=200) as service,
        service.client(rate_limit=None, max_response_bytes=1 << 20) as client,
    ):
        expected = client.transactions().collect().to_dicts()
        fault: Any = {"kind": kind, "every": 2, **extra}
        service.set_faults([fault])
        records = client.transactions().collect()
        assert records.to_dicts() == expected
        assert records.report.retries >= 2


def test_retry_budget_bounds_requests_during_an_outage() -> None:
    with LocalService(transactions=10) as service:
        service.set_faults([{"kind": "status", "status": 503}])

        def fail(client: cf.Client) -> None:
            with pytest.raises(cf.ServiceUnavailableError):
                client.blocks().collect()

        with service.client(rate_limit=None, max_retries=1) as client:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(fail, [client] * 250))
            assert service.request_count == 250 + 100
            service.set_faults([])
            client.blocks().collect()
            service.set_faults([{"kind": "status", "status": 503, "times": 1}])
            assert client.blocks().collect().report.retries == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404])
def test_permanent_errors_are_not_retried(server: StrictServer, status: int) -> None:
    server.on("blocks", error(status, "59999", **{"Retry-After": "1"}))
    with server.client(max_retries=5) as client, pytest.raises(cf.ServiceError) as caught:
        client.blocks().collect()
    assert len(server.requests) == 1
    assert not caught.value.retryable


def test_implausible_retry_after_is_not_awaited(server: StrictServer) -> None:
    """A minute is the most that a service is obeyed, and the deadline comes before it."""
    server.on("blocks", error(429, "50011", **{"Retry-After": "1e9"}))
    with server.client(max_retries=5, deadline=20) as client, pytest.raises(cf.RateLimitError) as caught:
        client.blocks().collect()
    assert len(server.requests) == 1
    assert caught.value.retry_after == 1e9


@pytest.mark.parametrize(
    ("body", "again"),
    [
        (b"", True),
        (b"<html>back soon</html>", True),
        (BLOCKS.body[:-9], True),
        (b"\xff\xfe", True),
        (BLOCKS.body.replace(b'"0x1"', b"[" * 100_000), True),
        (b'{"code":"0","msg":""}', False),
        (envelope([{"data": [{"height": "x"}]}]), False),
    ],
)
def test_invalid_body_is_a_format_error(server: StrictServer, body: bytes, again: bool) -> None:  # noqa: FBT001 - a column
    server.on("blocks", Response(body))
    with server.client(max_retries=2) as client, pytest.raises(cf.ResponseFormatError) as caught:
        client.blocks().collect()
    assert caught.value.retryable is again
    assert len(server.requests) == 1 + 2 * again


def bomb(mib: int) -> bytes:
    return gzip.compress(b" " * (mib << 20), 9)


@pytest.mark.parametrize(
    "response",
    [
        lambda: Response(b" " * 100_001),
        # Made in the test, not by every worker that lists it.
        lambda: Response(bomb(64), headers={"Content-Encoding": "gzip"}),
        # In chunks, and without an end.
        lambda: Response((b"8000\r\n" + b" " * 0x8000 + b"\r\n") * 4, headers={"Transfer-Encoding": "chunked"}),
        lambda: Response(gzip.compress(b"") * 10_000, headers={"Content-Encoding": "gzip"}),
    ],
)
def test_max_response_bytes_bounds_compressed_and_decompressed_bodies(
    server: StrictServer, response: Callable[[], Response]
) -> None:
    server.on("blocks", response())
    failure = transport_error(server.client(max_response_bytes=100_000, max_retries=1))
    assert (failure.phase, failure.retryable, failure.attempts) == ("body", False, 1)


def test_max_response_bytes_is_a_setting(server: StrictServer) -> None:
    server.on("blocks", Response(gzip.compress(BLOCKS.body), headers={"Content-Encoding": "gzip"}))
    with server.client(max_response_bytes=len(BLOCKS.body)) as client:
        assert len(client.blocks().collect()) == 1
    assert "max_response_bytes" in str(transport_error(server.client(max_response_bytes=len(BLOCKS.body) - 1)))
    for wrong in (0, -1):
        with pytest.raises(cf.ConfigError, match="max_response_bytes"):
            server.client(max_response_bytes=wrong)


@pytest.mark.parametrize(
    ("fault", "phase"), [({"kind": "delay", "seconds": 60}, "read"), ({"kind": "slow_body", "seconds": 60}, "body")]
)
def test_timeout_names_its_phase(fault: Fault, phase: str) -> None:
    with LocalService(transactions=300, faults=[fault]) as service:
        failure = transport_error(service.client(timeout=0.3, max_retries=1, rate_limit=None))
        assert isinstance(failure, cf.RequestTimeoutError)
        assert (failure.phase, failure.attempts, failure.retryable) == (phase, 2, True)
        assert "0.3 s" in str(failure)
        deadline = transport_error(service.client(timeout=60, deadline=0.3, rate_limit=None))
        assert (type(deadline), deadline.phase) == (cf.RequestTimeoutError, "deadline")


@contextlib.contextmanager
def deaf() -> Generator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_stalled_tls_handshake_times_out() -> None:
    with deaf() as port, StrictServer() as server:
        failure = transport_error(server.client(base_url=f"https://127.0.0.1:{port}", timeout=0.3))
    assert isinstance(failure, cf.RequestTimeoutError)
    assert failure.phase == "connect"
    assert f"no connection to 127.0.0.1:{port} within 0.3 s" in str(failure)


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_clock_skew_is_corrected_after_one_error(ahead: int) -> None:
    faults: list[Fault] = [{"kind": "clock_skew", "seconds": ahead}]
    with (
        LocalService(transactions=1_000, faults=faults) as service,
        service.client(rate_limit=None, max_retries=0, concurrency=8) as client,
    ):
        assert len(client.transactions().collect()) == 1_000
        assert Counter(request["code"] for request in service.request_log)["50102"] == 1
        # The clock is corrected while several requests are in flight: each is signed again, and none fails.
        service.set_faults([])
        assert len(client.transactions().collect()) == 1_000


def test_clock_skew_is_corrected_once_for_concurrent_requests() -> None:
    faults: list[Fault] = [{"kind": "clock_skew", "seconds": 3600}, {"kind": "delay", "seconds": 0.05}]
    with (
        LocalService(transactions=100, faults=faults) as service,
        service.client(rate_limit=None, max_retries=0) as client,
    ):
        with ThreadPoolExecutor(8) as pool:
            lengths = list(pool.map(lambda _: len(client.blocks().collect()), range(8)))
        assert len(set(lengths)) == 1
        tries = Counter(request["code"] for request in service.request_log)
        assert 1 <= tries["50102"] <= 8


@pytest.mark.parametrize(("headers", "said"), [({}, " s"), ({"Date": "some day"}, "system clock")])
def test_uncorrectable_clock_skew_is_reported(server: StrictServer, headers: dict[str, str], said: str) -> None:
    server.on("blocks", error(401, "50112", **headers))
    with server.client(max_retries=5) as client:
        for tries in (2, 1) if not headers else (2, 2):
            before = len(server.requests)
            with pytest.raises(cf.ClockSkewError, match=said):
                client.blocks().collect()
            assert len(server.requests) - before <= tries


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: StrictServer, status: int) -> None:
    with StrictServer() as elsewhere:
        location = f"{elsewhere.url}{PATHS['blocks']}?chainShortName=BETA_X"
        server.on("blocks", Response(b"", status, {"Location": location}))
        with server.client(max_retries=3) as client, pytest.raises(cf.ServiceError, match="which is not followed"):
            client.blocks().collect()
        assert (len(server.requests), len(elsewhere.requests)) == (1, 0)


def test_names_of_members_are_redacted_and_on_one_line(server: StrictServer, caplog: pytest.LogCaptureFixture) -> None:
    name = f"x\nWARNING {server.client().base_url} key-1f0c77 secret-9b2e41\x1b[31m"
    server.on("blocks", Response(b"{%s:tru}" % json.dumps(name).encode()))
    caplog.set_level("DEBUG", "chainframe")
    with server.client(max_retries=1) as client, pytest.raises(cf.ResponseFormatError) as caught:
        client.blocks().collect()
    path = caught.value.path or ""
    for text in (str(caught.value), path, "".join(caplog.messages)):
        assert not {"\n", "\x1b"} & set(text)
        assert "1f0c77" not in text
        assert "9b2e41" not in text
    assert path.startswith("x WARNING")


def test_concurrency_bounds_the_client(server: StrictServer) -> None:
    lock, now, peak = threading.Lock(), 0, 0

    def slow(_: Request) -> Response:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return BLOCKS

    async def gather(client: cf.Client) -> None:
        await asyncio.gather(*(client.blocks().collect_async() for _ in range(30)))

    server.on("blocks", slow)
    with server.client(rate_limit=None, concurrency=3) as client:
        asyncio.run(gather(client))
    assert len(server.requests) == 30
    assert peak == 3


@contextlib.contextmanager
def closing_kept_connections() -> Generator[tuple[int, list[int]]]:
    """A server that closes each connection on its second request, without a response."""
    requests: list[int] = []

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    for number in (1, 2):
                        if not connection.recv(65_536):
                            break
                        requests.append(number)
                        if number == 1:
                            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BLOCKS.body)}\r\n\r\n"
                            connection.sendall(head.encode() + BLOCKS.body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1], requests
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


def test_a_kept_connection_that_closes_costs_no_retry(server: StrictServer) -> None:
    with closing_kept_connections() as (port, requests):
        with server.client(base_url=f"http://127.0.0.1:{port}", max_retries=0, rate_limit=None) as client:
            for _ in range(3):
                assert len(client.blocks().collect()) == 1
        assert requests == [1, 2, 1, 2, 1]


def test_a_new_connection_that_closes_is_a_failed_attempt(service: LocalService) -> None:
    service.set_faults([{"kind": "reset", "times": 1}])
    with service.client(max_retries=0) as client, pytest.raises(cf.TransportError) as caught:
        client.blocks().collect()
    service.set_faults([])
    assert (caught.value.phase, caught.value.attempts) == ("read", 1)


def test_statuses_and_heads_off_the_usual(server: StrictServer) -> None:
    many = {f"X-Header-{number}": "value" for number in range(300)}
    for response in (Response(BLOCKS.body, headers=many), Response(BLOCKS.body, 203)):
        server.on("blocks", response)
        with server.client(max_retries=0) as client:
            assert len(client.blocks().collect()) == 1
    for status in (206, 304):
        server.on("blocks", Response(b"" if status == 304 else BLOCKS.body, status))
        with server.client() as client, pytest.raises(cf.ServiceError, match="the API does not use this status"):
            client.blocks().collect()


OUT_OF_FILES = """
import os, resource
from concurrent.futures import ThreadPoolExecutor
import chainframe as cf
from chainframe.testing import LocalService

def collect(_):
    try:
        client.blocks().collect()
    except cf.TransportError as error:
        return str(error)

faults = [{"kind": "delay", "seconds": 0.2}]
with LocalService(transactions=10, faults=faults) as service, service.client(max_retries=0, rate_limit=None) as client:
    collect(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        while True:
            os.open("/dev/null", os.O_RDONLY)
    except OSError:
        pass
    # One request has a connection, and there are no descriptors for others.
    with ThreadPoolExecutor(3) as pool:
        print(*pool.map(collect, range(3)))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it counts descriptors as Linux lists them")
def test_exhausted_file_descriptors_are_named() -> None:
    ran = subprocess.run([sys.executable, "-c", OUT_OF_FILES], capture_output=True, text=True, check=False, timeout=60)
    assert "too many open files (ulimit -n)" in ran.stdout, ran.stderr
    assert "base_url" not in ran.stdout


@pytest.mark.parametrize(("encoding", "body"), [("gzip", b""), ("gzip", b"<html>"), ("br", b"xx")])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, cf.AuthenticationError),
        (403, cf.PermissionDeniedError),
        (429, cf.RateLimitError),
        (503, cf.ServiceUnavailableError),
    ],
)
def test_error_response_with_a_body_that_cannot_be_read_has_its_status(
    server: StrictServer, status: int, expected: type[cf.ServiceError], encoding: str, body: bytes
) -> None:
    server.on("blocks", Response(body, status, {"Content-Encoding": encoding, "Retry-After": "7"}))
    with server.client(max_retries=0) as client, pytest.raises(expected) as caught:
        client.blocks().collect()
    assert caught.value.status == status
    assert getattr(caught.value, "retry_after", 7) == 7


def test_redirect_does_not_show_the_user_of_a_long_target(server: StrictServer) -> None:
    server.on("blocks", Response(b"", 302, {"Location": f"https://{'u' * 310}:word@elsewhere.example/path"}))
    with server.client(max_retries=0) as client, pytest.raises(cf.ServiceError) as caught:
        client.blocks().collect()
    assert "https://elsewhere.example/path" in str(caught.value)
    assert "uuu" not in str(caught.value)
