"""Exit codes of the command, and the end of a closed output."""

from __future__ import annotations

import os
import sys

FAILED = 1
USAGE = 2
NETWORK = 5
INCOMPLETE = 6
LOCKED = 7
DIFFERENT = 8
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
