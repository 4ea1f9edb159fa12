"""Where a list that has grown meets what was exported of it before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTH = 20
"""Records in a row that have to agree, where there are as many: identical records are not the same."""


class Anchor:
    """The newest records of an export, in the list's order, looked for in the list as it comes in."""

    def __init__(self, head: Sequence[str]) -> None:
        self._wanted = _unambiguous(head)
        self._recent: list[str] = []
        self._fed = 0
        self.open: int = 0
        """How many of the latest records may be the first of those looked for."""

    def feed(self, identities: Sequence[str]) -> int | None:
        """Takes what comes next; how many records came before those looked for, once all of those are there."""
        size = len(self._wanted)
        window = [*self._recent, *identities]
        start = self._fed - len(self._recent)
        self._fed += len(identities)
        for at in range(len(window) - size + 1):
            if window[at : at + size] == self._wanted:
                return start + at
        tail = range(max(0, len(window) - size + 1), len(window))
        matching = (len(window) - at for at in tail if window[at:] == self._wanted[: len(window) - at])
        self.open = next(matching, 0)
        self._recent = window[max(0, len(window) - size + 1) :]
        return None


def _unambiguous(head: Sequence[str]) -> list[str]:
    """As many records as cannot be mistaken for themselves some places on, as a row of twins could."""
    for size in range(min(LENGTH, len(head)), len(head) + 1):
        wanted = list(head[:size])
        if all(wanted[shift:] != wanted[: size - shift] for shift in range(1, size)):
            return wanted
    raise ExportError(
        "since: the newest records of that export repeat one another and cannot be told apart; export anew"
    )
