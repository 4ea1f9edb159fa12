"""Exact aggregations and cumulative functions, over the rows of each group."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainframe.exact import arithmetic, integers, operands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa


def _first(total: int, _value: int) -> int:
    return total


def _last(_total: int, value: int) -> int:
    return value


_STEPS: dict[str, Callable[[int, int], int]] = {
    "sum": operator.add,
    "prod": operator.mul,
    "min": min,
    "max": max,
    "first": _first,
    "last": _last,
}
# Values of empty groups; other aggregates of these are missing.
_EMPTY = {"sum": 0, "prod": 1}
_CUMULATIVE = {f"cum{how}": _STEPS[how] for how in ("sum", "prod", "min", "max")}
AGGREGATES = frozenset(_STEPS)
CUMULATIVE = frozenset(_CUMULATIVE)


class Groups(NamedTuple):
    """The group of each row, -1 for none, and the number of groups."""

    ids: Sequence[int]
    total: int


class Aggregates(NamedTuple):
    """Aggregates divided by 10^scale, flags of the missing ones, and how many values each has."""

    totals: list[int]
    scale: int
    absent: np.ndarray[Any, Any]
    sizes: list[int]

    def column(self, places: int) -> pa.Array[Any]:
        return arithmetic.result(self.totals, self.scale, self.absent, places)

    def doubles(self) -> np.ndarray[Any, Any]:
        return integers.doubles(self.totals, self.scale, self.absent)

    def means(self) -> np.ndarray[Any, Any]:
        """Return the nearest doubles of sums divided by their numbers of values; NaN for none."""
        found = [
            integers.ratio(total, size * 10**self.scale) for total, size in zip(self.totals, self.sizes, strict=True)
        ]
        return np.where(self.absent, np.nan, np.array(found, np.float64))


def aggregate(column: pa.ChunkedArray[Any], groups: Groups, how: str, *, min_count: int, skips: bool) -> Aggregates:
    """Aggregates each group: missing if it has fewer than `min_count` values, or a missing one unless `skips`."""
    step = _STEPS[how]
    scale = column.type.scale
    totals: list[int | None] = [None] * groups.total
    sizes = [0] * groups.total
    gaps = [False] * groups.total
    for group, value, gap in zip(groups.ids, integers.unscaled(column), operands.missing(column), strict=True):
        if group < 0:
            continue
        if gap:
            gaps[group] = True
            continue
        total = totals[group]
        totals[group] = value if total is None else step(total, value)
        sizes[group] += 1
    absent = np.array([size < min_count or (gap and not skips) for size, gap in zip(sizes, gaps, strict=True)], bool)
    if how not in _EMPTY:
        absent |= np.array([total is None for total in totals], bool)
    values = [_EMPTY.get(how, 0) if total is None else total for total in totals]
    if how == "prod":
        values, scale = _in_one_scale(values, [size * scale for size in sizes])
    return Aggregates(values, scale, absent, sizes)


def accumulate(column: pa.ChunkedArray[Any], groups: Groups, how: str, *, skips: bool) -> Aggregates:
    """Return the cumulative function of each row's group up to that row."""
    step = _CUMULATIVE[how]
    scale = column.type.scale
    totals: dict[int, int] = {}
    ended: set[int] = set()
    found = [0] * len(column)
    absent = np.zeros(len(column), bool)
    sizes: dict[int, int] = {}
    factors = [0] * len(column)
    rows = zip(groups.ids, integers.unscaled(column), operands.missing(column), strict=True)
    for row, (group, value, gap) in enumerate(rows):
        if gap and not skips:
            ended.add(group)
        if gap or group < 0 or group in ended:
            absent[row] = True
            continue
        totals[group] = found[row] = step(totals[group], value) if group in totals else value
        sizes[group] = factors[row] = sizes.get(group, 0) + 1
    if how == "cumprod":
        found, scale = _in_one_scale(found, [size * scale for size in factors])
    return Aggregates(found, scale, absent, [])


def _in_one_scale(values: list[int], scales: list[int]) -> tuple[list[int], int]:
    scale = max(scales, default=0)
    return [value * 10 ** (scale - own) for value, own in zip(values, scales, strict=True)], scale
