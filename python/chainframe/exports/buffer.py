"""Rows that a run has fetched and not written: the buffer of the core, and what was taken from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from chainframe import Records, Report
    from chainframe.exports.store import Pieces


class Buffer(Protocol):
    """Records that were fetched and are in no file yet: a buffer of the core."""

    @property
    def ended(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    def fetch(self) -> None: ...
    async def fetch_async(self) -> None: ...
    def drain(self) -> None: ...
    def is_due(self) -> bool: ...
    def is_piece_due(self) -> bool: ...
    def take_piece(self) -> tuple[Records[Any], Any] | None: ...
    def take(self) -> tuple[Records[Any], Any] | None: ...
    def report(self) -> Report: ...


@dataclass
class NextFile:
    """Rows that were taken from the buffer for the next file, with the state after them."""

    tables: list[pa.Table] = field(default_factory=list)
    """The rows that are not stored as pieces."""
    rows: int = 0
    pieces: Pieces | None = None
    """The pieces that have the others."""
    watermark: list[list[Any]] = field(default_factory=list)
    cursor: Any = None
    queried: Counter[str] = field(default_factory=Counter)
    """Numbers of them by the value of a set whose list returned them."""
