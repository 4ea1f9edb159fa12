"""Scans whose requests contradict each other: a record that one response shows and the result lacks."""

import datetime as dt
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets.scanner import BATCH_SIZE, Scanner
from datasets.test_datasets_times import between
from strict_server import Request, Response, StrictServer, error, page_of, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
LACKING = "lacks records that another response showed"
# The API returns the last year of an address.
START = dt.datetime.now(dt.UTC).replace(microsecond=0) - dt.timedelta(days=20)
ADDRESS = "0x" + "a" * 40

Record = dict[str, Any]
Hidden = Callable[[Request, int], bool]
"""True if a response to a request lacks the record of that height."""


def shows_all(_request: Request, _height: int) -> bool:
    return False


class Service:
    """Lists of one record a block, without the records that are hidden from some requests."""

    def __init__(self, server: StrictServer, hidden: Hidden = shows_all) -> None:
        self.hidden = hidden
        self.top = 2_000
        self.fork = self.top + 1
        """Height from which on the blocks are those of another fork."""
        self.included_again: set[int] = set()
        """Heights whose transaction both forks have."""
        for call in ("transactions", "address_transactions", "cross_chain_transactions"):
            server.on(call, partial(self.page, call))
        server.on("transactions_by_hash", self.look_up)

    def record(self, height: int) -> Record:
        block = {"height": str(height), "betaBlockHeight": str(height), "blockHash": self.digest("b", height)}
        time = str(int((START + dt.timedelta(seconds=12 * height)).timestamp() * 1_000))
        hashes = {
            "txId": self.digest("c", height),
            "id": self.digest("d", height),
            "betaTxHash": self.digest("e", height),
        }
        # A record whose hashes are equal does not show by which of them it was found.
        hashes["alphaTxHash"] = hashes["betaTxHash"] if height == 300 else self.digest("f", height)
        direction = {"txType": "MainToZone", "from": ADDRESS, "to": ADDRESS}
        times = {"transactionTime": time, "betaBlockTime": time}
        return {**block, **hashes, **direction, **times, "amount": str(height % 7 + 1), "value": "1"}

    def digest(self, kind: str, height: int) -> str:
        is_other = height >= self.fork and (kind == "b" or height not in self.included_again)
        return f"0x{kind}{'1' if is_other else '0'}{height:062x}"

    def page(self, call: str, request: Request) -> Response:
        query = request.query
        limit, page = int(query["limit"]), int(query.get("page", "1"))
        low = int(query.get("height", query.get("startBlockHeight", "1")))
        high = min(int(query.get("height", query.get("endBlockHeight", "10000"))), self.top)
        heights = [height for height in range(high, max(low, 1) - 1, -1) if not self.hidden(request, height)]
        if "txid" in query:
            heights = [height for height in heights if query["txid"] in self.record(height).values()]
        records = [self.record(height) for height in heights[(page - 1) * limit : page * limit]]
        if page > 1 and not records:
            return error(400, "51000")
        pages = str(math.ceil(len(heights) / limit))
        counted = {"total": str(len(heights))} if call == "cross_chain_transactions" else {}
        return page_of(call, records, page=str(page), limit=str(limit), totalPage=pages, **counted)

    def look_up(self, request: Request) -> Response:
        wanted = set(request.query["txId"].split(","))
        found = [self.record(height) for height in range(1, self.top + 1) if self.digest("c", height) in wanted]
        return rows_of("transactions_by_hash", [{**each, "txid": each["txId"]} for each in found])


def scan(query: cf.Query[Any], wanted: pc.Expression) -> tuple[list[Any], cf.Report]:
    dataset = query.dataset()
    found = dataset.to_table(filter=wanted)
    return found[
        "zone_block_height" if "zone_block_height" in found.column_names else "height"
    ].to_pylist(), dataset.report


def is_reported(report: cf.Report) -> bool:
    assert [LACKING in reason for reason in report.reasons] == [not report.complete] * (not report.complete)
    return not report.complete


@pytest.mark.parametrize("is_lost", [False, True])
def test_record_that_only_a_lookup_returns_is_missing_from_the_list(server: StrictServer, *, is_lost: bool) -> None:
    service = Service(server, lambda request, height: is_lost and height == 300 and "txid" not in request.query)
    wanted = pc.field("main_tx_hash") == service.digest("e", 300)
    with server.client() as client:
        heights, report = scan(client.cross_chain_transactions(), wanted)
        assert heights == [300] * (not is_lost)
        assert is_reported(report) is is_lost
    if is_lost:
        with server.client(strict=True) as client, pytest.raises(cf.IncompleteResultError, match=LACKING):
            scan(client.cross_chain_transactions(), wanted)


def test_list_that_was_empty_before_lookups_found_records_is_read_again(server: StrictServer) -> None:
    service = Service(server)
    wanted = pc.field("main_tx_hash").isin([service.digest("e", 300), *(service.digest("f", at) for at in (7, 8))])
    service.hidden = lambda _request, _height: len(server.requests) == 1
    with server.client() as client:
        heights, report = scan(client.cross_chain_transactions(), wanted)
        assert heights == [300, 8, 7]
        assert not is_reported(report)


@pytest.mark.parametrize("is_lost", [False, True])
def test_record_that_only_the_lookup_of_heights_returns_is_missing(server: StrictServer, *, is_lost: bool) -> None:
    service = Service(server, lambda _request, height: is_lost and height == 300)
    with server.client() as client:
        heights, report = scan(client.transactions(), pc.field("tx_id") == service.digest("c", 300))
        assert heights == [300] * (not is_lost)
        assert is_reported(report) is is_lost


def newest_blocks() -> pc.Expression:
    return between(
        "transaction_time", START + dt.timedelta(seconds=12 * 1_990), START + dt.timedelta(seconds=12 * 2_001)
    )


def is_ranged(request: Request) -> bool:
    return request.query.get("startBlockHeight", "0") != "0"


@pytest.mark.parametrize("lost", [set(), {1_995}, {*range(1_990, 2_001)}])
def test_record_of_the_first_page_is_missing_from_the_heights_of_times(server: StrictServer, lost: set[int]) -> None:
    Service(server, lambda request, height: height in lost and is_ranged(request))
    with server.client() as client:
        heights, report = scan(client.address_transactions(ADDRESS), newest_blocks())
        assert sorted(heights) == [height for height in range(1_990, 2_001) if height not in lost]
        assert is_reported(report) is bool(lost)


@pytest.mark.parametrize("again", [set(), {1_999}, {1_998, 2_000}, {*range(1_990, 2_001)}])
@pytest.mark.parametrize("depth", [3, 60])
def test_blocks_that_are_replaced_during_the_search_are_no_contradiction(
    server: StrictServer, depth: int, again: set[int]
) -> None:
    service = Service(server)
    service.included_again = again

    def hidden(request: Request, _height: int) -> bool:
        if is_ranged(request):
            service.fork = service.top - depth
        return False

    service.hidden = hidden
    with server.client() as client:
        heights, report = scan(client.address_transactions(ADDRESS), newest_blocks())
        assert sorted(heights) == [*range(1_990, 2_001)]
        assert not is_reported(report)


@pytest.mark.parametrize("is_lost", [False, True])
def test_records_of_pages_that_locate_times_are_missing_from_their_range(
    server: StrictServer, *, is_lost: bool
) -> None:
    Service(
        server,
        lambda request, height: is_lost and height < 1_530 and is_ranged(request),
    )
    ends = (START + dt.timedelta(seconds=12 * height) for height in (1_500, 2_001))
    with server.client() as client:
        heights, report = scan(client.cross_chain_transactions(page_size=20), between("zone_block_time", *ends))
        assert sorted(heights) == [*range(1_530 if is_lost else 1_500, 2_001)]
        assert is_reported(report) is is_lost


def by_hash(service: Service) -> pc.Expression:
    return pc.field("main_tx_hash").isin([service.digest("e", height) for height in (300, 400)])


def by_transaction(service: Service) -> pc.Expression:
    return pc.field("tx_id") == service.digest("c", 300)


def by_zone_time(_service: Service) -> pc.Expression:
    return between("zone_block_time", START + dt.timedelta(seconds=12 * 280), START + dt.timedelta(seconds=12 * 2_001))


SCANS: dict[str, tuple[Callable[[cf.Client], cf.Query[Any]], Callable[[Service], pc.Expression], int]] = {
    "hashes of a list": (lambda client: client.cross_chain_transactions(), by_hash, 300),
    "heights of hashes": (lambda client: client.transactions(), by_transaction, 300),
    "times of a list with a count": (
        lambda client: client.cross_chain_transactions(page_size=50),
        by_zone_time,
        1_990,
    ),
    "times of a list without a count": (
        lambda client: client.address_transactions(ADDRESS),
        lambda _: newest_blocks(),
        1_995,
    ),
    "newest record": (lambda client: client.address_transactions(ADDRESS), lambda _: newest_blocks(), 2_000),
}


@pytest.mark.parametrize("name", SCANS)
def test_record_that_a_reorganization_removes_during_a_scan_is_no_reason(server: StrictServer, name: str) -> None:
    make, wanted, height = SCANS[name]
    results = set()
    for since in (1, 2, 3, 4, 5, 6, 8, 40):
        server.requests.clear()
        service = Service(server)
        expression = wanted(service)
        # The transactions of all other blocks are included again where they were.
        service.included_again = set(range(2_001)) - {height}

        def hidden(_request: Request, hidden: int, service: Service = service, since: int = since) -> bool:
            if len(server.requests) <= since:
                return False
            service.fork = height
            return hidden == height

        service.hidden = hidden
        with server.client() as client:
            try:
                heights, report = scan(make(client), expression)
            except cf.PaginationDriftError:
                # The list was reorganized while one of its queries was read.
                continue
            assert not is_reported(report), since
            results.add(height in heights)
    assert results == {False, True}


@pytest.mark.parametrize("is_lost", [False, True])
def test_parallel_read_reads_the_list_if_its_page_shows_what_a_lookup_lacks(
    server: StrictServer, *, is_lost: bool
) -> None:
    service = Service(server, lambda request, height: is_lost and height == 1_999 and "txid" in request.query)
    has_hash = pc.field("main_tx_hash") == service.digest("f", 1_999)
    wanted = has_hash & (pc.field("tx_type") == "MainToZone")
    with server.client() as client:
        queries = Scanner(client.cross_chain_transactions(), None, wanted, BATCH_SIZE).queries()
        found = [record for query in queries for record in query if record.main_tx_hash == service.digest("f", 1_999)]
        assert len(found) == 1
        assert ("tx_id=" in repr(queries[0])) is not is_lost


def never(_server: StrictServer) -> bool:
    return False


def from_some_requests(server: StrictServer) -> bool:
    return is_ranged(server.requests[-1])


def from_then_on(server: StrictServer) -> bool:
    return any(map(is_ranged, server.requests))


@pytest.mark.parametrize("is_absent", [never, from_some_requests, from_then_on])
@pytest.mark.parametrize("growth", [1, 2, 4, 20])
def test_record_is_looked_for_on_the_later_pages_of_a_list_that_grows_during_the_scan(
    server: StrictServer, growth: int, is_absent: Callable[[StrictServer], bool]
) -> None:
    service = Service(server, lambda _request, height: height == 1_995 and is_absent(server))

    def page(request: Request) -> Response:
        response = service.page("cross_chain_transactions", request)
        service.top += growth * is_ranged(request)
        return response

    server.on("cross_chain_transactions", page)
    wanted = between("zone_block_time", START + dt.timedelta(seconds=12 * 1_500), START + dt.timedelta(days=19))
    with server.client(concurrency=1) as client:
        heights, report = scan(client.cross_chain_transactions(page_size=20), wanted)
        assert (1_995 in heights) is (is_absent is never)
        # A list that has grown by more than eight pages is not read down to the record.
        assert is_reported(report) is (is_absent is from_some_requests or (is_absent is from_then_on and growth == 20))


@pytest.mark.parametrize("is_answered", [False, True])
def test_record_is_missing_if_its_page_cannot_be_requested_again(server: StrictServer, *, is_answered: bool) -> None:
    service = Service(server)
    service.included_again = set(range(2_001)) - {1_995}
    service.hidden = lambda _request, height: height == 1_995 and service.fork == height

    def page(request: Request) -> Response:
        if is_ranged(request):
            service.fork = 1_995
        elif service.fork == 1_995 and not is_answered:
            return error(503, "50001")
        return service.page("address_transactions", request)

    server.on("address_transactions", page)
    with server.client() as client:
        heights, report = scan(client.address_transactions(ADDRESS), newest_blocks())
        assert sorted(heights) == [height for height in range(1_990, 2_001) if height != 1_995]
        assert is_reported(report) is not is_answered


@pytest.mark.parametrize("is_lost", [False, True])
def test_record_of_a_short_list_that_shows_where_the_times_are_is_missing_from_the_list_that_is_read_instead(
    server: StrictServer, *, is_lost: bool
) -> None:
    service = Service(
        server, lambda request, height: is_lost and height == 15 and "startBlockHeight" not in request.query
    )
    service.top = 19
    with server.client() as client:
        wanted = between("zone_block_time", START + dt.timedelta(seconds=12 * 13), START + dt.timedelta(days=19))
        heights, report = scan(client.cross_chain_transactions(), wanted)
        assert heights == [height for height in range(19, 12, -1) if height != 15 or not is_lost]
        assert is_reported(report) is is_lost
