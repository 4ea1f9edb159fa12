"""Structured Streaming: micro-batches by themselves, and a local Spark that is killed in the middle of one."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow.dataset import dataset
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

import chainframe as cf
from chainframe.integrations.spark import ChainframeSource
from chainframe.testing import LocalService
from conftest import environment
from integrations.test_spark import in_microseconds
from integrations.test_spark_cluster import needs_spark
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
OPTIONS = {"resource": "blocks", "settle": "6", "start": "beginning", "max_rows_per_batch": "40"}


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalService]:
    with LocalService(transactions=400, seed=11) as running:
        for name, value in environment(running).items():
            monkeypatch.setenv(name, value)
        yield running


def reader(options: dict[str, str], columns: list[str] | None = None) -> Any:
    source = ChainframeSource(options)
    whole = source.schema()
    made = source.streamReader(StructType([whole[name] for name in columns or whole.names]))
    return pickle.loads(pickle.dumps(made))


def rows(stream: Any, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
    """The rows of a micro-batch, read as by other processes."""
    offsets = json.loads(json.dumps([start, end]))
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.partitions(*offsets)]
    assert len(parts) == (start != end)
    return [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]


def listed(chain: LocalService, columns: list[str] | None = None) -> list[Any]:
    """All blocks, oldest first."""
    with chain.client(rate_limit=None) as client:
        return in_microseconds(client.blocks().to_arrow(columns=columns)).to_pylist()[::-1]


@pytest.mark.parametrize("restarted", [False, True])
def test_micro_batches_are_the_list(chain: LocalService, *, restarted: bool) -> None:
    chain.growth, chain.reorg = 1, (5, 4)
    stream = reader(OPTIONS)
    start, found, sizes = stream.initialOffset(), [], []
    for _ in range(20):
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        if restarted:
            # As after a crash: the process that planned the micro-batch is gone.
            stream = reader(OPTIONS)
        batch = rows(stream, start, end)
        stream.commit(end)
        found += batch
        sizes.append(len(batch))
        start = json.loads(json.dumps(end))
    chain.growth, chain.reorg = 0, None
    assert found == listed(chain)[: len(found)]
    assert max(sizes) < len(found)
    assert sum(map(bool, sizes)) > 2


def test_a_micro_batch_is_repeated_with_the_same_rows(chain: LocalService) -> None:
    stream = reader(OPTIONS)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    first = rows(stream, start, end)
    chain.growth, chain.reorg = 2, (3, 4)
    for _ in range(30):
        listed(chain)
    # Blocks added since then are not in the stream.
    assert rows(reader(OPTIONS), start, end) == first == listed(chain)[: len(first)]


def test_a_first_micro_batch_begins_where_it_began(chain: LocalService) -> None:
    options = {**OPTIONS, "start": "now"}
    stream, chain.growth = reader(options), 1
    start = stream.initialOffset()
    for _ in range(10):
        listed(chain)
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    first = rows(stream, start, end)
    assert first
    # Spark stores only the end: a restarted query asks for the first offset again.
    stream = reader(options)
    later = stream.initialOffset()
    assert later != start
    assert rows(stream, later, end) == first
    # The second micro-batch continues after it.
    second = stream.latestOffset(end, stream.getDefaultReadLimit())
    chain.growth = 0
    both = first + rows(stream, end, second)
    everything = listed(chain)
    at = everything.index(both[0])
    assert both == everything[at : at + len(both)]


def test_available_now_ends_although_the_list_grows(chain: LocalService) -> None:
    stream, chain.growth = reader(OPTIONS), 1
    newest = listed(chain)[-1]["height"]
    stream.prepareForTriggerAvailableNow()
    start, found = stream.initialOffset(), []
    for _ in range(50):
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        if end == start:
            break
        found += rows(stream, start, end)
        start = end
    else:
        pytest.fail("the query does not end")
    last = json.loads(stream._end)["position"]["after"]["position"]
    assert newest - 6 <= found[-1]["height"] == last
    assert found == listed(chain)[: len(found)]


def test_a_quiet_list_makes_no_micro_batch(chain: LocalService) -> None:
    stream = reader(OPTIONS)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    stream.commit(end)
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    chain.reset_request_log()
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    assert chain.request_count == 1
    assert stream.partitions(end, end) == []


def test_columns_and_numbers_are_those_of_the_options(chain: LocalService) -> None:
    stream = reader({**OPTIONS, "numbers": "string"}, ["miner", "hash"])
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    found = rows(stream, start, end)
    assert found == listed(chain, ["miner", "hash"])[: len(found)]


def test_a_settled_height_that_changed_fails_the_query(chain: LocalService) -> None:
    options = {**OPTIONS, "settle": "2"}
    stream = reader(options)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    chain.reorg = (1, 6)
    listed(chain)
    chain.reorg = None
    with pytest.raises(cf.ReorganizationError):
        rows(reader(options), start, end)


@pytest.mark.parametrize(
    ("door", "option", "said"),
    [
        ("streamReader", "numPartitions", "numPartitions is an option of spark.read"),
        ("streamReader", "max_items", "max_items is an option of spark.read"),
        ("reader", "settle", "settle is an option of spark.readStream"),
        ("reader", "start", "start is an option of spark.readStream"),
    ],
)
def test_options_of_the_other_door_are_rejected(door: str, option: str, said: str, chain: LocalService) -> None:
    source = ChainframeSource({"resource": "blocks", option: "5"})
    with pytest.raises(cf.InvalidParameterError, match=said):
        getattr(source, door)(source.schema())
    assert chain.request_count == 0


def test_a_call_that_cannot_be_followed_is_named(chain: LocalService) -> None:
    for options, said in (
        ({"resource": "tokens", "start": "beginning"}, "not ordered by age"),
        ({"resource": "blocks", "start": "yesterday"}, 'start must be "now", "beginning"'),
        ({"resource": "address_transactions", "address": "0xab,0xcd"}, "a stream follows one value of each argument"),
    ):
        with pytest.raises(cf.InvalidParameterError, match=said):
            reader(options).initialOffset()
    assert chain.request_count == 0


QUERY = """
import json, sys, time
from pyspark.sql import SparkSession
from chainframe.integrations.spark import ChainframeSource

output, checkpoint, kind = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC", "spark.log.level": "ERROR",
}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.dataSource.register(ChainframeSource)

def slow(batches):
    for batch in batches:
        time.sleep(1.0 if kind == "continuous" else 0.0)
        yield batch

source = spark.readStream.format("chainframe").option("resource", "blocks").option("start", "beginning")
frame = source.option("settle", 6).option("max_rows_per_batch", 40).load().select("height", "hash")
frame = frame.mapInArrow(slow, frame.schema)
writer = frame.writeStream.option("checkpointLocation", checkpoint)
writer = writer.trigger(availableNow=True) if kind == "now" else writer.trigger(processingTime="100 milliseconds")
query = writer.start(output, format="parquet")
query.awaitTermination()
rows = spark.read.parquet(output).orderBy("height").collect()
print(json.dumps([row.asDict() for row in rows]))
spark.stop()
"""


@needs_spark
def test_the_example_of_the_guide_appends_what_is_new(chain: LocalService, tmp_path: Path) -> None:
    guide = (ROOT / "docs/guide/following.md").read_text(encoding="utf-8")
    example = guide.partition('```python title="stream.py"\n')[2].partition("```")[0]
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    for growth in (0, 2):
        chain.growth = growth
        for _ in range(10):
            listed(chain)
        chain.growth = 0
        subprocess.run([sys.executable, "-c", example], env=variables, cwd=tmp_path, timeout=300, check=True)
        found = dataset(tmp_path / "blocks").to_table(columns=["height", "hash"]).sort_by("height").to_pylist()
        assert found == listed(chain, ["height", "hash"])[:-12]


@needs_spark
def test_a_killed_query_continues_from_its_checkpoint(chain: LocalService, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    command = [sys.executable, "-c", QUERY, str(tmp_path / "output"), str(checkpoint)]
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    chain.growth, chain.reorg = 1, (7, 4)

    def numbers(folder: str) -> set[int]:
        return {int(path.name) for path in (checkpoint / folder).glob("[0-9]*")}

    killed: set[int] = set()
    for _ in range(2):
        with subprocess.Popen([*command, "continuous"], env=variables, start_new_session=True) as process:
            # A micro-batch is planned and not committed: its rows are being read or written.
            while not (numbers("offsets") - numbers("commits") - killed):
                assert process.poll() is None
                time.sleep(0.02)
            time.sleep(0.3)
            killed |= numbers("offsets") - numbers("commits")
            os.killpg(process.pid, signal.SIGKILL)
    assert len(killed) >= 2
    ended = subprocess.run([*command, "now"], env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    chain.growth, chain.reorg = 0, None
    found = json.loads(ended.stdout.splitlines()[-1])
    assert len(found) > 100
    assert found == listed(chain, ["height", "hash"])[: len(found)]
    assert numbers("offsets") == numbers("commits") > killed
