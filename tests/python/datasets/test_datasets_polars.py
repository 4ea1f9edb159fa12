"""Filters of polars on `query.scan()`: the rows are those of the collected frame, missing values included."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

from chainframe.datasets import lazy
from chainframe.testing import LocalService

POLARS = int(pl.__version__.partition(".")[0])
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TIMES = [None, *(NOON + dt.timedelta(milliseconds=step) for step in (0, 1, 2))]
VALUES: dict[str, list[Any]] = {
    "height": [None, 1, 2, 3],
    "name": [None, "a", "A", "b"],
    "flag": [None, True, False],
    "time": TIMES,
}
ROWS = [dict(zip(VALUES, row, strict=True)) for row in itertools.product(*VALUES.values())]
KINDS: Any = {"height": pa.int64(), "name": pa.string(), "flag": pa.bool_(), "time": pa.timestamp("ms", "UTC")}
TABLE = pa.Table.from_pylist(ROWS, pa.schema(KINDS))
FRAME = pl.DataFrame(TABLE)
ENGINES: tuple[Literal["in-memory", "streaming"], ...] = ("in-memory", "streaming")

Condition = pl.Expr


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(list(VALUES)))
    column = pl.col(name)
    present = [value for value in VALUES[name] if value is not None]
    if name == "time":
        present += [time + dt.timedelta(microseconds=500) for time in present]
    value, other = draw(st.sampled_from(present)), draw(st.sampled_from(present))
    several = draw(st.lists(st.sampled_from(present), max_size=3))
    conditions: list[Callable[[], Condition]] = [
        lambda: column == value,
        lambda: column != value,
        lambda: column > value,
        lambda: column.is_between(pl.lit(value), pl.lit(other)),
        lambda: column.is_in(several),
        lambda: ~column.is_in(several),
        lambda: column.is_in([*several, None]),
        lambda: column.is_in([*several, None], nulls_equal=True),
        column.is_null,
        column.is_not_null,
        lambda: column.eq_missing(pl.lit(value)),
        lambda: column.fill_null(value) == other,
    ]
    return draw(st.sampled_from(conditions))()


def combined(conditions: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    pairs = st.tuples(conditions, conditions)
    one = st.sampled_from(["__invert__", "is_null", "is_not_null"])
    two = st.sampled_from(["__and__", "__or__", "__xor__", "__eq__", "__ne__", "eq_missing"])
    return st.one_of(
        st.builds(lambda operation, inner: getattr(inner, operation)(), one, conditions),
        st.builds(lambda operation, both: getattr(both[0], operation)(both[1]), two, pairs),
        st.builds(lambda inner, both: pl.when(inner).then(both[0]).otherwise(both[1]), conditions, pairs),
    )


@example(~pl.col("height").is_in([1]), "in-memory")
@example(~pl.col("height").is_in([]), "streaming")
@example(pl.col("height").is_in([1]).is_null(), "in-memory")
@example(pl.col("height").is_in([]).is_null(), "in-memory")
@example(pl.col("height").is_in([1]).is_not_null(), "streaming")
@example(pl.col("name").is_in([None], nulls_equal=True), "in-memory")
@given(st.recursive(comparisons(), combined, max_leaves=5), st.sampled_from(ENGINES))
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_scan_has_the_rows_of_a_filtered_frame(condition: Condition, engine: Literal["in-memory", "streaming"]) -> None:
    try:
        expected = FRAME.filter(condition)
    except pl.exceptions.PolarsError:
        reject()  # early versions refuse some literals
    found = lazy.scan(pads.dataset(TABLE)).filter(condition).collect(engine=engine)
    assert found.equals(expected), condition


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame.filter(pl.col("height") > 1).select("name"),
        lambda frame: frame.head(30).filter(pl.col("height") > 1),
        lambda frame: frame.filter(~pl.col("height").is_in([1])).head(3),
        lambda frame: frame.slice(10, 50).filter(~pl.col("flag")),
        lambda frame: frame.filter(pl.col("height") == pl.col("height").max()).select("flag"),
        lambda frame: frame.with_row_index().filter(pl.col("index") > 100).select("index", "time"),
        lambda frame: frame.filter(pl.col("height") > 9),
        lambda frame: frame.filter(pl.col("flag")).select(pl.len()),
        lambda frame: frame.select(pl.len()),
        lambda frame: frame.head(0),
        lambda frame: frame.rename({"height": "level"}).filter(~pl.col("level").is_in([])).select("level"),
        lambda frame: pl.concat([frame, frame]).filter(pl.col("name").is_in(["a"]).is_null()),
        lambda frame: frame.select(pl.all_horizontal(pl.col("flag"), pl.col("name") == "a").sum()),
    ],
)
def test_scan_is_the_frame_to_every_operation(
    query: Callable[[pl.LazyFrame], pl.LazyFrame], engine: Literal["in-memory", "streaming"]
) -> None:
    found = query(lazy.scan(pads.dataset(TABLE))).collect(engine=engine)
    assert found.equals(query(FRAME.lazy()).collect(engine=engine))


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(transactions=900, seed=7) as service:
        yield service


@pytest.mark.skipif(POLARS < 2, reason="earlier versions keep the condition to themselves")
def test_filters_whose_missing_values_differ_in_arrow_narrow_the_requests(service: LocalService) -> None:
    with service.client(rate_limit=None) as client:
        transactions = client.transactions().collect()
        height = transactions[-1].height
        others = pl.col("state").is_in(["none"])
        wanted = (pl.col("height").is_in([height])) & ~others
        service.reset_request_log()
        found = client.transactions().scan().filter(wanted).collect()
        assert len(found) == sum(record.height == height for record in transactions)
        assert service.request_count == 1
        # A test for the result of a condition does not.
        assert client.transactions().scan().filter(wanted & others.is_not_null()).collect().equals(found)


def test_scan_requests_nothing_before_it_is_collected_and_pickles_without_other_packages(
    service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with service.client(rate_limit=None) as client:
        newest = client.blocks().first()
        assert newest is not None
        assert newest.height is not None
        service.reset_request_log()
        frame = client.blocks(page_size=20).scan().filter(pl.col("height") > newest.height - 5).select("height")
        assert frame.collect_schema() == {"height": pl.Int64}
        copied = pickle.loads(pickle.dumps(frame))
        assert service.request_count == 0
        assert copied.collect()["height"].to_list() == [newest.height - step for step in range(5)]
        assert service.request_count == 1


def test_first_rows_take_the_pages_that_they_need(service: LocalService) -> None:
    with service.client(rate_limit=None) as client:
        service.reset_request_log()
        assert len(client.blocks(page_size=20).scan().head(5).collect()) == 5
        assert service.request_count == 1


def test_failed_scan_names_its_cause() -> None:
    with (
        LocalService(transactions=300, faults=[{"kind": "status", "status": 402, "code": "50030"}]) as service,
        service.client() as client,
        pytest.raises(Exception, match="50030"),
    ):
        client.blocks().scan().filter(pl.col("height") > 0).collect()
