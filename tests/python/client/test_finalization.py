"""A process that ends with requests in flight ends with its own exit code, in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

START = """
import asyncio, logging, os, sys, threading, time
import chainframe as cf
from chainframe.testing import LocalService
logging.getLogger("chainframe").addHandler(logging.FileHandler(os.devnull))
logging.getLogger("chainframe").setLevel(logging.DEBUG)
service = LocalService(transactions=300)
client = service.client(rate_limit=None)
"""
PROGRAMS = {
    "a raw loop is closed with tasks pending": """
async def main():
    global tasks
    tasks = [asyncio.ensure_future(client.transactions(page_size=1).collect_async()) for _ in range(8)]
    await asyncio.sleep(0.05)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
for task in tasks:
    task._log_destroy_pending = False
""",
    "daemon threads iterate": """
def read():
    while True:
        for _ in client.transactions(page_size=1):
            pass
for _ in range(8):
    threading.Thread(target=read, daemon=True).start()
time.sleep(0.1)
""",
    "daemon threads collect": """
def read():
    while True:
        client.transactions(page_size=1).collect()
for _ in range(8):
    threading.Thread(target=read, daemon=True).start()
time.sleep(0.1)
sys.exit(7)
""",
    "iterators are half read": """
streams = [iter(client.transactions(page_size=1)) for _ in range(8)]
for stream in streams:
    next(stream)
""",
    "an object collects in its finalizer": """
class Late:
    def __init__(self):
        self.query, self.expected, self.end = client.blocks(), cf.ContextError, os._exit
    def __del__(self):
        try:
            self.query.collect()
        except self.expected as error:
            if "shutting down" in str(error):
                self.end(7)
late = Late()
# exit(7)
""",
}
RUNS = 8


def ends(program: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", START + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_process_with_requests_in_flight_ends_with_its_own_code(name: str) -> None:
    program = PROGRAMS[name]
    code = 7 if "exit(7)" in program else 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(ends, [program] * RUNS))
    assert results == [(code, "", "")] * RUNS


ATEXIT = """
import atexit
atexit.register(lambda: print(len(client.blocks(max_items=3).collect())))
"""


def test_an_exit_function_may_collect() -> None:
    assert ends(ATEXIT) == (0, "3\n", "")


ISSUING = """
import atexit, threading
may_return = threading.Event()
# Called after the exit function of chainframe, which is registered later.
atexit.register(lambda: (may_return.set(), ended.wait(20)))
import chainframe as cf
begun, ended = threading.Event(), threading.Event()
def issue():
    begun.set()
    print(may_return.wait(5))
    ended.set()
client = cf.Client(base_url="http://127.0.0.1:1", credentials=issue)
threading.Thread(target=client.blocks().collect, daemon=True).start()
begun.wait()
"""


def test_exit_does_not_wait_for_a_callable_that_issues_credentials() -> None:
    done = subprocess.run([sys.executable, "-c", ISSUING], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
