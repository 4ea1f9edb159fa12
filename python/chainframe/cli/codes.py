"""Exit codes of the command, and the end of an output that takes no more."""

from __future__ import annotations

import os
import sys

FAILED = 1
USAGE = 2
INCOMPLETE = 6
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended


def give_up_output() -> None:
    """What standard output did not take must not be tried again at the end."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
