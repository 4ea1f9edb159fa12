"""A cassette on a disk that is full."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from chainframe.testing import Cassette, LocalService

if TYPE_CHECKING:
    from pathlib import Path

RECORDED_ON_A_FULL_DISK = """
import resource, signal, sys
import chainframe as cf
from chainframe.testing import Cassette, LocalService

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with LocalService(transactions=300, seed=3) as service:
    with service.client(cassette=Cassette(sys.argv[1], mode="new_episodes")) as client:
        client.tokens(max_items=1).collect()
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
        try:
            client.blocks(max_items=300).collect()
        except cf.CassetteError as error:
            print(error.errno)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of files")
@pytest.mark.parametrize("limit", [3_000, 8_000])
def test_recording_that_a_full_disk_interrupted_is_continued(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "c.jsonl"
    command = [sys.executable, "-c", RECORDED_ON_A_FULL_DISK, str(path), str(limit)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "27\n", result.stderr
    assert path.read_bytes().endswith(b"}\n")
    cassette = Cassette(path, mode="new_episodes")
    with LocalService(transactions=300, seed=3) as service, service.client(cassette=cassette) as client:
        assert len(client.blocks(max_items=300).collect()) == 300
