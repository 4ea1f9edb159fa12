"""The progress bar: visibility, counts and end."""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import chainframe as cf
from chainframe import progress
from chainframe.testing import LocalService
from strict_server import Response, StrictServer

WAYS: dict[str, Callable[[cf.Query[Any]], int]] = {
    "collect": lambda query: len(query.collect()),
    "collect_async": lambda query: len(asyncio.run(query.collect_async())),
    "rows": lambda query: len(list(query)),
    "pages": lambda query: sum(len(page.records) for page in query.pages()),
    "batches": lambda query: sum(len(records) for records in query.batches(7)),
    "async for": lambda query: asyncio.run(count(query)),
    "reader": lambda query: query.to_arrow_batch_reader().read_all().num_rows,
    "arrow": lambda query: pa.table(query).num_rows,
}


async def count(query: cf.Query[Any]) -> int:
    return len([record async for record in query])


def bars() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("chainframe progress")]


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_run_closes_its_bar(way: str, service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    with service.client(progress=True) as client:
        rows = WAYS[way](client.blocks(page_size=50))
    last = capsys.readouterr().err.rstrip().rpartition("\r")[2]
    assert rows == 600
    assert last.startswith("blocks: 100%")
    assert "600/600" in last
    assert "pages: 12" in last
    assert bars() == []


def test_bar_counts_pages_or_slices_without_a_total(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    with service.client(progress=True) as client:
        newest = client.transactions().first()
        assert newest is not None
        assert newest.height is not None
        capsys.readouterr()
        client.transactions().collect()
        assert " 12/12 " in (text := capsys.readouterr().err)
        assert "records: 600" in text
        client.transactions(max_items=120).collect()
        assert " 3/3 " in capsys.readouterr().err
        client.transactions(start_height=newest.height - 3, end_height=newest.height).collect()
        assert " 4/4 " in (text := capsys.readouterr().err)
        assert "blocks/s" in text


CONTINUED: list[tuple[str, dict[str, Any], str, int]] = [
    ("blocks", {"page_size": 50}, "records", 600),
    ("blocks", {"page_size": 50, "max_items": 330}, "records", 330),
    ("transactions", {"page_size": 50}, "pages", 12),
    ("transactions", {"page_size": 50, "max_items": 330}, "pages", 7),
    ("transactions", {"page_size": 50, "start_height": True}, "blocks", 12),
]


@pytest.mark.parametrize("read", [50, 120, 301])
@pytest.mark.parametrize("case", CONTINUED)
def test_bar_of_a_continued_run_starts_where_it_continues(
    service: LocalService,
    capsys: pytest.CaptureFixture[str],
    case: tuple[str, dict[str, Any], str, int],
    read: int,
) -> None:
    call, given, unit, total = case
    with service.client(progress=False) as quiet, service.client(progress=True) as client:
        if unit == "blocks":
            newest = quiet.transactions().first()
            assert newest is not None
            assert newest.height is not None
            given = {**given, "start_height": newest.height - total + 1, "end_height": newest.height}
        query = getattr(quiet, call)(**given)
        rows = query.collect()
        read = min(read, len(rows) - 1)
        stream = iter(query)
        for _ in range(read):
            next(stream)
        rest = client.resume(query.cursor).collect()
        assert len(rest) == len(rows) - read
    text = capsys.readouterr().err
    counts = [tuple(map(int, match)) for match in re.findall(r" (\d+)/(\d+) ", text)]
    assert counts[-1] == (total, total)
    assert "100%" in text.rstrip().rpartition("\r")[2]
    start = {"records": read, "pages": read // 50, "blocks": 1}[unit]
    assert min(done for done, _ in counts) >= start
    assert f" {unit}/s" in text or f"s/{unit.removesuffix('s')}" in text or "?" in text


def test_bar_shows_rate_limiting(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        LocalService(transactions=50, faults=[{"kind": "throttle", "times": 1}]) as service,
        service.client(progress=True) as client,
    ):
        client.blocks().collect()
    text = capsys.readouterr().err
    assert "retries: 1" in text
    # A throttle halves the rate of 5, which rises again with the time.
    assert re.search(r"rate-limited to [2-4]\.\d req/s", text)


def test_bar_is_not_written_to_a_log(
    service: LocalService, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0)
    with service.client() as client:
        assert len(client.blocks(page_size=9).collect()) == 600
    with service.client(progress=False) as client:
        assert len(client.blocks(page_size=9).collect()) == 600
    assert capsys.readouterr().err == ""


SCRIPT = """
import chainframe as cf
from chainframe import progress
from chainframe.testing import LocalService
with LocalService(transactions=600) as service, service.client({setting}) as client:
    client.blocks(page_size=50).collect()
    progress.SHOW_AFTER_SECONDS = 0
    client.transactions(page_size=50).collect()
    left = iter(client.tokens())
    next(left)
"""


def on_terminal(script: str, *, stdout: bool) -> bytes:
    """Return what a script draws on a terminal: what it writes to stderr, and to stdout."""
    import fcntl  # noqa: PLC0415 - Unix has it
    import pty  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    with subprocess.Popen([sys.executable, "-c", script], stderr=theirs, stdout=theirs if stdout else None) as process:
        os.close(theirs)
        text = b""
        while chunk := read(ours):
            text += chunk
        assert process.wait(60) == 0
    os.close(ours)
    assert b"Traceback" not in text
    return text


@pytest.mark.skipif(os.name == "nt", reason="Unix has terminals of this kind")
@pytest.mark.parametrize(("setting", "shown"), [("", 1), ("progress=False", 0)])
def test_terminal_shows_a_bar_for_long_runs(setting: str, shown: int) -> None:
    text = on_terminal(SCRIPT.format(setting=setting), stdout=False)
    assert text.count(b"transactions: 100%") >= shown
    assert shown or text == b""
    assert b"blocks:" not in text


LOOP = """
import sys
import chainframe as cf
from chainframe import progress
from chainframe.testing import LocalService
progress.SHOW_AFTER_SECONDS = progress.INTERVAL = 0
with LocalService(transactions=600) as service, service.client(concurrency=1) as client:
    for block in client.blocks(page_size=5):
        print(block.height)
    sys.stdout = open("/dev/null", "w")
    for page in client.transactions(page_size=5).pages():
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="Unix has terminals of this kind")
def test_loop_has_no_bar_among_its_rows() -> None:
    text = on_terminal(LOOP, stdout=True)
    assert b"blocks:" not in text
    assert b"transactions:" in text
    assert text.count(b"43") >= 600


def test_rows_may_be_shown_by_a_terminal_and_by_the_reader_of_a_pipe(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w") as out:
        assert progress.may_be_shown(out)
    assert not progress.may_be_shown(out)
    with (tmp_path / "rows.txt").open("w") as file:
        assert not progress.may_be_shown(file)
    assert not progress.may_be_shown(io.StringIO())
    assert not progress.may_be_shown(None)


class Counts:
    """A run that has delivered `records`, read a few times without any progress."""

    def __init__(self) -> None:
        self.records, self.reads, self.is_idle = 5, 0, threading.Event()

    def read(self) -> progress.State:
        self.reads += 1
        if self.reads > 5:
            self.is_idle.set()
        counts: Any = dict.fromkeys(("pages", "requests", "retries", "elapsed"), 1)
        state: progress.State = counts | {"unit": "records", "start": 0, "total": 10, "rate": None}
        state["done"] = state["records"] = self.records
        return state


@pytest.mark.parametrize("continues", [False, True])
def test_loop_has_no_bar_until_it_continues(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, continues: bool
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    run = Counts()
    bar = progress.Bar(run, "blocks", delay=0, awaits_reading=True)
    assert run.is_idle.wait(60)
    if continues:
        run.records, reads = 10, run.reads
        while run.reads < reads + 5:
            pass
    bar.close()
    assert ("blocks: " in capsys.readouterr().err) == continues


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_abandoned_or_failed_run_closes_its_bar(server: StrictServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.on("blocks", Response(b"", 503))
    with server.client(progress=True) as client:
        for way in WAYS.values():
            with pytest.raises(Exception, match="503"):
                way(client.blocks())
            assert bars() == []
    with LocalService(transactions=50) as service, service.client(progress=True) as client:
        rows = iter(client.blocks(page_size=5))
        next(rows)
        assert len(bars()) == 1
        del rows
        assert bars() == []
    assert "blocks: " in capsys.readouterr().err


def test_missing_extra_names_the_command_that_installs_it(
    service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'chainframe\[progress\]'"):
        service.client(progress=True)
    with service.client() as client:
        assert client.blocks().first() is not None


@pytest.mark.parametrize("wrong", [None, "yes", 1, 0.5])
def test_invalid_progress_setting_is_rejected(service: LocalService, wrong: Any) -> None:
    with pytest.raises(cf.ConfigError, match="progress must be"):
        service.client(progress=wrong)


def test_progress_setting_is_pickled_with_the_client(
    service: LocalService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    client = pickle.loads(pickle.dumps(service.client(progress=True)))
    client.blocks().collect()
    assert "blocks: 100%" in capsys.readouterr().err


def test_unread_reader_has_no_bar(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    with service.client(progress=True) as client:
        reader = client.tokens().to_arrow_batch_reader()
        assert len(client.blocks(page_size=50).collect()) == 600
        text = capsys.readouterr().err
        assert "blocks: 100%" in text
        assert "tokens" not in text
        reader.read_all()
    assert "tokens: 100%" in capsys.readouterr().err
