"""Everyday pandas operations on the default frame, and the guide's table of those that fail on exact amounts."""

import datetime as dt
import decimal
import io
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import chainframe as cf
from chainframe.testing import LocalService
from repository import ROOT

mpl.use("Agg")

PANDAS_3 = pytest.mark.skipif(int(pd.__version__[0]) < 3, reason="the guide describes pandas 3")

GUIDE = ROOT / "docs/guide/dataframes.md"

OPERATIONS = """
frame[frame.transaction_time > "2026-01-30"]
frame[frame.transaction_time > pd.Timestamp("2026-01-30", tz="UTC")]
frame[frame.transaction_time > dt.datetime(2026, 1, 30, tzinfo=dt.UTC)]
frame[frame.transaction_time.between("2026-01-29", "2026-01-31")]
frame.query("transaction_time > '2026-01-30T00:00Z'")
frame.set_index("transaction_time").sort_index().loc["2026-01-30"]
frame.set_index("transaction_time").sort_index().loc["2026-01-29":"2026-01-30"]
frame.set_index("transaction_time").between_time("08:00", "12:00")
frame.transaction_time.dt.floor("h")
frame.set_index("transaction_time").index.floor("h")
frame.transaction_time.dt.tz_localize(None).dt.to_period("D")
frame.transaction_time.dt.tz_convert("Europe/Berlin")
frame.transaction_time.dt.date
frame.transaction_time.dt.strftime("%Y-%m-%d")
frame.transaction_time.diff()
(frame.transaction_time - frame.transaction_time.min()).dt.total_seconds()
pd.merge_asof(frame.sort_values("transaction_time"), prices(), on="transaction_time")
frame.merge(prices(), on="transaction_time")
frame.set_index("transaction_time").resample("D").size()
frame.set_index("transaction_time").resample("D").amount.sum()
frame.set_index("transaction_time").resample("D").amount.mean()
frame.set_index("transaction_time").resample("D").amount.ohlc()
frame.groupby(pd.Grouper(key="transaction_time", freq="D")).amount.sum()
frame.groupby("input").amount.sum()
frame.groupby("input").amount.mean()
frame.groupby("input").amount.agg(["sum", "min", "max", "count"])
frame.groupby("input").amount.median()
frame.groupby("input").amount.std()
frame.groupby("input").amount.quantile(0.9)
frame.groupby("input").amount.rank()
frame.groupby("input").amount.cumsum()
frame.groupby("input").amount.first()
frame.amount - frame.groupby("input").amount.transform("sum")
frame.groupby("input").output.nunique()
frame.groupby("input").amount.describe()
frame.pivot_table(index="input", columns="state", values="amount", aggfunc="sum")
pd.crosstab(frame.state, frame.method_id)
frame.amount.sum()
frame.amount.mean()
frame.amount.std()
frame.amount.median()
frame.amount.quantile([0.1, 0.9])
frame.amount.describe()
frame.describe()
frame.describe(include="all")
frame.nlargest(5, "amount")
frame.amount.nlargest(5)
frame.sort_values("amount")
frame.amount.rank()
frame.amount.cumsum()
frame.amount.diff()
frame.amount[frame.amount > 0].pct_change()
frame.amount.shift()
frame.amount.rolling(5).mean()
frame.amount.expanding().sum()
frame.amount.ewm(5).mean()
frame.amount + 1
frame.amount * 2
frame.amount * 2.5
frame.amount / 2
frame.amount * decimal.Decimal("1.5")
frame.amount + frame.tx_fee
frame.amount - frame.tx_fee
frame.amount * frame.tx_fee
frame[frame.amount > 0].tx_fee / frame[frame.amount > 0].amount
frame[frame.amount > 1]
frame[frame.amount > 1.5]
frame.amount.round(2)
frame.amount.abs()
frame.amount.astype(float)
frame.amount.isin([decimal.Decimal(0)])
frame.amount.fillna(0)
frame.amount.clip(upper=10)
frame.amount.clip(upper=frame.tx_fee)
frame.amount.clip(lower=frame.amount.shift())
np.log1p(frame.amount)
frame.amount.apply(lambda x: x * 2)
pd.cut(frame.amount, [-1, 1, 10, 1e9])
pd.qcut(frame.amount, 4, duplicates="drop")
frame[["amount", "tx_fee", "height"]].corr()
frame.state.value_counts()
frame[frame.input.str.startswith("0x6")]
frame.input.str.len()
frame[frame.state.isin(["success"])]
frame.drop_duplicates("input")
pd.concat([frame, frame])
frame.melt(id_vars="tx_id", value_vars=["amount", "tx_fee"])
frame[["amount", "tx_fee"]].stack()
frame.to_sql("t", sqlite3.connect(":memory:"))
frame.to_csv()
frame.to_json(orient="records")
frame.to_parquet(io.BytesIO())
frame.to_pickle(io.BytesIO())
frame.to_feather(io.BytesIO())
frame.convert_dtypes()
frame[["amount", "tx_fee"]].T * 2
frame[["amount", "tx_fee"]].cumsum(axis=1)
frame[["amount", "tx_fee"]].sum(axis=1)
frame[["amount", "tx_fee"]].diff(axis=1)
frame[["amount", "tx_fee"]].rank()
frame[["amount", "tx_fee"]].astype(frame.amount.dtype)
frame.pivot_table(index="state", values=["amount", "tx_fee"], aggfunc="sum", margins=True)
frame.merge(frame, on="amount")
frame.amount.to_numpy()
frame.plot(x="transaction_time", y="amount")
frame.amount.plot.hist()
frame.plot.scatter(x="amount", y="tx_fee")
frame.boxplot("amount")
frame.groupby("state").amount.sum().plot.bar()
frame.hist()
frame.info(buf=io.StringIO())
frame.head().to_html()
(frame.height - frame.height.min()) // 10
frame.select_dtypes("number").sum()
frame[frame.is_input_contract & ~frame.is_output_contract]
frame.loc[frame.amount.idxmax()]
frame.amount.where(frame.state == "success", 0)
frame.amount * (frame.state == "success")
np.where(frame.amount > 1, "big", "small")
frame.assign(total=frame.amount + frame.tx_fee)
frame.eval("total = amount + tx_fee")
frame.agg({"amount": "sum", "height": "max"})
frame.amount.head(3).prod()
frame.isna().sum()
frame.dropna()
frame.sample(5, random_state=1)
""".strip().splitlines()

NEEDS_DECIMALS = {'frame.amount * decimal.Decimal("1.5")'}


@pytest.fixture(scope="module")
def records() -> Iterator[cf.Records[cf.ChainTransaction]]:
    with LocalService(transactions=2_000, seed=7) as service, service.client() as client:
        yield client.transactions(max_items=500).collect()


def prices() -> pd.DataFrame:
    """A price every quarter of an hour."""
    times = pd.date_range("2026-01-01", periods=3_000, freq="15min", tz="UTC")
    return pd.DataFrame({"transaction_time": times, "price": np.arange(3_000.0)})


def fails(code: str, frame: pd.DataFrame, records: cf.Records[Any]) -> bool:
    names = {"frame": frame, "records": records, "prices": prices, "pd": pd, "np": np, "dt": dt, "io": io}
    try:
        eval(code, names | {"decimal": decimal, "sqlite3": sqlite3})
    except Exception:  # noqa: BLE001 - each library fails in its own way
        return True
    finally:
        plt.close("all")
    return False


def documented(table: int = 0) -> dict[str, str]:
    """Operations of one of the guide's tables, with the replacement of each."""
    text = GUIDE.read_text(encoding="utf-8").split("\n| Operation |")[table + 1]
    return dict(re.findall(r"^\| `(.+?)` \|.*\| `(.+?)` \|$", text, re.MULTILINE))


@pytest.mark.filterwarnings("ignore")
def test_operations_that_fail_on_the_default_frame_are_those_in_the_guide(
    records: cf.Records[cf.ChainTransaction],
) -> None:
    frame = records.to_pandas()
    failed = {code for code in OPERATIONS if fails(code, frame.copy(), records)}
    assert failed == set(documented())
    assert len(OPERATIONS) > 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", documented())
def test_replacement_in_the_guide_works_on_the_default_frame(
    records: cf.Records[cf.ChainTransaction], operation: str
) -> None:
    assert not fails(documented()[operation], records.to_pandas(), records)


@pytest.mark.filterwarnings("ignore")
def test_frame_of_doubles_takes_every_operation(records: cf.Records[cf.ChainTransaction]) -> None:
    frame = records.to_pandas(numbers="float")
    failed = {code for code in OPERATIONS if fails(code, frame.copy(), records)}
    assert failed == NEEDS_DECIMALS


@pytest.mark.parametrize("numbers", ["decimal", "float"])
def test_numbers_of_a_frame_include_amounts(records: cf.Records[cf.ChainTransaction], numbers: Any) -> None:
    frame = records.to_pandas(numbers)
    titles = [axes.get_title() for axes in frame.hist().ravel()]
    plt.close("all")
    for names in (frame.describe().columns, frame.select_dtypes("number").columns, titles):
        assert "amount" in names


def test_arithmetic_on_amounts_is_exact(records: cf.Records[cf.ChainTransaction]) -> None:
    frame = records.to_pandas()
    amounts = [(record.amount or decimal.Decimal(), record.tx_fee or decimal.Decimal()) for record in records]
    with decimal.localcontext(prec=80):
        assert (frame.amount + frame.tx_fee).tolist() == [amount + fee for amount, fee in amounts]
        assert (frame.amount - frame.tx_fee).tolist() == [amount - fee for amount, fee in amounts]
        assert (frame.amount * frame.tx_fee).tolist() == [amount * fee for amount, fee in amounts]
        assert (frame.amount * 2).tolist() == [amount * 2 for amount, _ in amounts]


# In the resolution of the installed pandas.
TIMES = str(pd.date_range("2026-01-01", periods=1, tz="UTC").dtype)
DTYPES = {
    None: {
        "int64",
        "Int64",
        "boolean",
        TIMES,
        "bool",
        "str",
        "float64",
        "decimal128(38, 18)[pyarrow]",
        "object",
    },
    "numpy_nullable": {
        "Int64",
        TIMES,
        "boolean",
        "string",
        "Float64",
        "decimal128(38, 18)[pyarrow]",
        "object",
    },
}


def queries(client: cf.Client) -> list[cf.Query[Any]]:
    hashes = [transaction.tx_id for transaction in client.transactions(max_items=5) if transaction.tx_id]
    transfers = client.token_transfers(
        client.tokens(max_items=1).collect()[0].token_contract_address or "", max_items=50
    )
    return [
        client.tokens(max_items=50),
        transfers,
        client.cross_chain_transactions(max_items=50),
        client.blocks(max_items=50),
        client.large_transactions(max_items=50),
        client.transactions(max_items=50),
        client.transactions_by_hash(hashes),
        client.logs(hashes),
    ]


@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable"])
def test_dtypes_are_those_of_the_backend(dtype_backend: Any) -> None:
    with LocalService(transactions=1_000, seed=7) as service, service.client(rate_limit=None) as client:
        for query in queries(client):
            frame = query.to_pandas(dtype_backend=dtype_backend)
            assert {str(dtype) for dtype in frame.dtypes} <= DTYPES[dtype_backend]
            assert len(frame) > 0


def test_pyarrow_backend_has_arrow_columns_only() -> None:
    with LocalService(transactions=300, seed=7) as service, service.client() as client:
        frame = client.transactions(max_items=10).to_pandas(dtype_backend="pyarrow")
        assert all(isinstance(dtype, pd.ArrowDtype) for dtype in frame.dtypes)


def test_integers_and_flags_with_missing_values_stay_integers_and_flags() -> None:
    with LocalService(transactions=0) as service, service.client() as client:
        service.load(
            "transactions",
            [{"tx_id": "0x1", "height": 9_007_199_254_740_993, "is_input_contract": True}, {"tx_id": "0x2"}],
        )
        frame = client.transactions().to_pandas()
    assert str(frame.height.dtype) == "Int64"
    assert str(frame.is_input_contract.dtype) == "boolean"
    assert frame.height.tolist()[0] == 9_007_199_254_740_993
    assert frame.height.isna().tolist() == [False, True]


@pytest.mark.parametrize("convert", ["to_pandas", "to_polars", "to_arrow"])
def test_columns_are_converted_in_the_order_given(convert: str) -> None:
    with LocalService(transactions=300, seed=7) as service, service.client() as client:
        query = client.transactions(max_items=3)
        for source in (query, query.collect()):
            frame = getattr(source, convert)(columns=["tx_fee", "height"])
            names = frame.column_names if convert == "to_arrow" else list(frame.columns)
            assert names == ["tx_fee", "height"]


def test_repeated_column_is_rejected_before_a_request() -> None:
    with LocalService(transactions=10) as service, service.client() as client:
        with pytest.raises(cf.InvalidParameterError, match='columns must be distinct; got "height" twice'):
            client.transactions().to_pandas(columns=["height", "height"])
        assert service.request_count == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "operation",
    [
        "frame.amount % 2",
        "frame.amount.cummax()",
        "frame.amount.nsmallest(2)",
        'frame.groupby("input").amount.sum() / frame.amount.sum()',
        'frame.groupby("input").amount.sum() / 2',
        'frame.groupby("input").amount.sum().sub(frame.groupby("output").amount.sum(), fill_value=0)',
        'frame.groupby("input").amount.idxmax()',
        'frame.groupby("input").amount.pct_change()',
        'frame.groupby("input").amount.apply(lambda amounts: amounts.sum())',
        'frame.groupby("input").agg(total=("amount", "sum"), mean=("amount", "mean"))',
        'frame.pivot_table(index="input", columns="state", values="amount", aggfunc=["sum", "count"], margins=True)',
        "frame.amount.interpolate()",
        "np.percentile(frame.amount, 50)",
        'frame.eval("amount * 2")',
        "frame.amount.sum() * 2",
        "frame.tx_fee / (frame.amount * 0)",
        'frame.query("amount > 10 and tx_fee < 1")',
        "frame.set_index('transaction_time').sort_index().amount.rolling('1D').sum()",
        "frame.amount.replace(0, np.nan)",
        "frame.amount.mode()",
        "frame.amount.map({decimal.Decimal(0): 'none'})",
        "frame.rename(columns={'amount': 'x'}).set_index('x').sort_index()",
        "frame[['amount', 'tx_fee']].sum(axis=1)",
        "frame[['amount', 'tx_fee']].mean()",
        "frame[['amount', 'tx_fee']].to_numpy()",
        "frame.style.format(precision=2).to_html()",
        "frame.amount.astype('Float64')",
        "frame.amount.to_frame().T",
        "divmod(frame.amount, 3)",
        "frame.amount.cov(frame.tx_fee)",
        "frame.amount.dot(frame.tx_fee)",
        "frame.to_dict('records')",
        "frame.amount.explode()",
        "frame.amount.compare(frame.tx_fee)",
    ],
)
def test_other_operations_work_on_the_default_frame(records: cf.Records[cf.ChainTransaction], operation: str) -> None:
    if "style" in operation:
        pytest.importorskip("jinja2")
    eval(operation, {"frame": records.to_pandas(), "pd": pd, "np": np, "decimal": decimal})


@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable", "pyarrow"])
def test_other_libraries_read_the_frame(
    records: cf.Records[cf.ChainTransaction], dtype_backend: Any, tmp_path: Path
) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    frame = records.to_pandas(dtype_backend=dtype_backend, columns=["amount"])
    total = sum(records["amount"])
    assert duckdb.sql("select sum(amount) from frame").fetchall() == [(total,)]
    assert polars.from_pandas(frame)["amount"].sum() == total
    assert polars.DataFrame(frame)["amount"].sum() == total
    frame.to_feather(tmp_path / "frame.feather")
    assert polars.read_ipc(tmp_path / "frame.feather")["amount"].sum() == total


@pytest.mark.parametrize("numbers", ["decimal", "float"])
@pytest.mark.parametrize("operation", documented(1))
def test_operations_on_times_and_lists_raise_and_their_replacements_work(
    operation: str, numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "excel" in operation:
        pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    with LocalService(transactions=1_000, seed=7) as service, service.client(rate_limit=None) as client:
        frame = client.transactions(max_items=20).to_pandas(numbers)
        logs = queries(client)[-1].to_pandas(numbers)
    assert len(logs) > 0
    names = {"frame": frame, "logs": logs, "pd": pd, "sqlite3": sqlite3}
    with pytest.raises((TypeError, ValueError, sqlite3.Error, pd.errors.DatabaseError)):
        eval(operation, names)
    eval(documented(1)[operation], names)
