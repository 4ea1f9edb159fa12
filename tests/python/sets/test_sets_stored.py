"""The position of an exported set as its manifest and journal store it, and the rows of one until they are stored."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import chainframe as cf
from chainframe import _native
from chainframe.exports.manifest import Manifest, _difference, local_manifest
from chainframe.exports.set_writer import SetWriter
from chainframe.sinks.contract import Position
from chainframe.sinks.taken import JOINED_EVENTS, Pending, Taken
from chainframe.testing import LocalService
from sets.test_sets import senders

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
COMMITS = 4


def killed(query: cf.Query[Any], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves an export as a process leaves it that is killed after some commits."""
    fetch = SetWriter.fetch
    fetched = 0

    def counted(writer: SetWriter) -> None:
        nonlocal fetched
        fetched += 1
        if fetched > COMMITS:
            shutil.copytree(directory.with_name("running"), directory)
            raise InterruptedError
        fetch(writer)

    monkeypatch.setattr(SetWriter, "fetch", counted)
    with pytest.raises(InterruptedError):
        query.to_parquet(directory.with_name("running"), settle=8, max_rows_per_file=1)
    monkeypatch.setattr(SetWriter, "fetch", fetch)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / Manifest.JOURNAL).read_bytes().splitlines()]


def in_earlier_form(directory: Path) -> None:
    """Writes manifest and journal as a version did that held the cursor as one object."""
    manifest = directory / Manifest.NAME
    state = json.loads(manifest.read_text())
    found = _native._split_positions(manifest.read_bytes(), "cursor")
    assert found is not None
    written = []
    position = found[1]
    cursor: dict[str, Any] = {}
    for line in (directory / Manifest.JOURNAL).read_bytes().splitlines():
        change = _native._split_positions(line, "cursor")
        assert change is not None
        position = position.merged(change[1])
        after = json.loads(position.to_json())
        written.append(json.dumps({**json.loads(line), "cursor": _difference(cursor, after)}))
        cursor = after
    manifest.write_text(json.dumps({**state, "cursor": None}, indent=1))
    (directory / Manifest.JOURNAL).write_text("".join(f"{line}\n" for line in written))


@pytest.mark.parametrize("is_earlier", [False, True])
def test_export_of_a_set_that_was_killed_continues_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_earlier: bool
) -> None:
    with LocalService(transactions=500, seed=44) as service:
        query = service.client().address_transactions(senders(service, 12))
        begun = service.request_count
        whole = Counter(row["tx_id"] for row in query.to_parquet(tmp_path / "whole", settle=8).to_arrow().to_pylist())
        requests = service.request_count - begun
        killed(query, tmp_path / "export", monkeypatch)
        moved = [len(line["cursor"]["position"]["set"]["lists"]) for line in lines(tmp_path / "export")]
        assert moved == [1] * COMMITS
        if is_earlier:
            in_earlier_form(tmp_path / "export")
        before = local_manifest(tmp_path / "export")
        assert before is not None
        sent = service.request_count
        export = query.to_parquet(tmp_path / "export", settle=8)
        # The lists that were read take one request each.
        assert service.request_count - sent < requests
        assert Counter(row["tx_id"] for row in export.to_arrow().to_pylist()) == whole
        assert sum(part.rows for part in before.parts) == before.rows
        assert len(export.parts) > len(before.parts) >= COMMITS


def test_manifest_of_a_set_is_the_text_that_json_writes(tmp_path: Path) -> None:
    with LocalService(transactions=300, seed=44) as service:
        export = service.client().address_transactions(senders(service, 3)).to_parquet(tmp_path / "a", settle=8)
    assert export.manifest is not None
    state = json.loads(export.manifest.read_text())
    members = [json.dumps({name: value})[1:-1] for name, value in state.items()]
    assert export.manifest.read_text() == "{\n" + ",\n".join(members) + "\n}"


@pytest.mark.parametrize("edit", ["follow", "checksum"])
def test_position_of_a_set_that_cannot_be_read_is_refused_when_it_is_needed(tmp_path: Path, edit: str) -> None:
    with LocalService(transactions=300, seed=44) as service:
        query = service.client().address_transactions(senders(service, 3))
        export = query.to_parquet(tmp_path / "a", settle=8)
        assert export.manifest is not None
        state = json.loads(export.manifest.read_text())
        state["cursor"][edit] = 9 if edit == "follow" else "00000000"
        export.manifest.write_text(json.dumps(state))
        sent = service.request_count
        assert query.to_parquet(tmp_path / "a", settle=8).rows == export.rows
        with pytest.raises(cf.ExportError, match=r"its cursor (has unsupp|is corrupted)"):
            query.to_parquet(tmp_path / "b", settle=8, since=tmp_path / "a")
        assert service.request_count == sent


def test_file_of_a_set_ends_by_the_simulated_age_of_its_rows(tmp_path: Path) -> None:
    with LocalService(transactions=300, seed=44, simulated=True) as service:
        values = senders(service, 6)
        # Ten seconds pass between two requests.
        export = service.client(rate_limit=0.1).address_transactions(values).to_parquet(tmp_path / "a", settle=8)
    assert len(export.parts) > 1
    assert export.rows == len(export.to_arrow())


def test_rows_of_many_events_that_are_joined_keep_their_order_and_cursors() -> None:
    pending = Pending()
    heights = list(range(2 * JOINED_EVENTS + 5))
    for height in heights:
        pending.taken.append(Taken(str(height), height, pa.table({"height": [height]}), argument=f"0x{height}"))
        pending.join()
    assert sum(taken.rows is not None for taken in pending.taken) == 2 + 5
    assert pending.rows == len(heights)
    assert [taken.cursor for taken in pending.taken] == list(map(str, heights))
    rows = pending.change(None, Position("", None, 0, "")).rows
    assert rows is not None
    assert rows["height"].to_pylist() == heights
