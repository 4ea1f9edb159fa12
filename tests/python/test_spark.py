"""The data source for Spark: by itself, and where Spark is, in a local one whose tasks are killed and tried again."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, StructType, TimestampType

import by_hand
import chainframe as cf
from chainframe.integrations.spark import ChainframeSource
from chainframe.testing import LocalService
from conftest import Sample

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)

HAS_SPARK = importlib.util.find_spec("py4j") is not None and shutil.which("java") is not None


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalService]:
    with LocalService(transactions=2_000, seed=11) as running:
        for name in ("api_key", "secret_key", "passphrase"):
            monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(running, name))
        monkeypatch.setenv("CHAINFRAME_BASE_URL", running.url)
        yield running


def read(options: dict[str, Any]) -> pa.Table:
    """What Spark does, without Spark: every part goes to where it is read as bytes."""
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


@pytest.mark.parametrize("call", sorted(by_hand.ENDPOINTS))
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_every_call(call: str, busy: LocalService, sample: Sample) -> None:
    with busy.client() as client:
        rows = [transaction.tx_id or "" for transaction in client.transactions(max_items=45)]
        crossing = client.cross_chain_transactions().first()
        assert crossing is not None
        needed: dict[str, dict[str, Any]] = {
            "token_transfers": {"token_contract_address": crossing.token_contract_address},
            "address_transactions": {"address": crossing.source_address},
            "transactions_by_hash": {"tx_ids": ",".join(rows)},
            "logs": {"tx_ids": ",".join(rows)},
        }
        own = needed.get(call, {})
        query = getattr(client, call)(
            **{name: value.split(",") if name == "tx_ids" else value for name, value in own.items()}
        )
        expected = in_microseconds(query.to_arrow())
    assert read({"resource": call, "partitions": 3, **own}).equals(expected)
    assert sample.token


def test_types_are_sparks_own(busy: LocalService) -> None:
    schema = ChainframeSource({"resource": "cross_chain_transactions"}).schema()
    assert isinstance(schema, StructType)
    assert schema["value"].dataType == DecimalType(38, 18)
    assert schema["zone_block_time"].dataType == TimestampType()
    floats = ChainframeSource({"resource": "tokens", "numbers": "string"}).schema()
    assert floats["price"].dataType.typeName() == "string"
    assert busy.requests == 0


def test_each_task_has_its_share_of_the_rate(busy: LocalService) -> None:
    def rate(**options: str) -> object:
        given = {"resource": "cross_chain_transactions", "partitions": "4", **options}
        part = ChainframeSource(given).reader(StructType()).partitions()[0]
        (client, *_) = part.part.query.__reduce__()[1]  # type: ignore[attr-defined]
        return client.__reduce__()[1][0]["rate_limit"]

    assert rate() == "auto"
    assert rate(rate_limit="80") == 20
    assert rate(rate_limit="80", concurrent_tasks="2") == 40
    assert busy.requests > 0


WRONG = [
    ({}, "resource: None is none of tokens"),
    ({"resource": "coins"}, "'coins' is none of"),
    ({"resource": "blocks", "min_amount": "5"}, "min_amount: blocks has no such option"),
    ({"resource": "blocks", "partitions": "many"}, "not a number"),
    ({"resource": "large_transactions", "min_amount": "5"}, "min_amount: 5 is under 100"),
    ({"resource": "blocks", "page_size": "101"}, "page_size"),
    ({"resource": "blocks", "numbers": "roman"}, "numbers"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_a_wrong_option_is_named(options: dict[str, str], said: str, busy: LocalService) -> None:
    with pytest.raises(cf.InvalidParameterError, match=said):
        ChainframeSource(options).schema()
    assert busy.requests == 0


@contextmanager
def spark_session() -> Generator[Any]:
    """Two tasks at a time, each of which may fail twice."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where there is one

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.dataSource.register(ChainframeSource)
    try:
        yield session
    finally:
        session.stop()


def workers() -> list[int]:
    """The processes that read for Spark: children of its Python daemon."""
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (folder / "cmdline").read_bytes():
                daemons.add(int(folder.name))
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
    return [process for process, parent in parents.items() if parent in daemons]


@pytest.mark.skipif(not HAS_SPARK, reason="Spark is not installed; make spark")
def test_a_local_spark_whose_tasks_are_killed(busy: LocalService) -> None:
    with busy.client() as client:
        expected = in_microseconds(client.cross_chain_transactions().to_arrow())
    with spark_session() as spark:
        source = spark.read.format("chainframe").option("resource", "cross_chain_transactions")
        frame = source.option("partitions", 5).option("page_size", 5).load()
        assert frame.toArrow().cast(expected.schema).equals(expected)

        # Once more, slowly, and with the workers killed in the middle of their parts.
        busy.clear_requests()
        busy.faults = [{"kind": "stall", "seconds": 0.2}]
        killed: list[int] = []
        ended = threading.Event()

        def kill() -> None:
            while not any("page=2" in request["query"] for request in busy.request_log) and not ended.wait(0.02):
                pass
            killed.extend(workers())
            for worker in killed:
                os.kill(worker, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            table = frame.toArrow()
        finally:
            ended.set()
            killer.join()
        assert killed
        assert table.cast(expected.schema).equals(expected)
        with pytest.raises(Exception, match="coins"):
            spark.read.format("chainframe").option("resource", "coins").load()
