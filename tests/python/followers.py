"""Sets that the tests of followers compare: the records that a consumer keeps, and those of the list."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import chainframe as cf


def height(record: Any) -> int:
    found: int = getattr(record, "zone_block_height", None) or record.height
    return found


def listed(query: cf.Query[Any]) -> list[Any]:
    """All records of a list, oldest first."""
    is_cut = "address_transactions" in repr(query)
    with pytest.warns(cf.IncompleteResultWarning) if is_cut else contextlib.nullcontext():
        return list(query.collect())[::-1]


class Consumer:
    """The records of a follower, as a consumer keeps them."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.undone: list[int] = []
        self.cursor = "now"

    def take(self, event: cf.Records[Any] | cf.Undo) -> None:
        if isinstance(event, cf.Undo):
            self.records = [record for record in self.records if height(record) <= event.after_height]
            self.undone.append(event.after_height)
        else:
            assert len(event) > 0
            self.records += event
        assert event.cursor is not None
        self.cursor = event.cursor

    def follow(self, query: cf.Query[Any], *, undo: bool) -> None:
        """Follow to the head."""
        start = "beginning" if self.cursor == "now" else self.cursor
        if undo:
            for event in query.follow(start=start, poll=None, settle=6, undo=True):
                self.take(event)
        else:
            for batch in query.follow(start=start, poll=None, settle=6):
                self.take(batch)

    def check(self, query: cf.Query[Any], *, above: int = -1) -> None:
        """Compare with the list up to the last record that was delivered."""
        last = height(self.records[-1])
        assert self.records == [record for record in listed(query) if above < height(record) <= last]
