"""An export of a set: what the followers of its lists deliver, up to some heights below the head.

Each list has its own position in the cursor of the export, and the next export of a series begins there. Heights are
written once they are settled, so that there is nothing to correct: a change below is the error of its list.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from chainframe._native import _PartBuffer
from chainframe.errors import ExportError, InvalidParameterError, ReorganizationError, SettledHeightError
from chainframe.exports.differences import meaning, of_another_release
from chainframe.exports.settled import LATER
from chainframe.exports.writer import MAX_AGE, ParquetWriter
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa

    from chainframe import Follow, Query, Records, Report
    from chainframe.exports.manifest import Manifest

BEGINNING = "beginning"
MAX_BYTES = _PartBuffer.MAX_BYTES


def follow_set(query: Query[Any], settle: int, cursor: dict[str, Any] | None, path: object) -> Follow[Records[Any]]:
    """Return the followers of a set from a cursor of an export on, or from the beginning."""
    start = BEGINNING if cursor is None else json.dumps(cursor)
    try:
        return query.follow(start=start, settle=settle, poll=None)
    except InvalidParameterError as error:
        if cursor is None:
            raise
        if error_of_release := of_another_release(error, path):
            raise error_of_release from None
        problem = str(error).removeprefix("start ")
        raise ExportError(f"{path} cannot be continued by this query: its cursor {problem}") from None


class FollowedWriter(ParquetWriter):
    """Writes an export of a set that ends below the head of each list."""

    def start_at(self, cursor: dict[str, Any] | None) -> None:
        """Begin at a cursor of an earlier export, unless this one was begun."""
        self._start = self.manifest.cursor or cursor

    def _new_buffer(self) -> _PartBuffer:
        settled = self.manifest.settled
        assert settled is not None  # noqa: S101 - by construction
        follow = follow_set(self.query, settled.settle, self._start, self._directory)
        return cast("_PartBuffer", _FollowBuffer(self.query, follow, self._max_rows, str(self._directory)))

    def _save_finished(self, watermark: list[list[Any]], reasons: list[str], *, is_complete: bool) -> None:
        # The position of lists without records too: the next export begins there.
        self.manifest.cursor = json.loads(cast("Any", self._buffer).cursor)
        super()._save_finished(watermark, reasons, is_complete=is_complete)


@dataclass
class _FollowBuffer:
    """Events of followers, until they are written: what an export needs of the buffer in the core."""

    query: Query[Any]
    follow: Follow[Records[Any]]
    max_rows: int
    path: str
    events: list[Records[Any]] = field(default_factory=list)
    """Events that are not written. An interrupt falls before or after one is added."""
    oldest: float = 0.0
    """Time at which the first of them arrived."""
    num_bytes: int = 0
    """About the bytes that they take. An interrupt leaves more, which ends a file early."""
    ended: bool = False

    def __post_init__(self) -> None:
        self.cursor = self.follow.cursor
        """Position after what was taken."""

    @property
    def rows(self) -> int:
        return sum(len(event) for event in self.events)

    def fetch(self) -> None:
        with self._settled():
            self._take(next(self.follow, None))

    async def fetch_async(self) -> None:
        with self._settled():
            self._take(await anext(self.follow, None))

    @contextmanager
    def _settled(self) -> Generator[None]:
        """Raises the error of a list that changed as that of an export, which has no events to undo."""
        try:
            yield
        except ReorganizationError as error:
            message = f"{self.path}: height {error.height} of a list changed after it was exported. {LATER}"
            raise SettledHeightError(message, height=error.height, path=self.path) from error

    def _take(self, event: Records[Any] | None) -> None:
        if event is None:
            self.ended = True
        else:
            self.oldest = self.oldest if self.events else monotonic()
            self.num_bytes += event._num_bytes()  # noqa: SLF001 - of this package
            self.events.append(event)

    def is_due(self) -> bool:
        """Return True if the events fill a file, or are due by age, as for the buffer in the core."""
        if not self.events:
            return False
        is_full = self.rows >= self.max_rows or self.num_bytes >= MAX_BYTES
        return is_full or monotonic() - self.oldest >= MAX_AGE

    def drain(self) -> None:
        """Return at once: all that was read is in `events`."""

    def take(self) -> tuple[_Rows, str] | None:
        """Take the records that were fetched, with the cursor after them."""
        events = self.events
        self.events = []
        self.num_bytes = 0
        if not events:
            return None
        reached = {event[0].queried[0]: event.cursor or "" for event in events}
        self.cursor = self.query._merged_cursor(self.cursor, list(reached.items()))  # noqa: SLF001 - of this package
        if self.ended:
            # With the heights that have no records.
            self.cursor = self.follow.cursor
        return _Rows(events), self.cursor

    def report(self) -> Report:
        return self.follow.report


@dataclass(frozen=True)
class _Rows:
    """The records of several events."""

    events: list[Records[Any]]

    @property
    def schema(self) -> Any:  # noqa: ANN401
        return self.events[0].schema

    def _counts_by_queried(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for event in self.events:
            counts.update(event._counts_by_queried())  # noqa: SLF001 - of this package
        return counts

    def to_arrow(self, numbers: Any = None, *, columns: list[str] | None = None) -> pa.Table:  # noqa: ANN401
        arrow: Any = load("pyarrow")
        joined: pa.Table = arrow.concat_tables([event.to_arrow(numbers, columns=columns) for event in self.events])
        return joined


def check_followed(query: Query[Any], settle: int, earlier: Manifest | None, path: object) -> None:
    """Check that a set can be exported so, before anything is created or sent."""
    if earlier is not None and (earlier.settled is None or earlier.cursor is None):
        message = "must be an export of the same query with settle"
        raise InvalidParameterError(message, parameter="since")
    follow_set(query, settle, earlier.cursor if earlier else None, path).close()


def grown(found: Manifest, new: Manifest) -> Manifest:
    """Return the state of an interrupted export of a set, with the lists that have joined the set since."""
    ours = new.query["arguments"]
    theirs = found.query["arguments"]
    if found.finished or found.settled is None or ours.keys() != theirs.keys():
        return found
    joined = {name: value for name, value in ours.items() if _is_superset(value, theirs[name])}
    return replace(found, query={**found.query, "arguments": {**theirs, **joined}})


def _is_superset(values: object, others: object) -> bool:
    return isinstance(values, list) and isinstance(others, list) and set(meaning(values)) >= set(meaning(others))
