"""The API as the core declares it, and roles of columns."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from chainframe._native import _declaration

if TYPE_CHECKING:
    from collections.abc import Iterable

_DECLARED: dict[str, list[dict[str, Any]]] = json.loads(_declaration())

RECORDS: dict[str, dict[str, Any]] = {record["name"]: record for record in _DECLARED["records"]}
ENDPOINTS: dict[str, dict[str, Any]] = {endpoint["name"]: endpoint for endpoint in _DECLARED["endpoints"]}
LAWS = _DECLARED["laws"]

HEXADECIMAL = re.compile(r"0[xX].*|[0-9a-fA-F]*", re.DOTALL)

QUERIED = "queried"
"""Column of a set: the arguments whose lists returned the row, as a list of one."""


def meaning(text: str) -> str:
    """Return what an address or a hash means: hexadecimal digits are the same in either letter case, base58 is not."""
    return text.lower() if HEXADECIMAL.fullmatch(text) else text


def record_of(resource: str) -> dict[str, Any]:
    """Return the declaration of the records of a resource."""
    return RECORDS[ENDPOINTS[resource]["record"]]


def height_column(names: Iterable[str]) -> str | None:
    """Return the column of heights among those of a table."""
    names = set(names)
    heights = (record["roles"]["height"] for record in RECORDS.values())
    return next((height for height in heights if height in names), None)


def time_column(names: Iterable[str]) -> str | None:
    """Return the column of the times of the blocks with these heights, among those of a table."""
    names = set(names)
    times = (record["roles"]["time"] for record in RECORDS.values() if record["roles"]["height"] is not None)
    return next((time for time in times if time in names), None)
