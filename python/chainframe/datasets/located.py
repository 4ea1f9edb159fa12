"""Transactions that a lookup shows in their blocks, whose heights a scan requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from chainframe._declared import record_of
from chainframe.datasets.expected import Block, ExpectedRecords, Key

if TYPE_CHECKING:
    from chainframe.datasets.again import Source

REPLACED = (
    "The result has records of different chains: the chain was reorganized between the requests of the scan; run the "
    "query again."
)


class LocatedTransactions(ExpectedRecords):
    """Transactions that were looked up for their heights.

    One response shows the blocks of all of them at the same time. The result has to have them in these blocks, or in
    those of a second lookup after it: the lists of single heights may be of different chains.
    """

    def __init__(self) -> None:
        super().__init__(["tx_id"], record_of("transactions")["roles"])
        # True if the result has the lists of single heights, and not one list.
        self.are_read_by_height: bool = False
        # Blocks of the transactions in the response of the second lookup, which is sent after the result.
        self._shown: dict[Key, Block] = {}

    def in_question(self) -> dict[Source, int]:
        """The lookup, if the result does not have all transactions in the blocks that it showed."""
        return {seen.source: 0 for seen in self._seen} if self._lacking() or self._are_elsewhere() else {}

    def on_again(self, records: pa.RecordBatch) -> None:
        """Takes the transactions that the second lookup shows."""
        self._shown |= {key: block for key, _, block in self._rows(records)}
        super().on_again(records)

    def moved(self) -> list[int]:
        """Heights of the transactions that the result lacks and the second lookup shows in another block."""
        blocks = [self._shown[seen.key] for seen in self._lacking() if seen.key in self._shown]
        return sorted({height for height, *_ in blocks if height is not None}, reverse=True)

    def lacking_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The records of a batch that the result lacks."""
        lacking = {seen.key for seen in self._lacking()}
        return batch.filter(pa.array([key in lacking for key, _, _ in self._rows(batch)], pa.bool_()))

    def are_replaced(self) -> bool:
        """True if the result has blocks that neither lookup shows."""
        return bool(self.in_question()) and self._differ(self._shown)

    def _are_elsewhere(self) -> bool:
        """True if the result has transactions in other blocks than those of the first lookup."""
        return self._differ({seen.key: seen.block for seen in self._seen})

    def _differ(self, shown: dict[Key, Block]) -> bool:
        """True if a lookup does not show the transactions in the blocks in which the result has them."""
        # One transaction that is returned once is of one chain.
        if not self.are_read_by_height or len(self._seen) <= 1:
            return False
        return any(
            key not in shown or not _is_same(block, shown[key])
            for key, blocks in self._returned.items()
            for block in blocks
        )


def _is_same(block: Block, other: Block) -> bool:
    """True if two endpoints show the same block; one of them may not show its hash."""
    (height, *_, digest), (other_height, *_, other_digest) = block, other
    return height == other_height and (digest is None or other_digest is None or digest == other_digest)
