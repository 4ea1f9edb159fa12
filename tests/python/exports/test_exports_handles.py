"""An `Export` stands for the files that it was made with: what has replaced them since is an error, in every use."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import compute as pc

import chainframe as cf
import chainframe.exports
from chainframe.exports import Export
from chainframe.testing import LocalService

USES: dict[str, Callable[[Export, cf.Client], Any]] = {
    "to_arrow": lambda export, _: export.to_arrow(),
    "to_pandas": lambda export, _: export.to_pandas(),
    "to_polars": lambda export, _: export.to_polars(),
    "verify": lambda export, client: export.verify(client),
    "read": lambda export, _: chainframe.exports.read(export),
    "read several": lambda export, _: chainframe.exports.read([export]),
    "compact": lambda export, _: chainframe.exports.compact(export, export.path.parent / "c"),
    "open": lambda export, _: Export.open(export),  # type: ignore[arg-type]
    "since": lambda export, client: client.blocks().to_parquet(export.path.parent / "n", since=export),
    "since of a file": lambda export, client: client.blocks().to_csv(export.path.parent / "n.csv", since=export),
    "follow": lambda export, client: client.blocks().follow(start=export, poll=None),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("replaced_by", ["more", "as many", "another query"])
def test_replaced_export_is_refused(client: cf.Client, tmp_path: Path, use: str, replaced_by: str) -> None:
    first = client.blocks(max_items=None if replaced_by == "as many" else 30).to_parquet(tmp_path / "e")
    kept = [first, copy.copy(first), pickle.loads(pickle.dumps(replace(first, _client=None)))]
    if replaced_by != "as many":
        query = client.blocks() if replaced_by == "more" else client.transactions(max_items=30)
        client_export = query.to_parquet(tmp_path / "e", mode="overwrite")
    else:
        shutil.rmtree(tmp_path / "e")
        client_export = client.transactions(max_items=first.rows).to_parquet(tmp_path / "e")
        assert client_export.rows == first.rows
    before = sorted(path.name for path in tmp_path.iterdir())
    for export in kept:
        with pytest.raises(cf.ExportError, match=r"holds another export now, which replaced this one; open it"):
            USES[use](export, client)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert Export.open(tmp_path / "e").to_arrow().num_rows == client_export.rows


@pytest.mark.parametrize("use", USES)
def test_export_whose_files_are_the_same_is_used(client: cf.Client, tmp_path: Path, use: str) -> None:
    first = client.blocks().to_parquet(tmp_path / "e")
    client.blocks().to_parquet(tmp_path / "e")
    client.blocks().to_parquet(tmp_path / "e", mode="overwrite")
    USES[use](first, client)


@pytest.mark.parametrize("damage", ["removed", "replaced", "cut", "empty"])
@pytest.mark.parametrize("to", ["to_arrow", "to_pandas", "to_polars"])
@pytest.mark.parametrize("form", ["directory", "one.parquet"])
def test_file_that_cannot_be_read_is_an_export_error(
    client: cf.Client, tmp_path: Path, damage: str, to: str, form: str
) -> None:
    export = client.blocks().to_parquet(tmp_path / form)
    part = export.parts[0]
    match damage:
        case "removed":
            part.unlink()
        case "replaced":
            part.write_text("height\n1\n")
        case "cut":
            part.write_bytes(part.read_bytes()[:-100])
        case _:
            part.write_bytes(b"")
    with pytest.raises(cf.ExportError, match=r"is missing|is damaged|cannot be read: .*export again") as caught:
        getattr(export, to)()
    assert caught.value.path == str(part)


READS: dict[str, Callable[[Any], object]] = {
    "to_table": lambda rows: rows.to_table(),
    "to_table of a filter": lambda rows: rows.filter(pc.field("height") > 0).to_table(),
    "to_batches": lambda rows: list(rows.to_batches()),
    "count_rows": lambda rows: rows.count_rows(filter=pc.field("hash") != ""),
    "head": lambda rows: rows.head(10_000),
    "take": lambda rows: rows.take(list(range(rows.schema.get_field_index("hash")))),
    "polars": lambda rows: pl.scan_pyarrow_dataset(rows).collect(),
}


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(("damage", "problem"), [(cut, "is damaged"), (Path.unlink, "is missing")])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("is_corrected", [False, True])
def test_file_that_is_damaged_after_a_data_set_was_opened_is_named(  # noqa: PLR0917 - fixtures
    chain: LocalService,
    tmp_path: Path,
    read: str,
    is_corrected: bool,  # noqa: FBT001
    damage: Callable[[Path], object],
    problem: str,
) -> None:
    series = tmp_path / "series"
    with chain.client() as client:
        client.blocks().to_parquet_series(series, settle=12, max_rows_per_file=20)
        if is_corrected:
            chain.reorg = (1, 4)
            client.blocks().first()
            chain.reorg = None
            client.blocks().to_parquet_series(series, settle=12)
    rows = chainframe.exports.read(series)
    damage(series / "export-000000" / "part-000000.parquet")
    with pytest.raises(cf.ExportError, match=rf"^\S+part-000000.parquet {problem}") as caught:
        READS[read](rows)
    assert len(str(caught.value).splitlines()) == 1


def test_error_of_a_filter_is_that_of_pyarrow(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet(tmp_path / "e")
    with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
        chainframe.exports.read(tmp_path / "e").to_table(filter=pc.field("heigth") > 0)
