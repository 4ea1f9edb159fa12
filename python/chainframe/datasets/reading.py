"""Requests of a scan: those of the queries that its filter leaves, or what costs fewer of them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute as pc

from chainframe._declared import record_of
from chainframe.datasets.absent import Gaps, absent_blocks, lowest_block
from chainframe.datasets.narrowing import DIRECT, MAX_COUNTS, Narrowing
from chainframe.datasets.plan import arguments, descending
from chainframe.datasets.projection import Projected
from chainframe.datasets.received import LACKING, Received, block_columns
from chainframe.datasets.times import Index, is_cheaper, is_searched
from chainframe.datasets.ways import ByHashes, ByTimes, Descent, Direct, Parts
from chainframe.errors import PaginationDriftError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from chainframe import Query, Report
    from chainframe.datasets.hashes import Lookup
    from chainframe.datasets.sets import ArgumentColumn
    from chainframe.datasets.values import Solver

# Most pages of a list that are read to find the heights of times.
MAX_PROBES = 8
NO_REQUEST = "no request: no record can satisfy the filter"


class Reading:
    """The requests of one scan."""

    def __init__(
        self, query: Query[Any], argument: ArgumentColumn, solver: Solver | None, keep: Callable[[pa.Table], pa.Table]
    ) -> None:
        self._query = query
        self._argument = argument
        self.narrowing: Narrowing = Narrowing(query, argument.schema, solver)
        self._decoded: list[str] = argument.schema.names
        self.runs: list[Query[Any]] = []
        """Queries whose records are the result."""
        self.spent: list[Report] = []
        """Reports of searches and lookups, whose records are no part of it."""
        record = record_of(self.narrowing.resource)
        self._identity: list[str] = record["identity"]
        self._roles: dict[str, str | None] = record["roles"]
        self._keep = keep
        self._forget()

    def _forget(self) -> None:
        """Begins with what a scan has received."""
        self._received = Received(self._identity, self._roles, self._keep)
        # Transactions that were looked up for their heights.
        self._located = Received(["tx_id"], record_of("transactions")["roles"])
        self._gaps = Gaps(self._argument.schema, self._roles["height"], self._keep)
        # Greatest height of a list that was not read on.
        self._highest: float = -math.inf

    def explain(self) -> str:
        queries = self.narrowing.queries()
        if not queries:
            return NO_REQUEST
        lines = [repr(query) for query in queries]
        if self.narrowing.located_by(queries):
            return "\n".join([*lines, "after a lookup of the hashes for their heights, if all of them are found"])
        match self.narrowing.way(queries):
            case Direct():
                pass
            case ByHashes(query, lookup):
                lines = [repr(self.narrowing.with_arguments(query, {lookup.parameter: each})) for each in lookup.hashes]
                lines.append(f"if responses show that {lookup.parameter} compares {lookup.column}, else {query!r}")
            case ByTimes(timed=[]):
                return NO_REQUEST
            case ByTimes(query, timed):
                lines = [*map(repr, timed), f"if the first page of {query!r} shows that the whole list costs more"]
            case Descent(floors):
                down_to = " or ".join(f"{column} {floor}" for column, floor in floors.items())
                lines = [f"{self._query!r} down to {down_to}", *(lines if len(queries) > 1 else [])]
            case Parts(whole):
                lines.append(f"if the first page of {whole!r} shows that the whole list costs more")
        return "\n".join(lines)

    def queries(self) -> list[Query[Any]]:
        """Queries for a parallel read, which together return all that the filter can accept."""
        queries = self.narrowing.located(self.narrowing.queries(), self.spent, self._located)
        match self.narrowing.way(queries):
            case ByHashes(query, lookup):
                return [self._certain(query, lookup) or query]
            case ByTimes(query, timed):
                stream = self._stream(query, self.narrowing.page_size)
                page = next(stream, None)
                stream.close()
                resolved = None if page is None else self._resolved(query, timed, page)
                return queries if resolved is None else resolved
            case Direct() | Descent() | Parts():
                return queries

    def _certain(self, query: Query[Any], lookup: Lookup) -> Query[Any] | None:
        """The query for a hash, if responses show that it returns all records of a list that have the hash."""
        if len(lookup.hashes) > 1:
            # A record may have several hashes: the queries would return it several times.
            return None
        fetch = partial(self._with_hash, query, lookup)
        lookup.fetched(lookup.hashes[0], fetch)
        page = None if lookup.is_certain else next(self._stream(query, self.narrowing.page_size), None)
        if page is not None:
            lookup.probe(page, fetch)
        found = self.narrowing.with_arguments(query, {lookup.parameter: lookup.hashes[0]})
        return found if lookup.is_certain else None

    @property
    def reads_whole_list(self) -> bool:
        """True if the filter leaves the request as it is. Sends nothing."""
        queries = self.narrowing.queries()
        is_read_directly = isinstance(self.narrowing.way(queries), Direct | Parts)
        return queries == [self._query] and is_read_directly and not self.narrowing.located_by(queries)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, the first after one page."""
        self._forget()
        for batch in self._result():
            self._received.on_result(batch)
            self._located.on_result(batch)
            yield batch
        yield from self._absent_again()

    def reasons(self) -> list[str]:
        """Reasons why the result is incomplete that none of its queries has."""
        reasons = []
        if self._received.are_lacking() or self._located.are_lacking():
            reasons.append(LACKING)
        gaps = self._gaps.reason()
        # A query whose list has gaps gives that reason itself.
        if gaps is not None and not any(run.report.reasons for run in self.runs):
            reasons.append(gaps)
        return reasons

    def _result(self) -> Iterator[pa.RecordBatch]:
        queries = self.narrowing.queries()
        located = self.narrowing.located(queries, self.spent, self._located)
        if located is not queries:
            yield from self._streams(located)
            return
        match self.narrowing.way(queries):
            case Direct():
                yield from self._streams(queries)
            case ByHashes(query, lookup):
                yield from self._looked_up(query, lookup)
            case ByTimes(query, timed):
                yield from self._timed(query, timed)
            case Descent(floors):
                yield from self._descended(queries, floors)
            case Parts(whole):
                yield from self._split(whole, queries)

    def _timed(self, query: Query[Any], timed: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list, or the heights of some times where these cost fewer requests or pass the result window."""
        if not timed or self.narrowing.is_timed(query):
            yield from self._streams(timed)
            return
        bounds = self.narrowing.time_bounds()
        if bounds is not None and bounds.is_counted:
            yield from self._indexed(query, Index(bounds, self.narrowing.page_size, arguments(timed[0])))
            return
        stream = self._stream(query, self.narrowing.page_size)
        page = next(stream, None)
        if page is None:
            return
        if (resolved := self._resolved(query, timed, page)) is not None:
            yield from self._abandon(stream, query, page, resolved)
            return
        yield page
        yield from stream

    def _split(self, whole: Query[Any], queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list, or parts of it where these cost fewer requests or pass the result window."""
        stream = self._stream(whole, self.narrowing.page_size)
        page = next(stream, None)
        if page is None:
            return
        bounds = self.narrowing.time_bounds()
        newest = None if bounds is None else pc.max(page.column(bounds.height)).as_py()
        left = self.narrowing.remainder(whole)
        if left.is_capped or left.pages > self.narrowing.cost(queries, newest):
            if columns := descending(self.narrowing.resource):
                shown = pc.max(page.column(columns[0])).as_py()
                self._highest = -math.inf if shown is None else shown
            yield from self._abandon(stream, whole, page, queries)
            return
        yield page
        yield from stream

    def _indexed(self, query: Query[Any], index: Index) -> Iterator[pa.RecordBatch]:
        """Reads a list with a count, or a range of heights that some of its pages show to include the times."""
        heights = self.narrowing.with_heights(query)
        stream = self._stream(heights, self.narrowing.page_size)
        page = next(stream, None)
        left = self.narrowing.remainder(heights)
        if page is None or left.pages < DIRECT:
            counts = 0 if heights is query else None
        else:
            index.add(1, page, left.length)
            # Before the pages that are requested later.
            self._received.add(page)
            counts = self._explored(query, heights, index)
            if counts is not None and (index.pages() < left.pages or counts > 1):
                yield from self._abandon(stream, heights, None, self.narrowing.between(query, index.heights()))
                return
        if counts is None:
            yield from self._abandon(stream, heights, None, [query])
            return
        self._received.forget_newer(0, page)
        if page is not None:
            yield page
        yield from stream

    def _explored(self, query: Query[Any], heights: Query[Any], index: Index) -> int | None:
        """Adds pages to an index; returns how often a list was counted, or `None` if heights do not narrow it.

        A record with a time and no height is in the list only: the range of all heights must have as many records. It
        is counted first, so that new records do not hide one: it never has more records than the list has later.
        """
        within = index.length
        is_whole = heights is query
        counts = 0
        for _ in range(MAX_PROBES):
            number = index.next_page()
            if is_whole and number is None:
                break
            total = self._probe(query, number or 1, index)
            if not is_whole:
                is_whole = total == within
                counts += 1
                if counts == MAX_COUNTS:
                    break
                within = within if is_whole else self._probe(heights, 1, index)
        return counts if is_whole and index.is_ordered else None

    def _probe(self, query: Query[Any], number: int, index: Index) -> int:
        """Fetches a page for an index; returns the number of records of the list."""
        records, total, report = query._page(number)  # noqa: SLF001 - of this package
        self.spent.append(report)
        batches = records.to_arrow("decimal").combine_chunks().to_batches()
        for batch in batches:
            index.add(number, batch, total or 0)
            self._received.add(batch)
        # A page without records does not show where heights are.
        index.is_ordered &= bool(batches)
        return total or 0

    def _looked_up(self, query: Query[Any], lookup: Lookup) -> Iterator[pa.RecordBatch]:
        """Reads the records that have some hashes, if responses show that these are all, or else the list."""
        fetch = partial(self._with_hash, query, lookup)
        stream = self._stream(query, self.narrowing.page_size)
        is_opened = len(lookup.hashes) > DIRECT
        page = next(stream, None) if is_opened else None
        if page is None or self.narrowing.remainder(query).pages > len(lookup.hashes):
            found = [lookup.fetched(value, fetch) for value in lookup.hashes]
            count = 0 if is_opened else len(self._received)
            if not lookup.is_certain:
                if is_opened and page is None and len(self._received):
                    # The list was empty before a lookup found one of its records.
                    self._retire(query)
                    stream = self._stream(query, self.narrowing.page_size)
                    count = len(self._received)
                page = next(stream, None) if page is None else page
                if page is not None and self.narrowing.remainder(query).pages > len(lookup.directions):
                    lookup.probe(page, fetch)
            if page is not None:
                self._received.add(page)
            # A response may show a record that none of the lookups returned.
            if lookup.is_certain and self._received.is_in(found):
                if page is not None:
                    yield from self._abandon(stream, query, None, [])
                yield from found
                return
            for run in [run for run in self.runs if run != query]:
                self._retire(run)
            self._received.forget_newer(count, page)
        if page is not None:
            yield page
        yield from stream

    def _with_hash(self, query: Query[Any], lookup: Lookup, value: str) -> pa.RecordBatch:
        """The records of a list that the API finds by a hash."""
        one = self.narrowing.with_arguments(query, {lookup.parameter: value})
        schema = pa.schema([self._argument.schema.field(name) for name in self._decoded])
        table = pa.Table.from_batches(self._stream(one), schema)
        found = table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], schema)
        self._received.add(found, is_looked_up=True)
        return found

    def _abandon(
        self,
        stream: Generator[pa.RecordBatch],
        query: Query[Any],
        page: pa.RecordBatch | None,
        others: list[Query[Any]],
    ) -> Iterator[pa.RecordBatch]:
        """Reads other queries in place of one whose first page was read."""
        stream.close()
        if page is not None:
            self._received.add(page)
        self._retire(query)
        yield from self._streams(others)

    def _retire(self, query: Query[Any]) -> None:
        """Counts the cost of a query whose records are no part of the result."""
        self.runs.remove(query)
        self.spent.append(query.report)

    def _resolved(self, query: Query[Any], timed: list[Query[Any]], page: pa.RecordBatch) -> list[Query[Any]] | None:
        """The queries for times with their heights, or `None` if the list is to be read."""
        bounds = self.narrowing.time_bounds()
        left = self.narrowing.remainder(query)
        if bounds is None or not is_searched(page, bounds, left, timed):
            return None
        if not bounds.is_expanded and not left.is_capped and not self.narrowing.all_have_heights(query, self.spent):
            return None
        resolved = []
        for one in timed:
            found, report = one._resolved()  # noqa: SLF001 - of this package
            resolved.append(found)
            self.spent.append(report)
        return resolved if is_cheaper(resolved, bounds) else None

    def _descended(self, queries: list[Query[Any]], floors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Reads a list in the order of heights down to the lowest height or time that the filter accepts.

        Queries for single heights take over after the first page, if they are fewer than the pages in between.
        """
        if len(queries) <= 1 and queries != [self._query]:
            yield from self._streams(queries)
            return
        height, time = descending(self.narrowing.resource)
        floor = floors.get(height, 0)
        below: list[Query[Any]] = []
        stream = self._stream(self._query, self.narrowing.page_size)
        for batch in stream:
            yield batch
            self._gaps.on_batch(batch)
            lowest = _lowest(batch, height)
            if lowest <= floor or (time in floors and _lowest(batch, time) < floors[time]):
                return
            if queries == [self._query] and time not in floors:
                # A height has one block: no page below the lowest one is requested ahead.
                stream.close()
                rest = self._query._rest(lowest - floor)  # noqa: SLF001 - of this package
                for following in self._stream(rest, self.narrowing.page_size):
                    yield following
                    self._gaps.on_batch(following)
                return
            below = [query for query in queries if query != self._query and arguments(query)[height] < lowest]
            if queries != [self._query] and len(below) <= (lowest - floor) // len(batch):
                break
        else:
            return
        yield from self._streams(below)

    def _absent_again(self) -> Iterator[pa.RecordBatch]:
        """Reads the lists of heights again that are empty, and fails if a block is absent between others."""
        absent = absent_blocks(self.runs, self._highest) if descending(self.narrowing.resource) else {}
        if not absent:
            return
        lowest = lowest_block(self.runs)
        if min(absent) < lowest and min(absent) > 0:
            # Nothing shows yet whether the chain has begun there.
            below = self.narrowing.with_arguments(absent[min(absent)], {"height": min(absent) - 1})
            if any(True for _ in self._stream(below)):
                lowest = min(absent) - 1
            self._retire(below)
        missing = [height for height in absent if height > lowest]
        for height in missing:
            # A part of the service may have been behind.
            self._retire(absent[height])
            yield from self._stream(self.narrowing.with_arguments(absent[height], {}))
        missing = [height for height in absent_blocks(self.runs, self._highest) if height > lowest]
        if missing:
            raise PaginationDriftError(
                f"{self.narrowing.resource}: the API returned no block of height {missing[0]}, although it has blocks "
                "below and above it; run the query again"
            )

    def decode_only(self, names: set[str]) -> None:
        """Decode only some columns, and those by which the list is read."""
        if (bounds := self.narrowing.time_bounds()) is not None:
            names |= {bounds.column, bounds.height}
        if (lookup := self.narrowing.lookup(self.narrowing.queries())) is not None:
            names |= lookup.needed
        names.update(descending(self.narrowing.resource))
        # Columns of record keys are decoded in any case.
        names.update(self._identity, block_columns(self._roles))
        # A batch without columns has no rows either.
        known = self._argument.schema.names
        self._decoded = [name for name in known if name in names] or known[:1]

    def _streams(self, queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        for query in queries:
            yield from self._stream(query)

    def _stream(self, query: Query[Any], first: int = 1) -> Generator[pa.RecordBatch]:
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


def _lowest(batch: pa.RecordBatch, column: str) -> int:
    """The lowest height or time in a batch."""
    lowest = pc.min(batch.column(column)).cast(pa.int64()).as_py()
    return 0 if lowest is None else int(lowest)
