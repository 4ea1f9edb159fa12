"""Filters of `query.dataset()` and `query.scan()` of sets: the lists that a filter accepts, and no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from datasets.test_datasets import rows
from sets.test_sets import PAGE, Wallets, of_single_lists, queried_and_record, senders, values_of
from strict_server import StrictServer

POLARS = int(pl.__version__.partition(".")[0])

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=1_500, seed=44) as running:
        yield running


def requests_of(service: LocalService, query: cf.Query[Any]) -> int:
    before = service.request_count
    query.collect()
    return service.request_count - before


def test_sql_with_some_addresses_sends_what_a_set_of_them_sends(service: LocalService) -> None:
    values, client = senders(service, 20), service.client()
    wanted = [values[3], values[7], "0xab"]
    expected = client.address_transactions(wanted[:2]).collect()
    cost = requests_of(service, client.address_transactions(wanted[:2]))
    dataset = client.address_transactions(values).dataset()
    before = service.request_count
    connection = duckdb.connect()
    connection.register("dataset", dataset)
    sql = f"select address, count(*) from dataset where address in {tuple(wanted)} group by 1"
    assert dict(connection.execute(sql).fetchall()) == {
        name: verdict["records"] for name, verdict in expected.report.by_argument.items()
    }
    assert service.request_count - before == cost == dataset.report.requests
    assert list(dataset.report.by_argument) == wanted[:2]
    assert dataset.report.complete == expected.report.complete


def test_scan_of_some_addresses_has_the_records_of_their_single_lists(service: LocalService) -> None:
    values, client = senders(service, 20), service.client()
    cost = requests_of(service, client.address_transactions(values[:2]))
    before = service.request_count
    frame = client.address_transactions(values).scan().filter(pl.col("address").is_in(values[:2]))
    found = frame.select("address", "tx_id").collect().rows()
    if POLARS >= 2:  # earlier versions keep the condition to themselves
        assert service.request_count - before == cost
    expected = [(value, record.tx_id) for value in values[:2] for record in client.address_transactions(value)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("case", range(9))
def test_dataset_of_every_set_has_the_records_of_single_lists(service: LocalService, case: int) -> None:
    call, name, values = values_of(service)[case]
    client = service.client()
    query = getattr(client, call)(**{name: values})
    dataset = query.dataset()
    table = dataset.to_table()
    assert queried_and_record(query.collect()) == of_single_lists(client, call, name, values)
    assert rows(table.select(query.to_arrow().column_names)) == rows(query.to_arrow())
    if name not in query.to_arrow().column_names and name != "height":
        assert [[value] for value in table[name].to_pylist()] == table["queried"].to_pylist()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", range(9))
def test_any_filter_returns_what_it_leaves_of_all_records(service: LocalService, case: int, seed: int) -> None:
    chance = random.Random(seed)
    call, name, values = values_of(service)[case]
    dataset = getattr(service.client(), call)(**{name: values}).dataset()
    table = dataset.to_table()
    whole = dataset.report.requests
    shown = [column for column in (name, "height", "from_address", "zone_block_height") if column in table.column_names]

    def comparison() -> pc.Expression:
        column = chance.choice(shown)
        present = [value for value in table[column].to_pylist() if value is not None] or [None]
        field, one, other = pc.field(column), chance.choice(present), chance.choice(present)
        kinds = [field == one, field >= one, field != one, field.isin([one, other]), field.is_null() | (field < one)]
        wanted: pc.Expression = chance.choice(kinds)
        return wanted

    for _ in range(4):
        wanted = comparison() & comparison() if chance.random() < 0.5 else comparison() | ~comparison()
        assert rows(dataset.to_table(filter=wanted)) == rows(table.filter(wanted)), str(wanted)
        # A range of heights of an address takes a request that shows what is below it.
        assert dataset.report.requests <= whole + len(values)


def test_column_of_the_records_narrows_a_set(service: LocalService) -> None:
    client = service.client()
    tokens = [token.token_contract_address or "" for token in client.tokens(max_items=6)]
    dataset = client.token_transfers(tokens).dataset()
    assert "address" not in dataset.schema.names
    wanted = pc.field("token_contract_address").isin([tokens[1].upper().replace("0X", "0x"), tokens[2]])
    assert dataset.explain(wanted).count("token_contract_address=2 values") == 1
    found = dataset.to_table(filter=pc.field("token_contract_address").isin(tokens[1:3]))
    assert found.num_rows == len(client.token_transfers(tokens[1:3]).collect())
    heights = [block.height or 0 for block in client.blocks(max_items=9)]
    blocks = client.blocks(height=heights).dataset()
    before = service.request_count
    assert blocks.count_rows(filter=pc.field("height") >= heights[2]) == 3
    assert service.request_count - before == 3


def test_several_ranges_of_heights_read_a_set_once(service: LocalService) -> None:
    values = senders(service, 4)
    dataset = service.client().address_transactions(values).dataset()
    wanted = pc.field("height").isin([18_000_001, 18_000_900]) & (pc.field("from_address") != "0xab")
    (line,) = dataset.explain(wanted).splitlines()
    assert "start_height=18000000, end_height=18000901" in line
    crossed = service.client().cross_chain_transactions(address=values).dataset()
    wanted = pc.field("from_address").isin(["0xab", "0xcd"])
    assert crossed.explain(wanted) == repr(service.client().cross_chain_transactions(address=values))


@pytest.mark.parametrize("text", ["", "0xab,0xcd"])
def test_text_that_is_no_value_reads_all_lists(service: LocalService, text: str) -> None:
    tokens = [token.token_contract_address or "" for token in service.client().tokens(max_items=3)]
    dataset = service.client().token_transfers(tokens).dataset()
    assert dataset.explain(pc.field("token_contract_address") == text) == repr(service.client().token_transfers(tokens))


def test_filter_without_a_value_of_the_set_sends_nothing(service: LocalService) -> None:
    dataset = service.client().address_transactions(senders(service, 3)).dataset()
    before = service.request_count
    assert dataset.to_table(filter=pc.field("address") == "0xab").num_rows == 0
    assert service.request_count == before
    assert dataset.explain(pc.field("address") == "0xab").startswith("no request")


def test_list_of_thousands_of_addresses_narrows_a_set(service: LocalService) -> None:
    values = [f"0x{index:040x}" for index in range(4_000)]
    dataset = service.client().address_transactions(values).dataset()
    wanted = pc.field("address").isin([*values[:2_500], "0xab"]) & (pc.field("amount").is_valid())
    assert "address=2500 values" in dataset.explain(wanted)


def test_set_joins_a_table_of_addresses(service: LocalService) -> None:
    values, client = senders(service, 5), service.client()
    wallets = pa.table({"address": values[:3], "label": ["a", "b", "c"]})
    connection = duckdb.connect()
    connection.register("dataset", client.address_transactions(wallets["address"]).dataset())
    sql = "select label, count(*) from dataset join wallets using (address) group by 1 order by 1"
    counts = [len(client.address_transactions(value).collect()) for value in values[:3]]
    expected = list(zip("abc", counts, strict=True))
    assert connection.execute(sql).fetchall() == expected
    labels = pl.from_arrow(wallets)
    assert isinstance(labels, pl.DataFrame)
    joined = client.address_transactions(values).scan().join(labels.lazy(), on="address").group_by("label").len()
    assert sorted(joined.collect().rows()) == expected


def test_records_of_several_lists_have_no_argument_with_unique(service: LocalService) -> None:
    values, client = senders(service, 9), service.client()
    query = client.address_transactions(values, unique=True)
    dataset = query.dataset()
    assert "address" not in dataset.schema.names
    height = sorted(row["height"] for row in query.to_arrow().to_pylist())[40]
    found = dataset.to_table(filter=pc.field("height") >= height, columns=["tx_id", "height"])
    kept = query.to_arrow().filter(pc.field("height") >= height)
    assert rows(found) == rows(kept.select(["tx_id", "height"]))


def test_refused_address_is_named_by_the_report_of_a_scan(server: StrictServer) -> None:
    wallets = Wallets([5, 4, 0, 9], frozenset({1}))
    server.on("address_transactions", wallets)
    dataset = server.client().address_transactions(wallets.names, page_size=PAGE).dataset()
    found = dataset.to_table(columns=["address", "height"], filter=pc.field("address") <= wallets.names[2])
    assert found.to_pylist() == [{"address": wallets.names[0], "height": height} for height in range(5, 0, -1)]
    assert not dataset.report.complete
    verdicts = dataset.report.by_argument
    assert [name for name, verdict in verdicts.items() if verdict["error"]] == [wallets.names[1]]
    assert wallets.names[3] not in verdicts
