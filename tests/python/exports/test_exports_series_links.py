"""A series of which exports were moved to another disk, with links left in their places."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports import Export
from chainframe.testing import LocalService
from exports.test_exports_settled import advance, rows

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")

MOVES: dict[str, list[tuple[int, str]]] = {
    "the first": [(0, "other/export-000000")],
    "one in between": [(1, "other/export-000001")],
    "the newest": [(2, "other/export-000002")],
    "the newest, renamed": [(2, "other/newest")],
    "one in between, renamed": [(1, "old")],
    "all": [(number, f"other/export-{number:06}") for number in range(3)],
    "all, renamed": [(number, f"other/{number}/moved") for number in range(3)],
}


@pytest.fixture
def grown(tmp_path: Path) -> Any:
    with LocalService(transactions=150) as service, service.client(rate_limit=None) as client:
        for _ in range(3):
            advance(service, 10)
            client.blocks().to_parquet_series(tmp_path / "s", settle=6)
        yield service, client, tmp_path / "s"


def move(series: Path, number: int, to: str) -> None:
    target = series.parent / to
    target.parent.mkdir(parents=True, exist_ok=True)
    link = series / f"export-{number:06}"
    shutil.move(link, target)
    link.symlink_to(target)


@pytest.mark.parametrize("moved", MOVES)
def test_moved_exports_of_a_series_are_read_and_those_before_the_newest_continued(grown: Any, moved: str) -> None:
    service, client, series = grown
    before = chainframe.exports.read(series).to_table()
    for number, to in MOVES[moved]:
        move(series, number, to)
    newest = Export.open(series)
    assert newest.path.name == "export-000002"
    assert newest.verify(client).ok
    assert rows(chainframe.exports.read(series).to_table()) == rows(before)
    assert rows(chainframe.exports.read([*series.glob("export-*")]).to_table()) == rows(before)
    assert chainframe.exports.compact(series, series.parent / "c").rows == before.num_rows
    advance(service, 10)
    copy = client.blocks().to_parquet(series.parent / "copy", since=series, settle=6)
    if (series / "export-000002").is_symlink():
        with pytest.raises(cf.ExportError, match="is a symbolic link"):
            client.blocks().to_parquet_series(series, settle=6)
        return
    export = client.blocks().to_parquet_series(series, settle=6)
    assert export.path == series / "export-000003"
    assert rows(copy.to_arrow()) == rows(export.to_arrow())
    records = chainframe.exports.read(series).to_table()
    assert records.num_rows == before.num_rows + export.rows
    assert len(set(records["height"].to_pylist())) == records.num_rows


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("damage", ["removed", "replaced"])
def test_moved_export_that_is_gone_or_damaged_is_an_error(grown: Any, number: int, damage: str) -> None:
    service, client, series = grown
    move(series, number, "other")
    if damage == "removed":
        shutil.rmtree(series.parent / "other")
    else:
        part = next((series.parent / "other").glob("part-*"))
        pq.write_table(pq.read_table(part)[:1], part)
    with pytest.raises(cf.ExportError):
        chainframe.exports.read(series)
    with pytest.raises(cf.ExportError):
        chainframe.exports.compact(series, series.parent / "c")
    if damage == "replaced":
        assert not Export.open(series).verify(client).ok
    if number == 2:
        before = sorted(path.name for path in series.iterdir())
        advance(service, 10)
        with pytest.raises(cf.ExportError):
            client.blocks().to_parquet_series(series, settle=6)
        assert sorted(path.name for path in series.iterdir()) == before


def test_nothing_is_written_through_the_link_of_a_moved_export(grown: Any) -> None:
    service, client, series = grown
    empty = client.blocks().to_parquet_series(series, settle=6)
    assert not empty.rows
    move(series, 3, "other")
    kept = {path.name: path.read_bytes() for path in (series.parent / "other").iterdir()}
    advance(service, 10)
    with pytest.raises(cf.ExportError, match="is a symbolic link"):
        client.blocks().to_parquet_series(series, settle=6)
    assert {path.name: path.read_bytes() for path in (series.parent / "other").iterdir()} == kept
