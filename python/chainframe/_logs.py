"""Logging: the logger is named `chainframe`, and `CHAINFRAME_LOG` adds a handler that writes to standard error."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from chainframe._text import shown

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class ToStderr(logging.StreamHandler[TextIO]):
    """Handler that is silent once the application has configured logging, so that no record appears twice."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            self.stream = sys.stderr
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record), self.stream)


def logger() -> logging.Logger:
    """Return the logger, with the handler that the environment asks for. Called once, before the first record."""
    logger = logging.getLogger("chainframe")
    # Without a handler of any kind Python would print warnings by itself.
    logger.addHandler(logging.NullHandler())
    wanted = os.environ.get("CHAINFRAME_LOG", "").strip().lower()
    if wanted:
        handler = ToStderr()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(LEVELS.get(wanted, logging.WARNING))
        if wanted not in LEVELS:
            logger.warning("CHAINFRAME_LOG must be one of %s; got %r", ", ".join(LEVELS), wanted)
    return logger
