"""Turns what the native core starts into a coroutine, which is what `asyncio.run` and `create_task` take."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def run(start: Callable[[], Awaitable[T]]) -> T:
    return await start()
