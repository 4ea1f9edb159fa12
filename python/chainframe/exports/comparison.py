"""Comparison of records, and the ranges of heights in which they are compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import nlargest
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Row = dict[str, Any]

WIDEST = 5
"""Widest gaps between records that are always compared: records that are missing in a row leave one."""
PENDING = "pending"


def by_key(rows: Iterable[Row], key_of: Callable[[Row], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[key_of(row)].append(row)
    return dict(found)


def is_changed(name: str, ours: list[Row], theirs: list[Row]) -> bool:
    """True if a column has other values. A record that was pending may have been settled meanwhile."""
    if any(row.get("state") == PENDING for row in ours) and name in {"state", "gas_used", "tx_fee"}:
        return False
    return Counter(repr(row[name]) for row in ours) != Counter(repr(row[name]) for row in theirs)


def width(pair: tuple[int, int]) -> int:
    return pair[1] - pair[0]


def wide(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The widest gaps, if they are wider than most."""
    usual = median(map(width, pairs)) if pairs else 0
    return [pair for pair in nlargest(WIDEST, pairs, key=width) if width(pair) > usual]


def joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins ranges of heights that overlap, so that no record is compared twice."""
    current: tuple[int, int] | None = None
    for low, high in sorted(ranges):
        if current is not None and low <= current[1]:
            current = (current[0], max(high, current[1]))
            continue
        if current is not None:
            yield current
        current = (low, high)
    if current is not None:
        yield current
