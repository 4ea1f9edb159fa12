"""One scan of a dataset: what its reading returns, filtered and projected as engines ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainframe._native import _restore_report
from chainframe._reports import merged_members, merged_verdicts
from chainframe.datasets.projection import Columns, Projection
from chainframe.datasets.reading import Reading, ReadingState
from chainframe.datasets.sets import ArgumentColumn
from chainframe.datasets.values import Solver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import compute as pc

    from chainframe import Query, Report

_RESULT = ("pages", "records", "duplicates_dropped", "dropped", "moved", "rereads")
_SPENT = ("requests", "retries", "bytes", "elapsed")
BATCH_SIZE = 131_072


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
        argument = ArgumentColumn.of(query)
        self.dataset_schema: pa.Schema = argument.schema
        self._batch_size = batch_size
        self._projection = Projection(self.dataset_schema, columns, expression)
        self._solver = None if expression is None else Solver(self.dataset_schema, expression)
        self._query = query
        self._argument = argument
        self._names = self._projection.references()
        self._reading = self._new_reading()
        self.last_error: BaseException | None = None
        self.projected_schema: pa.Schema = self._projection.apply(self.dataset_schema.empty_table()).schema

    @property
    def report(self) -> Report:
        requests = self._reading.requests
        reports = [run.report for run in requests.runs]
        counts: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in _RESULT}
        counts |= {name: sum(getattr(report, name) for report in [*reports, *requests.spent]) for name in _SPENT}
        reasons = list(dict.fromkeys(reason for report in reports for reason in report.reasons))
        reasons += self._reading.reasons() if self._reading.is_finished else []
        missing = list(dict.fromkeys(item for report in reports for item in report.missing))
        members = merged_members((each.records, each.members_absent, each.members_unknown) for each in reports)
        complete = self._reading.is_finished and not reasons
        verdicts = merged_verdicts(report._verdicts for report in reports)  # noqa: SLF001 - of this package
        # Several queries read parts of a list, and a law may hold of each part and not of the list.
        evidence = reports[0]._evidence if len(reports) == 1 else []  # noqa: SLF001 - of this package
        lists = {"reasons": reasons, "missing": missing, "verdicts": verdicts, "evidence": evidence}
        return _restore_report({**counts, **members, **lists, "complete": complete})

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.fetched():
            yield from self._projection.apply(pa.Table.from_batches([batch])).to_batches(max_chunksize=self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches for what takes any Arrow stream: `pyarrow.dataset.write_dataset` takes no scanner but its own."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows, with the requests that they need."""
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
        if (counted := self._prepared().counted()) is not None:
            return counted
        names = replace(self._projection, columns=[]).references()
        batches = self.fetched(names)
        return sum(self._projection.filter(pa.Table.from_batches([batch])).num_rows for batch in batches)

    def explain(self) -> str:
        return self._reading.narrowing.explain()

    def queries(self) -> list[Query[Any]]:
        """Queries for a parallel read, which together return all that the filter can accept."""
        return self._reading.queries()

    @property
    def reads_whole_list(self) -> bool:
        """True if the filter leaves the request as it is. Sends nothing."""
        return self._reading.reads_whole_list

    def fetched(self, names: set[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches as they come, the first after one page, with the exceptions of the client as they are raised.

        They have the columns of the scan at least, or those with the names.
        """
        reading = self._prepared()
        self.last_error = None
        decoded = self._names if names is None else names
        if decoded is not None:
            reading.decode_only(set(decoded))
        try:
            yield from reading.batches()
            if reading.reasons():
                self._query._warn_if_incomplete(self.report)  # noqa: SLF001 - of this package
        except GeneratorExit:
            raise
        except BaseException as error:
            self.last_error = error
            raise

    def _prepared(self) -> Reading:
        """A reading that has not begun: the report of a run must not have the requests of another one."""
        if self._reading.state is not ReadingState.PREPARED:
            self._reading = self._new_reading()
        return self._reading

    def _new_reading(self) -> Reading:
        return Reading(self._query, self._argument, self._solver, self._projection.filter)
