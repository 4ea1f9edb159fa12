"""One scan of a dataset: the queries that its filter leaves, and the filter applied to what they return."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import acero
from pyarrow import compute as pc

from chainframe._native import _restore_query, _restore_report
from chainframe.datasets.plan import DESCENDING, Arguments, decoded, encoded, narrowed
from chainframe.datasets.values import Solver
from chainframe.errors import IncompleteResultError, IncompleteResultWarning, InvalidParameterError

if TYPE_CHECKING:
    from chainframe import Client, Query, Records, Report, Transaction

_COUNTS = ("requests", "retries", "pages", "records", "duplicates_dropped", "bytes")
BATCH_SIZE = 131_072

Columns = Sequence[str] | Mapping[str, pc.Expression]


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
        exporter: Any = query
        self.dataset_schema: pa.Schema = pa.schema(exporter)
        self._query, self._columns, self._batch_size = query, columns, batch_size
        self._expression = expression
        self._solver = None if expression is None else Solver(self.dataset_schema, expression)
        self._runs: list[Query[Any]] = []
        self._finished = False
        self.last_error: BaseException | None = None
        self.projected_schema: pa.Schema = self._applied(self.dataset_schema.empty_table()).schema

    @property
    def report(self) -> Report:
        reports = [run.report for run in self._runs]
        counts: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in _COUNTS}
        reasons = list(dict.fromkeys(reason for report in reports for reason in report.reasons))
        missing = list(dict.fromkeys(item for report in reports for item in report.missing))
        elapsed = sum(report.elapsed for report in reports)
        complete = self._finished and not reasons
        return _restore_report(
            {**counts, "elapsed": elapsed, "complete": complete, "reasons": reasons, "missing": missing}
        )

    def explain(self) -> str:
        queries = self._narrowed()
        if not queries:
            return "no request: no record can satisfy the filter"
        lines = [repr(query) for query in queries]
        if self._looked_up(queries):
            lines.append("after a look-up of the hashes for their heights, if all of them are found")
        if (floor := self._floor()) is not None:
            column = DESCENDING[self._resource]
            lines = [f"{self._query!r} down to {column} {floor}", *(lines if len(queries) > 1 else [])]
        return "\n".join(lines)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._fetched():
            yield from self._applied(pa.Table.from_batches([batch])).to_batches(max_chunksize=self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Returns the first rows, for as many requests as they take."""
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
        return sum(len(batch) for batch in self.to_batches())

    def _fetched(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, the first after one page, with the exceptions of the client as they are raised."""
        try:
            queries = self._located(self._narrowed())
            if self._resource in DESCENDING and self._solver is not None:
                yield from self._descended(queries)
            else:
                for query in queries:
                    yield from self._stream(query)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.last_error = error
            raise
        self._finished = True

    def _descended(self, queries: list[Query[Any]]) -> Iterator[pa.RecordBatch]:
        """Reads a list in the order of a column down to the lowest value that the filter accepts.

        Queries for single values take over after the first page, if they are fewer than the pages in between.
        """
        column, floor = DESCENDING[self._resource], self._floor()
        if floor is None or (len(queries) == 1 and queries != [self._query]):
            for query in queries:
                yield from self._stream(query)
            return
        for batch in self._stream(self._query):
            yield batch
            lowest = _lowest(batch, column)
            if lowest <= floor:
                return
            below = [query for query in queries if query != self._query and _argument(query, column) < lowest]
            if queries != [self._query] and len(below) <= (lowest - floor) // len(batch):
                break
        else:
            return
        for query in below:
            yield from self._stream(query)

    def _applied(self, table: pa.Table) -> pa.Table:
        """Filters and projects. The whole filter is applied, whatever the requests made of it."""
        steps = [acero.Declaration("table_source", acero.TableSourceNodeOptions(table))]
        if self._expression is not None:
            steps.append(acero.Declaration("filter", acero.FilterNodeOptions(self._expression)))
        if isinstance(self._columns, Mapping):
            options = acero.ProjectNodeOptions(list(self._columns.values()), list(self._columns))
            steps.append(acero.Declaration("project", options))
        result = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
        if self._columns is None or isinstance(self._columns, Mapping):
            return result
        return result.select(list(self._columns))

    @property
    def _stated(self) -> dict[str, Any]:
        stated: dict[str, Any] = json.loads(self._query._stated())  # noqa: SLF001 - of this package
        return stated

    @property
    def _resource(self) -> str:
        return str(self._stated["call"])

    def _restored(self) -> tuple[Client, dict[str, Any]] | None:
        """The client and the options of the query, unless it continues an earlier run."""
        reduced: Any = self._query.__reduce__()
        restore, arguments = reduced
        return (arguments[0], json.loads(arguments[2])[1]) if restore is _restore_query else None

    def _narrowed(self) -> list[Query[Any]]:
        """Queries that together return all that the filter can accept."""
        restored = self._restored()
        if self._solver is None or restored is None:
            return [self._query]
        (client, options), resource = restored, self._resource
        if options["max_items"] is not None:
            # The limit counts the records before the filter.
            return [self._query]

        def query(wanted: Arguments) -> Query[Any]:
            return _restore_query(client, resource, json.dumps([encoded(wanted), options]))

        def is_valid(wanted: Arguments) -> bool:
            try:
                query(wanted)
            except InvalidParameterError:
                return False
            return True

        given = decoded(resource, self._stated["arguments"])
        plans = narrowed(resource, self.dataset_schema, given, self._solver, is_valid)
        return [self._query if wanted == given else query(wanted) for wanted in plans]

    def _looked_up(self, queries: list[Query[Any]]) -> list[str]:
        """Hashes that the main chain's list can be narrowed to only by the heights that a look-up gives."""
        if self._solver is None or queries != [self._query] or self._resource != "transactions":
            return []
        return self._solver.points("tx_id") or []

    def _located(self, queries: list[Query[Any]]) -> list[Query[Any]]:
        hashes, restored = self._looked_up(queries), self._restored()
        if not hashes or restored is None or self._stated["arguments"]:
            return queries
        client, options = restored
        chain = options["chain"]
        look_up = client.transactions_by_hash(hashes, chain=chain)
        self._runs.append(look_up)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteResultWarning)
            found: Records[Transaction] | list[Transaction] = []
            with suppress(IncompleteResultError):
                found = look_up.collect()
        heights = {transaction.height for transaction in found}
        if len(found) < len({item.lower() for item in hashes}) or None in heights:
            # A list may have what the look-up does not return.
            self._runs.remove(look_up)
            return queries
        descending = sorted((height for height in heights if height is not None), reverse=True)
        return [client.transactions(height=height, chain=chain) for height in descending]

    def _floor(self) -> int | None:
        """Lowest value that the filter accepts of the column by which the list is ordered."""
        column = DESCENDING.get(self._resource)
        ranges = None if self._solver is None or column is None else self._solver.ranges(column)
        return ranges[0].low if ranges else None

    def _stream(self, query: Query[Any]) -> Iterator[pa.RecordBatch]:
        self._runs.append(query)
        reader = pa.RecordBatchReader.from_stream(query)
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception:
                # Arrow's C interface hands on the message only.
                if query.last_error is not None:
                    raise query.last_error from None
                raise
            yield batch


def _argument(query: Query[Any], name: str) -> int:
    return int(json.loads(query._stated())["arguments"][name])  # noqa: SLF001 - of this package


def _lowest(batch: pa.RecordBatch, column: str) -> int:
    lowest = pc.min(batch.column(column)).as_py()
    return 0 if lowest is None else int(lowest)
