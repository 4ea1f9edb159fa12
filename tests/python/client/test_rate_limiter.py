"""Rate limiting as callers see it; the algorithm is tested in Rust with a simulated clock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from chainframe.testing import LocalService
from strict_server import Response, StrictServer, error, page_of

BLOCKS = page_of("blocks", [{"hash": "0x1"}])
THROTTLES = {
    "status": error(429, "50011"),
    "a tiny wait": error(429, "50011", **{"Retry-After": "0"}),
    "status alone": Response(b"", 429),
    "code alone": error(200, "50011"),
    # Page 1 had promised it.
    "nothing": Response(b'{"code":"0","msg":"","data":[]}'),
}


@pytest.mark.parametrize("way", THROTTLES)
def test_throttle_lowers_the_rate_of_all_clients_of_a_key(server: StrictServer, way: str) -> None:
    page = page_of("blocks", [{"hash": "0x1"}], totalPage="2", total="2", page="1", limit="1")
    server.on(
        "blocks",
        page,
        THROTTLES[way],
        page_of("blocks", [{"hash": "0x2"}], totalPage="2", total="2", page="2", limit="1"),
        # The last request compares the list with its first page.
        page,
        page_of("blocks", [{"hash": "0x2"}], totalPage="2", total="2", page="2", limit="1"),
    )
    with server.client(rate_limit="auto", max_retries=1) as client, server.client(rate_limit="auto") as other:
        before = client.rate_limit_state
        assert before == other.rate_limit_state
        assert before.throttled == 0
        assert [block.hash for block in client.blocks(page_size=1)] == ["0x1", "0x2"]
        after = other.rate_limit_state
    assert after.throttled == 1
    assert before.rate is not None
    assert after.rate is not None
    assert after.rate < 0.6 * before.rate


def test_numeric_rate_limit_applies_to_one_client(server: StrictServer) -> None:
    server.on("blocks", THROTTLES["status"], BLOCKS)
    with server.client(rate_limit=0.5, max_retries=1) as client, server.client(rate_limit=50) as other:
        client.blocks().collect()
        state = client.rate_limit_state
        assert (state.rate, state.waiting, state.throttled) == (0.5, 0, 1)
        assert 0 < state.pause <= 2
        assert repr(state).startswith("RateLimitState(rate=0.50, waiting=0, throttled=1, pause=")
        assert other.rate_limit_state.throttled == 0
        with pytest.raises(AttributeError):
            state.rate = 3.0  # type: ignore[misc]


def test_rate_limit_none_is_unthrottled(server: StrictServer) -> None:
    with server.client(rate_limit=None) as client:
        assert client.rate_limit_state.rate is None


def test_queueing_for_the_rate_limit_is_not_part_of_the_deadline(server: StrictServer) -> None:
    server.on("blocks", BLOCKS)
    with server.client(rate_limit=10, deadline=0.3) as client, ThreadPoolExecutor(12) as pool:
        reports = list(pool.map(lambda _: client.blocks().collect().report, range(12)))
    # The last one was sent more than a second after it was made.
    assert [(report.requests, report.retries) for report in reports] == [(1, 0)] * 12
    assert len(server.requests) == 12


def test_a_limited_service_is_read_to_the_end_with_few_throttles() -> None:
    with LocalService(transactions=2_000, rate_limit=20) as service, service.client() as client:
        assert len(client.transactions().collect()) == 2_000
        throttled = [request for request in service.request_log if request["status"] == 429]
        assert client.rate_limit_state.throttled == len(throttled)
        assert len(throttled) < 0.2 * service.request_count
