"""Files of records in hand: those of the query's exports, without a request."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.testing import LocalService, make_records

FILES = {
    "to_parquet": ["a.parquet"],
    "to_csv": ["a.csv", "a.csv.gz", "plain"],
    "to_json": ["a.jsonl", "a.json", "a.ndjson", "a.jsonl.gz", "plain"],
}
CASES = [(method, name) for method, names in FILES.items() for name in names]


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=60, seed=5) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: LocalService) -> Iterator[cf.Client]:
    with service.client() as client:
        yield client


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def _written(source: Any, method: str, path: Path, **options: Any) -> bytes:
    export = getattr(source, method)(path, **options)
    assert export.parts == (path,)
    return path.read_bytes()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "options",
    [{}, {"columns": ["amount", "height"]}, {"numbers": "float"}, {"numbers": "decimal"}, {"numbers": "string"}],
)
def test_same_file_as_the_query(service: LocalService, tmp_path: Path, case: tuple[str, str], options: Any) -> None:
    (method, name), client = case, service.client()
    query = client.transactions()
    records = query.collect()
    (tmp_path / "query").mkdir()
    expected = _written(query, method, tmp_path / "query" / name, **options)
    received = service.request_count
    assert _written(records, method, tmp_path / name, **options) == expected
    assert service.request_count == received
    assert _names(tmp_path) == sorted([name, "query"])


def test_what_is_in_hand(client: cf.Client, tmp_path: Path) -> None:
    records = client.blocks(page_size=20).collect()
    export = records[:7].to_parquet(tmp_path / "some.parquet")
    assert (export.rows, export.report, export.manifest) == (7, records.report, None)
    assert export.to_arrow().equals(records[:7].to_arrow())
    export = records.to_parquet(tmp_path / "all.parquet")
    assert pq.ParquetFile(export.path).num_row_groups == 1
    assert export.to_pandas().equals(records.to_pandas())
    page = next(iter(client.blocks(page_size=20).pages()))
    assert len(gzip.decompress(_written(page.records, "to_json", tmp_path / "page.jsonl.gz")).splitlines()) == 20
    batch = next(iter(client.blocks().batches(9, columns=["hash", "height"])))
    assert _written(batch, "to_csv", tmp_path / "batch.csv").startswith(b'"height","hash"\n')
    empty = make_records("blocks", [])
    assert empty.to_parquet(tmp_path / "empty.parquet").rows == 0
    assert pq.read_schema(tmp_path / "empty.parquet").names == records.schema.names


def test_default_of_the_client(service: LocalService, tmp_path: Path) -> None:
    with service.client(numbers="float") as client:
        records = client.transactions().collect()
    records.to_parquet(tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").field("amount").type == pa.float64()
    records.to_parquet(tmp_path / "a.parquet", numbers="string")
    assert pq.read_schema(tmp_path / "a.parquet").field("amount").type == pa.string()


def test_earlier_file_stays_until_the_new_one_is_complete(client: cf.Client, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"earlier")
    path.chmod(0o600)
    too_long = make_records("transactions", [{"amount": "1" * 40}])
    with pytest.raises(cf.NumericOverflowError):
        too_long.to_parquet(path)
    assert path.read_bytes() == b"earlier"
    assert _names(tmp_path) == ["a.parquet"]
    too_long.to_parquet(path, numbers="string")
    assert path.stat().st_mode & 0o777 == 0o600
    assert pq.read_table(path)["amount"].to_pylist() == ["1" * 40]
    # An interrupted export of the query beside the file can still be continued.
    bounded = client.with_options(max_requests=2).blocks(page_size=20)
    with pytest.raises(cf.BudgetExceededError):
        bounded.to_csv(tmp_path / "b.csv")
    kept = _names(tmp_path)
    too_long.to_csv(tmp_path / "b.csv")
    assert _names(tmp_path) == sorted([*kept, "b.csv"])


def test_bad_arguments(client: cf.Client, tmp_path: Path) -> None:
    records = client.blocks().collect()
    bad: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
        ("to_parquet", tmp_path / "a.csv", {}, cf.InvalidParameterError, "ends in .csv; call to_csv"),
        ("to_csv", tmp_path / "a.parquet", {}, cf.InvalidParameterError, "ends in .parquet; call to_parquet"),
        ("to_json", tmp_path / "a.txt", {}, cf.InvalidParameterError, "ends in .txt; pass a path that ends in .jsonl"),
        ("to_parquet", tmp_path / "a", {}, cf.InvalidParameterError, "must name a file that ends in .parquet"),
        ("to_csv", f"{tmp_path}/a/", {}, cf.InvalidParameterError, "must name a file that ends in .csv"),
        ("to_parquet", tmp_path, {}, cf.ExportError, "is a directory; name a file"),
        ("to_csv", tmp_path / "none" / "a.csv", {}, cf.ExportError, "is not a directory; create it first"),
        ("to_csv", "hdfs://host/a.csv", {}, cf.InvalidParameterError, "must be a local path"),
        ("to_csv", 3, {}, cf.InvalidParameterError, "path must be a str or path; got int"),
        ("to_json", tmp_path / "a.jsonl", {"columns": ["hight"]}, cf.InvalidParameterError, "did you mean 'height'"),
        ("to_json", tmp_path / "a.jsonl", {"columns": "height"}, cf.InvalidParameterError, "must be a list of names"),
        ("to_json", tmp_path / "a.jsonl", {"numbers": "exact"}, cf.InvalidParameterError, "numbers must be one of"),
        ("to_csv", tmp_path / "a.csv", {"mode": "resume"}, TypeError, "it takes path, columns, numbers"),
    ]
    for method, path, options, kind, message in bad:
        with pytest.raises(kind, match=message):
            getattr(records, method)(path, **options)
    (tmp_path / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(cf.ExportError, match="is a symbolic link"):
        records.to_csv(tmp_path / "link.csv")
    assert _names(tmp_path) == ["link.csv"]
