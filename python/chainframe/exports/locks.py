"""Locks that one process holds at a time."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

# A link is not followed, and a pipe not waited for.
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW_SECONDS = 60
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def acquire_lock(path: Path, locked: Path, message: str) -> int:
    """Takes the lock of `locked`, which is the file `path`, or raises `ExportError` with the message if it is held.

    The system releases it when the process ends; its file then stays for the next to take. Only users who may write
    the file can open it, since a process that has it open can hold the lock.
    """
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _OPEN_FLAGS, 0o222)
        try:
            if _has_locked(descriptor, path, locked, message):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _has_locked(descriptor: int, path: Path, locked: Path, message: str) -> bool:
    """False if the holder has removed the file just before the lock was free."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise ExportError(f"{path} is not a regular file; remove it", path=str(path))
    try:
        _try_lock(descriptor)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES, errno.EDEADLK}:
            raise ExportError(message, path=str(locked), retryable=True) from None
        if error.errno in _NO_LOCKS:
            message = f"{locked}: the file system has no file locks ({error.strerror}); use a local directory"
            raise ExportError(message, path=str(locked)) from None
        raise


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def release_lock(descriptor: int, path: Path) -> None:
        os.close(descriptor)
        # Another process may have opened it by now, and an open file cannot be removed.
        with suppress(OSError):
            path.unlink(missing_ok=True)

    @contextmanager
    def marked_as_written(descriptor: int) -> Generator[None]:  # noqa: ARG001 - as below
        """Does nothing: a file that is open cannot be removed."""
        yield

    def remove_if_abandoned(path: Path) -> None:
        """Removes a file unless a process has it open."""
        with suppress(OSError):
            path.unlink()
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release_lock(descriptor: int, path: Path) -> None:
        # If the directory was moved, the file at this path may be the lock of another run.
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                path.unlink()
        os.close(descriptor)

    @contextmanager
    def marked_as_written(descriptor: int) -> Generator[None]:
        """Locks a new file until it has its name, also after it was closed, where the file system has locks."""
        held = os.dup(descriptor)
        try:
            with suppress(OSError):
                _try_lock(held)
            yield
        finally:
            os.close(held)

    def _is_new(status: os.stat_result) -> bool:
        """True if a process may have created the file and not locked it yet."""
        return status.st_size == 0 and abs(time.time() - status.st_mtime) < _NEW_SECONDS

    def remove_if_abandoned(path: Path) -> None:
        """Removes a file unless a process writes it, or the file system has no locks to tell."""
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
            try:
                _try_lock(descriptor)
                if not _is_new(os.fstat(descriptor)):
                    path.unlink()
            finally:
                os.close(descriptor)
