"""Selection of logged requests by call and parameters."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any

from chainframe import ConfigError, InvalidParameterError
from chainframe._checks import short
from chainframe._declared import ENDPOINTS
from chainframe._native import _sent_value
from chainframe.testing import _normalize, _requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chainframe.testing._types import LoggedRequest

OTHER = ""
"""Call of a logged request that no call sends."""


def select(entries: Iterable[LoggedRequest], call: str | None, params: dict[str, Any]) -> list[LoggedRequest]:
    """Return the entries of a call that have all these parameters, by their names in Python or in the API.

    Raises `ConfigError` for a parameter that the call does not send, and for a value that it does not take: no request
    could have it. None may be given for any parameter of the API.
    """
    calls = list(ENDPOINTS.values()) if call is None else [_requests.endpoint(call)]
    sent = _requests.sent_names(calls)
    known = _requests.sent_names(ENDPOINTS.values())
    for name, value in params.items():
        if name in sent or (value is None and name in known):
            continue
        hint = "".join(f" (did you mean {close!r}?)" for close in get_close_matches(name, sent, 1))
        lacking = f"{call} sends no parameter" if call else "no call sends a parameter"
        raise ConfigError(f"{lacking} {name!r}{hint}; expected {', '.join(sent)}")
    wanted: dict[str, dict[str, object]] = {} if call else {OTHER: dict(params)}
    problems: list[str] = []
    for each in calls:
        if call is None and any(name not in _requests.sent_names([each]) for name in params):
            continue
        try:
            wanted[each["name"]] = _as_sent(each, params)
        except (ConfigError, InvalidParameterError) as error:
            # Another call may take the value.
            problems.append(str(error))
    if problems and not wanted.keys() - {OTHER}:
        raise ConfigError(problems[0])
    return [entry for entry in entries if _has(entry["params"], wanted.get(entry["call"]))]


def _as_sent(call: dict[str, Any], params: Mapping[str, Any]) -> dict[str, object]:
    """Return the values by their names in the API: a text as it is sent, another value, or None."""
    kinds = {param["name"]: param["kind"] for param in call["params"] if param["wire"]}
    wire = _requests.wire_names(call)
    values = {}
    for name, value in params.items():
        if name not in kinds or value is None:
            values[wire.get(name, name)] = _checked(name, value)
            continue
        text = _sent_value(call["name"], name, value)
        values[wire[name]] = Decimal(text) if kinds[name] == "amount" else text
    return values


def _checked(name: str, value: Any) -> object:  # noqa: ANN401 - of a user
    """Return a value of a parameter of the API; raise if no request could have it."""
    if name in _requests.COUNTS and value is not None and (type(value) is not int or value < 1):
        raise ConfigError(f"{name} must be an integer of at least 1; got {short(value)}")
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, bool) or not isinstance(each, str | bytes | Real | Decimal | datetime | None):
            raise ConfigError(f"{name} must be a value that the call takes; got {short(each)}")
        if isinstance(each, datetime) and each.tzinfo is None:
            raise ConfigError(f"{name} must have a time zone; got {short(each)}")
        if isinstance(each, Real | Decimal) and not math.isfinite(each):
            raise ConfigError(f"{name} must be a finite number; got {short(each)}")
    return value


def _has(sent: Mapping[str, str], wanted: Mapping[str, object] | None) -> bool:
    return wanted is not None and all(_is_equal(name, sent.get(name), value) for name, value in wanted.items())


def _is_equal(name: str, sent: str | None, value: object) -> bool:
    """Return True if that text was sent for a value of a parameter."""
    if sent is None or value is None:
        return sent is value
    if isinstance(value, Real | Decimal):
        try:
            return Decimal(sent) == Decimal(str(value))
        except InvalidOperation:
            return False
    values = value if isinstance(value, list | tuple) else [value]
    return _in_one_case(name, sent) == _in_one_case(name, ",".join(map(_text, values)))


def _in_one_case(name: str, text: str) -> str:
    """Return names of chains, and hexadecimal addresses and hashes, in lower case: they mean the same in either."""
    return text.lower() if name == _requests.PAGING["chain"] or text[:2].lower() == "0x" else text


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return str((value - _normalize.EPOCH) // timedelta(milliseconds=1))
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def describe_selection(call: str | None, params: dict[str, Any]) -> str:
    """Return the expected request as text, such as `blocks(height=3)`."""
    return f"{call or 'any call'}({', '.join(f'{name}={value!r}' for name, value in params.items())})"
