"""Ctrl-C for threads to which Python delivers no signals: those of a library that reads a query as a stream."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading


def is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


class _Interrupts:
    """Counts the interrupts of this process, which Python writes to a pair of sockets."""

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._count = 0
        self._watchers: set[int] = set()

    def prepare(self) -> None:
        """Start counting, for a stream that another thread may open.

        Only if Ctrl-C has its usual meaning and the program does not use the wakeup descriptor itself.
        """
        if not is_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        if self._ends is None:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.settimeout(0)
        # Python's main thread may be that of a subinterpreter, which has no signals.
        with contextlib.suppress(ValueError):
            ours = self._ends[1].fileno()
            before = signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
            if before not in {-1, ours}:
                signal.set_wakeup_fd(before)

    def watch(self, watcher: int) -> int:
        """Start counting until the watcher is released; returns the number of interrupts so far."""
        self._watchers.add(watcher)
        self.prepare()
        return self._counted()

    def release(self, watcher: int) -> None:
        """Undo a `watch`. The last one hands the wakeup descriptor back, which only the main thread can."""
        self._watchers.discard(watcher)
        if not self._watchers and is_main_thread():
            self._hand_back()

    def came_after(self, before: int) -> bool:
        """Return whether an interrupt came in a thread to which Python delivers none."""
        return not is_main_thread() and self._counted() != before

    def forget(self) -> None:
        """Close the sockets of the parent in a forked child."""
        self._watchers.clear()
        if self._ends is None:
            return
        self._hand_back()
        for end in self._ends:
            end.close()
        self._ends = None

    def _hand_back(self) -> None:
        if self._ends is None:
            return
        with contextlib.suppress(ValueError):
            before = signal.set_wakeup_fd(-1)
            if before != self._ends[1].fileno():
                signal.set_wakeup_fd(before)

    def _counted(self) -> int:
        if self._ends is not None:
            # Python writes the number of every signal.
            with contextlib.suppress(BlockingIOError):
                while numbers := self._ends[0].recv(4_096):
                    self._count += numbers.count(signal.SIGINT)
        return self._count


_INTERRUPTS = _Interrupts()
prepare = _INTERRUPTS.prepare
watch = _INTERRUPTS.watch
release = _INTERRUPTS.release
came_after = _INTERRUPTS.came_after
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_INTERRUPTS.forget)
