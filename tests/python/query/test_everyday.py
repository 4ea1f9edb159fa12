"""First steps of a user: columns by name, JSON, what a query is asked for as if it were a frame, and display."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import make_records
from conftest import Sample, needs_extra


def test_column_of_records_by_name(client: cf.Client) -> None:
    records = client.large_transactions(max_items=70).collect()
    assert records["amount"] == [record.amount for record in records]
    assert isinstance(records["amount"][0], Decimal)
    with pytest.raises(
        KeyError, match=r"LargeTransaction has no column 'amont'; it has transaction_time, .*; did you mean 'amount'"
    ):
        records["amont"]


@pytest.mark.parametrize("call", ["large_transactions", "tokens", "logs", "transactions_by_hash"])
def test_dictionaries_for_json(client: cf.Client, sample: Sample, call: str) -> None:
    query = sample.query(client, call)
    exact, plain = query.to_dicts(), query.to_dicts(json=True)
    assert json.loads(json.dumps(plain)) == plain
    for row, values in zip(exact, plain, strict=True):
        for name, value in row.items():
            if isinstance(value, Decimal):
                assert Decimal(values[name]) == value
            elif isinstance(value, datetime):
                assert datetime.fromisoformat(values[name]) == value
            else:
                assert str(values[name]) == str(value)
    with pytest.raises(TypeError):
        json.dumps(client.large_transactions(max_items=1).to_dicts())


def test_zero_with_decimal_places_is_written_in_digits() -> None:
    zero = "0.000000000000000000"
    records = make_records("transactions", [{"amount": zero}])
    assert records.to_dicts(json=True)[0]["amount"] == zero
    assert f">{zero}<" in records._repr_html_()
    assert f">{zero}<" in records[0]._repr_html_()


def test_query_names_the_call_in_place_of_a_frame_method(client: cf.Client) -> None:
    query: Any = client.blocks()
    with pytest.raises(TypeError, match=r"len\(query.collect\(\)\)"):
        len(query)
    with pytest.raises(TypeError, match=r"query.first\(\)"):
        query[0]
    with pytest.raises(AttributeError, match="max_items="):
        query.head()
    with pytest.raises(AttributeError, match=r"query.to_pandas\(\)"):
        query.describe()
    with pytest.raises(AttributeError, match=r"query.scan\(\)"):
        query.filter()
    with pytest.raises(AttributeError, match=r"no attribute 'colect'; did you mean 'collect'\?$"):
        query.colect()
    assert query
    assert len(list(query)) > 0


def test_time_amounts_and_parties_are_shown_first_and_hashes_last(client: cf.Client) -> None:
    records = client.transactions(max_items=3).collect()
    for html in (records._repr_html_(), records[0]._repr_html_()):
        names = ["transaction_time", "amount", "input", "output", "height", "tx_id"]
        places = [html.index(f">{name}<") for name in names]
        assert places == sorted(places)
        assert all(f">{name}<" in html for name in records.schema.names)


def test_amounts_and_their_token_are_shown_before_the_parties(client: cf.Client, sample: Sample) -> None:
    for query, *shown in (
        (client.token_transfers(sample.token), "amount", "transaction_symbol", "from_address", "to_address"),
        (client.cross_chain_transactions(), "value", "token_name", "source_address", "target_address"),
    ):
        html = query.collect()._repr_html_()
        places = [html.index(f">{name}<") for name in shown]
        assert places == sorted(places)


@needs_extra
def test_export_is_shown_in_one_line(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=5).to_parquet(tmp_path / "<b>")
    assert repr(export) == f"<Export {str(tmp_path / '<b>')!r}: 5 records in 1 file, complete>"
    html = export._repr_html_()
    assert "5 records in 1 file, complete" in html
    assert "<b>:" not in html
