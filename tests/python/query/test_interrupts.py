"""Ctrl-C in a process of its own: the interrupt is raised and the process stays usable."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import pytest

import chainframe as cf
from conftest import needs_extra

# Code that reaches each place; `service` is a `LocalService` with 2,000 transactions and `client` its client.
PLACES = {
    "headers": "service.set_faults([STALL]); client.transactions().collect()",
    "iteration": "service.set_faults([STALL]); list(client.transactions())",
    "first": "service.set_faults([STALL]); client.transactions().first()",
    "body": "service.set_faults([{'kind': 'slow_body', 'seconds': 600}]); client.transactions().collect()",
    "back-off": "service.set_faults([{'kind': 'throttle', 'retry_after': 600}]); client.transactions().collect()",
    "limiter": "slow = service.client(rate_limit=0.001); slow.blocks().first(); slow.blocks().first()",
    "connect": "service.client(base_url=full(), rate_limit=None).transactions().collect()",
    "tls": "service.client(base_url=deaf('https'), rate_limit=None).transactions().collect()",
    "frame": "service.set_faults([STALL]); client.transactions().to_pandas()",
    "reader": "service.set_faults([STALL]); client.transactions().to_arrow_batch_reader().read_all()",
    "arrow": "service.set_faults([STALL]); pyarrow.RecordBatchReader.from_stream(client.transactions()).read_all()",
    "duckdb": "service.set_faults([STALL]); query = client.transactions(); duckdb.sql('from query').fetchall()",
    "duckdb's threads": "service.set_faults([STALL]); query = client.transactions(); duckdb.sql(TABLE)",
    "polars": "service.set_faults([STALL]); polars.DataFrame(client.transactions())",
}
# The libraries that a place needs, which are imported before the interrupt.
LIBRARIES = {
    "frame": ["pandas", "pyarrow"],
    "reader": ["pyarrow"],
    "arrow": ["pyarrow"],
    "duckdb": ["duckdb"],
    "duckdb's threads": ["duckdb"],
    "polars": ["polars"],
}
PROGRAM = """
import importlib, itertools, json, os, random, signal, socket, sys, threading, time
import chainframe as cf
from chainframe.testing import LocalService

for library in sys.argv[3:]:
    globals()[library] = importlib.import_module(library)

STALL = {"kind": "delay", "seconds": 600}
TABLE = "create table flows as select * from query"
held = []


def deaf(scheme):
    held.append(socket.create_server(("127.0.0.1", 0)))
    return f"{scheme}://127.0.0.1:{held[-1].getsockname()[1]}"


def full():
    url = deaf("http")
    held[-1].listen(0)
    for _ in range(4):
        held.append(socket.socket())
        held[-1].setblocking(False)
        held[-1].connect_ex(("127.0.0.1", int(url.rpartition(":")[2])))
    return url


sent = 0.0


def interrupt():
    global sent
    time.sleep(float(sys.argv[2]))
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)


service = LocalService(transactions=2_000)
client = service.client(rate_limit=None, timeout=600, deadline=None)
expected = len(client.transactions().collect())
threading.Thread(target=interrupt, daemon=True).start()
caught = None
try:
    try:
        exec(compile(sys.argv[1], "place", "exec"))
        time.sleep(60)
    except BaseException as error:
        caught, took = error, time.monotonic() - sent
    # A library may report the failure of its threads before Python raises the interrupt.
    time.sleep(0.2)
except KeyboardInterrupt as error:
    caught, took = error, time.monotonic() - sent
service.set_faults([])
again = client.transactions().collect()
again = len(again) == expected == 2_000
print(json.dumps({"caught": f"{type(caught).__name__} {caught}", "took": took, "again": again}))
"""


def interrupted(place: str, delay: float, libraries: Sequence[str] = ()) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, place, str(delay), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    # Before version 2, polars prints every error of a stream.
    assert not done.stderr or ("polars" in place and int(metadata.version("polars").partition(".")[0]) < 2)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=needs_extra) if place in LIBRARIES else place for place in PLACES]
)
def test_interrupt_is_raised_in_every_blocking_call(place: str) -> None:
    result = interrupted(PLACES[place], 0.5, LIBRARIES.get(place, ()))
    # An Arrow library keeps only the message of an error, or raises an error of its own.
    assert re.search("KeyboardInterrupt|Query interrupted", result["caught"])
    # Ten times what is promised.
    assert result["took"] < 3
    assert result["again"]


MANY = """
# Longer ones follow where a slow machine has finished no page.
delays = itertools.chain(sorted(random.Random(5).uniform(0.0, 0.2) for _ in range(10)), itertools.count(0.4, 0.2))
service.set_faults([{"kind": "delay", "seconds": 0.02}])
signal.signal(signal.SIGINT, signal.default_int_handler)
whole = [record.tx_id for record in client.transactions()]


def interrupt(delay):
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGINT)


finished = 0
for number, delay in enumerate(delays):
    if number >= 10 and finished:
        break
    query = client.transactions(page_size=20)
    interrupter = threading.Thread(target=interrupt, args=(delay,))
    interrupter.start()
    try:
        query.collect()
        interrupter.join()
        time.sleep(10)
    except KeyboardInterrupt:
        pass
    kept = [record.tx_id for record in query.partial]
    assert kept == whole[: len(kept)] and len(kept) % 20 == 0, len(kept)
    finished += len(kept)
raise KeyboardInterrupt
"""


def test_interrupts_at_random_moments_lose_no_finished_page() -> None:
    # The first, which the program itself sends, would come too late to matter.
    result = interrupted(MANY, 1_000)
    # Anything else would be an error of the program, such as a record that is lost.
    assert result["caught"].startswith("KeyboardInterrupt")
    assert result["again"]


def test_interrupt_during_a_log_call_is_not_lost(client: cf.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(logging.getLogger("chainframe"), "getEffectiveLevel", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.blocks().collect()
        with pytest.raises(KeyboardInterrupt):
            next(iter(client.blocks()))
    assert len(client.blocks().collect()) > 0
