"""Ctrl-C for threads to which Python delivers none: those of a library that reads a query as a stream."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading

_ends: tuple[socket.socket, socket.socket] | None = None
_seen = 0


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def watch() -> int:
    """Has interrupts counted from now on, where they mean what they usually do and nobody else is told of signals.

    Gives how many were seen before.
    """
    global _ends
    if not _in_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return _count()
    if _ends is None:
        _ends = socket.socketpair()
        for end in _ends:
            end.setblocking(False)
    # Not in the main thread of the main interpreter, whatever it is called.
    with contextlib.suppress(ValueError):
        before = signal.set_wakeup_fd(_ends[1].fileno(), warn_on_full_buffer=False)
        if before not in {-1, _ends[1].fileno()}:
            signal.set_wakeup_fd(before)
    return _count()


def came_after(before: int) -> bool:
    """Whether there were more of them, in a thread that Python tells nothing."""
    return not _in_main_thread() and _count() != before


def _count() -> int:
    global _seen
    if _ends is not None:
        # Python writes every signal's number.
        with contextlib.suppress(BlockingIOError):
            while told := _ends[0].recv(4_096):
                _seen += told.count(signal.SIGINT)
    return _seen


def _forget() -> None:
    """A forked child tells its parent of no signals."""
    global _ends
    if _ends is not None:
        with contextlib.suppress(ValueError):
            if (before := signal.set_wakeup_fd(-1)) != _ends[1].fileno():
                signal.set_wakeup_fd(before)
        for end in _ends:
            end.close()
        _ends = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
