"""Notes of errors on what is kept, and tracebacks that end at the caller."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from chainframe.errors import ChainframeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

P = ParamSpec("P")
R = TypeVar("R")


def continues(error: BaseException, kept: str) -> None:
    """Note what is kept, and that the same call continues, unless it would fail again.

    The note is in place of those on a cursor: the target has one of its own.
    """
    if isinstance(error, ChainframeError) and not error.retryable:
        return
    notes = [note for note in getattr(error, "__notes__", []) if "cursor" not in note]
    error.__notes__ = [*notes, f"{kept}; the same call continues"]


def ending_at_the_caller(method: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[None, None, R]]:
    """Let interrupts, cancellations and errors of the package leave a coroutine without the frames within it."""

    @functools.wraps(method)
    async def called(*args: P.args, **options: P.kwargs) -> R:
        try:
            return await method(*args, **options)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, ChainframeError):
                raise
            raise error.with_traceback(None) from error.__cause__

    return called
