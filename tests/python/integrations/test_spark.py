"""The Spark data source: by itself, and in a local cluster whose tasks are killed."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pickle
import shutil
import signal
import sys
import threading
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)

# On Linux /proc lists the processes of a task.
needs_spark = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("py4j") is None or shutil.which("java") is None,
    reason="it needs Spark, Java and Linux: make spark",
)


@pytest.fixture(scope="module")
def lasting() -> Iterator[LocalService]:
    """One for all, since the environment of Spark's processes is that of its start."""
    with LocalService(transactions=2_000, seed=11) as running, pytest.MonkeyPatch.context() as environment:
        for name in ("api_key", "secret_key", "passphrase"):
            environment.setenv(f"CHAINFRAME_{name.upper()}", getattr(running, name))
        environment.setenv("CHAINFRAME_BASE_URL", running.url)
        yield running


@pytest.fixture
def busy(lasting: LocalService) -> Iterator[LocalService]:
    lasting.reset_request_log()
    yield lasting
    lasting.faults = []


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


@contextmanager
def spark_session(master: str, **executor_environment: str) -> Generator[Any]:
    """A cluster on loopback, each of its workers a process that runs one task at a time."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where there is one

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **{f"spark.executorEnv.{name}": value for name, value in executor_environment.items()},
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.dataSource.register(ChainframeSource)
    try:
        yield session
    finally:
        session.stop()


def task_processes() -> dict[int, int]:
    """The Python processes that run tasks of this test, with the daemon of the executor that each belongs to."""
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().endswith(b"pyspark.daemon\0pyspark.worker\0"):
                daemons.add(int(folder.name))
        except OSError:  # it ended meanwhile
            continue

    def is_ours(process: int | None) -> bool:
        return process == os.getpid() or (process is not None and is_ours(parents.get(process)))

    return {one: parents[one] for one in daemons if parents.get(one) in daemons and is_ours(one)}


def failed_tasks(spark: Any) -> int:
    """Return the number of tasks that failed so far."""
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup() for stage in tracker.getJobInfo(job).stageIds]
    return sum(info.numFailedTasks for stage in stages if (info := tracker.getStageInfo(stage)) is not None)


@needs_spark
def test_killed_tasks_lose_and_repeat_no_record(busy: LocalService) -> None:
    with busy.client() as client:
        transfers = in_microseconds(client.cross_chain_transactions().to_arrow())
        newest = client.transactions().first()
        assert newest is not None
        assert newest.height is not None
        low, high = newest.height - 40, newest.height
        transactions = in_microseconds(client.transactions(start_height=low, end_height=high).to_arrow())
    with spark_session("local-cluster[2,1,1024]") as spark:
        source = spark.read.format("chainframe").option("resource", "transactions")
        assert (
            source.option("start_height", low)
            .option("end_height", high)
            .load()
            .toArrow()
            .cast(transactions.schema)
            .equals(transactions)
        )

        source = spark.read.format("chainframe").option("resource", "cross_chain_transactions")
        frame = source.option("numPartitions", 5).option("page_size", 2).load()
        assert frame.toArrow().cast(transfers.schema).equals(transfers)
        assert failed_tasks(spark) == 0

        # Once more, slowly, and with the processes of both executors killed in the middle of their parts.
        busy.reset_request_log()
        busy.faults = [{"kind": "delay", "seconds": 0.5}]
        # A partition has eight pages, four in flight: at the first response it is far from its end.
        killed: dict[int, int] = {}
        ended = threading.Event()

        def kill() -> None:
            while not busy.request_log and not ended.wait(0.02):
                pass
            killed.update(task_processes())
            for process in killed:
                os.kill(process, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            table = frame.toArrow()
        finally:
            ended.set()
            killer.join()
        assert len(set(killed.values())) == 2
        assert 1 <= failed_tasks(spark) <= len(killed)
        # Requests that were sent twice: by a task, and by the one that replaced it.
        queries = [request["query"] for request in busy.request_log]
        assert len(queries) > len(set(queries))
        assert table.cast(transfers.schema).equals(transfers)

        with pytest.raises(Exception, match="InvalidParameterError: resource must be one of"):
            spark.read.format("chainframe").option("resource", "coins").load()


@needs_spark
def test_spark_pushes_filters_and_shows_them(busy: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    with busy.client() as client:
        deep = client.transactions().collect()[-1].height
        assert deep is not None
        expected = len(client.transactions(height=deep).collect())
    with spark_session("local[1]") as spark:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        source = spark.read.format("chainframe").option("resource", "transactions").option("push_filters", "true")
        frame = source.load().where(f"height = {deep}")
        busy.reset_request_log()
        assert frame.count() == expected > 0
        assert busy.request_count <= 2
        capsys.readouterr()
        frame.explain("formatted")
        assert f"PushedFilters: [IsNotNull(height), EqualTo(height,{deep})]" in capsys.readouterr().out


@needs_spark
def test_executors_read_secrets_from_their_environment(busy: LocalService) -> None:
    with spark_session("local-cluster[1,1,1024]", CHAINFRAME_SECRET_KEY="another") as spark:
        source = spark.read.format("chainframe").option("resource", "transactions").option("numPartitions", 1)
        frame = source.option("start_height", 1).option("end_height", 1).load()
        # A range of heights sends no request before its tasks do.
        assert busy.request_count == 0
        with pytest.raises(Exception, match=r"chainframe\.errors\.AuthenticationError: "):
            frame.toArrow()
        assert failed_tasks(spark) > 0
        assert {request["status"] for request in busy.request_log} == {401}
