"""Requests of a scan: those of the queries that its filter leaves, or what costs fewer of them."""

from __future__ import annotations

import math
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute as pc

from chainframe._declared import record_of
from chainframe.datasets.absent import Gaps, absent_again
from chainframe.datasets.again import Source, lacking_again
from chainframe.datasets.depth import Depth, rises
from chainframe.datasets.expected import LACKING, ExpectedRecords, block_columns
from chainframe.datasets.located import REPLACED, LocatedTransactions
from chainframe.datasets.narrowing import DIRECT, MAX_COUNTS, Narrowing
from chainframe.datasets.plan import MAX_HEIGHTS, arguments, descending
from chainframe.datasets.requests import Requests
from chainframe.datasets.times import Index, is_cheaper, is_searched
from chainframe.datasets.ways import ByHashes, ByTimes, Descent, Direct, Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chainframe import Query
    from chainframe.datasets.hashes import Lookup
    from chainframe.datasets.requests import Opened
    from chainframe.datasets.sets import ArgumentColumn
    from chainframe.datasets.values import Solver

# Most pages of a list that are read to find the heights of times.
MAX_PROBES = 8


class ReadingState(Enum):
    """State of a reading."""

    PREPARED = auto()
    RUNNING = auto()
    FINISHED = auto()


class Reading:
    """The requests of one scan."""

    def __init__(
        self, query: Query[Any], argument: ArgumentColumn, solver: Solver | None, keep: Callable[[pa.Table], pa.Table]
    ) -> None:
        self._query = query
        self._argument = argument
        self.narrowing: Narrowing = Narrowing(query, argument.schema, solver)
        self.requests: Requests = Requests(argument, self.narrowing.page_size)
        record = record_of(self.narrowing.resource)
        self._identity: list[str] = record["identity"]
        self._roles: dict[str, str | None] = record["roles"]
        self.state: ReadingState = ReadingState.PREPARED
        self._keep = keep
        self._solver = solver
        self._forget()

    def _forget(self) -> None:
        """Begins with what a scan has received."""
        self._expected = ExpectedRecords(self._identity, self._roles, self._keep)
        self._located = LocatedTransactions()
        self._gaps = Gaps(self._argument.schema, descending(self.narrowing.resource), self._solver)
        # Greatest height of a list that was not read on.
        self._highest: float = -math.inf

    def queries(self) -> list[Query[Any]]:
        """Queries for a parallel read, which together return all that the filter can accept."""
        self._forget()
        queries = self.narrowing.located(self.narrowing.queries(), self.requests.spent, self._located)
        match self.narrowing.way(queries):
            case ByHashes(query, lookup):
                return [self._certain(query, lookup) or query]
            case ByTimes(query, timed):
                opened = self.requests.open(query)
                opened.rest.close()
                resolved = self._resolved(opened, timed)
                return queries if resolved is None else resolved
            case Parts(whole) if math.isinf(self.narrowing.cost(queries, None)):
                opened = self.requests.open(whole)
                opened.rest.close()
                parts = None if opened.page is None else self._parts(whole, opened.page, queries)
                return [whole] if parts is None else parts
            case Direct() | Descent() | Parts():
                return queries

    def _certain(self, query: Query[Any], lookup: Lookup) -> Query[Any] | None:
        """The query for a hash, if responses show that it returns all records of a list that have the hash."""
        if len(lookup.hashes) > 1:
            # A record may have several hashes: the queries would return it several times.
            return None
        fetch = partial(self._with_hash, query, lookup)
        found = lookup.fetched(lookup.hashes[0], fetch)
        page = None if lookup.is_certain else self.requests.open(query).page
        if page is not None:
            lookup.probe(page, fetch)
            self._expected.add(page, Source(query, 1))
        # A response may show a record that the lookup did not return.
        is_certain = lookup.is_certain and self._expected.is_in([found])
        return self.narrowing.with_arguments(query, {lookup.parameter: lookup.hashes[0]}) if is_certain else None

    @property
    def reads_whole_list(self) -> bool:
        """True if the filter leaves the request as it is. Sends nothing."""
        queries = self.narrowing.queries()
        is_read_directly = isinstance(self.narrowing.way(queries), Direct | Parts)
        return queries == [self._query] and is_read_directly and not self.narrowing.located_by(queries)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, the first after one page."""
        self.state = ReadingState.RUNNING
        self._forget()
        for batch in chain(self._result(), self._again()):
            self._expected.on_result(batch)
            self._located.on_result(batch)
            yield batch
        self.state = ReadingState.FINISHED

    @property
    def is_finished(self) -> bool:
        return self.state is ReadingState.FINISHED

    def counted(self) -> int | None:
        """Number of records of the whole query where a response counts them, from one request."""
        count = self.narrowing.counted(self.requests.spent)
        if count is not None:
            self.state = ReadingState.FINISHED
        return count

    def _again(self) -> Iterator[pa.RecordBatch]:
        """Reads what a contradiction puts in question."""
        yield from absent_again(self.requests, self.narrowing, self._highest)
        yield from lacking_again(self.requests, self.narrowing, self._expected, self._located)

    def reasons(self) -> list[str]:
        """Reasons why the result is incomplete that none of its queries has."""
        reasons = []
        if self._expected.are_lacking() or self._located.are_lacking() or self._located.moved():
            reasons.append(LACKING)
        if self._located.are_replaced():
            reasons.append(REPLACED)
        gaps = self._gaps.reason()
        # A query whose list has gaps gives that reason itself.
        if gaps is not None and not any(run.report.reasons for run in self.requests.runs):
            reasons.append(gaps)
        return reasons

    def _result(self) -> Iterator[pa.RecordBatch]:
        queries = self.narrowing.queries()
        located = self.narrowing.located(queries, self.requests.spent, self._located)
        if located is not queries:
            self._located.are_read_by_height = True
            yield from self.requests.streams(located)
            return
        match self.narrowing.way(queries):
            case Direct():
                yield from self.requests.streams(queries)
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
            yield from self.requests.streams(timed)
            return
        bounds = self.narrowing.time_bounds()
        if bounds is not None and bounds.is_counted:
            yield from self._indexed(query, Index(bounds, self.narrowing.page_size, arguments(timed[0])))
            return
        opened = self.requests.open(query)
        if opened.page is not None and (resolved := self._resolved(opened, timed)) is not None:
            self._expected.add(opened.page, Source(query, 1))
            yield from self._instead(opened, resolved)
        else:
            yield from opened.batches()

    def _split(self, whole: Query[Any], queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list, or parts of it where these cost fewer requests or pass the result window."""
        opened = self.requests.open(whole)
        if opened.page is None:
            return
        parts = self._parts(whole, opened.page, queries)
        if parts is not None:
            if columns := descending(self.narrowing.resource):
                shown = pc.max(opened.page.column(columns[0])).as_py()
                self._highest = -math.inf if shown is None else shown
            self._expected.add(opened.page, Source(whole, 1))
            yield from self._instead(opened, parts)
        else:
            yield from opened.batches()

    def _parts(self, whole: Query[Any], page: pa.RecordBatch, queries: list[Query[Any]]) -> list[Query[Any]] | None:
        """Parts of a list with this first page, or `None` if the list is to be read."""
        bounds = self.narrowing.time_bounds()
        newest = None
        if bounds is not None and not rises(page, bounds.height):
            newest = pc.max(page.column(bounds.height)).as_py()
        left = self.narrowing.remainder(whole)
        cost = self.narrowing.cost(queries, newest)
        is_cheaper = cost <= MAX_HEIGHTS if left.is_capped else left.pages > cost
        return self.narrowing.ended(queries, newest) if is_cheaper else None

    def _indexed(self, query: Query[Any], index: Index) -> Iterator[pa.RecordBatch]:
        """Reads a list with a count, or a range of heights that some of its pages show to include the times."""
        heights = self.narrowing.with_heights(query)
        opened = self.requests.open(heights)
        page = opened.page
        left = self.narrowing.remainder(heights)
        if page is not None:
            # Before the pages that are requested later.
            self._expected.add(page, Source(heights, 1))
        if page is None or left.pages < DIRECT:
            counts = 0 if heights is query else None
        else:
            index.add(1, page, left.length)
            counts = self._explored(query, heights, index)
            if counts is not None and (index.pages() < left.pages or counts > 1):
                yield from self._instead(opened, self.narrowing.between(query, index.heights()))
                return
        if counts is None:
            yield from self._instead(opened, [query])
            return
        self._expected.forget_newer(0, page)
        yield from opened.batches()

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
        self.requests.spent.append(report)
        batches = records.to_arrow("decimal").combine_chunks().to_batches()
        for batch in batches:
            index.add(number, batch, total or 0)
            self._expected.add(batch, Source(query, number))
        # A page without records does not show where heights are.
        index.is_ordered &= bool(batches)
        return total or 0

    def _looked_up(self, query: Query[Any], lookup: Lookup) -> Iterator[pa.RecordBatch]:
        """Reads the records that have some hashes, if responses show that these are all, or else the list."""
        opened = self.requests.open(query) if len(lookup.hashes) > DIRECT else None
        if opened is not None and opened.page is not None:
            is_short = self.narrowing.remainder(query).pages <= len(lookup.hashes)
            if is_short:
                yield from opened.batches()
                return
        fetch = partial(self._with_hash, query, lookup)
        found = [lookup.fetched(value, fetch) for value in lookup.hashes]
        if not lookup.is_certain and opened is not None and opened.page is None and len(self._expected):
            # The list was empty before a lookup found one of its records.
            self.requests.retire(query)
            opened = None
        num_older = len(self._expected) if opened is None else 0
        if not lookup.is_certain:
            opened = opened or self.requests.open(query)
            if opened.page is not None and self.narrowing.remainder(query).pages > len(lookup.directions):
                lookup.probe(opened.page, fetch)
        page = None if opened is None else opened.page
        if page is not None:
            self._expected.add(page, Source(query, 1))
        # A response may show a record that none of the lookups returned.
        if lookup.is_certain and self._expected.is_in(found):
            if opened is not None and page is not None:
                yield from self._instead(opened, [])
            yield from found
            return
        for run in [run for run in self.requests.runs if run != query]:
            self.requests.retire(run)
        self._expected.forget_newer(num_older, page)
        yield from (opened or self.requests.open(query)).batches()

    def _with_hash(self, query: Query[Any], lookup: Lookup, value: str) -> pa.RecordBatch:
        """The records of a list that the API finds by a hash."""
        with_hash = self.narrowing.with_arguments(query, {lookup.parameter: value})
        found = self.requests.collect(with_hash)
        self._expected.add(found, Source(with_hash, 1))
        return found

    def _instead(self, opened: Opened, others: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads other queries in place of one whose first page was read."""
        opened.rest.close()
        self.requests.retire(opened.query)
        yield from self.requests.streams(others)

    def _resolved(self, opened: Opened, timed: list[Query[Any]]) -> list[Query[Any]] | None:
        """The queries for times with their heights, or `None` if the list is to be read."""
        bounds = self.narrowing.time_bounds()
        left = self.narrowing.remainder(opened.query)
        if bounds is None or opened.page is None or not is_searched(opened.page, bounds, left, timed):
            return None
        may_lack_heights = not bounds.is_expanded and not left.is_capped
        if may_lack_heights and not self.narrowing.all_have_heights(opened.query, self.requests.spent):
            return None
        resolved = []
        for query in timed:
            found, report = query._resolved()  # noqa: SLF001 - of this package
            resolved.append(found)
            self.requests.spent.append(report)
        return resolved if is_cheaper(resolved, bounds) else None

    def _descended(self, queries: list[Query[Any]], floors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Reads a list in the order of heights down to the lowest height or time that the filter accepts.

        Queries for single heights take over after the first page, if they are fewer than the pages in between.
        """
        if len(queries) <= 1 and queries != [self._query]:
            yield from self.requests.streams(queries)
            return
        columns = descending(self.narrowing.resource)
        depth = Depth(columns, floors, self.narrowing.page_size)
        below: list[Query[Any]] = []
        opened = self.requests.open(self._query)
        for batch in opened.batches():
            yield batch
            self._gaps.on_batch(batch)
            depth.add(batch)
            if not depth.descends:
                continue
            if queries == [self._query]:
                opened.rest.close()
                yield from self._read_down(depth)
                return
            if depth.is_reached():
                return
            below = [query for query in queries if query != self._query and arguments(query)[columns[0]] < depth.lowest]
            if len(below) <= (depth.lowest - floors.get(columns[0], 0)) // len(batch):
                break
        else:
            return
        yield from self.requests.streams(below)

    def _read_down(self, depth: Depth) -> Iterator[pa.RecordBatch]:
        """Reads a list on after its first page. No page is requested ahead that is not expected to be needed."""
        after = self._query
        while not depth.is_reached():
            wanted = depth.expected_rows()
            after = self._query._rest(wanted, after)  # noqa: SLF001 - of this package
            for batch in self.requests.open(after).batches():
                yield batch
                self._gaps.on_batch(batch)
                depth.add(batch)
                wanted -= len(batch)
                if wanted >= self.narrowing.page_size and depth.is_reached():
                    return
            if wanted > 0:
                return

    def decode_only(self, names: set[str]) -> None:
        """Decode only some columns, and those by which the list is read."""
        if (bounds := self.narrowing.time_bounds()) is not None:
            names |= {bounds.column, bounds.height}
        if (lookup := self.narrowing.lookup(self.narrowing.queries())) is not None:
            names |= lookup.needed
        names.update(descending(self.narrowing.resource))
        # Columns of record keys are decoded in any case.
        names.update(self._identity, block_columns(self._roles))
        self.requests.decode_only(names)
