"""Bounds of the memory of an export: bytes of rows of a file and of a group, and no package that it does not need."""

from __future__ import annotations

import io
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainframe.exports.tables import Encoding, order_of, order_of_files, write_table
from strict_server import Request, Response, StrictServer, page_of

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 10**6
CHILD = """
import sys
from chainframe.testing import LocalService

with LocalService(transactions=40) as service, service.client() as client:
    for path in ("a.csv", "a.jsonl", "a.parquet", "directory"):
        query = client.transactions(page_size=20)
        export = getattr(query, {"csv": "to_csv", "jsonl": "to_json"}.get(path[2:], "to_parquet"))
        export(f"{sys.argv[1]}/{path}", numbers="decimal")
print("pandas" in sys.modules, "pyarrow.dataset" in sys.modules)
"""


def large_rows(request: Request) -> Response:
    """Six blocks with texts of 4.5 MB, newest first, one on each page."""
    page = int(request.query["page"])
    block = {"height": str(100 - page), "hash": f"0x{page:064x}", "miner": "x" * (9 * MEGABYTE // 2)}
    return page_of("blocks", [block] if page <= 6 else [], page=str(page), limit="1", totalPage="6")


@pytest.fixture
def large() -> Any:
    with StrictServer() as server, server.client() as client:
        server.on("blocks", large_rows)
        yield client.blocks(page_size=1)


def test_file_of_large_rows_ends_at_16_mib(large: Any, tmp_path: Path) -> None:
    export = large.to_parquet(tmp_path / "directory")
    assert [pq.read_metadata(part).num_rows for part in export.parts] == [3, 3]
    assert [row["height"] for part in export.parts for row in pq.read_table(part).to_pylist()] == [*range(99, 93, -1)]


def test_group_of_large_rows_in_a_single_file_ends_early(large: Any, tmp_path: Path) -> None:
    export = large.to_parquet(tmp_path / "a.parquet")
    metadata = pq.read_metadata(export.path)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 6
    assert len(groups) > 1
    assert groups[0].sorting_columns[0].descending
    assert pq.read_table(export.path)["height"].to_pylist() == [*range(99, 93, -1)]


def test_export_needs_neither_pandas_nor_datasets(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (ran.stdout.split(), ran.returncode) == (["False", "False"], 0), ran.stderr


def test_order_of_files_is_that_of_all_their_rows() -> None:
    random, found = Random(2), 0
    for _ in range(300):
        parts = [[random.randrange(4) for _ in range(random.randrange(4))] for _ in range(random.randint(1, 3))]
        for heights in parts:
            is_sorted, is_descending = random.random() < 0.7, random.random() < 0.5
            if is_sorted:
                heights.sort(reverse=is_descending)
        parts.sort(key=lambda heights: heights[:1], reverse=random.random() < 0.5)
        of_parts = [pa.table({"height": pa.array(heights, pa.int64())}) for heights in parts]
        files = [io.BytesIO() for _ in of_parts]
        for table, file in zip(of_parts, files, strict=True):
            write_table(table, file, Encoding(rows_per_group=2))
        expected = order_of(pa.concat_tables(of_parts))
        assert order_of_files(map(pq.read_metadata, files), of_parts[0].schema) == expected, parts
        found += expected is not None
    assert 100 < found < 250
