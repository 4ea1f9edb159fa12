"""The Spark data source by itself, without Spark."""

from __future__ import annotations

import inspect
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    Not,
    StringContains,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DecimalType, StructType, TimestampType

import chainframe as cf
import reference_client
from chainframe.integrations.spark import ChainframeSource
from chainframe.testing import LocalService

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)


def read(options: dict[str, Any]) -> pa.Table:
    """Read as Spark does, without Spark: every partition is pickled."""
    source = ChainframeSource({name: str(value) for name, value in options.items()})
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source.reader(schema)))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
    batches = [batch for part in parts for batch in reader.read(part)]
    table = pa.Table.from_batches(batches)
    assert table.column_names == schema.names
    assert len(parts) >= 1
    return table


def in_microseconds(table: pa.Table) -> pa.Table:
    schema = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(schema))


@pytest.mark.parametrize("call", sorted(reference_client.ENDPOINTS))
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_spark_reads_every_call(call: str, busy: LocalService) -> None:
    with busy.client() as client:
        rows = [transaction.tx_id or "" for transaction in client.transactions(max_items=45)]
        transfer = client.cross_chain_transactions().first()
        assert transfer is not None
        needed: dict[str, dict[str, Any]] = {
            "token_transfers": {"token_contract_address": transfer.token_contract_address},
            "address_transactions": {"address": transfer.source_address},
            "transactions_by_hash": {"tx_ids": ",".join(rows)},
            "logs": {"tx_ids": ",".join(rows)},
        }
        own = needed.get(call, {})
        query = getattr(client, call)(
            **{name: value.split(",") if name == "tx_ids" else value for name, value in own.items()}
        )
        expected = in_microseconds(query.to_arrow())
    assert read({"resource": call, "numPartitions": 3, **own}).equals(expected)


def test_several_values_are_one_table(busy: LocalService) -> None:
    with busy.client() as client:
        tokens = [token.token_contract_address or "" for token in client.tokens(max_items=3)]
        wallets = sorted({each.from_address or "" for each in client.token_transfers(tokens[0], max_items=20)})[:3]
        expected = client.token_transfers(tokens).to_arrow()
        once = client.address_transactions(wallets, unique=True).to_arrow()
    several = {"resource": "token_transfers", "token_contract_address": ",".join(tokens), "numPartitions": 4}
    found = read(several)
    assert in_order(found) == in_order(in_microseconds(expected))
    assert {tuple(row["queried"]) for row in found.to_pylist()} <= {(token,) for token in tokens}
    several = {"resource": "address_transactions", "address": ",".join(wallets)}
    assert in_order(read({**several, "unique": "true"}), "tx_id") == in_order(once, "tx_id")
    assert read(several).num_rows > once.num_rows


def in_order(table: pa.Table, *columns: str) -> list[str]:
    return sorted(str(row) for row in table.select(list(columns) or table.column_names).to_pylist())


# Spark 4.1 uses UTC without being asked to.
IN_UTC: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def filtered(options: dict[str, Any], filters: list[datasource.Filter], columns: list[str] | None = None) -> pa.Table:
    """Read as Spark does with filters and a schema."""
    source = ChainframeSource({"push_filters": "true", "numPartitions": "3", **options})
    whole = source.schema()
    schema = StructType([whole[name] for name in columns or whole.names])
    reader: Any = source.reader(schema)
    others = reader.pushFilters(filters)
    assert [each for each in filters if each in others] == list(others)
    reader = pickle.loads(pickle.dumps(reader))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
    assert 1 <= len(parts) <= 3
    batches = [batch for part in parts for batch in reader.read(part)]
    return pa.Table.from_batches(batches, to_arrow_schema(schema, **IN_UTC))


def test_filters_narrow_the_requests(busy: LocalService) -> None:
    with busy.client() as client:
        records = client.transactions(max_items=1_500).collect()
        height = records[-1].height
        block = client.transactions(height=height).collect()
    hashes, time = tuple(record.tx_id for record in block), block[0].transaction_time
    every = {record.tx_id for record in records}
    cases: list[tuple[list[datasource.Filter], int]] = [
        ([EqualTo(("height",), height)], 3),
        ([In(("height",), (height, 7)), IsNotNull(("height",))], 3),
        (
            [
                GreaterThanOrEqual(("height",), height),
                LessThan(("height",), (height or 0) + 1),
                Not(IsNull(("tx_id",))),
            ],
            3,
        ),
        ([In(("tx_id",), hashes)], 5),
        ([EqualTo(("height",), 7)], 2),
    ]
    for filters, most in cases:
        busy.reset_request_log()
        found = filtered({"resource": "transactions"}, filters, ["height", "tx_id"])
        assert busy.request_count <= most
        assert found.column_names == ["height", "tx_id"]
        assert set(found.column("tx_id").to_pylist()) == (
            set(hashes) if filters[0] != EqualTo(("height",), 7) else set()
        )
    found = filtered({"resource": "transactions"}, [EqualTo(("transaction_time",), time)])
    assert set(found.column("tx_id").to_pylist()) == set(hashes)
    # What cannot be translated narrows nothing.
    busy.reset_request_log()
    found = filtered({"resource": "transactions"}, [StringContains(("tx_id",), "0x"), EqualTo(("height",), "x")])
    assert every <= set(found.column("tx_id").to_pylist())
    # Nulls are compared as by Spark.
    assert filtered({"resource": "transactions"}, [Not(EqualTo(("height",), height))]).num_rows == 2_000 - len(hashes)
    assert filtered({"resource": "transactions"}, [Not(In(("height",), (height, 7)))]).num_rows == 2_000 - len(hashes)
    assert filtered({"resource": "transactions"}, [EqualNullSafe(("height",), None)]).num_rows == 0
    # As doubles, amounts compare otherwise.
    amounts: list[datasource.Filter] = [GreaterThan(("amount",), Decimal(10**19))]
    token = {"resource": "token_transfers", "token_contract_address": records_token(busy)}
    assert filtered(token, amounts).num_rows == 0
    assert filtered({**token, "numbers": "float"}, amounts).num_rows > 0


def records_token(busy: LocalService) -> str:
    with busy.client() as client:
        first = client.tokens().first()
    assert first is not None
    return first.token_contract_address or ""


def test_columns_are_selected_by_option_or_schema(busy: LocalService) -> None:
    table = read({"resource": "blocks", "columns": "miner,height"})
    assert table.column_names == ["miner", "height"]
    with pytest.raises(cf.InvalidParameterError, match=r'columns must be among .*; got "minor"'):
        ChainframeSource({"resource": "blocks", "columns": "minor"}).schema()
    with pytest.raises(cf.InvalidParameterError, match=r'columns must be among .*; got "minor"'):
        ChainframeSource({"resource": "blocks"}).reader(StructType().add("minor", "string"))
    with pytest.raises(cf.InvalidParameterError, match="push_filters must be true or false"):
        ChainframeSource({"resource": "blocks", "push_filters": "yes"}).schema()
    assert not hasattr(ChainframeSource({"resource": "blocks"}).reader(StructType()), "_filters")
    assert busy.request_count > 0


def test_columns_have_spark_types(busy: LocalService) -> None:
    schema = ChainframeSource({"resource": "cross_chain_transactions"}).schema()
    assert isinstance(schema, StructType)
    assert schema["value"].dataType == DecimalType(38, 18)
    assert schema["zone_block_time"].dataType == TimestampType()
    floats = ChainframeSource({"resource": "tokens", "numbers": "string"}).schema()
    assert floats["price"].dataType.typeName() == "string"
    assert busy.request_count == 0


def test_tasks_share_the_rate_limit(busy: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[object] = []

    def client(**settings: Any) -> cf.Client:
        rates.append(settings["rate_limit"])
        settings["rate_limit"] = None
        return cf.Client(**settings)

    monkeypatch.setattr("chainframe.integrations.spark.Client", client)

    def rate(**options: str) -> object:
        reader = ChainframeSource({"resource": "blocks", "numPartitions": "4", **options}).reader(StructType())
        assert len(list(reader.read(reader.partitions()[0]))) == 1
        whole, task, *_ = rates
        assert whole == (float(options["rate_limit"]) if options else "auto")
        rates.clear()
        return task

    assert rate() == "auto"
    assert rate(rate_limit="80") == 20
    assert rate(rate_limit="80", concurrent_tasks="2") == 40
    # What cannot be cut is one task.
    assert rate(rate_limit="80", resource="tokens") == 80
    assert busy.request_count > 0


WRONG = [
    ({}, "resource must be one of tokens, .*; got None"),
    ({"resource": "coins"}, "resource must be one of .*; got 'coins'"),
    ({"resource": "blocks", "min_amount": "5"}, "unexpected option 'min_amount' for blocks"),
    ({"resource": "blocks", "nmPartitions": "5"}, "for blocks; did you mean 'numPartitions'?"),
    ({"resource": "transactions", "start_hight": "5"}, "for transactions; did you mean 'start_height'?"),
    (
        {"resource": "logs", "tx_ids": "0x1", "page_size": "5"},
        "unexpected option 'page_size' for logs; options are tx_ids, chain, resource, .*, numPartitions, .*, start, ",
    ),
    ({"resource": "token_transfers"}, "token_contract_address is required for token_transfers"),
    ({"resource": "blocks", "numPartitions": "many"}, "numPartitions must be an integer; got 'many'"),
    ({"resource": "blocks", "numPartitions": "0"}, "numPartitions must be >= 1; got 0"),
    ({"resource": "blocks", "concurrent_tasks": "0"}, "concurrent_tasks must be >= 1; got 0"),
    ({"resource": "blocks", "rate_limit": "fast"}, "rate_limit must be a number; got 'fast'"),
    ({"resource": "blocks", "rate_limit": "0"}, r"rate_limit \(0\) must be between .* requests per second"),
    ({"resource": "blocks", "strict": "perhaps"}, "strict must be true or false; got 'perhaps'"),
    ({"resource": "large_transactions", "min_amount": "5"}, r"min_amount \(5\) must be >= 100"),
    ({"resource": "blocks", "page_size": "101"}, r"page_size \(101\) must be between 1 and 100"),
    ({"resource": "blocks", "page_size": "1e2"}, "page_size must be an integer; got '1e2'"),
    ({"resource": "blocks", "numbers": "roman"}, "numbers"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_option_is_named(options: dict[str, str], said: str, busy: LocalService) -> None:
    kind = cf.ConfigError if "requests per second" in said else cf.InvalidParameterError
    with pytest.raises(kind, match=said):
        ChainframeSource(options).schema()
    assert busy.request_count == 0


def test_missing_credentials_are_named(busy: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINFRAME_SECRET_KEY")
    with pytest.raises(cf.ConfigError, match="set CHAINFRAME_SECRET_KEY"):
        ChainframeSource({"resource": "blocks"}).schema()
    assert busy.request_count == 0


def test_no_secret_is_sent_to_a_task(busy: LocalService) -> None:
    reader = ChainframeSource({"resource": "blocks"}).reader(StructType())
    sent = pickle.dumps((reader, reader.partitions()))
    assert not any(secret.encode() in sent for secret in (busy.api_key, busy.secret_key, busy.passphrase))
