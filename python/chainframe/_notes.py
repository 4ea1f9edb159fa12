"""Notes of errors on what is kept."""

from __future__ import annotations

from chainframe.errors import ChainframeError


def omit_cursor(error: BaseException) -> None:
    """Remove the notes on a cursor, for a target that has one of its own."""
    if notes := getattr(error, "__notes__", None):
        error.__notes__ = [note for note in notes if "cursor" not in note]


def continues(error: BaseException, kept: str) -> None:
    """Note what is kept, and that the same call continues, unless it would fail again.

    The note is in place of those on a cursor.
    """
    if isinstance(error, ChainframeError) and not error.retryable:
        return
    omit_cursor(error)
    error.add_note(f"{kept}; the same call continues")
