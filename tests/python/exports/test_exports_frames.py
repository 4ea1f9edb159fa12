"""Exports read back as frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.exports import Export
from conftest import Sample, needs_extra

pytestmark = needs_extra


@pytest.mark.parametrize("call", ["token_transfers", "large_transactions", "tokens", "logs"])
def test_frame_of_an_export_is_that_of_its_query(client: cf.Client, sample: Sample, call: str, tmp_path: Path) -> None:
    pd: Any = pytest.importorskip("pandas")
    pl: Any = pytest.importorskip("polars")
    query = sample.query(client, call)
    query.to_parquet(tmp_path / "directory", max_rows_per_file=7)
    single = query.to_parquet(tmp_path / "one.parquet")
    for export in (Export.open(tmp_path / "directory"), single):
        pd.testing.assert_frame_equal(export.to_pandas(), query.to_pandas())
        for backend in ("numpy_nullable", "pyarrow"):
            pd.testing.assert_frame_equal(
                export.to_pandas(dtype_backend=backend), query.to_pandas(dtype_backend=backend)
            )
        assert export.to_arrow().equals(query.to_arrow())
        assert export.to_polars().equals(query.to_polars())
        assert isinstance(export.to_polars(), pl.DataFrame)
        names = export.to_arrow().column_names[2::-1]
        assert list(export.to_pandas(columns=names).columns) == names


def test_other_files_in_the_directory_are_not_read(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=5).to_parquet(tmp_path / "blocks")
    (tmp_path / "blocks" / "a.parquet").write_bytes(export.parts[0].read_bytes())
    assert export.to_arrow().num_rows == 5


def test_damaged_file_is_not_read(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=5).to_parquet(tmp_path / "blocks")
    data = bytearray(export.parts[0].read_bytes())
    data[10] ^= 1
    export.parts[0].write_bytes(data)
    with pytest.raises(cf.ExportError, match="is damaged"):
        export.to_arrow()


def test_empty_export_has_the_columns_of_its_query(client: cf.Client, tmp_path: Path) -> None:
    query = client.large_transactions(min_amount=10**15)
    export = query.to_parquet(tmp_path / "none")
    assert export.rows == 0
    assert export.to_arrow().schema == query.to_arrow().schema


def test_export_without_types_and_unknown_names_are_refused(client: cf.Client, tmp_path: Path) -> None:
    query = client.blocks(max_items=5)
    with pytest.raises(cf.ContextError, match="not a Parquet file"):
        query.to_csv(tmp_path / "blocks.csv").to_arrow()
    export = query.to_parquet(tmp_path / "blocks")
    with pytest.raises(cf.InvalidParameterError, match=r"columns must be among height, .*; got 'heigth'"):
        export.to_arrow(columns=["heigth"])
    wrong: list[tuple[Any, str]] = [
        ("height", "must be a list of names; got 'height'"),
        (True, "must be a list of names; got True"),
        ({"height"}, "must be a list of names; got {'height'}"),
        (["height", "height"], 'must be distinct; got "height" twice'),
    ]
    for columns, problem in wrong:
        with pytest.raises(cf.InvalidParameterError, match=f"^columns {problem}$"):
            export.to_arrow(columns=columns)
    with pytest.raises(cf.InvalidParameterError, match="dtype_backend must be one of"):
        export.to_pandas(dtype_backend="arrow")
