"""The report of a run in the attributes of its pandas frame."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe._reports import MAX_LISTED
from chainframe.exports import Export
from chainframe.testing import LocalService

pd: Any = pytest.importorskip("pandas")
MEMBERS = {name for name in dir(cf.Report) if not name.startswith("_")}


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=60, seed=5) as service:
        yield service


@pytest.fixture
def frame(service: LocalService) -> Any:
    with service.client() as client:
        return client.transactions().to_pandas()


def test_every_member_of_the_report(service: LocalService) -> None:
    with service.client() as client:
        query = client.transactions()
        records = query.collect()
        ways = [records.to_pandas(), records[:3].to_pandas(dtype_backend="pyarrow"), asyncio.run(_collect(query))]
        for frame, report in zip(ways, [records.report, records.report, query.report], strict=True):
            told = frame.attrs["chainframe"]
            assert told.keys() == MEMBERS | {"shortened"}
            assert {name: told[name] for name in MEMBERS} == {name: getattr(report, name) for name in MEMBERS}
            assert told["shortened"] == {}
            assert json.loads(json.dumps(told)) == told
        blocks = client.blocks(page_size=20)
        assert blocks.to_pandas().attrs["chainframe"]["requests"] == blocks.report.requests > 1


async def _collect(query: cf.Query[Any]) -> Any:
    return (await query.collect_async()).to_pandas("string")


def test_incomplete_results_say_why(service: LocalService) -> None:
    with service.client() as client:
        unknown = [f"0x{number:064x}" for number in range(MAX_LISTED + 5)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cf.IncompleteResultWarning)
            records = client.transactions_by_hash(unknown).collect()
        told = records.to_pandas().attrs["chainframe"]
        assert told["complete"] is records.report.complete
        assert told["reasons"] == records.report.reasons
        assert told["missing"] == records.report.missing[:MAX_LISTED]
        assert told["shortened"] == {"missing": len(unknown)}


def test_many_arguments_are_cut_with_the_incomplete_first(service: LocalService) -> None:
    with service.client() as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cf.IncompleteResultWarning)
            records = client.blocks(height=[10**9, *range(1, MAX_LISTED + 3)]).collect()
        told = records.to_pandas().attrs["chainframe"]
        assert len(told["by_argument"]) == MAX_LISTED
        assert told["shortened"] == {"by_argument": MAX_LISTED + 3}
        complete = [verdict["complete"] for verdict in told["by_argument"].values()]
        assert complete == sorted(complete)
        assert json.loads(json.dumps(told)) == told


def test_what_pandas_does_with_a_frame(frame: Any, tmp_path: Path) -> None:
    told = frame.attrs["chainframe"]
    other = frame.copy()
    derived = {
        "filter": frame[frame["height"] > 0],
        "columns": frame[["height", "amount"]],
        "assign": frame.assign(doubled=frame["amount"] + frame["amount"]),
        "sort": frame.sort_values("height"),
        "concat": pd.concat([frame, frame[:3]]),
        "pickle": pickle.loads(pickle.dumps(frame)),
        "deepcopy": copy.deepcopy(frame),
    }
    for name, each in derived.items():
        assert each.attrs["chainframe"] == told, name
    merged = frame.merge(other, on=["tx_id", "height"])
    assert len(merged) >= len(frame)
    # The attributes are the frame's own.
    other.attrs["chainframe"]["requests"] = -1
    assert frame.attrs["chainframe"] == told != other.attrs["chainframe"]
    assert len(pd.concat([frame, other])) == 2 * len(frame)
    frame.to_parquet(tmp_path / "frame.parquet")
    read = pd.read_parquet(tmp_path / "frame.parquet")
    assert len(read) == len(frame)
    assert read.attrs == {"chainframe": told}
    frame.to_feather(tmp_path / "frame.feather")
    frame.groupby("height")["amount"].sum()
    frame.pivot_table(index="height", values="amount", aggfunc="sum")


def test_exports_have_their_report(service: LocalService, tmp_path: Path) -> None:
    with service.client() as client:
        export = client.transactions().to_parquet(tmp_path / "transactions")
    for each in (export, Export.open(tmp_path / "transactions")):
        told = each.to_pandas().attrs["chainframe"]
        assert told["records"] == export.rows
        assert told["complete"] is True


def test_decoded_logs_have_their_report(service: LocalService) -> None:
    with service.client() as client:
        logs = client.logs([each.tx_id for each in client.transactions().collect() if each.tx_id]).collect()
    event = cf.Event("Transfer(address indexed from, address indexed to, uint256 value)")
    assert logs.decode(event).to_pandas().attrs["chainframe"]["pages"] == logs.report.pages
