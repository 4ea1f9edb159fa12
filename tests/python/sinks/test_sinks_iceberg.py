"""`sync` into Iceberg: what a catalog, other writers and the upkeep of a table do to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import Transaction

import chainframe as cf
import kept_sinks
from chainframe.sinks import Change, Extent, Position
from chainframe.sinks.columns import sum_of
from chainframe.sinks.iceberg import IcebergSink
from chainframe.sinks.targets import sink_of
from chainframe.testing import LocalService
from chainframe.testing._sink_script import runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

# Of libraries among themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
NAME = "chain.t"
FIRST, CORRECTED, *_ = runs()
RESET, OTHER = runs()[4:6]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return kept_sinks.catalog_at(str(tmp_path))


@pytest.fixture
def synced(catalog: Catalog) -> Table:
    """A table after two runs, of three commits and more."""
    for run in (FIRST, CORRECTED):
        run.sync(sink_of(catalog, NAME))
    return catalog.load_table(NAME)


def stored(catalog: Catalog) -> list[tuple[Any, ...]]:
    rows = catalog.load_table(NAME).scan().to_arrow().select(["height", "tx_id", "amount"]).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=300, seed=7) as running:
        yield running


def test_table_follows_a_list_and_other_engines_read_it(catalog: Catalog, service: LocalService) -> None:
    with service.client(rate_limit=None) as client:
        query = client.transactions()
        first = query.sync(catalog, table=NAME)
        assert query.sync(catalog.load_table(NAME)).commits == 0
        service.growth, service.reorg = 2, (1, 6)
        query.first()
        service.growth, service.reorg = 0, None
        second = query.sync(catalog, table=NAME)
        assert first.rows_added > 0 < second.rows_removed
        height = second.height or 0
        listed = [each for each in query.collect() if each.height is not None and each.height <= height]
    expected = sorted(((each.height, each.tx_id, each.amount) for each in listed), key=str)
    assert stored(catalog) == expected
    with duckdb.connect() as database:
        database.register("found", catalog.load_table(NAME).scan().to_arrow())
        found = database.execute("select count(*), sum(amount) from found").fetchall()
    assert found == [(len(listed), sum(each.amount for each in listed if each.amount is not None))]


def test_position_is_a_property_of_the_snapshot(catalog: Catalog, synced: Table) -> None:
    snapshot = synced.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    position = Position.from_json(str(snapshot.summary["chainframe.position"]))
    assert position == CORRECTED.position()
    assert position.heights == sum(row[0] for row in stored(catalog))


def test_table_that_was_rolled_back_continues_from_its_snapshot(catalog: Catalog, synced: Table) -> None:
    earlier = [each.snapshot_id for each in synced.snapshots()][1]
    synced.manage_snapshots().rollback_to_snapshot(earlier).commit()
    assert len(stored(catalog)) == 4
    CORRECTED.sync(sink_of(catalog, NAME))
    assert stored(catalog) == sorted(CORRECTED.rows, key=str)


def test_table_whose_snapshots_expired_is_continued(catalog: Catalog, synced: Table) -> None:
    synced.append(synced.scan().to_arrow().slice(0, 0))
    synced.maintenance.expire_snapshots().older_than(datetime.now(UTC) + timedelta(days=1)).commit()
    assert len(catalog.load_table(NAME).snapshots()) == 1
    assert CORRECTED.sync(sink_of(catalog, NAME)).commits == 0


def test_rows_of_others_are_an_error_and_reset_fetches_the_table_again(catalog: Catalog, synced: Table) -> None:
    synced.append(synced.scan(limit=1).to_arrow())
    with pytest.raises(cf.ExportError, match=r"chain\.t has 9 rows up to height 4, and sync left 8 .*: others have"):
        CORRECTED.sync(sink_of(catalog, NAME))
    RESET.sync(sink_of(catalog, NAME))
    assert stored(catalog) == sorted(RESET.rows, key=str)


def move(table: Table) -> None:
    """Replace the rows of height 2 by as many of height 1, which leaves count and greatest height."""
    moved = table.scan(row_filter="height == 1").to_arrow()
    table.delete("height == 2")
    table.append(moved)


def test_rows_that_others_moved_are_an_error(catalog: Catalog, synced: Table) -> None:
    assert synced.scan(row_filter="height == 1").count() == synced.scan(row_filter="height == 2").count() > 0
    move(synced)
    for _ in range(2):
        with pytest.raises(cf.ExportError, match="of other heights than sync left: others have changed it; pass reset"):
            CORRECTED.sync(sink_of(catalog, NAME))
    RESET.sync(sink_of(catalog, NAME))
    assert stored(catalog) == sorted(RESET.rows, key=str)


def test_rows_that_others_moved_within_a_run_are_an_error_of_the_next(catalog: Catalog) -> None:
    FIRST.sync(sink_of(catalog, NAME))
    CORRECTED.sync(sink_of(catalog, NAME), lambda: move(catalog.load_table(NAME)))
    with pytest.raises(cf.ExportError, match="others have changed it; pass reset"):
        CORRECTED.sync(sink_of(catalog, NAME))


def test_heights_are_read_only_if_others_have_committed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    read = mock.Mock(side_effect=sum_of)
    monkeypatch.setattr("chainframe.sinks.iceberg.sum_of", read)
    FIRST.sync(sink_of(catalog, NAME))
    assert FIRST.sync(sink_of(catalog, NAME)).commits == 0
    assert read.call_count == 0
    table = catalog.load_table(NAME)
    table.append(table.scan().to_arrow().slice(0, 0))
    assert FIRST.sync(sink_of(catalog, NAME)).commits == 0
    assert read.call_count == 1


def test_other_columns_replace_those_of_the_table(catalog: Catalog, synced: Table) -> None:
    with synced.update_schema() as update:
        update.add_column("note", update._schema.find_type("tx_id"))
    OTHER.sync(sink_of(catalog, NAME))
    table = catalog.load_table(NAME)
    assert [(str(field.field_type), field.name) for field in table.schema().fields] == [
        ("long", "height"),
        ("string", "tx_id"),
        ("string", "amount"),
    ]
    assert stored(catalog) == OTHER.rows


def test_commit_is_not_repeated_on_top_of_another_run(catalog: Catalog, synced: Table) -> None:
    class Overtaken(IcebergSink):
        def _transaction(self, change: Any) -> Transaction:
            transaction = super()._transaction(change)
            if (other := runs()[2]).rows != stored(catalog):
                other.sync(sink_of(catalog, NAME))
            return transaction

    assert synced.properties.get("commit.retry.num-retries") is None
    with pytest.raises(cf.ExportError, match="another run of sync has committed meanwhile") as caught:
        runs()[2].sync(Overtaken(catalog, NAME))
    assert caught.value.retryable
    assert stored(catalog) == sorted(runs()[2].rows, key=str)


def test_commit_of_unknown_outcome_may_pass(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = sink_of(catalog, NAME)
    commit = catalog.commit_table

    def unanswered(*arguments: Any) -> Any:
        commit(*arguments)
        raise CommitStateUnknownException("the response was lost")

    with monkeypatch.context() as patched:
        patched.setattr(catalog, "commit_table", unanswered)
        with pytest.raises(cf.ExportError, match="the response was lost") as caught:
            FIRST.sync(sink)
    assert caught.value.retryable
    FIRST.sync(sink_of(catalog, NAME))
    assert stored(catalog) == sorted(FIRST.rows, key=str)


def test_undo_of_one_list_leaves_the_rows_of_the_others(catalog: Catalog) -> None:
    def change(before: Position | None, count: int, **options: Any) -> Change:
        return Change(before, Position(str(count), 5, count, "{}"), **options)

    ids = [f"{argument}{height}" for argument in "ab" for height in range(1, 6)]
    table = pa.table(
        {
            "height": [int(each[1]) for each in ids],
            "tx_id": ids,
            "amount": pa.nulls(10, pa.decimal128(38, 18)),
            "queried": [[each[0]] for each in ids],
        }
    )
    sink = sink_of(catalog, NAME)
    assert sink.takes_sets
    assert sink.commit(first := change(None, 10, rows=table)) == 0
    assert sink.commit(second := change(first.after, 10, undo_after=3, undo_of="A")) == 2
    assert sink.look() == (second.position(2), Extent(8, 5))
    assert {row[1] for row in stored(catalog)} == set(ids) - {"a4", "a5"}
    assert sink.commit(change(second.position(2), 8, undo_after=1, undo_of="c")) == 0
    assert len(stored(catalog)) == 8


def test_tables_and_names_of_others_are_refused(catalog: Catalog, synced: Table) -> None:
    catalog.create_table("chain.other", schema=synced.schema())
    with pytest.raises(cf.ExportError, match=r"chain\.other exists and was not made by sync"):
        FIRST.sync(sink_of(catalog, "chain.other"))
    with pytest.raises(cf.ExportError, match="nowhere"):
        FIRST.sync(sink_of(catalog, "nowhere.t"))
    with pytest.raises(cf.InvalidParameterError, match=r"table \('t'\) must name a namespace and a table"):
        sink_of(catalog, "t")
    with pytest.raises(cf.InvalidParameterError, match="table must not be given for an Iceberg table"):
        sink_of(synced, NAME)
    with pytest.raises(cf.InvalidParameterError, match="table must name a table of the database"):
        sink_of(catalog, None)
