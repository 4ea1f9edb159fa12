"""Parameters of a call and the columns that they bound, as the API is declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chainframe._declared import ENDPOINTS


@dataclass
class Column:
    """Parameters of a call that bound one column."""

    equal: str | None = None
    # A parameter that compares some of several columns.
    equal_in_some: str | None = None
    # Parameters whose value each record of a list has in the column.
    of_set: frozenset[str] = frozenset()
    low: str | None = None
    low_is_excluded: bool = False
    high: str | None = None
    # Ends that the API may exclude: one step wider, they cannot lose a record.
    open_ends: frozenset[str] = frozenset()
    sides: dict[str, tuple[str, str]] = field(default_factory=dict)


def parameters(resource: str) -> list[dict[str, Any]]:
    declared: list[dict[str, Any]] = ENDPOINTS[resource]["params"]
    return declared


def page_size(resource: str) -> int:
    return int(ENDPOINTS[resource]["page_size_max"] or 1)


@cache
def bounded_columns(resource: str) -> dict[str, Column]:
    """Columns that parameters of a call bound, with the parameters."""
    columns: dict[str, Column] = {}
    for parameter in parameters(resource):
        # Times for which heights have to be found are no filters of the API.
        for name, bound in {} if parameter["is resolved"] else parameter["bounds"].items():
            column = columns.setdefault(name, Column())
            if bound in ("at least", "at most") and not parameter["is inclusive"]:
                column.open_ends |= {parameter["name"]}
            match bound:
                case "equal":
                    column.equal = parameter["name"]
                    column.of_set |= {parameter["name"]}
                case "equal in some":
                    column.equal_in_some = parameter["name"]
                case "at least" | "above":
                    column.low = parameter["name"]
                    column.low_is_excluded = bound == "above"
                case "at most":
                    column.high = parameter["name"]
                case "involved":
                    column.of_set |= {parameter["name"]}
                case {"value": value, "equal to": other}:
                    column.sides[parameter["name"]] = (value, other)
                case other:
                    raise AssertionError(other)
    return columns
