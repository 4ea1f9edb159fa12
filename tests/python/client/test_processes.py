"""Forks, threads, pools and process exit, in processes of their own."""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import methodcaller

import pytest

import chainframe as cf
from chainframe.testing import LocalService

START = """
import asyncio, os, signal, sys, threading, time
import chainframe as cf
from chainframe.testing import LocalService
service = LocalService(transactions=300)
client = service.client(rate_limit="auto")
"""


def ends(program: str, *, within: float = 120) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=within)


FORKS = """
expected = [record.tx_id for record in client.transactions()]
stop = threading.Event()


def work():
    while not stop.is_set():
        assert len(client.blocks().collect()) > 0


# The parent keeps sending requests while it forks, so that a fork happens at any moment of a request.
busy = [threading.Thread(target=work) for _ in range(3)]
for thread in busy:
    thread.start()
for _ in range(5):
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            same = [record.tx_id for record in client.transactions()] == expected
            os._exit(0 if same else 1)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert [record.tx_id for record in client.transactions()] == expected
stop.set()
for thread in busy:
    thread.join()
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forking is Unix's")
def test_forks_of_a_busy_parent_use_the_client() -> None:
    done = ends(FORKS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


HALF = """
client = service.client(rate_limit=None, concurrency=3)
expected = [record.tx_id for record in client.transactions(page_size=10)]
records = iter(client.transactions(page_size=10))
begun = [next(records).tx_id for _ in range(25)]
child = os.fork()
if child == 0:
    signal.alarm(60)
rest = [record.tx_id for record in records]
assert begun + rest == expected
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forking is Unix's")
def test_iteration_continues_in_parent_and_child() -> None:
    done = ends(HALF)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


SHARED = """
service.set_faults([{"kind": "delay", "seconds": 600}])
records = iter(client.transactions())
threading.Thread(target=next, args=(records,), daemon=True).start()
while service.request_count == 0:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        next(records)
    except cf.ContextError as error:
        os._exit(0 if "client.resume(query.cursor)" in str(error) else 1)
    os._exit(2)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forking is Unix's")
def test_forked_child_rejects_an_iterator_that_another_thread_was_reading() -> None:
    done = ends(SHARED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


STALLED = "service.set_faults([{'kind': 'delay', 'seconds': 600}])\n"
ENDS = {
    "a daemon waits": STALLED
    + """
for _ in range(4):
    threading.Thread(target=lambda: client.blocks().collect(), daemon=True).start()
time.sleep(0.3)
""",
    "a daemon iterates": STALLED
    + """
blocks = iter(client.blocks())
threading.Thread(target=next, args=(blocks,), daemon=True).start()
time.sleep(0.3)
sys.exit(0)
""",
    "a task is left": STALLED
    + """
async def main():
    task = asyncio.ensure_future(client.blocks().collect_async())
    await asyncio.sleep(0.3)
asyncio.run(main())
""",
    "a loop closes early": """
async def main():
    await asyncio.gather(client.blocks().collect_async(), client.tokens().collect_async())
    service.set_faults([{'kind': 'delay', 'seconds': 0.2}])
    waiting.append(client.blocks().__aiter__().__anext__())
    await asyncio.sleep(0.05)
waiting = []
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
time.sleep(0.6)
""",
    "logs continue": """
import logging
logging.getLogger("chainframe").addHandler(logging.FileHandler(os.devnull))
logging.getLogger("chainframe").setLevel(1)
service.set_faults([{'kind': 'status', 'status': 503}])
for _ in range(8):
    threading.Thread(target=lambda: client.blocks().collect(), daemon=True).start()
time.sleep(0.3)
""",
}


@pytest.mark.parametrize("way", ENDS)
def test_process_exits_without_output(way: str) -> None:
    for _ in range(3):
        done = ends(ENDS[way])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_pickled_client_carries_no_secrets_to_a_pool(
    service: LocalService, client: cf.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
        assert getattr(service, name).encode() not in pickle.dumps(client)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        collected = list(pool.map(methodcaller("collect"), [client.blocks()] * 4))
    assert [list(records) for records in collected] == [list(client.blocks())] * 4


def test_cancelled_request_is_aborted() -> None:
    """The service sees the connection end while it is still thinking."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(60)
            connection.recv(65_536)
            requested.set()
            if connection.recv(1) == b"":
                ended.set()

    async def run(client: cf.Client) -> None:
        task = asyncio.ensure_future(client.blocks().collect_async())
        assert await asyncio.to_thread(requested.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 60)

    requested = threading.Event()
    with LocalService(transactions=1) as service, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with service.client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", rate_limit=None) as client:
            asyncio.run(run(client))
        thread.join()
