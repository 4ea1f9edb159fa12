"""The Spark data source in a local cluster whose tasks are killed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chainframe.integrations.spark import ChainframeSource
from integrations.test_spark import in_microseconds

if TYPE_CHECKING:
    from collections.abc import Generator

    from chainframe.testing import LocalService

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)

# On Linux /proc lists the processes of a task.
needs_spark = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("py4j") is None or shutil.which("java") is None,
    reason="it needs Spark, Java and Linux: make spark",
)


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
