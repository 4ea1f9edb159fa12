"""Exports and series of an earlier release, which had fewer columns: they are continued with these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports.manifest import Manifest
from chainframe.testing import LocalService
from exports.test_exports_settled import advance, reorganize

ADDED = {"miner", "transaction_count"}


@pytest.fixture
def service() -> Any:
    with LocalService(transactions=150) as running:
        yield running


@pytest.fixture
def client(service: LocalService) -> Any:
    with service.client(rate_limit=None, max_retries=0) as made:
        yield made


def columns(client: cf.Client) -> list[str]:
    return list(client.blocks().partial.schema.names)


def earlier_columns(client: cf.Client) -> list[str]:
    """Columns of a release before some were added, in another order."""
    return [name for name in reversed(columns(client)) if name not in ADDED]


def by_earlier_release(directory: Path) -> None:
    """Change a manifest as if its columns had been all that there were."""
    path = directory / Manifest.NAME
    state = json.loads(path.read_text())
    assert state["has_all_columns"] is False
    path.write_text(json.dumps({**state, "has_all_columns": True}))


@pytest.mark.parametrize("settle", [6, None])
def test_series_whose_manifest_does_not_say_if_columns_were_selected_is_continued(
    service: LocalService, client: cf.Client, tmp_path: Path, settle: int | None
) -> None:
    first = client.blocks().to_parquet_series(tmp_path, settle=settle)
    path = first.path / Manifest.NAME
    state = json.loads(path.read_text())
    assert state.pop("has_all_columns")
    path.write_text(json.dumps(state))
    advance(service, 9)
    second = client.blocks().to_parquet_series(tmp_path, settle=settle)
    assert (second.path.name, second.rows) == ("export-000001", 9)
    assert chainframe.exports.read(tmp_path).count_rows() == first.rows + second.rows


@pytest.mark.parametrize("settle", [6, None])
def test_series_is_continued_with_its_columns(
    service: LocalService, client: cf.Client, tmp_path: Path, settle: int | None
) -> None:
    expected = earlier_columns(client)
    first = client.blocks().to_parquet_series(tmp_path, settle=settle, columns=expected)
    by_earlier_release(first.path)
    for _ in range(2):
        advance(service, 9)
        if settle:
            reorganize(service, 4)
            advance(service, 9)
        export = client.blocks().to_parquet_series(tmp_path, settle=settle)
        assert export.rows
        assert export.to_arrow().column_names == expected
        assert json.loads((export.path / Manifest.NAME).read_text())["has_all_columns"] is True
    assert chainframe.exports.read(tmp_path).schema.names == expected
    # Without a settled height nothing of the earlier exports is compared.
    if settle is None:
        advance(service, 9)
        assert client.blocks().to_parquet_series(tmp_path, settle=None, columns=columns(client)).rows
    else:
        with pytest.raises(cf.ExportError, match="columns"):
            client.blocks().to_parquet_series(tmp_path, settle=settle, columns=columns(client))


@pytest.mark.parametrize("form", ["directory", "file.csv", "file.parquet"])
def test_interrupted_export_is_continued_with_its_columns(
    service: LocalService, client: cf.Client, tmp_path: Path, form: str
) -> None:
    expected = earlier_columns(client)
    query = client.blocks(page_size=20)
    path = tmp_path / form
    write: Any = query.to_csv if path.suffix == ".csv" else query.to_parquet
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        write(path, columns=expected)
    service.faults = []
    by_earlier_release(path if form == "directory" else tmp_path / f"{form}.part")
    assert write(path).rows == len(query.collect())
    if path.suffix == ".csv":
        assert path.read_text().splitlines()[0] == ",".join(f'"{name}"' for name in expected)
    else:
        assert pq.ParquetFile(next(tmp_path.rglob("*.parquet"))).schema_arrow.names == expected


@pytest.mark.parametrize("is_finished", [True, False])
def test_columns_that_were_selected_are_not_taken_for_all(
    service: LocalService, client: cf.Client, tmp_path: Path, is_finished: Any
) -> None:
    selected = columns(client)[:-2]
    query = client.blocks(page_size=20)
    if is_finished:
        query.to_parquet(tmp_path, columns=selected)
    else:
        service.faults = [{"kind": "status", "status": 503, "every": 4}]
        with pytest.raises(cf.ServiceUnavailableError):
            query.to_parquet(tmp_path, columns=selected)
        service.faults = []
    with pytest.raises(cf.ExportError, match=r"columns is|columns has"):
        query.to_parquet(tmp_path)
    assert query.to_parquet(tmp_path, columns=selected).to_arrow().column_names == selected
    assert query.to_parquet(tmp_path, mode="overwrite").to_arrow().column_names == columns(client)


def test_export_with_a_column_that_is_gone_is_an_error(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet(tmp_path)
    path = tmp_path / Manifest.NAME
    state = json.loads(path.read_text())
    assert state["has_all_columns"] is True
    path.write_text(json.dumps({**state, "schema": {**state["schema"], "other": "int64"}}))
    with pytest.raises(cf.ExportError, match="columns"):
        client.blocks().to_parquet(tmp_path)
