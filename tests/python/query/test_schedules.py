"""Short schedules of changes to a list while it is read: the result is a state of the list, or an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

Change = Callable[[list[str]], None]


class List:
    """A list of records, newest first, that changes after some of its responses."""

    def __init__(self, call: str, records: str, changes: dict[int, Change] | None = None) -> None:
        self.call = call
        self.records = records.split()
        self.changes = changes or {}
        self.responses = 0

    def __call__(self, request: Request) -> Response:
        page, limit = int(request.query["page"]), int(request.query["limit"])
        rows = [{"id": name, "txid": name, "height": "7"} for name in self.records[(page - 1) * limit : page * limit]]
        total = {"total": str(len(self.records))} if self.call == "cross_chain_transactions" else {}
        pages = str(-(-len(self.records) // limit))
        response = page_of(self.call, rows, page=str(page), limit=str(limit), totalPage=pages, **total)
        self.responses += 1
        change = self.changes.get(self.responses)
        if change is not None:
            change(self.records)
        return response


def add(*names: str) -> Change:
    return lambda records: records.__setitem__(slice(0, 0), names)


def delete(*indices: int) -> Change:
    def change(records: list[str]) -> None:
        for index in sorted(indices, reverse=True):
            del records[index]

    return change


def both(*changes: Change) -> Change:
    def change(records: list[str]) -> None:
        for each in changes:
            each(records)

    return change


def numbered(count: int) -> str:
    return " ".join(f"r{number}" for number in range(count))


def read(server: StrictServer, changing: List, **options: Any) -> list[str]:
    server.on(changing.call, changing)
    query = getattr(server.client(concurrency=1), changing.call)(**options)
    return names(query.collect())


def names(records: Any) -> list[str]:
    return [record.id if hasattr(record, "id") else record.tx_id for record in records]


SCHEDULES: dict[str, tuple[List, int]] = {
    "rolling window": (List("cross_chain_transactions", numbered(16), {3: both(add("new"), delete(16))}), 5),
    "deep reorganization": (
        List("cross_chain_transactions", "a b c d e f", {1: both(delete(*range(6)), add(*"uvwxyz"))}),
        2,
    ),
    "deleted at the seam and below": (List("cross_chain_transactions", numbered(41), {2: delete(19, 30)}), 10),
    "deleted after the length is known": (List("transactions", numbered(60), {2: delete(45)}), 20),
    "growth hides deletions": (List("transactions", "a b c d", {2: both(add("n"), delete(1, 3))}), 2),
    "duplicate across pages": (List("transactions", "a b b d", {3: delete(0)}), 2),
    "there and back": (List("transactions", "a b c d e f", {3: delete(0), 4: add("n")}), 2),
    "pattern with a deletion": (List("cross_chain_transactions", "a b a", {1: both(add("a"), delete(3))}), 1),
    "duplicates at the head": (List("cross_chain_transactions", "x x x y", {1: both(add("x", "x"), delete(5))}), 3),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_result_of_a_changing_list_is_one_of_its_states_or_an_error(server: StrictServer, schedule: str) -> None:
    template, page_size = SCHEDULES[schedule]
    changing = List(template.call, " ".join(template.records), template.changes)
    states = [list(changing.records)]

    def recorded(change: Change) -> Change:
        return both(change, lambda records: states.append(list(records)))

    changing.changes = {after: recorded(change) for after, change in changing.changes.items()}
    try:
        result = read(server, changing, page_size=page_size)
    except cf.PaginationDriftError:
        return
    assert result in [state[newer:] for state in states for newer in range(2)]


@pytest.mark.parametrize("schedule", ["rolling window", "deep reorganization", "deleted at the seam and below"])
def test_deleted_records_of_a_counted_list_raise(server: StrictServer, schedule: str) -> None:
    changing, page_size = SCHEDULES[schedule]
    server.on(changing.call, List(changing.call, " ".join(changing.records), changing.changes))
    query = getattr(server.client(concurrency=1), changing.call)(page_size=page_size)
    with pytest.raises(cf.PaginationDriftError):
        list(query)


def test_deletion_between_a_cursor_and_its_resumption_raises(server: StrictServer) -> None:
    changing = List("cross_chain_transactions", numbered(9), {1: delete(5)})
    server.on("cross_chain_transactions", changing)
    client = server.client(concurrency=1)
    query = client.cross_chain_transactions(page_size=5)
    assert next(iter(query)).id == "r0"
    with pytest.raises(cf.PaginationDriftError):
        client.resume(query.cursor).collect()


@pytest.mark.parametrize(
    ("call", "records", "page_size"),
    [
        ("transactions", "a b b d", 2),
        ("transactions", "a b a b", 2),
        ("transactions", "a b c b c c a", 3),
        ("cross_chain_transactions", "x x x x x", 3),
    ],
)
def test_duplicates_of_a_stable_list_are_all_returned(
    server: StrictServer, call: str, records: str, page_size: int
) -> None:
    assert read(server, List(call, records), page_size=page_size) == records.split()


@pytest.mark.parametrize("call", ["cross_chain_transactions", "transactions"])
def test_list_that_grows_by_a_page_per_response_is_read_within_three_times_its_pages(
    server: StrictServer, call: str
) -> None:
    growth = {after: add(*(f"n{after}-{index}" for index in range(50))) for after in range(1, 60)}
    changing = List(call, numbered(500), growth)
    server.on(call, changing)
    query = getattr(server.client(concurrency=8), call)(page_size=50)
    assert names(query.collect()) == numbered(500).split()
    assert changing.responses <= 3 * 10


@pytest.mark.parametrize("call", ["cross_chain_transactions", "transactions"])
def test_what_fits_into_a_page_takes_one_request(server: StrictServer, call: str) -> None:
    for records, options in ((numbered(30), {}), (numbered(500), {"max_items": 20}), (numbered(500), {})):
        changing = List(call, records)
        server.on(call, changing)
        query = getattr(server.client(), call)(**options)
        if len(changing.records) == 500 and not options:
            assert query.first() is not None
        else:
            query.collect()
        assert changing.responses == 1


@pytest.mark.parametrize("length", [110, 150, 10_000])
@pytest.mark.parametrize("after", range(1, 8))
def test_deletion_hides_no_other_record_of_a_list_that_is_read_in_part(
    server: StrictServer, length: int, after: int
) -> None:
    records = numbered(length)
    whole, deleted = records.split(), records.split()
    del deleted[5]
    try:
        result = read(server, List("transactions", records, {after: delete(5)}), page_size=10, max_items=100)
    except cf.PaginationDriftError:
        return
    assert result in (whole[:100], deleted[:100])


@pytest.mark.parametrize(("wanted", "requests"), [(50, 1), (100, 3), (250, 6), (500, 12)])
def test_part_of_a_list_takes_few_more_requests_than_its_pages(
    server: StrictServer, wanted: int, requests: int
) -> None:
    changing = List("transactions", numbered(1_000))
    assert read(server, changing, page_size=50, max_items=wanted) == numbered(wanted).split()
    assert changing.responses == requests


def test_resumed_query_that_wants_no_more_records_verifies_those_it_returned(server: StrictServer) -> None:
    replaced = both(delete(*range(6)), add(*"uvwxyz"))
    server.on("cross_chain_transactions", List("cross_chain_transactions", numbered(10), {2: replaced}))
    client = server.client(concurrency=1)
    pages = client.cross_chain_transactions(page_size=2, max_items=4).pages()
    cursor = [next(pages) for _ in range(2)][1].cursor
    with pytest.raises(cf.PaginationDriftError, match="deleted or replaced"):
        client.resume(cursor).collect()


def test_resumed_query_finds_its_place_in_a_list_that_grows_by_a_page_per_response(server: StrictServer) -> None:
    growth = {number: add(*[f"n{number}-{record}" for record in range(10)][::-1]) for number in range(1, 40)}
    server.on("transactions", List("transactions", numbered(30), growth))
    client = server.client(concurrency=1)
    query = client.transactions(page_size=10, max_items=2)
    first = next(iter(query)).tx_id
    assert [first, *names(client.resume(query.cursor).collect())] == ["r0", "r1"]


def test_beginning_of_a_list_in_pages_of_one_record_is_located_by_its_length(server: StrictServer) -> None:
    """No page overlaps another, but the number of pages is the number of records."""
    changing = List("transactions", numbered(3), {number: add(f"n{number}") for number in range(1, 9)})

    def respond(request: Request) -> Response:
        return changing(dataclasses.replace(request, query=request.query | {"limit": "1"}))

    server.on("transactions", respond)
    query = server.client(concurrency=1, strict=False).transactions(page_size=1, max_items=2)
    assert names(query.collect()) == ["r0", "r1"]
    assert query.report.complete
