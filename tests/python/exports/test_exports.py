"""`to_parquet`: the files hold the result exactly once, after any interruption."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainframe as cf
import reference_client
from chainframe.exports import Export
from chainframe.exports.directory import LocalStore, locked_dir
from chainframe.exports.manifest import VERSION
from chainframe.testing import LocalService
from conftest import Sample
from strict_server import Request, Response, StrictServer, page_of

CALLS = sorted(reference_client.ENDPOINTS)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def manifest(directory: Path) -> dict[str, Any]:
    members: dict[str, Any] = json.loads((directory / "_manifest.json").read_text())
    return members


def blocks(first: int, last: int) -> list[dict[str, str]]:
    return [{"height": str(height), "hash": f"0x{height:x}"} for height in range(first, last - 1, -1)]


def in_pages(rows: list[dict[str, str]], request: Request, **members: object) -> Response:
    page, limit = int(request.query["page"]), int(request.query["limit"])
    part = rows[(page - 1) * limit : page * limit]
    given = {"totalPage": str(-(-len(rows) // limit)), "total": str(len(rows)), **members}
    return page_of("blocks", part, limit=str(limit), page=str(page), **given)


def heights(directory: Path) -> list[Any]:
    found: list[Any] = pq.read_table(directory).column("height").to_pylist()
    return found


@pytest.mark.parametrize("call", CALLS)
def test_files_hold_the_records_of_collect(client: cf.Client, sample: Sample, tmp_path: Path, call: str) -> None:
    query = sample.query(client, call)
    records = query.collect()
    export = query.to_parquet(tmp_path / "new" / "export", max_rows_per_file=7)
    assert pq.read_table(export.path) == records.to_arrow()
    assert export.rows == len(records)
    assert (export.complete, export.report.reasons) == (records.report.complete, records.report.reasons)
    assert all(pq.read_metadata(part).num_rows <= 7 for part in export.parts)
    assert names(export.path) == ["_manifest.json", *(part.name for part in export.parts)]
    listed = manifest(export.path)
    assert export.manifest == export.path / "_manifest.json"
    assert listed["finished"]
    assert listed["complete"] == export.complete
    for part, path in zip(listed["parts"], export.parts, strict=True):
        content = path.read_bytes()
        assert (part["name"], part["bytes"]) == (path.name, len(content))
        assert part["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("numbers", ["decimal", "float", "string"])
def test_numbers_are_written_as_given(client: cf.Client, sample: Sample, tmp_path: Path, numbers: Any) -> None:
    query = client.token_transfers(sample.token)
    export = query.to_parquet(tmp_path, numbers=numbers)
    assert pq.read_table(export.path) == query.to_arrow(numbers=numbers)


def test_finished_export_sends_nothing(service: LocalService, client: cf.Client, tmp_path: Path) -> None:
    first = client.blocks().to_parquet(tmp_path)
    before = service.request_count
    assert client.blocks(page_size=3).to_parquet(str(tmp_path)) == first
    assert service.request_count == before


def test_empty_result_has_a_schema(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", page_of("blocks", [], totalPage="0", total="0"))
    export = server.client().blocks().to_parquet(tmp_path)
    assert (export.rows, len(export.parts), export.complete) == (0, 1, True)
    assert pq.read_table(tmp_path).schema == server.client().blocks().to_arrow().schema


def test_each_run_keeps_what_it_fetched(server: StrictServer, tmp_path: Path) -> None:
    """Every third request fails; each run gets further, with files as large as can be."""
    rows = blocks(100, 1)

    def respond(request: Request) -> Response:
        return Response(b"", 503) if len(server.requests) % 3 == 0 else in_pages(rows, request)

    server.on("blocks", respond)
    query = server.client(concurrency=1).blocks(page_size=10)
    # The fifth run reads the last page, and fails to compare the list with its first page.
    for run in range(1, 6):
        with pytest.raises(cf.ServiceUnavailableError):
            query.to_parquet(tmp_path, max_rows_per_file=25)
        assert manifest(tmp_path)["report"]["records"] == 20 * run
    export = query.to_parquet(tmp_path, max_rows_per_file=25)
    assert heights(tmp_path) == list(range(100, 0, -1))
    assert len(server.requests) == 16
    assert export.report.pages == 10
    assert export.report.records == 100
    assert all(pq.read_metadata(part).num_rows <= 25 for part in export.parts)


def test_interrupt_keeps_what_was_fetched(
    server: StrictServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("blocks", lambda request: in_pages(blocks(50, 1), request))
    query = server.client(concurrency=1).blocks(page_size=10)
    write = LocalStore.write_part

    def interrupted(self: LocalStore, name: str, rows: int, how: Any) -> Any:
        if name == "part-000001.parquet":
            raise KeyboardInterrupt
        return write(self, name, rows, how)

    monkeypatch.setattr(LocalStore, "write_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        query.to_parquet(tmp_path, max_rows_per_file=20)
    monkeypatch.undo()
    assert manifest(tmp_path)["parts"][0]["rows"] == 20
    sent = len(server.requests)
    query.to_parquet(tmp_path, max_rows_per_file=20)
    assert heights(tmp_path) == list(range(50, 0, -1))
    assert len(server.requests) == sent + 4


def test_write_error_leaves_no_temporary_file(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(cf.ExportError, match="No space") as caught:
        client.blocks().to_parquet(tmp_path)
    assert caught.value.path == str(tmp_path)
    monkeypatch.undo()
    assert names(tmp_path) == ["_manifest.json"]
    assert client.blocks().to_parquet(tmp_path).rows == len(client.blocks().collect())


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an argument": ({"height": 7}, {}, "height is None there and 7 here"),
    "a limit": ({"max_items": 3}, {}, "max_items is None there and 3 here"),
    "a chain": ({"chain": "OTHER"}, {}, "chain is 'ZONE_CHAIN' there and 'OTHER' here"),
    "numbers": ({}, {"numbers": "float"}, "numbers is 'decimal' there and 'float' here"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_export_of_another_query_is_rejected_by_name(
    service: LocalService, client: cf.Client, tmp_path: Path, other: str
) -> None:
    arguments, options, expected = OTHERS[other]
    client.blocks().to_parquet(tmp_path)
    held, before = names(tmp_path), service.request_count
    with pytest.raises(cf.ExportError, match=expected) as caught:
        client.blocks(**arguments).to_parquet(tmp_path, **options)
    assert caught.value.path == str(tmp_path)
    assert service.request_count == before
    assert names(tmp_path) == held


def test_export_of_another_call_is_rejected(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet(tmp_path)
    with pytest.raises(cf.ExportError, match="call is 'blocks' there and 'transactions' here"):
        client.transactions().to_parquet(tmp_path)


def test_equivalent_arguments_resume_the_export(client: cf.Client, tmp_path: Path) -> None:
    client.tokens(start_time="2020-01-01T00:00:00Z").to_parquet(tmp_path)
    client.tokens(start_time=1_577_836_800_000).to_parquet(tmp_path)


@pytest.mark.parametrize("harm", ["changed", "cut", "gone"])
def test_corrupt_part_is_named_and_can_be_replaced(
    service: LocalService, client: cf.Client, tmp_path: Path, harm: str
) -> None:
    export = client.blocks().to_parquet(tmp_path, max_rows_per_file=10)
    part = export.parts[1]
    content = bytearray(part.read_bytes())
    if harm == "gone":
        part.unlink()
    else:
        content[-20] ^= 1
        part.write_bytes(content if harm == "changed" else content[:-1])
    before = service.request_count
    with pytest.raises(cf.ExportError, match=part.name) as caught:
        client.blocks().to_parquet(tmp_path)
    assert caught.value.path == str(part)
    assert service.request_count == before
    again = client.blocks().to_parquet(tmp_path, mode="overwrite")
    assert heights(tmp_path) == [block.height for block in client.blocks()]
    assert names(tmp_path) == ["_manifest.json", *(path.name for path in again.parts)]


def test_mode_error_leaves_an_export_unchanged(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet(tmp_path, mode="error")
    with pytest.raises(cf.ExportError, match="holds an export"):
        client.blocks().to_parquet(tmp_path, mode="error")


def test_foreign_files_are_left_alone(client: cf.Client, tmp_path: Path) -> None:
    foreign, other = tmp_path / "mine.parquet", tmp_path / "mine"
    other.write_text("mine")
    pq.write_table(pa.table({"a": [1]}), foreign)
    with pytest.raises(cf.ExportError, match=r"mine\.parquet"):
        client.blocks().to_parquet(tmp_path)
    with pytest.raises(cf.ExportError, match="is not a directory"):
        client.blocks().to_parquet(other)
    assert names(tmp_path) == ["mine", "mine.parquet"]
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "notes.txt").write_text("mine")
    client.blocks().to_parquet(beside)
    assert (beside / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1}', "\0"])
def test_invalid_manifest_is_rejected(client: cf.Client, tmp_path: Path, text: str) -> None:
    (tmp_path / "_manifest.json").write_text(text)
    with pytest.raises(cf.ExportError, match="is not the manifest"):
        client.blocks().to_parquet(tmp_path)
    assert client.blocks().to_parquet(tmp_path, mode="overwrite").rows


def test_unsupported_manifest_version_is_rejected(client: cf.Client, tmp_path: Path) -> None:
    client.blocks().to_parquet(tmp_path)
    (tmp_path / "_manifest.json").write_text(json.dumps({**manifest(tmp_path), "version": VERSION + 1}))
    with pytest.raises(cf.ExportError, match=f"version {VERSION + 1} "):
        client.blocks().to_parquet(tmp_path)


def test_locked_directory_is_rejected(client: cf.Client, tmp_path: Path) -> None:
    with locked_dir(tmp_path), pytest.raises(cf.ExportError, match="another export") as caught:
        client.blocks().to_parquet(tmp_path)
    assert caught.value.retryable
    client.blocks().to_parquet(tmp_path)
    assert ".lock" not in names(tmp_path)


def test_concurrent_exports_to_one_directory_write_each_record_once(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", lambda request: in_pages(blocks(60, 1), request))
    rejected: list[cf.ExportError] = []

    def export() -> None:
        for _ in range(5):
            try:
                server.client().blocks(page_size=10).to_parquet(tmp_path, max_rows_per_file=10)
            except cf.ExportError as error:
                rejected.append(error)

    threads = [threading.Thread(target=export) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(error.retryable for error in rejected)
    assert server.client().blocks().to_parquet(tmp_path).rows == 60
    assert heights(tmp_path) == list(range(60, 0, -1))


def test_incomplete_result_is_written_with_a_warning(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", page_of("blocks", blocks(5, 1), total="6"))
    exports = []
    for _ in range(2):
        with pytest.warns(cf.IncompleteResultWarning, match="reports 6 records but returned 5") as caught:
            exports.append(server.client().blocks().to_parquet(tmp_path))
        (warning,) = caught
        assert warning.filename == __file__
        assert len(server.requests) == 1
    assert exports[0] == exports[1]
    assert (exports[0].rows, exports[0].complete) == (5, False)
    with pytest.raises(cf.IncompleteResultError) as raised:
        server.client(strict=True).blocks().to_parquet(tmp_path)
    assert raised.value.report == exports[0].report
    assert any('mode="overwrite" reads the list again' in note for note in raised.value.__notes__)
    strict = tmp_path / "strict"
    with pytest.raises(cf.IncompleteResultError) as raised:
        server.client(strict=True).blocks().to_parquet(strict)
    assert raised.value.partial is not None
    assert len(raised.value.partial) == 5
    assert heights(strict) == [5, 4, 3, 2, 1]
    assert manifest(strict)["finished"]


def test_overflow_error_counts_rows_of_the_export(server: StrictServer, tmp_path: Path) -> None:
    def respond(request: Request) -> Response:
        amount = "1e30" if request.query["page"] == "3" else "1"
        rows = [{"txid": f"0x{request.query['page']}{row}", "amount": amount} for row in range(10)]
        return page_of("token_transfers", rows, limit="10", totalPage="4", totalTransfer="40")

    server.on("token_transfers", respond)
    query = server.client().token_transfers("0xa", page_size=10)
    with pytest.raises(cf.NumericOverflowError) as caught:
        query.to_parquet(tmp_path / "a")
    assert (caught.value.column, caught.value.row) == ("amount", 20)
    assert query.to_parquet(tmp_path / "b", numbers="string").rows == 40


def test_resumed_query_can_be_exported(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", lambda request: in_pages(blocks(30, 1), request))
    client = server.client()
    page = next(iter(client.blocks(page_size=10).pages()))
    rest = client.resume(page.cursor)
    assert rest.to_parquet(tmp_path).rows == 20
    assert client.resume(page.cursor).to_parquet(tmp_path).rows == 20
    with pytest.raises(cf.ExportError, match="cursor"):
        client.blocks().to_parquet(tmp_path)


@pytest.mark.parametrize("options", [{"max_rows_per_file": 0}, {"numbers": "exact"}])
def test_options_are_checked_before_anything_is_created(
    client: cf.Client, tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(cf.InvalidParameterError, match=next(iter(options))):
        client.blocks().to_parquet(tmp_path / "a", **options)
    assert names(tmp_path) == []


def test_missing_pyarrow_is_named(client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'chainframe\[arrow\]'"):
        client.blocks().to_parquet(tmp_path / "a")
    with pytest.raises(ImportError, match=r"pip install 'chainframe\[arrow\]'"):
        asyncio.run(client.blocks().to_parquet_async(tmp_path / "a"))
    assert names(tmp_path) == []


def test_awaited_export_equals_the_blocking_one(client: cf.Client, tmp_path: Path) -> None:
    async def run() -> list[Export]:
        one = client.blocks().to_parquet_async(tmp_path / "a", max_rows_per_file=10)
        other = client.transactions().to_parquet_async(tmp_path / "b")
        return list(await asyncio.gather(one, other))

    one, other = asyncio.run(run())
    assert pq.read_table(one.path) == client.blocks().to_arrow()
    assert pq.read_table(other.path) == client.transactions().to_arrow()


def test_query_can_be_exported_to_two_directories_at_once(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", lambda request: in_pages(blocks(90, 1), request))
    query = server.client().blocks(page_size=10)

    async def run() -> list[Export]:
        every = (query.to_parquet_async(tmp_path / str(number), max_rows_per_file=10) for number in range(4))
        return list(await asyncio.gather(*every))

    for export in asyncio.run(run()):
        assert export.complete
        assert export.report.pages == 9
        assert heights(export.path) == list(range(90, 0, -1))


def test_cancelled_task_keeps_what_was_fetched(server: StrictServer, tmp_path: Path) -> None:
    requested, opened = threading.Event(), threading.Event()

    def respond(request: Request) -> Response:
        if request.query["page"] == "3":
            requested.set()
            opened.wait(60)
        return in_pages(blocks(50, 1), request)

    server.on("blocks", respond)
    client = server.client(concurrency=1)

    async def run() -> None:
        task = asyncio.ensure_future(client.blocks(page_size=10).to_parquet_async(tmp_path))
        await asyncio.to_thread(requested.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert heights(tmp_path) == list(range(50, 30, -1))
    opened.set()
    client.blocks(page_size=10).to_parquet(tmp_path)
    assert heights(tmp_path) == list(range(50, 0, -1))


MEMORY = """
import sys
import chainframe as cf

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

url, directory = sys.argv[1:]
client = cf.Client(base_url=url, api_key="k", secret_key="s", passphrase="p", rate_limit=None, concurrency=2)
client.tokens(page_size=5, max_items=20).to_parquet(directory + "/first", max_rows_per_file=10)
early = peak()
export = client.tokens(page_size=5).to_parquet(directory + "/second", max_rows_per_file=10)
print(export.rows, peak() - early)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_export_uses_bounded_memory(tmp_path: Path) -> None:
    """A third of a gigabyte passes through; what it may leave is a small part of that."""

    def respond(target: str, headers: dict[str, str]) -> Response:
        del headers
        query = dict(parse_qsl(target.partition("?")[2]))
        page, limit = int(query["page"]), int(query["limit"])
        numbers = range((page - 1) * limit, min(page * limit, 1_500))
        records = [{"tokenContractAddress": str(number), "website": "x" * 200_000} for number in numbers]
        return page_of("tokens", records, page=str(page), limit=str(limit), totalPage=str(-(-1_500 // limit)))

    with StrictServer() as server:
        server.respond = respond  # type: ignore[method-assign]
        script = [sys.executable, "-W", "ignore", "-c", MEMORY, server.url, str(tmp_path)]
        done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, growth = map(int, done.stdout.split())
    assert rows == 1_500
    assert growth < 120 << 20


def test_incomplete_warning_raised_as_error_ends_the_export(server: StrictServer, tmp_path: Path) -> None:
    server.on("blocks", page_of("blocks", blocks(5, 1), total="6"))
    with warnings.catch_warnings(action="error"), pytest.raises(cf.IncompleteResultWarning):
        server.client().blocks().to_parquet(tmp_path)
    assert manifest(tmp_path)["finished"]
