"""Queries that a filter leaves of a query."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chainframe._declared import ENDPOINTS, meaning
from chainframe._native import _restore_query
from chainframe.datasets.again import Source, collected, incomplete
from chainframe.datasets.declared import page_size
from chainframe.datasets.hashes import shown
from chainframe.datasets.plan import (
    Arguments,
    TimeBounds,
    arguments,
    descending,
    encoded,
    looked_up,
    narrowed,
    time_bounds,
    timed,
)
from chainframe.datasets.sets import SetArgument
from chainframe.datasets.times import Remainder
from chainframe.datasets.values import Range
from chainframe.datasets.ways import ByHashes, ByTimes, Descent, Direct, Parts
from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from chainframe import Client, Page, Query, Records, Report, Transaction
    from chainframe.datasets.expected import ExpectedRecords
    from chainframe.datasets.hashes import Lookup
    from chainframe.datasets.values import Solver
    from chainframe.datasets.ways import Way

# Maximum number of times that a list is counted, which may grow meanwhile.
MAX_COUNTS = 3
# Number of requests up to which queries are run without a look at the list that they are parts of.
DIRECT = 2
NO_REQUEST = "no request: no record can satisfy the filter"


class Narrowing:
    """A query, and what the filter of a scan leaves of it."""

    def __init__(self, query: Query[Any], schema: pa.Schema, solver: Solver | None) -> None:
        self._query = query
        self._schema = schema
        self._solver = solver
        self.resource: str = str(json.loads(query._stated())["call"])  # noqa: SLF001 - of this package
        self._given = arguments(query)
        reduced: Any = query.__reduce__()
        restore, pickled = reduced
        # Not narrowed: a query that continues an earlier run, and one whose limit counts the records before the filter.
        self._client: Client | None = None
        self._options: dict[str, Any] = {}
        if restore is _restore_query:
            passed, self._options = json.loads(pickled[2])
            self._client = pickled[0] if self._options["max_items"] is None else None
            # The values of a set as they were passed.
            self._given |= {name: tagged["list"] for name, tagged in passed if "list" in tagged}
        is_set = SetArgument.of(self.resource, self._given) is not None
        # Not looked into before it is read: a set, whose lists would each take requests.
        self._list_client = None if is_set else self._client
        self._list_solver = None if is_set else solver

    def _query_for(self, wanted: Arguments) -> Query[Any]:
        if self._client is None or wanted == self._given:
            return self._query
        return _restore_query(self._client, self.resource, json.dumps([encoded(wanted), self._options]))

    def _is_valid(self, wanted: Arguments) -> bool:
        try:
            self._query_for(wanted)
        except InvalidParameterError:
            return False
        return True

    def queries(self) -> list[Query[Any]]:
        """Queries that together return all that the filter can accept. Sends nothing."""
        if self._solver is None or self._client is None:
            return [self._query]
        plans = narrowed(self.resource, self._schema, self._given, self._solver, self._is_valid)
        return [self._query_for(wanted) for wanted in plans]

    def way(self, queries: list[Query[Any]]) -> Way:
        """The way to read what queries return. Sends nothing."""
        if (lookup := self.lookup(queries)) is not None:
            return ByHashes(queries[0], lookup)
        if (timed := self._by_time(queries)) is not None:
            return ByTimes(queries[0], timed)
        if floors := self._floors():
            return Descent(floors)
        if (whole := self._split(queries)) is not None:
            return Parts(whole)
        return Direct()

    def explain(self) -> str:
        """The requests, as text. Sends nothing."""
        queries = self.queries()
        if not queries:
            return NO_REQUEST
        lines = [repr(query) for query in queries]
        if self.located_by(queries):
            return "\n".join([*lines, "after a lookup of the hashes for their heights, if all of them are found"])
        match self.way(queries):
            case Direct():
                pass
            case ByHashes(query, lookup):
                lines = [repr(self.with_arguments(query, {lookup.parameter: each})) for each in lookup.hashes]
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

    def _split(self, queries: list[Query[Any]]) -> Query[Any] | None:
        """The list that queries are parts of, or `None` if they certainly cost no more than it."""
        if (
            self._list_client is None
            or self._is_requested_by_height()
            or not ENDPOINTS[self.resource]["page_size_max"]
            or self.cost(queries, None) <= DIRECT
        ):
            return None
        plans = [arguments(query) for query in queries]
        shared = {name: value for name, value in plans[0].items() if all(plan.get(name) == value for plan in plans)}
        return self._query_for(self._given | (shared if len(plans) > 1 else {}))

    def _is_requested_by_height(self) -> bool:
        """True if the query is a range that is requested height by height: parts of it never cost more."""
        bounds = time_bounds(self.resource)
        return bounds is not None and bounds.is_expanded and "start_height" in self._given

    def cost(self, queries: list[Query[Any]], newest: int | None) -> float:
        """Least number of requests of queries, of which those for heights request each up to the newest block."""
        bounds = self.time_bounds()
        if bounds is None or not bounds.is_expanded:
            return len(queries)
        costs: list[float] = []
        for given in map(arguments, queries):
            last = given.get("end_height", math.inf if newest is None else newest)
            costs.append(last - given["start_height"] + 1 if "start_height" in given else 1)
        return sum(costs)

    def ended(self, queries: list[Query[Any]], newest: int | None) -> list[Query[Any]]:
        """Queries up to the newest block that the first page of their list shows: they need not request it again."""
        bounds = self.time_bounds()
        if bounds is None or not bounds.is_expanded or newest is None:
            return queries
        closed: list[Query[Any]] = []
        for query in queries:
            given = arguments(query)
            if "start_height" not in given or not {"end_height", bounds.high}.isdisjoint(given):
                closed.append(query)
            elif given["start_height"] <= newest:
                closed.append(self.with_arguments(query, {"end_height": newest}))
        return closed

    def time_bounds(self) -> TimeBounds | None:
        return None if self._list_solver is None or self._list_client is None else time_bounds(self.resource)

    def _by_time(self, queries: list[Query[Any]]) -> list[Query[Any]] | None:
        """Queries for the times that the filter can accept, or `None` if times do not narrow a list. Sends nothing."""
        if self._list_solver is None or self._list_client is None or len(queries) != 1:
            return None
        plans = timed(self.resource, self._schema, arguments(queries[0]), self._list_solver, self._is_valid)
        return None if plans is None else [self._query_for(wanted) for wanted in plans]

    def is_timed(self, query: Query[Any]) -> bool:
        """True if a query has times already, so that its own run searches for heights."""
        bounds = self.time_bounds()
        given = arguments(query)
        return bounds is not None and (bounds.low in given or bounds.high in given)

    def all_have_heights(self, query: Query[Any], spent: list[Report]) -> bool:
        """True if a list has no more records than its range of all heights; the reports are added to `spent`.

        A record with a time and no height is in the list only. New records must not hide one, so that the range is
        counted first: it never has more records than the list has later.
        """
        client = self._list_client
        if client is None:
            return False
        given = arguments(query)
        if not {"height", "start_height", "end_height"}.isdisjoint(given):
            return True
        for _ in range(MAX_COUNTS):
            within = self._count(client, given | {"start_height": 0}, spent)
            if within is None or within == self._count(client, given, spent):
                return within is not None
        return False

    def counted(self, spent: list[Report]) -> int | None:
        """Number of records of the whole query where a response counts them, from one request."""
        if self._list_client is None or self._list_solver is not None or not ENDPOINTS[self.resource]["is counted"]:
            return None
        page = self._first_record(self._list_client, self._given, spent)
        total = None if page is None else page.total
        # A count near the result window may be that of the window, in place of a greater one.
        return None if total is None or self._query._reaches_result_window(total) else total  # noqa: SLF001

    def _count(self, client: Client, wanted: Arguments, spent: list[Report]) -> int | None:
        """Number of records of a list, from a page of one record."""
        page = self._first_record(client, wanted, spent)
        if page is None:
            return None
        return page.total_pages if page.total is None else page.total

    def _first_record(self, client: Client, wanted: Arguments, spent: list[Report]) -> Page[Any] | None:
        """A page of one record, whose report is added to `spent`."""
        options = self._options | {"page_size": 1, "max_items": 1}
        query = _restore_query(client, self.resource, json.dumps([encoded(wanted), options]))
        last: Page[Any] | None = None
        with incomplete(query, spent):
            for page in query.pages():
                last = page
        # A count that contradicts its page counts nothing.
        return None if query.report.reasons else last

    @property
    def page_size(self) -> int:
        return int(self._options.get("page_size") or page_size(self.resource))

    def remainder(self, query: Query[Any]) -> Remainder:
        """Pages of a list after those that its last run has delivered."""
        if self._list_client is None:
            return Remainder(0, 0, is_capped=False)
        return Remainder.of(query, self.page_size)

    def located_by(self, queries: list[Query[Any]]) -> tuple[list[str], Query[Transaction]] | None:
        """Hashes that the main chain's list can be narrowed to only by the heights of their lookup."""
        if self._list_solver is None or self._list_client is None:
            return None
        if queries != [self._query] or self.resource != "transactions" or self._given:
            return None
        hashes = self._list_solver.points("tx_id")
        if not hashes:
            return None
        try:
            return hashes, self._list_client.transactions_by_hash(hashes, chain=self._options["chain"])
        except InvalidParameterError:
            return None

    def lookup(self, queries: list[Query[Any]]) -> Lookup | None:
        """Hashes to which a list can be narrowed if the API compares the right one."""
        if self._list_solver is None or self._list_client is None or len(queries) != 1:
            return None
        lookup = looked_up(self.resource, arguments(queries[0]), self._list_solver, self._is_valid)
        return lookup and replace(lookup, found=shown(self._list_client, lookup.column))

    def with_arguments(self, query: Query[Any], wanted: Arguments) -> Query[Any]:
        """A part of a list."""
        return self._query_for(arguments(query) | wanted)

    def with_heights(self, query: Query[Any]) -> Query[Any]:
        """A list without its records that have no height."""
        has_heights = not {"height", "start_height", "end_height"}.isdisjoint(arguments(query))
        return query if has_heights else self.with_arguments(query, {"start_height": 0})

    def between(self, query: Query[Any], ends: tuple[int | None, int | None]) -> list[Query[Any]]:
        """A range of heights of a list, within the heights that it has already; none if it is empty."""
        given = arguments(query)
        height = given.get("height")
        passed = Range(given.get("start_height", height), given.get("end_height", height))
        wanted = passed.intersected(Range(*ends))
        if wanted is None:
            return []
        if height is not None:
            return [query]
        limits = {"start_height": wanted.low, "end_height": wanted.high}
        return [self.with_arguments(query, {name: end for name, end in limits.items() if end is not None})]

    def located(self, queries: list[Query[Any]], spent: list[Report], expected: ExpectedRecords) -> list[Query[Any]]:
        """Queries for the heights of hashes, which are looked up; the lookup is added to `spent` and `expected`."""
        client = self._list_client
        hashed = self.located_by(queries)
        if hashed is None or client is None:
            return queries
        hashes, look_up = hashed
        chain = self._options["chain"]
        found: Records[Transaction] | None = collected(look_up, spent)
        if found is None:
            return queries
        for batch in found.to_arrow("decimal").to_batches():
            expected.add(batch, Source(look_up))
        heights = {transaction.height for transaction in found}
        if len(found) < len(set(map(meaning, hashes))) or None in heights:
            # A list may have what the lookup does not return.
            return queries
        descending = sorted((height for height in heights if height is not None), reverse=True)
        return [client.transactions(height=height, chain=chain) for height in descending]

    def at_height(self, height: int) -> Query[Any]:
        """The records of one height."""
        return self._query_for(self._given | {"height": height})

    def _floors(self) -> dict[str, int]:
        """Lowest values that the filter accepts of the columns by which the list is ordered."""
        floors: dict[str, int] = {}
        if self._list_solver is not None:
            for column in descending(self.resource):
                ranges = self._list_solver.ranges(column)
                if ranges and ranges[0].low is not None:
                    floors[column] = ranges[0].low
        return floors
