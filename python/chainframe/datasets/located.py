"""Transactions that a lookup shows in their blocks, whose heights a scan requests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa

from chainframe._declared import record_of
from chainframe.datasets.expected import Block, ExpectedRecords, Key

if TYPE_CHECKING:
    from chainframe.datasets.again import Source

REPLACED = (
    "The result has records of different chains: the chain was reorganized between the requests of the scan. Run the "
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
        # Its moment: after the batches that were received before it.
        self._second: float = math.inf

    def in_question(self) -> dict[Source, int]:
        """The lookup, if the result does not have all transactions in the blocks that it showed."""
        return {seen.source: 0 for seen in self._seen} if self._lacking() or self._are_elsewhere() else {}

    def on_again(self, records: pa.RecordBatch) -> None:
        """Takes the transactions that the second lookup shows."""
        self._shown |= {key: block for key, _, block in self._rows(records)}
        self._second = self._batches + 0.5
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
        """True if there may have been no moment at which the chain had all blocks of the result.

        It had a block when the list was read, and, if a lookup shows the block too, from one of the two to the other.
        It lacked a transaction that the result lacks when the second lookup was sent.
        """
        if not self.in_question():
            return False
        first = {seen.key: seen.block for seen in self._seen}
        begins = [0.0]
        ends = [math.inf]
        for key, block, batch in self._places():
            moments: list[float] = [batch]
            if _is_same(block, first[key]):
                moments.append(0)
            if _is_same(block, self._shown.get(key)):
                moments.append(self._second)
            begins.append(min(moments))
            ends.append(max(moments))
        if self._lacking():
            begins.append(self._second)
            ends.append(self._second)
        return max(begins) > min(ends)

    def _are_elsewhere(self) -> bool:
        """True if the result has transactions in other blocks than those of the first lookup."""
        first = {seen.key: seen.block for seen in self._seen}
        return any(not _is_same(block, first[key]) for key, block, _ in self._places())

    def _places(self) -> list[tuple[Key, Block, int]]:
        """The transactions of the result with their blocks and batches, if these are of lists of several moments."""
        # One transaction that is returned once is of one chain.
        if not self.are_read_by_height or len(self._seen) <= 1:
            return []
        return [(key, block, batch) for key, blocks in self._returned.items() for block, batch in blocks.items()]


def _is_same(block: Block, other: Block | None) -> bool:
    """True if two endpoints show the same block; one of them may not show its hash."""
    if other is None:
        return False
    (height, *_, digest), (other_height, *_, other_digest) = block, other
    return height == other_height and (digest is None or other_digest is None or digest == other_digest)
