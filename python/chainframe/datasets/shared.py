"""A dataset whose scans share what they fetch: the terminals of one `LazyFrame`, and both sides of a self join."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from chainframe.datasets.dataset import Dataset
from chainframe.datasets.scanner import BATCH_SIZE, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyarrow import compute as pc

    from chainframe import Query, Report
    from chainframe.datasets.projection import Columns

# Most bytes of records that are kept for later scans: by one fetch, and by all those before it together.
MAX_BYTES = 256 << 20


class Fetch:
    """The records of one filter, fetched once and as far as a scan has read them."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.is_finished: bool = False
        self._error: BaseException | None = None
        self._source = scanner.fetched()
        self._lock = Lock()
        self._batches: list[pa.RecordBatch] = []
        # Number of batches before the first that is kept, and those that each scan has read.
        self._dropped = 0
        self._read: dict[object, int] = {}
        self.bytes: int = 0

    @property
    def is_kept(self) -> bool:
        """True if another scan can begin with the first record."""
        return self.bytes <= MAX_BYTES and self._error is None

    @property
    def is_complete(self) -> bool:
        """True if all records were fetched, and nothing is known to be missing."""
        return self.is_finished and self.scanner.report.complete

    def begin(self) -> Iterator[pa.RecordBatch] | None:
        """All batches for one more scan; `None` if the first are no longer kept, which another thread may cause."""
        scan = object()
        with self._lock:
            if self._dropped:
                return None
            self._read[scan] = 0
        return self._batches_of(scan)

    def _batches_of(self, scan: object) -> Iterator[pa.RecordBatch]:
        try:
            # The lock is not held while a batch is used: the engine may use those of two scans in turn.
            while (batch := self._next(scan)) is not None:
                yield batch
        finally:
            with self._lock:
                del self._read[scan]

    def _next(self, scan: object) -> pa.RecordBatch | None:
        with self._lock:
            at = self._read[scan] - self._dropped
            if at == len(self._batches):
                if self.is_finished:
                    return None
                if self._error is not None:
                    # The source has ended with it. To another scan, the end would be that of the list.
                    raise self._error
                try:
                    batch = next(self._source, None)
                except BaseException as error:
                    self._error = error
                    raise
                if batch is None:
                    self.is_finished = True
                    return None
                self._batches.append(batch)
                self.bytes += batch.nbytes
            batch = self._batches[at]
            self._read[scan] += 1
            if not self.is_kept:
                passed = min(self._read.values()) - self._dropped
                del self._batches[:passed]
                self._dropped += passed
            return batch


class SharedDataset(Dataset):
    """The result of a query as a pyarrow dataset whose scans fetch it once; made by `Query.scan`."""

    def __init__(self, query: Query[Any], expression: pc.Expression | None = None) -> None:
        super().__init__(query, expression)
        self._lock = Lock()
        # With their filters; `None` for the list without one. The text of a filter does not have all its values.
        self._fetches: list[tuple[pc.Expression | None, Fetch]] = []

    def _scanner_of(self, columns: Columns | None, expression: pc.Expression | None, batch_size: int) -> Scanner:
        return _SharedScanner(self, self._query, columns, expression, batch_size)

    def fetch(self, expression: pc.Expression | None) -> Fetch:
        """The records that a filter may accept, as far as they were fetched."""
        with self._lock:
            whole = self._kept(None)
            # A complete list has what any filter accepts, unlike one that ends at the result window. The rest of one
            # that was begun may cost more than what the filter leaves.
            if whole is not None and (expression is None or whole.is_complete):
                return whole
            if filtered := self._kept(expression):
                return filtered
            # All columns are decoded, since a later scan may need others.
            scanner = Scanner(self._query, None, expression, BATCH_SIZE)
            if not scanner.reads_whole_list:
                return self._begun(scanner, expression)
            return whole or self._begun(scanner, None)

    def _kept(self, expression: pc.Expression | None) -> Fetch | None:
        """The fetch of this filter, if a scan can begin with its first record."""
        return next((fetch for other, fetch in self._fetches if fetch.is_kept and _are_equal(expression, other)), None)

    def _begun(self, scanner: Scanner, expression: pc.Expression | None) -> Fetch:
        self._fetches = [kept for kept in self._fetches if kept[1].is_kept]
        while sum(fetch.bytes for _, fetch in self._fetches) > MAX_BYTES:
            del self._fetches[0]
        fetch = Fetch(scanner)
        self._fetches.append((expression, fetch))
        return fetch

    def filter(self, expression: pc.Expression) -> SharedDataset:
        return SharedDataset(self._query, self._combined(expression))

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedDataset, (self._query, self._expression)


def _are_equal(left: Any, right: Any) -> bool:  # noqa: ANN401 - the types of pyarrow lack `equals`
    return left is right if left is None or right is None else bool(left.equals(right))


class _SharedScanner(Scanner):
    """A scan of what another one may have fetched."""

    def __init__(self, dataset: SharedDataset, *arguments: Any) -> None:  # noqa: ANN401 - those of a scanner
        super().__init__(*arguments)
        self._dataset = dataset
        self._source: Scanner | None = None

    def fetched(self, names: set[str] | None = None) -> Iterator[pa.RecordBatch]:
        # All columns are fetched, since a later scan may need others.
        del names
        fetch = self._dataset.fetch(self._projection.expression)
        while (batches := fetch.begin()) is None:
            fetch = self._dataset.fetch(self._projection.expression)
        self._source = fetch.scanner
        is_reused = fetch.is_finished
        try:
            yield from batches
            if is_reused and not fetch.is_complete:
                # The fetch has warned the scan that ended it.
                self._query._warn_if_incomplete(self.report)  # noqa: SLF001 - of this package
        finally:
            self.last_error = fetch.scanner.last_error

    @property
    def report(self) -> Report:
        return super().report if self._source is None else self._source.report
