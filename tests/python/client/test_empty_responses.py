"""Empty responses without a page object: nothing found, or a throttle in disguise."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, Fault, LocalService, LoggedRequest
from strict_server import Response, StrictServer, envelope, page_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
THROTTLED: dict[str, list[Fault]] = {
    "every other response": [{"kind": "empty", "every": 2}],
    "every third response": [{"kind": "empty", "every": 3}],
    "every seventh response": [{"kind": "empty", "every": 7}],
    "the first 2 responses": [{"kind": "empty", "times": 2}],
    "the first 9 responses": [{"kind": "empty", "times": 9}],
    "the first 40 responses": [{"kind": "empty", "times": 40}],
}
# Nothing distinguishes one list of which every response is empty from an empty list.
LONGER_THAN_ANY_REPETITION = {"the first 9 responses", "the first 40 responses"}
ONE_LIST = {"tokens", "transfers", "blocks", "one block", "an address"}
Call = Callable[[cf.Client], cf.Query[Any]]


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=2_000, seed=5, simulated=True) as service:
        yield service


@pytest.fixture(scope="module")
def calls(service: LocalService) -> dict[str, Call]:
    with service.client(rate_limit=None) as client:
        first: Any = client.tokens().first()
        token: Any = client.token_transfers(first.token_contract_address).first()
        newest: Any = client.transactions(max_items=80).collect()
    height, ids = newest[0].height, [record.tx_id for record in newest]
    address = newest[0].input.split(",")[0]
    return {
        "a range": lambda client: client.transactions(start_height=height - 30, end_height=height),
        "logs": lambda client: client.logs(ids),
        "hashes": lambda client: client.transactions_by_hash(ids),
        "transfers": lambda client: client.token_transfers(token.token_contract_address),
        "tokens": lambda client: client.tokens(),
        "blocks": lambda client: client.blocks(),
        "one block": lambda client: client.transactions(height=height),
        "an address": lambda client: client.address_transactions(address),
    }


@pytest.mark.parametrize("rate_limit", ["auto", None, 20.0])
@pytest.mark.parametrize("faults", THROTTLED)
def test_result_under_a_throttle_by_empty_responses_is_right_or_incomplete(
    service: LocalService, calls: dict[str, Call], faults: str, rate_limit: Any
) -> None:
    for name, call in calls.items():
        if faults in LONGER_THAN_ANY_REPETITION and name in ONE_LIST:
            continue
        service.faults = []
        with service.client(rate_limit=None) as client:
            wanted = list(call(client).collect())
        service.faults = THROTTLED[faults]
        with service.client(rate_limit=rate_limit, max_retries=20, deadline=None) as client:
            records = call(client).collect()
        assert list(records) == wanted or not records.report.complete, (name, len(records), len(wanted))
    service.faults = []


@pytest.mark.parametrize(("page_size", "every", "concurrency"), [(5, 4, 4), (5, 4, 8), (5, 5, 4), (3, 3, 2)])
def test_few_heights_under_a_throttle_by_empty_responses_are_right_or_incomplete(
    service: LocalService, page_size: int, every: int, concurrency: int
) -> None:
    service.faults = []
    with service.client(rate_limit=None) as client:
        newest = client.transactions(max_items=1).collect()[0].height or 0
        wanted = list(client.transactions(start_height=newest - 5, end_height=newest).collect())
    for rate_limit in ("auto", None):
        service.faults = [{"kind": "empty", "every": every}]
        settings: Any = {"rate_limit": rate_limit, "concurrency": concurrency}
        with service.client(max_retries=20, deadline=None, **settings) as client:
            records = client.transactions(start_height=newest - 5, end_height=newest, page_size=page_size).collect()
        service.faults = []
        assert list(records) == wanted or not records.report.complete


def test_height_under_a_throttle_by_empty_responses_is_right_or_an_error(service: LocalService) -> None:
    service.faults = []
    with service.client() as client:
        block: Any = client.transactions(max_items=500).collect()[-1]
        for faults in THROTTLED.values():
            service.faults = faults
            with service.client(max_retries=20) as throttled:
                found: object = None
                with suppress(cf.PaginationDriftError):
                    found = throttled.height_at(block.transaction_time)
                assert found in {None, block.height}
            service.faults = []


def test_an_honest_empty_list_takes_two_more_requests_and_leaves_the_rate(server: StrictServer) -> None:
    server.on("token_transfers", Response(envelope([])))
    with server.client(rate_limit="auto") as client:
        before = client.rate_limit_state
        records = client.token_transfers("0xa").collect()
        after = client.rate_limit_state
        used = client.usage
    assert (len(records), records.report.complete) == (0, True)
    assert (records.report.requests, records.report.retries) == (used.requests, used.retries) == (3, 0)
    assert (after.rate, after.throttled) == (before.rate, 0)


@pytest.mark.parametrize(
    ("counts", "requests"),
    [({"totalPage": "0"}, 1), ({"totalPage": "", "totalTransfer": "0"}, 1), ({"totalPage": ""}, 3)],
)
def test_an_empty_page_object_is_believed_at_once_if_it_counts_nothing(
    server: StrictServer, counts: dict[str, str], requests: int
) -> None:
    server.on("token_transfers", page_of("token_transfers", [], **counts))
    with server.client() as client:
        assert client.token_transfers("0xa").collect().report.requests == requests


def test_transactions_without_logs_are_confirmed_by_others_with_logs(server: StrictServer) -> None:
    def logs(request: Any) -> Response:
        number = int(request.query["txId"], 16)
        rows = [] if number % 3 else [{"txId": request.query["txId"], "logIndex": "0"}]
        return Response(envelope(rows))

    server.on("logs", logs)
    with server.client(concurrency=8) as client:
        records = client.logs([hex(number) for number in range(24)]).collect()
    assert [record.tx_id for record in records] == [hex(number) for number in range(0, 24, 3)]
    assert records.report.complete
    assert records.report.requests <= 24 + 3 * 16


def test_several_lists_that_are_all_empty_are_reported(server: StrictServer) -> None:
    server.on("logs", Response(envelope([])))
    with server.client() as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = client.logs(["0x1", "0x2"]).collect().report
        assert not report.complete
        assert "responses were empty" in report.reasons[0]
        assert client.logs(["0x1"]).collect().report.complete


def logs_of(server: StrictServer, pattern: str, throttled: dict[int, int] | None = None) -> list[str]:
    """Serves transactions with a log (L) and without one (E), and returns their hashes.

    The first n responses to the requests for a throttled one are empty.
    """
    left = dict(throttled or {})

    def logs(request: Any) -> Response:
        number = int(request.query["txId"], 16)
        left[number] = left.get(number, 0) - 1
        has_logs = pattern[number] == "L" and left[number] < 0
        return Response(envelope([{"txId": request.query["txId"], "logIndex": "0"}] if has_logs else []))

    server.on("logs", logs)
    return [hex(number) for number in range(len(pattern))]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(("pattern", "more"), [("EEL", 3), ("EEELE", 4), ("ELE", 0), ("LEE", 0)])
def test_transactions_without_logs_are_confirmed_by_a_later_one_with_logs(
    server: StrictServer, pattern: str, more: int, concurrency: int
) -> None:
    hashes = logs_of(server, pattern)
    with server.client(concurrency=concurrency) as client:
        report = client.logs(hashes).collect().report
        used = client.usage
    assert (report.complete, report.reasons) == (True, [])
    assert report.requests == used.requests
    # Two repetitions of each, and a control request beside those after the first one with logs.
    assert report.requests <= 3 * pattern.count("E") + 1 + more + 2 * pattern.partition("L")[2].count("E")


def test_transactions_whose_logs_come_with_the_request_that_was_to_confirm_that_there_are_none_are_a_reason(
    server: StrictServer,
) -> None:
    hashes = logs_of(server, "LEL", {0: 3})
    with server.client(concurrency=1) as client:
        records = client.logs(hashes).collect()
    assert [record.tx_id for record in records] == ["0x2"]
    assert not records.report.complete


def test_a_cursor_after_confirmed_empty_responses_has_no_reason(server: StrictServer) -> None:
    hashes = logs_of(server, "EEL")
    with server.client(concurrency=1) as client:
        query = client.logs(hashes)
        assert next(iter(query)).tx_id == "0x2"
        assert client.resume(query.cursor).collect().report.complete


def test_requests_that_confirm_empty_responses_are_replayed(server: StrictServer, tmp_path: Path) -> None:
    hashes = logs_of(server, "EELE")
    for mode in ("once", "none"):
        cassette = Cassette(tmp_path / "logs.jsonl", mode=mode)
        with server.client(concurrency=1, cassette=cassette) as client:
            report = client.logs(hashes).collect().report
        assert (report.complete, report.reasons) == (True, [])
        assert cassette.all_played == (mode == "none")


def test_a_throttle_is_counted_once_a_repetition_shows_it(server: StrictServer) -> None:
    page = page_of("token_transfers", [{"txid": "0x1"}], totalTransfer="1")
    server.on("token_transfers", Response(envelope([])), page)
    with server.client(rate_limit="auto") as client:
        before = client.rate_limit_state.rate
        assert len(client.token_transfers("0xa").collect()) == 1
        after = client.rate_limit_state
    assert after.throttled == 1
    assert before is not None
    assert after.rate is not None
    assert after.rate < before


@pytest.mark.parametrize("age", [timedelta(), timedelta(days=1)], ids=str)
def test_a_record_that_a_part_of_the_service_may_have_lacked_is_no_reason_for_ever(
    age: timedelta,
) -> None:
    # The virtual clock begins here.
    time = datetime(2026, 1, 31, 9, tzinfo=UTC) - age
    is_behind = True

    def respond(request: LoggedRequest) -> Any:
        nonlocal is_behind
        tx_id = request["params"]["txId"]
        row = {"txId": tx_id, "logIndex": "0", "transactionTime": str(round(time.timestamp() * 1_000))}
        rows = [] if is_behind or tx_id == "0xe" else [row]
        is_behind = False
        return {"json": {"code": "0", "msg": "", "data": rows}}

    with LocalService(transactions=100, simulated=True, respond=respond) as service:
        client = service.client(rate_limit=1.0)
        assert len(client.logs("0x1").collect()) == 1
        assert not client.logs("0xe").collect().report.complete
        # Ten minutes pass.
        assert client.logs([hex(number) for number in range(0x100, 0x400)]).collect().report.complete
        assert client.logs("0xe").collect().report.complete == (not age)


def test_a_service_that_has_no_records_any_more_after_a_new_one_is_not_believed(server: StrictServer) -> None:
    time = str(round(datetime.now(UTC).timestamp() * 1_000))
    row = {"txId": "0x1", "logIndex": "0", "transactionTime": time}
    server.on("logs", Response(envelope([row])), Response(envelope([])))
    with server.client(deadline=2) as client:
        reports = [client.logs(tx_id).collect().report for tx_id in ("0x1", "0x2", "0x3", "0x4")]
    assert [report.complete for report in reports] == [True, False, False, False]


def test_a_run_in_which_a_new_record_came_late_has_a_reason_for_other_empty_responses(server: StrictServer) -> None:
    time = str(round(datetime.now(UTC).timestamp() * 1_000))
    row = {"txId": "0x1", "logIndex": "0", "transactionTime": time}
    server.on("logs", Response(envelope([])), Response(envelope([row])), Response(envelope([])))
    with server.client(deadline=2, concurrency=1) as client:
        report = client.logs(["0x1", "0x2"]).collect().report
    assert "responses were empty" in report.reasons[0]


@pytest.mark.parametrize("more", [0, 1])
def test_a_control_request_that_has_other_logs_than_before_is_a_reason(server: StrictServer, more: int) -> None:
    log = {"txId": "0x1", "logIndex": "0"}
    again = [log, {**log, "logIndex": "1"}][: 1 + more]
    responses: dict[str, list[list[dict[str, str]]]] = {"0x1": [[log], again], "0x2": [[]]}

    def logs(request: Any) -> Response:
        left = responses[request.query["txId"]]
        return Response(envelope(left.pop(0) if len(left) > 1 else left[0]))

    server.on("logs", logs)
    with server.client(concurrency=1) as client:
        records = client.logs(["0x1", "0x2"]).collect()
    assert [request.query["txId"] for request in server.requests].count("0x1") == 2
    assert records.report.complete == (more == 0)
    assert ["other records than before" in reason for reason in records.report.reasons] == [True] * more


@pytest.mark.parametrize(
    ("again", "more"),
    [
        ([{"txid": "0x1"}], 0),
        ([{"txid": "0x1"}, {"txid": "0x2"}], 1),
        ([{"txid": "0x1", "blockHash": "0xa"}, {"txid": "0x2", "blockHash": "0xa"}], 1),
        ([{"txid": "0x1", "blockHash": "0xb"}, {"txid": "0x2", "blockHash": "0xb"}], 0),
        ([{"txid": "0x2", "blockHash": "0xb"}], 0),
    ],
    ids=["same", "more", "more_in_the_block", "more_in_another_block", "others_in_another_block"],
)
def test_a_control_request_that_has_other_records_of_a_block_than_before_is_a_reason(
    server: StrictServer, again: list[dict[str, str]], more: int
) -> None:
    again = [{"height": "1", **row} for row in again]
    row = {"txid": "0x1", "height": "1"} | ({"blockHash": "0xa"} if "blockHash" in again[0] else {})
    listed: dict[str, list[list[dict[str, str]]]] = {"1": [[row], again], "2": [[]]}

    def transactions(request: Any) -> Response:
        left = listed[request.query["height"]]
        return page_of("transactions", left.pop(0) if len(left) > 1 else left[0], totalPage="1")

    server.on("transactions", transactions)
    with server.client(concurrency=1) as client:
        records = client.transactions(start_height=1, end_height=2).collect()
    assert [request.query["height"] for request in server.requests].count("1") == 2
    assert records.report.complete == (more == 0)
    assert ["other records than before" in reason for reason in records.report.reasons] == [True] * more
