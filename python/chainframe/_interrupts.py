"""Ctrl-C for threads to which Python delivers none: those of a library that reads a query as a stream."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


class _Interrupts:
    """The interrupts of this process, told by Python through a pair of sockets."""

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._seen = 0

    def watch(self) -> int:
        """Has interrupts counted from now on, where they mean what they usually do and nobody else is told of signals.

        Gives how many were seen before.
        """
        if not _in_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return self._count()
        if self._ends is None:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.settimeout(0)
        told = self._ends[1].fileno()
        # Not in the main thread of the main interpreter, whatever it is called.
        with contextlib.suppress(ValueError):
            before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
            if before not in {-1, told}:
                signal.set_wakeup_fd(before)
        return self._count()

    def came_after(self, before: int) -> bool:
        """Whether there were more of them, in a thread that Python tells nothing."""
        return not _in_main_thread() and self._count() != before

    def forget(self) -> None:
        """A forked child tells its parent of no signals."""
        if self._ends is None:
            return
        with contextlib.suppress(ValueError):
            before = signal.set_wakeup_fd(-1)
            if before != self._ends[1].fileno():
                signal.set_wakeup_fd(before)
        for end in self._ends:
            end.close()
        self._ends = None

    def _count(self) -> int:
        if self._ends is not None:
            # Python writes every signal's number.
            with contextlib.suppress(BlockingIOError):
                while told := self._ends[0].recv(4_096):
                    self._seen += told.count(signal.SIGINT)
        return self._seen


_INTERRUPTS = _Interrupts()
watch = _INTERRUPTS.watch
came_after = _INTERRUPTS.came_after
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_INTERRUPTS.forget)
