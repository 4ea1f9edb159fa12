"""Structured Streaming: micro-batches of what a follower delivers, whose offsets are its cursors.

The driver follows the list to find the end of a micro-batch, and sends the records to the task. After a restart, Spark
repeats the micro-batch that was not committed: its task reads the records between the two cursors again, and fails if
they are not the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from chainframe import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from chainframe import Query, Records
    from chainframe.integrations.spark import Job

CURSOR = "cursor"
INITIAL = "initial"
"""Member of the offset before the first micro-batch, which a restarted query asks for again."""
SINCE = "since"
"""Member of the end of the first micro-batch: the cursor at which it began. Spark does not store that one."""


class _Rows(InputPartition):
    """Records that the driver has read."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches


class _Between(InputPartition):
    """Two cursors, between which the task reads."""

    def __init__(self, start: str, end: str) -> None:
        self.start = start
        self.end = end


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, job: Job) -> None:
        self._job = job
        # Cursor at which a query with the trigger AvailableNow ends.
        self._end: str | None = None
        # The micro-batch that was read last: its offsets and rows.
        self._last: tuple[dict[str, Any], dict[str, Any], list[pa.RecordBatch]] | None = None
        # An offset, and the cursor after it up to which there was nothing new.
        self._quiet: tuple[str, str] = ("", "")

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        if self._job.start == "now":
            return {CURSOR: self._settled(), INITIAL: True}
        follow = self._query.follow(start=self._job.start, settle=self._job.settle, poll=None)
        return {CURSOR: follow.cursor, INITIAL: True}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._job.max_rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._end = self._settled()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        cursor: str = start[CURSOR]
        begin = self._quiet[1] if self._quiet[0] == cursor else cursor
        if self._end is None:
            follow = self._query.follow(start=begin, settle=self._job.settle, poll=None)
        else:
            follow = self._between(begin, self._end)
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        read = 0
        batches: list[pa.RecordBatch] = []
        for records in follow:
            batches += self._converted([records])
            read += len(records)
            if max_rows is not None and read >= max_rows:
                break
        if not batches:
            self._quiet = (cursor, follow.cursor)
            return start
        end = {CURSOR: follow.cursor, **({SINCE: cursor} if start.get(INITIAL) else {})}
        self._last = (start, end, batches)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        if self._last and self._last[:2] == (start, end):
            return [_Rows(self._last[2])]
        # A restarted query may begin later than it did when its first micro-batch was planned.
        begin = end.get(SINCE, start[CURSOR]) if start.get(INITIAL) else start[CURSOR]
        return [_Between(begin, end[CURSOR])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, _Rows):
            return iter(partition.batches)
        between = cast("_Between", partition)
        return self._converted(self._between(between.start, between.end))

    def commit(self, end: dict[str, Any]) -> None:
        if self._last and self._last[1] == end:
            self._last = None

    @cached_property
    def _query(self) -> Query[Any]:
        query = self._job.query()
        if query._values:  # noqa: SLF001 - of this package
            message = "a stream follows one value of each argument; make a stream of each value, or use read"
            raise InvalidParameterError(message)
        return query

    def _settled(self) -> str:
        """Return the cursor after all that is settled now."""
        follow = self._query.follow(start="now", settle=self._job.settle, poll=None)
        for _ in follow:
            pass
        return follow.cursor

    def _between(self, start: str, end: str) -> Any:  # noqa: ANN401 - a follower
        return self._query._follow_between(start, end, self._job.settle)  # noqa: SLF001 - of this package

    def _converted(self, followed: Iterable[Records[Any]]) -> Iterator[pa.RecordBatch]:
        schema = self._job.schema()
        for records in followed:
            table = records.to_arrow(self._job.numbers, columns=self._job.columns)
            yield from table.cast(schema).to_batches()
