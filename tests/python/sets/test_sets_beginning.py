"""The first records of a set, which take no more requests than they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from conftest import needs_extra
from sets.test_sets import PAGE, Wallets

if TYPE_CHECKING:
    from collections.abc import Callable

    from strict_server import StrictServer

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
LENGTHS = [7, 4, 2, 9, *[1] * 30]


def query_of(server: StrictServer, wallets: Wallets) -> cf.Query[Any]:
    server.on("address_transactions", wallets)
    return server.client(concurrency=8).address_transactions(wallets.names, page_size=PAGE)


BEGINNINGS: dict[str, Callable[[cf.Query[Any]], object]] = {
    "first": lambda query: query.first(),
    "pages": lambda query: next(iter(query.pages())),
    "head": lambda query: query.dataset().head(2),
}


@needs_extra
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_first_records_of_a_set_take_one_request(server: StrictServer, beginning: str) -> None:
    BEGINNINGS[beginning](query_of(server, Wallets(LENGTHS)))
    assert len(server.requests) == 1


@needs_extra
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_first_records_after_lists_without_any_take_no_more_requests_than_the_whole_set(
    server: StrictServer, beginning: str
) -> None:
    query = query_of(server, Wallets([*[0] * 9, *[5] * 31], frozenset({2, 5})))
    BEGINNINGS[beginning](query)
    num_first = len(server.requests)
    query.collect()
    assert num_first <= len(server.requests) - num_first


def test_pages_of_a_set_have_all_records_of_all_lists(server: StrictServer) -> None:
    wallets = Wallets(LENGTHS, frozenset({0, 3}))
    query = query_of(server, wallets)
    found = [(record.queried[0], record.height) for page in query.pages() for record in page.records]
    assert len(found) == len(set(found))
    assert set(found) == wallets.keys(LENGTHS)
    whole = len(server.requests)
    query_of(server, wallets).collect()
    assert whole <= len(server.requests) - whole
