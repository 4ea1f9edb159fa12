"""Blocking work of coroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Runs `work` in a thread, to its end even if the task is cancelled: while it writes, the lock must be held."""
    import asyncio  # noqa: PLC0415 - a caller that awaits has it already, and the command does not need it

    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
