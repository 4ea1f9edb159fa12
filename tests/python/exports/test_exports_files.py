"""One file from Python: the same files, rules and options as the command's."""

from __future__ import annotations

import asyncio
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.exports import Export
from chainframe.exports.directory import LocalStore
from chainframe.exports.files import FileRequest
from chainframe.testing import LocalService
from conftest import Sample

METHODS = {"to_parquet": "blocks.parquet", "to_csv": "blocks.csv", "to_json": "blocks.jsonl"}


def heights(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        return pq.read_table(path)["height"].to_pylist()
    with path.open() as text:
        rows = csv.DictReader(text) if path.suffix == ".csv" else map(json.loads, text)
        return [int(row["height"]) for row in rows]


@pytest.fixture
def blocks() -> Any:
    with LocalService(transactions=200) as service, service.client(max_retries=0, concurrency=1) as client:
        yield service, client.blocks(page_size=20)


@pytest.mark.parametrize("method", METHODS)
def test_file_holds_the_result(blocks: Any, tmp_path: Path, method: str) -> None:
    _, query = blocks
    path = tmp_path / METHODS[method]
    export = getattr(query, method)(path, columns=["height", "hash"])
    assert (export.path, export.parts, export.manifest, export.rows) == (path, (path,), None, 200)
    assert export.complete
    assert heights(path) == [block.height for block in query]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_file_is_resumed(blocks: Any, tmp_path: Path, method: str) -> None:
    service, query = blocks
    path = tmp_path / METHODS[method]
    path.write_text("old")
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        getattr(query, method)(str(path))
    assert path.read_text() == "old"
    service.faults = []
    before = service.request_count
    with pytest.raises(cf.ExportError, match="another query"):
        getattr(query, method)(path, columns=["hash", "height"])
    getattr(query, method)(path)
    assert service.request_count - before < 10
    assert heights(path) == [block.height for block in query]
    with pytest.raises(cf.ExportError, match="exists"):
        getattr(query, method)(path, mode="error")


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "a.csv.gz"])
def test_parts_of_a_file_that_is_in_place_are_not_taken_for_a_new_result(
    blocks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    service, query = blocks
    path = tmp_path / name
    write = {"parquet": query.to_parquet, "csv": query.to_csv, "jsonl": query.to_json}[name.split(".")[1]]
    with monkeypatch.context() as stopped:
        stopped.setattr(FileRequest, "discard", lambda _: None)
        before = write(path).rows
    assert (tmp_path / f"{name}.part").exists()
    service.growth = 100
    query.first()
    service.growth = 0
    sent = service.request_count
    assert write(path).rows > before
    assert service.request_count > sent
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_finished_parts_of_a_file_that_is_not_in_place_are_used(
    blocks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, query = blocks
    path = tmp_path / "a.csv"
    path.write_text("old")
    with monkeypatch.context() as stopped:
        stopped.setattr(FileRequest, "_replace", lambda *_: 1 / 0)
        stopped.setattr(FileRequest, "clean_up", lambda *_: None)
        with pytest.raises(ZeroDivisionError):
            query.to_csv(path)
    sent = service.request_count
    assert query.to_csv(path).rows == 200
    assert service.request_count == sent


def test_parts_of_a_file_that_cannot_be_removed_are_named(
    blocks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, query = blocks
    path = tmp_path / "a.csv"

    def fail(store: LocalStore) -> None:
        raise cf.ExportError(f"{store.path}: read-only")

    monkeypatch.setattr(LocalStore, "discard_all", fail)
    assert query.to_csv(path).rows == 200
    for mode in ("resume", "overwrite"):
        with pytest.raises(cf.ExportError, match="read-only"):
            query.to_csv(path, mode=mode)


@pytest.mark.parametrize("method", METHODS)
def test_overwriting_a_file_starts_over(blocks: Any, tmp_path: Path, method: str) -> None:
    service, query = blocks
    path = tmp_path / METHODS[method]
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        getattr(query, method)(path)
    service.faults = []
    before = service.request_count
    getattr(query, method)(path, mode="overwrite", columns=["height"])
    assert service.request_count - before >= 10
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("method", METHODS)
def test_awaited_file_is_the_same(blocks: Any, tmp_path: Path, method: str) -> None:
    _, query = blocks
    path = tmp_path / METHODS[method]

    async def run() -> Export:
        export: Export = await getattr(query, f"{method}_async")(path)
        return export

    assert asyncio.run(run()).rows == 200
    assert heights(path) == [block.height for block in query]


def test_csv_keeps_every_digit(client: cf.Client, sample: Sample, tmp_path: Path) -> None:
    query = client.token_transfers(sample.token)
    query.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open() as text:
        found = [row["amount"] for row in csv.DictReader(text)]
    assert found == query.to_arrow(numbers="string")["amount"].to_pylist()


def test_file_can_continue_an_export(blocks: Any, tmp_path: Path) -> None:
    service, query = blocks
    first = query.to_parquet(tmp_path / "first")
    with service.client() as client:
        before = {block.height for block in client.blocks()}
    assert query.to_csv(tmp_path / "new.csv", since=first).rows == 0
    assert heights(tmp_path / "new.csv") == []
    assert before


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("to_csv", "a.csv", {"mode": "append"}, "mode must be one of resume, overwrite, error"),
    ("to_json", "a.jsonl", {"columns": ["size"]}, "size"),
    ("to_csv", "nowhere/a.csv", {}, "nowhere is not a directory"),
    ("to_csv", ".", {}, "is a directory; name a file"),
    ("to_parquet", "a.parquet", {"max_rows_per_file": 9}, "max_rows_per_file needs a directory"),
    ("to_parquet", "a.csv", {}, r"ends in \.csv; call to_csv, or pass another path"),
    ("to_csv", "a.parquet", {}, r"ends in \.parquet; call to_parquet"),
    ("to_csv", "a.xlsx", {}, r"ends in \.xlsx; call to_pandas\(\)\.to_excel"),
    ("to_parquet", "a", {"mode": "append"}, "mode must be one of"),
    ("to_parquet", "a", {"columns": []}, "columns must name at least one column"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[3])
def test_wrong_options_send_nothing(blocks: Any, tmp_path: Path, wrong: tuple[str, str, dict[str, Any], str]) -> None:
    (service, query), (method, path, options, expected) = blocks, wrong
    with pytest.raises((cf.InvalidParameterError, cf.ExportError), match=expected):
        getattr(query, method)(tmp_path / path, **options)
    assert service.request_count == 0
    assert list(tmp_path.iterdir()) == []


def test_module_is_the_command() -> None:
    run = subprocess.run([sys.executable, "-m", "chainframe", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"chainframe {cf.__version__}\n"
