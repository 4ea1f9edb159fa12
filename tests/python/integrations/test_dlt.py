"""`chainframe.integrations.dlt`: a pipeline that follows a list, in two destinations, after losses."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import dlt
import duckdb
import pytest

import chainframe as cf
from chainframe.integrations.dlt import follow
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of libraries among themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
COLUMNS = ["height", "tx_id", "amount"]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "dlt"))


@pytest.fixture
def service() -> Iterator[LocalService]:
    with LocalService(transactions=200, seed=7) as running:
        yield running


@dataclass
class Place:
    """A destination, and the folder in which the pipeline works."""

    kind: str
    folder: Path

    def pipeline(self) -> dlt.Pipeline:
        where: Any
        if self.kind == "duckdb":
            where = dlt.destinations.duckdb(str(self.folder / "pipeline.duckdb"))
        else:
            where = dlt.destinations.filesystem(f"file://{self.folder}/lake")
        folder = str(self.folder / "work")
        return dlt.pipeline("chain", destination=where, dataset_name="chain", pipelines_dir=folder)

    def run(self, query: cf.Query[Any]) -> None:
        resource = follow(query, "transfers", columns=COLUMNS)
        if self.kind == "delta":
            resource.apply_hints(table_format="delta")
        self.pipeline().run(resource)

    def rows(self) -> list[tuple[Any, ...]]:
        if self.kind == "duckdb":
            with duckdb.connect(str(self.folder / "pipeline.duckdb")) as database:
                found = database.execute("select height, tx_id, amount from chain.transfers").fetchall()
        else:
            table = deltalake.DeltaTable(self.folder / "lake" / "chain" / "transfers").to_pyarrow_table()
            found = [tuple(row.values()) for row in table.select(COLUMNS).to_pylist()]
        return sorted(found)

    def lose_work(self) -> None:
        """Lose the files of the pipeline, as a container does."""
        shutil.rmtree(self.folder / "work")

    def forget_last_load(self) -> None:
        """Restore what a process leaves that is killed between the rows of a package and the end of its load."""
        if self.kind == "duckdb":
            with duckdb.connect(str(self.folder / "pipeline.duckdb")) as database:
                last = "(select max(load_id) from chain._dlt_loads)"
                database.execute(f"delete from chain._dlt_loads where load_id = {last}")
        else:
            max((self.folder / "lake" / "chain" / "_dlt_loads").glob("*.jsonl")).unlink()


@pytest.fixture(params=["duckdb", "delta"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def reorganize(service: LocalService, query: cf.Query[Any]) -> None:
    """Add records, and replace the newest six heights."""
    service.growth, service.reorg = 2, (1, 6)
    query.first()
    service.growth, service.reorg = 0, None


def listed(query: cf.Query[Any], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Records of the list up to the height that the table has."""
    found = [(each.height, each.tx_id, each.amount) for each in query.collect() if each.height is not None]
    return sorted(row for row in found if row[0] <= rows[-1][0])


def test_table_is_the_list_after_growth_reorganizations_and_losses(service: LocalService, place: Place) -> None:
    with service.client(rate_limit=None) as client:
        query = client.transactions()
        place.run(query)
        before = place.rows()
        assert before == listed(query, before)
        # The state comes back from the destination.
        place.lose_work()
        service.reset_request_log()
        place.run(query)
        assert (place.rows(), service.request_count) == (before, 1)
        reorganize(service, query)
        place.run(query)
        # The rows are there, but the position is the one before.
        place.forget_last_load()
        place.lose_work()
        place.run(query)
        rows = place.rows()
        assert rows == listed(query, rows)
        assert set(rows) - set(before)
        assert set(before) - set(rows)


def records(branch: str, counts: dict[int, int]) -> list[dict[str, Any]]:
    rows = [
        {"tx_id": f"0x{branch}{height}{number}", "height": height, "block_hash": f"0x{branch}{height}"}
        for height, count in counts.items()
        for number in range(count)
    ]
    return rows[::-1]


def test_heights_that_have_lost_records_lose_their_rows(tmp_path: Path) -> None:
    place = Place("duckdb", tmp_path)

    first = dict.fromkeys(range(1, 30), 3)
    second = {**first, 28: 1, 29: 2, 30: 1}
    del second[27]
    third = {height: count for height, count in second.items() if height < 29}
    service = LocalService(transactions=0, data={"transactions": records("a", first)})
    with service, service.client(rate_limit=None) as client:
        query = client.transactions()
        place.run(query)
        kept = dict.fromkeys(range(1, 27), 3)
        for branch, counts in (("b", second), ("c", third)):
            changed = {height: count for height, count in counts.items() if height > 26}
            service.load("transactions", records(branch, changed) + records("a", kept))
            place.run(query)
            rows = place.rows()
            assert rows == listed(query, rows)
            assert [row[0] for row in rows if row[0] > 25] == [26] * 3 + [28, 29, 29] * (branch == "b")


def test_rows_of_a_load_that_the_state_does_not_know_are_replaced_by_height(tmp_path: Path) -> None:
    place = Place("duckdb", tmp_path)
    counts = dict.fromkeys(range(1, 30), 3)
    service = LocalService(transactions=0, data={"transactions": records("a", counts)})
    with service, service.client(rate_limit=None) as client:
        query = client.transactions()
        place.run(query)
        place.forget_last_load()
        place.lose_work()
        service.load("transactions", records("b", {28: 1, 29: 1}) + records("a", dict.fromkeys(range(1, 28), 3)))
        place.run(query)
        rows = place.rows()
        assert rows == listed(query, rows)


def test_columns_without_the_height_are_refused(service: LocalService) -> None:
    with service.client() as client, pytest.raises(cf.InvalidParameterError, match=r"columns \(tx_id\) must contain"):
        follow(client.transactions(), "t", columns=["tx_id"])
    with (
        service.client() as client,
        pytest.raises(cf.InvalidParameterError, match=r"^columns must be a list of names; got "),
    ):
        follow(client.transactions(), "t", columns="height")


def test_query_of_several_values_is_refused(service: LocalService) -> None:
    with (
        service.client() as client,
        pytest.raises(cf.InvalidParameterError, match=r"^query must have one value of each"),
    ):
        follow(client.address_transactions(["0xab", "0xcd"]), "t")
