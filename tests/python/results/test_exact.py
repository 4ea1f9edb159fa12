"""Exact columns in pandas against Python's `decimal`, on numbers of every size."""

from __future__ import annotations

import decimal
import io
import math
import operator
import pickle
import random
import sqlite3
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import chainframe as cf

pd: Any = pytest.importorskip("pandas")
pa: Any = pytest.importorskip("pyarrow")
np: Any = pytest.importorskip("numpy")

from chainframe.exact import ExactArray, ExactDtype, integers  # noqa: E402 - needs pandas

# Python's own arithmetic rounds to 28 digits.
EXACT = decimal.Context(prec=400)


def amounts(seed: int, count: int = 40, *, missing: bool = False) -> list[Decimal | None]:
    """Numbers of one to 38 digits with up to 18 places, of both signs, some equal as doubles."""
    source = random.Random(seed)
    found: list[Decimal | None] = [Decimal(0), Decimal("1e-18"), Decimal("0.1"), Decimal("0.100000000000000001")]
    while len(found) < count:
        digits, places = source.randint(1, 19), source.choice((0, 2, 6, 18))
        whole = source.choice((-1, 1)) * source.randrange(10**digits)
        found.append(Decimal(whole).scaleb(-places, EXACT))
        if missing and source.random() < 0.2:
            found.append(None)
    source.shuffle(found)
    return found[:count]


def series(values: list[Decimal | None]) -> Any:
    return pd.Series(ExactArray._from_sequence(values, dtype=ExactDtype()))


def objects(values: Any) -> list[Any]:
    return [None if value is pd.NA else value for value in values.tolist()]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic_of_two_columns_is_that_of_decimal(seed: int, name: str) -> None:
    function = getattr(operator, name)
    left, right = amounts(seed, missing=True), amounts(seed + 1000, missing=True)
    with decimal.localcontext(EXACT):
        expected = [None if a is None or b is None else function(a, b) for a, b in zip(left, right, strict=True)]
    assert objects(function(series(left), series(right))) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "radd", "rsub", "rmul"])
@pytest.mark.parametrize("number", [2, -3, 10**18, Decimal("0.000001"), Decimal("-12345.678")])
def test_arithmetic_with_a_number_is_that_of_decimal(seed: int, name: str, number: Any) -> None:
    values = amounts(seed)
    column = series(values)
    reverse = name.startswith("r")
    function = getattr(operator, name[1:] if reverse else name)
    found = function(number, column) if reverse else function(column, number)
    for value, result in zip(values, found, strict=True):
        assert value is not None
        pair = (Fraction(number), Fraction(value)) if reverse else (Fraction(value), Fraction(number))
        exact = function(*pair)
        error = abs(Fraction(result) - exact)
        assert error == 0 or (name == "truediv" and error <= Fraction(1, 10**17))


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_cumulative_functions_are_those_of_decimal(seed: int) -> None:
    values = amounts(seed, missing=True)
    column, groups = series(values), [row % 3 for row in range(len(values))]
    with decimal.localcontext(EXACT):
        present = [value for value in values if value is not None]
        assert column.sum() == sum(present)
        assert (column.min(), column.max()) == (min(present), max(present))
        running, total = [], Decimal(0)
        for value in values:
            total += value or 0
            running.append(None if value is None else total)
        assert objects(column.cumsum()) == running
        by_group = column.groupby(groups)
        sums = [sum(v for v, g in zip(values, groups, strict=True) if v is not None and g == each) for each in range(3)]
        assert objects(by_group.sum()) == sums
        assert objects(by_group.transform("sum")) == [sums[group] for group in groups]
        assert objects(by_group.sum() - sums[0]) == [each - sums[0] for each in sums]
        assert objects(column - by_group.transform("sum")) == [
            None if value is None else value - sums[group] for value, group in zip(values, groups, strict=True)
        ]
        assert objects(by_group.cumsum().groupby(groups).last()) == [
            next(v for v in reversed(objects(by_group.cumsum()[[g == each for g in groups]])) if v is not None)
            for each in range(3)
        ]


def test_sum_beyond_38_digits_is_exact_and_stays_in_pandas() -> None:
    large = Decimal("99999999999999999999.999999999999999999")
    column = series([large] * 1000)
    assert column.sum() == Fraction(large) * 1000
    running = column.cumsum()
    assert Fraction(running.iloc[-1]) == Fraction(large) * 1000
    assert running.diff().dropna().eq(large).all()
    with pytest.raises(cf.NumericOverflowError, match=r"38 digits of an exact column.*\.astype\(float\)"):
        pa.array(running)
    assert pa.array(running.head(1)).to_pylist() == [large]


@pytest.mark.parametrize("sign", [1, -1])
def test_quotient_that_rounding_makes_longer_has_38_digits(sign: int) -> None:
    # 9.99…96… and 0.99…96…, which do not end.
    assert integers.divide([sign * (3 * 10**38 - 1)], 0, 3 * 10**37, 0) == ([sign * 10**37], 36)
    assert integers.divide([2, 3 * 10**38 - 1], 0, sign * 3 * 10**38, 0) == ([0, sign * 10**37], 37)
    assert integers.divide([3 * 10**38 - 2], 0, sign * 3 * 10**37, 0) == ([sign * (10**38 - 1)], 37)


COLUMNS_TO_DIVIDE = [
    ["1e-18"],
    ["1e-18", "12345678901234567890.5", None],
    ["-99999999999999999999.999999999999999999", "0"],
    ["1000000", "3e-18"],
]


@pytest.mark.parametrize("values", COLUMNS_TO_DIVIDE)
@pytest.mark.parametrize("divisor", [2, -4, 5, 1024, 10**18, Decimal("0.5"), Decimal("-1.6"), Decimal("1e-9")])
def test_quotients_that_end_are_exact(values: list[str | None], divisor: Any) -> None:
    column = series([None if value is None else Decimal(value) for value in values])
    with decimal.localcontext(EXACT):
        expected = [None if value is None else Decimal(value) / divisor for value in values]
    assert objects(column / divisor) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("divisor", [3, 6, 7 * 2**20, Decimal("-0.0075")])
def test_quotient_that_ends_is_exact_beside_one_that_does_not(seed: int, divisor: Any) -> None:
    values = [*amounts(seed), Decimal("12345678901234567890.5") * 3]
    for value, found in zip(values, series(values) / divisor, strict=True):
        assert value is not None
        exact = Fraction(value) / Fraction(divisor)
        is_ending = (10**200 % exact.denominator) == 0
        assert abs(Fraction(found) - exact) <= (0 if is_ending else Fraction(1, 2 * 10**16))


def test_quotient_that_ends_after_76_digits_raises() -> None:
    assert (series([Decimal("1e-18")]) / 2**58).tolist() == [EXACT.divide(Decimal("1e-18"), Decimal(2**58))]
    with pytest.raises(cf.NumericOverflowError, match="has more than the 76 digits of an exact column"):
        _ = series([Decimal("1e-18")]) / 2**59
    with pytest.raises(cf.NumericOverflowError, match="has more than the 76 digits of an exact column"):
        _ = series([Decimal("1e-18"), Decimal(10**19)]) / 2**57


def test_printed_amounts_have_all_their_digits() -> None:
    texts = [
        "60023889637.294010109008943098",
        "0.000000000000000001",
        "99999999999999999999.999999999999999999",
        "0",
        "1.5",
    ]
    shown = str(series([Decimal(text) for text in texts])).splitlines()
    assert [line.split()[1] for line in shown[:-1]] == texts


def test_product_beyond_76_digits_raises_with_the_remedy() -> None:
    column = series([Decimal("99999999999999999999.999999999999999999")])
    assert (column * column).iloc[0] == Fraction(column.iloc[0]) ** 2
    with pytest.raises(cf.NumericOverflowError, match=r"76 digits of an exact column.*\.astype\(float\)"):
        _ = column * column * column


@pytest.mark.parametrize("seed", range(4))
def test_doubles_are_the_nearest(seed: int) -> None:
    values = amounts(seed)
    column = series(values)
    nearest = [float(value) for value in values if value is not None]
    assert column.astype(float).tolist() == nearest
    assert np.asarray(column).tolist() == nearest
    assert column.mean() == float(sum(map(Fraction, values)) / len(values))  # type: ignore[arg-type]
    divisor = series(amounts(seed + 1))
    for quotient, above, below in zip(column / divisor, values, divisor, strict=True):
        assert above is not None
        assert quotient == float(Fraction(above) / Fraction(below)) if below else not math.isfinite(quotient)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparison_is_that_of_decimal(seed: int, name: str) -> None:
    function = getattr(operator, name)
    left, right = amounts(seed), amounts(seed, 60)[:40]
    assert function(series(left), series(right)).tolist() == list(map(function, left, right))
    for number in (0, 10**30, Decimal("0.1"), Decimal("1e-40")):
        assert function(series(left), number).tolist() == [function(value, number) for value in left]


def test_numbers_equal_as_doubles_stay_distinct() -> None:
    near = [Decimal("0.1"), Decimal("0.100000000000000001"), Decimal("0.1"), Decimal("123456789012345678.9")]
    assert float(near[0]) == float(near[1])
    column = series([*near])
    frame = pd.DataFrame({"amount": column, "row": range(4)})
    assert column.nunique() == 3
    assert column.duplicated().tolist() == [False, False, True, False]
    assert frame.groupby("amount").row.sum().tolist() == [2, 1, 3]
    assert len(frame.merge(frame, on="amount")) == 6
    assert column.isin([near[1]]).tolist() == [False, True, False, False]
    assert column.rank().tolist() == [1.5, 3, 1.5, 4]
    assert column.groupby([0] * 4).rank().tolist() == [1.5, 3, 1.5, 4]
    assert column.value_counts()[near[0]] == 2
    assert frame.set_index("amount").loc[near[1], "row"] == 1
    assert frame.sort_values("amount", ascending=False).row.tolist()[:2] == [3, 1]
    assert column.sort_values().searchsorted(near[1]) == 2
    assert frame.drop_duplicates("amount").row.tolist() == [0, 1, 3]
    assert column.unique().tolist() == [near[0], near[1], near[3]]
    assert (pd.util.hash_pandas_object(column).nunique()) == 4
    assert pd.util.hash_pandas_object(column, index=False).nunique() == 3
    assert pd.factorize(column)[0].tolist() == [0, 1, 0, 2]


def test_numbers_leave_as_exact_text() -> None:
    values = [Decimal(0), Decimal("1e-18"), Decimal("-12345678901234567890.123456789012345678"), None]
    frame = pd.DataFrame({"amount": series(values)})
    expected = ["0", "0.000000000000000001", "-12345678901234567890.123456789012345678"]
    assert frame.to_csv(index=False).split()[1:4] == expected
    connection = sqlite3.connect(":memory:")
    frame.to_sql("t", connection, index=False)
    assert [row[0] for row in connection.execute("select amount from t")] == [*expected, None]
    assert [row["amount"] for row in eval(frame.to_json(orient="records"), {"null": None})] == [*expected, None]
    assert frame.amount.astype(str).tolist()[:3] == expected
    assert [each for each in frame.amount.astype(object) if each is not pd.NA] == values[:3]
    read = pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype={"amount": ExactDtype()})
    assert objects(read.amount) == values


def test_column_keeps_its_dtype_through_common_steps() -> None:
    values = amounts(3, missing=True)
    frame = pd.DataFrame({"amount": series(values), "key": [row % 4 for row in range(len(values))]})
    steps = {
        "concat": pd.concat([frame, frame]),
        "empty": frame[:0],
        "concat with empty": pd.concat([frame[:0], frame]),
        "merge": frame.merge(frame[["key"]].drop_duplicates(), on="key"),
        "pickle": pickle.loads(pickle.dumps(frame)),
        "shift": frame.assign(amount=frame.amount.shift()),
        "fillna": frame.fillna({"amount": 0}),
        "reindex": frame.reindex(range(100)),
        "where": frame.assign(amount=frame.amount.where(frame.key == 1, 0)),
        "clip": frame.assign(amount=frame.amount.clip(upper=1.5)),
        "round": frame.round({"amount": 2}),
        "abs": frame.assign(amount=-frame.amount.abs()),
        "combine": frame.assign(amount=frame.amount.combine_first(frame.amount)),
        "group": frame.groupby("key", as_index=False).amount.sum(),
        "pivot": frame.pivot_table(index="key", values="amount", aggfunc="sum"),
        "copy": frame.copy(),
    }
    assert {name: step.amount.dtype for name, step in steps.items()} == dict.fromkeys(steps, ExactDtype())
    assert steps["empty"].amount.sum() == 0
    assert steps["fillna"].amount.sum() == frame.amount.sum()
    assert objects(steps["pickle"].amount) == values
    copied = frame.copy()
    copied.loc[0, "amount"] = Decimal("7.5")
    assert copied.amount.iloc[0] == Decimal("7.5")
    assert objects(frame.amount) == values


def test_value_that_does_not_fit_raises_instead_of_being_rounded() -> None:
    column = series([Decimal(1), None])
    # The last 128 bits of 10^48, the unscaled form of the last number, are a number of 38 digits.
    for bad in (Decimal("1e-19"), Decimal(10) ** 21, Decimal(10) ** 30):
        for fill in (column.fillna, lambda value: column.where(column.isna(), value), lambda value: series([value])):
            with pytest.raises(cf.NumericOverflowError, match="does not fit"):
                fill(bad)
    with pytest.raises(TypeError, match="takes numbers"):
        _ = column + "a"
    with pytest.raises(ZeroDivisionError, match="by zero"):
        _ = column / 0


def test_column_of_fewer_places_becomes_one_of_more_only_if_its_values_fit() -> None:
    whole = pd.Series(ExactArray(pa.chunked_array([pa.array([Decimal(10) ** 30], pa.decimal128(38, 0))])))
    kind = pa.decimal128(38, 18)
    problem = r"10{30} does not fit decimal128\(38, 18\)"
    for dtype in (ExactDtype(kind), pd.ArrowDtype(kind)):
        with pytest.raises(cf.NumericOverflowError, match=problem):
            whole.astype(dtype)
    with pytest.raises(cf.NumericOverflowError, match=problem):
        pa.array(whole, type=kind)


@pytest.mark.skipif(int(pd.__version__[0]) < 3, reason="earlier versions return objects")
def test_results_of_a_function_that_do_not_fit_the_column_have_a_type_that_they_fit() -> None:
    column = series([Decimal("12345.678"), Decimal("1000000000000.5")])
    assert column.map(lambda value: value * 10**18).tolist() == [12345678 * 10**15, 10000000000005 * 10**17]
    assert column.groupby([0, 0]).agg(lambda group: group.iloc[1] * 10**18).tolist() == [10000000000005 * 10**17]


@pytest.mark.parametrize("places", [-20, -1, 0, 2, 17, 18])
def test_rounded_values_are_those_of_decimal(places: int) -> None:
    values = [Decimal("99999999999999999999.999999999999999999"), Decimal("-50.5"), None, Decimal("0.125")]
    with decimal.localcontext(decimal.Context(prec=60)):
        unit = Decimal(1).scaleb(-places)
        expected = [None if value is None else (value / unit).to_integral_value() * unit for value in values]
    assert objects(series(values).round(places)) == expected


def test_functions_of_doubles_give_doubles() -> None:
    column = series([Decimal("1.5"), None, Decimal(3)])
    groups = column.groupby([0, 0, 0])
    for found in (
        column.std(),
        column.median(),
        column.quantile(0.5),
        groups.quantile(0.5).iloc[0],
        groups.median().iloc[0],
        groups.std().iloc[0],
        np.log1p(column).iloc[0],
        (column * 2.5).iloc[0],
        (column**0.5).iloc[0],
        column.describe()["min"],
        column.pct_change(fill_method=None).iloc[0],
        column.rolling(1).mean().iloc[0],
    ):
        assert isinstance(found, float)
    assert column.describe()["max"] == 3.0
    assert (column**2).iloc[0] == Decimal("2.25")
    assert groups.mean().iloc[0] == 2.25
    assert pd.DataFrame({"amount": column}).select_dtypes("number").columns.tolist() == ["amount"]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "truediv"])
def test_operand_of_arrow_on_the_left_gives_what_the_exact_one_gives(name: str) -> None:
    column = series([Decimal("1.5"), None, Decimal("12345678901234567.000000000000000001")])
    for left, exact in (
        (pd.Series([7, 8, None], dtype=pd.ArrowDtype(pa.int64())), series([Decimal(7), Decimal(8), None])),
        (column.astype(pd.ArrowDtype(pa.decimal128(38, 18))), column),
    ):
        operation = getattr(operator, name)
        pd.testing.assert_series_equal(operation(left, column), operation(exact, column))


TOO_LONG = 2**256 - 1


def wide(*values: str | int | None) -> Any:
    numbers = [None if value is None else Decimal(value) for value in values]
    return pd.Series(ExactArray(pa.chunked_array([pa.array(numbers, pa.decimal128(38, 18))])))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("form", ["scalar", "list", "objects"])
def test_number_of_more_digits_than_a_column_has_is_compared(sign: int, form: str) -> None:
    column = wide(2**53 + 1, "-1.5", None)
    number = sign * TOO_LONG
    forms: dict[str, Any] = {"scalar": number, "list": [number] * 3, "objects": np.array([number] * 3, object)}
    for compared in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        expected = compared(0, number)
        assert compared(column, forms[form]).tolist() == [expected, expected, pd.NA]
    assert column.isin([number, Decimal("1e-80"), -1.5, 10**75]).tolist() == [False, True, False]
    if sign > 0:
        assert column.clip(upper=number).tolist()[:2] == [2**53 + 1, Decimal("-1.5")]
        assert (column // number).tolist()[:2] == [0, -1]
        for operation in (operator.add, operator.mul):
            with pytest.raises(cf.NumericOverflowError, match="has more than the 76 digits"):
                operation(column, number)


def test_amounts_become_integers_without_doubles() -> None:
    column = wide(2**53 + 1, "-1.5", str(-(2**63)))
    for found in (column.to_numpy("int64"), column.astype("int64").to_numpy(), np.asarray(column, np.int64)):
        assert found.dtype == np.int64
        assert found.tolist() == [2**53 + 1, -1, -(2**63)]
    with_missing = wide(2**53 + 1, None)
    assert with_missing.to_numpy("int64", na_value=-1).tolist() == [2**53 + 1, -1]
    for method in ("to_numpy", "astype"):
        with pytest.raises(ValueError, match="int64 has no missing values"):
            getattr(with_missing, method)("int64")
    for dtype, value in (("int64", 2**63), ("uint64", -1), ("uint8", 256)):
        with pytest.raises(cf.NumericOverflowError, match=f"{value} does not fit {dtype}"):
            wide(value).to_numpy(dtype)
