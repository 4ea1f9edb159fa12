"""Operations of pandas on exact columns of amounts that differ, though their nearest doubles are equal."""

from __future__ import annotations

import decimal
import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pd: Any = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from chainframe.exact import ExactArray, ExactDtype  # noqa: E402 - needs pandas

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = Decimal("7896958960651882334.693417348070755895")
SMALLEST = Decimal("1e-18")


def amounts(source: random.Random, *, ordered: bool) -> list[Decimal]:
    with decimal.localcontext(decimal.Context(prec=60)):
        found = [LARGE + source.randrange(-4, 5) * SMALLEST for _ in range(source.randrange(2, 9))]
    return sorted(found) if ordered else found


def column(values: list[Any]) -> Any:
    return pd.Series(ExactArray._from_sequence(values, dtype=ExactDtype()))


def _pairs(frame: Any) -> list[tuple[int, int]]:
    return sorted(zip(frame.left.dropna().astype(int), frame.right.dropna().astype(int), strict=True))


def _average_ranks(values: list[Decimal]) -> list[float]:
    return [sum(x < y for x in values) + (sum(x == y for x in values) + 1) / 2 for y in values]


def _merged(how: str) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    return lambda left, right, pairs: (_pairs(left.merge(right, on="k", how=how).dropna()), pairs)


def _joined(how: str) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    return lambda left, right, pairs: (_pairs(left.set_index("k").join(right.set_index("k"), how=how).dropna()), pairs)


# Each takes a list, and returns what pandas and what Python makes of it.
ALONE: dict[str, Callable[[list[Any]], tuple[Any, Any]]] = {
    "nlargest": lambda v: (column(v).nlargest(1).tolist(), [max(v)]),
    "nsmallest of a frame": lambda v: (column(v).to_frame("k").nsmallest(1, "k").k.tolist(), [min(v)]),
    "rank": lambda v: (column(v).rank().tolist(), _average_ranks(v)),
    "rank of a frame": lambda v: (column(v).to_frame("k").rank().k.tolist(), _average_ranks(v)),
    "rank of two columns": lambda v: (column(v).to_frame("k").assign(z=1).rank().k.tolist(), _average_ranks(v)),
    "rank of a row": lambda v: (
        pd.DataFrame({"a": column(v), "b": column(v[::-1])}).rank(axis=1).a.tolist(),
        [1.5 if x == y else 1.0 + (x > y) for x, y in zip(v, v[::-1], strict=True)],
    ),
    "idxmax of a frame": lambda v: (column(v).to_frame("k").idxmax().k, v.index(max(v))),
    "idxmin of a frame": lambda v: (column([None, *v]).to_frame("k").idxmin().k, v.index(min(v)) + 1),
    "searchsorted": lambda v: (
        column(sorted(v)).searchsorted(v).tolist(),
        [sum(x < y for x in v) for y in v],
    ),
    "stack": lambda v: (column(v).to_frame().stack().tolist(), v),
    "map": lambda v: (column(v).map(lambda value: value).tolist(), v),
    "map by a dictionary": lambda v: (column(v).map({v[0]: 1}).notna().tolist(), [x == v[0] for x in v]),
    "map by a series": lambda v: (
        column(v).map(pd.Series([1], index=pd.Index(column(v[:1])))).notna().tolist(),
        [x == v[0] for x in v],
    ),
    "apply by row": lambda v: (column(v).to_frame("k").apply(lambda row: row.k, axis=1).tolist(), v),
    "combine_first": lambda v: (column([None, *v]).combine_first(column([v[-1], *v])).tolist(), [v[-1], *v]),
    "to_json": lambda v: (list(map(Decimal, json.loads(column(v).to_json(orient="values")))), v),
    "astype of a frame": lambda v: (pd.DataFrame({"a": v, "b": v}).astype(ExactDtype()).b.tolist(), v),
    "margins": lambda v: (
        pd.DataFrame({"a": column(v), "b": column(v), "g": 1})
        .pivot_table(index="g", values=["a", "b"], aggfunc="max", margins=True)
        .loc["All"]
        .tolist(),
        [max(v), max(v)],
    ),
    "duplicated": lambda v: (column(v).duplicated().tolist(), [x in v[:i] for i, x in enumerate(v)]),
    "value_counts": lambda v: (sorted(column(v).value_counts().items()), sorted((x, v.count(x)) for x in set(v))),
    "groupby": lambda v: (column(v).to_frame("k").groupby("k").size().tolist(), [v.count(x) for x in sorted(set(v))]),
    "sort": lambda v: (column(v).sort_values().tolist(), sorted(v)),
}
TOGETHER: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    **{f"merge {how}": _merged(how) for how in ("inner", "left", "right", "outer")},
    **{f"join {how}": _joined(how) for how in ("inner", "left", "right", "outer")},
    "keys of a merge": lambda left, right, pairs: (
        sorted(left.merge(right, on="k").k),
        sorted(left.k[i] for i, _ in pairs),
    ),
    "keys of a join": lambda left, right, pairs: (
        sorted(left.set_index("k").join(right.set_index("k"), how="inner").index),
        sorted(left.k[i] for i, _ in pairs),
    ),
    "intersection": lambda left, right, _: (
        sorted(pd.Index(left.k).intersection(pd.Index(right.k))),
        sorted(set(left.k) & set(right.k)),
    ),
    "union": lambda left, right, _: (set(pd.Index(left.k).union(pd.Index(right.k))), set(left.k) | set(right.k)),
    "concat by index": lambda left, right, _: (
        sorted(pd.concat([_counts(left), _counts(right)], axis=1, join="inner").index),
        sorted(set(left.k) & set(right.k)),
    ),
    "sum by index": lambda left, right, _: (
        sorted((_counts(left) + _counts(right)).dropna().index),
        sorted(set(left.k) & set(right.k)),
    ),
    "isin": lambda left, right, _: (left.k.isin(right.k).tolist(), [x in set(right.k) for x in left.k]),
}


def _counts(frame: Any) -> Any:
    return frame.groupby("k").size()


@pytest.mark.filterwarnings("ignore:Setting an item of incompatible dtype")
@pytest.mark.parametrize("name", ALONE)
def test_operation_on_one_column_tells_amounts_apart(name: str) -> None:
    source = random.Random(name)
    for _ in range(6):
        found, expected = ALONE[name](amounts(source, ordered=False))
        assert found == expected


@pytest.mark.filterwarnings("ignore:The behavior of DataFrame concatenation")
@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("ordered", [True, False])
def test_operation_on_two_columns_tells_amounts_apart(name: str, *, ordered: bool) -> None:
    source = random.Random(name)
    for _ in range(6):
        left, right = amounts(source, ordered=ordered), amounts(source, ordered=ordered)
        pairs = sorted((i, j) for i, x in enumerate(left) for j, y in enumerate(right) if x == y)
        frames = (
            pd.DataFrame({"k": column(left), "left": range(len(left))}),
            pd.DataFrame({"k": column(right), "right": range(len(right))}),
        )
        found, expected = TOGETHER[name](*frames, pairs)
        assert found == expected
