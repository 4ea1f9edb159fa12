"""Datasets in libraries that pass filters on through DuckDB, or run a scan elsewhere."""

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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
