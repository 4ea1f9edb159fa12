"""Data sets of exports that name the file which was damaged after they were opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.dataset as pads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyarrow import compute as pc


def checked(found: pads.Dataset, verify: Callable[[], object]) -> pads.Dataset:
    """Return a data set that compares the files with their checksums after an error of pyarrow."""
    result: _Files | _Union
    if isinstance(found, pads.FileSystemDataset):
        result = _Files(list(found.get_fragments()), found.schema, found.format, found.filesystem)
    elif isinstance(found, pads.UnionDataset):
        # Its types have no such constructor.
        union: Any = _Union
        result = union(found.schema, found.children)
    else:
        return found
    result.verify = verify
    return result


class _Checked(pads.Dataset):
    verify: Callable[[], object] | None = None

    def _attempt(self, read: Callable[..., Any], *args: Any, **options: Any) -> Any:  # noqa: ANN401 - of pyarrow
        try:
            return read(*args, **options)
        except (OSError, pa.ArrowException):
            # Errors of pyarrow have several lines, and are also those of a filter.
            if self.verify is not None:
                self.verify()
            raise

    def filter(self, expression: pc.Expression) -> Self:
        result = super().filter(expression)
        result.verify = self.verify
        return result

    def to_table(self, *args: Any, **options: Any) -> pa.Table:  # noqa: ANN401 - of pyarrow
        table: pa.Table = self._attempt(super().to_table, *args, **options)
        return table

    def to_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - of pyarrow
        batches: Iterator[pa.RecordBatch] = iter(self._attempt(super().to_batches, *args, **options))
        while (batch := self._attempt(next, batches, None)) is not None:
            yield batch

    def head(self, *args: Any, **options: Any) -> pa.Table:  # noqa: ANN401 - of pyarrow
        table: pa.Table = self._attempt(super().head, *args, **options)
        return table

    def take(self, *args: Any, **options: Any) -> pa.Table:  # noqa: ANN401 - of pyarrow
        table: pa.Table = self._attempt(super().take, *args, **options)
        return table

    def count_rows(self, *args: Any, **options: Any) -> int:  # noqa: ANN401 - of pyarrow
        count: int = self._attempt(super().count_rows, *args, **options)
        return count


class _Files(_Checked, pads.FileSystemDataset):
    pass


class _Union(_Checked, pads.UnionDataset):
    pass
