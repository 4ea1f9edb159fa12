"""Sources of records that the result of a scan lacks, which are requested again."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import compute as pc

from chainframe.errors import ChainframeError, IncompleteResultError, IncompleteResultWarning

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa

    from chainframe import Query, Records, Report
    from chainframe.datasets.expected import ExpectedRecords
    from chainframe.datasets.located import LocatedTransactions
    from chainframe.datasets.narrowing import Narrowing
    from chainframe.datasets.requests import Requests

# Most pages of a list that are requested again to find a record.
MAX_PAGES = 8


@dataclass(frozen=True)
class Source:
    """A page of a list, or a lookup of hashes, that showed records."""

    query: Query[Any]
    # `None` for a lookup.
    page: int | None = None


@contextmanager
def incomplete(query: Query[Any], spent: list[Report]) -> Generator[None]:
    """Runs a query whose result may be incomplete without an error or a warning; its report is added to `spent`."""
    try:
        with warnings.catch_warnings(), suppress(IncompleteResultError):
            warnings.simplefilter("ignore", IncompleteResultWarning)
            yield
    finally:
        spent.append(query.report)


def collected(query: Query[Any], spent: list[Report]) -> Records[Any] | None:
    """Records of a lookup, or `None` if it is incomplete and that is an error; its report is added to `spent`."""
    with incomplete(query, spent):
        return query.collect()
    return None


def lacking_again(
    requests: Requests, narrowing: Narrowing, expected: ExpectedRecords, located: LocatedTransactions
) -> Iterator[pa.RecordBatch]:
    """Requests again what showed records that the result lacks.

    What a reorganization has removed is not shown any more. A located transaction that it has moved to another block is
    read there, unless the result has records of replaced blocks already.
    """
    for received in (expected, located):
        for source, lowest in received.in_question().items():
            if not _is_shown_again(source, lowest, received, requests.spent, narrowing.page_size):
                received.confirm()
            if received.are_lacking():
                break
    heights = located.moved()
    if heights:
        located.are_read_by_height = True
    if located.are_replaced():
        return
    for height in heights:
        for batch in requests.stream(narrowing.at_height(height)):
            yield located.lacking_of(batch)


def _is_shown_again(
    source: Source, lowest: int, received: ExpectedRecords, spent: list[Report], page_size: int
) -> bool:
    """True if a source has responded with all that it shows now down to a height, which `received` takes."""
    with suppress(ChainframeError):
        if source.page is None:
            with incomplete(source.query, spent):
                for page in source.query.pages():
                    for batch in page.records.to_arrow("decimal").to_batches():
                        received.on_again(batch)
            return True
        # Records that were added meanwhile may have moved those of the page to later ones.
        for number in range(source.page, source.page + MAX_PAGES):
            records, total, report = source.query._page(number)  # noqa: SLF001 - of this package
            spent.append(report)
            table = records.to_arrow("decimal")
            for batch in table.to_batches():
                received.on_again(batch)
            reached = pc.min(table[received.height]).as_py()
            is_last = len(table) < page_size or (total is not None and number * page_size >= total)
            if received.are_lacking() or is_last or (reached is not None and reached < lowest):
                return True
    return False
