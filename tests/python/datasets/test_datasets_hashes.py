"""Filters on the hashes of cross-chain transactions: the API does not say which of them its parameter compares."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.datasets.hashes import DIRECTIONS
from chainframe.testing import LocalService
from datasets.test_datasets import rows
from strict_server import Request, Response, StrictServer, page_of

HASHES = {"id": "id", "main_tx_hash": "alphaTxHash", "zone_tx_hash": "betaTxHash"}


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=20_000, seed=7) as service:
        yield service


@pytest.fixture(scope="module")
def table(service: LocalService) -> pa.Table:
    with service.client(rate_limit=None) as client:
        return client.cross_chain_transactions().to_arrow()


@pytest.mark.parametrize("column", HASHES)
def test_hash_costs_one_request_once_the_api_has_shown_what_it_compares(
    service: LocalService, client: cf.Client, table: pa.Table, column: str
) -> None:
    hashes = pc.unique(table[column]).drop_null().to_pylist()
    for number, value in enumerate([each for each in hashes if each][::40]):
        dataset = client.cross_chain_transactions().dataset()
        service.reset_request_log()
        assert rows(dataset.to_table(filter=pc.field(column) == value)) == rows(table.filter(pc.field(column) == value))
        # For the first one, a page and a hash of the other direction show that the API compares the column.
        assert service.request_count == dataset.report.requests == (3 if number == 0 else 1)
        assert dataset.report.complete
    service.reset_request_log()
    assert client.cross_chain_transactions().dataset().count_rows(filter=pc.field(column) == "0xabc") == 0
    assert service.request_count == 1


def test_filter_on_a_direction_needs_no_other_one(service: LocalService, client: cf.Client, table: pa.Table) -> None:
    wanted = (pc.field("tx_type") == table["tx_type"][0]) & (pc.field("zone_tx_hash") == table["zone_tx_hash"][0])
    service.reset_request_log()
    assert client.cross_chain_transactions().dataset().count_rows(filter=wanted) == 1
    assert service.request_count == 1


def test_several_hashes_cost_one_request_each(service: LocalService, client: cf.Client, table: pa.Table) -> None:
    wanted = pc.field("main_tx_hash").isin(pc.unique(table["main_tx_hash"])[10:15])
    service.reset_request_log()
    found = client.cross_chain_transactions().dataset().to_table(filter=wanted, columns=["value"])
    assert rows(found) == rows(table.filter(wanted).select(["value"]))
    # The first page of the list shows that it has more pages than there are hashes.
    assert service.request_count == 5 + 1


def test_more_hashes_than_pages_read_the_list(service: LocalService, client: cf.Client, table: pa.Table) -> None:
    wanted = pc.field("zone_tx_hash").isin(pc.unique(table["zone_tx_hash"])[:50])
    whole = client.cross_chain_transactions().collect().report.requests
    service.reset_request_log()
    assert client.cross_chain_transactions().dataset().count_rows(filter=wanted) == table.filter(wanted).num_rows
    assert service.request_count == whole


def test_first_hash_costs_three_requests_more_if_nothing_has_it(service: LocalService, client: cf.Client) -> None:
    dataset = client.cross_chain_transactions().dataset()
    service.reset_request_log()
    assert dataset.count_rows(filter=pc.field("main_tx_hash") == "0xabc") == 0
    # The hash, the first page, and a hash of it for each direction.
    assert service.request_count == dataset.report.requests == 4
    assert dataset.report.complete


def test_explain_shows_the_lookup(client: cf.Client) -> None:
    dataset = client.cross_chain_transactions().dataset()
    explained = dataset.explain((pc.field("main_tx_hash") == "0xabc") & (pc.field("zone_block_height") > 5))
    assert explained.startswith("<Query cross_chain_transactions of ZONE_CHAIN, start_height=6, tx_id=0xabc>")
    assert "tx_id compares main_tx_hash" in explained


def records(*, one_direction: bool) -> list[dict[str, Any]]:
    """A list of six pages. One main-chain transaction has several records, one of which has its hash as another one."""
    listed: list[dict[str, Any]] = []
    for index in range(600):
        direction = DIRECTIONS[0 if one_direction else index % 2]
        hashes = {"id": f"0x1{index:03}", "alphaTxHash": f"0x2{index // 2:03}", "betaTxHash": f"0x3{index:03}"}
        listed.append({**hashes, "txType": direction, "betaBlockHeight": str(9_000 - index), "value": "1"})
    listed[400]["betaTxHash"] = listed[300]["alphaTxHash"]
    listed[500]["id"] = ""
    return listed


def by(*names: str) -> Callable[[dict[str, Any], str], bool]:
    return lambda record, value: value in {record[name] for name in names}


def by_origin(record: dict[str, Any], value: str) -> bool:
    return bool(record["alphaTxHash" if record["txType"] == DIRECTIONS[0] else "betaTxHash"] == value)


@pytest.mark.parametrize("one_direction", [False, True])
@pytest.mark.parametrize("column", HASHES)
@pytest.mark.parametrize(
    "compare",
    [
        by(*HASHES.values()),
        by("id"),
        by("alphaTxHash"),
        by("id", "betaTxHash"),
        by_origin,
        lambda _record, _value: False,
    ],
)
def test_result_is_that_of_a_full_read_whatever_the_api_compares(
    server: StrictServer, compare: Callable[[dict[str, Any], str], bool], column: str, *, one_direction: bool
) -> None:
    listed = records(one_direction=one_direction)

    def respond(request: Request) -> Response:
        query = request.query
        limit, page = int(query["limit"]), int(query["page"])
        value = query.get("txid")
        kept = [record for record in listed if value is None or compare(record, value.lower())]
        counts = {"totalPage": str(math.ceil(len(kept) / limit)), "total": str(len(kept))}
        return page_of("cross_chain_transactions", kept[(page - 1) * limit : page * limit], limit=str(limit), **counts)

    server.on("cross_chain_transactions", respond)
    with server.client() as client:
        table = client.cross_chain_transactions().to_arrow()
        for index in (3, 300, 400, 500):
            value = table[column][index].as_py()
            for wanted in (
                pc.field(column) == value,
                pc.field(column).isin([value, "0xabc"]),
                pc.field(column).isin([value, listed[400]["betaTxHash"], listed[400]["id"], "0x2150"]),
            ):
                dataset = client.cross_chain_transactions().dataset()
                assert rows(dataset.to_table(filter=wanted)) == rows(table.filter(wanted))
                # If responses do not show what the API compares: the list, the hashes, and a hash of each direction.
                assert dataset.report.requests <= 6 + 4 + 2
                assert dataset.report.complete
