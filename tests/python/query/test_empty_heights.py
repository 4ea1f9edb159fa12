"""Heights of a range that had no records when they were requested, below heights that have some."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette
from strict_server import Response, StrictServer, error, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

WITHOUT_RECORDS = {
    "an empty page": page_of("transactions", []),
    "no such block": error(200, "50044", "block does not exist"),
}


def serve(
    server: StrictServer, empty: Response, *, newest: int = 14, without: int = 0, age: timedelta = timedelta()
) -> Callable[[Any], Response]:
    """Serves heights, of which one is without records. The chain grows by two when the second of them is requested."""
    time = str(round((datetime.now(UTC) - age).timestamp() * 1_000))
    chain = {"newest": newest}

    def transactions(request: Any) -> Response:
        height = int(request.query["height"])
        if height == chain["newest"] + 2:
            chain["newest"] = height
        if height > chain["newest"] or height == without:
            return empty
        row = {"txid": hex(height), "height": str(height), "blockHash": hex(height), "transactionTime": time}
        return page_of("transactions", [row])

    server.on("transactions", transactions)
    return transactions


def heights_of(records: cf.Records[Any]) -> list[int]:
    return [record.height for record in records]


@pytest.mark.parametrize("empty", WITHOUT_RECORDS)
def test_a_height_that_got_its_block_after_it_was_requested_is_a_reason(server: StrictServer, empty: str) -> None:
    serve(server, WITHOUT_RECORDS[empty], newest=11)
    with server.client(concurrency=1) as client:
        records = client.transactions(start_height=10, end_height=13).collect()
        assert heights_of(records) == [10, 11, 13]
        assert [reason.partition(" had")[0] for reason in records.report.reasons] == ["Height 12"]
        assert heights_of(client.transactions(start_height=10, end_height=13).collect()) == [10, 11, 12, 13]


def test_a_height_that_got_its_block_is_a_reason_where_no_more_records_are_wanted(server: StrictServer) -> None:
    serve(server, WITHOUT_RECORDS["an empty page"], newest=11)
    with server.client(concurrency=1) as client:
        records = client.transactions(start_height=10, end_height=13, max_items=3).collect()
    assert (heights_of(records), records.report.complete) == ([10, 11, 13], False)


@pytest.mark.parametrize("empty", WITHOUT_RECORDS)
def test_a_height_without_records_takes_one_more_request_below_new_ones(server: StrictServer, empty: str) -> None:
    requests = {}
    for days in (0, 1):
        serve(server, WITHOUT_RECORDS[empty], without=12, age=timedelta(days=days))
        with server.client() as client:
            records = client.transactions(start_height=10, end_height=14).collect()
        assert (heights_of(records), records.report.complete) == ([10, 11, 13, 14], True)
        requests[days] = records.report.requests
    assert requests[0] == requests[1] + 1


@pytest.mark.parametrize("problem", ["error", "bound"])
def test_a_height_that_cannot_be_requested_again_is_a_reason(server: StrictServer, problem: str) -> None:
    """All records were received: they are returned."""
    serve_height = serve(server, WITHOUT_RECORDS["no such block"], without=12)

    def transactions(request: Any) -> Response:
        is_again = [earlier.query["height"] for earlier in server.requests].count("12") > 1
        return error(500, "50000") if is_again and problem == "error" else serve_height(request)

    server.on("transactions", transactions)
    with server.client(max_retries=1, max_requests=4 if problem == "bound" else None) as client:
        records = client.transactions(start_height=10, end_height=13).collect()
    assert heights_of(records) == [10, 11, 13]
    assert ["could not be requested again" in reason for reason in records.report.reasons] == [True]


def test_a_replay_has_the_reason_of_the_run_that_had_it(server: StrictServer, tmp_path: Path) -> None:
    def reasons(mode: Any) -> list[int]:
        counts = []
        with server.client(cassette=Cassette(tmp_path / "range.jsonl", mode=mode), concurrency=1) as client:
            for age, newest in ((timedelta(days=1), 13), (timedelta(0), 11)):
                serve(server, WITHOUT_RECORDS["no such block"], newest=newest, without=11, age=age)
                counts.append(len(client.transactions(start_height=10, end_height=13).collect().report.reasons))
        return counts

    assert reasons("once") == reasons("none") == reasons("new_episodes") == reasons("none") == [0, 1]


def test_a_height_that_was_requested_again_is_in_a_replay(server: StrictServer, tmp_path: Path) -> None:
    serve(server, WITHOUT_RECORDS["no such block"], newest=11)
    reports = []
    for mode in ("once", "none"):
        cassette = Cassette(tmp_path / "range.jsonl", mode=mode)
        with server.client(cassette=cassette, concurrency=1) as client:
            query = client.transactions(start_height=10, end_height=13)
            reports += [query.collect().report, query.collect().report]
        assert cassette.all_played == (mode == "none")
    assert [len(report.reasons) for report in reports] == [1, 0, 1, 0]
