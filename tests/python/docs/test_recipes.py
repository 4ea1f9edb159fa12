"""The recipes of the integrations guide for tables that grow: after reorganizations each record is there once."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainframe.testing import LocalService
from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

GUIDE = ROOT / "docs" / "guide" / "integrations.md"


def recipe(title: str) -> str:
    found = re.search(
        rf"^## {re.escape(title)}\n.*?^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found[1]


def delta_rows() -> list[str]:
    deltalake = pytest.importorskip("deltalake")
    table = deltalake.DeltaTable("cross-chain-delta").to_pyarrow_dataset().to_table(columns=["zone_tx_hash"])
    rows: list[str] = table["zone_tx_hash"].to_pylist()
    return rows


def dlt_rows() -> list[str]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("pipeline.duckdb") as connection:
        return [row[0] for row in connection.execute("select zone_tx_hash from chain.cross_chain").fetchall()]


@pytest.mark.skipif(not GUIDE.exists(), reason="needs the documentation")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(("title", "rows"), [("Delta Lake", delta_rows), ("dlt", dlt_rows)])
def test_recipe_repairs_reorganizations(
    title: str, rows: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deltalake" if title == "Delta Lake" else title)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    with LocalService(transactions=3_000, seed=1) as service, service.client(rate_limit=None) as client:
        query = client.cross_chain_transactions()
        for night in range(4):
            # dlt looks its resources' module up.
            module = types.ModuleType("recipe")
            monkeypatch.setitem(sys.modules, "recipe", module)
            vars(module).update(client=client, query=query)
            exec(compile(recipe(title), title, "exec"), vars(module))
            newest = client.blocks().first()
            assert newest is not None
            # Others may still be listed in the newest block, so its records wait for the next run of a follower.
            waits = {record.zone_tx_hash for record in query if record.zone_block_height == newest.height}
            found = {record.zone_tx_hash for record in query}
            assert found - waits <= set(rows()) <= found
            assert len(set(rows())) == len(rows())
            service.growth, service.reorg = 3, (1, 5 + 3 * night)
            for _ in range(5):
                client.blocks().first()
            service.growth, service.reorg = 0, None
