"""An export that is interrupted, terminated, cancelled or timed out at random moments keeps all but pages in flight."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.exports.store import saved_rows
from chainframe.exports.writer import ParquetWriter
from chainframe.testing import LocalService

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

MOMENTS = int(os.environ.get("CHAINFRAME_TEST_MOMENTS", "6"))
Recorder: TypeAlias = Callable[[str, object], None]
PAGE, CONCURRENCY, ROWS_PER_FILE = 10, 4, 150
# Pages in flight, and those that have arrived and wait for one of these.
AHEAD = 3 * CONCURRENCY


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalService]:
    with LocalService(transactions=2_000) as service:
        yield service


@pytest.fixture(scope="module")
def expected(chain: LocalService) -> list[Any]:
    with chain.client() as client:
        return [block.hash for block in client.blocks()]


def query_of(service: LocalService) -> cf.Query[cf.Block]:
    return service.client(rate_limit=None, concurrency=CONCURRENCY).blocks(page_size=PAGE)


def sync(query: cf.Query[cf.Block], directory: Path, requests: int) -> None:
    del requests
    query.to_parquet(directory, max_rows_per_file=ROWS_PER_FILE)


def awaited(query: cf.Query[cf.Block], directory: Path, requests: int) -> None:
    del requests
    asyncio.run(query.to_parquet_async(directory, max_rows_per_file=ROWS_PER_FILE))


def after(query: cf.Query[cf.Block], requests: int, call: Callable[[], object]) -> None:
    """Calls in the running loop, once the query has sent that many requests."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while query.report.requests < requests:
            time.sleep(0.001)
        # A loop that has ended raises.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(call)

    threading.Thread(target=watch, daemon=True).start()


def cancelled(query: cf.Query[cf.Block], directory: Path, requests: int) -> None:
    async def run() -> None:
        task = asyncio.ensure_future(query.to_parquet_async(directory, max_rows_per_file=ROWS_PER_FILE))
        after(query, requests, task.cancel)
        await asyncio.wait([task])

    asyncio.run(run())


def timed_out(query: cf.Query[cf.Block], directory: Path, requests: int) -> None:
    async def run() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as timeout:
                after(query, requests, lambda: timeout.reschedule(0))
                await query.to_parquet_async(directory, max_rows_per_file=ROWS_PER_FILE)

    asyncio.run(run())


def in_a_child(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = work()
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    return child


def wait_for(service: LocalService, count: int, child: int) -> None:
    """Waits until the service has got that many requests, or the child has ended."""
    while service.request_count < count:
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            return
        time.sleep(0.0005)


WAYS: dict[str, tuple[Callable[[cf.Query[cf.Block], Path, int], None], int | None]] = {
    "SIGINT": (sync, signal.SIGINT),
    "SIGTERM": (sync, signal.SIGTERM),
    "SIGINT awaited": (awaited, signal.SIGINT),
    "SIGTERM awaited": (awaited, signal.SIGTERM),
    "cancel": (cancelled, None),
    "timeout": (timed_out, None),
}


@pytest.mark.parametrize("way", WAYS)
def test_export_keeps_all_but_pages_in_flight(
    chain: LocalService, expected: list[Any], tmp_path: Path, way: str, record_property: Recorder
) -> None:
    export, number = WAYS[way]
    chance = random.Random(way)
    interrupted = 0
    for moment in range(MOMENTS):
        directory, records = tmp_path / f"{moment}", tmp_path / f"{moment}.json"
        requests = chance.randrange(1, len(expected) // PAGE)

        def work(directory: Path = directory, records: Path = records, requests: int = requests) -> int:
            query = query_of(chain)
            try:
                export(query, directory, requests)
            finally:
                records.write_text(str(query.report.records))
            return 0

        before = chain.request_count
        child = in_a_child(work)
        if number is not None:
            wait_for(chain, before + requests, child)
            time.sleep(chance.uniform(0, 0.01))
            with suppress(ProcessLookupError):
                os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in ({0, 130} if number != signal.SIGTERM else {0, -signal.SIGTERM})
        kept, fetched = saved_rows(directory), chain.request_count - before
        if records.exists():
            assert kept == int(records.read_text())
        assert kept >= min((fetched - AHEAD - 1) * PAGE, len(expected))
        interrupted += 0 < kept < len(expected)
        before = chain.request_count
        result = query_of(chain).to_parquet(directory, max_rows_per_file=ROWS_PER_FILE)
        assert pq.read_table(directory).column("hash").to_pylist() == expected
        assert result.report.records == len(expected)
        assert chain.request_count - before <= (len(expected) - kept) // PAGE + 2
        assert sorted(directory.iterdir()) == sorted([*result.parts, directory / "_manifest.json"])
    record_property("interrupted", interrupted)
    assert interrupted


@pytest.mark.parametrize("way", [(path, name) for path in ("blocks.csv", "blocks/") for name in ("SIGINT", "SIGTERM")])
def test_command_keeps_all_but_pages_in_flight(
    chain: LocalService,
    expected: list[Any],
    tmp_path: Path,
    way: tuple[str, str],
    record_property: Recorder,
) -> None:
    output, number = way[0], signal.Signals[way[1]]
    chance = random.Random(str(way))
    options = [
        *("--page-size", str(PAGE), "--concurrency", str(CONCURRENCY), "--rate-limit", "none"),
        *("--columns", "hash", "--base-url", chain.url, "--no-progress"),
    ]
    secrets = {name: getattr(chain, name) for name in ("api_key", "secret_key", "passphrase")}

    def command(directory: Path) -> int:
        for name, value in secrets.items():
            os.environ[f"CHAINFRAME_{name.upper()}"] = value
        with (directory / "stderr").open("w") as sys.stderr:
            return main(["blocks", *options, "-o", f"{directory}/{output}"])

    interrupted = 0
    for moment in range(MOMENTS):
        directory = tmp_path / f"{moment}"
        directory.mkdir()
        before = chain.request_count
        child = in_a_child(lambda directory=directory: command(directory))  # type: ignore[misc]
        wait_for(chain, before + chance.randrange(1, len(expected) // PAGE), child)
        time.sleep(chance.uniform(0, 0.01))
        with suppress(ProcessLookupError):
            os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        fetched = chain.request_count - before
        saved = directory / ("blocks" if output == "blocks/" else "blocks.csv.part")
        kept = saved_rows(saved)
        if code == 128 + number:
            assert kept >= min((fetched - AHEAD - 1) * PAGE, len(expected))
            message = f"{kept:,} records saved; rerun with --resume to continue" if kept else "no records saved"
            name = "interrupted" if number == signal.SIGINT else "terminated"
            assert (directory / "stderr").read_text() == f"chainframe: {name}; {message}\n"
            interrupted += 1
        else:
            # It had written the output.
            assert code in {0, -number}
            assert output == "blocks/" or (directory / output).exists()
        child = in_a_child(lambda directory=directory: command(directory))  # type: ignore[misc]
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        if output == "blocks/":
            found: list[Any] = pq.read_table(saved).column("hash").to_pylist()
        else:
            found = (directory / output).read_text().replace('"', "").split()[1:]
        assert found == expected
    record_property("interrupted", interrupted)
    assert interrupted


def test_interrupt_of_a_complete_output_changes_nothing(
    chain: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(chain, name))
    monkeypatch.setattr("chainframe.cli.app._print_report", interrupt)
    output = tmp_path / "blocks.csv"
    assert main(["blocks", "--base-url", chain.url, "--no-progress", "--max-items", "5", "-o", str(output)]) == 0
    assert capsys.readouterr().err == ""
    assert len(output.read_text("utf-8").splitlines()) == 6


@pytest.mark.parametrize(
    ("method", "name"),
    [("to_parquet", "blocks"), ("to_parquet", "blocks.parquet"), ("to_csv", "a.csv"), ("to_json", "a.jsonl")],
)
def test_interrupt_says_what_is_saved_and_ends_at_the_caller(
    method: str, name: str, service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = ParquetWriter.fetch

    def fetched_and_interrupted(writer: ParquetWriter[Any]) -> None:
        fetch(writer)
        raise KeyboardInterrupt

    monkeypatch.setattr(ParquetWriter, "fetch", fetched_and_interrupted)
    with service.client() as client, pytest.raises(KeyboardInterrupt) as caught:
        getattr(client.blocks(page_size=50, max_items=120), method)(tmp_path / name)
    assert caught.value.__notes__ == ["120 records are saved; the same call continues"]
    assert caught.value.__suppress_context__
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [file for file in files if "exports" in file and "test_" not in file]
    monkeypatch.undo()
    before = service.request_count
    with service.client() as client:
        assert getattr(client.blocks(page_size=50, max_items=120), method)(tmp_path / name).rows == 120
    assert service.request_count - before <= 1


@pytest.mark.parametrize(
    ("method", "name"),
    [("to_parquet", "blocks"), ("to_csv", "a.csv"), ("to_json", "a.jsonl")],
)
def test_cancellation_says_what_is_saved_and_ends_at_the_caller(
    method: str, name: str, service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = ParquetWriter.fetch_async

    async def fetched_and_cancelled(writer: ParquetWriter[Any]) -> None:
        await fetch(writer)
        raise asyncio.CancelledError

    async def main(client: cf.Client) -> None:
        await getattr(client.blocks(page_size=50), f"{method}_async")(tmp_path / name)

    monkeypatch.setattr(ParquetWriter, "fetch_async", fetched_and_cancelled)
    with service.client() as client, pytest.raises(asyncio.CancelledError) as caught:
        asyncio.run(main(client))
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"\d+ records are saved; the same call continues", note)
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [file.name for file in files if "chainframe" in {file.parent.name, file.parent.parent.name}] == []
