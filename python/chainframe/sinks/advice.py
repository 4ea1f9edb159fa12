"""Advice of `sync` on errors of the list, and on a stored position that is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe.errors import ChainframeError, FollowGapError, NumericOverflowError, ReorganizationError
from chainframe.sinks.contract import LOST

if TYPE_CHECKING:
    from chainframe.sinks.contract import Position


def advised(error: ChainframeError, follow: Any, *, has_rows: bool) -> ChainframeError:  # noqa: ANN401
    """Say with an error of a follower what `sync` offers."""
    if isinstance(error, ReorganizationError):
        message = f"{error}; with sync, pass reset=True to fetch the table again"
        absent = follow.report.members_absent
        if absent:
            names = ", ".join(absent)
            message += f"; no record has {names}: if the service sent this before, that has changed every height"
        return ReorganizationError(message, height=error.height)
    if isinstance(error, FollowGapError):
        message = f"{error}; in place of sync, to_parquet_series(settle=...) keeps such a list"
        return FollowGapError(message, first_height=error.first_height, last_height=error.last_height)
    if isinstance(error, NumericOverflowError) and has_rows:
        message = f"{error}; with sync, reset=True too, since the table has rows"
        return NumericOverflowError(message, column=error.column, row=error.row, text=error.text)
    return error


def without_cursor(stored: Position, name: str) -> str:
    """Say why a stored position has no cursor."""
    if stored == LOST:
        return f"{name}: the log no longer holds the last commit of sync; pass reset=True to fetch the table again"
    return rejected_position("has no cursor", name)


def rejected_position(problem: str, name: str) -> str:
    """Say what a stored position is that the follower rejects."""
    if problem.startswith("belongs to "):
        return f"{name} has the records of another query: its position {problem}; name another table"
    if problem.startswith("has the position"):
        return f"{name}: the stored position {problem}, or reset=True to fetch the table again with fewer"
    if problem.startswith("has unsupported version "):
        version = problem.partition(";")[0]
        return f"{name}: the stored position {version}; use the release that wrote it, or pass reset=True"
    return f"{name}: the stored position is not one that sync wrote; pass reset=True to fetch the table again"
