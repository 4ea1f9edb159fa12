"""`settle`: a series of exports equals the list, although the chain changes below its head."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import chainframe as cf
import chainframe.exports
import reference_client
from chainframe.cli import main
from chainframe.testing import LocalService
from exports.test_exports_killed import die_at, ended, in_a_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SEEDS = int(os.environ.get("CHAINFRAME_TEST_SERIES", "4"))
CALLS = ["transactions", "transactions from", "cross_chain_transactions", "blocks", "token_transfers"]


def query_of(service: LocalService, client: cf.Client, call: str) -> cf.Query[Any]:
    if call == "transactions from":
        return client.transactions(start_height=18_000_002)
    if call == "token_transfers":
        return client.token_transfers(
            reference_client.get(service, "tokens", limit="1")[0]["tokenList"][0]["tokenContractAddress"]
        )
    query: cf.Query[Any] = getattr(client, call)()
    return query


def advance(service: LocalService, steps: int, growth: int = 1) -> None:
    service.growth = growth
    for _ in range(steps):
        reference_client.get(service, "blocks", limit="1")
    service.growth = 0


def reorganize(service: LocalService, depth: int) -> None:
    service.reorg = (1, depth)
    reference_client.get(service, "blocks", limit="1")
    service.reorg = None


def height_of(table: pa.Table) -> str:
    return "height" if "height" in table.schema.names else "zone_block_height"


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def end_of(directory: Path) -> int:
    end: int = json.loads((directory / "_manifest.json").read_text())["settled"]["end_height"]
    return end


def assert_settled(query: cf.Query[Any], directory: Path) -> None:
    """The series has the records up to its end, as the API has them now."""
    now = query.to_arrow()
    settled = now.filter(pc.field(height_of(now)) <= end_of(directory))
    series = chainframe.exports.read(directory).to_table()
    assert series.schema == now.schema
    assert rows(series) == rows(settled)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_series_equals_the_settled_list(tmp_path: Path, call: str, seed: int) -> None:
    chance = random.Random(f"{call} {seed}")
    settle = chance.randint(2, 9)
    late, pending = ((chance.random(), chance.randint(1, 2 * settle)) for _ in range(2))
    corrections = 0
    with (
        LocalService(transactions=120, seed=seed, late=late, pending=pending) as service,
        service.client(rate_limit=None) as client,
    ):
        query = query_of(service, client, call)
        advance(service, 12)
        days: list[Path] = []
        for day in range(6):
            directory = tmp_path / str(day)
            export = query.to_parquet(directory, since=days[-1] if days else None, settle=settle, max_rows_per_file=40)
            assert export.complete
            corrections += len(export.corrections)
            assert_settled(query, directory)
            sent = service.request_count
            assert query.to_parquet(directory, since=days[-1] if days else None, settle=settle) == export
            assert service.request_count == sent
            days.append(directory)
            if chance.random() < 0.7:
                reorganize(service, chance.randint(1, 2 * settle))
            advance(service, chance.randint(0, 8), chance.randint(1, 3))
        everything = chainframe.exports.read(days).to_table()
        assert rows(everything) == rows(chainframe.exports.read(days[-1]).to_table())
    assert corrections == sum(len([*day.glob("_corrections-*.data")]) for day in days)


@pytest.mark.parametrize("call", ["transactions", "blocks"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_series_exported_while_the_chain_changes_settles(tmp_path: Path, call: str, seed: int) -> None:
    chance = random.Random(seed)
    with (
        LocalService(transactions=120, seed=seed, late=(0.2, 6), pending=(0.5, 5)) as service,
        service.client(rate_limit=None) as client,
    ):
        query = query_of(service, client, call)
        day: Path | None = None
        for number in range(6):
            directory, mode = tmp_path / str(number), "resume"
            service.growth, service.reorg = (chance.randint(1, 3), (chance.randint(2, 9), 3))
            for _ in range(40):
                try:
                    query.to_parquet(directory, since=day, settle=8, mode=mode)  # type: ignore[arg-type]
                    break
                except cf.PaginationDriftError:
                    mode = "overwrite"
                    service.growth, service.reorg = 0, None
            day = directory
        service.growth, service.reorg = 0, None
        assert day is not None
        last = tmp_path / "last"
        query.to_parquet(last, since=day, settle=8)
        assert_settled(query, last)


def test_corrections_name_what_was_removed_and_replaced(tmp_path: Path) -> None:
    blocks = [{"height": height, "hash": f"0x{height:x}", "transaction_count": 1} for height in range(20, 0, -1)]
    with LocalService(data={"blocks": blocks}) as service, service.client() as client:
        query = client.blocks()
        first = query.to_parquet(tmp_path / "0", settle=4)
        assert (first.rows, first.corrections) == (16, ())
        changed = [dict(block) for block in blocks]
        changed[5]["transaction_count"] = 7  # height 15
        changed[6]["hash"] = "0xfe"  # height 14
        service.load("blocks", [{"height": 22, "hash": "0x22"}, {"height": 21, "hash": "0x21"}, *changed])
        second = query.to_parquet(tmp_path / "1", since=first, settle=4)
        (file,) = second.corrections
        found = [(row["_change"], row["height"], row["hash"]) for row in pq.read_table(file).to_pylist()]
        assert sorted(found) == [("removed", 14, "0xe"), ("replaced", 15, "0xf")]
        added = pyarrow.dataset.dataset([*map(str, second.parts)]).to_table()
        assert Counter(added["height"].to_pylist()) == Counter([14, 17, 18])
        assert_settled(query, tmp_path / "1")
        relation = duckdb.from_arrow(chainframe.exports.read(second))
        assert relation.count("*").fetchall() == [(18,)]


def test_change_below_the_settled_heights_raises_and_names_the_height(tmp_path: Path) -> None:
    blocks = [{"height": height, "hash": f"0x{height:x}"} for height in range(30, 0, -1)]
    with LocalService(data={"blocks": blocks}) as service, service.client() as client:
        query = client.blocks()
        query.to_parquet(tmp_path / "0", settle=5)
        # The export ended at height 25, and heights 21 to 25 are compared.
        blocks[10]["hash"] = "0xother"
        service.load("blocks", blocks)
        with pytest.raises(cf.SettledHeightError, match="height 20 changed after it was exported") as raised:
            query.to_parquet(tmp_path / "1", since=tmp_path / "0", settle=5)
        assert raised.value.height == 20
        export = query.to_parquet(tmp_path / "2", since=tmp_path / "0", settle=6)
        assert (len(export.corrections), export.complete) == (1, True)
        assert_settled(query, tmp_path / "2")


def test_missing_height_below_the_settled_heights_raises(tmp_path: Path) -> None:
    blocks = [{"height": height, "hash": f"0x{height:x}"} for height in range(30, 0, -1)]
    with LocalService(data={"blocks": blocks}) as service, service.client() as client:
        client.blocks().to_parquet(tmp_path / "0", settle=5)
        service.load("blocks", [block for block in blocks if block["height"] != 20])
        with pytest.raises(cf.SettledHeightError, match="height 20"):
            client.blocks().to_parquet(tmp_path / "1", since=tmp_path / "0", settle=5)


@pytest.mark.parametrize("call", ["transactions from", "transactions"])
def test_settled_export_killed_at_any_step_is_the_same_after_the_next_run(tmp_path: Path, call: str) -> None:
    with LocalService(transactions=60, seed=3, pending=(0.5, 8), late=(0.3, 8)) as service:
        with service.client(rate_limit=None) as client:
            advance(service, 10, 2)
            query_of(service, client, call).to_parquet(tmp_path / "first", settle=4)
            advance(service, 12, 2)
            expected = query_of(service, client, call).to_parquet(
                tmp_path / "expected", since=tmp_path / "first", settle=4
            )
            assert expected.corrections
            rows_expected = rows(chainframe.exports.read(expected).to_table())

        def work(directory: Path, step: int) -> None:
            die_at(step)
            with service.client(rate_limit=None) as client:
                query_of(service, client, call).to_parquet(
                    directory, since=tmp_path / "first", settle=4, max_rows_per_file=5
                )

        step = 0
        for step in range(1, 500):
            directory = tmp_path / str(step)
            if ended(in_a_child(lambda d=directory, s=step: work(d, s))) == 0:  # type: ignore[misc]
                break
            with service.client(rate_limit=None) as client:
                export = query_of(service, client, call).to_parquet(
                    directory, since=tmp_path / "first", settle=4, max_rows_per_file=7
                )
            assert rows(chainframe.exports.read(directory).to_table()) == rows_expected
            listed = [*export.parts, *export.corrections, directory / "_manifest.json"]
            assert sorted(directory.iterdir()) == sorted(listed)
        assert step > 20


def test_interrupted_settled_export_is_resumed(tmp_path: Path) -> None:
    with LocalService(transactions=200) as service, service.client(rate_limit=None, max_retries=0) as client:
        query = client.blocks(page_size=10)
        service.faults = [{"kind": "status", "status": 503, "every": 7}]
        for _ in range(20):
            try:
                query.to_parquet(tmp_path, settle=5)
                break
            except cf.ServiceUnavailableError:
                continue
        service.faults = []
        assert query.to_parquet(tmp_path, settle=5).rows == 195
        assert_settled(query, tmp_path)


def test_settle_rejects_what_it_cannot_do(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        with pytest.raises(cf.InvalidParameterError, match="settle needs one list with its newest record first"):
            client.tokens().to_parquet(tmp_path / "0", settle=5)
        with pytest.raises(cf.InvalidParameterError, match="max_items must not be given with settle"):
            client.blocks(max_items=3).to_parquet(tmp_path / "0", settle=5)
        with pytest.raises(cf.InvalidParameterError, match="columns must include hash, by which the next"):
            client.blocks().to_parquet(tmp_path / "0", settle=5, columns=["height", "miner"])
        with pytest.raises(cf.InvalidParameterError, match="settle must be an integer from 1"):
            client.blocks().to_parquet(tmp_path / "0", settle=0)
        with pytest.raises(cf.InvalidParameterError, match="settle needs a directory"):
            client.blocks().to_parquet(tmp_path / "0.parquet", settle=5)
        assert [*tmp_path.iterdir()] == []
        first = client.blocks().to_parquet(tmp_path / "0", settle=5)
        with pytest.raises(cf.InvalidParameterError, match="settle must be given, as for"):
            client.blocks().to_parquet(tmp_path / "1", since=first)
        with pytest.raises(cf.ExportError, match=r"columns has .* there and not here"):
            client.blocks().to_parquet(tmp_path / "1", since=first, settle=5, columns=["hash", "height"])
        with pytest.raises(cf.ExportError, match="settle is 5 there and 6 here"):
            client.blocks().to_parquet(tmp_path / "0", settle=6)


def test_settled_export_continues_one_that_is_not(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        first = client.blocks().to_parquet(tmp_path / "0")
        reorganize(service, 3)
        second = client.blocks().to_parquet(tmp_path / "1", since=first, settle=5)
        assert len(pq.read_table(second.corrections[0])) == 3
        assert_settled(client.blocks(), tmp_path / "1")


def test_series_without_settle_is_read_too(tmp_path: Path) -> None:
    with LocalService(transactions=50, growth=2) as service, service.client() as client:
        first = client.blocks().to_parquet(tmp_path / "0")
        second = client.blocks().to_parquet(tmp_path / "1", since=first)
        assert chainframe.exports.read(second).to_table().num_rows == first.rows + second.rows


def test_read_rejects_what_is_no_series(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        days = [client.blocks().to_parquet(tmp_path / "0", settle=5)]
        for day in range(1, 3):
            advance(service, 3)
            days.append(client.blocks().to_parquet(tmp_path / str(day), since=days[-1], settle=5))
        with pytest.raises(cf.ExportError, match="does not continue"):
            chainframe.exports.read([days[0], days[2]])
        with pytest.raises(cf.ExportError, match="is not the first of its series"):
            chainframe.exports.read(days[1:])
        with pytest.raises(cf.ExportError, match="holds no export"):
            chainframe.exports.read(tmp_path)
        with pytest.raises(cf.InvalidParameterError, match="series must name at least one export"):
            chainframe.exports.read([])
        moved = tmp_path / "moved"
        (tmp_path / "0").rename(moved)
        with pytest.raises(cf.ExportError, match="holds no export"):
            chainframe.exports.read(days[2])
        assert chainframe.exports.read([moved, *days[1:]]).count_rows() == 51
        client.blocks().to_parquet(tmp_path / "0")
        with pytest.raises(cf.ExportError, match="is not the export that"):
            chainframe.exports.read(days[2])


def test_settle_in_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=50) as service:
        for name in ("base_url", "api_key", "secret_key", "passphrase"):
            monkeypatch.setenv(
                f"CHAINFRAME_{name.upper()}", service.url if name == "base_url" else getattr(service, name)
            )
        assert main(["blocks", "-o", f"{tmp_path}/0/", "--settle", "5"]) == 0
        advance(service, 2)
        assert main(["blocks", "-o", f"{tmp_path}/1/", "--since", f"{tmp_path}/0", "--settle", "5"]) == 0
        assert chainframe.exports.read(tmp_path / "1").count_rows() == 47
        assert main(["blocks", "-o", f"{tmp_path}/1.csv", "--settle", "5"]) == 2
