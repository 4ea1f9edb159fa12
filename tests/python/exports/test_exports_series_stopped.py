"""Series that a height has stopped which changed below those that are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import chainframe.exports
from chainframe.exports.directory import STAGING, LocalStore
from chainframe.testing import Fault, LocalService
from strict_server import StrictServer, page_of

if TYPE_CHECKING:
    from pathlib import Path


def blocks(count: int, replaced: int = 0) -> list[dict[str, Any]]:
    return [{"height": height, "hash": f"0x{height + 1000 * (height == replaced)}"} for height in range(count, 0, -1)]


@pytest.mark.parametrize("has_news", [False, True])
def test_stopped_series_continues_with_a_larger_settle(tmp_path: Path, *, has_news: bool) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path, settle=5)
        if not has_news:
            # An export without news, which the next one is to replace.
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(90, replaced=20))
        for _ in range(2):
            with pytest.raises(cf.SettledHeightError, match=r"height 20 changed .* at least 6, more if .* too$"):
                query.to_parquet_series(tmp_path, settle=5)
        staged: set[Path] = set()
        # A run that is interrupted is continued, and not begun again.
        for every in (9, 1):
            service.faults = [{"kind": "status", "status": 503, "every": every}]
            with pytest.raises(cf.ServiceError):
                query.to_parquet_series(tmp_path, settle=12)
            before, staged = staged, set(tmp_path.glob(f"*/{STAGING}/*.parquet"))
            assert staged >= before
            assert staged
        service.faults = []
        query.to_parquet_series(tmp_path, settle=12)
        service.load("blocks", blocks(100, replaced=20))
        query.to_parquet_series(tmp_path, settle=5)
        table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
        assert table["hash"].to_pylist() == [row["hash"] for row in reversed(blocks(95, replaced=20))]


@pytest.mark.parametrize("has_read", [False, True])
def test_interrupted_replacement_is_finished_before_what_is_new_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_read: bool
) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        for _ in range(2):
            # The second export is without news.
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(90))
        with monkeypatch.context() as patch:
            if has_read:
                patch.setattr(LocalStore, "replace_with", interrupt)
            else:
                service.faults = [{"kind": "status", "status": 503, "every": 4}]
            with pytest.raises((KeyboardInterrupt, cf.ServiceError)):
                query.to_parquet_series(tmp_path, settle=5)
        service.faults = []
        service.load("blocks", blocks(100))
        query.to_parquet_series(tmp_path, settle=5)
        table = chainframe.exports.read(tmp_path).to_table().sort_by("height")
    assert table["height"].to_pylist() == list(range(1, 96))


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_error_of_a_whole_list_of_an_address_says_how_its_series_continues(tmp_path: Path) -> None:
    """Its reason, that the API returns the last 12 months only, stays for good."""

    def sent(changed: int = 0) -> list[dict[str, str]]:
        heights = (100, 50)
        names = {height: "0x2" if height == changed else "0x1" for height in heights}
        return [{"txId": f"0x{height}", "height": str(height), "methodId": names[height]} for height in heights]

    def query(client: cf.Client) -> cf.Query[Any]:
        return client.address_transactions("0xa")

    with StrictServer() as server, server.client() as client:
        server.on("address_transactions", page_of("address_transactions", sent()))
        query(client).to_parquet_series(tmp_path, settle=10)
        server.on("address_transactions", page_of("address_transactions", sent(changed=50)))
        with pytest.raises(
            cf.SettledHeightError, match=r"height 50 changed .* a settle of at least 41, more if"
        ) as caught:
            query(client).to_parquet_series(tmp_path, settle=10)
        assert caught.value.path == str(tmp_path / "export-000001")
        query(client).to_parquet_series(tmp_path, settle=41)
    assert chainframe.exports.read(tmp_path).to_table()["method_id"].to_pylist() == ["0x2"]


def test_error_names_a_column_that_the_service_sends_no_more(tmp_path: Path) -> None:
    """With a larger settle at once, corrections would remove the values."""
    rows = [{**row, "miner": "0x1"} for row in blocks(30)]
    with LocalService(data={"blocks": rows}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", blocks(40))
        with pytest.raises(
            cf.SettledHeightError,
            match=r"; no record has miner now, .* sends this again, export once with a settle of at least 6, ",
        ):
            query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", [{**row, "miner": "0x1"} for row in blocks(40)])
        query.to_parquet_series(tmp_path, settle=6)
        table = chainframe.exports.read(tmp_path).to_table()
        assert table["miner"].to_pylist() == ["0x1"] * 34


def test_series_continues_after_members_are_sent_from_some_day_on(tmp_path: Path) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path, settle=5)
        service.load("blocks", [{**row, "miner": "0x1"} for row in blocks(40)])
        for settle in (5, 10):
            with pytest.raises(
                cf.SettledHeightError, match=r"; all records have miner now, .* a settle of 26 or more, which reads"
            ):
                query.to_parquet_series(tmp_path, settle=settle)
        query.to_parquet_series(tmp_path, settle=26)
        query.to_parquet_series(tmp_path, settle=5)
        table = chainframe.exports.read(tmp_path).to_table()
        assert table["miner"].to_pylist() == ["0x1"] * 35


def test_block_that_is_lacking_for_good_is_left_behind_by_another_series(tmp_path: Path) -> None:
    """No settle reads the list completely; a series that begins later reads the gap only once."""

    def lacking(count: int) -> list[dict[str, Any]]:
        return [row for row in blocks(count) if row["height"] != 20]

    with LocalService(data={"blocks": blocks(30)}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        query.to_parquet_series(tmp_path / "stopped", settle=5)
        service.load("blocks", lacking(40))
        advice = (
            r"1 block is missing between the others\. Run the export again later\. .* series in another directory\."
        )
        with pytest.raises(cf.SettledHeightError, match=rf"height 20 changed .* \(25\)\. .*{advice}$"):
            query.to_parquet_series(tmp_path / "stopped", settle=5)
        with pytest.raises(cf.ExportError, match=advice):
            query.to_parquet_series(tmp_path / "stopped", settle=6)
        with pytest.warns(cf.IncompleteResultWarning, match="1 block is missing"):
            query.to_parquet_series(tmp_path / "new", settle=5)
        for count in (45, 50):
            service.load("blocks", lacking(count))
            assert query.to_parquet_series(tmp_path / "new", settle=5).complete
        assert chainframe.exports.read(tmp_path / "new").count_rows() == 44


def test_error_after_an_export_was_finished_notes_its_reasons(tmp_path: Path) -> None:
    failed: Fault = {"kind": "status", "status": 503}
    rows = [row for row in blocks(30) if row["height"] != 5]
    with LocalService(data={"blocks": rows}) as service, service.client(max_retries=0) as client:
        query = client.blocks(page_size=5)
        service.faults = [{**failed, "every": 4}]
        with pytest.raises(cf.ServiceError):
            query.to_parquet_series(tmp_path, settle=5)
        service.faults = []
        service.respond = lambda _: failed if (tmp_path / "export-000001").exists() else None
        with pytest.warns(cf.IncompleteResultWarning), pytest.raises(cf.ServiceError) as caught:
            query.to_parquet_series(tmp_path, settle=5)
        note = f"{tmp_path / 'export-000000'} was finished before, and is incomplete: The heights of blocks have gaps"
        assert [text for text in caught.value.__notes__ if text.startswith(note)]


@pytest.mark.parametrize("name", ["_manifest.json", "part-000000.parquet"])
def test_damaged_export_of_a_series_has_no_advice_on_a_mode(tmp_path: Path, name: str) -> None:
    with LocalService(data={"blocks": blocks(30)}) as service, service.client() as client:
        newest = client.blocks().to_parquet_series(tmp_path, settle=5)
        (tmp_path / newest.path.name / name).write_text("[" * 100_000)
        with pytest.raises(cf.ExportError, match=r"; use another directory$") as caught:
            client.blocks().to_parquet_series(tmp_path, settle=5)
        assert [hint.action for hint in caught.value.hints] == ["use_another_directory"]
        assert caught.value.path == str(tmp_path / newest.path.name / name)
