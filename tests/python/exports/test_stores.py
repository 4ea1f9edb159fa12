"""Exports in object stores: a server on loopback that speaks S3, with conditional writes."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import pickle
import subprocess
import sys
import traceback
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
import chainframe.exports
import reference_client
from chainframe._objects import ObjectPath, location, object_writer
from chainframe.cli import main
from chainframe.exports import Export
from chainframe.testing import LocalService
from conftest import environment, needs_extra
from doc_examples import executed
from object_stores import Double
from repository import ROOT
from s3_server import KEY_ID, SECRET, TOKEN, VARIABLES, Bucket, lossy_proxy, s3_server

pytestmark = needs_extra


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    name = f"bucket-{uuid.uuid4().hex[:8]}"
    make_bucket(endpoint, name)
    return Bucket(endpoint, name)


def make_bucket(endpoint: str, name: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()


def in_environment(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**VARIABLES, "AWS_ENDPOINT_URL": bucket.endpoint}.items():
        monkeypatch.setenv(name, value)


def hashes(export: Export) -> list[Any]:
    column: list[Any] = export.to_arrow(columns=["hash"])["hash"].to_pylist()
    return column


def test_directory_is_exported_and_read_back(client: cf.Client, service: LocalService, bucket: Bucket) -> None:
    query = client.blocks(max_items=250, page_size=50)
    url = bucket.url("a/blocks")
    export = query.to_parquet(url, max_rows_per_file=100, storage_options=bucket.options)
    assert str(export.path) == url
    assert [str(part) for part in export.parts] == [f"s3://{bucket.name}/{name}" for name in bucket.names()[1:]]
    assert str(export.manifest) == f"{url}/_manifest.json"
    assert repr(export) == f"<Export '{url}': 250 records in 3 files, complete>"
    expected = [block.hash for block in query.collect()]
    assert hashes(export) == expected
    sent = service.request_count
    again = query.to_parquet(url, max_rows_per_file=100, storage_options=bucket.options)
    opened = Export.open(url, storage_options=bucket.options)
    assert again == opened == export
    assert opened.to_pandas().shape == opened.to_polars().shape == (250, len(opened.to_arrow().column_names))
    found = chainframe.exports.read(url, storage_options=bucket.options)
    assert found.count_rows() == chainframe.exports.read([opened]).count_rows() == 250
    assert service.request_count == sent
    assert opened.verify(client, sample=10, seed=1).ok


def test_async_export_is_the_same(client: cf.Client, bucket: Bucket) -> None:
    async def run() -> Export:
        return await client.blocks(max_items=60).to_parquet_async(bucket.url("a"), storage_options=bucket.options)

    assert hashes(asyncio.run(run())) == [block.hash for block in client.blocks(max_items=60).collect()]


def test_overwrite_replaces_and_error_refuses(client: cf.Client, bucket: Bucket) -> None:
    options: dict[str, Any] = {"max_rows_per_file": 20, "storage_options": bucket.options}
    client.blocks(max_items=50).to_parquet(bucket.url("a"), **options)
    with pytest.raises(cf.ExportError, match="holds an export of another query"):
        client.blocks(max_items=30).to_parquet(bucket.url("a"), **options)
    with pytest.raises(cf.ExportError, match="holds an export"):
        client.blocks(max_items=50).to_parquet(bucket.url("a"), mode="error", **options)
    export = client.blocks(max_items=30).to_parquet(bucket.url("a"), mode="overwrite", **options)
    assert len(hashes(export)) == 30
    assert len(bucket.names()) == 3


def test_interrupted_export_continues(chain: LocalService, bucket: Bucket) -> None:
    client = chain.client(max_retries=0, concurrency=1)
    query, url = client.blocks(page_size=10, max_items=100), bucket.url("a")
    sent = chain.request_count
    chain.faults = [{"kind": "status", "status": 503, "every": 7}]
    with pytest.raises(cf.ServiceUnavailableError) as caught:
        query.to_parquet(url, max_rows_per_file=20, storage_options=bucket.options)
    assert "records are saved" in "".join(caught.value.__notes__)
    assert not json.loads(bucket.read("a/_manifest.json"))["finished"]
    with pytest.raises(cf.ExportError, match="is not finished"):
        Export.open(url, storage_options=bucket.options)
    chain.faults = []
    export = query.to_parquet(url, max_rows_per_file=20, storage_options=bucket.options)
    assert hashes(export) == [block.hash for block in client.blocks(page_size=10, max_items=100).collect()]
    assert chain.request_count - sent < 10 + 10 + 4


@pytest.mark.parametrize("fault", ["lost", "500", "503", "unsent"])
def test_lost_response_of_any_put_leaves_each_row_once(client: cf.Client, bucket: Bucket, fault: str) -> None:
    query = client.blocks(page_size=50, max_items=100)
    expected = [block.hash for block in query.collect()]
    with lossy_proxy(bucket.endpoint) as proxy:
        for max_retries in (0, 1):
            options = bucket.at(proxy.url, max_retries=max_retries, timeout="5s")
            proxy.at, proxy.writes = 0, 0
            query.to_parquet(bucket.url("counted"), max_rows_per_file=40, storage_options=options)
            puts = proxy.writes
            for at in range(1, puts + 1):
                proxy.at, proxy.fault, proxy.writes = at, fault, 0
                key = f"{max_retries}/{at}"
                for _ in range(3):
                    try:
                        export = query.to_parquet(bucket.url(key), max_rows_per_file=40, storage_options=options)
                    except cf.ExportError as error:
                        if not error.retryable:
                            raise
                    else:
                        break
                else:
                    raise AssertionError(f"put {at} of {puts}")
                assert hashes(export) == expected
                listed = sorted([*(str(part) for part in export.parts), str(export.manifest)])
                assert [bucket.url(name) for name in bucket.names() if name.startswith(f"{key}/")] == listed


def test_since_and_series_continue_in_the_bucket(chain: LocalService, bucket: Bucket, tmp_path: Path) -> None:
    client = chain.client()
    query, options = client.cross_chain_transactions(), bucket.options
    first = query.to_parquet(bucket.url("t/monday"), storage_options=options)
    series = query.to_parquet_series(bucket.url("s"), settle=4, storage_options=options)
    chain.growth = 2
    for _ in range(5):
        reference_client.get(chain, "blocks", limit="1")
    chain.growth = 0
    second = query.to_parquet(bucket.url("t/tuesday"), since=bucket.url("t/monday"), storage_options=options)
    grown = query.to_parquet_series(bucket.url("s"), settle=4, storage_options=options)
    assert (str(series.path), str(grown.path)) == (bucket.url("s/export-000000"), bucket.url("s/export-000001"))
    assert first.rows + second.rows == query.collect().report.records
    assert chainframe.exports.read(bucket.url("t/tuesday"), storage_options=options).count_rows() == (
        first.rows + second.rows
    )
    whole = chainframe.exports.read(bucket.url("s"), storage_options=options)
    assert whole.count_rows() == len(set(whole.to_table()["zone_tx_hash"].to_pylist()))
    assert grown.verify(client, sample=5, seed=1).ok
    local = query.to_parquet(tmp_path / "local")
    with pytest.raises(cf.InvalidParameterError, match="in the bucket of this one"):
        query.to_parquet(bucket.url("t/wednesday"), since=local, storage_options=options)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_single_file_is_the_local_one(client: cf.Client, bucket: Bucket, tmp_path: Path, name: str) -> None:
    method = {"csv": "to_csv", "jsonl": "to_json", "parquet": "to_parquet"}[name.split(".")[1]]
    query = client.blocks(max_items=120)
    getattr(query, method)(tmp_path / name)
    url = bucket.url(f"files/{name}")
    export = getattr(query, method)(url, storage_options=bucket.options)
    assert bucket.names() == [f"files/{name}"]
    assert bucket.read(f"files/{name}") == (tmp_path / name).read_bytes()
    assert (str(export.path), export.rows, export.manifest) == (url, 120, None)
    with pytest.raises(cf.ExportError, match="exists"):
        getattr(query, method)(url, mode="error", storage_options=bucket.options)
    getattr(query.collect(), method)(bucket.url(f"files/b{name}"), storage_options=bucket.options)
    assert bucket.read(f"files/b{name}")[:50] == (tmp_path / name).read_bytes()[:50]


def test_file_of_many_pieces_is_whole_or_absent(bucket: Bucket) -> None:
    path = location(bucket.url("big"), "path", bucket.options)
    assert isinstance(path, ObjectPath)

    def write(content: bytes, pieces: list[int]) -> None:
        with object_writer(path) as file:
            for piece in pieces:
                file.write(content * (1_000_000 // piece))

    with pytest.raises(ZeroDivisionError):
        write(b"x", [1] * 20 + [0])
    assert bucket.names() == []
    write(b"y", [1] * 20)
    assert bucket.read("big") == b"y" * 20_000_000


def test_interrupted_file_continues(chain: LocalService, bucket: Bucket) -> None:
    client = chain.client(max_retries=0, concurrency=1)
    query = client.blocks(page_size=10, max_items=100)
    chain.faults = [{"kind": "status", "status": 503, "every": 7}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_json(bucket.url("a.jsonl.gz"), storage_options=bucket.options)
    assert bucket.names()[0] == "a.jsonl.gz.part/_manifest.json"
    chain.faults = []
    query.to_json(bucket.url("a.jsonl.gz"), storage_options=bucket.options)
    assert bucket.names() == ["a.jsonl.gz"]
    assert len(gzip.decompress(bucket.read("a.jsonl.gz")).splitlines()) == 100


def test_damaged_part_is_an_error(client: cf.Client, bucket: Bucket) -> None:
    query, url, options = client.blocks(max_items=60), bucket.url("a"), bucket.options
    export = query.to_parquet(url, max_rows_per_file=20, storage_options=options)
    key = str(export.parts[1]).removeprefix(f"s3://{bucket.name}/")
    content = bucket.read(key)
    uses: list[Callable[[], Any]] = [
        lambda: query.to_parquet(url, max_rows_per_file=20, storage_options=options),
        lambda: chainframe.exports.read(url, storage_options=options),
        lambda: Export.open(url, storage_options=options).to_arrow(),
        lambda: client.blocks().to_parquet(bucket.url("b"), since=url, storage_options=options),
    ]
    for damaged, problem in ((content[:-1] + b"x", "is damaged"), (content[:-1], "is damaged"), (None, "is missing")):
        if damaged is None:
            bucket.delete(key)
        else:
            bucket.put(key, damaged)
        for use in uses:
            with pytest.raises(cf.ExportError, match=problem) as caught:
                use()
            assert caught.value.path == f"s3://{bucket.name}/{key}"
        assert [difference.key for difference in export.verify(client).differences] == [key.rpartition("/")[2]]
    # What was copied has other versions, and the same content.
    bucket.put(key, content)
    assert len(hashes(query.to_parquet(url, max_rows_per_file=20, storage_options=options))) == 60


@pytest.mark.parametrize("kind", ["lax", "half"])
def test_store_that_ignores_conditions_is_refused(client: cf.Client, service: LocalService, kind: str) -> None:
    double, sent = Double(kind), service.request_count
    with pytest.raises(cf.ExportError, match="ignores the conditions of a put") as caught:
        client.blocks(max_items=5).to_parquet(double.path("a"))  # type: ignore[arg-type]
    assert caught.value.retryable is False
    assert (double.objects, service.request_count) == ({}, sent)


def test_foreign_files_are_not_touched(client: cf.Client, bucket: Bucket) -> None:
    bucket.put("a/other.parquet", b"x")
    with pytest.raises(cf.ExportError, match=r"holds other\.parquet, and no manifest"):
        client.blocks(max_items=5).to_parquet(bucket.url("a"), storage_options=bucket.options)
    bucket.put("b/notes.txt", b"x")
    bucket.put("b/nested/part-000000.parquet", b"x")
    client.blocks(max_items=5).to_parquet(bucket.url("b"), storage_options=bucket.options)
    client.blocks(max_items=6).to_parquet(bucket.url("b"), mode="overwrite", storage_options=bucket.options)
    assert {"a/other.parquet", "b/notes.txt", "b/nested/part-000000.parquet"} <= set(bucket.names())
    bucket.put("c/_manifest.json", b'{"version": 1}')
    with pytest.raises(cf.ExportError, match="is not the manifest of an export"):
        client.blocks(max_items=5).to_parquet(bucket.url("c"), storage_options=bucket.options)


def test_link_out_of_the_bucket_is_not_followed(client: cf.Client, bucket: Bucket) -> None:
    query, options = client.blocks(), bucket.options
    query.to_parquet(bucket.url("a"), storage_options=options)
    query.to_parquet(bucket.url("b"), since=bucket.url("a"), storage_options=options)
    state = json.loads(bucket.read("b/_manifest.json"))
    for link in ("../../a", "/a", ".."):
        bucket.put("b/_manifest.json", json.dumps({**state, "since": {**state["since"], "path": link}}).encode())
        with pytest.raises(cf.ExportError, match="outside of its bucket"):
            chainframe.exports.read(bucket.url("b"), storage_options=options)


def test_file_url_is_a_local_path(client: cf.Client, tmp_path: Path) -> None:
    export = client.blocks(max_items=5).to_parquet(f"file://{tmp_path}/a%20b")
    assert export.path == tmp_path / "a b"
    assert Export.open(f"file://{tmp_path}/a%20b").rows == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is Unix's")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_process_raises_instead_of_waiting(client: cf.Client, bucket: Bucket) -> None:
    client.blocks(max_items=5).to_parquet(bucket.url("a"), storage_options=bucket.options)
    child = os.fork()
    if child == 0:
        try:
            Export.open(bucket.url("a"), storage_options=bucket.options)
        except cf.ContextError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_names_of_any_characters_are_kept(client: cf.Client, bucket: Bucket) -> None:
    for key in ("a b/c", "a%20b/c", "día/a+b=c", "~/a:b*"):
        export = client.blocks(max_items=5).to_parquet(bucket.url(key), storage_options=bucket.options)
        assert f"{key}/_manifest.json" in bucket.names()
        assert chainframe.exports.read(str(export.path), storage_options=bucket.options).count_rows() == 5


def test_endpoint_without_tls_has_to_be_allowed(client: cf.Client, bucket: Bucket) -> None:
    options = {**bucket.options, "allow_http": False}
    with pytest.raises(cf.ExportError, match="pass allow_http in storage_options") as caught:
        client.blocks(max_items=5).to_parquet(bucket.url("a"), storage_options=options)
    assert not caught.value.retryable


def test_no_credential_is_shown(
    client: cf.Client, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query = client.blocks(max_items=5)
    export = query.to_parquet(bucket.url("a"), storage_options=bucket.options)
    shown = [repr(export), str(export), export._repr_html_(), repr(export.path), str(pickle.dumps(export.path))]
    shown += [bucket.read(name).decode("latin-1") for name in bucket.names()]
    wrong: list[dict[str, Any]] = [
        {**bucket.options, "endpoint": f"http://127.0.0.1:9/{SECRET}", "max_retries": 0},
        {**bucket.options, "allow_http": False, "max_retries": 0},
        {**bucket.options, "no_such_option": SECRET},
        {**bucket.options, "region": SECRET.encode()},
        {**bucket.options, "timeout": SECRET},
        {**bucket.options, "max_retries": SECRET},
    ]
    targets = [*((bucket.url("b"), options) for options in wrong), ("s3://no-such-bucket/b", bucket.options)]
    for url, options in targets:
        with pytest.raises(cf.ChainframeError) as caught:
            query.to_parquet(url, storage_options=options)
        shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value), str(caught.value.__context__)]
    in_environment(bucket, monkeypatch)
    pickled: Any = pickle.loads(pickle.dumps(export.path))
    assert (pickled, len(hashes(Export.open(pickled)))) == (export.path, 5)
    text = "\n".join([*shown, caplog.text])
    # Options are in the frames of this test, not in the text.
    assert not [canary for canary in (SECRET, KEY_ID, TOKEN) if canary in text]


def test_wrong_options_are_refused_before_any_request(client: cf.Client, service: LocalService, tmp_path: Path) -> None:
    query, sent = client.blocks(max_items=5), service.request_count
    url = "s3://bucket/a"
    wrong: list[tuple[str, Any, str]] = [
        (url, {"no_such_option": "x"}, "has no option no_such_option for s3://"),
        (url, "x", "must be a dict; got str"),
        (url, {"region": None}, "region is NoneType"),
        ("az://container/a", {"region": "x"}, "has no option region for az://"),
        ("az://container/a", {}, "AZURE_STORAGE_ACCOUNT_NAME"),
        (str(tmp_path / "a"), {"region": "x"}, "needs a URL that begins with"),
    ]
    for path, options, problem in wrong:
        with pytest.raises(cf.InvalidParameterError, match=problem) as caught:
            query.to_parquet(path, storage_options=options)
        assert str(caught.value).startswith("storage_options ")
    assert (service.request_count, list(tmp_path.iterdir())) == (sent, [])


PROGRAM = """
import os, sys
def refuse(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise SystemExit(f"opened for writing: {arguments[0]}")
    if event in {"os.mkdir", "os.rename", "os.remove", "tempfile.mkstemp"}:
        raise SystemExit(f"{event}: {arguments}")
import chainframe as cf, chainframe.exports, pyarrow.parquet
sys.dont_write_bytecode = True
sys.addaudithook(refuse)
query = cf.Client().blocks(max_items=50)
query.to_parquet(sys.argv[1], max_rows_per_file=20)
query.to_csv(sys.argv[1] + ".csv")
print(chainframe.exports.read(sys.argv[1]).count_rows())
"""


def test_no_local_file_is_written(service: LocalService, bucket: Bucket, tmp_path: Path) -> None:
    variables = {**os.environ, **environment(service), **VARIABLES, "AWS_ENDPOINT_URL": bucket.endpoint}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, bucket.url("a")],
        env={**variables, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "50\n"), ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_command_exports_reads_and_verifies(
    at_service: LocalService, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del at_service
    in_environment(bucket, monkeypatch)
    calls = [
        ["blocks", "--max-items", "40", "-o", bucket.url("a/"), "--max-rows-per-file", "20"],
        ["blocks", "--max-items", "40", "-o", bucket.url("a.csv")],
        ["blocks", "-o", bucket.url("all/")],
        ["blocks", "-o", bucket.url("new/"), "--since", bucket.url("all")],
        ["cross-chain-transactions", "-o", bucket.url("s/"), "--series"],
        ["verify", bucket.url("a"), "--sample", "5"],
    ]
    for call in calls:
        assert main(call) == 0, call
    shown = capsys.readouterr()
    assert "2 files and 40 records, differences: no" in shown.out
    assert len(bucket.read("a.csv").splitlines()) == 41
    assert not [canary for canary in (SECRET, KEY_ID, TOKEN) if canary in shown.out + shown.err]
    assert main(["blocks", "-o", "s3://no-such-bucket/a/"]) == 2
    assert "NoSuchBucket" in capsys.readouterr().err


def test_page_examples_print_the_output_that_is_shown(
    service: LocalService, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_bucket(bucket.endpoint, "lake")
    in_environment(bucket, monkeypatch)
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/guide/object-stores.md"
    assert executed(page) == page.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []
