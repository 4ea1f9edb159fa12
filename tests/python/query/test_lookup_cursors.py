"""Cursors of lookups: they count hashes, since which of them are returned may change, and carry those to come."""

from __future__ import annotations

import json
import time
import warnings
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

HASHES = ["0xa", "0xb", "0xc", "0xd"]


def serve(server: StrictServer, known: Iterable[str]) -> None:
    known = set(known)

    def respond(request: Request) -> Response:
        requested = request.query["txId"].split(",")
        return rows_of("transactions_by_hash", [{"txId": tx_id} for tx_id in requested if tx_id in known])

    server.on("transactions_by_hash", respond)


def ids(records: cf.Records[cf.Transaction]) -> list[str | None]:
    return [record.tx_id for record in records]


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize("delivered", range(4))
@pytest.mark.parametrize("before", [HASHES, HASHES[1:], ["0xb", "0xd"], HASHES[:3]])
@pytest.mark.parametrize("after", [HASHES, HASHES[1:], ["0xa", "0xd"]])
def test_resume_continues_with_the_next_hash(
    server: StrictServer, delivered: int, before: list[str], after: list[str]
) -> None:
    client = server.client()
    serve(server, before)
    query = client.transactions_by_hash(HASHES)
    stream = iter(query)
    first = [next(stream).tx_id for _ in range(min(delivered, len(before)))]
    cursor = query.cursor
    serve(server, after)
    rest = client.resume(cursor).collect()
    # The hashes up to the last delivered one are done with, whatever is returned of them now; after the last record of
    # a response all of its hashes are.
    done = HASHES.index(str(first[-1])) + 1 if first else 0
    if delivered >= len(before):
        done = len(HASHES)
    assert first == before[: len(first)]
    assert ids(rest) == [tx_id for tx_id in HASHES[done:] if tx_id in after]
    passed = [tx_id for tx_id in HASHES[:done] if tx_id not in before]
    assert rest.report.missing == passed + [tx_id for tx_id in HASHES[done:] if tx_id not in after]
    assert rest.report.complete == (not rest.report.missing)


def test_a_cursor_carries_only_the_hashes_to_come(server: StrictServer) -> None:
    hashes = [f"0x{number:064x}" for number in range(100)]
    serve(server, hashes)
    query = server.client().transactions_by_hash(hashes)
    carried = []
    for _ in query.batches(10):
        ((name, value),) = json.loads(query.cursor)["arguments"]
        assert name == "tx_ids"
        carried.append(len(value["list"]))
    assert carried == list(range(90, -1, -10))


def test_logs_resume_within_a_transaction(server: StrictServer) -> None:
    def respond(request: Request) -> Response:
        tx_id = request.query["txId"]
        return rows_of("logs", [{"txId": tx_id, "logIndex": str(index)} for index in range(3)])

    server.on("logs", respond)
    query = server.client().logs(HASHES)
    whole = query.collect().to_dicts()
    assert len(whole) == 12
    for count, _ in enumerate(query, start=1):
        rest = server.client().resume(query.cursor).collect()
        assert rest.to_dicts() == whole[count:]


@pytest.mark.parametrize("taken", [1, 4, 9])
@pytest.mark.parametrize(
    "later",
    [
        [*range(9, -1, -1)],
        [*range(3)],
        [*range(1, 10)],
        [20, *range(10)],
        [9, *range(1, 9), 0],
        [],
        [*range(11)],
    ],
    ids=["reversed", "fewer", "first gone", "one more above", "first and last swapped", "none", "one more below"],
)
def test_logs_that_are_not_those_of_an_earlier_run_are_not_continued(
    server: StrictServer, taken: int, later: list[int]
) -> None:
    listed = [*range(10)]

    def respond(request: Request) -> Response:
        tx_id = request.query["txId"]
        return rows_of("logs", [{"txId": tx_id, "logIndex": str(index)} for index in listed])

    server.on("logs", respond)
    client = server.client(max_retries=0)
    query = client.logs("0xa")
    stream = iter(query)
    first = [next(stream).log_index for _ in range(taken)]
    assert [log.log_index for log in client.resume(query.cursor)] == listed[taken:]
    cursor = query.cursor
    listed[:] = later
    problem = "has other records than" if first == listed[:taken] else "does not begin with the"
    for read in (list, cf.Query.collect):
        with pytest.raises(cf.PaginationDriftError, match=problem):
            read(client.resume(cursor))


def test_logs_of_several_transactions_resume_where_one_is_not_continued(server: StrictServer) -> None:
    listed = [*range(3)]

    def respond(request: Request) -> Response:
        tx_id = request.query["txId"]
        return rows_of("logs", [{"txId": tx_id, "logIndex": str(index)} for index in listed])

    server.on("logs", respond)
    query = server.client(concurrency=1).logs(HASHES)
    stream = iter(query)
    # The second transaction is cut.
    [next(stream) for _ in range(5)]
    cursor = query.cursor
    listed.reverse()
    with pytest.raises(cf.PaginationDriftError, match="begin with the 2 records that an earlier run returned"):
        server.client().resume(cursor).collect()


def test_a_warning_states_ten_reasons_and_counts_the_rest(server: StrictServer) -> None:
    server.on("logs", lambda request: rows_of("logs", [{"txId": request.query["txId"]}] * 1_000))
    query = server.client(concurrency=8).logs([f"0x{number}" for number in range(15)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = query.collect().report
    assert len(report.reasons) == 15
    (message,) = [str(warning.message) for warning in caught]
    assert [reason in message for reason in report.reasons] == [True] * 10 + [False] * 5
    assert message.endswith("And 5 more reasons, listed in the report.")


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_reports_of_pages_stay_as_they_were(server: StrictServer) -> None:
    hashes = [f"0x{number}" for number in range(60)]
    serve(server, hashes[::2])
    reports = [page.records.report for page in server.client().transactions_by_hash(hashes).pages()]
    assert [report.missing for report in reports] == [hashes[1:20:2], hashes[1:40:2], hashes[1:60:2]]


def test_hashes_in_base58_differ_by_the_case_of_a_letter(server: StrictServer) -> None:
    listed = ["zaB", "zAb", "0xaB"]
    asked: list[str] = []

    def respond(request: Request) -> Response:
        asked.extend(request.query["txId"].split(","))
        return rows_of("transactions_by_hash", [{"txId": tx_id} for tx_id in listed])

    server.on("transactions_by_hash", respond)
    records = server.client().transactions_by_hash([*listed, "0xAb"]).collect()
    assert ids(records) == asked == listed
    assert records.report.complete


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(
    ("height", "block", "problem"),
    [("7", "0x1", "height 7 are of two blocks"), ("1", "0x7", "two heights, 7 and 1"), ("8", "0x8", None)],
)
def test_transactions_of_two_runs_are_of_one_chain(
    server: StrictServer, height: str, block: str, problem: str | None
) -> None:
    places = {"0xa": ("6", "0x6"), "0xb": ("7", "0x7"), "0xc": ("8", "0x8"), "0xd": ("9", "0x9")}

    def respond(request: Request) -> Response:
        requested = request.query["txId"].split(",")
        rows = [{"txId": tx_id, "height": places[tx_id][0], "blockHash": places[tx_id][1]} for tx_id in requested]
        return rows_of("transactions_by_hash", rows)

    server.on("transactions_by_hash", respond)
    client = server.client()
    query = client.transactions_by_hash(HASHES)
    stream = iter(query)
    assert [next(stream).tx_id, next(stream).tx_id] == HASHES[:2]
    cursor = query.cursor
    places["0xc"] = (height, block)
    records = client.resume(cursor).collect()
    assert ids(records) == HASHES[2:]
    reasons = " ".join(records.report.reasons)
    assert problem in reasons if problem else not reasons


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
@pytest.mark.parametrize(("change", "doubts"), [("lose", 1), ("empty", 1), ("move", 0), ("none", 0)])
def test_logs_that_a_run_received_and_did_not_return_are_compared_after_its_cursor(
    server: StrictServer, change: str, doubts: int
) -> None:
    changed: set[str] = set()

    def respond(request: Request) -> Response:
        tx_id = request.query["txId"]
        is_moved = tx_id in changed and change == "move"
        block = {"blockHash": "0xc", "height": "2"} if is_moved else {"blockHash": "0xb", "height": "1"}
        count = {"lose": 2, "empty": 0}.get(change, 3) if tx_id in changed else 3
        return rows_of("logs", [{"txId": tx_id, "logIndex": str(index), **block} for index in range(count)])

    server.on("logs", respond)
    client = server.client(concurrency=4, max_retries=1)
    query = client.logs(HASHES)
    for _ in query:
        for _ in range(5_000):
            if len(json.loads(query.cursor).get("lookups", [])) == 3:
                break
            time.sleep(0.001)
        break
    # The cursor of the rest has those that are still to come.
    rest = client.resume(query.cursor)
    next(iter(rest))
    changed.add("0xd")
    records = client.resume(rest.cursor).collect()
    reasons = [str(reason) for reason in records.report.reasons]
    assert sum("lacks records that another response showed" in reason for reason in reasons) == doubts
