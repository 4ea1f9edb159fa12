"""Exports that are killed between two files: what was stored as pieces is not fetched again."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.exports.pieces import PieceFile, _tables
from chainframe.testing import LocalService
from conftest import needs_extra
from exports.test_exports_killed import STEPS, assert_tidy, die_at, ended, hashes, in_a_child
from sets.test_sets import PAGE, Wallets
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    needs_extra,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

PIECES = 3
IN_FLIGHT = 2
# Pages in flight, and those that have arrived and wait for one of these.
AHEAD = 3 * IN_FLIGHT
PAGE_SIZE = 2


def export(service: LocalService, directory: Path, **options: Any) -> cf.Report:
    with service.client(concurrency=IN_FLIGHT, rate_limit=None) as client:
        return client.blocks(page_size=PAGE_SIZE, max_items=120).to_parquet(directory, **options).report


def killed_after_pieces(count: int, write: Callable[[], object]) -> None:
    """Run an export in a child process that is killed once it has stored this many pieces."""

    def work() -> None:
        add = PieceFile.add
        left = count

        def counted(self: PieceFile, *arguments: Any) -> None:
            nonlocal left
            add(self, *arguments)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        PieceFile.add = counted  # type: ignore[method-assign,assignment]
        write()

    assert ended(in_a_child(work)) == signal.SIGKILL


@pytest.fixture(scope="module")
def killed(service: LocalService, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("killed")
    killed_after_pieces(PIECES, lambda: export(service, directory))
    return directory


@pytest.fixture(scope="module")
def expected(service: LocalService) -> list[Any]:
    with service.client() as client:
        return [block.hash for block in client.blocks(max_items=120)]


def copied(killed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(killed, tmp_path / "copy")


def test_killed_export_continues_after_its_last_piece(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path
) -> None:
    before = service.request_count
    export(service, tmp_path / "whole")
    whole = service.request_count - before
    directory = copied(killed, tmp_path)
    before = service.request_count
    report = export(service, directory)
    sent = service.request_count - before
    assert hashes(directory) == expected
    assert report.records == len(expected)
    assert_tidy(directory)
    # A piece has the pages that had arrived after 8 more requests. The continued run finds its position again.
    stored = sum(table.num_rows for table in _tables((killed / PieceFile.NAME).read_bytes())) // PAGE_SIZE
    assert PIECES * 8 - AHEAD <= stored < whole
    assert sent <= whole - stored + 2
    assert report.requests <= whole + AHEAD + 2


def test_piece_that_was_cut_short_is_fetched_again(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path
) -> None:
    size = (killed / PieceFile.NAME).stat().st_size
    for cut in (1, size // 7, size // 2, size - 1, size):
        directory = copied(killed, tmp_path / str(cut))
        os.truncate(directory / PieceFile.NAME, size - cut)
        export(service, directory)
        assert hashes(directory) == expected
        assert_tidy(directory)


def test_piece_with_other_bytes_is_fetched_again(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path
) -> None:
    content = (killed / PieceFile.NAME).read_bytes()
    for place in (3, len(content) // 3, len(content) - 30):
        directory = copied(killed, tmp_path / str(place))
        changed = bytes([*content[:place], content[place] ^ 1, *content[place + 1 :]])
        (directory / PieceFile.NAME).write_bytes(changed)
        export(service, directory)
        assert hashes(directory) == expected


def piece(state: bytes, rows: bytes) -> bytes:
    head = json.dumps([len(state), len(rows), hashlib.sha256(state + rows).hexdigest()])
    return head.encode() + b"\n" + state + rows


@pytest.mark.parametrize("member", ["verdicts", "request", "revision", "watermark", "cursor", "report", "settled"])
def test_pieces_that_another_version_wrote_are_fetched_again(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path, member: str
) -> None:
    directory = copied(killed, tmp_path)
    with (killed / PieceFile.NAME).open("rb") as file:
        sizes = json.loads(file.readline())
        state, rows = json.loads(file.read(sizes[0])), file.read(sizes[1])
    assert member in state
    values = [{member: value} for value in (None, 7, "text", [3], {"argument": 4})]
    for other in (*({**state, **value} for value in values), {name: state[name] for name in state if name != member}):
        (directory / PieceFile.NAME).write_bytes(piece(json.dumps(other).encode(), rows))
        export(service, directory)
        assert hashes(directory) == expected
    (directory / PieceFile.NAME).write_bytes(piece(json.dumps(state).encode(), b"no rows"))
    export(service, directory)


def test_pieces_before_the_last_part_are_ignored(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path
) -> None:
    """A process that is killed between a commit and the removal of the pieces leaves both."""
    directory = copied(killed, tmp_path)
    killed_after_pieces(1, lambda: export(service, directory))
    shutil.copy(killed / PieceFile.NAME, directory / PieceFile.NAME)
    export(service, directory)
    assert hashes(directory) == expected
    assert_tidy(directory)


def test_pieces_of_another_request_are_ignored(service: LocalService, killed: Path, tmp_path: Path) -> None:
    directory = copied(killed, tmp_path)
    (directory / "_manifest.json").unlink()
    with service.client() as client:
        client.blocks(max_items=5, page_size=2).to_parquet(directory)
    assert len(hashes(directory)) == 5
    assert_tidy(directory)


def test_pieces_of_a_request_in_whose_place_is_another_are_ignored(
    service: LocalService, killed: Path, expected: list[Any], tmp_path: Path
) -> None:
    directory = copied(killed, tmp_path)
    manifest = directory / "_manifest.json"
    manifest.write_text(manifest.read_text().replace('"max_items": 120', '"max_items": 110'))
    with service.client() as client:
        client.blocks(page_size=2, max_items=110).to_parquet(directory)
    assert hashes(directory) == expected[:110]


@pytest.mark.parametrize("times", [1, 2])
def test_export_whose_piece_cannot_be_stored_keeps_its_rows(
    service: LocalService, expected: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    add = PieceFile.add
    calls = given = 0

    def full(self: PieceFile, *arguments: Any) -> None:
        nonlocal calls, given
        calls += 1
        given += arguments[-1].num_rows
        if calls >= times:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PieceFile, "add", full)
        with pytest.raises(cf.ExportError, match="No space left"):
            export(service, tmp_path)
    # A piece is due after a number of requests, of which some may wait for a response: their rows are counted.
    assert calls == times
    assert given >= times
    assert len(hashes(tmp_path)) >= given
    assert_tidy(tmp_path)
    export(service, tmp_path)
    assert hashes(tmp_path) == expected


def test_part_is_not_written_from_pieces_that_were_changed(
    service: LocalService, expected: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = PieceFile.add

    def cut(self: PieceFile, *arguments: Any) -> None:
        add(self, *arguments)
        os.truncate(tmp_path / PieceFile.NAME, 500)

    with monkeypatch.context() as patch:
        patch.setattr(PieceFile, "add", cut)
        with pytest.raises(cf.ExportError, match="is damaged"):
            export(service, tmp_path)
    export(service, tmp_path)
    assert hashes(tmp_path) == expected


@pytest.mark.parametrize("mode", ["overwrite", "resume"])
def test_pieces_of_an_export_that_is_replaced_are_removed(
    service: LocalService, killed: Path, tmp_path: Path, mode: Any
) -> None:
    directory = copied(killed, tmp_path)
    with service.client() as client:
        query = client.blocks(max_items=5)
        if mode == "resume":
            with pytest.raises(cf.ExportError, match="another query"):
                query.to_parquet(directory)
        else:
            assert query.to_parquet(directory, mode="overwrite").rows == 5
            assert_tidy(directory)


def test_export_in_pieces_killed_at_any_step_is_complete_after_the_next_run(
    service: LocalService, expected: list[Any], tmp_path: Path
) -> None:
    def dying(directory: Path, step: int) -> Callable[[], None]:
        def work() -> None:
            die_at(step)
            export(service, directory, max_rows_per_file=60)

        return work

    STEPS.append((PieceFile, "add"))
    try:
        step = 0
        for step in range(1, 1_000):
            directory = tmp_path / str(step)
            if ended(in_a_child(dying(directory, step))) == 0:
                break
            export(service, directory, max_rows_per_file=60)
            assert hashes(directory) == expected
            assert_tidy(directory)
    finally:
        STEPS.pop()
    assert step > 30


@pytest.mark.parametrize("settle", [None, 2])
@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_killed_export_of_a_set_has_the_verdicts_of_one_that_was_not(
    server: StrictServer, tmp_path: Path, settle: int | None
) -> None:
    lengths = [0, 1, 2, 3, 2, 1, 7, 0, 2, 3] * 4
    wallets = Wallets(lengths, frozenset({3, 30}))
    server.on("address_transactions", wallets)
    newest = {"txid": "0x1", "height": "100", "blockHash": "0xb", "transactionTime": "1700000000100"}
    server.on("transactions", lambda _: page_of("transactions", [newest], totalPage="1"))

    def write(directory: Path) -> cf.Report:
        query = server.client(concurrency=IN_FLIGHT).address_transactions(wallets.names, page_size=PAGE)
        return query.to_parquet(directory, settle=settle).report

    def outcomes(report: cf.Report) -> dict[str, Any]:
        verdicts = report.by_argument
        return {name: (verdicts[name]["records"], verdicts[name]["error"]) for name in sorted(verdicts)}

    expected = write(tmp_path / "whole")
    killed_after_pieces(PIECES, lambda: write(tmp_path / "killed"))
    sent = len(server.requests)
    report = write(tmp_path / "killed")
    sent = len(server.requests) - sent
    assert outcomes(report) == outcomes(expected)
    assert report.records == expected.records
    # Those of the killed run are in the report, up to its last piece.
    assert report.requests - sent >= (PIECES - 1) * 8
