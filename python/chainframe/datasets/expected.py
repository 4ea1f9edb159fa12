"""Records that the result of a scan is expected to have, since another response showed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Key = tuple[Any, ...]
# Height, time and, where the list has it, hash of the block of a record.
Block = tuple[Any, ...]
LACKING = (
    "The result lacks records that another response showed: the chain was reorganized, or a part of the service lacks "
    "them. Run the query again."
)


@dataclass(frozen=True)
class _Seen:
    """A record that the filter accepts."""

    key: Key
    height: int
    block: Block
    # Number of the response.
    response: int
    # True if it was requested by itself, so that no record of the same response shows whether its block was replaced.
    is_looked_up: bool


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
        self._returned: dict[Key, set[Block]] = {}
        # Lowest and highest height of each response, and those within which the result has other records.
        self._ranges: dict[int, tuple[int, int]] = {}
        self._replaced: set[int] = set()
        # Greatest height of the result.
        self._newest: int = -1

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, records: pa.RecordBatch, *, is_looked_up: bool = False) -> None:
        """Takes the records of a response."""
        self._responses += 1
        rows = list(self._rows(records))
        self._seen.extend(_Seen(key, height, block, self._responses, is_looked_up) for key, height, block in rows)
        if rows and not is_looked_up:
            heights = [height for _, height, _ in rows]
            self._ranges[self._responses] = (min(heights), max(heights))

    def forget_newer(self, count: int, page: pa.RecordBatch | None) -> None:
        """Forgets records above the first page of a list that was requested after `count` were received."""
        newest = self._newest_of(page)
        self._seen[count:] = [seen for seen in self._seen[count:] if seen.height <= newest]

    def is_in(self, batches: Sequence[pa.RecordBatch]) -> bool:
        """True if batches have all records that were received."""
        keys = {key for batch in batches for key, _, _ in self._rows(batch)}
        return all(seen.key in keys for seen in self._seen)

    def on_result(self, batch: pa.RecordBatch) -> None:
        """Takes records of the result."""
        if self._seen:
            self._newest = max(self._newest, self._newest_of(batch))
            wanted = {seen.key for seen in self._seen}
            for key, _, block in self._rows(self._candidates(batch)):
                if key in wanted:
                    self._returned.setdefault(key, set()).add(block)
            if not self._has_hashes:
                self._find_replaced(batch)

    def are_lacking(self) -> bool:
        """True if the result lacks a record, and no reorganization explains it.

        A reorganization replaces all blocks from some height on. A record that was received before it, or with it, and
        is in the result with the same block, shows that the blocks up to its own were not replaced. If all of them
        were, the result has others in their place. A transaction of a replaced block may be in another one.
        """
        unchanged: dict[int, int] = {}
        for seen in self._seen:
            if seen.block in self._returned.get(seen.key, ()):
                unchanged[seen.response] = max(unchanged.get(seen.response, -1), seen.height)
        for seen in self._seen:
            if seen.key in self._returned or seen.response in self._replaced:
                continue
            heights = [height for response, height in unchanged.items() if response <= seen.response]
            if seen.is_looked_up or seen.height > self._newest or seen.height <= max(heights, default=-1):
                return True
        return False

    def _find_replaced(self, batch: pa.RecordBatch) -> None:
        """Finds responses that lack records which the result has between their heights.

        Records without the hash of a block show a reorganization by nothing else.
        """
        for response, (low, high) in self._ranges.items():
            height = pc.field(self._block[0])
            within = batch.filter((height > low) & (height <= high))
            shown = {seen.key for seen in self._seen if seen.response == response}
            if any(key not in shown for key, _, _ in self._rows(within)):
                self._replaced.add(response)

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

    def _rows(self, records: pa.RecordBatch) -> Iterator[tuple[Key, int, Block]]:
        # A ranked list may have lost a record since.
        if self._height is None or not len(records):
            return
        kept = pa.Table.from_batches([records])
        if self._keep is not None:
            kept = self._keep(kept)
        for row in kept.select(list(dict.fromkeys([*self._identity, *self._block]))).to_pylist():
            # A record without a height may be pending: it changes before it is in a block.
            if (height := row[self._height]) is not None:
                key = tuple(_without_case(row[name]) for name in self._identity)
                yield key, height, tuple(_without_case(row[name]) for name in self._block)


def block_columns(roles: dict[str, str | None]) -> list[str]:
    """Columns by which the block of a record is told from another one."""
    return [name for role in ("height", "time", "block") if (name := roles[role]) is not None]


def _without_case(value: Any) -> Any:  # noqa: ANN401 - of a column
    return value.lower() if isinstance(value, str) else value
