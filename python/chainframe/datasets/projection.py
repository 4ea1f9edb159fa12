"""The columns of a scan that are fetched, and its filter and columns, applied to the records that were fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import acero
from pyarrow import compute as pc

from chainframe._arguments import similar
from chainframe._checks import short
from chainframe.datasets.values import references
from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Generator

    from chainframe import Query

Columns = Sequence[str] | Mapping[str, pc.Expression]
UNKNOWN_FIELD = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)[ )]")
"""Beginning of the message of pyarrow, whose other lines are the schema."""


@contextmanager
def _known_fields(schema: pa.Schema, parameter: str) -> Generator[None]:
    """Raise the error of pyarrow about a column that an expression refers to as one of the package."""
    try:
        yield
    except pa.ArrowInvalid as error:
        found = UNKNOWN_FIELD.match(str(error))
        if found is None:
            raise
        problem = f"must refer to columns among {', '.join(schema.names)}; got {short(found[1])}"
        raise InvalidParameterError(problem + similar(found[1], schema.names), parameter=parameter) from None


@dataclass(frozen=True)
class Projection:
    """Columns by name, or by an expression for each name; `None` for all."""

    schema: pa.Schema
    columns: Columns | None
    expression: pc.Expression | None

    def references(self) -> set[str] | None:
        """Columns that the projection and its filter refer to; `None` for all."""
        if self.columns is None:
            return None
        given = self.columns if isinstance(self.columns, Mapping) else {name: pc.field(name) for name in self.columns}
        filters = [] if self.expression is None else [self.expression]
        return references(self.schema, [*given.values(), *filters])

    def filter(self, table: pa.Table) -> pa.Table:
        """Filters. The whole filter is applied, whatever the requests made of it."""
        if self.expression is None:
            return table
        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
        kept = acero.Declaration("filter", acero.FilterNodeOptions(self.expression), [source])
        with _known_fields(self.schema, "filter"):
            return kept.to_table(use_threads=False)

    def apply(self, table: pa.Table) -> pa.Table:
        kept = self.filter(table)
        if self.columns is None:
            return kept
        if not isinstance(self.columns, Mapping):
            return kept.select(list(self.columns))
        options = acero.ProjectNodeOptions(list(self.columns.values()), list(self.columns))
        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(kept))
        with _known_fields(self.schema, "columns"):
            return acero.Declaration("project", options, [source]).to_table(use_threads=False)


@dataclass(frozen=True)
class Projected:
    """Some columns of a query, as an Arrow stream."""

    query: Query[Any]
    columns: Sequence[str]
    # Rows of the first batch; the following ones grow.
    first: int

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        del requested_schema
        return self.query._arrow_stream(self.columns, self.first)  # noqa: SLF001 - of this package
