"""`compact` at the limits of times and heights, and beside the exports that it copies."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import chainframe as cf
from chainframe import exports
from chainframe.testing import LocalService, make_records

ENDS: list[dict[str, Any]] = [
    {"tx_id": "0x1", "height": 2**63 - 1, "transaction_time": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)},
    {"tx_id": "0x1", "height": 2**63 - 2, "transaction_time": datetime(9999, 12, 31, tzinfo=UTC)},
    {
        "tx_id": "0x1",
        "height": 2**63 - 100_001,
        "transaction_time": datetime(9999, 12, 30, 23, 59, 59, 999_000, tzinfo=UTC),
    },
    {"tx_id": "0x1", "height": 0, "transaction_time": datetime(1, 1, 1, tzinfo=UTC)},
]


@pytest.mark.parametrize("partition_by", ["day", "height", None])
@pytest.mark.parametrize("span", [1, 7, 100_000, 2**63 - 1])
def test_last_and_first_height_and_time_are_in_a_partition(tmp_path: Path, partition_by: Any, span: int) -> None:
    with LocalService(data={"transactions": ENDS}) as service, service.client() as client:
        export = client.transactions().to_parquet(tmp_path / "e")
    done = exports.compact(export, tmp_path / "c", partition_by=partition_by, heights_per_partition=span)
    assert done.rows == len(ENDS)
    found = ds.dataset(tmp_path / "c", format="parquet", partitioning="hive").to_table().to_pylist()
    assert sorted(row["height"] for row in found) == sorted(row["height"] for row in ENDS)
    if partition_by == "day":
        assert {row["transaction_time"].date() == datetime.fromisoformat(str(row["day"])).date() for row in found} == {
            True
        }


@pytest.mark.parametrize("of", ["series", "its newest export", "an export"])
def test_copy_within_what_it_copies_is_refused(client: cf.Client, tmp_path: Path, of: str) -> None:
    newest = client.blocks().to_parquet_series(tmp_path / "s", settle=6)
    export = client.blocks().to_parquet(tmp_path / "e")
    source: Any = {"series": tmp_path / "s", "its newest export": newest, "an export": export}[of]
    directory = tmp_path / ("e" if of == "an export" else "s")
    before = sorted(tmp_path.rglob("*"))
    for target in (directory / "c", directory / "day=2026-01-01" / ".." / "c", Path(f"{directory}/c/d")):
        with pytest.raises(cf.ExportError, match=r"is within .*, which it is a copy of; name a directory elsewhere"):
            exports.compact(source, target)
    assert sorted(tmp_path.rglob("*")) == before
    assert exports.compact(source, tmp_path / f"{directory.name}-copy").rows


@pytest.mark.parametrize("mode", ["resume", "overwrite", "error"])
@pytest.mark.parametrize("partition_by", ["day", "height", None])
def test_export_to_the_directory_of_a_copy_is_refused(
    client: cf.Client, tmp_path: Path, mode: Any, partition_by: Any
) -> None:
    export = client.blocks().to_parquet(tmp_path / "e")
    done = exports.compact(export, tmp_path / "c", partition_by=partition_by)
    if partition_by is None and mode == "overwrite":
        # The names of its files are those of an export that has lost its manifest.
        return
    with pytest.raises(cf.ExportError, match="and no manifest that lists it; use another directory"):
        client.blocks().to_parquet(tmp_path / "c", mode=mode)
    with pytest.raises(cf.ExportError, match="and no manifest that lists it; use another directory"):
        asyncio.run(client.blocks().to_parquet_async(tmp_path / "c", mode=mode))
    assert sorted(path for path in (tmp_path / "c").rglob("*.parquet")) == sorted(done.files)


@pytest.mark.parametrize("method", ["to_parquet", "to_csv", "to_json"])
def test_file_without_columns_is_refused(client: cf.Client, tmp_path: Path, method: str) -> None:
    path = tmp_path / {"to_parquet": "x.parquet", "to_csv": "x.csv", "to_json": "x.jsonl"}[method]
    for source in (make_records("blocks", [{"height": 1}]), client.blocks()):
        with pytest.raises(cf.InvalidParameterError, match="columns must name at least one column"):
            getattr(source, method)(path, columns=[])
    with pytest.raises(cf.InvalidParameterError, match="columns must name at least one column"):
        asyncio.run(getattr(client.blocks(), f"{method}_async")(path, columns=[]))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("given", ["x", 3, object(), cf.Client])
def test_verify_refuses_what_is_no_client(client: cf.Client, tmp_path: Path, given: Any) -> None:
    export = client.blocks(max_items=3).to_parquet(tmp_path / "e")
    with pytest.raises(cf.InvalidParameterError, match="client must be a Client; got "):
        export.verify(given)
