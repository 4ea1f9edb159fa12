"""Layout of Parquet files: order and partitions, and what DuckDB, polars, pandas and pyarrow skip by them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe import exports
from chainframe.cli import main
from chainframe.exports.tables import Encoding, write_table
from chainframe.testing import LocalService

BY = ["height", "tx_id"]
POLARS = int(pl.__version__.partition(".")[0])


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series of two exports in small files, with corrections of what a reorganization changed."""
    folder = tmp_path_factory.mktemp("exports") / "series"
    with LocalService(transactions=900, seed=7) as service, service.client(rate_limit=None) as client:
        query = client.transactions()
        query.to_parquet_series(folder, settle=8, max_rows_per_file=90)
        service.growth, service.reorg = 12, (1, 12)
        query.first()
        service.growth, service.reorg = 0, None
        query.to_parquet_series(folder, settle=8, max_rows_per_file=90)
    return folder


def rows(table: Any) -> list[Any]:
    found: list[Any] = table.sort_by([(name, "ascending") for name in BY]).to_pylist()
    return found


def whole(series: Path) -> pa.Table:
    return exports.read(series).to_table()


def test_files_of_an_export_say_their_order_and_have_an_index_of_pages(series: Path) -> None:
    files = sorted(series.rglob("*.parquet"))
    assert len(files) > 4
    for file in files:
        metadata = pq.read_metadata(file)
        group = metadata.row_group(0)
        (column,) = group.sorting_columns
        name = metadata.schema.column(column.column_index).name
        heights: Any = pq.read_table(file, columns=["height"])["height"].to_pylist()
        assert (name, sorted(heights, reverse=column.descending)) == ("height", heights)
        assert group.column(0).has_offset_index


def test_texts_have_a_dictionary_and_numbers_none(client: cf.Client, tmp_path: Path) -> None:
    rows = client.transactions(max_items=30).to_arrow()
    rows = rows.append_column("queried", pa.array([["a"]] * len(rows)))
    with (tmp_path / "rows.parquet").open("wb") as file:
        write_table(rows, file, Encoding())
    group = pq.read_metadata(tmp_path / "rows.parquet").row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    found = {column.path_in_schema: column.has_dictionary_page for column in columns}
    assert all(found[name] for name in ("tx_id", "input", "queried.list.element"))
    assert not any(found[name] for name in ("height", "amount", "tx_fee", "transaction_time"))


def test_files_are_stored_as_the_caller_says(client: cf.Client, tmp_path: Path) -> None:
    options: Any = {"compression": "gzip", "rows_per_group": 40}
    query = client.blocks(max_items=130)
    query.to_parquet(tmp_path / "directory", max_rows_per_file=90, **options)
    asyncio.run(query.to_parquet_async(tmp_path / "file.parquet", **options))
    client.transactions().to_parquet_series(tmp_path / "series", settle=2, **options)
    files = {file.relative_to(tmp_path).parts[0]: pq.read_metadata(file) for file in tmp_path.rglob("*.parquet")}
    assert len(files) == 3
    for metadata in files.values():
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        assert sizes[:-1] == [40] * (len(sizes) - 1)
        assert metadata.row_group(0).column(0).compression == "GZIP"
        assert metadata.row_group(0).sorting_columns
    assert files["file.parquet"].num_row_groups == 4
    # Parts that hold a few rows each do not make small row groups.
    query.to_parquet(tmp_path / "again.parquet")
    assert pq.read_metadata(tmp_path / "again.parquet").num_row_groups == 1
    assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(tmp_path / "file.parquet"))
    to_csv: Any = query.to_csv
    with pytest.raises(TypeError, match="compression"):
        to_csv(tmp_path / "a.csv", compression="gzip")
    wrong: Any
    for wrong, message in (
        ({"compression": "zip"}, "compression must be one of zstd, snappy, gzip, lz4, none; got 'zip'"),
        ({"rows_per_group": 0}, "rows_per_group must be an integer from 1"),
    ):
        for method, path in (
            (query.to_parquet, "new"),
            (query.to_parquet, "a.parquet"),
            (query.to_parquet_series, "s"),
        ):
            with pytest.raises(cf.InvalidParameterError, match=message):
                method(tmp_path / path, **wrong)
            assert not (tmp_path / path).exists()


def test_command_copies_a_series(series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "lake"
    command = ["compact", str(series), str(target), "--partition-by", "height", "--heights-per-partition", "1000000"]
    assert main([*command, "--compression", "snappy"]) == 0
    files = list(target.rglob("*.parquet"))
    assert capsys.readouterr().out == f"{whole(series).num_rows:,} records in {len(files)} file in {target}\n"
    assert pq.read_metadata(files[0]).row_group(0).column(0).compression == "SNAPPY"
    assert main(command) == 2
    assert capsys.readouterr().err == f"chainframe: {target} exists; name a directory that does not\n"


def test_compacted_series_has_the_same_rows_in_order(series: Path, tmp_path: Path) -> None:
    expected = whole(series)
    done = exports.compact(series, tmp_path / "lake", max_rows_per_file=250, rows_per_group=100)
    tables = [pq.read_table(file) for file in done.files]
    assert rows(pa.concat_tables(tables)) == rows(expected)
    assert done.rows == expected.num_rows
    heights: list[Any] = [height for table in tables for height in table["height"].to_pylist()]
    assert heights == sorted(heights)
    assert 1 < len(done.files) < len(list(series.rglob("*.parquet")))
    assert max(table.num_rows for table in tables) <= 250
    assert pq.read_metadata(done.files[0]).num_row_groups > 1
    assert {path.name for path in tmp_path.iterdir()} == {"lake"}


def test_days_are_those_of_the_blocks_whatever_the_order_of_columns(tmp_path: Path) -> None:
    day = 86_400
    crossing: dict[str, Any] = {"zone_block_height": 5, "zone_block_time": day, "main_block_time": 3 * day}
    with LocalService(data={"cross_chain_transactions": [crossing]}) as service, service.client() as client:
        query = client.cross_chain_transactions()
        query.to_parquet(tmp_path / "0", columns=["main_block_time", "zone_block_time", "zone_block_height"])
        exports.compact(tmp_path / "0", tmp_path / "lake", partition_by="day")
        expected = query.collect()[0].zone_block_time
        assert expected is not None
        assert [folder.name for folder in (tmp_path / "lake").iterdir()] == [f"day={expected.date()}"]
        query.to_parquet(tmp_path / "1", columns=["main_block_time", "zone_block_height"])
        with pytest.raises(cf.InvalidParameterError, match="partition_by must be height, since the records have no"):
            exports.compact(tmp_path / "1", tmp_path / "other", partition_by="day")


def test_compression_is_an_option(series: Path, tmp_path: Path) -> None:
    names: list[Any] = ["zstd", "snappy", "none"]
    for name in names:
        done = exports.compact(series, tmp_path / name, compression=name)
        found = pq.read_metadata(done.files[0]).row_group(0).column(0).compression
        assert found == {"none": "UNCOMPRESSED"}.get(name, name.upper())


@pytest.fixture(scope="module", params=["day", "height"])
def lake(request: pytest.FixtureRequest, series: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A partitioned data set, its directory, the names of a partition and one value of it."""
    folder = tmp_path_factory.mktemp("lake") / request.param
    done = exports.compact(series, folder, partition_by=request.param, heights_per_partition=20)
    name = {"day": "day", "height": "height_from"}[request.param]
    values = sorted({file.parent.name.partition("=")[2] for file in done.files})
    assert len(values) > 2
    return done, folder, name, values[1]


def test_partitions_have_all_rows_and_each_its_own(lake: Any, series: Path) -> None:
    done, folder, name, value = lake
    found = ds.dataset(folder, partitioning="hive").to_table()
    assert rows(found.drop_columns([name])) == rows(whole(series))
    part: list[Any] = pq.read_table(folder / f"{name}={value}", partitioning=None).to_pylist()
    if name == "day":
        assert {row["transaction_time"].date().isoformat() for row in part} == {value}
    else:
        assert {row["height"] // 20 * 20 for row in part} == {int(value)}
    assert len(done.files) == len(list(folder.rglob("*.parquet")))


def test_duckdb_reads_the_files_of_a_partition_only(lake: Any) -> None:
    done, folder, name, value = lake
    with duckdb.connect() as database:
        source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
        select = f"select count(*), max(amount) from {source} where {name} = '{value}'"
        (text,) = [row[1] for row in database.execute(f"explain analyze {select}").fetchall()]
        found = database.execute(select).fetchall()
    assert re.search(rf"1/{len(done.files)}\b", text), text
    assert found[0][0] == pq.read_table(folder / f"{name}={value}", partitioning=None).num_rows


def test_polars_reads_the_files_of_a_partition_only(lake: Any) -> None:
    _, folder, name, value = lake
    frame = pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    narrowed = frame.filter(pl.col(name) == (date.fromisoformat(value) if name == "day" else int(value)))
    if POLARS >= 2:  # earlier versions select the files when they read them
        # For several files, polars names the first file and the number of other files.
        assert re.search(r"SCAN \[[^,]*\[?[^,]*, \.\.\. \d+ other", frame.explain())
        assert re.search(rf"SCAN \[[^,]*/{name}={value}/part-000000\.parquet\]", narrowed.explain())
    assert narrowed.collect().height == pq.read_table(folder / f"{name}={value}", partitioning=None).num_rows


def test_pandas_and_pyarrow_read_the_files_of_a_partition_only(lake: Any) -> None:
    _, folder, name, value = lake
    dataset = ds.dataset(folder, partitioning="hive")
    typed = value if name == "day" else int(value)
    fragments = list(dataset.get_fragments(ds.field(name) == typed))
    assert len(fragments) == 1
    frame = pd.read_parquet(folder, filters=[(name, "==", typed)])
    assert len(frame) == fragments[0].count_rows()


def test_rows_within_a_file_are_skipped_by_height(series: Path, tmp_path: Path) -> None:
    done = exports.compact(series, tmp_path / "lake", rows_per_group=20)
    (fragment,) = ds.dataset(done.path).get_fragments()
    height = fragment.to_table(columns=["height"])["height"][done.rows // 2].as_py()
    groups = len(fragment.row_groups)
    narrowed = fragment.subset(ds.field("height") == height)
    assert len(narrowed.row_groups) * 3 < groups
    explained = pl.scan_parquet(done.files[0]).filter(height=height).explain()
    assert re.search(rf'SELECTION: \[?\(?col\("height"\)\)? == \(?{height}', explained)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is Unix's")
def test_run_that_is_killed_leaves_nothing_and_the_next_one_completes(series: Path, tmp_path: Path) -> None:
    target = tmp_path / "lake"
    code = (
        "import os, sys; from chainframe.exports import compact, layout; write = layout.write_table; tables = []\n"
        "def killed(table, file, **options):\n"
        "    tables.append(table)\n"
        "    return os.kill(os.getpid(), 9) if len(tables) == 3 else write(table, file, **options)\n"
        "layout.write_table = killed; compact(sys.argv[1], sys.argv[2], max_rows_per_file=100)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(series), str(target)], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    again = exports.compact(series, target, partition_by="day")
    assert rows(ds.dataset(target, partitioning="hive").to_table().drop_columns(["day"])) == rows(whole(series))
    assert sorted(target.rglob("*.parquet")) == sorted(again.files)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_wrong_arguments_are_named(series: Path, tmp_path: Path) -> None:
    compact: Any = exports.compact
    with pytest.raises(cf.ExportError, match="exists; name a directory that does not"):
        compact(series, tmp_path)
    for options, message in (
        ({"partition_by": "hour"}, "partition_by must be one of day, height; got 'hour'"),
        ({"compression": "zip"}, "compression must be one of zstd, "),
        ({"rows_per_group": 0}, "rows_per_group must be an integer from 1 to 2^63-1; got 0"),
        ({"rows_per_group": "9"}, "rows_per_group must be an integer from 1 to 2^63-1; got '9'"),
        ({"max_rows_per_file": True}, "max_rows_per_file must be an integer from 1 to 2^63-1; got True"),
    ):
        with pytest.raises(cf.InvalidParameterError, match=re.escape(message)):
            compact(series, tmp_path / "new", **options)
    with pytest.raises(cf.InvalidParameterError, match=r"path \(ftp://...\) must be a local path, or begin with s3://"):
        compact(series, "ftp://host/lake")
    with pytest.raises(cf.InvalidParameterError, match="storage_options needs a URL"):
        compact(series, tmp_path / "new", storage_options={})


def test_compaction_opens_each_file_for_the_partitions_that_have_its_rows(
    series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[Any] = []

    class Scanned:
        """Rows of a data set, which note the files that are read."""

        def __init__(self, rows: Any) -> None:
            self.rows = rows
            self.schema = getattr(rows, "schema", None)

        def to_table(self, **options: Any) -> pa.Table:
            scanned.append(options.get("columns"))
            table: pa.Table = self.rows.to_table(**options)
            return table

        def get_fragments(self) -> list[Any]:
            return [Scanned(fragment) for fragment in self.rows.get_fragments()]

    monkeypatch.setattr("chainframe.exports.layout.read", lambda sources: Scanned(exports.read(sources)))
    files = len(list(exports.read(series).get_fragments()))
    done = exports.compact(series, tmp_path / "lake", partition_by="height", heights_per_partition=3)
    assert done.rows == whole(series).num_rows
    assert len(done.files) > 10
    # The heights of all files, then each file for its own partition and for those that it shares.
    assert len(scanned) <= 1 + files + len(done.files)
