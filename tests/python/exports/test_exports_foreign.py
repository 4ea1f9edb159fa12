"""Links, pipes, permissions and manifests in the directory of an export that are not of its making."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports.directory import locked_dir
from chainframe.exports.manifest import Manifest
from strict_server import Request, Response, StrictServer, page_of


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_are_not_followed(failing: Any, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    directory = tmp_path / "export"
    directory.mkdir()
    export = failing[1].to_parquet(directory)
    assert precious.read_text() == "mine"
    export.parts[0].rename(tmp_path / "elsewhere.parquet")
    export.parts[0].symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(cf.ExportError, match=r"part-000000\.parquet is missing"):
        failing[1].to_parquet(directory)
    export.parts[0].unlink()
    (directory / ".lock").symlink_to(precious)
    with pytest.raises(cf.ExportError):
        failing[1].to_parquet(directory)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", ["../precious", "/etc/passwd", "part-0.parquet", "part-000000.parquet/../x"])
def test_names_in_a_manifest_are_checked(failing: Any, tmp_path: Path, name: str) -> None:
    export = failing[1].to_parquet(tmp_path)
    members = json.loads(export.manifest.read_text())
    members["parts"][0]["name"] = name
    export.manifest.write_text(json.dumps(members))
    with pytest.raises(cf.ExportError, match="is not the manifest"):
        failing[1].to_parquet(tmp_path)


# Links to another export in place of everything that an export puts beside or below what it was named.
LINKS = {
    "out.csv.part": lambda query: query.to_csv("out.csv", mode="overwrite"),
    "out.jsonl.part": lambda query: query.to_json("out.jsonl"),
    "out.parquet.part": lambda query: query.to_parquet("out.parquet", mode="error"),
    "daily/.overwrite": lambda query: query.to_parquet("daily", mode="overwrite"),
    "daily/.lock": lambda query: query.to_parquet("daily"),
    "daily/_manifest.json": lambda query: query.to_parquet("daily"),
    "daily/_journal.jsonl": lambda query: query.to_parquet("daily"),
    "daily": lambda query: query.to_parquet("daily", mode="overwrite"),
    "series": lambda query: query.to_parquet_series("series"),
    "series/export-000000": lambda query: query.to_parquet_series("series"),
    "out.csv": lambda query: query.to_csv("out.csv", mode="overwrite"),
}


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("link", LINKS)
def test_nothing_is_read_or_removed_through_a_link(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, is_awaited: Any
) -> None:
    service, query = failing
    monkeypatch.chdir(tmp_path)
    query.to_parquet("archive", max_rows_per_file=30)
    archive = {path.name: path.read_bytes() for path in Path("archive").iterdir()}
    path = Path(link)
    path.parent.mkdir(exist_ok=True)
    name = path.name if path.name in {"_manifest.json", "_journal.jsonl"} else ""
    path.symlink_to(tmp_path / "archive" / name)
    if path.name == "out.csv":
        path.unlink()
        path.symlink_to(tmp_path / "archive" / "_manifest.json")
    sent = service.request_count

    class Awaited:
        def __getattr__(self, method: str) -> Any:
            def call(*arguments: Any, **options: Any) -> None:
                async def run() -> None:
                    await getattr(query, f"{method}_async")(*arguments, **options)

                asyncio.run(run())

            return call

    with pytest.raises(cf.ExportError):
        LINKS[link](Awaited() if is_awaited else query)
    assert service.request_count == sent
    assert {path.name: path.read_bytes() for path in Path("archive").iterdir()} == archive
    assert path.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe has a name on Unix only")
@pytest.mark.parametrize("name", [Manifest.NAME, Manifest.JOURNAL, ".lock"])
def test_pipe_in_place_of_a_file_is_not_waited_for(failing: Any, tmp_path: Path, name: str) -> None:
    failing[1].to_parquet(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(cf.ExportError, match=name):
        failing[1].to_parquet(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="permissions are Unix's")
def test_replaced_files_keep_their_permissions(failing: Any, tmp_path: Path) -> None:
    _, query = failing
    export = query.to_parquet(tmp_path / "d")
    for path in (*export.parts, export.manifest):
        path.chmod(0o640)
    again = query.to_parquet(tmp_path / "d", mode="overwrite", columns=["height"])
    assert {path.stat().st_mode & 0o777 for path in (*again.parts, again.manifest)} == {0o640}
    for name, method in (("a.csv", "to_csv"), ("a.jsonl", "to_json"), ("a.parquet", "to_parquet")):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o600)
        getattr(query, method)(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="permissions are Unix's")
def test_records_beside_a_private_file_are_private(failing: Any, tmp_path: Path) -> None:
    service, query = failing
    service.faults = [{"kind": "status", "status": 503, "every": 4}]
    with pytest.raises(cf.ServiceUnavailableError):
        query.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv.part").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name == "nt", reason="permissions are Unix's")
def test_lock_can_be_opened_by_writers_only(tmp_path: Path) -> None:
    with locked_dir(tmp_path / "d"):
        assert not (tmp_path / "d" / ".lock").stat().st_mode & 0o444


KINDS: tuple[Any, ...] = (1.5, "x", [[]])
WRONG_KINDS: list[dict[str, Any]] = [
    *({name: value} for name in Manifest.__dataclass_fields__ for value in KINDS),
    *({name: {"a": [1]}} for name in Manifest.__dataclass_fields__ if name != "cursor"),
    {"query": {"call": "gone", "chain": "X", "arguments": {}}},
    {"watermark": [["0xzz", 1]]},
    {"watermark": [["ab", True]]},
    {"absent": [["ab", 1]]},
    {"since": {"path": "a\0b", "sha256": "0" * 64}},
    {"since": {"path": "a", "sha256": "\x1b[2J"}},
    {"watermark": [["ab", 2**63]]},
    {"settled": {"settle": 1, "end_height": 2**64, "corrected_above": 1, "is_compared": True, "corrections": []}},
    {"parts": []},
    {"parts": [{"name": "part-000000.parquet", "rows": True, "bytes": 1, "sha256": ""}]},
    {"parts": [{"name": "part-\u0660\u0660\u0660\u0660\u0660\u0660.parquet", "rows": 1, "bytes": 1, "sha256": ""}]},
    {"settled": {"settle": "a", "end_height": 1, "corrected_above": 1, "is_compared": True, "corrections": []}},
    {"cursor": {"version": 7}, "finished": False},
    {"version": [1]},
    {"version": 1e400},
]


@pytest.mark.parametrize("change", WRONG_KINDS, ids=str)
def test_manifest_of_other_kinds_is_an_export_error(failing: Any, tmp_path: Path, change: dict[str, Any]) -> None:
    service, query = failing
    export = query.to_parquet(tmp_path / "d")
    export.manifest.write_text(json.dumps(json.loads(export.manifest.read_text()) | change))
    sent = service.request_count
    calls: list[Any] = [
        lambda: query.to_parquet(tmp_path / "d"),
        lambda: query.to_parquet(tmp_path / "e", since=tmp_path / "d"),
        lambda: chainframe.exports.read(tmp_path / "d"),
        lambda: chainframe.exports.Export.open(tmp_path / "d"),
        lambda: query.to_parquet_series(tmp_path / "d"),
        lambda: query.follow(start=export),
    ]
    for call in calls:
        with pytest.raises(cf.ChainframeError):
            call()
    assert service.request_count == sent


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 10_000, "null", "\ufeff{}", '{"version": 1}'])
def test_manifest_that_is_no_state_is_an_export_error(failing: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / Manifest.NAME).write_text(text)
    with pytest.raises(cf.ExportError, match="is not the manifest"):
        failing[1].to_parquet(tmp_path)


@pytest.mark.parametrize("target", ["daily", "blocks.csv"])
def test_files_of_another_export_in_place_of_a_moved_directory_are_kept(tmp_path: Path, target: str) -> None:
    written = tmp_path / target if target == "daily" else tmp_path / f"{target}.part"
    blocks = [{"hash": f"0x{height}", "height": str(height)} for height in range(60, 0, -1)]
    others: list[chainframe.exports.Export] = []

    def export(client: cf.Client) -> chainframe.exports.Export:
        query = client.blocks(page_size=10)
        if target == "daily":
            return query.to_parquet(tmp_path / target, max_rows_per_file=20)
        return query.to_csv(tmp_path / target)

    with StrictServer() as server, server.client(concurrency=1) as client, server.client(concurrency=1) as other:

        def respond(request: Request) -> Response:
            page, limit = int(request.query["page"]), int(request.query["limit"])
            if page == 4 and not (tmp_path / "moved").exists():
                written.rename(tmp_path / "moved")
                others.append(export(other))
            shown = blocks[(page - 1) * limit : page * limit]
            pages = str(-(-len(blocks) // limit))
            return page_of("blocks", shown, page=str(page), limit=str(limit), totalPage=pages)

        server.on("blocks", respond)
        with pytest.raises(cf.ExportError, match="was moved or removed while an export wrote to it"):
            export(client)
        (finished,) = others
        assert finished.complete
        stored = {
            path: path.read_bytes() for path in (tmp_path / target, *(tmp_path / target).glob("*")) if path.is_file()
        }
        assert export(client).rows == finished.rows == 60
        assert stored == {path: path.read_bytes() for path in stored}


@pytest.mark.skipif(os.name == "nt", reason="a directory with an open file cannot be moved there")
def test_lock_of_another_run_in_place_of_a_moved_directory_is_kept(tmp_path: Path) -> None:
    directory = tmp_path / "daily"
    with locked_dir(directory):
        directory.rename(tmp_path / "moved")
        directory.mkdir()
        (directory / ".lock").touch()
    assert (directory / ".lock").exists()
