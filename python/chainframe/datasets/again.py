"""Sources of records that the result of a scan lacks, which are requested again."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import compute as pc

from chainframe.errors import IncompleteResultError, IncompleteResultWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from chainframe import Query, Records, Report
    from chainframe.datasets.expected import ExpectedRecords
    from chainframe.datasets.narrowing import Narrowing
    from chainframe.datasets.requests import Requests


@dataclass(frozen=True)
class Source:
    """A page of a list, or a lookup of hashes, that showed records."""

    query: Query[Any]
    # `None` of a lookup.
    page: int | None = None

    def again(self, height: str, lowest: int, spent: list[Report]) -> Iterator[pa.RecordBatch]:
        """Records that the source shows now, down to a height; the reports are added to `spent`."""
        if self.page is None:
            found = collected(self.query, spent)
            yield from [] if found is None else found.to_arrow("decimal").to_batches()
            return
        # Records that were added meanwhile may have moved those of the page to the next one.
        for number in (self.page, self.page + 1):
            records, _, report = self.query._page(number)  # noqa: SLF001 - of this package
            spent.append(report)
            table = records.to_arrow("decimal")
            yield from table.to_batches()
            reached = pc.min(table[height]).as_py()
            if reached is None or reached < lowest:
                return


def collected(query: Query[Any], spent: list[Report]) -> Records[Any] | None:
    """Records of a lookup, or `None` if it is incomplete and that is an error; its report is added to `spent`."""
    found: Records[Any] | None = None
    with warnings.catch_warnings(), suppress(IncompleteResultError):
        warnings.simplefilter("ignore", IncompleteResultWarning)
        found = query.collect()
    spent.append(query.report)
    return found


def lacking_again(
    requests: Requests, narrowing: Narrowing, expected: ExpectedRecords, located: ExpectedRecords
) -> Iterator[pa.RecordBatch]:
    """Requests again what showed records that the result lacks.

    What a reorganization has removed is not shown any more. A located transaction that it has moved to another block is
    read there.
    """
    for received in (expected, located):
        for source, lowest in received.in_question().items():
            for batch in source.again(received.height, lowest, requests.spent):
                received.on_again(batch)
    for height in located.moved():
        for batch in requests.stream(narrowing.at_height(height)):
            yield located.lacking_of(batch)
