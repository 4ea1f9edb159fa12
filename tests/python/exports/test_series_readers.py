"""Readers of the directories of a series: other libraries, which skip corrections, and its own, which notice damage."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from exports.test_exports_series import read
from exports.test_exports_settled import advance, reorganize


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A series whose second export has corrections, and the rows of its parts."""
    series = tmp_path_factory.mktemp("series") / "s"
    with LocalService(transactions=150) as service, service.client(rate_limit=None) as client:
        advance(service, 10)
        client.blocks().to_parquet_series(series, settle=6)
        reorganize(service, 9)
        advance(service, 3)
        export = client.blocks().to_parquet_series(series, settle=6)
    assert export.corrections
    return export, sum(pq.read_metadata(part).num_rows for part in series.rglob("part-*.parquet"))


def counted(files: str) -> int:
    return int(duckdb.execute(f"select count(*) {files}").fetchall()[0][0])


READERS: dict[str, Any] = {
    "pandas": lambda path: len(pd.read_parquet(path)),
    "pyarrow": lambda path: pq.read_table(path).num_rows,
    "pyarrow.dataset": lambda path: ds.dataset(path).count_rows(),
    "polars": lambda path: pl.read_parquet(f"{path}/*.parquet").height,
    "polars below": lambda path: pl.read_parquet(f"{path}/**/*.parquet").height,
    "DuckDB": lambda path: counted(f"from '{path}/*.parquet'"),
    "DuckDB below": lambda path: counted(f"from '{path}/**/*.parquet'"),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_of_directories_skip_corrections(corrected: Any, reader: str) -> None:
    export, in_parts = corrected
    assert READERS[reader](str(export.path)) == export.rows
    if "*.parquet" not in reader and reader not in {"polars", "DuckDB"}:
        assert READERS[reader](str(export.path.parent)) == in_parts


def test_dask_skips_corrections(corrected: Any) -> None:
    dask = pytest.importorskip("dask.dataframe")
    assert len(dask.read_parquet(str(corrected[0].path))) == corrected[0].rows


def test_damage_at_any_position_is_noticed_when_the_series_is_read(corrected: Any, tmp_path: Path) -> None:
    series = tmp_path / "s"
    shutil.copytree(corrected[0].path.parent, series)
    assert read(series).num_rows
    files = [path for path in series.rglob("*") if path.suffix in {".parquet", ".data"}]
    assert {path.suffix for path in files} == {".parquet", ".data"}
    chance = random.Random(1)
    for path in files:
        content = path.read_bytes()
        for position in {0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(40))}:
            damaged = bytearray(content)
            damaged[position] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            with pytest.raises(cf.ExportError, match="is damaged"):
                read(series)
        path.write_bytes(content)
    assert read(series).num_rows
