"""Conversion of a user's records, whatever holds them, to the columns that the local service loads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from chainframe import ConfigError, Deployment
from chainframe._checks import MAX_COUNT, short
from chainframe._declared import QUERIED, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_MILLISECONDS = 100_000_000_000
MAX_EXPONENT = 999_999
MAX_NUMBER = 1_024
"""Characters of a number that the extension module reads."""
MISSPELT = 0.85
"""Similarity of a name with that of a field from which on it is taken for a mistake."""


class SourceRow(NamedTuple):
    """A row, and the place it comes from, for messages."""

    source: str
    row: Any


class Columns(NamedTuple):
    """The values of each field, and the place that each row comes from."""

    values: dict[str, list[Any]]
    sources: list[str]


def columns(call: str, rows: Iterable[SourceRow], deployment: Deployment) -> Columns:
    """Return the values of each field of the call's records.

    Fields have their names in Python or in the deployment's API.
    """
    fields = _fields(call)
    names = {wire: name for name, field in fields.items() for wire in field["wire"]}
    names = {wire.format(main=deployment.main, zone=deployment.zone): name for wire, name in names.items()}
    names |= {name: name for name in fields}
    ignored = {QUERIED} - names.keys()
    gathered: dict[str, list[Any]] = {name: [] for name in fields}
    sources: list[str] = []
    for source, row in rows:
        sources.append(source)
        values: dict[str, Any] = dict.fromkeys(fields)
        seen: dict[str, Any] = {}
        members = dict(_members(call, source, row))
        for given, value in members.items():
            if given in ignored or (given not in names and _is_of_vendor(given, members, names, fields)):
                continue
            if given not in names:
                raise ConfigError(f"{call}: {source} has an unknown field {given!r}; expected {', '.join(fields)}")
            name = names[given]
            if name in seen:
                raise ConfigError(f"{call}: {source} has the field {name} twice, as {seen[name]!r} and {given!r}")
            seen[name] = given
            kind = fields[name]["kind"]
            try:
                values[name] = _value(kind, _to_builtin(value))
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
                expected = KINDS[kind][1]
                raise ConfigError(f"{call}: {source}: {name} must be {expected}; got {short(value)}") from None
        for name, value in values.items():
            gathered[name].append(value)
    return Columns(gathered, sources)


def _is_of_vendor(
    given: object, members: Mapping[Any, Any], names: Mapping[str, str], fields: Mapping[str, Any]
) -> bool:
    """Return True for a member that services add to records of the API, False for a misspelt field."""
    is_of_api = any(name in names and name not in fields for name in members)
    return is_of_api and isinstance(given, str) and not get_close_matches(given, names, 1, MISSPELT)


def _members(call: str, source: str, row: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401 - a row of any kind
    if not isinstance(row, Mapping) and callable(getattr(row, "to_dict", None)):
        row = row.to_dict()
    if isinstance(row, Mapping):
        return row.items()
    raise ConfigError(f"{call}: {source} must be a record or a mapping of its fields; got {short(row)}")


@cache
def _fields(call: str) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in record_of(call)["fields"]}


def _to_builtin(value: Any) -> Any:  # noqa: ANN401 - a cell of any library's table
    """Return the value as a Python object."""
    if type(value).__name__ == "datetime64":
        return value
    return value.tolist() if type(value).__module__.partition(".")[0] == "numpy" else value


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401 - of that kind
    if value is None or (value == "" and kind != "string"):
        return None
    return KINDS[kind][0](value)


def _integer(value: Any) -> int:  # noqa: ANN401 - a number of any kind
    exact = Decimal(value)
    if isinstance(value, bool) or exact != exact.to_integral_value():
        raise ValueError
    return int(exact)


def _count(value: Any) -> int:  # noqa: ANN401 - a number of any kind
    number = _integer(value)
    if not 0 <= number <= MAX_COUNT:
        raise ValueError
    return number


def _number(value: Any) -> Decimal:  # noqa: ANN401 - a number of any kind
    if isinstance(value, bool):
        raise TypeError
    # The shortest digits that identify the float, as shown by `repr`.
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > MAX_EXPONENT or len(str(number)) > MAX_NUMBER:
        raise ValueError
    return number


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value).lower()]


def instant(value: Any) -> datetime:  # noqa: ANN401 - an instant of any kind
    if isinstance(value, datetime):
        return _whole_milliseconds(value)
    if isinstance(value, str) and not value.lstrip("-").replace(".", "", 1).isdigit():
        return _whole_milliseconds(datetime.fromisoformat(value))
    number = _integer(value)
    return EPOCH + timedelta(milliseconds=number if abs(number) >= MIN_MILLISECONDS else number * 1_000)


def _whole_milliseconds(value: datetime) -> datetime:
    # A pandas Timestamp has nanoseconds as well.
    if value.utcoffset() is None or value.microsecond % 1_000 or getattr(value, "nanosecond", 0):
        raise ValueError
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - a list of any kind
    # A cell of CSV holds it as JSON.
    items = json.loads(value) if isinstance(value, str) else value
    if isinstance(items, str | Mapping):
        raise TypeError
    return [_text(item) for item in items]


KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "integer": (_count, "an integer from 0 to 2^63-1"),
    "raw integer": (_integer, "an integer"),
    "time": (instant, "a time to the millisecond with a UTC offset"),
    "boolean": (_flag, "true or false"),
    "amount": (_number, "a number"),
    "estimate": (_number, "a number"),
    "string": (_text, "a string"),
    "list of strings": (_texts, "a list of strings"),
}
"""Conversion to the values of each kind, and their description."""
