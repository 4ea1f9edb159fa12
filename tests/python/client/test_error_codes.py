"""Error class and retries for each code and status."""

from __future__ import annotations

import pytest

import chainframe as cf
from strict_server import StrictServer, error, page_of

UNAVAILABLE, LIMITED, DENIED = cf.ServiceUnavailableError, cf.RateLimitError, cf.PermissionDeniedError
REJECTED, UNKNOWN, UNSIGNED, SKEWED = cf.BadRequestError, cf.NotFoundError, cf.AuthenticationError, cf.ClockSkewError

# (code, statuses, class, True if it is retried)
TABLE: list[tuple[str, tuple[int, ...], type[cf.ServiceError], bool]] = [
    ("50001", (503,), UNAVAILABLE, True),
    ("50004", (400,), UNAVAILABLE, True),
    ("50005", (410,), cf.ServiceError, False),
    ("50011", (429, 200), LIMITED, True),
    ("50012", (200, 429), DENIED, False),
    ("50013", (200,), UNAVAILABLE, True),
    *((code, (400, 200), REJECTED, False) for code in ("50014", "50015", "50016", "50024", "50025", "50036")),
    ("50026", (500,), UNAVAILABLE, True),
    ("50030", (403,), DENIED, False),
    ("50043", (200,), DENIED, False),
    ("50047", (400,), DENIED, False),
    ("50100", (400,), DENIED, False),
    ("50037", (200,), UNKNOWN, False),
    ("50040", (200,), UNKNOWN, False),
    ("50044", (400,), UNKNOWN, False),
    ("50038", (200,), REJECTED, False),
    ("50102", (401,), SKEWED, False),
    ("50112", (401,), SKEWED, False),
    *((code, (401,), UNSIGNED, False) for code in ("50103", "50104", "50105", "50106", "50107")),
    *((code, (401,), UNSIGNED, False) for code in ("50111", "50113", "50114", "50125")),
    ("50404", (404,), UNKNOWN, False),
    # Unknown codes fall back to their status.
    ("59999", (400,), REJECTED, False),
    ("59999", (401,), UNSIGNED, False),
    ("59999", (402, 403), DENIED, False),
    ("59999", (404,), UNKNOWN, False),
    ("59999", (429,), LIMITED, True),
    ("59999", (500, 502, 503, 504), UNAVAILABLE, True),
    ("59999", (200,), cf.ServiceError, False),
]
CASES = [(status, code, kind, again) for code, statuses, kind, again in TABLE for status in statuses]


@pytest.mark.parametrize(("status", "code", "kind", "again"), CASES)
def test_code_and_status_select_the_error_class(
    server: StrictServer,
    status: int,
    code: str,
    kind: type[cf.ServiceError],
    again: bool,  # noqa: FBT001 - a column of the table
) -> None:
    server.on("blocks", error(status, code, "another message"))
    with server.client(max_retries=1) as client, pytest.raises(cf.ServiceError) as caught:
        client.blocks().collect()
    raised = caught.value
    assert type(raised) is kind
    assert (raised.status, raised.code, raised.msg) == (status, code, "another message")
    assert raised.endpoint == "blocks"
    assert raised.retryable is again
    if kind is not SKEWED:
        assert raised.attempts == len(server.requests) == 1 + again
    assert code in str(raised)


def test_numeric_code_is_read_like_a_string(server: StrictServer) -> None:
    server.on("blocks", error(400, 50014))
    with server.client() as client, pytest.raises(cf.BadRequestError) as caught:
        client.blocks().collect()
    assert caught.value.code == "50014"


def test_rate_limit_error_has_retry_after(server: StrictServer) -> None:
    server.on("blocks", error(429, "50011", **{"Retry-After": "2"}))
    with server.client() as client, pytest.raises(cf.RateLimitError) as caught:
        client.blocks().collect()
    assert caught.value.retry_after == 2.0


def test_partial_keeps_records_fetched_before_an_error(server: StrictServer) -> None:
    server.on("blocks", page_of("blocks", [{"hash": "0x1"}], totalPage="2"), error(500, "50026"))
    with server.client() as client:
        query = client.blocks(page_size=1)
        with pytest.raises(cf.ServiceUnavailableError) as caught:
            query.collect()
    assert [block.hash for block in query.partial] == ["0x1"]
    assert query.last_error is caught.value
    assert not query.report.complete


def test_missing_response_raises_a_transport_error() -> None:
    with StrictServer() as gone:
        client = gone.client()
    with client, pytest.raises(cf.TransportError) as caught:
        client.blocks().collect()
    assert caught.value.phase == "connect"
    assert caught.value.endpoint == "blocks"
    assert caught.value.attempts == 1
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.retryable
