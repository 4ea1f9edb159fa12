"""Ways out of exact columns, and columns of other numbers that join them: no digit is lost silently."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

pd: Any = pytest.importorskip("pandas")
pa: Any = pytest.importorskip("pyarrow")
np: Any = pytest.importorskip("numpy")

from chainframe.errors import NumericOverflowError  # noqa: E402 - needs pandas
from chainframe.exact import ExactArray, ExactDtype  # noqa: E402 - needs pandas

# Amounts that are one double.
VALUES = [Decimal("1.5"), None, Decimal("12345678901234567890.123456789012345678"), Decimal(7)]
LAST = Decimal("12345678901234567890.123456789012345679")
SERIES = pd.Series(ExactArray._from_sequence([*VALUES, LAST], dtype=ExactDtype()), name="amount")
# Columns of several types, and amounts only, of which pandas makes one array.
MIXED = pd.DataFrame({"key": ["a", "b", "a", "b", "b"], "amount": SERIES, "count": range(5)})
NUMBERS = pd.DataFrame({"amount": SERIES, "count": range(5)})
AMOUNTS = pd.DataFrame({"amount": SERIES, "fee": SERIES})


def written_in_sql(frame: Any) -> Any:
    connection = sqlite3.connect(":memory:")
    frame.to_sql("t", connection)
    return connection.execute("select amount from t").fetchall()[-1][0]


def written(frame: Any, form: str) -> Any:
    file = io.BytesIO()
    getattr(frame, f"to_{form}")(file)
    file.seek(0)
    return getattr(pd, f"read_{form}")(file, dtype_backend="pyarrow").amount.iloc[-1]


def in_dicts(orient: str) -> Callable[[Any], Any]:
    return lambda frame: frame[["amount"]].to_dict(orient)


OF_FRAMES: dict[str, Callable[[Any], Any]] = {
    **{f"to_dict {orient}": in_dicts(orient) for orient in ("dict", "list", "split", "tight", "records", "index")},
    "to_dict series": lambda frame: frame.to_dict("series")["amount"].tolist(),
    "to_records": lambda frame: frame.to_records()[-1]["amount"],
    "to_records of objects": lambda frame: frame.to_records(column_dtypes={"amount": object})[-1]["amount"],
    "from_records of to_records": lambda frame: pd.DataFrame.from_records(frame.to_records()).amount.iloc[-1],
    "from a dict of lists": lambda frame: pd.DataFrame(frame.to_dict("list")).amount.iloc[-1],
    "values": lambda frame: frame.values.tolist()[-1],
    "to_numpy of all": lambda frame: frame.to_numpy().tolist()[-1],
    "to_numpy": lambda frame: frame.to_numpy(object)[-1],
    "to_numpy of texts": lambda frame: frame.amount.to_numpy(str)[-1],
    "np.array": lambda frame: np.array(frame, object)[-1],
    "itertuples": lambda frame: list(frame.itertuples())[-1].amount,
    "iterrows": lambda frame: list(frame.iterrows())[-1][1]["amount"],
    "items": lambda frame: dict(frame.items())["amount"].iloc[-1],
    "iloc": lambda frame: frame.iloc[-1]["amount"],
    "loc": lambda frame: frame.loc[4].tolist(),
    "at": lambda frame: frame.at[4, "amount"],
    "apply by row": lambda frame: frame.apply(lambda row: row["amount"], axis=1).iloc[-1],
    "apply to raw rows": lambda frame: (
        frame[["amount", frame.columns[-1]]].apply(lambda row: row[0], axis=1, raw=True).iloc[-1]
    ),
    "apply of rows to rows": lambda frame: frame.apply(lambda row: row, axis=1).amount.iloc[-1],
    "apply expanded": lambda frame: frame.apply(lambda row: [row["amount"]], axis=1, result_type="expand")[0].iloc[-1],
    "map": lambda frame: frame[["amount"]].map(lambda value: value).amount.iloc[-1],
    "transposed": lambda frame: frame.T[4]["amount"],
    "stacked": lambda frame: frame[["amount"]].stack().iloc[-1],
    "melted": lambda frame: frame.melt(value_vars=["amount", "count" if "count" in frame else "fee"]).value[4],
    "to_json": lambda frame: frame.to_json(orient="records"),
    "to_json of values": lambda frame: frame.to_json(orient="values"),
    "to_csv": lambda frame: frame.to_csv(float_format="%.2f"),
    "to_string": lambda frame: frame.to_string(float_format="%.2f"),
    "to_html": lambda frame: frame.to_html(),
    "to_xml": lambda frame: frame.to_xml(parser="etree"),
    "to_sql": written_in_sql,
    "to_parquet": lambda frame: written(frame, "parquet"),
    "to_feather": lambda frame: written(frame, "feather"),
    "pickle": lambda frame: pd.read_pickle(io.BytesIO(pickled(frame))).amount.iloc[-1],
    "as index": lambda frame: frame.set_index("amount").index.tolist(),
    "as level": lambda frame: frame.set_index(["amount", frame.columns[-1]]).index.tolist(),
    "list of a group": lambda frame: frame.groupby([0, 1, 0, 1, 1]).amount.agg(list)[1],
    "lists of groups": lambda frame: frame.groupby([0, 1, 0, 1, 1])[["amount"]].agg(list).amount[1],
    "row of a group": lambda frame: frame.groupby([0, 1, 0, 1, 1]).apply(lambda group: group.iloc[-1]).amount[1],
    "row of amounts of a group": lambda frame: frame.groupby([0, 1, 0, 1, 1])[["amount"]].last().amount[1],
    "groups": lambda frame: frame.groupby("amount").groups,
    "keys of groups": lambda frame: [key for key, _ in frame.groupby("amount")],
}


def pickled(frame: Any) -> bytes:
    file = io.BytesIO()
    frame.to_pickle(file)
    return file.getvalue()


@pytest.mark.parametrize("frame", [MIXED, NUMBERS, AMOUNTS], ids=["mixed", "numbers", "amounts"])
@pytest.mark.parametrize("name", OF_FRAMES)
def test_amounts_leave_a_frame_with_every_digit(frame: Any, name: str) -> None:
    assert str(LAST) in str(OF_FRAMES[name](frame))


@pytest.mark.parametrize("orient", ["dict", "list", "split", "records"])
def test_missing_amounts_are_none_in_dicts(orient: str) -> None:
    assert "None" in str(MIXED[["amount"]].to_dict(orient))
    assert "nan" not in str(MIXED[["amount"]].to_dict(orient)).lower()


OBJECTS = pd.Series([None] * 5, dtype=object, name="amount")
INTO_OBJECTS: dict[str, Callable[[], Any]] = {
    "where": lambda: OBJECTS.where(OBJECTS.notna(), SERIES),
    "mask": lambda: OBJECTS.mask(OBJECTS.isna(), SERIES),
    "fillna": lambda: OBJECTS.fillna(SERIES),
    "fillna of a frame": lambda: OBJECTS.to_frame().fillna(SERIES.to_frame()).amount,
    "fillna of two columns": lambda: AMOUNTS.astype(object).where(AMOUNTS.amount.isna(), AMOUNTS).amount,
    "where in place": lambda: changed(OBJECTS, lambda column: column.where(column.notna(), SERIES, inplace=True)),
    "where of a frame in place": lambda: (
        changed(OBJECTS.to_frame(), lambda frame: frame.where(frame.notna(), SERIES.to_frame(), inplace=True)).amount
    ),
    "values set by a mask": lambda: changed(OBJECTS, lambda column: column.__setitem__(column.isna(), SERIES)),
    "frame set by a mask": lambda: (
        changed(OBJECTS.to_frame(), lambda frame: frame.__setitem__(frame.isna(), SERIES.to_frame())).amount
    ),
    "putmask of an index": lambda: pd.Index(OBJECTS).putmask(OBJECTS.isna(), SERIES.array),
}


def changed(target: Any, change: Callable[[Any], object]) -> Any:
    copied = target.copy()
    change(copied)
    return copied


@pytest.mark.filterwarnings("ignore:Downcasting object dtype")
@pytest.mark.parametrize("name", INTO_OBJECTS)
def test_amounts_enter_a_column_of_objects_with_every_digit(name: str) -> None:
    assert str(LAST) in str(INTO_OBJECTS[name]().tolist())


INTEGERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda empty: pd.array(SERIES[:1], dtype=empty.dtype),
    "where": lambda empty: empty.where(empty.notna(), SERIES[:1]),
    "fillna": lambda empty: empty.fillna(SERIES[:1]),
    "values set": lambda empty: changed(empty, lambda column: column.__setitem__(column.isna(), SERIES[:1])),
    "fillna of a frame": lambda empty: empty.to_frame().fillna(SERIES[:1].to_frame()),
    "objects": lambda empty: SERIES[:1].astype(object).astype(empty.dtype),
}


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "int64[pyarrow]", "uint8[pyarrow]"])
@pytest.mark.parametrize("name", INTEGERS)
def test_amounts_with_decimal_places_do_not_become_integers(name: str, kind: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"[Cc]annot safely cast|[Ii]nvalid value|data loss|do not fit"):
        INTEGERS[name](pd.Series([None], dtype=kind, name="amount"))
    assert SERIES[:1].astype(int).tolist() == [int(SERIES[0])] == [1]


def others(values: list[Any]) -> dict[str, Any]:
    """Columns of doubles."""
    numpy = np.array([np.nan if value is None else value for value in values], float)
    return {
        "float64": pd.Series(numpy),
        "float32": pd.Series(numpy.astype("float32")),
        "Float64": pd.Series(values, dtype="Float64"),
        "double[pyarrow]": pd.Series(values, dtype=pd.ArrowDtype(pa.float64())),
    }


JOINED: dict[str, Callable[[Any], Any]] = {
    "concat": lambda other: pd.concat([SERIES, other], ignore_index=True),
    "concat of frames": lambda other: pd.concat([MIXED, pd.DataFrame({"amount": other})], ignore_index=True).amount,
    "concat before": lambda other: pd.concat([other, SERIES], ignore_index=True)[len(other) :].reset_index(drop=True),
    "combine_first": SERIES.combine_first,
    "case_when": lambda other: SERIES.case_when([(SERIES == 7, other.reindex(range(5)))]),
    "where": lambda other: SERIES.where(SERIES != 7, other.reindex(range(5))),
    "fillna": SERIES.fillna,
    "new row": lambda other: added(MIXED, ["z", other.iloc[0] if len(other) else np.nan, 1]).amount,
    "new value": lambda other: added(SERIES, other.iloc[0] if len(other) else np.nan),
    "merge": lambda other: (
        MIXED.merge(pd.DataFrame({"amount": other}).drop_duplicates(), on="amount", how="left").amount
    ),
}


def added(target: Any, value: Any) -> Any:
    copied = target.copy()
    copied.loc[9] = value
    return copied


# pandas 2 warns that empty columns and missing values will count for the dtype; the common one is exact with them, too.
@pytest.mark.filterwarnings("ignore:The behavior of (DataFrame|array) concatenation")
@pytest.mark.parametrize("values", [[], [None, None], [0.5, None], [0.5, 0.1, 3.0]], ids=str)
@pytest.mark.parametrize("kind", others([]))
@pytest.mark.parametrize("name", JOINED)
def test_amounts_that_join_doubles_keep_every_digit(name: str, kind: str, values: list[Any]) -> None:
    joined = JOINED[name](others(values)[kind])
    assert joined.tolist()[4] == LAST
    # pandas turns exact keys that meet other nullable keys into objects.
    assert joined.dtype == ExactDtype() or (name == "merge" and joined.dtype == object)


def test_double_that_joins_amounts_is_the_number_that_it_is_printed_as() -> None:
    assert pd.concat([SERIES, pd.Series([0.1])]).tolist()[-1] == Decimal("0.1")
    with pytest.raises(NumericOverflowError, match=r"round\(18\)"):
        pd.concat([SERIES, pd.Series([1e-5 / 3])])
    with pytest.raises(TypeError, match="finite numbers"):
        pd.concat([SERIES, pd.Series([np.inf])])


KEYS = {
    "int64": lambda: pd.Series([7, 0]),
    "uint8": lambda: pd.Series([7, 0], dtype="uint8"),
    "Int64": lambda: pd.Series([7, 0], dtype="Int64"),
    "int64[pyarrow]": lambda: pd.Series([7, 0], dtype=pd.ArrowDtype(pa.int64())),
    "float64": lambda: pd.Series([7.0, 0.5]),
    "Float64": lambda: pd.Series([7.0, 0.5], dtype="Float64"),
    "decimal128(38, 18)[pyarrow]": lambda: pd.Series(
        [Decimal(7), Decimal(0)], dtype=pd.ArrowDtype(pa.decimal128(38, 18))
    ),
}


@pytest.mark.parametrize("options", [{}, {"sort": True}], ids=str)
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
@pytest.mark.parametrize("left", [MIXED, MIXED.dropna()], ids=["missing", "present"])
@pytest.mark.parametrize("kind", KEYS)
def test_exact_column_merges_with_keys_of_other_numbers(
    kind: str, left: Any, how: str, options: dict[str, bool]
) -> None:
    right = pd.DataFrame({"amount": KEYS[kind](), "found": [1, 2]})
    for merged in (
        left.merge(right, on="amount", how=how, **options),
        right.merge(left, on="amount", how=how, **options),
    ):
        assert merged[merged.found.notna() & merged["count"].notna()].amount.tolist() == [Decimal(7)]
    expected = {"inner": 1, "left": len(left), "right": 2, "outer": len(left) + 1}
    assert len(left.merge(right, on="amount", how=how, **options)) == expected[how]


@pytest.mark.parametrize("how", ["right", "outer"])
@pytest.mark.parametrize("kind", [*KEYS, "Float32", "float[pyarrow]", "double[pyarrow]"])
def test_exact_keys_that_join_a_column_of_other_numbers_keep_every_digit(kind: str, how: str) -> None:
    keys = KEYS[kind]() if kind in KEYS else pd.Series([7, 0.5], dtype=kind)
    merged = pd.DataFrame({"amount": keys, "found": [1, 2]}).merge(MIXED, on="amount", how=how)
    assert set(MIXED.amount.dropna()) <= set(merged.amount.dropna())
    assert merged.amount.isna().sum() == 1


def test_missing_amounts_are_one_key() -> None:
    right = pd.DataFrame({"amount": pd.array([7, None], dtype="Int64"), "found": [1, 2]})
    assert MIXED.merge(right, on="amount").found.tolist() == [2, 1]
    assert json.loads(MIXED.merge(right, on="amount", how="left").found.to_json(orient="values")) == [
        None,
        2,
        None,
        1,
        None,
    ]
