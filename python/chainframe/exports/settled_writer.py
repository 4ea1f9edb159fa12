"""An export that ends some heights below the head, and reads the last heights of the one before again.

Heights, from the head down, when `settle` is S and the earlier export ended at E:

    above the newest height - S      left to the next export
    down to E + 1                    new: written to parts
    down to E - S + 1                compared: what changed goes to corrections, what is new to parts
    the next height with a record    must not have changed
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from chainframe.errors import ExportError, SettledHeightError
from chainframe.exports.rows import height_name, row_keys, row_values
from chainframe.exports.series import CHANGE, Tail
from chainframe.exports.writer import QueryWriter
from chainframe.frames import load

if TYPE_CHECKING:
    import pyarrow as pa

    from chainframe import Query
    from chainframe.exports.left_rows import LeftRows
    from chainframe.exports.manifest import Manifest, Settled
    from chainframe.exports.store import Store

UNPLACED = (
    "The list has records without a height below others that are settled: they were not written. "
    "An export without settle has them."
)
LATER = "Run the export again later. If the reason stays, begin another export or series in another directory."


class _Action(Enum):
    """Action for rows that have arrived."""

    SKIP = 1
    WRITE = 2
    COMPARE = 3


class SettledWriter(QueryWriter):
    """Writes an export of a settled series."""

    _is_keyed = True

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        query: Query[Any],
        *,
        tail: Tail | None,
        left: LeftRows | None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(store, manifest, query, **options)
        self._tail = tail
        self._left = left
        """None if the call writes no other export."""
        self._unsettled: deque[tuple[str, int | None]] = deque()
        """Keys and heights of the rows that are not known to be settled, and so left to the next export."""
        self._before_end = tail.end_height if tail else None
        """Highest height of the earlier export."""
        self._met = False
        """True if the list was read below the heights that are compared."""
        self._again: list[pa.Table] = []
        self._again_cursor = ""
        self._action = _Action.SKIP
        """Action for the `_queued` rows that arrived last."""
        self._queued = 0
        self._top: int | None = None
        self._highest: int | None = None
        """The highest height that this run has read."""
        self._lowest: int | None = None
        """The lowest height that this run has read of a list that is in order."""
        self._is_ordered = True
        """False if a height was listed below a lower one."""

    @property
    def _settled(self) -> Settled:
        """The heights of the manifest. They change as rows arrive, and are stored with the next commit."""
        assert self.manifest.settled is not None  # noqa: S101 - by construction
        return self.manifest.settled

    def _is_in_order(self) -> bool:
        return self._tail is not None

    def _is_met(self) -> bool:
        return self._met

    def _new_watermark(self, records: Any) -> list[list[Any]]:  # noqa: ANN401
        del records
        return []

    def _release_due(self) -> None:
        rows = list(self._buffer.new_keys())
        if self._order != "by_height":
            self._check_order([height for _, height in rows if height is not None])
        for key, height in rows:
            if self._left is not None:
                self._left.see(key, height)
            if height is not None:
                self._highest = height if self._highest is None else max(self._highest, height)
            if self._order == "by_height":
                self._next_of_range(key, height)
            else:
                self._next_of_list(key, height)
        self._do_queued()
        self._met = self._met or self._is_read_again()

    def _check_order(self, heights: list[int]) -> None:
        """Raises `ExportError` for a list that is not in descending order: what is new would not be at its head.

        A height may be listed below a lower one if the next export reads both again.
        """
        if heights and heights[0] < heights[-1] and heights == sorted(heights):
            raise self._listed_below(heights[-1], heights[0])
        if not self._is_in_order():
            # A list beyond the result window is read in parts, each of which begins with its newest record.
            self._lowest = None
        for height in heights:
            if self._lowest is None or height <= self._lowest:
                self._lowest = height
            elif height > self._lowest + self._settled.settle:
                raise self._listed_below(height, self._lowest)
            else:
                self._is_ordered = False

    def _is_read_again(self) -> bool:
        """True if a list was read below the heights that are compared.

        Rows of these may be listed below lower ones. The list is read on for them, unless it was in order so far and
        lacks no record of the earlier exports.
        """
        tail = self._tail
        if tail is None or tail.lowest is None or self._lowest is None or self._lowest >= tail.lowest:
            return False
        if self._lowest < tail.lowest - self._settled.settle:
            return True
        new = self._rows_again()
        known = set(row_keys(tail.rows.cast(new.schema), self.manifest))
        return self._is_ordered and known.issubset(row_keys(new, self.manifest))

    def _listed_below(self, height: int, lower: int | None) -> ExportError:
        path = self._directory
        return ExportError(f"{path}: height {height} is listed below height {lower}; export without settle", path=path)

    def _next_of_list(self, key: str, height: int | None) -> None:
        """Takes the next row of a list with its newest record first. A row without a height is not settled."""
        settled = self._settled
        if height is None and self._action is not _Action.SKIP:
            settled.has_unplaced = True
        if settled.end_height is None and height is not None:
            end = height - settled.settle
            settled.end_height = end if self._before_end is None else max(end, self._before_end)
        if height is None or settled.end_height is None or height > settled.end_height:
            if self._left is not None:
                self._unsettled.append((key, height))
            self._queue(_Action.SKIP)
            return
        # A height may be listed below one that is lower by `settle`.
        self._check_left(height + settled.settle + 1, settled.end_height)
        if self._before_end is None or height > self._before_end:
            if self._again or self._action is _Action.COMPARE:
                raise self._listed_below(height, self._before_end)
            self._queue(_Action.WRITE)
        elif self._tail is not None and self._tail.lowest is not None and height < self._tail.lowest:
            self._queue(_Action.SKIP)
        else:
            self._queue(_Action.COMPARE)

    def _next_of_range(self, key: str, height: int | None) -> None:
        """Takes the next row of a range, whose lowest height comes first."""
        is_earlier = height is not None and self._before_end is not None and height <= self._before_end
        if is_earlier and not self._settled.is_compared:
            self._queue(_Action.COMPARE)
            return
        self._unsettled.append((key, height))
        if height is not None:
            self._top = height if self._top is None else max(self._top, height)
        while self._unsettled and self._top is not None:
            first = self._unsettled[0][1]
            if first is not None and first > self._top - self._settled.settle:
                return
            if not self._settled.is_compared:
                self._do_queued()
                self._compare_once()
            if first is not None:
                self._check_left(0, first - 1)
                self._settled.end_height = first
            self._unsettled.popleft()
            self._queue(_Action.SKIP if first is None else _Action.WRITE)

    def _check_left(self, lowest: int, highest: int) -> None:
        """Raises `ExportError` if these heights lack records that the same call received before."""
        height = None if self._left is None else self._left.lacking(lowest, highest)
        if height is None:
            return
        # The next call reads the list again from this height on.
        self._has_gap = True
        path = self._directory
        raise ExportError(
            f"{path}: height {height} lacks records that the same call received before: a part of the service lacks "
            "them, or the chain was reorganized; run the export again",
            path=path,
            retryable=True,
        )

    def _queue(self, action: _Action) -> None:
        """Adds the next row that arrived to those of the same action."""
        if action is not self._action:
            self._do_queued()
            self._action = action
        self._queued += 1

    def _do_queued(self) -> None:
        """Does with the queued rows what they were queued for."""
        count = self._queued
        self._queued = 0
        if not count:
            return
        match self._action:
            case _Action.SKIP:
                self._buffer.skip(count)
            case _Action.WRITE:
                self._release(self._released + count)
            case _Action.COMPARE:
                self._read_again(count)

    def _read_again(self, count: int) -> None:
        """Takes rows of heights that the earlier export has, once those before them are written."""
        self._write_all()
        self._buffer.accept(count)
        while (taken := self._buffer.take()) is not None:
            records, self._again_cursor = taken
            self._again.append(self._table(records))

    def _compare_once(self) -> None:
        """Writes and commits what changed in the earlier exports."""
        if self._settled.is_compared:
            return
        added, corrections, above = self._compared()
        parts = self._parts(added) if added is not None and added.num_rows else []
        files = [self._write_part("_corrections-000000.data", corrections)] if corrections is not None else []
        settled = replace(self._settled, corrections=files, corrected_above=above, is_compared=True)
        if self._again_cursor:
            self._commit(parts, [], self._again_cursor, settled)
        else:
            # Nothing was read again, and nothing added: this is part of the next commit.
            self.manifest.settled = settled

    def _rows_again(self) -> pa.Table:
        """Rows that this run has read of heights that the earlier export has."""
        arrow: Any = load("pyarrow")
        table: pa.Table = arrow.concat_tables([self._table(self.query.partial[:0]), *self._again])
        return table

    def _compared(self) -> tuple[pa.Table | None, pa.Table | None, int | None]:
        """Rows to add, corrections, and the height above which they are."""
        tail = self._tail
        if tail is None or tail.end_height is None:
            return None, None, None
        new = self._rows_again()
        above = tail.end_height - self._settled.settle
        found = compare(self._comparable(tail.rows, tail.end_height, above).cast(new.schema), new, self.manifest, above)
        reasons = self._buffer.report().reasons
        if found.deepest is not None:
            # A list that was read to its end may have the reason that the API returns the last 12 months only.
            is_read = self._buffer.is_read_to_end or not reasons
            advice = _advice(tail.rows, new, tail.end_height, found.deepest) if is_read else f". {reasons[0]} {LATER}"
            raise SettledHeightError(
                f"{self._directory}: height {found.deepest} changed after it was exported, {self._settled.settle} "
                f"heights or more below the end of the earlier export ({tail.end_height}){advice}",
                height=found.deepest,
                path=self._directory,
            )
        if reasons and not self._buffer.is_read_to_end:
            path = self._directory
            message = f"{path}: the heights from {tail.lowest} to {tail.end_height} could not be read completely"
            raise ExportError(f"{message}: {reasons[0]} {LATER}", path=path, retryable=True)
        return found.added, found.corrections, above

    def _comparable(self, earlier: pa.Table, end: int, above: int) -> pa.Table:
        """Rows of the earlier exports up to the head of the list: one that is behind does not remove those above it."""
        head = self._highest
        if self._began_at is not None or (head is not None and head >= end):
            return earlier
        pc: Any = load("pyarrow.compute")
        kept = earlier[:0] if head is None else earlier.filter(pc.field(height_name(self.manifest)) <= head)
        # Without rows above its head, the list may have lost a record that was not settled, and been quiet since.
        if (head is None or head < above) and kept.num_rows < earlier.num_rows:
            path = self._directory
            where = "has no record" if head is None else f"ends at height {head}"
            message = f"{path}: the list {where}, and the earlier export ends at height {end}"
            raise ExportError(f"{message}; it is behind: run the export again later", path=path, retryable=True)
        return kept

    def _finish(self) -> None:
        reasons = [UNPLACED] if self._settled.has_unplaced else []
        if self._settled.end_height is not None:
            self._check_left(0, self._settled.end_height)
        self._write_all()
        if self._settled.is_compared or self._tail is None or self._met or self._buffer.is_read_to_end:
            self._compare_once()
        else:
            reasons.append("The newest records of the earlier export were not reached: records in between are missing.")
        ends = [end for end in (self._settled.end_height, self._before_end) if end is not None]
        self._settled.end_height = max(ends, default=None)
        self._save_finished([], reasons, is_complete=not reasons)
        if self._left is not None:
            self._left.add(self._unsettled)


def _advice(earlier: pa.Table, now: pa.Table, end: int, deepest: int) -> str:
    """Says how a series continues after a change, by the rows of the earlier exports and the same heights now."""
    settle = end - deepest + 1
    names = now.schema.names if now.num_rows and earlier.num_rows else []
    emptied = [name for name in names if not earlier[name].null_count and now[name].null_count == now.num_rows]
    if emptied:
        # Corrections would remove the values.
        return (
            f"; no record has {', '.join(emptied)} now, which all had: when the service sends this again, export once "
            f"with a settle of at least {settle}, or else begin another series in another directory"
        )
    filled = [name for name in names if earlier[name].null_count == earlier.num_rows and not now[name].null_count]
    if filled:
        return (
            f"; all records have {', '.join(filled)} now, which none had: begin another series in another directory, "
            f"or export once with a settle of {end + 1} or more, which reads the whole list and corrects all records"
        )
    return f"; export once with a settle of at least {settle}, more if lower heights changed too"


@dataclass(frozen=True)
class Changes:
    """Differences between rows that were exported and the same heights now."""

    added: pa.Table
    """Rows of records that were not there."""
    corrections: pa.Table | None
    """Rows that are gone, and rows in place of others; None if there are none."""
    deepest: int | None
    """The lowest height that changed and must not have; None if there is none."""


def compare(old: pa.Table, new: pa.Table, manifest: Manifest, above: int) -> Changes:
    """Compare the rows of heights by identity and content. Heights up to `above` must be equal."""
    arrow: Any = load("pyarrow")
    sides = [(row_keys(table, manifest), row_values(table, manifest)) for table in (old, new)]
    (old_keys, old_rows), (new_keys, new_rows) = sides
    height = old.schema.get_field_index(height_name(manifest))
    ours = Counter(old_rows)
    theirs = Counter(new_rows)
    changed_rows = {*(ours - theirs), *(theirs - ours)}
    deep = [row[height] for row in changed_rows if row[height] <= above]
    known = set(old_keys)
    changed = {
        key for keys, rows in sides for key, row in zip(keys, rows, strict=True) if row in changed_rows and key in known
    }
    still = set(new_keys)
    added = new.filter(arrow.array([key not in known for key in new_keys], arrow.bool_()))
    replaced = new.filter(arrow.array([key in changed for key in new_keys], arrow.bool_()))
    removed = old.filter(arrow.array([key in changed and key not in still for key in old_keys], arrow.bool_()))
    corrections = None
    if changed:
        column = arrow.array(["replaced"] * replaced.num_rows + ["removed"] * removed.num_rows, arrow.string())
        corrections = arrow.concat_tables([replaced, removed]).append_column(CHANGE, column)
    return Changes(added, corrections, min(deep, default=None))
