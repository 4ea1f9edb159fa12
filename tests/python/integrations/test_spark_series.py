"""Spark as a reader of a series of exports; `exports/test_series_readers.py` has those that need no Java."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import reference_client
from chainframe.testing import LocalService
from integrations.test_spark_cluster import needs_spark, spark_session

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)


@needs_spark
def test_spark_skips_corrections(tmp_path: Path) -> None:
    series = tmp_path / "s"
    with LocalService(transactions=150) as service, service.client(rate_limit=None) as client:

        def grow(blocks: int) -> None:
            service.growth = 1
            for _ in range(blocks):
                reference_client.get(service, "blocks", limit="1")
            service.growth = 0

        grow(10)
        client.blocks().to_parquet_series(series, settle=6)
        service.reorg = (1, 9)
        reference_client.get(service, "blocks", limit="1")
        service.reorg = None
        grow(3)
        export = client.blocks().to_parquet_series(series, settle=6)
    assert export.corrections
    in_parts = sum(pq.read_metadata(part).num_rows for part in series.rglob("part-*.parquet"))
    with spark_session("local[1]") as spark:
        reader = spark.read.option("recursiveFileLookup", "true")
        assert reader.parquet(str(series)).count() == in_parts
        assert spark.read.parquet(str(export.path)).count() == export.rows
