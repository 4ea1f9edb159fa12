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


def test_damaged_file_is_named(tmp_path: Path) -> None:
    db = tmp_path / "chain.sqlite"
    LocalService(transactions=500, db=db).close()
    content = bytearray(db.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)
    db.write_bytes(content)
    with pytest.raises(cf.ConfigError, match=r"^db \(.*chain\.sqlite\) is damaged: .*; delete it$"):
        LocalService(transactions=500, db=db)
