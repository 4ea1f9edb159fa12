"""Signals during an export: they interrupt a wait for the API, and never the writing of what it returned."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from chainframe._interrupts import is_main_thread

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from types import FrameType, TracebackType

T = TypeVar("T")

_SIGNALS = signal.valid_signals()
# Ask a process to end, and by default do so at once.
_TERMINATING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]


class _Terminated(BaseException):
    """Ends a wait when a signal came whose default action would have ended the process."""


class DeferredSignals:
    """Defers signals within a `with` block; they are delivered in `interruptible` calls and at the end of the block.

    Python runs signal handlers in the main thread, between any two instructions. Every handler in Python code is
    replaced by one that records the signal; within `interruptible` it calls the original handler, which may raise. A
    signal whose default action ends the process acts at the end of the block. Signals raise nothing in other threads.
    """

    def __init__(self) -> None:
        self._originals: dict[int, Any] = {}
        self._pending: list[int] = []
        self._fatal: list[int] = []
        self._interruptible = False
        self._ended = False

    def __enter__(self) -> Self:
        if is_main_thread():
            try:
                self._install()
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._restore()
        finally:
            for number in [*self._pending, *self._fatal]:
                signal.raise_signal(number)

    def _install(self) -> None:
        for number in _SIGNALS:
            original = signal.getsignal(number)
            if callable(original) or (original is signal.SIG_DFL and number in _TERMINATING):
                self._originals[number] = original
                # A subinterpreter has no signals.
                with suppress(ValueError):
                    signal.signal(number, self._handle)

    def _restore(self) -> None:
        # From here on a handler that could not be restored does what the original does.
        self._ended = True
        for number, original in self._originals.items():
            # Code that ran meanwhile may have installed its own handler.
            if signal.getsignal(number) == self._handle:
                signal.signal(number, original)

    def interruptible(self, work: Callable[[], T]) -> T:
        """Calls `work`, which signals may interrupt; those that came before interrupt it at once."""
        self._interruptible = True
        try:
            while self._pending:
                self._handle(self._pending.pop(0), None)
            return work()
        finally:
            self._interruptible = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        original = self._originals[number]
        if self._ended:
            signal.signal(number, original)
            signal.raise_signal(number)
        elif not self._interruptible:
            self._pending.append(number)
        else:
            # If this ends the wait, no other signal may interrupt the writing that follows.
            self._interruptible = False
            if not callable(original):
                self._fatal.append(number)
                raise _Terminated
            original(number, frame)
            self._interruptible = True


class _CancelledBySignal:
    """Terminating signals while tasks export: the tasks are cancelled, and the signal acts when the last has ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._installed: list[int] = []
        self._pending: list[int] = []

    @contextmanager
    def guard(self) -> Generator[None]:
        import asyncio  # noqa: PLC0415 - a caller that awaits has it already, and the command does not need it

        task = asyncio.current_task()
        if task is None or not is_main_thread():
            yield
            return
        self._add(task)
        try:
            yield
        finally:
            self._remove(task)

    def _add(self, task: asyncio.Task[Any]) -> None:
        if not self._tasks:
            for number in _TERMINATING:
                if signal.getsignal(number) is signal.SIG_DFL:
                    with suppress(ValueError):
                        signal.signal(number, self._handle)
                        self._installed.append(number)
        self._tasks.add(task)

    def _remove(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if self._tasks:
            return
        for number in self._installed:
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL)
        self._installed.clear()
        pending = self._pending
        self._pending = []
        for number in pending:
            signal.raise_signal(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._pending.append(number)
        for task in tuple(self._tasks):
            task.get_loop().call_soon_threadsafe(task.cancel)


_cancelled_by_signal = _CancelledBySignal()


def cancelled_by_signal() -> AbstractContextManager[None]:
    """Cancels the current task at a signal, within the block."""
    return _cancelled_by_signal.guard()
