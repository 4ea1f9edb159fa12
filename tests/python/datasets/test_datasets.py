"""Filters of `query.dataset()` and `query.scan()`: fewer requests, the result of a full read."""

import datetime as dt
import math
import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chainframe as cf
from chainframe.datasets.declared import bounded_columns
from chainframe.datasets.plan import time_bounds
from chainframe.testing import LocalService
from conftest import Sample
from reference_client import ENDPOINTS
from strict_server import Request, Response, StrictServer, page_of

TRANSACTIONS = 900
DUCKDB, POLARS = (int(module.__version__.partition(".")[0]) for module in (duckdb, pl))


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=TRANSACTIONS, seed=7) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: LocalService) -> Iterator[cf.Client]:
    with service.client(rate_limit=None) as client:
        yield client


@pytest.fixture(scope="module")
def queries(client: cf.Client) -> dict[str, cf.Query[Any]]:
    hashes = [record.tx_id for record in client.transactions(max_items=30) if record.tx_id]
    tokens = client.tokens(max_items=1).collect()
    senders = [record.from_address for record in client.transactions_by_hash(hashes) if record.from_address]
    sample = Sample(tokens[0].token_contract_address or "", senders[0], 0, tuple(hashes))
    # Pages enough to search for times.
    options: dict[str, Any] = {"cross_chain_transactions": {"page_size": 5}, "logs": {"tx_ids": hashes[:10]}}
    return {call: sample.query(client, call, **options.get(call, {})) for call in sorted(ENDPOINTS)}


@pytest.fixture(scope="module")
def tables(queries: dict[str, cf.Query[Any]]) -> dict[str, pa.Table]:
    return {name: query.to_arrow() for name, query in queries.items()}


@pytest.fixture(scope="module")
def requests(queries: dict[str, cf.Query[Any]]) -> dict[str, int]:
    """Requests of a full read."""
    return {name: query.collect().report.requests for name, query in queries.items()}


RESOURCES = sorted(ENDPOINTS)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def sample(table: pa.Table, name: str, data: st.DataObject) -> Any:
    """A value of a column, or one beside it."""
    kind = table.schema.field(name).type
    present = [value for value in table.column(name).to_pylist() if value is not None]
    value = data.draw(st.sampled_from(present)) if present else None
    if pa.types.is_int64(kind):
        value = (value or 0) + data.draw(st.integers(-2, 2))
    elif pa.types.is_timestamp(kind):
        value = (value or dt.datetime(2026, 1, 1, tzinfo=dt.UTC)) + data.draw(
            st.sampled_from([-1, 0, 1])
        ) * dt.timedelta(hours=1)
    elif pa.types.is_decimal(kind):
        value = (value or Decimal()) + data.draw(st.sampled_from([Decimal(), Decimal(), Decimal(-1), Decimal("1e-18")]))
    elif pa.types.is_string(kind):
        value = data.draw(st.sampled_from([value or "", (value or "").upper(), "", "0xabc"]))
    return pa.scalar(value, kind)


def comparison(resource: str, table: pa.Table, data: st.DataObject) -> pc.Expression:
    # Columns that parameters bound come first and are drawn more often.
    times = time_bounds(resource)
    bounded = [name for name in bounded_columns(resource) if name in table.schema.names]
    bounded += [] if times is None else [times.column]
    others = ["transaction_count", "token", "state", "gas_used", "log_index", "amount", "main_block_height"]
    name = data.draw(st.sampled_from([*bounded, *bounded, *(name for name in others if name in table.schema.names)]))
    field = pc.field(name)
    one, other = sample(table, name, data), sample(table, name, data)
    made: Any = data.draw(
        st.sampled_from(
            [
                field == one,
                field >= one,
                field <= one,
                field > one,
                field < one,
                field != one,
                field.isin([one, other]),
                (field >= one) & (field <= other),
                field.is_null() | (field == one),
                field.is_valid(),
                field.cast(pa.string()) == one.cast(pa.string()),
            ]
        )
    )
    chosen: pc.Expression = made
    return chosen


def expression(resource: str, table: pa.Table, data: st.DataObject, depth: int = 2) -> pc.Expression:
    kind = data.draw(st.sampled_from(["leaf", "leaf", "and", "or", "not"])) if depth else "leaf"
    if kind == "leaf":
        return comparison(resource, table, data)
    left = expression(resource, table, data, depth - 1)
    if kind == "not":
        return ~left
    right = expression(resource, table, data, depth - 1)
    return left & right if kind == "and" else left | right


@pytest.mark.parametrize("resource", RESOURCES)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_scan_with_any_filter_returns_what_a_full_read_filtered_returns(
    queries: dict[str, cf.Query[Any]],
    tables: dict[str, pa.Table],
    requests: dict[str, int],
    resource: str,
    data: st.DataObject,
) -> None:
    table = tables[resource]
    assert table.num_rows > 0
    wanted = expression(resource, table, data)
    dataset = queries[resource].dataset()
    assert rows(dataset.to_table(filter=wanted)) == rows(table.filter(wanted))
    assert dataset.report.complete or resource == "address_transactions"
    # Pages that locate times, or hashes and one more for each direction, may show that the list is to be read. Each of
    # up to four ranges of times of tokens has a first page of its own.
    is_searched = resource == "cross_chain_transactions" and dataset.explain(wanted) != repr(queries[resource])
    # The number of repeated requests for empty responses depends on the order of the responses.
    has_more = is_searched or resource in {"tokens", "logs"}
    assert dataset.report.requests <= requests[resource] + (4 if has_more else 1)


def deep_height(client: cf.Client) -> int:
    """A height of the list's last page."""
    return client.transactions().collect()[-5].height or 0


def test_filter_on_height_sends_what_explicit_arguments_send(service: LocalService, client: cf.Client) -> None:
    transactions, height = client.transactions().dataset(), deep_height(client)
    expected = len(client.transactions(height=height).collect())
    service.reset_request_log()
    assert duckdb.execute(f"select count(*) from transactions where height = {height}").fetchall() == [(expected,)]
    assert service.request_count == 1
    assert transactions.report.complete
    assert expected > 0


@pytest.mark.parametrize(
    ("condition", "heights"),
    [
        ("height in ({0}, {0} + 5)", (0, 5)),
        ("height between {0} and {0} + 3", (0, 1, 2, 3)),
        pytest.param(
            "height = {0} or (height = {0} + 1 and amount > 1)",
            (0, 1),
            marks=pytest.mark.skipif(DUCKDB < 2, reason="DuckDB keeps an `or` over several columns to itself"),
        ),
        ("height = {0} and height = {0} + 1", ()),
    ],
)
def test_sql_sends_what_explicit_heights_send(
    service: LocalService, client: cf.Client, condition: str, heights: tuple[int, ...]
) -> None:
    transactions, lowest = client.transactions().dataset(), deep_height(client) + 6
    expected = sum(client.transactions(height=lowest + height).collect().report.requests for height in heights)
    service.reset_request_log()
    duckdb.execute(f"select count(*) from transactions where {condition.format(lowest)}").fetchall()
    assert service.request_count == transactions.report.requests
    # A look at the list's first page decides between it and several heights.
    assert service.request_count == expected + (len(heights) > 2)


def test_columns_that_are_not_read_are_not_decoded(server: StrictServer) -> None:
    def respond(request: Request) -> Response:
        del request
        row = {"hash": "0x1", "height": "7", "miner": "0x2", "blockTime": "1700000000000", "transactionCount": "many"}
        return page_of("blocks", [row], limit="100", totalPage="1", total="1")

    server.on("blocks", respond)
    client = server.client()
    dataset = client.blocks().dataset()
    assert dataset.to_table(columns=["miner"]).to_pylist() == [{"miner": "0x2"}]
    assert dataset.to_table(columns={"next": pc.field("height") + 1}).to_pylist() == [{"next": 8}]
    assert dataset.count_rows(filter=pc.field("height") == 7) == 1
    assert duckdb.execute("select miner from dataset where height > 5").fetchall() == [("0x2",)]
    for columns in (None, ["transaction_count"], {"twice": pc.field("transaction_count") * 2}):
        with pytest.raises(cf.ResponseFormatError, match="transactionCount"):
            dataset.to_table(columns=columns)
    with pytest.raises(cf.ResponseFormatError, match="transactionCount"):
        dataset.to_table(columns=["miner"], filter=pc.field("transaction_count") == 7)


@pytest.mark.parametrize(("resource", "column"), [("tokens", "issue_date"), ("token_transfers", "amount")])
def test_filter_that_excludes_values_costs_no_more_than_the_list(
    queries: dict[str, cf.Query[Any]], tables: dict[str, pa.Table], resource: str, column: str
) -> None:
    values = tables[resource].column(column).drop_null().unique().slice(0, 2)
    wanted = (pc.field(column) != values[0]) & (pc.field(column) != values[1])
    dataset = queries[resource].dataset()
    assert dataset.explain(wanted) == repr(queries[resource])
    assert rows(dataset.to_table(filter=wanted)) == rows(tables[resource].filter(wanted))


def test_limit_costs_one_request(service: LocalService, client: cf.Client) -> None:
    transactions = client.transactions().dataset()
    service.reset_request_log()
    assert len(duckdb.execute("select * from transactions limit 5").fetchall()) == 5
    assert service.request_count == transactions.report.requests == 1


def test_hashes_are_looked_up_for_their_heights(service: LocalService, client: cf.Client) -> None:
    height = deep_height(client)
    listed = client.transactions(height=height).collect()
    hashes = [record.tx_id for record in listed]
    service.reset_request_log()
    found = client.transactions().dataset().to_table(filter=pc.field("tx_id").isin(hashes))
    assert found.num_rows == len(hashes) > 0
    assert service.request_count == math.ceil(len(hashes) / 20) + listed.report.requests


def test_recent_blocks_are_read_down_to_the_lowest_height_wanted(service: LocalService, client: cf.Client) -> None:
    newest = client.blocks().first()
    assert newest is not None
    top = newest.height or 0
    limited = client.blocks(max_items=150).collect().report.requests
    service.reset_request_log()
    assert client.blocks().dataset().count_rows(filter=pc.field("height") > top - 150) == 150
    assert service.request_count == limited
    service.reset_request_log()
    assert len(client.blocks().dataset().head(5, filter=pc.field("height") > top - 150)) == 5
    assert service.request_count == 1


@pytest.mark.parametrize("call", ["blocks", "token_transfers", "cross_chain_transactions"])
def test_counted_list_is_counted_by_one_request(
    service: LocalService, queries: dict[str, cf.Query[Any]], tables: dict[str, pa.Table], call: str
) -> None:
    dataset, before = queries[call].dataset(), service.request_count
    assert dataset.count_rows() == len(tables[call])
    assert service.request_count == before + 1
    assert (dataset.report.requests, dataset.report.complete) == (1, True)


def test_count_that_may_be_the_result_window_is_not_taken(server: StrictServer) -> None:
    row = {"txid": "0x1", "height": "9950"}
    server.on("token_transfers", page_of("token_transfers", [row], limit="1", totalPage="9950", total="9950"))
    with suppress(cf.ChainframeError):
        server.client().token_transfers("0x1").dataset().count_rows()
    assert len(server.requests) > 1


def test_scans_of_one_query_do_not_disturb_each_other(client: cf.Client) -> None:
    query = client.blocks()
    newest = query.first()
    assert newest is not None
    assert newest.height is not None
    above = pc.field("height") > newest.height - 450
    one, other = (query.dataset().scanner(filter=above).to_batches() for _ in range(2))
    heights = [next(one)["height"], next(other)["height"]]
    query.collect()
    heights += [batch["height"] for batch in [*one, *other]]
    counts = Counter(height for column in heights for height in column.to_pylist())
    assert counts == dict.fromkeys(range(newest.height - 449, newest.height + 1), 2)


def test_few_deep_blocks_are_requested_by_height(service: LocalService, client: cf.Client) -> None:
    lowest = client.blocks().collect()[-1].height or 0
    service.reset_request_log()
    wanted = pc.field("height").isin([lowest, lowest + 1])
    assert client.blocks().dataset().count_rows(filter=wanted) == 2
    assert service.request_count == 3


def test_polars_scan_narrows_the_requests(service: LocalService, client: cf.Client) -> None:
    height = deep_height(client)
    service.reset_request_log()
    frame = client.transactions().scan().filter(pl.col("height") == height).select("tx_id", "height").collect()
    assert service.request_count == 1
    assert set(frame["height"]) == {height}


def test_two_datasets_join(client: cf.Client, tables: dict[str, pa.Table]) -> None:
    transfers, tokens = client.large_transactions().dataset(), client.tokens().dataset()
    counted = duckdb.execute(
        "select count(*) from transfers join tokens on transfers.transaction_symbol = tokens.token"
    ).fetchall()
    symbols = tables["tokens"].column("token").to_pylist()
    expected = sum(
        symbols.count(symbol) for symbol in tables["large_transactions"].column("transaction_symbol").to_pylist()
    )
    assert counted == [(expected,)]
    assert (transfers, tokens) is not None


def test_limit_of_the_query_counts_records_before_the_filter(client: cf.Client) -> None:
    height = deep_height(client)
    assert client.transactions(max_items=10).dataset().count_rows(filter=pc.field("height") == height) == 0


def test_given_arguments_stay_in_force(client: cf.Client) -> None:
    height = deep_height(client) + 6
    query = client.transactions(start_height=height, end_height=height + 3)
    table = query.dataset().to_table(filter=pc.field("height") <= height + 1)
    assert set(table.column("height").to_pylist()) <= {height, height + 1}
    assert rows(table) == rows(query.to_arrow().filter(pc.field("height") <= height + 1))


def test_projections_have_the_names_and_values_of_their_expressions(client: cf.Client) -> None:
    dataset = client.blocks().dataset()
    table = dataset.to_table(columns={"next": pc.field("height") + 1}, filter=pc.field("transaction_count") > 0)
    assert table.column_names == ["next"]
    assert dataset.head(3, columns=["hash"]).column_names == ["hash"]
    assert dataset.head(0).num_rows == 0
    assert dataset.filter(pc.field("height") < 0).count_rows() == 0


def test_filter_that_is_no_expression_is_refused_by_name(client: cf.Client) -> None:
    dataset: Any = client.blocks().dataset()
    for name, scan in (("filter", dataset.explain), ("expression", dataset.filter)):
        with pytest.raises(cf.InvalidParameterError, match=f"^{name} must be an expression, .*; got 'height > 5'$"):
            scan("height > 5")


def test_explain_shows_the_queries_and_sends_nothing(service: LocalService, client: cf.Client) -> None:
    dataset = client.transactions().dataset()
    service.reset_request_log()
    assert dataset.explain() == "<Query transactions of MAIN>"
    assert dataset.explain(pc.field("height") == 5) == "<Query transactions of MAIN, height=5>"
    assert dataset.explain((pc.field("height") > 7) & (pc.field("height") < 3)).startswith("no request")
    assert "lookup" in dataset.explain(pc.field("tx_id") == "0xa")
    assert service.request_count == 0


def test_dataset_pickles_with_its_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=10) as service, service.client() as client:
        monkeypatch.setenv("CHAINFRAME_API_KEY", service.api_key)
        monkeypatch.setenv("CHAINFRAME_SECRET_KEY", service.secret_key)
        monkeypatch.setenv("CHAINFRAME_PASSPHRASE", service.passphrase)
        dataset = client.blocks().dataset().filter(pc.field("height") == 5)
        restored = pickle.loads(pickle.dumps(dataset))
        assert restored.explain() == dataset.explain()


def test_error_of_a_request_keeps_its_class() -> None:
    with (
        LocalService(transactions=100, faults=[{"kind": "status", "status": 403}]) as service,
        service.client() as client,
    ):
        dataset = client.blocks().dataset()
        with pytest.raises(cf.PermissionDeniedError):
            dataset.to_table()
        assert isinstance(dataset.last_error, cf.PermissionDeniedError)
        with pytest.raises(duckdb.Error):
            duckdb.execute("select * from dataset").fetchall()
        assert isinstance(dataset.last_error, cf.PermissionDeniedError)


def test_filter_that_accepts_a_missing_height_is_not_sent() -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        service.load("transactions", [{"tx_id": "0x1", "height": 5}, {"tx_id": "0x2"}, {"tx_id": "0x3", "height": 6}])
        table = (
            client.transactions().dataset().to_table(filter=pc.field("height").is_null() | (pc.field("height") == 5))
        )
    assert set(table.column("tx_id").to_pylist()) == {"0x1", "0x2"}


@pytest.mark.parametrize("method", ["get_fragments", "replace_schema", "join", "join_asof", "sort_by"])
def test_methods_that_need_files_raise_with_what_to_use_instead(client: cf.Client, method: str) -> None:
    with pytest.raises(NotImplementedError, match=r"use|cast|read"):
        getattr(client.blocks().dataset(), method)(None)


@pytest.mark.parametrize("value", ["", "abc ", "a,b"])
def test_hash_that_cannot_be_requested_is_not_pushed(client: cf.Client, value: str) -> None:
    dataset = client.transactions().dataset()
    assert dataset.to_table(filter=pc.field("tx_id") == value).num_rows == 0
    assert dataset.count_rows(filter=pc.field("tx_id").isin([value, "0x"])) == 0


def test_cast_that_is_not_possible_for_a_literal_is_possible_for_rows(client: cf.Client) -> None:
    height = pc.field("height").cast(pa.float64(), safe=False)
    dataset = client.blocks().dataset()
    assert dataset.count_rows(filter=height != -(2.0**62)) == dataset.count_rows()


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "+05:30", "Asia/Kolkata"])
def test_times_among_which_a_filter_selects_may_have_any_zone_and_unit(
    queries: dict[str, cf.Query[Any]], tables: dict[str, pa.Table], unit: str, zone: str
) -> None:
    table = tables["blocks"]
    kind: Any = pa.timestamp(unit, zone)  # pyright: ignore[reportArgumentType, reportCallIssue]
    among = pc.field("block_time").isin(pa.array([table["block_time"][100].as_py()], kind))
    for wanted in (among, ~among, among & (pc.field("height") > 0)):
        found = queries["blocks"].dataset().to_table(filter=wanted)
        assert rows(found) == rows(pyarrow.dataset.dataset(table).to_table(filter=wanted))


def test_filter_of_another_type_is_an_error_before_a_request(service: LocalService, client: cf.Client) -> None:
    sent = service.request_count
    for wanted in (pc.field("height") > "x", pc.field("block_time") > 5):
        with pytest.raises(pa.ArrowNotImplementedError):
            client.blocks().dataset().to_table(filter=wanted)
    assert service.request_count == sent
