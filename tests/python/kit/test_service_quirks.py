"""Quirks of the local server: chainframe returns a right result under each, or an error or a reason."""

from __future__ import annotations

import warnings
from typing import Any, get_args

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from chainframe.testing._types import QuirkName

TRANSACTIONS = 400
ADDRESS = "0x3a4b5c"


def arguments_of(service: LocalService) -> list[tuple[str, dict[str, Any]]]:
    """Queries of every list, with arguments that select a part of it."""
    with service.client() as client:
        transactions = client.transactions().collect()
        crossings = client.cross_chain_transactions(max_items=20).collect()
        tokens = client.tokens(max_items=20).collect()
    height, token = transactions[5].height, tokens[0].token_contract_address
    return [
        ("tokens", {}),
        ("tokens", {"token_contract_address": token}),
        ("token_transfers", {"token_contract_address": token}),
        ("token_transfers", {"token_contract_address": token, "min_amount": "50"}),
        ("cross_chain_transactions", {}),
        ("cross_chain_transactions", {"start_height": crossings[-1].zone_block_height}),
        ("blocks", {}),
        ("address_transactions", {"address": transactions[0].input}),
        ("large_transactions", {}),
        ("transactions", {}),
        ("transactions", {"height": height}),
        ("transactions", {"block_hash": transactions[5].block_hash}),
        ("transactions", {"start_height": height, "page_size": 20}),
        ("transactions", {"page_size": 20}),
    ]


Outcome = tuple[str, list[Any] | None]


def outcome(client: cf.Client, call: str, arguments: dict[str, Any]) -> Outcome:
    """Return the ending of a query, and its records if the result is called complete."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.IncompleteResultWarning)
        try:
            records = getattr(client, call)(**arguments).collect()
        except cf.ChainframeError as error:
            return type(error).__name__, None
    if not records.report.complete:
        return "; ".join(map(str, records.report.reasons)) or "incomplete", None
    return "complete", list(records)


QUIRKS: list[Any] = [
    *get_args(QuirkName),
    *({"kind": "filter_ignored", "filter": name} for name in ("height", "start_height", "min_amount", "block_hash")),
    {"kind": "filter_ignored", "filter": "token_contract_address"},
]


@pytest.mark.parametrize("quirk", QUIRKS, ids=str)
def test_result_under_a_quirk_is_right_or_not_called_complete(quirk: Any) -> None:
    options: dict[str, Any] = {"transactions": TRANSACTIONS, "seed": 3, "simulated": True}
    with LocalService(**options) as regular:
        queries = arguments_of(regular)
        with regular.client() as client:
            expected = [outcome(client, *query) for query in queries]
    if quirk == "empty_throttle":
        options["rate_limit"] = 5.0
    differing = 0
    for query, (_, records) in zip(queries, expected, strict=True):
        with LocalService(**options, quirks=[quirk]) as service, service.client() as client:
            ending, found = outcome(client, *query)
        if found is not None and records is not None:
            assert is_right(quirk, query[0], found, records), (quirk, query)
        differing += ending != "complete"
    assert differing < len(queries), f"nothing is complete under {quirk}"


def is_right(quirk: Any, call: str, found: list[Any], records: list[Any]) -> bool:
    if quirk == "block_replaced":
        # The records of either of the two blocks.
        return [without_hashes(record) for record in found] == [without_hashes(record) for record in records]
    if quirk == "lagging_replica":
        return found in (records, records[2:])
    if quirk == "ties_reordered" or call == "tokens":
        return sorted(map(repr, found)) == sorted(map(repr, records))
    return found == records


def without_hashes(record: cf.Record) -> str:
    hashes = {"hash", "block_hash", "tx_id", "id", "main_tx_hash", "zone_tx_hash"}
    return repr({name: value for name, value in record.to_dict().items() if name not in hashes})


def pages(service: LocalService, call: str, count: int, **arguments: Any) -> list[list[Any]]:
    """Rows of consecutive requests for the first page, as sent."""
    bodies = []
    for _ in range(count):
        with service.client() as client:
            page = next(iter(getattr(client, call)(**arguments, page_size=20).pages()))
            bodies.append([page.total, page.total_pages, *page.records])
    return bodies


def first_pages(quirk: Any, call: str = "transactions", count: int = 3, **options: Any) -> list[list[Any]]:
    with LocalService(transactions=300, seed=3, quirks=[quirk], **options) as service:
        return pages(service, call, count)


def test_each_quirk_shows() -> None:
    """A quirk that changed nothing would give false confidence."""
    (regular,) = first_pages("page_ignored", count=1)
    with LocalService(transactions=300, seed=3, quirks=["ties_reordered"]) as service:
        height = regular[4].height
        one, two = pages(service, "transactions", 2, height=height)
    assert len(one) > 3
    assert two != one
    assert sorted(map(repr, two)) == sorted(map(repr, one))
    one, two, three = first_pages("lagging_replica")
    assert (one, two[2:-2], three) == (regular, regular[4:], regular)
    one, two, three = first_pages("count_off_by_one", "transactions")
    assert [page[1] for page in (one, two, three)] == [15, 16, 15]
    assert first_pages("page_count_capped", count=1)[0][1] == 5
    ranks = first_pages("ranks_moved", "tokens", 2)
    assert ranks[0] != ranks[1]
    forks = first_pages("block_replaced", count=3)
    assert forks[0] == forks[1]
    assert forks[1][2].block_hash != forks[2][2].block_hash
    assert forks[1][-1] == forks[2][-1]
    with LocalService(transactions=300, quirks=["page_size_capped"]) as service, service.client() as client:
        assert len(next(iter(client.transactions().pages())).records) == 20


def test_counts_are_cached_while_the_list_grows() -> None:
    with LocalService(transactions=95, growth=10, quirks=["count_cached"]) as service:
        totals = [page[1] for page in pages(service, "transactions", 11)]
    assert totals[:10] == [5] * 10
    assert totals[10] > 5


def test_count_is_capped_at_the_result_window() -> None:
    with LocalService(transactions=3_000, max_result_window=40) as service, service.client() as client:
        token = client.tokens(max_items=1).collect()[0].token_contract_address
        assert token is not None
        total = next(iter(client.token_transfers(token).pages())).total
        assert total is not None
        assert total > 40
        service.quirks = ["count_capped"]
        assert next(iter(client.token_transfers(token).pages())).total == 40


def test_throttle_by_empty_data_needs_a_rate_limit() -> None:
    with pytest.raises(cf.ConfigError, match="rate_limit"):
        LocalService(transactions=0, quirks=["empty_throttle"])
    with LocalService(transactions=100, rate_limit=2, simulated=True, quirks=["empty_throttle"]) as service:
        with service.client(rate_limit=None, max_retries=0, strict=False) as client:
            for _ in range(6):
                client.blocks(max_items=1).collect()
        assert {(entry["status"], entry["code"]) for entry in service.request_log} == {(200, "0")}


@pytest.mark.parametrize(
    ("quirks", "problem"),
    [
        (["ties_reorderd"], "ties_reorderd"),
        ("page_ignored", "list"),
        ([{"kind": "filter_ignored"}], "filter"),
        ([{"kind": "filter_ignored", "filter": "hight"}], "hight"),
        ([{"kind": "page_ignored", "every": 2}], "every"),
        ([3], "invalid"),
    ],
)
def test_invalid_quirk_is_refused_by_name(quirks: Any, problem: str) -> None:
    with pytest.raises(cf.ConfigError, match=problem):
        LocalService(transactions=0, quirks=quirks)
    with LocalService(transactions=0) as service:
        with pytest.raises(cf.ConfigError, match=problem):
            service.quirks = quirks
        assert service.quirks == []
