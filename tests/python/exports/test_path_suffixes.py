"""Suffixes of paths: formats and compressions that a name promises."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import LocalService


@pytest.mark.parametrize("name", ["b.csv.gz", "b.CSV.GZ", "b.jsonl.gz", "b.json.gz", "b.ndjson.gz"])
def test_suffix_of_a_compression_compresses(
    at_service: LocalService, client: cf.Client, tmp_path: Path, name: str
) -> None:
    del at_service
    path = tmp_path / name
    method = "to_csv" if "csv" in name.lower() else "to_json"
    getattr(client.blocks(), method)(path)
    content = path.read_bytes()
    assert main(["blocks", "-o", str(path), "--overwrite"]) == 0
    assert path.read_bytes() == content
    plain = tmp_path / "plain"
    getattr(client.blocks(), method)(plain)
    assert gzip.decompress(content) == plain.read_bytes()
    if method == "to_csv":
        assert len(pd.read_csv(path, compression="gzip")) == len(client.blocks().collect())
    else:
        assert json.loads(gzip.decompress(content).splitlines()[0])["height"]


REFUSED = [
    *(("to_csv", name) for name in ("b.txt", "b.tsv", "b.csv.zst", "b.csv.bz2", "b.jsonl.gz", "b.gz", "b.parquet.gz")),
    *(("to_json", name) for name in ("b.txt", "b.csv.gz", "b.jsonl.xz", "b.arrow", "b.xml")),
    *(("to_parquet", name) for name in ("b.parquet.gz", "b.pq", "b.parq", "b.csv.gz", "b.db", "b.zip", "b.arrow")),
]


@pytest.mark.parametrize(("method", "name"), REFUSED)
def test_suffix_that_promises_something_else_is_refused(
    service: LocalService, client: cf.Client, tmp_path: Path, method: str, name: str
) -> None:
    sent = service.request_count
    with pytest.raises(cf.InvalidParameterError, match=r"path \(.*\) ends in \..*; (pass|call) "):
        getattr(client.blocks(), method)(tmp_path / name)
    assert (service.request_count, list(tmp_path.iterdir())) == (sent, [])


@pytest.mark.parametrize("name", ["2026.01.05", "v1.2", "day=5", "blocks.d/"])
def test_directory_may_have_a_dot_in_its_name(client: cf.Client, tmp_path: Path, name: str) -> None:
    assert client.blocks(max_items=5).to_parquet(f"{tmp_path}/{name}").manifest == tmp_path / name / "_manifest.json"


CONTRADICTIONS = [
    (["-o", "b.csv", "--format", "jsonl"], "--format jsonl contradicts --output b.csv"),
    (["-o", "b.jsonl.gz", "--format", "csv"], "--format csv contradicts --output b.jsonl.gz"),
    (["-o", "b.parquet", "--format", "arrow"], "--format arrow contradicts"),
    (["-o", "b.csv.zst"], "--output must end in"),
    (["-o", "b.txt", "--format", "csv"], "--output must end in"),
    (["-o", "b.parquet.gz"], "--output must end in"),
    (["-o", "b"], "--output must end in"),
]


@pytest.mark.parametrize("wrong", CONTRADICTIONS, ids=str)
def test_command_refuses_a_name_that_contradicts_the_format(
    at_service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, wrong: Any
) -> None:
    options, expected = wrong
    monkeypatch.chdir(tmp_path)
    sent = at_service.request_count
    assert main(["blocks", *options]) == 2
    assert expected in capsys.readouterr().err
    assert (at_service.request_count, list(tmp_path.iterdir())) == (sent, [])
    assert main(["blocks", "--max-items", "2", "-o", "b", "--format", "csv"]) == 0
    assert len(Path("b").read_text().splitlines()) == 3
