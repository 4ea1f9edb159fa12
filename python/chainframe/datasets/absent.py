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
    from collections.abc import Callable, Iterator, Sequence

    from chainframe import Query
    from chainframe.datasets.narrowing import Narrowing
    from chainframe.datasets.requests import Requests


# Most heights of one gap that are compared with the filter: a wrong height may leave a gap of billions.
MAX_MISSING = 10_000


class Gaps:
    """Gaps that the filter accepts in the heights of a list of blocks, which is read from the newest one down."""

    def __init__(self, schema: pa.Schema, column: str | None, keep: Callable[[pa.Table], pa.Table]) -> None:
        self._schema = schema
        self._column = column or ""
        self._keep = keep
        self._lowest: int | None = None
        self._missing: int = 0

    def on_batch(self, batch: pa.RecordBatch) -> None:
        """Takes a batch of the list."""
        known: list[Any] = pc.unique(batch.column(self._column).drop_null()).to_pylist()
        heights = sorted(known, reverse=True)
        above = heights[:1] if self._lowest is None else [self._lowest]
        for upper, height in pairwise([*above, *heights]):
            if height < upper - 1:
                self._missing += self._accepted(range(height + 1, upper)[-MAX_MISSING:])
        self._lowest = heights[-1] if heights else self._lowest

    def reason(self) -> str | None:
        """Why the result is incomplete; `None` without a gap."""
        if not self._missing:
            return None
        return f"The heights of blocks have gaps: {counted_are(self._missing, 'block')} missing between the others"

    def _accepted(self, heights: Sequence[int]) -> int:
        """Number of the heights that the filter accepts, whatever the other columns of their blocks contain."""
        values = pa.array(heights, self._schema.field(self._column).type)
        columns = [
            values if field.name == self._column else pa.nulls(len(heights), field.type) for field in self._schema
        ]
        return len(self._keep(pa.Table.from_arrays(columns, schema=self._schema)))


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
