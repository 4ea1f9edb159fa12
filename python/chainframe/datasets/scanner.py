"""One scan of a dataset: the queries that its filter leaves, and the filter applied to what they return."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute as pc

from chainframe._native import _restore_report
from chainframe._reports import merged_members, merged_verdicts
from chainframe.datasets.narrowing import DIRECT, MAX_COUNTS, Narrowing
from chainframe.datasets.plan import arguments, descending
from chainframe.datasets.projection import Columns, Projection
from chainframe.datasets.sets import ArgumentColumn
from chainframe.datasets.times import Index, is_cheaper, is_searched
from chainframe.datasets.values import Solver

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from chainframe import Query, Report
    from chainframe.datasets.hashes import Lookup

_RESULT = ("pages", "records", "duplicates_dropped", "dropped", "moved", "rereads")
_SPENT = ("requests", "retries", "bytes", "elapsed")
BATCH_SIZE = 131_072
# Most pages of a list that are read to find the heights of times.
MAX_PROBES = 8


@dataclass(frozen=True)
class _Projected:
    """Some columns of a query, as an Arrow stream."""

    query: Query[Any]
    columns: Sequence[str]
    # Rows of the first batch; the following ones grow.
    first: int

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        del requested_schema
        return self.query._arrow_stream(self.columns, self.first)  # noqa: SLF001 - of this package


class Scanner:
    """One scan of a dataset; the part of `pyarrow.dataset.Scanner` that engines use.

    pyarrow's own reads ahead in the background, so that five rows would cost dozens of requests.
    """

    def __init__(
        self,
        query: Query[Any],
        columns: Columns | None,
        expression: pc.Expression | None,
        batch_size: int,
    ) -> None:
        # The last run of a query has its position and its report: another scan must not replace it.
        reduced: Any = query.__reduce__()
        restore, state = reduced
        query = restore(*state)
        self._argument = ArgumentColumn.of(query)
        self.dataset_schema: pa.Schema = self._argument.schema
        self._query, self._batch_size = query, batch_size
        self._projection = Projection(self.dataset_schema, columns, expression)
        solver = None if expression is None else Solver(self.dataset_schema, expression)
        self._narrowing = Narrowing(query, self.dataset_schema, solver)
        self._decoded = self._needed(self._projection.references())
        self._runs: list[Query[Any]] = []
        # Reports of searches and lookups, whose records are no part of the result.
        self._spent: list[Report] = []
        self._finished = False
        self.last_error: BaseException | None = None
        self.projected_schema: pa.Schema = self._projection.apply(self.dataset_schema.empty_table()).schema

    @property
    def _schema(self) -> pa.Schema:
        """Schema of the columns that are decoded."""
        return pa.schema([self.dataset_schema.field(name) for name in self._decoded or self.dataset_schema.names])

    @property
    def report(self) -> Report:
        reports = [run.report for run in self._runs]
        counts: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in _RESULT}
        counts |= {name: sum(getattr(report, name) for report in [*reports, *self._spent]) for name in _SPENT}
        reasons = list(dict.fromkeys(reason for report in reports for reason in report.reasons))
        missing = list(dict.fromkeys(item for report in reports for item in report.missing))
        members = merged_members((each.records, each.members_absent, each.members_unknown) for each in reports)
        complete = self._finished and not reasons
        verdicts = merged_verdicts(report._verdicts for report in reports)  # noqa: SLF001 - of this package
        # Several queries read parts of a list, and a law may hold of each part and not of the list.
        evidence = reports[0]._evidence if len(reports) == 1 else []  # noqa: SLF001 - of this package
        lists = {"reasons": reasons, "missing": missing, "verdicts": verdicts, "evidence": evidence}
        return _restore_report({**counts, **members, **lists, "complete": complete})

    def explain(self) -> str:
        narrowing = self._narrowing
        queries = narrowing.queries()
        located = narrowing.located_by(queries)
        lookup = narrowing.lookup(queries)
        timed = None if located or lookup else narrowing.by_time(queries)
        if not queries or timed == []:
            return "no request: no record can satisfy the filter"
        lines = [repr(query) for query in queries]
        if located:
            lines.append("after a lookup of the hashes for their heights, if all of them are found")
        if lookup:
            lines = [repr(narrowing.with_arguments(queries[0], {lookup.parameter: each})) for each in lookup.hashes]
            lines.append(f"if responses show that {lookup.parameter} compares {lookup.column}, else {queries[0]!r}")
        elif timed:
            lines = [*map(repr, timed), f"if the first page of {lines[0]} shows that the whole list costs more"]
        elif not located and not self._floors() and (whole := narrowing.split(queries)) is not None:
            lines.append(f"if the first page of {whole!r} shows that the whole list costs more")
        if floors := self._floors():
            down_to = " or ".join(f"{column} {floor}" for column, floor in floors.items())
            lines = [f"{self._query!r} down to {down_to}", *(lines if len(queries) > 1 else [])]
        return "\n".join(lines)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.fetched():
            yield from self._projection.apply(pa.Table.from_batches([batch])).to_batches(max_chunksize=self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Returns the first rows, with the requests that they need."""
        batches: list[pa.RecordBatch] = []
        missing = num_rows
        for batch in self.to_batches() if num_rows > 0 else ():
            batches.append(batch.slice(0, missing))
            missing -= len(batches[-1])
            if missing <= 0:
                break
        return pa.Table.from_batches(batches, self.projected_schema)

    def take(self, indices: pa.Array[Any]) -> pa.Table:
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        if (counted := self._narrowing.counted(self._spent)) is not None:
            self._finished = True
            return counted
        projection = replace(self._projection, columns=[])
        self._decoded = self._needed(projection.references())
        return sum(projection.filter(pa.Table.from_batches([batch])).num_rows for batch in self.fetched())

    def queries(self) -> list[Query[Any]]:
        """Queries for a parallel read, which together return all that the filter can accept."""
        queries = self._narrowing.located(self._narrowing.queries(), self._spent)
        lookup = self._narrowing.lookup(queries)
        if lookup is not None:
            # A record may have several hashes: the queries would return it several times.
            (value, *others), fetch = lookup.hashes, partial(self._with_hash, queries[0], lookup)
            if not others:
                lookup.fetched(value, fetch)
                page = None if lookup.is_certain else next(self._stream(queries[0], self._narrowing.page_size), None)
                if page is not None:
                    lookup.probe(page, fetch)
            is_certain = lookup.is_certain and not others
            return [self._narrowing.with_arguments(queries[0], {lookup.parameter: value})] if is_certain else queries
        timed = self._narrowing.by_time(queries)
        if timed is None:
            return queries
        page = next(stream := self._stream(queries[0], self._narrowing.page_size), None)
        stream.close()
        resolved = None if page is None else self._resolved(queries[0], timed, page)
        return queries if resolved is None else resolved

    @property
    def reads_whole_list(self) -> bool:
        """True if the filter leaves the request as it is. Sends nothing."""
        queries, narrowing = self._narrowing.queries(), self._narrowing
        is_narrowed = (
            narrowing.located_by(queries) or narrowing.lookup(queries) or narrowing.by_time(queries) is not None
        )
        return queries == [self._query] and not is_narrowed and not self._floors()

    def fetched(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, the first after one page, with the exceptions of the client as they are raised."""
        try:
            queries = self._narrowing.queries()
            located = self._narrowing.located(queries, self._spent)
            if located is not queries:
                yield from self._streams(located)
            elif (lookup := self._narrowing.lookup(queries)) is not None:
                yield from self._looked_up(queries[0], lookup)
            elif (timed := self._narrowing.by_time(queries)) is not None:
                yield from self._timed(queries[0], timed)
            elif floors := self._floors():
                yield from self._descended(queries, floors)
            elif (whole := self._narrowing.split(queries)) is not None:
                yield from self._split(whole, queries)
            else:
                yield from self._streams(queries)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.last_error = error
            raise
        self._finished = True

    def _timed(self, query: Query[Any], timed: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list, or the heights of some times where these cost fewer requests or pass the result window."""
        if not timed or self._narrowing.is_timed(query):
            yield from self._streams(timed)
            return
        bounds = self._narrowing.time_bounds()
        if bounds is not None and bounds.is_counted:
            yield from self._indexed(query, Index(bounds, self._narrowing.page_size, arguments(timed[0])))
            return
        stream = self._stream(query, self._narrowing.page_size)
        page = next(stream, None)
        if page is None:
            return
        if (resolved := self._resolved(query, timed, page)) is not None:
            yield from self._abandon(stream, query, resolved)
            return
        yield page
        yield from stream

    def _split(self, whole: Query[Any], queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list, or parts of it where these cost fewer requests or pass the result window."""
        stream = self._stream(whole, self._narrowing.page_size)
        page = next(stream, None)
        if page is None:
            return
        bounds, left, newest = self._narrowing.time_bounds(), self._narrowing.remainder(whole), None
        if bounds is not None:
            newest = pc.max(page.column(bounds.height)).as_py()
        if left.is_capped or left.pages > self._narrowing.cost(queries, newest):
            yield from self._abandon(stream, whole, queries)
            return
        yield page
        yield from stream

    def _indexed(self, query: Query[Any], index: Index) -> Iterator[pa.RecordBatch]:
        """Reads a list with a count, or a range of heights that some of its pages show to include the times."""
        heights = self._narrowing.with_heights(query)
        stream = self._stream(heights, self._narrowing.page_size)
        page = next(stream, None)
        left = self._narrowing.remainder(heights)
        if page is None or left.pages < DIRECT:
            counts = 0 if heights is query else None
        else:
            index.add(1, page, left.length)
            counts = self._explored(query, heights, index)
            if counts is not None and (index.pages() < left.pages or counts > 1):
                yield from self._abandon(stream, heights, self._narrowing.between(query, index.heights()))
                return
        if counts is None:
            yield from self._abandon(stream, heights, [query])
            return
        if page is not None:
            yield page
        yield from stream

    def _explored(self, query: Query[Any], heights: Query[Any], index: Index) -> int | None:
        """Adds pages to an index; returns how often a list was counted, or `None` if heights do not narrow it.

        A record with a time and no height is in the list only: the range of all heights must have as many records. It
        is counted first, so that new records do not hide one: it never has more records than the list has later.
        """
        within, is_whole, counts = index.length, heights is query, 0
        for _ in range(MAX_PROBES):
            number = index.next_page()
            if is_whole and number is None:
                break
            total = self._probe(query, number or 1, index)
            if not is_whole:
                is_whole, counts = total == within, counts + 1
                if counts == MAX_COUNTS:
                    break
                within = within if is_whole else self._probe(heights, 1, index)
        return counts if is_whole and index.is_ordered else None

    def _probe(self, query: Query[Any], number: int, index: Index) -> int:
        """Fetches a page for an index; returns the number of records of the list."""
        records, total, report = query._page(number)  # noqa: SLF001 - of this package
        self._spent.append(report)
        index.add(number, records.to_arrow("decimal").combine_chunks().to_batches()[0], total or 0)
        return total or 0

    def _looked_up(self, query: Query[Any], lookup: Lookup) -> Iterator[pa.RecordBatch]:
        """Reads the records that have some hashes, if responses show that these are all, or else the list."""
        fetch, stream = partial(self._with_hash, query, lookup), self._stream(query, self._narrowing.page_size)
        page = next(stream, None) if len(lookup.hashes) > DIRECT else None
        if page is None or self._narrowing.remainder(query).pages > len(lookup.hashes):
            found = [lookup.fetched(value, fetch) for value in lookup.hashes]
            if not lookup.is_certain:
                page = next(stream, None) if page is None else page
                if page is not None and self._narrowing.remainder(query).pages > len(lookup.directions):
                    lookup.probe(page, fetch)
            if lookup.is_certain:
                if page is not None:
                    yield from self._abandon(stream, query, [])
                yield from found
                return
            for run in [run for run in self._runs if run != query]:
                self._retire(run)
        if page is not None:
            yield page
        yield from stream

    def _with_hash(self, query: Query[Any], lookup: Lookup, value: str) -> pa.RecordBatch:
        """The records of a list that the API finds by a hash."""
        one = self._narrowing.with_arguments(query, {lookup.parameter: value})
        found = pa.Table.from_batches(self._stream(one), self._schema)
        return found.combine_chunks().to_batches()[0] if len(found) else pa.RecordBatch.from_pylist([], self._schema)

    def _abandon(
        self, stream: Generator[pa.RecordBatch], query: Query[Any], others: list[Query[Any]]
    ) -> Iterator[pa.RecordBatch]:
        """Reads other queries in place of one whose first page was read."""
        stream.close()
        self._retire(query)
        yield from self._streams(others)

    def _retire(self, query: Query[Any]) -> None:
        """Counts the cost of a query whose records are no part of the result."""
        self._runs.remove(query)
        self._spent.append(query.report)

    def _resolved(self, query: Query[Any], timed: list[Query[Any]], page: pa.RecordBatch) -> list[Query[Any]] | None:
        """The queries for times with their heights, or `None` if the list is to be read."""
        bounds, left = self._narrowing.time_bounds(), self._narrowing.remainder(query)
        if bounds is None or not is_searched(page, bounds, left, timed):
            return None
        if not bounds.is_expanded and not left.is_capped and not self._narrowing.all_have_heights(query, self._spent):
            return None
        resolved = []
        for one in timed:
            found, report = one._resolved()  # noqa: SLF001 - of this package
            resolved.append(found)
            self._spent.append(report)
        return resolved if is_cheaper(resolved, bounds) else None

    def _floors(self) -> dict[str, int]:
        """Lowest values that the filter accepts of the columns by which a list is ordered."""
        return self._narrowing.floors(descending(self._narrowing.resource))

    def _descended(self, queries: list[Query[Any]], floors: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Reads a list in the order of heights down to the lowest height or time that the filter accepts.

        Queries for single heights take over after the first page, if they are fewer than the pages in between.
        """
        if len(queries) <= 1 and queries != [self._query]:
            yield from self._streams(queries)
            return
        height, time = descending(self._narrowing.resource)
        floor = floors.get(height, 0)
        below: list[Query[Any]] = []
        stream = self._stream(self._query, self._narrowing.page_size)
        for batch in stream:
            yield batch
            lowest = _lowest(batch, height)
            if lowest <= floor or (time in floors and _lowest(batch, time) < floors[time]):
                return
            if queries == [self._query] and time not in floors:
                # A height has one block: no page below the lowest one is requested ahead.
                stream.close()
                rest = self._query._rest(lowest - floor)  # noqa: SLF001 - of this package
                yield from self._stream(rest, self._narrowing.page_size)
                return
            below = [query for query in queries if query != self._query and arguments(query)[height] < lowest]
            if queries != [self._query] and len(below) <= (lowest - floor) // len(batch):
                break
        else:
            return
        yield from self._streams(below)

    def _needed(self, names: set[str] | None) -> list[str] | None:
        """Columns to decode; `None` if it is all."""
        if names is None:
            return None
        if (bounds := self._narrowing.time_bounds()) is not None:
            names |= {bounds.column, bounds.height}
        if (lookup := self._narrowing.lookup(self._narrowing.queries())) is not None:
            names |= lookup.needed
        names.update(descending(self._narrowing.resource))
        # A batch without columns has no rows either.
        return [name for name in self.dataset_schema.names if name in names] or self.dataset_schema.names[:1]

    def _streams(self, queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        for query in queries:
            yield from self._stream(query)

    def _stream(self, query: Query[Any], first: int = 1) -> Generator[pa.RecordBatch]:
        self._runs.append(query)
        names = self._decoded or self.dataset_schema.names
        source: Any = _Projected(query, self._argument.sources(names), first)
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
            yield self._argument.selected(batch, names)


def _lowest(batch: pa.RecordBatch, column: str) -> int:
    """The lowest height or time in a batch."""
    lowest = pc.min(batch.column(column)).cast(pa.int64()).as_py()
    return 0 if lowest is None else int(lowest)
