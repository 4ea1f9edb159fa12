"""Followed lists of addresses whose oldest records the API does not return any more."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")

SENDERS = ["0x" + "a" * 40, "0x" + "b" * 40]
LIMIT = "The API returns only the last 12 months of an address"


def sent(sender: str, height: int, nonce: int) -> cf.Transaction:
    return cf.Transaction(
        tx_id=f"{sender[:10]}{height:056x}",
        height=height,
        block_hash=f"0x{height:064x}",
        transaction_time=datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=12 * (1_000 - height)),
        from_address=sender,
        to_address="0x" + "c" * 40,
        nonce=nonce,
        state="success",
    )


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=50) as service:
        yield service


def grow_to(service: LocalService, height: int) -> None:
    """Make this height the newest one of the chain."""
    service.load("transactions", [sent("0x" + "d" * 40, height, 0)])


def load(service: LocalService, first: int) -> None:
    """Load transactions of each sender, with nonces from `first` on."""
    rows = [sent(sender, height, first + height - 1) for height in range(20, 0, -1) for sender in SENDERS]
    service.load("address_transactions", rows)


def follow(query: cf.Query[Any], start: str = "beginning", *, undo: bool = False) -> cf.Follow[Any]:
    """Follow a query until all that is due was delivered."""
    options: Any = {"undo": undo}
    follower: cf.Follow[Any] = query.follow(start=start, poll=None, settle=2, **options)
    with closing(follower):
        list(follower)
    return follower


def first_and_later(query: cf.Query[Any], folder: Path) -> tuple[list[cf.Report], list[cf.Report]]:
    """Reports of the runs that begin at the beginning, and of those that continue after them."""
    syncs = [query.sync(folder / "a.duckdb", table="t") for _ in range(2)]
    series = [query.to_parquet_series(folder / "series", settle=2) for _ in range(2)]
    exports = [query.to_parquet(folder / "export", settle=2)]
    exports.append(query.to_parquet(folder / "next", since=exports[0], settle=2))
    firsts = [syncs[0].report, exports[0].report, series[0].report]
    # Without news, the second call returns the export of the first one.
    laters = [syncs[1].report, exports[1].report]
    for undo in (False, True):
        first = follow(query, undo=undo)
        firsts.append(first.report)
        laters.append(follow(query, first.cursor, undo=undo).report)
    return firsts, laters


def texts(report: cf.Report) -> list[str]:
    return [text.partition(";")[0] for text in report.reasons]


@pytest.mark.parametrize("senders", [SENDERS[0], SENDERS], ids=["list", "set"])
@pytest.mark.parametrize(
    ("first", "reason"),
    [(0, None), (1, f"{LIMIT}: 1 older record is missing"), (100, f"{LIMIT}: 100 older records are missing")],
)
def test_runs_from_the_beginning_report_older_records_that_are_missing_and_later_runs_do_not(
    service: LocalService, tmp_path: Path, senders: Any, first: int, reason: str | None
) -> None:
    load(service, first)
    with service.client() as client:
        query = client.address_transactions(senders, direction="from")
        firsts, laters = first_and_later(query, tmp_path)
        reasons = [reason] if reason else []
        assert [texts(report) for report in [query.collect().report, *firsts]] == [reasons] * (1 + len(firsts))
        assert [report.complete for report in firsts] == [reason is None] * len(firsts)
        assert [(texts(report), report.complete) for report in laters] == [([], True)] * len(laters)


def test_list_of_both_directions_may_lack_older_records_in_its_first_run(service: LocalService, tmp_path: Path) -> None:
    load(service, 0)
    with service.client() as client:
        firsts, laters = first_and_later(client.address_transactions(SENDERS), tmp_path)
    assert [texts(report) for report in firsts] == [[f"{LIMIT}: older records may exist"]] * len(firsts)
    assert all(report.complete for report in laters)


def test_records_that_became_too_old_after_they_were_delivered_are_not_missing(
    service: LocalService, tmp_path: Path
) -> None:
    rows = [sent(SENDERS[0], height, height) for height in range(25, -1, -1)]
    with service.client() as client:
        query = client.address_transactions(SENDERS[0], direction="from")
        service.load("address_transactions", rows[5:])
        grow_to(service, 20)
        first = follow(query)
        synced = query.sync(tmp_path / "a.duckdb", table="t", settle=2)
        service.load("address_transactions", rows[:-10])
        grow_to(service, 25)
        second = follow(query, first.cursor)
        again = query.sync(tmp_path / "a.duckdb", table="t", settle=2)
    assert (first.report.complete, synced.report.complete) == (True, True)
    assert (second.report.records, second.report.complete) == (5, True)
    assert (again.rows_added, again.rows_removed, again.report.complete) == (5, 0, True)


def test_run_that_stopped_in_between_is_continued_with_the_reason(service: LocalService) -> None:
    load(service, 100)
    with service.client(concurrency=1) as client:
        query = client.address_transactions(SENDERS, direction="from")
        with closing(query.follow(start="beginning", poll=None)) as begun:
            num_begun = len(next(begun))
        report = follow(query, begun.cursor).report
    assert num_begun + report.records == 40
    assert texts(report) == [f"{LIMIT}: 100 older records are missing"]
    assert [bool(verdict["reasons"]) for verdict in report.by_argument.values()] == [True, True]


def test_first_record_of_a_list_that_was_empty_is_not_preceded_by_older_ones(service: LocalService) -> None:
    """The API returns the 12 months before the last transaction: an address without any never had one."""
    grow_to(service, 10)
    service.load("address_transactions", [sent(SENDERS[0], 5, 0)])
    with service.client() as client:
        query = client.address_transactions(SENDERS[1])
        first = follow(query)
        service.load("address_transactions", [sent(SENDERS[1], 15, 100)])
        grow_to(service, 20)
        report = follow(query, first.cursor).report
    assert (first.report.records, first.report.complete) == (0, True)
    assert (report.records, report.complete) == (1, True)


def test_first_record_that_was_held_back_shows_what_is_missing(service: LocalService) -> None:
    with service.client() as client:
        query = client.address_transactions(SENDERS[0], direction="from")
        service.load("address_transactions", [sent(SENDERS[0], 20, 100)])
        grow_to(service, 20)
        first = follow(query)
        grow_to(service, 30)
        report = follow(query, first.cursor).report
    assert (first.report.records, first.report.complete) == (0, True)
    assert texts(report) == [f"{LIMIT}: 100 older records are missing"]


def test_follower_from_a_recent_start_lacks_nothing(service: LocalService, tmp_path: Path) -> None:
    load(service, 100)
    start = datetime.now(UTC) - timedelta(days=30)
    with service.client() as client:
        query = client.address_transactions(SENDERS, direction="from", start_time=start)
        firsts, laters = first_and_later(query, tmp_path)
    assert all(report.complete for report in [*firsts, *laters])


@pytest.mark.parametrize("senders", [SENDERS[0], SENDERS, [*SENDERS, *(f"0x{number:040x}" for number in range(50))]])
def test_age_of_a_start_takes_one_request_of_all_lists(service: LocalService, senders: Any) -> None:
    load(service, 100)
    with service.client() as client:
        whole = client.address_transactions(senders, direction="from")
        ranged = client.address_transactions(senders, direction="from", start_height=1)

        def requests(query: cf.Query[Any], start: str) -> int:
            before = service.request_count
            follow(query, start)
            return service.request_count - before

        num_requests = requests(whole, "beginning")
        assert requests(ranged, "beginning") == num_requests + 1
        assert requests(ranged, "now") == requests(whole, "now")
        assert requests(ranged, follow(ranged).cursor) <= num_requests
