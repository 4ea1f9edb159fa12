"""Datasets in libraries that pass filters on through DuckDB, or run a scan elsewhere."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import chainframe as cf
from chainframe.testing import LocalService


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=900, seed=7) as service:
        yield service


@pytest.fixture
def block(service: LocalService, client: cf.Client) -> pa.Table:
    """Transactions of a block far down the list."""
    table = client.transactions(height=client.transactions().collect()[-5].height).to_arrow()
    service.reset_request_log()
    return table


def test_ibis_narrows_the_requests(service: LocalService, client: cf.Client, block: pa.Table) -> None:
    ibis: Any = pytest.importorskip("ibis")
    transactions = ibis.memtable(client.transactions().dataset())
    service.reset_request_log()
    found = transactions.filter(transactions.height == block["height"][0].as_py()).select("tx_id").to_pyarrow()
    assert service.request_count == 1
    assert found.sort_by("tx_id").equals(block.select(["tx_id"]).sort_by("tx_id"))
    largest = transactions.filter(transactions.height.isin(block["height"][:1].to_pylist()))
    assert largest.amount.max().to_pyarrow().as_py() == pc.max(block["amount"]).as_py()


def test_dask_task_scans_a_dataset(
    service: LocalService, client: cf.Client, block: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    dask: Any = pytest.importorskip("dask")
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setitem(os.environ, f"CHAINFRAME_{name.upper()}", getattr(service, name))
    dataset, height = client.transactions().dataset(), block["height"][0].as_py()
    tasks = [dask.delayed(dataset.to_table)(filter=pc.field("height") == one) for one in (height, height + 1)]
    found, above = dask.compute(*tasks, scheduler="processes", num_workers=2)
    assert found.sort_by("tx_id").equals(block.sort_by("tx_id"))
    assert above.num_rows > 0
    assert service.request_count == 2


def test_dataset_and_scan_are_written_by_pyarrow(service: LocalService, client: cf.Client, tmp_path: Path) -> None:
    dataset = client.transactions().dataset()
    whole = dataset.to_table()
    spent = dataset.report.requests
    height = whole["height"][5].as_py()
    scan: Any = dataset.scanner(columns=["tx_id", "height"], filter=pc.field("height") == height)
    service.reset_request_log()
    pads.write_dataset(scan, tmp_path / "scan", format="parquet")
    assert service.request_count < spent
    written = pads.dataset(tmp_path / "scan").to_table()
    expected = whole.filter(pc.field("height") == height).select(["tx_id", "height"])
    # pyarrow's threads write batches in any order.
    assert written.sort_by("tx_id").equals(expected.sort_by("tx_id"))
    pads.write_dataset(dataset, tmp_path / "whole", format="parquet")
    assert pads.dataset(tmp_path / "whole").to_table().sort_by("tx_id").equals(whole.sort_by("tx_id"))
    assert dataset.report.complete


def test_scan_that_fails_fails_what_pyarrow_writes(tmp_path: Path) -> None:
    with (
        LocalService(transactions=300, faults=[{"kind": "status", "status": 500, "every": 3}]) as service,
        service.client(max_retries=0) as client,
    ):
        dataset = client.transactions(page_size=50).dataset()
        with pytest.raises((cf.ServiceError, pa.ArrowException, OSError)):
            pads.write_dataset(dataset, tmp_path / "out", format="parquet")
        assert isinstance(dataset.last_error, cf.ServiceError)
        assert not dataset.report.complete
