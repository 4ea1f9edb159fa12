"""The column of a dataset that says by which argument of a set a record was found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainframe._declared import QUERIED, meaning
from chainframe.datasets.declared import bounded_columns, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from chainframe import Query
    from chainframe.datasets.values import Range, Solver


@dataclass(frozen=True)
class SetArgument:
    """Argument of which a query has several values, each of them a list."""

    resource: str
    name: str
    values: list[str]

    @classmethod
    def of(cls, resource: str, given: dict[str, Any]) -> SetArgument | None:
        selecting = (parameter["name"] for parameter in parameters(resource) if parameter["selects list"])
        name = next((name for name in selecting if isinstance(given.get(name), list)), None)
        return None if name is None else cls(resource, name, given[name])

    @property
    def columns(self) -> set[str]:
        """Columns of the records that show the value whose list has a record."""
        bounded = bounded_columns(self.resource)
        return {column for column, bounds in bounded.items() if self.name in bounds.of_set}

    def is_shown_by(self, column: str) -> bool:
        """True if a column of the dataset shows the value whose list has a record."""
        return column == self.name or column in self.columns

    def narrowed(
        self, column: pa.Field[Any], solver: Solver, is_valid: Callable[[dict[str, Any]], bool]
    ) -> list[dict[str, Any]] | None:
        """The values whose lists have records that the filter can accept, by a column that shows them."""
        kept = self._kept(column, solver, is_valid)
        return None if kept is None else [{self.name: kept}] if kept else []

    def _kept(
        self, column: pa.Field[Any], solver: Solver, is_valid: Callable[[dict[str, Any]], bool]
    ) -> list[str] | None:
        if column.name not in self.columns:
            return solver.accepted(column.name, self.values)
        if pa.types.is_string(column.type):
            return self._by_points(solver.points(column.name), is_valid)
        return self._by_ranges(solver.ranges(column.name))

    def _by_points(self, points: list[str] | None, is_valid: Callable[[dict[str, Any]], bool]) -> list[str] | None:
        # A record may have several values in one column, which are no value of the argument.
        if points is None or not all(is_valid({self.name: [point]}) for point in points):
            return None
        wanted = set(map(meaning, points))
        return [value for value in self.values if meaning(value) in wanted]

    def _by_ranges(self, ranges: list[Range] | None) -> list[str] | None:
        if ranges is None:
            return None
        return [value for value in self.values if any(each.includes(int(value)) for each in ranges)]


@dataclass(frozen=True)
class ArgumentColumn:
    """Column with the argument of each record, where no column of the records has it."""

    # Schema of the query's records, and the name of the column.
    records: pa.Schema
    name: str | None

    @classmethod
    def of(cls, query: Query[Any]) -> ArgumentColumn:
        """Return the column that a dataset of a query has more than the records.

        Which of several lists returns a record with `unique=True` is not fixed: such a column would be no value of it.
        """
        exporter: Any = query
        records = pa.schema(exporter)
        stated = json.loads(query._stated())  # noqa: SLF001 - of this package
        argument = SetArgument.of(stated["call"], stated["arguments"])
        if argument is None or "unique" in stated["arguments"] or any(map(argument.is_shown_by, records.names)):
            return cls(records, None)
        return cls(records, argument.name)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self.records if self.name is None else self.records.append(pa.field(self.name, pa.string()))

    def sources(self, names: list[str]) -> list[str]:
        """Return the columns to fetch for some of the dataset."""
        return list(dict.fromkeys(QUERIED if name == self.name else name for name in names))

    def selected(self, batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
        """Return some columns of the dataset from those that were fetched for them."""
        if self.name is None or self.name not in names:
            return batch
        # Each record has one argument.
        values = pc.list_element(batch.column(QUERIED), 0)
        return batch.append_column(self.name, values).select(names)
