"""Names and places of files that only some systems have: not UTF-8, too long, or below a directory that was removed."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.testing import LocalService
from exports.test_paths import BELOW_A_FILE

needs_bytes = pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
NOT_UTF8 = ["{}/table", "{}/x.duckdb", "file://{}/table", "file:{}/table", "s3://bucket{}", "postgresql://u:secret@h{}"]


@needs_bytes
def test_path_that_is_not_utf8_is_written_and_read(client: cf.Client, tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"\xff")
    directory.mkdir()
    query = client.blocks(max_items=5)
    query.to_csv(directory / "blocks.csv")
    assert len((directory / "blocks.csv").read_text(encoding="utf-8").splitlines()) == 6
    assert query.to_parquet(directory / "blocks").to_arrow() == query.to_arrow()
    with pytest.raises(cf.ExportError, match="is not UTF-8, and pyarrow reads no such path"):
        chainframe.exports.read(directory / "blocks")


@needs_bytes
def test_series_that_could_not_be_read_back_is_refused_before_a_request(
    service: LocalService, client: cf.Client, tmp_path: Path
) -> None:
    directory = tmp_path / os.fsdecode(b"\xff")
    sent = service.request_count
    with pytest.raises(cf.InvalidParameterError, match=r"^path \(.*\) must be UTF-8, since each run of a series reads"):
        client.blocks().to_parquet_series(directory, settle=5)
    assert not directory.exists()
    assert service.request_count == sent


@pytest.mark.parametrize("suffix", [".csv", ".jsonl.gz", ".parquet"])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_file_with_a_long_name_is_written(client: cf.Client, tmp_path: Path, letter: str, suffix: str) -> None:
    # The directory of its parts has a name of five bytes more.
    name = letter * ((250 - len(suffix)) // len(letter.encode())) + suffix
    query = client.blocks(max_items=5)
    method = {".csv": "to_csv", ".jsonl.gz": "to_json", ".parquet": "to_parquet"}[suffix]
    for written in (query, query.collect()):
        getattr(written, method)(tmp_path / name)
        assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synced there")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF])
def test_file_system_that_cannot_sync_directories_is_written_to(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    sync = os.fsync

    def refusing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    assert client.blocks(max_items=5).to_parquet(tmp_path / "blocks").rows == 5
    assert client.blocks(max_items=5).to_csv(tmp_path / "blocks.csv").rows == 5


@needs_bytes
@pytest.mark.parametrize("target", NOT_UTF8)
def test_target_that_is_not_utf8_is_named(
    service: LocalService, client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    directory = tmp_path / os.fsdecode(b"\xff")
    directory.mkdir()
    sent = service.request_count
    with pytest.raises(cf.InvalidParameterError, match=r"^target \(.*\) must be UTF-8; name another") as caught:
        client.blocks(max_items=5).sync(target.format(directory), table="blocks")
    assert "secret" not in str(caught.value)
    # A relative path is below the working directory.
    monkeypatch.chdir(directory)
    with pytest.raises(cf.InvalidParameterError, match=r"^target \(.*\) must be UTF-8; name another"):
        client.blocks(max_items=5).sync("table")
    assert service.request_count == sent


@needs_bytes
def test_records_to_load_from_a_path_that_is_not_utf8_are_named(tmp_path: Path) -> None:
    with LocalService(transactions=5) as service:
        for name, text in (("a.jsonl", '{"height": 1}'), ("a.json", '{"code": "0", "msg": "", "data": []}')):
            path = tmp_path / os.fsdecode(b"\xff" + name.encode())
            path.write_text(text)
            with pytest.raises(cf.ConfigError, match=r"^data \(.*\) must be UTF-8; rename it"):
                service.load("blocks", path)


@pytest.mark.skipif(os.name == "nt", reason="a working directory cannot be removed there")
@pytest.mark.parametrize("call", ["to_parquet of a directory", "to_csv of a file", "sync", "sync of a database"])
def test_relative_path_below_a_removed_directory_is_named(
    client: cf.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(cf.ExportError, match=r"the working directory was removed; name an absolute path$"):
        BELOW_A_FILE[call](client.blocks(), Path("x"))


@pytest.mark.skipif(os.name == "nt", reason="the limit is another one there")
def test_table_with_a_path_that_is_too_long_for_its_log_is_named(client: cf.Client, tmp_path: Path) -> None:
    path = tmp_path / ("x/" * ((4_090 - len(str(tmp_path))) // 2))
    with pytest.raises(cf.ExportError, match=r"_delta_log: File name too long$"):
        client.blocks().sync(path)


@pytest.mark.skipif(os.name == "nt", reason="the limit is another one there")
def test_file_with_a_name_that_is_too_long_for_its_parts_is_named(
    service: LocalService, client: cf.Client, tmp_path: Path
) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    sent = service.request_count
    with pytest.raises(cf.ExportError, match=r"\.part: File name too long$"):
        client.blocks().to_csv(path)
    assert service.request_count == sent


def test_object_store_takes_no_surrogate(client: cf.Client) -> None:
    with pytest.raises(cf.InvalidParameterError, match=r"^path \(s3://\.\.\.\) must name a bucket and a path in it"):
        client.blocks(max_items=5).to_parquet("s3://bucket/\udcff")
