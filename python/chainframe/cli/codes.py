"""Exit codes of the command, and standard output that takes everything or fails."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # `typing` would take longer to import than the command
if TYPE_CHECKING:
    from collections.abc import Generator

FAILED = 1
USAGE = 2
NETWORK = 5
INCOMPLETE = 6
LOCKED = 7
DIFFERENT = 8
REFUSED = 9
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports SIGPIPE
TERMINATED = 143  # as a shell reports SIGTERM


def give_up_output() -> None:
    """Discards what standard output did not take, so that the interpreter does not write it again at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def whole_writes() -> Generator[None]:
    """Buffers a standard output that is unbuffered, as with `PYTHONUNBUFFERED=1`.

    A raw file may write a part of what it is given, and says so only in a return value. A buffered one writes all of it
    or raises.
    """
    before = sys.stdout
    if not isinstance(getattr(before, "buffer", None), io.RawIOBase):
        yield
        return
    buffered = open(  # noqa: SIM115 - a descriptor; closed below, where an error has been reported
        before.fileno(), "w", buffering=1, encoding=before.encoding, errors=before.errors, closefd=False
    )
    sys.stdout = buffered
    try:
        yield
    finally:
        sys.stdout = before
        with suppress(OSError):
            buffered.close()


def sync_output() -> None:
    """Waits until a file at standard output is on the disk, which may be full only then."""
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:
        # Replaced by a stream in memory.
        return
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fsync(descriptor)
