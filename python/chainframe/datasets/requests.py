"""The queries that a scan has run, with the columns that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainframe.datasets.projection import Projected

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from chainframe import Query, Report
    from chainframe.datasets.sets import ArgumentColumn


@dataclass(frozen=True)
class Opened:
    """A list whose first page was read."""

    query: Query[Any]
    page: pa.RecordBatch | None
    rest: Generator[pa.RecordBatch]

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self.page is not None:
            yield self.page
        yield from self.rest


class Requests:
    """Runs queries, and remembers which of them have records of the result."""

    def __init__(self, argument: ArgumentColumn, page_size: int) -> None:
        self._argument = argument
        self._page_size = page_size
        self._decoded: list[str] = argument.schema.names
        self.runs: list[Query[Any]] = []
        """Queries whose records are the result."""
        self.spent: list[Report] = []
        """Reports of searches and lookups, whose records are no part of it."""

    def decode_only(self, names: set[str]) -> None:
        # A batch without columns has no rows either.
        known = self._argument.schema.names
        self._decoded = [name for name in known if name in names] or known[:1]

    def open(self, query: Query[Any]) -> Opened:
        """Reads the first page of a list."""
        rest = self.stream(query, self._page_size)
        return Opened(query, next(rest, None), rest)

    def collect(self, query: Query[Any]) -> pa.RecordBatch:
        schema = pa.schema([self._argument.schema.field(name) for name in self._decoded])
        table = pa.Table.from_batches(self.stream(query), schema)
        return table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], schema)

    def streams(self, queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        for query in queries:
            yield from self.stream(query)

    def stream(self, query: Query[Any], first: int = 1) -> Generator[pa.RecordBatch]:
        """Batches of a query. The first one has up to `first` rows, the following ones grow."""
        self.runs.append(query)
        source: Any = Projected(query, self._argument.sources(self._decoded), first)
        reader = pa.RecordBatchReader.from_stream(source)
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception:
                # Arrow's C interface keeps the message only.
                if query.last_error is not None:
                    raise query.last_error from None
                raise
            yield self._argument.selected(batch, self._decoded)

    def retire(self, query: Query[Any]) -> None:
        """Counts the cost of a query whose records are no part of the result."""
        self.runs.remove(query)
        self.spent.append(query.report)
