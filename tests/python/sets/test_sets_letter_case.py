"""Addresses and hashes that differ in letter case only: one value in hexadecimal digits, two in base58."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from pyarrow import compute as pc

import chainframe as cf
from chainframe._reports import merged_verdicts
from chainframe.sinks.sql import is_of, is_row_of
from chainframe.testing import LocalService
from sets.test_sets import senders
from strict_server import StrictServer, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRON = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcRTv8", "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcRTV8"
HEX = "0x" + "ab" * 20, "0x" + "AB" * 20


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=200, seed=7) as running:
        yield running


@pytest.mark.parametrize(("values", "count"), [(TRON, 2), (HEX, 1)])
def test_values_that_differ_in_case_are_one_in_hexadecimal_digits_only(
    service: LocalService, values: tuple[str, str], count: int
) -> None:
    client = service.client()
    assert len(client.address_transactions(values).collect().report.by_argument) == count
    hashes = client.transactions_by_hash(values)
    with pytest.warns(cf.IncompleteResultWarning):
        assert hashes.collect().report.missing == list(values[:count])


@pytest.mark.parametrize(
    ("wanted", "shown", "missing"),
    [
        (("5VfY3abc", "5VfY3ABC"), "5VfY3ABC", ["5VfY3abc"]),
        # The only one that it can be, in the letter case of the service.
        (("5VfY3abc",), "5VFY3ABC", []),
    ],
)
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_record_of_a_base58_hash_is_found_by_the_hash_itself(
    server: StrictServer, wanted: tuple[str, ...], shown: str, missing: list[str]
) -> None:
    server.on("transactions_by_hash", rows_of("transactions_by_hash", [{"txId": shown}]))
    found = server.client().transactions_by_hash(wanted).collect()
    assert [record.tx_id for record in found] == [shown]
    assert found.report.missing == missing


def test_position_and_export_of_another_base58_address_are_refused(service: LocalService, tmp_path: Path) -> None:
    client = service.client()
    first, second = map(client.address_transactions, TRON)
    problem = f'another query: address is "{TRON[0]}" there and "{TRON[1]}" here'
    with pytest.raises(cf.InvalidParameterError, match=re.escape(f"start belongs to {problem}")):
        second.follow(start=first.follow().cursor)
    cursor = client.address_transactions(TRON[:1]).follow().cursor
    with pytest.raises(cf.InvalidParameterError, match=f"a list that the query lacks: address {TRON[0]}; pass it too"):
        client.address_transactions(TRON[1:]).follow(start=cursor)
    first.to_parquet(tmp_path)
    with pytest.raises(cf.ExportError, match=f"another query: address is '{TRON[0]}' there and '{TRON[1]}' here"):
        second.to_parquet(tmp_path)


@pytest.mark.parametrize(("values", "count"), [(TRON, 1), (HEX, 2)])
def test_rows_of_a_table_are_found_by_their_argument(values: tuple[str, str], count: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("create table t as select [unnest(?)] as queried", [list(values)])
        assert connection.sql(f"from t where {is_of(values[0])}").fetchall().__len__() == count
    assert sum(is_row_of(values[0], [value]) for value in values) == count


@pytest.mark.parametrize(("values", "count"), [(TRON, 2), (HEX, 1)])
def test_verdicts_of_several_runs_are_merged_by_value(values: tuple[str, str], count: int) -> None:
    runs: list[dict[str, Any]] = [
        {"argument": [value], "records": [1], "requests": [1], "outcome": [0], "outcomes": ["complete"]}
        for value in values
    ]
    assert len(merged_verdicts(runs)["argument"]) == count


def test_dataset_finds_the_rows_of_an_argument_in_any_letter_case(service: LocalService) -> None:
    values = [value.upper().replace("0X", "0x") for value in senders(service, 2)]
    dataset = service.client().address_transactions(values).dataset()
    expected = dataset.to_table(filter=pc.field("address") == values[0]).num_rows
    assert expected > 0
    lower = values[0].lower()
    for condition in (pc.field("address") == lower, pc.field("address").isin([lower, "0x1"])):
        found = dataset.to_table(filter=condition)
        assert found.num_rows == expected
        assert set(found["address"].to_pylist()) == {lower}
        assert dataset.explain(condition) == dataset.explain(pc.field("address") == values[0])
    both = dataset.to_table(filter=pc.field("address").isin([lower, values[0]]))
    assert set(both["address"].to_pylist()) == {values[0]}
    assert both.num_rows == expected
    others = dataset.to_table(filter=pc.field("address") != lower)
    assert set(others["address"].to_pylist()) == {values[1]}
    with duckdb.connect() as connection:
        connection.register("dataset", dataset)
        counted = connection.execute(f"select count(*) from dataset where address = '{lower}'").fetchall()
    assert counted == [(expected,)]
