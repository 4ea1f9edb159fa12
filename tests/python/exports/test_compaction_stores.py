"""Compactions in object stores: under every fault at every request, and with two runs, each row is there once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe import exports
from chainframe.exports import layout
from chainframe.exports.tables import write_table
from chainframe.testing import LocalService
from conftest import needs_extra
from object_stores import FAULTS, STORES, Double, Killed, Stored, Turns

pytest.importorskip("obstore")
pytestmark = needs_extra

KEY = "lake/blocks"
STATE = f"{KEY}/_compaction.json"


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "blocks"
    with LocalService(transactions=300, seed=7) as service, service.client(rate_limit=None) as client:
        client.blocks(max_items=60).to_parquet(folder)
    return folder


def compact(series: Path, double: Double, rows: int = 25) -> Any:
    path: Any = double.path(KEY)
    return exports.compact(series, path, partition_by="height", max_rows_per_file=rows)


def outcome(run: Callable[[], Any]) -> str:
    try:
        run()
    except Killed:
        return "killed"
    except cf.ExportError as error:
        is_there = "holds nothing" in str(error)
        if "secret" in f"{error} {error!r} {error.__cause__} {error.__context__}" or not (error.retryable or is_there):
            raise
        return "exists" if is_there else "raised"
    return "ended"


def check(series: Path, double: Double) -> None:
    state = json.loads(double.objects[STATE].data)
    assert state["finished"]
    files = [f"{KEY}/{name}" for name in state["files"]]
    assert sorted(double.objects) == sorted([*files, STATE])
    found = pa.concat_tables(pq.read_table(io.BytesIO(double.objects[file].data)) for file in files)
    assert found.num_rows == 60
    by_height: Any = [("height", "ascending")]
    assert found.sort_by(by_height).equals(exports.read(series).to_table().sort_by(by_height))


@pytest.mark.parametrize("kind", STORES)
def test_fault_at_any_request_leaves_each_row_once(series: Path, kind: str) -> None:
    double = Double(kind)
    compact(series, double)
    check(series, double)
    steps = double.sent
    ends = []
    for fault in FAULTS:
        for step in range(1, steps + 1):
            double = Double(kind)
            double.begin(step, fault)
            first = outcome(partial(compact, series, double))
            double.begin()
            # The next run may have other options.
            end = outcome(partial(compact, series, double, 40))
            double.land()
            assert (first, end) != ("exists", "ended")
            check(series, double)
            ends.append(end)
    assert set(ends) == {"ended", "exists"}
    assert len(ends) == steps * len(FAULTS)


@pytest.mark.parametrize("kind", STORES)
def test_two_runs_on_one_prefix_leave_each_row_once(series: Path, kind: str) -> None:
    double = Double(kind)
    compact(series, double)
    steps = double.sent
    ends = []
    pairs = [(one, other) for one in range(steps + 1) for other in range(steps + 1)]
    # Each store has a third of the schedules.
    for one, other in [pair for pair in pairs if sum(pair) % len(STORES) == STORES.index(kind)]:
        double = Double(kind)
        double.turns = Turns(one, other, is_killed=one % 2 == 1)
        found: list[str] = []
        # The first makes more files than the second, which must not leave them.
        runs = [
            partial(lambda found, double, rows: found.append(outcome(partial(compact, series, double, rows))), *each)
            for each in ((found, double, 15), (found, double, 40))
        ]
        double.turns.run(runs)
        double.turns = None
        assert found.count("ended") <= 1
        again = [outcome(partial(compact, series, double)) for _ in range(3)]
        assert again[-1] == "exists"
        check(series, double)
        ends.append(tuple(sorted(found)))
    assert {("ended", "exists"), ("ended", "raised"), ("killed", "raised")} <= set(ends)


def test_file_of_a_superseded_run_that_was_killed_is_removed(series: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = Double()

    def beside(*arguments: Any, **options: Any) -> None:
        double.objects[f"{KEY}/part-000009-0123456789ab.parquet"] = Stored(b"of another run", '"1"', None)
        write_table(*arguments, **options)

    monkeypatch.setattr(layout, "write_table", beside)
    compact(series, double)
    check(series, double)


@pytest.mark.parametrize("kind", ["lax", "half"])
def test_store_without_conditions_is_refused_and_left_empty(series: Path, kind: str) -> None:
    double = Double(kind)
    with pytest.raises(cf.ExportError, match="the store ignores the conditions of a put"):
        compact(series, double)
    assert not double.objects


def test_prefix_with_other_objects_is_left_alone(series: Path) -> None:
    double = Double()
    double.put(f"{KEY}/day=2024-01-01/mine.parquet", b"mine")
    with pytest.raises(cf.ExportError, match=r"holds mine\.parquet; name a prefix that holds nothing"):
        compact(series, double)
    assert len(double.objects) == 1
    double = Double()
    for state in (b"[]", b"\xff", b'{"finished": 1}'):
        double.put(STATE, state)
        with pytest.raises(cf.ExportError, match="exists; name a prefix that holds nothing"):
            compact(series, double)
        assert list(double.objects) == [STATE]
