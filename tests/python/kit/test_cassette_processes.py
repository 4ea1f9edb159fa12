"""Cassettes in threads, forked children, pickled clients and several processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService
from conftest import environment
from recorded import lines, replaying

pytestmark = pytest.mark.usefixtures("no_settings")


def test_threads_and_tasks_share_a_cassette(service: LocalService, path: Path) -> None:
    async def ask(client: cf.Client) -> list[int]:
        heights = [client.blocks(height=4_300_000 + number).collect_async() for number in range(10)]
        return [len(records) for records in await asyncio.gather(*heights)]

    def in_threads(client: cf.Client) -> list[int]:
        counts: dict[int, int] = {}

        def one(number: int) -> None:
            counts[number] = len(client.blocks(height=4_300_000 + number).collect())

        threads = [threading.Thread(target=one, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [counts[number] for number in range(10)]

    with service.client(cassette=Cassette(path)) as client:
        recorded = in_threads(client) + asyncio.run(ask(client))
    assert recorded == [1] * 20
    with replaying(path) as client:
        assert asyncio.run(ask(client)) + in_threads(client) == recorded


def ask_in_child(client: cf.Client, pipe: Any) -> None:
    pipe.send(len(client.blocks(max_items=150).collect()))


@pytest.mark.parametrize("mode", ["none", "new_episodes"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_replays(service: LocalService, path: Path, mode: Any) -> None:
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(max_items=150).collect()
    before = service.request_count
    with service.client(cassette=Cassette(path, mode=mode)) as client:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=ask_in_child, args=(client, there))
        child.start()
        assert here.poll(60)
        assert here.recv() == 150
        child.join(60)
        assert len(client.blocks(max_items=150).collect()) == 150
    assert service.request_count == before


def test_a_client_pickles_with_its_cassette(service: LocalService, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(height=1).collect()
        with pickle.loads(pickle.dumps(client)) as other:
            assert other == client
            other.blocks(height=2).collect()
    assert len(lines(path)) == 2
    with pickle.loads(pickle.dumps(replaying(path))) as other:
        other.blocks(height=2).collect()


SCRIPT = """
import sys
import chainframe as cf

with cf.Client() as client:
    for height in sys.argv[1:]:
        print(len(client.blocks(height=int(height)).collect()))
"""


def run(settings: dict[str, str], *heights: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, *map(str, heights)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=settings, stdout=pipe, stderr=pipe, text=True)


def output(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.split()


def test_environment_variable_names_the_cassette_of_a_process(service: LocalService, path: Path) -> None:
    settings = {
        "CHAINFRAME_BASE_URL": service.url,
        "CHAINFRAME_API_KEY": service.api_key,
        "CHAINFRAME_SECRET_KEY": service.secret_key,
        "CHAINFRAME_PASSPHRASE": service.passphrase,
    }
    cassette = {"CHAINFRAME_CASSETTE": str(path)}
    assert output(run({**settings, **cassette}, 4_300_001, 4_300_002)) == ["1", "1"]
    before = service.request_count
    assert output(run(cassette, 4_300_002, 4_300_001)) == ["1", "1"]
    assert output(run({**cassette, "CHAINFRAME_CASSETTE_MODE": "none"}, 4_300_002)) == ["1"]
    assert service.request_count == before
    wrong = run({**cassette, "CHAINFRAME_CASSETTE_MODE": "twice"}, 1)
    assert "CassetteError: CHAINFRAME_CASSETTE_MODE" in wrong.communicate(timeout=60)[1]


@pytest.mark.parametrize("mode", ["new_episodes", "all"])
def test_processes_record_into_one_file(service: LocalService, path: Path, mode: str) -> None:
    settings = {
        "CHAINFRAME_BASE_URL": service.url,
        "CHAINFRAME_API_KEY": service.api_key,
        "CHAINFRAME_SECRET_KEY": service.secret_key,
        "CHAINFRAME_PASSPHRASE": service.passphrase,
        "CHAINFRAME_CASSETTE": str(path),
        "CHAINFRAME_CASSETTE_MODE": mode,
    }
    ranges = [range(4_300_000, 4_300_020), range(4_300_020, 4_300_040)]
    for process in [run(settings, *heights) for heights in ranges]:
        assert output(process) == ["1"] * 20
    assert sorted(int(line["params"]["height"]) for line in lines(path)) == [*range(4_300_000, 4_300_040)]


def test_clients_of_one_process_share_the_cassette_of_the_environment(
    service: LocalService, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CHAINFRAME_CASSETTE", str(path))
    for height in (1, 2):
        with cf.Client() as client:
            client.blocks(height=height).collect()
    assert len(lines(path)) == 2
    with service.client(cassette=Cassette(path.with_name("two.jsonl"))) as client:
        client.blocks(height=3).collect()
    assert len(lines(path)) == 2


THREADS = """
import sys, threading
import chainframe as cf

sys.setswitchinterval(1e-6)


def work():
    for _ in range(200):
        try:
            cf.Client()
        except cf.CassetteError:
            pass


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""


def test_a_broken_cassette_of_the_environment_locks_no_thread_out(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("{broken\n", encoding="utf-8")
    variables = {**os.environ, "CHAINFRAME_CASSETTE": str(path)}
    command = [sys.executable, "-c", THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
