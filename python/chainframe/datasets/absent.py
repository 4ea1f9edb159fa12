"""Blocks that a scan lacks between others: in a list, and at heights that were requested one by one."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute as pc

from chainframe._text import counted_are
from chainframe.datasets.plan import arguments, descending
from chainframe.errors import PaginationDriftError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chainframe import Query
    from chainframe.datasets.narrowing import Narrowing
    from chainframe.datasets.requests import Requests
    from chainframe.datasets.values import Solver


# Most heights of one gap that are compared with the filter: a wrong height may leave a gap of billions.
MAX_MISSING = 10_000


class Gaps:
    """Gaps that the filter accepts in the heights of a list of blocks, which is read from the newest one down."""

    def __init__(self, schema: pa.Schema, columns: tuple[str, ...], solver: Solver | None) -> None:
        self._schema = schema
        # Those of the height and time.
        self._columns = columns
        self._solver = solver
        # Height and time of the lowest block so far.
        self._lowest: tuple[int, int | None] | None = None
        self._missing: int = 0

    def on_batch(self, batch: pa.RecordBatch) -> None:
        """Takes a batch of the list."""
        heights, times = (batch.column(name).cast(pa.int64()).to_pylist() for name in self._columns)
        known = {height: time for height, time in zip(heights, times, strict=True) if height is not None}
        blocks = sorted(known.items(), key=lambda block: block[0], reverse=True)
        above = blocks[:1] if self._lowest is None else [self._lowest]
        for upper, lower in pairwise([*above, *blocks]):
            if lower[0] < upper[0] - 1:
                self._missing += self._accepted(lower, upper)
        self._lowest = blocks[-1] if blocks else self._lowest

    def reason(self) -> str | None:
        """Why the result is incomplete; `None` without a gap."""
        if not self._missing:
            return None
        return f"The heights of blocks have gaps: {counted_are(self._missing, 'block')} missing between the others"

    def _accepted(self, lower: tuple[int, int | None], upper: tuple[int, int | None]) -> int:
        """Number of the heights between two blocks that the filter accepts, whatever other columns contain."""
        if self._solver is None:
            return upper[0] - lower[0] - 1
        height, time = map(pc.field, self._columns)
        kind = self._schema.field(self._columns[1]).type
        known = pc.scalar(value=True)
        if lower[1] is not None and upper[1] is not None and lower[1] <= upper[1]:
            known = (time >= pa.scalar(lower[1], kind)) & (time <= pa.scalar(upper[1], kind))
        if not self._solver.accepts((height > lower[0]) & (height < upper[0]) & known):
            return 0
        heights = range(lower[0] + 1, upper[0])[-MAX_MISSING:]
        return len(self._solver.which([(height == each) & known for each in heights]))


def absent_again(requests: Requests, narrowing: Narrowing, highest: float) -> Iterator[pa.RecordBatch]:
    """Reads the lists of heights again that are empty, and fails if a block is absent between others."""
    absent = _absent_blocks(requests.runs, highest) if descending(narrowing.resource) else {}
    if not absent:
        return
    lowest = min((height for run in requests.runs for height in _with_block(run)), default=math.inf)
    if min(absent) < lowest and min(absent) > 0:
        # Nothing shows yet whether the chain has begun there.
        below = _at_height(narrowing, absent[min(absent)], min(absent) - 1)
        if any(True for _ in requests.stream(below)):
            lowest = min(absent) - 1
        requests.retire(below)
    for height in [height for height in absent if height > lowest]:
        # A part of the service may have been behind.
        if len(_heights(absent[height])) == 1:
            requests.retire(absent[height])
        yield from requests.stream(_at_height(narrowing, absent[height], height))
    missing = [height for height in _absent_blocks(requests.runs, highest) if height > lowest]
    if missing:
        raise PaginationDriftError(
            f"{narrowing.resource}: the API returned no block of height {missing[0]}, although it has blocks "
            "below and above it; run the query again"
        )


def _absent_blocks(runs: list[Query[Any]], highest: float) -> dict[int, Query[Any]]:
    """Empty lists of heights below blocks that were received before, the highest of which is given."""
    absent: dict[int, Query[Any]] = {}
    for run in runs:
        heights = _heights(run)
        highest = max([highest, *_with_block(run)])
        for height, has_block in heights.items():
            # One that is requested before a higher one may not have been there.
            if not has_block and height < highest and not run.report.reasons:
                absent[int(height)] = run
    found = {height for run in runs for height in _with_block(run)}
    return {height: run for height, run in absent.items() if height not in found}


def _at_height(narrowing: Narrowing, run: Query[Any], height: int) -> Query[Any]:
    """The query for one height in place of those of a query; a set stays a set, whose records have one more column."""
    is_set = isinstance(arguments(run).get("height"), list)
    return narrowing.with_arguments(run, {"height": [str(height)] if is_set else height})


def _with_block(run: Query[Any]) -> list[float]:
    return [height for height, has_block in _heights(run).items() if has_block]


def _heights(run: Query[Any]) -> dict[float, bool]:
    """The heights of a query, infinite for the list, each with true if it has a block."""
    height = arguments(run).get("height", math.inf)
    if not isinstance(height, list):
        return {height: bool(run.report.records)}
    return {int(value): bool(verdict["records"]) for value, verdict in run.report.by_argument.items()}
