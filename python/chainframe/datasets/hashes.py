"""Filters on hashes, of which the API does not say which one its parameter compares.

Responses show it: a record that has a hash in one column only was found by that column. Once records of both directions
were found so, whatever has a hash in the column is found by it, and the client remembers that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chainframe import Client

DIRECTION = "tx_type"
# An API may find the records of each direction by another hash.
DIRECTIONS = ("MainToZone", "ZoneToMain")


def shown(client: Client, column: str) -> set[str]:
    """Directions whose records this client has found by a column."""
    return client._learned.setdefault(column, set())  # noqa: SLF001 - of this package


@dataclass
class Lookup:
    """Hashes that a filter accepts in one column."""

    parameter: str
    column: str
    # Columns of which the parameter compares some.
    columns: Sequence[str]
    hashes: Sequence[str]
    # Directions that the filter accepts.
    directions: Sequence[str]
    # Directions whose records were found by the column.
    found: set[str] = field(default_factory=set)

    @property
    def needed(self) -> set[str]:
        """Columns to decode."""
        return {*self.columns, DIRECTION}

    @property
    def is_certain(self) -> bool:
        """True if what the hashes find is all that has them."""
        return self.found.issuperset(self.directions)

    def fetched(self, value: str, fetch: Callable[[str], pa.RecordBatch]) -> pa.RecordBatch:
        """Fetch the records that have a hash in the column."""
        records = fetch(value)
        self.found |= {direction for direction, columns in self._found(records, value) if columns == [self.column]}
        # Others were found by another column.
        return records.filter(pc.equal(pc.utf8_lower(records.column(self.column)), pa.scalar(value.lower())))

    def probe(self, page: pa.RecordBatch, fetch: Callable[[str], pa.RecordBatch]) -> None:
        """Fetch hashes of a page, one for each direction in question."""
        missing = set(self.directions) - self.found
        for index, value in enumerate(page.column(self.column).to_pylist()):
            for direction, columns in self._found(page.slice(index, 1), value or "") if missing else ():
                if value and direction in missing and columns == [self.column]:
                    missing.remove(direction)
                    self.fetched(value, fetch)

    def _found(self, records: pa.RecordBatch, value: str) -> Iterator[tuple[str, list[str]]]:
        """The direction of each record, and the columns in which it has a hash."""
        for row in records.select([*self.columns, DIRECTION]).to_pylist():
            yield str(row[DIRECTION]), [name for name in self.columns if str(row[name]).lower() == value.lower()]
