"""`with Cassette(...)`: clients that are made within the block use the cassette."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService


@pytest.fixture(autouse=True)
def settings(
    no_settings: None,  # noqa: ARG001 - before these
    service: LocalService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)


def heights(cassette: Cassette | None = None) -> list[int | None]:
    with cf.Client(cassette=cassette) as client:
        return [block.height for block in client.blocks(max_items=2)]


def test_clients_of_the_block_record_and_replay(service: LocalService, path: Path) -> None:
    before = dict(os.environ)
    with Cassette(path) as cassette:
        recorded = heights()
        assert len(cassette) > 0
    assert dict(os.environ) == before
    requests = service.request_count
    with Cassette(path) as cassette:
        assert heights() == recorded
        assert cassette.all_played
    assert service.request_count == requests
    # Clients that are made later send their requests.
    heights()
    assert service.request_count > requests


def test_client_with_another_cassette_keeps_it(path: Path, tmp_path: Path) -> None:
    other = Cassette(tmp_path / "other.jsonl")
    with Cassette(path) as cassette:
        heights(other)
        assert len(cassette) == 0
    assert len(other) > 0


def test_blocks_are_nested(path: Path, tmp_path: Path) -> None:
    with Cassette(path) as outer:
        with Cassette(tmp_path / "inner.jsonl") as inner:
            heights()
        assert (len(inner) > 0, len(outer)) == (True, 0)
        heights()
        assert len(outer) > 0


def test_block_ends_with_an_exception(path: Path) -> None:
    with pytest.raises(cf.CassetteMissError), Cassette(path, mode="none"):
        heights()
    assert "CHAINFRAME_CASSETTE" not in os.environ


@pytest.mark.parametrize("mode", ["once", "all", "rewrite"])
def test_recordings_that_were_replaced_are_gone_after_the_block(path: Path, mode: Any) -> None:
    count = 0
    for _ in range(2):
        with Cassette(path, mode=mode) as cassette:
            heights()
            count = len(cassette)
    assert len(Cassette(path, mode="none")) == count


PROGRAM = "import chainframe as cf; print([block.height for block in cf.Client().blocks(max_items=2)])"


def test_processes_that_are_started_in_the_block_use_the_cassette(service: LocalService, path: Path) -> None:
    def run() -> str:
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Cassette(path):
        first = run()
    requests = service.request_count
    with Cassette(path, allow_playback_repeats=True) as cassette:
        assert run() == run() == first == f"{heights()}\n"
        assert not cassette.missed
    assert service.request_count == requests
