"""`Records`, `Page` and `Report`: sequence behavior and conversions."""

from __future__ import annotations

import copy
import pickle
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chainframe as cf
import reference_client
from chainframe.testing import LocalService
from strict_server import StrictServer, page_of, rows_of

if TYPE_CHECKING:
    from conftest import Sample

CALLS = sorted(reference_client.ENDPOINTS)
ARROW: dict[str, pa.DataType] = {
    "integer": pa.int64(),
    "time": pa.timestamp("ms", tz="UTC"),
    "boolean": pa.bool_(),
    "amount": pa.decimal128(38, 18),
    "estimate": pa.float64(),
    "raw integer": pa.utf8(),
    "string": pa.utf8(),
    "list of strings": pa.list_(pa.utf8()),
}
NUMBERS = {
    "decimal": (pa.decimal128(38, 18), pa.float64()),
    "float": (pa.float64(), pa.float64()),
    "string": (pa.utf8(), pa.utf8()),
}


@pytest.fixture
def blocks(client: cf.Client) -> cf.Records[cf.Block]:
    return client.blocks().collect()


def test_records_are_a_sequence(blocks: cf.Records[cf.Block]) -> None:
    as_list = list(blocks)
    assert len(blocks) == len(as_list) > 20
    assert blocks[0] == as_list[0]
    assert blocks[-1] == as_list[-1]
    assert as_list[3] in blocks
    assert cf.Block() not in blocks
    assert list(reversed(blocks)) == as_list[::-1]
    assert blocks.index(as_list[5]) == 5
    assert blocks.count(as_list[5]) == 1
    for index in (len(blocks), -len(blocks) - 1, 2**70):
        with pytest.raises(IndexError):
            blocks[index]
    with pytest.raises(TypeError):
        blocks[0.5]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "part",
    [slice(2, 9), slice(None), slice(-5, None), slice(9, 2), slice(None, None, 3), slice(None, None, -1), slice(0, 0)],
)
def test_slices_are_records(blocks: cf.Records[cf.Block], part: slice) -> None:
    cut = blocks[part]
    assert isinstance(cut, cf.Records)
    assert list(cut) == list(blocks)[part]
    assert len(cut) == len(list(blocks)[part])
    assert cut.to_arrow().num_rows == len(cut)
    assert [row["hash"] for row in cut.to_dicts()] == [block.hash for block in cut]


def test_truth_value_is_that_of_a_sequence(client: cf.Client, blocks: cf.Records[cf.Block]) -> None:
    assert blocks
    assert not client.blocks(height=2**62).collect()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("numbers", sorted(NUMBERS))
def test_columns_have_the_declared_types(client: cf.Client, sample: Sample, call: str, numbers: Any) -> None:
    amount, estimate = NUMBERS[numbers]
    kinds = {**ARROW, "amount": amount, "estimate": estimate}
    declared = reference_client.RECORDS[reference_client.ENDPOINTS[call]["record"]]["fields"]
    table = sample.query(client, call).collect().to_arrow(numbers=numbers)
    assert {name: table.schema.field(name).type for name in table.column_names} == {
        field["name"]: kinds[field["kind"]] for field in declared
    }
    assert table.num_rows > 2


@pytest.mark.parametrize("call", CALLS)
def test_local_service_has_values_for_every_column(client: cf.Client, sample: Sample, call: str) -> None:
    table = sample.query(client, call).collect().to_arrow()
    empty = [name for name in table.column_names if all(each in (None, "", []) for each in table[name].to_pylist())]
    # The sample's token is fungible.
    assert set(empty) <= {"token_id"}, f"src/service/synthesis/ has no values for {empty}"


@pytest.mark.parametrize("call", CALLS)
def test_an_empty_result_has_the_schema_of_a_full_one(
    server: StrictServer,
    client: cf.Client,
    sample: Sample,
    call: str,
) -> None:
    server.on(call, rows_of(call, []))
    with server.client() as nothing, warnings.catch_warnings(action="ignore"):
        empty = sample.query(nothing, call).collect()
    full = sample.query(client, call).collect()
    assert (len(empty), len(full) > 0) == (0, True)
    assert empty.to_arrow().schema == full.to_arrow().schema
    assert empty.to_polars().schema == full.to_polars().schema
    backend: Any = "pyarrow"
    assert list(empty.to_pandas(dtype_backend=backend).dtypes) == list(full.to_pandas(dtype_backend=backend).dtypes)
    assert list(empty.to_pandas().columns) == list(full.to_pandas().columns)
    exporter: Any = empty.schema
    assert pa.schema(exporter) == full.to_arrow().schema
    assert pickle.loads(pickle.dumps(empty.schema)) == empty.schema == full.schema
    assert hash(empty.schema) == hash(full.schema)


@pytest.mark.parametrize("call", CALLS)
def test_every_conversion_holds_the_same_values(client: cf.Client, sample: Sample, call: str) -> None:
    records = sample.query(client, call).collect()
    rows = [record.to_dict() for record in records]
    assert records.to_dicts() == rows
    estimates = [
        f["name"] for f in reference_client.RECORDS[type(records[0]).__name__]["fields"] if f["kind"] == "estimate"
    ]
    as_columned = [{k: columned(k, v, estimates) for k, v in row.items()} for row in rows]
    assert records.to_arrow().to_pylist() == as_columned
    assert records.to_polars().to_dicts() == as_columned
    frame = records.to_pandas()
    assert frame.shape == (len(rows), len(rows[0]))
    assert pa.Table.from_pandas(frame, preserve_index=False).to_pylist() == as_columned


def columned(name: str, value: object, estimates: list[str]) -> object:
    if name == "value_raw" and value is not None:
        return str(value)
    return float(value) if name in estimates and isinstance(value, Decimal) else value


def test_strings_are_the_digits_as_sent(service: LocalService, client: cf.Client, sample: Sample) -> None:
    sent = [
        row["amount"]
        for row in reference_client.whole_list(service, "token_transfers", tokenContractAddress=sample.token)
    ]
    table = client.token_transfers(sample.token).to_arrow(numbers="string")
    assert table.column("amount").to_pylist() == [text or None for text in sent]
    assert len(sent) > 0


def test_floats_are_the_nearest_doubles(client: cf.Client, sample: Sample) -> None:
    records = client.token_transfers(sample.token).collect()
    amounts = records.to_arrow(numbers="float").column("amount").to_pylist()
    assert amounts == [None if record.amount is None else float(record.amount) for record in records]


def test_unknown_numbers_option_is_rejected(blocks: cf.Records[cf.Block]) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"numbers.*decimal.*float.*string"):
        blocks.to_arrow(numbers="exact")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0.1234567890123456789", "123456789012345678901", str(2**256 - 1)])
def test_overflow_keeps_the_records(server: StrictServer, text: str) -> None:
    server.on("token_transfers", page_of("token_transfers", [{"amount": "1.5"}, {"amount": text}]))
    with server.client() as client:
        records = client.token_transfers("0xa").collect()
    assert records[1].amount == Decimal(text)
    for convert in (records.to_arrow, records.to_pandas, records.to_polars):
        with pytest.raises(cf.NumericOverflowError) as caught:
            convert()
        assert (caught.value.column, caught.value.row, caught.value.text) == ("amount", 1, text)
        assert isinstance(caught.value, OverflowError)
    assert records.to_arrow(numbers="string").column("amount").to_pylist() == ["1.5", text]
    assert records.to_arrow(numbers="float").column("amount").to_pylist() == [1.5, float(text)]
    assert records[:1].to_arrow().num_rows == 1


def test_queries_convert_as_their_records_do(client: cf.Client, sample: Sample) -> None:
    query = client.token_transfers(sample.token)
    records = query.collect()
    assert query.to_arrow() == records.to_arrow()
    assert query.to_polars(numbers="string").equals(records.to_polars(numbers="string"))
    pd.testing.assert_frame_equal(query.to_pandas(), records.to_pandas())
    assert query.to_dicts() == records.to_dicts()


def test_pyarrow_reads_records_and_queries(client: cf.Client) -> None:
    query = client.blocks()
    records = query.collect()
    assert pa.table(records) == records.to_arrow() == pa.table(query)
    assert pl.DataFrame(query).equals(records.to_polars())
    assert pl.DataFrame(records).equals(records.to_polars())
    exporter: Any = query
    assert pa.schema(exporter) == records.to_arrow().schema


def test_report_counts_requests_pages_and_records(client: cf.Client) -> None:
    query = client.blocks(page_size=10)
    records = query.collect()
    report = records.report
    assert report.complete
    assert report.reasons == []
    assert report.records == len(records)
    assert report.pages == -(-len(records) // 10)
    # The last request compares the list with its first page.
    assert report.requests == report.pages + 1
    assert (report.retries, report.duplicates_dropped, report.missing) == (0, 0, [])
    assert report.bytes > 1_000
    assert report.elapsed > 0
    assert query.report.records == len(records)
    assert "complete" in repr(report)


def test_result_window_is_a_warning_or_an_error() -> None:
    with LocalService(transactions=10_100) as service, service.client() as client:
        with pytest.warns(cf.IncompleteResultWarning, match="10000"):
            records = client.transactions().collect()
        assert len(records) == 10_000
        assert not records.report.complete
        assert len(records.report.reasons) == 1
        with service.client(strict=True) as strict:
            query = strict.transactions()
            with pytest.raises(cf.IncompleteResultError, match="10000") as caught:
                query.collect()
        assert caught.value.partial is not None
        assert caught.value.report is not None
        assert list(caught.value.partial) == list(records)
        assert caught.value.report.reasons == records.report.reasons
        again: cf.IncompleteResultError = pickle.loads(pickle.dumps(caught.value))
        assert again.partial == caught.value.partial
        # Block by block, all of it can be reached.
        oldest = min(record.height for record in records if record.height is not None)
        below = client.transactions(start_height=oldest - 5, end_height=oldest).collect()
        assert below.report.complete
        assert {record.tx_id for record in below} - {record.tx_id for record in records}


def test_growing_list_is_exact_or_reported_incomplete() -> None:
    with LocalService(transactions=600, growth=3) as service, service.client() as client:
        query = client.blocks(page_size=10)
        with warnings.catch_warnings(action="ignore"):
            pages = list(query.pages())
    hashes = [block.hash for page in pages for block in page.records]
    exact = len(hashes) == len(set(hashes)) == pages[0].total
    assert exact or not query.report.complete
    assert query.report.complete or "changed" in " ".join(query.report.reasons)


def test_estimates_and_rate_limit_states_pickle_and_copy(service: LocalService) -> None:
    with service.client() as client:
        estimate, state = client.address_transactions("0x" + "1" * 40).estimate(), client.rate_limit_state
    for again in (pickle.loads(pickle.dumps(estimate)), copy.copy(estimate), copy.deepcopy(estimate)):
        assert repr(again) == repr(estimate)
        assert again.limitations == estimate.limitations
    assert pickle.loads(pickle.dumps(state)) == copy.copy(state) == copy.deepcopy(state) == state


def test_records_are_used_as_a_sequence(client: cf.Client) -> None:
    records = client.blocks(max_items=5).collect()
    assert list(reversed(records)) == list(records)[::-1]
    match records:
        case [first, *_, last]:
            assert (first, last) == (records[0], records[-1])
        case _:
            pytest.fail("no sequence pattern matched")
    # As before, the whole table and no column of objects.
    assert pl.DataFrame(records).columns == records.schema.names
