"""Arguments of a call that follow from a filter, by the declaration of the API."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainframe._declared import ENDPOINTS, meaning, record_of
from chainframe.datasets.declared import Column, bounded_columns, parameters
from chainframe.datasets.hashes import DIRECTION, DIRECTIONS, Lookup
from chainframe.datasets.sets import SetArgument
from chainframe.datasets.values import Range, Solver, as_decimal, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from chainframe import Query

# Maximum number of queries for one filter, and of heights that a range without its own parameter is expanded to.
MAX_QUERIES = 100
# Maximum number of heights that are requested one by one. A longer range reads the list itself.
MAX_HEIGHTS = 100_000

# The records of this number of heights fit into about one page.
HEIGHTS_PER_REQUEST = 100

# Maximum number of ranges of times that are requested separately: the heights of each are searched.
MAX_TIMES = 4

Arguments = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TimeBounds:
    """Column of the times of the blocks of a list, and the parameters that bound it."""

    column: str
    height: str
    low: str
    high: str
    # True if the API has no range of heights either, so that the client requests it height by height.
    is_expanded: bool
    # True if a response counts the records of the list.
    is_counted: bool


@cache
def _time_parameters(resource: str) -> dict[str, str]:
    ends = [parameter for parameter in parameters(resource) if parameter["is resolved"]]
    return {bound: parameter["name"] for parameter in ends for bound in parameter["bounds"].values()}


def time_bounds(resource: str) -> TimeBounds | None:
    ends = _time_parameters(resource)
    if not ends:
        return None
    roles = record_of(resource)["roles"]
    is_expanded = _is_expanded(resource, "start_height")
    is_counted = ENDPOINTS[resource]["is counted"]
    return TimeBounds(roles["time"], roles["height"], ends["at least"], ends["at most"], is_expanded, is_counted)


@cache
def descending(resource: str) -> tuple[str, ...]:
    """Columns of the height and time of a list from the newest block down, with one record a block; else none."""
    roles = record_of(resource)["roles"]
    return (roles["height"], roles["time"]) if ENDPOINTS[resource]["is consecutive"] else ()


def narrowed(
    resource: str, schema: pa.Schema, given: Arguments, solver: Solver, is_valid: Callable[[Arguments], bool]
) -> list[Arguments]:
    """Arguments of the queries that together return all records that the filter can accept.

    Records of different queries differ in one column, so none is returned twice. No query: no record is accepted.
    """
    argument = SetArgument.of(resource, given)
    common = dict(given)
    several: list[Arguments] = [{}]
    for name in schema.names:
        if argument is not None and argument.is_shown_by(name):
            choices = argument.narrowed(schema.field(name), solver, lambda value: is_valid(given | value))
        else:
            choices = _by_column(resource, schema.field(name), given, solver)
        if choices is None:
            continue
        wanted = common
        parts = several
        if len(choices) == 1:
            wanted = common | choices[0]
        elif not choices or len(several) == 1 or len(choices) < len(several):
            parts = choices
        if not parts:
            return []
        # A part that the API does not take with the rest has records, too: the other columns are compared locally.
        if all(is_valid(wanted | part) for part in parts):
            common = wanted
            several = parts
    return [common | part for part in several]


def looked_up(resource: str, given: Arguments, solver: Solver, is_valid: Callable[[Arguments], bool]) -> Lookup | None:
    """The fewest hashes that the filter accepts in a column which a parameter may compare."""
    columns = {name: column.equal_in_some for name, column in bounded_columns(resource).items() if column.equal_in_some}
    found: list[Lookup] = []
    for name, parameter in columns.items():
        points = solver.points(name) or []
        hashes = list({meaning(point): point for point in points}.values())
        if not hashes or len(hashes) > MAX_QUERIES or parameter in given:
            continue
        if all(is_valid(given | {parameter: each}) for each in hashes):
            directions = solver.points(DIRECTION) or DIRECTIONS
            compared = [each for each in columns if columns[each] == parameter]
            found.append(Lookup(parameter, name, compared, hashes, directions))
    return min(found, key=lambda lookup: len(lookup.hashes), default=None)


def timed(
    resource: str, schema: pa.Schema, given: Arguments, solver: Solver, is_valid: Callable[[Arguments], bool]
) -> list[Arguments] | None:
    """Arguments of the queries for the times that the filter can accept; `None` if times do not narrow the list.

    The API has no such filter: the client searches the heights of the times.
    """
    bounds = time_bounds(resource)
    ranges = None if bounds is None else solver.ranges(bounds.column)
    if bounds is None or ranges is None:
        return None
    max_times = MAX_TIMES if bounds.is_expanded else 1
    wanted = [each for each in map(Range(0 if bounds.is_expanded else None, None).intersected, ranges) if each]
    if len(wanted) > max_times:
        wanted = [Range(wanted[0].low, wanted[-1].high)]
    if Range(None, None) in wanted:
        return None
    kind = schema.field(bounds.column).type
    column = Column(low=bounds.low, high=bounds.high)
    passed = _passed(column, given, kind)
    wanted = [each for each in map(passed.intersected, wanted) if each]
    choices = [given | _bounded(column, each, kind, passed, is_ranged=True) for each in wanted]
    return choices if all(map(is_valid, choices)) else None


def _by_column(resource: str, column: pa.Field[Any], given: Arguments, solver: Solver) -> list[Arguments] | None:
    """Arguments for the values of a column that the filter accepts; `None` if they narrow nothing."""
    bounds = bounded_columns(resource).get(column.name)
    if bounds is None:
        return None
    if pa.types.is_string(column.type):
        choices = _by_string(bounds, given, solver.points(column.name))
    else:
        is_timed = _is_timed(resource, solver)
        choices = _by_range(resource, bounds, given, solver.ranges(column.name), column.type, is_timed=is_timed)
    # Each choice would request all lists of a set.
    is_costly = choices is not None and len(choices) > 1 and SetArgument.of(resource, given) is not None
    return None if is_costly else choices


def _by_string(column: Column, given: Arguments, points: list[str] | None) -> list[Arguments] | None:
    if not points:
        return None if points is None else []
    for parameter, (value, other) in column.sides.items():
        if parameter not in given and set(map(meaning, points)) == {meaning(str(given.get(other)))}:
            return [{parameter: value}]
    if column.equal is None:
        return None
    hashes = given.get(column.equal)
    wanted = {meaning(point): point for point in points}
    if isinstance(hashes, list):
        # A lookup by hash returns records in the requested order.
        kept = [item for item in hashes if meaning(item) in wanted]
        return [{column.equal: kept}] if kept else []
    # An empty argument would be rejected.
    if hashes is not None or "" in points or len(wanted) > MAX_QUERIES:
        return None
    return [{column.equal: point} for point in wanted.values()]


def _is_timed(resource: str, solver: Solver) -> bool:
    """True if the filter accepts some times of a list only whose heights can be searched."""
    bounds = time_bounds(resource)
    ranges = None if bounds is None else solver.ranges(bounds.column)
    return ranges is not None and Range(None, None) not in ranges


def _by_range(
    resource: str, column: Column, given: Arguments, ranges: list[Range] | None, kind: pa.DataType, *, is_timed: bool
) -> list[Arguments] | None:
    if ranges is None or column.equal in given:
        return None
    is_height = pa.types.is_int64(kind)
    wanted = [each for each in map(Range(0 if is_height else None, None).intersected, ranges) if each]
    if column.low is None:
        return None if column.equal is None else _by_value(column.equal, wanted)
    is_ranged = column.low in given or column.high in given
    passed = _passed(column, given, kind)
    if _is_expanded(resource, column.low):
        if not is_ranged and column.equal is not None and all(each.is_point for each in wanted):
            return _by_value(column.equal, wanted)
        if not _may_be_read_by_height(filter(None, map(passed.intersected, wanted)), is_timed=is_timed):
            return None
    else:
        # Without a single time or amount, a list is as long as with it.
        # Reading a few values between two ranges costs less than one more query.
        wanted = merged(wanted, HEIGHTS_PER_REQUEST if is_height else 2)
    is_set = SetArgument.of(resource, given) is not None
    if wanted and (is_set or len(wanted) > MAX_QUERIES or column.high is None):
        wanted = [Range(wanted[0].low, wanted[-1].high)]
    wanted = [each for each in map(passed.intersected, wanted) if each]
    return [_bounded(column, each, kind, passed, is_ranged=is_ranged) for each in wanted]


def _may_be_read_by_height(ranges: Iterable[Range], *, is_timed: bool) -> bool:
    """True if ranges have few enough heights. The first page of the list shows where one without an upper end ends."""
    count = 0
    for each in ranges:
        if each.high is None:
            # Times narrow the list to fewer heights.
            if is_timed or not each.low:
                return False
        else:
            count += len(each.values(MAX_HEIGHTS)) or MAX_HEIGHTS + 1
    return count <= MAX_HEIGHTS


def _by_value(parameter: str, ranges: list[Range]) -> list[Arguments] | None:
    values = [value for each in ranges for value in each.values(MAX_QUERIES)]
    is_whole = all(each.values(MAX_QUERIES) for each in ranges)
    return [{parameter: value} for value in values] if is_whole and len(values) <= MAX_QUERIES else None


def _is_expanded(resource: str, low: str) -> bool:
    """True if the API has no parameter for a range, so that the client requests it height by height."""
    return any(parameter["name"] == low and parameter["wire"] is None for parameter in parameters(resource))


def _bounded(column: Column, wanted: Range, kind: pa.DataType, passed: Range, *, is_ranged: bool) -> Arguments:
    """Arguments for a range, within the one that was passed with the call. The filter is applied again locally.

    An end that the filter leaves as it was passed has no argument, so that the passed one is sent.
    """
    if column.equal is not None and wanted.is_point and not is_ranged:
        return {column.equal: wanted.low}
    arguments: Arguments = {}
    if column.low is not None and wanted.low is not None and wanted.low != passed.low:
        is_wider = column.low_is_excluded or column.low in column.open_ends
        # No height or amount is negative.
        if not (is_wider and wanted.low == 0):
            arguments[column.low] = _value(wanted.low - is_wider, kind)
    if column.high is not None and wanted.high is not None and wanted.high != passed.high:
        is_wider = column.high in column.open_ends
        arguments[column.high] = _value(wanted.high + is_wider, kind)
    return arguments


def _passed(column: Column, given: Arguments, kind: pa.DataType) -> Range:
    """Values within the range that was passed with the call. An amount may have more places than the column."""
    low = _units(given.get(column.low or ""), kind)
    high = _units(given.get(column.high or ""), kind)
    lowest = None if low is None else math.floor(low) + 1 if column.low_is_excluded else math.ceil(low)
    return Range(lowest, None if high is None else math.floor(high))


def _value(value: int, kind: Any) -> int | Decimal | datetime:  # noqa: ANN401 - an Arrow type
    if pa.types.is_timestamp(kind):
        return EPOCH + timedelta(milliseconds=value)
    return as_decimal(value, kind.scale) if pa.types.is_decimal(kind) else value


def _units(value: int | Decimal | datetime | None, kind: Any) -> Fraction | int | None:  # noqa: ANN401 - an Arrow type
    match value:
        case datetime():
            return (value - EPOCH) // timedelta(milliseconds=1)
        case Decimal():
            return Fraction(value) * int(10**kind.scale)
        case _:
            return value


def decoded(resource: str, canonical: dict[str, Any]) -> Arguments:
    """Arguments of a query as values, from their canonical JSON."""
    kinds = {parameter["name"]: parameter["kind"] for parameter in parameters(resource)}

    def value(name: str, content: Any) -> Any:  # noqa: ANN401 - of the type that the parameter takes
        match kinds[name]:
            case "time":
                return EPOCH + timedelta(milliseconds=content)
            case "amount":
                return Decimal(content)
            case _:
                return content

    return {name: value(name, content) for name, content in canonical.items() if name in kinds}


def arguments(query: Query[Any]) -> Arguments:
    """Arguments of a query as values."""
    stated = json.loads(query._stated())  # noqa: SLF001 - of this package
    return decoded(stated["call"], stated["arguments"])


def encoded(arguments: Arguments) -> list[list[Any]]:
    def tagged(value: Any) -> dict[str, Any]:  # noqa: ANN401 - of the type that the parameter takes
        match value:
            case int():
                return {"integer": str(value)}
            case Decimal():
                return {"decimal": format(value, "f")}
            case datetime():
                return {"time": (value - EPOCH) // timedelta(microseconds=1)}
            case list():
                return {"list": value}
            case _:
                return {"string": value}

    return [[name, tagged(value)] for name, value in arguments.items()]
