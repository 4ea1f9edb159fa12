"""Records that the result of a scan is expected to have, since another response showed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainframe._declared import meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chainframe.datasets.again import Source

Key = tuple[Any, ...]
# Height, time and, where the list has it, hash of the block of a record.
Block = tuple[Any, ...]
LACKING = (
    "The result lacks records that another response showed: a part of the service may lack them; run the query again."
)


@dataclass(frozen=True)
class _Seen:
    """A record that the filter accepts."""

    key: Key
    # `None` of a record that is pending.
    height: int | None
    block: Block
    # Number of the response.
    response: int
    source: Source


class ExpectedRecords:
    """Records that the filter accepts, from requests whose records may be no part of the result."""

    def __init__(
        self, identity: Sequence[str], roles: dict[str, str | None], keep: Callable[[pa.Table], pa.Table] | None = None
    ) -> None:
        self._identity = identity
        self._height = roles["height"]
        self._block = block_columns(roles)
        self._has_hashes = roles["block"] is not None
        self._keep = keep
        # In the order in which they were received.
        self._seen: list[_Seen] = []
        self._responses: int = 0
        # The blocks in which the result has a record.
        self._returned: dict[Key, set[Block]] = {}
        # True if it is certain, or cannot be ruled out, that the result lacks a record that the API has.
        self._is_confirmed: bool = False

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, records: pa.RecordBatch, source: Source) -> None:
        """Takes the records of a response."""
        self._responses += 1
        rows = self._rows(records)
        self._seen.extend(_Seen(key, height, block, self._responses, source) for key, height, block in rows)

    def forget_newer(self, count: int, page: pa.RecordBatch | None) -> None:
        """Forgets records above the first page of a list that was requested after `count` were received."""
        newest = self._newest_of(page)
        later = self._seen[count:]
        self._seen[count:] = [seen for seen in later if seen.height is not None and seen.height <= newest]

    def is_in(self, batches: Sequence[pa.RecordBatch]) -> bool:
        """True if batches have all records that were received."""
        keys = {key for batch in batches for key, _, _ in self._rows(batch)}
        return all(seen.key in keys for seen in self._seen)

    def on_result(self, batch: pa.RecordBatch) -> None:
        """Takes records of the result."""
        if self._seen:
            wanted = {seen.key for seen in self._seen}
            for key, _, block in self._rows(self._candidates(batch)):
                if key in wanted:
                    self._returned.setdefault(key, set()).add(block)

    @property
    def height(self) -> str:
        """Name of the column with the height."""
        return self._height or ""

    def in_question(self) -> dict[Source, int]:
        """Sources of the records that the result lacks, each with the lowest height of these.

        A reorganization may have removed them. A list may have what is pending only after it has a height.
        """
        sources: dict[Source, int] = {}
        for seen in self._lacking():
            if seen.height is not None:
                sources[seen.source] = min(seen.height, sources.get(seen.source, seen.height))
        return sources

    def on_again(self, records: pa.RecordBatch) -> None:
        """Takes the records that a source shows after the result.

        The result lacks a record if the source shows it in the same block as before, or shows that the chain still has
        that block.
        """
        shown = {key: block for key, _, block in self._rows(records)}
        unchanged = [seen for seen in self._seen if shown.get(seen.key) == seen.block]
        if any(self._proves(other, seen) for seen in self._lacking() for other in unchanged):
            self._is_confirmed = True

    def confirm(self) -> None:
        """Counts a record as missing: it cannot be found out whether the source still shows it."""
        self._is_confirmed = True

    def _proves(self, unchanged: _Seen, seen: _Seen) -> bool:
        """True if a record that is shown in the same block as before proves that the chain has another one's block.

        A reorganization replaces a block and all blocks above it. So a block that was not replaced has the same blocks
        below it as when it was received, and those that were received later are still there. Without its hash, a block
        with the same height and time may be another one, with the same transaction: it proves nothing about other
        records.
        """
        if unchanged.height is None or seen.height is None:
            return False
        if unchanged.key == seen.key:
            return True
        if not self._has_hashes or unchanged.block[-1] is None:
            return False
        return unchanged.response <= seen.response and unchanged.height >= seen.height

    def are_lacking(self) -> bool:
        """True if the result lacks a record, and no reorganization explains it."""
        return self._is_confirmed

    def _lacking(self) -> list[_Seen]:
        return [seen for seen in self._seen if seen.key not in self._returned]

    def _newest_of(self, records: pa.RecordBatch | None) -> int:
        newest = None if records is None or self._height is None else pc.max(records.column(self._height)).as_py()
        return -1 if newest is None else int(newest)

    def _candidates(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that may be those records."""
        for index, name in enumerate(self._identity):
            if pa.types.is_string(batch.schema.field(name).type):
                values = pa.array(list({seen.key[index] for seen in self._seen}), pa.string())
                batch = batch.filter(pc.is_in(pc.utf8_lower(batch.column(name)), value_set=values))
        return batch

    def _rows(self, records: pa.RecordBatch) -> Iterator[tuple[Key, int | None, Block]]:
        # A record of a ranked list, which has no height, may have left the list since.
        if self._height is None or not len(records):
            return
        kept = pa.Table.from_batches([records])
        if self._keep is not None:
            kept = self._keep(kept)
        for row in kept.select(list(dict.fromkeys([*self._identity, *self._block]))).to_pylist():
            key = tuple(_without_case(row[name]) for name in self._identity)
            yield key, row[self._height], tuple(_without_case(row[name]) for name in self._block)


def block_columns(roles: dict[str, str | None]) -> list[str]:
    """Columns by which the block of a record is told from another one."""
    return [name for role in ("height", "time", "block") if (name := roles[role]) is not None]


def _without_case(value: Any) -> Any:  # noqa: ANN401 - of a column
    return meaning(value) if isinstance(value, str) else value
