"""Helpers of the tests of cassettes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import chainframe as cf
from chainframe.testing import Cassette

if TYPE_CHECKING:
    from pathlib import Path


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the interactions of a cassette."""
    # A line that begins with a space continues the one above.
    interactions = re.split(r"\n(?! )", path.read_text(encoding="utf-8"))
    return [json.loads(interaction) for interaction in interactions if interaction]


def replaying(path: Path, **settings: Any) -> cf.Client:
    """Return a client that only replays a cassette."""
    return cf.Client(cassette=Cassette(path, mode="none"), **settings)
