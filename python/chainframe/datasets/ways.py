"""Ways to read what a filter leaves of a query, of which `Narrowing.way` selects one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainframe import Query
    from chainframe.datasets.hashes import Lookup


@dataclass(frozen=True)
class Direct:
    """The queries, one after the other."""


@dataclass(frozen=True)
class ByHashes:
    """Queries for hashes, if responses show that they return the same as a list."""

    query: Query[Any]
    lookup: Lookup


@dataclass(frozen=True)
class ByTimes:
    """Heights of times, or the list. No times: nothing can satisfy the filter."""

    query: Query[Any]
    timed: list[Query[Any]]


@dataclass(frozen=True)
class Descent:
    """The list, down to the lowest height or time that the filter accepts."""

    floors: dict[str, int]
    """Lowest values that the filter accepts of the columns by which the list is ordered."""


@dataclass(frozen=True)
class Parts:
    """The queries, which are parts of a list, or the list."""

    whole: Query[Any]


Way = Direct | ByHashes | ByTimes | Descent | Parts
