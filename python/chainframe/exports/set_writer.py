"""An export of a set: what the followers of its lists deliver, up to some heights below the head.

Each list has its own position in the cursor of the export, and the next export of a series begins there. Heights are
written once they are settled, so that there is nothing to correct: a change below is the error of its list.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chainframe.errors import ExportError, InvalidParameterError, ReorganizationError, SettledHeightError
from chainframe.errors.base import problem_of
from chainframe.exports.differences import meaning, of_another_release
from chainframe.exports.settled_writer import LATER
from chainframe.exports.writer import MAX_AGE, ParquetWriter

if TYPE_CHECKING:
    from collections.abc import Generator

    from chainframe import Query
    from chainframe._native import _FollowBuffer
    from chainframe.exports.manifest import Manifest

MAX_BYTES = 2 << 20
"""Bytes of rows after which a file is written: less than in other exports, which hold no positions."""
ROWS_PER_GROUP = 1_024
"""Rows of a group, unless fewer are wanted: pyarrow takes four times the memory of a group to write it."""


def follow_buffer(
    query: Query[Any],
    settle: int,
    start: Any,  # noqa: ANN401
    path: object,
    max_rows: int,
    *,
    earlier_requests: int | None = None,
) -> _FollowBuffer:
    """Return the followers of a set from the position of an export on, or from the beginning."""
    begin = json.dumps(start) if isinstance(start, dict) else start or "beginning"
    try:
        return query._follow_buffer(begin, settle, max_rows, MAX_BYTES, MAX_AGE, earlier_requests)  # noqa: SLF001
    except InvalidParameterError as error:
        if start is None or error.parameter != "start":
            raise
        if error_of_release := of_another_release(error, path):
            raise error_of_release from None
        raise ExportError(f"{path} cannot be continued by this query: its cursor {problem_of(error)}") from None


class SetWriter(ParquetWriter["_FollowBuffer"]):
    """Writes an export of a set that ends below the head of each list."""

    def start_at(self, position: Any) -> None:  # noqa: ANN401 - a cursor of a manifest
        """Begin at the position of an earlier export, unless this one was begun."""
        self._start = self.manifest.cursor or position

    def begin(self) -> None:
        rows_per_group = min(self._encoding.rows_per_group, ROWS_PER_GROUP)
        self._encoding = replace(self._encoding, rows_per_group=rows_per_group)
        if self.manifest.cursor is None:
            # The changes of a journal are those of a position.
            self.manifest.cursor = self._new_buffer().positions
        super().begin()

    def _new_buffer(self) -> _FollowBuffer:
        settled = self.manifest.settled
        assert settled is not None  # noqa: S101 - by construction
        return follow_buffer(
            self.query,
            settled.settle,
            self._start,
            self._directory,
            self._max_rows,
            earlier_requests=self._earlier_requests,
        )

    def fetch(self) -> None:
        with self._settled():
            super().fetch()

    async def fetch_async(self) -> None:
        with self._settled():
            await super().fetch_async()

    @contextmanager
    def _settled(self) -> Generator[None]:
        """Raises the error of a list that changed as that of an export, which has no events to undo."""
        try:
            yield
        except ReorganizationError as error:
            message = f"{self._directory}: height {error.height} of a list changed after it was exported. {LATER}"
            raise SettledHeightError(message, height=error.height, path=self._directory) from error

    def _save_finished(self, watermark: list[list[Any]], reasons: list[str], *, is_complete: bool) -> None:
        # The position of lists without records too: the next export begins there.
        self.manifest.cursor = self._buffer.positions
        super()._save_finished(watermark, reasons, is_complete=is_complete)


def check_followed(query: Query[Any], settle: int, earlier: Manifest | None, path: object) -> None:
    """Check that a set can be exported so, before anything is created or sent."""
    if earlier is not None and (earlier.settled is None or earlier.cursor is None):
        message = "must be an export of the same query with settle"
        raise InvalidParameterError(message, parameter="since")
    follow_buffer(query, settle, earlier.cursor if earlier else None, path, 1)


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
