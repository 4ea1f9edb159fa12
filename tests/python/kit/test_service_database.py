"""The database file of the local service: shared by several services, and never changed under one of them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import chainframe as cf
from chainframe.testing import LocalService

CREATE = """
import sys
from chainframe.testing import LocalService

with LocalService(transactions=2_000, db=sys.argv[1]) as service, service.client() as client:
    print(len(client.blocks(max_items=50).collect()), flush=True)
    sys.stdin.read()
"""


def test_processes_create_one_file_together(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATE, str(tmp_path / "chain.sqlite")]
    pipe = subprocess.PIPE
    creators = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for creator in creators:
        assert creator.stdout is not None
        assert creator.stdout.readline() == "50\n"
    for creator in creators:
        assert creator.communicate(timeout=60) == ("", "")


def test_chain_in_use_is_not_replaced(tmp_path: Path) -> None:
    db = tmp_path / "chain.sqlite"
    with LocalService(transactions=30, db=db) as service, service.client() as client:
        for other in ({"transactions": 10}, {"transactions": 30, "seed": 8}):
            with pytest.raises(cf.ConfigError, match=r"^db \(.*chain\.sqlite\) is in use by a service with other"):
                LocalService(db=db, **other)  # type: ignore[arg-type]
        assert len(client.blocks().collect()) == 30
    with LocalService(transactions=10, db=db) as service, service.client() as client:
        assert len(client.blocks().collect()) == 10


def test_data_loaded_by_one_service_is_served_by_another(tmp_path: Path) -> None:
    db = tmp_path / "chain.sqlite"
    with (
        LocalService(transactions=30, db=db) as one,
        LocalService(transactions=30, db=db) as two,
        one.client() as first,
        two.client() as second,
    ):
        assert len(second.blocks().collect()) == 30
        one.load("blocks", [cf.Block(height=5)])
        two.load("tokens", [cf.Token(token="A")])
        for client in (first, second):
            assert list(client.blocks()) == [cf.Block(height=5)]
            assert list(client.tokens()) == [cf.Token(token="A")]


def test_services_grow_one_chain(tmp_path: Path) -> None:
    db = tmp_path / "chain.sqlite"

    def read(service: LocalService) -> None:
        with service.client(max_retries=0, rate_limit=None) as client:
            for _ in range(30):
                client.blocks(max_items=1).collect()

    with LocalService(transactions=30, growth=1, db=db) as one, LocalService(transactions=30, growth=1, db=db) as two:
        with ThreadPoolExecutor() as pool:
            list(pool.map(read, [one, two]))
        for service in (one, two):
            service.growth = 0
        with one.client() as client:
            heights = [block.height or 0 for block in client.blocks()]
    assert len(heights) == len(set(heights)) == 90
    assert heights == sorted(heights, reverse=True)


FULL = """
import resource
import chainframe as cf
from chainframe.testing import LocalService

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
with LocalService(transactions=0, db="loaded.sqlite") as service:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
    for call in (
        lambda: service.load("blocks", [{"height": height} for height in range(100_000)]),
        lambda: LocalService(transactions=2_000, db="filled.sqlite"),
    ):
        try:
            call()
        except cf.ConfigError as error:
            print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are Unix's")
def test_file_on_a_full_disk_is_named(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    advice = "name a file that can be written, on a disk with space"
    names = ["loaded", "filled"]
    assert done.stdout.splitlines() == [
        f"db ({name}.sqlite) cannot be used: disk I/O error; {advice}" for name in names
    ]


@pytest.mark.parametrize("simulated", [False, True])
def test_file_without_a_place_for_a_journal_is_named(tmp_path: Path, *, simulated: bool) -> None:
    # The name of the journal beside it is too long.
    db = tmp_path / ("d" * 250)
    with pytest.raises(cf.ConfigError, match=r"^db \(.*d{250}\) cannot be used: .*; name a file that can be written"):
        LocalService(transactions=10, db=db, simulated=simulated)


def test_damaged_file_is_named(tmp_path: Path) -> None:
    db = tmp_path / "chain.sqlite"
    LocalService(transactions=500, db=db).close()
    content = bytearray(db.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    db.write_bytes(content)
    with pytest.raises(cf.ConfigError, match=r"^db \(.*chain\.sqlite\) is damaged: .*; delete it$"):
        LocalService(transactions=500, db=db)
