"""Exports of sets that end below the head, and series of them."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe.exports import read
from chainframe.testing import LocalService
from conftest import needs_extra
from sets.test_sets import PAGE, Wallets, senders
from strict_server import page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from strict_server import StrictServer

pytestmark = [needs_extra, pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")]
SENDERS = ["0x" + "a" * 40, "0x" + "b" * 40]
SETTLE = 8


def lacks_only_oldest(folder: Path) -> bool:
    """True if exports lack nothing but what is too old for the API, which records without nonces do not show."""
    manifests = [json.loads(path.read_text()) for path in folder.rglob("_manifest.json")]
    reasons = {json.dumps(reason) for manifest in manifests for reason in manifest["report"]["reasons"]}
    return len(reasons) == 1 and "the last 12 months of an address: older records may exist" in reasons.pop()


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["queried"][0], row["tx_id"], row["height"]) for row in rows)


def settled(service: LocalService, values: list[str]) -> Counter[Any]:
    """Records that are `SETTLE` heights below the head."""
    client = service.client()
    head = client.transactions().first()
    assert head is not None
    return Counter(
        (value, record.tx_id, record.height)
        for value in values
        for record in client.address_transactions(value)
        if (record.height or 0) <= (head.height or 0) - SETTLE
    )


@pytest.mark.parametrize("seed", range(3))
def test_series_of_a_set_that_grows_has_each_settled_record_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chainframe.exports.set_writer import SetWriter  # noqa: PLC0415 - an extra

    chance = random.Random(seed)
    fetch, interrupts = SetWriter.fetch, 0

    def interrupted(writer: SetWriter) -> None:
        nonlocal interrupts
        moment = chance.random()
        if moment < 0.06:
            interrupts += 1
            raise InterruptedError
        fetch(writer)
        if moment > 0.94:
            interrupts += 1
            raise InterruptedError

    monkeypatch.setattr(SetWriter, "fetch", interrupted)
    with LocalService(transactions=500, seed=44, growth=2, reorg=(19, 4)) as service:
        client = service.client(concurrency=3)
        values = senders(service, 6)
        for run in range(9):
            if run == 8:
                service.growth, service.reorg = 0, None
                monkeypatch.setattr(SetWriter, "fetch", fetch)
            count = 3 + run // 3
            query = client.address_transactions(chance.sample(values[:count], count))
            try:
                query.to_parquet_series(tmp_path, settle=SETTLE, max_rows_per_file=4)
            except InterruptedError:
                # The export that was begun is continued with the values that have joined.
                continue
        assert interrupts > 0
        rows = read(tmp_path).to_table().to_pylist()
        assert counted(rows) == settled(service, values[:5])
        assert lacks_only_oldest(tmp_path)
        before = service.request_count
        again = client.address_transactions(values[:5]).to_parquet_series(tmp_path, settle=SETTLE)
        assert again.rows == 0
        assert service.request_count - before <= 1 + len(values)
        with pytest.raises(cf.ExportError, match="its cursor has the position of a list that the query lacks"):
            client.address_transactions(values[1:5]).to_parquet_series(tmp_path, settle=SETTLE)
        assert counted(read(tmp_path).to_table().to_pylist()) == counted(rows)


@pytest.mark.parametrize("is_async", [False, True])
def test_series_of_a_set_without_a_record_that_it_had_is_left_behind_by_another(
    tmp_path: Path, *, is_async: bool
) -> None:
    def transactions(count: int) -> list[dict[str, Any]]:
        heights = range(count, 0, -1)
        return [
            {"tx_id": f"{value}{height}", "height": height, "from_address": value}
            for height in heights
            for value in SENDERS
        ]

    with LocalService(transactions=0) as service, service.client() as client:
        service.load("address_transactions", transactions(40))
        query = client.address_transactions(SENDERS)

        def export(name: str, settle: int) -> Any:
            if is_async:
                return asyncio.run(query.to_parquet_series_async(tmp_path / name, settle=settle))
            return query.to_parquet_series(tmp_path / name, settle=settle)

        export("stopped", 5)
        lacking = [row for row in transactions(45) if row["height"] != 33]
        service.load("address_transactions", lacking)
        for settle in (5, 20):
            with pytest.raises(
                cf.SettledHeightError, match=r"height 33 of a list changed .*\. Run .* in another directory\.$"
            ) as caught:
                export("stopped", settle)
            assert caught.value.height == 33
        export("new", 5)
        assert lacks_only_oldest(tmp_path / "new")
        service.load("address_transactions", [row for row in transactions(50) if row["height"] != 33])
        assert export("new", 5).rows == 10
        # The list had only been behind.
        service.load("address_transactions", transactions(50))
        export("stopped", 5)
        assert read(tmp_path / "stopped").count_rows() == 90


def test_each_way_out_for_a_list_that_changed_in_a_series_works(tmp_path: Path) -> None:
    def transactions(count: int, lacking: int | None = None) -> list[dict[str, Any]]:
        return [
            {"tx_id": f"{value}{height}", "height": height, "from_address": value}
            for height in range(count, 0, -1)
            for value in SENDERS
            if (value, height) != (SENDERS[0], lacking)
        ]

    with LocalService(transactions=0) as service, service.client() as client:
        service.load("address_transactions", transactions(40))
        query = client.address_transactions(SENDERS)
        query.to_parquet_series(tmp_path / "stopped", settle=5)
        follow = query.follow(start="beginning", settle=5, poll=None)
        assert sum(len(batch) for batch in follow) == 70
        service.load("address_transactions", transactions(45, lacking=33))
        export = query.to_parquet_series(tmp_path / "stopped", settle=5)
        error = export.report.by_argument[SENDERS[0]]["error"]
        assert export.report.by_argument[SENDERS[1]]["error"] is None
        assert error.endswith(
            "; to have the list again, export to another directory, or follow from the beginning, or with undo"
        )
        other = query.to_parquet_series(tmp_path / "other", settle=5)
        again = query.follow(start="beginning", settle=5, poll=None)
        undone = query.follow(start=follow.cursor, settle=5, poll=None, undo=True)
        assert counted(other.to_arrow().to_pylist()) == counted(
            [record.to_dict() for batch in again for record in batch]
        )
        assert {event.after_height for event in undone if isinstance(event, cf.Undo)} == {32}
        assert all(follower.report.by_argument[SENDERS[0]]["error"] is None for follower in (again, undone))


@pytest.mark.parametrize("bound", ["bytes", "age"])
def test_file_of_a_set_ends_by_the_size_and_the_age_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    from chainframe.exports import set_writer  # noqa: PLC0415 - an extra

    with LocalService(transactions=200, seed=3) as service, service.client() as client:
        query = client.address_transactions(senders(service, 3))
        whole = query.to_parquet(tmp_path / "whole", settle=SETTLE)
        if bound == "bytes":
            monkeypatch.setattr(set_writer, "MAX_BYTES", 1)
        else:
            monkeypatch.setattr(set_writer, "MAX_AGE", 0.0)
        parts = query.to_parquet(tmp_path / "parts", settle=SETTLE)
    assert len(list((tmp_path / "whole").glob("*.parquet"))) == 1
    assert len(list((tmp_path / "parts").glob("*.parquet"))) >= 3
    assert counted(parts.to_arrow().to_pylist()) == counted(whole.to_arrow().to_pylist())


def test_cursor_of_another_release_does_not_blame_the_query(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        query = client.address_transactions(senders(service, 2))
        query.to_parquet(tmp_path / "first", settle=SETTLE)
        manifest = tmp_path / "first" / "_manifest.json"
        stated = json.loads(manifest.read_text())
        stated["cursor"]["follow"] = 2
        manifest.write_text(json.dumps(stated))
        problem = (
            r"first: its cursor has unsupported version 2 .*; use the release that wrote it, or export to another dir"
        )
        with pytest.raises(cf.ExportError, match=problem):
            query.to_parquet(tmp_path / "second", since=tmp_path / "first", settle=SETTLE)


def test_export_continues_another_and_names_refused_lists(server: StrictServer, tmp_path: Path) -> None:
    wallets = Wallets([7, 4, 0, 9], frozenset({1}))
    server.on("address_transactions", wallets)
    server.on("transactions", page_of("transactions", [wallets.record("0x01", 30)], totalPage="1"))
    query = server.client().address_transactions(wallets.names, page_size=PAGE)
    with pytest.warns(cf.IncompleteResultWarning, match="is not followed any more"):
        first = query.to_parquet(tmp_path / "first", settle=5)
    assert first.rows == 16
    assert not first.complete
    verdicts = first.report.by_argument
    assert {name for name, verdict in verdicts.items() if verdict["error"]} == wallets.refused
    assert [verdict["records"] for verdict in verdicts.values()] == [7, 0, 0, 9]
    before = len(server.requests)
    assert query.to_parquet(tmp_path / "first", settle=5).rows == 16
    assert len(server.requests) == before
    wallets.refused = set()
    wallets.lists[wallets.names[2]].insert(0, wallets.record(wallets.names[2], 26))
    wallets.lists[wallets.names[0]].insert(0, wallets.record(wallets.names[0], 29))
    server.on("transactions", page_of("transactions", [wallets.record("0x01", 31)], totalPage="1"))
    second = asyncio.run(query.to_parquet_async(tmp_path / "second", since=first, settle=5))
    assert counted(second.to_arrow().to_pylist()) == counted(
        [
            {"queried": [name], "tx_id": record["txId"], "height": int(record["height"])}
            for name, low, high in [(wallets.names[1], 1, 4), (wallets.names[2], 26, 26)]
            for record in wallets.lists[name]
            if low <= int(record["height"]) <= high
        ]
    )
    assert lacks_only_oldest(tmp_path / "second")
    assert read(second).to_table().num_rows == 21


def test_what_a_set_cannot_be_exported_as_is_refused_before_anything_is_sent(
    server: StrictServer, tmp_path: Path
) -> None:
    wallets = Wallets([2, 2])
    server.on("address_transactions", wallets)
    client = server.client()
    query = client.address_transactions(wallets.names)
    plain = query.to_parquet(tmp_path / "plain")
    before = len(server.requests)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: query.to_parquet(tmp_path / "b", since=plain), r"^settle must be given with since for several values"),
        (lambda: query.to_parquet(tmp_path / "b", since=plain, settle=5), r"^since must be an export .* with settle"),
        (lambda: client.blocks(height=[1, 2]).to_parquet(tmp_path / "b", settle=5), r"^follow is not possible for blo"),
        (
            lambda: client.tokens(token_contract_address=["0xa"]).to_parquet_series(tmp_path / "b"),
            r"^follow is not pos",
        ),
        (
            lambda: client.address_transactions(wallets.names, unique=True).to_parquet(tmp_path / "b", settle=5),
            r"^unique must not be given where new records are followed",
        ),
        (lambda: query.to_csv(tmp_path / "b.csv", since=plain), r"^address must be one value for to_csv\(since"),
    ]
    for export, problem in refused:
        with pytest.raises(cf.InvalidParameterError, match=problem):
            export()
    assert len(server.requests) == before
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]
