"""Members of the records of a result that several runs read together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_UNKNOWN = 64
"""Most unknown members that a report lists, as in the core."""


def merged_members(runs: Iterable[tuple[int, list[str], list[str]]]) -> dict[str, list[str]]:
    """Return the absent and unknown members of the records of all runs.

    Each run is given by its number of records, its absent and its unknown members. A run without records says nothing
    of absent members.
    """
    absent: list[str] | None = None
    unknown: dict[str, None] = {}
    for records, run_absent, run_unknown in runs:
        unknown.update(dict.fromkeys(run_unknown))
        if records or run_absent:
            absent = [name for name in run_absent if absent is None or name in absent]
    return {"members_absent": absent or [], "members_unknown": list(unknown)[:MAX_UNKNOWN]}
