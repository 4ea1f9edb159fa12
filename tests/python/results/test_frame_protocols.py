"""`Records` and `Query` given to libraries as if they were data frames, and the default frame given to charts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import chainframe as cf

pd: Any = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

KINDS: dict[str, Callable[[cf.Client], Any]] = {
    "records": lambda client: client.large_transactions(max_items=30).collect(),
    "query": lambda client: client.large_transactions(max_items=30),
    "frame": lambda client: client.large_transactions(max_items=30).to_pandas(),
}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, client: cf.Client) -> Any:
    return KINDS[request.param](client)


def test_narwhals_wraps_every_column(source: Any, client: cf.Client) -> None:
    nw: Any = pytest.importorskip("narwhals")
    frame = nw.from_native(source, eager_only=True)
    expected = client.large_transactions(max_items=30).collect()
    assert frame.columns == expected.schema.names
    assert frame["amount"].to_list() == expected["amount"]


def amounts(client: cf.Client) -> list[float]:
    return [float(record.amount or 0) for record in client.large_transactions(max_items=30)]


@pytest.mark.filterwarnings("ignore")
def test_altair_draws_amounts_as_quantities(source: Any, client: cf.Client) -> None:
    alt: Any = pytest.importorskip("altair")
    chart = alt.Chart(source).mark_point().encode(x="transaction_time", y="amount")
    drawn = json.loads(chart.to_json())
    assert drawn["encoding"]["x"]["type"] == "temporal"
    assert drawn["encoding"]["y"]["type"] == "quantitative"
    (rows,) = drawn["datasets"].values()
    assert [float(row["amount"]) for row in rows] == pytest.approx(amounts(client), rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_altair_draws_missing_amounts_as_missing() -> None:
    alt: Any = pytest.importorskip("altair")
    from chainframe.exact import ExactArray  # noqa: PLC0415 - needs pandas

    frame = pd.DataFrame({"x": [1, 2], "amount": ExactArray._from_sequence([Decimal("1.5"), None])})
    drawn = json.loads(alt.Chart(frame).mark_point().encode(x="x", y="amount").to_json())
    assert [row["amount"] for row in next(iter(drawn["datasets"].values()))] == [1.5, None]


@pytest.mark.filterwarnings("ignore")
def test_plotly_draws_amounts_as_numbers(source: Any, client: cf.Client) -> None:
    px: Any = pytest.importorskip("plotly.express")
    figure = px.scatter(source, x="transaction_time", y="amount", size="amount", color="amount")
    assert [float(value) for value in figure.data[0].y] == pytest.approx(amounts(client))
    assert json.loads(figure.to_json())["data"]


@pytest.mark.filterwarnings("ignore")
def test_seaborn_draws_amounts_as_numbers(source: Any, client: cf.Client) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    sns: Any = pytest.importorskip("seaborn")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - see above

    try:
        # Of others than pandas frames, seaborn makes columns of objects, of which it draws no sizes.
        size = {"size": "amount"} if isinstance(source, pd.DataFrame) else {}
        # Axes of its own, since another test may have left some with dates.
        axes = sns.scatterplot(data=source, x="height", y="amount", ax=plt.figure().add_subplot(), **size)
        assert sorted(axes.collections[0].get_offsets()[:, 1]) == pytest.approx(sorted(amounts(client)))
    finally:
        plt.close("all")


def test_constructors_that_make_one_column_name_the_conversion(client: cf.Client) -> None:
    records = client.blocks(max_items=3).collect()
    with pytest.raises(TypeError, match=r"call records\.to_pandas\(\)"):
        pd.DataFrame(records)
    pl: Any = pytest.importorskip("polars")
    for source, name in ((records, "records"), (client.blocks(max_items=3), "query")):
        with pytest.raises(TypeError, match=rf"call {name}\.to_polars\(\)"):
            pl.from_arrow(source)
        assert pl.DataFrame(source).columns == records.schema.names
    assert list(pd.DataFrame(records.to_dicts()).columns) == records.schema.names
    assert pytest.importorskip("numpy").asarray(records).tolist() == list(records)


def test_list_of_records_has_the_columns_and_values_of_the_result(client: cf.Client) -> None:
    pl: Any = pytest.importorskip("polars")
    token = client.tokens(max_items=1).collect()[0].token_contract_address or ""
    transfers = client.token_transfers(token, max_items=300)
    for query in (transfers, client.blocks(max_items=3), client.large_transactions(max_items=5)):
        records: cf.Records[Any] = query.collect()
        rows = list(records)
        expected = records.to_polars()
        assert pl.DataFrame(rows).equals(expected.cast({pl.Datetime("ms", "UTC"): pl.Datetime("us", "UTC")}))
        frame = pd.DataFrame(rows)
        assert list(frame) == expected.columns
        assert [dict(row) for row in rows] == frame.astype(object).where(frame.notna(), None).to_dict("records")
        assert dataclasses.asdict(rows[0]) == dict(rows[0])


def test_interchange_frame_has_doubles_for_amounts(client: cf.Client) -> None:
    records = client.large_transactions(max_items=5).collect()
    frame = records.__dataframe__()
    assert list(frame.column_names()) == records.schema.names
    kind, bits, *_ = frame.get_column_by_name("amount").dtype
    assert (int(kind), bits) == (2, 64)
