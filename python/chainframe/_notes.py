"""Notes of errors on what is kept."""

from __future__ import annotations

from chainframe.errors import ChainframeError


def continues(error: BaseException, kept: str) -> None:
    """Note what is kept, and that the same call continues, unless it would fail again.

    The note is in place of those on a cursor: the target has one of its own.
    """
    if isinstance(error, ChainframeError) and not error.retryable:
        return
    notes = [note for note in getattr(error, "__notes__", []) if "cursor" not in note]
    error.__notes__ = [*notes, f"{kept}; the same call continues"]
