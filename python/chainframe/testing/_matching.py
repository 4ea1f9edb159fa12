"""Selection of logged requests by call and parameters."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from numbers import Number
from typing import TYPE_CHECKING, Any

from chainframe import ConfigError
from chainframe.testing import _normalize, _requests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe.testing._types import LoggedRequest

# A range of times is sent wider, since the API may leave its ends out.
WIDER = {"at least": timedelta(milliseconds=-1), "at most": timedelta(milliseconds=1)}


def select(entries: Iterable[LoggedRequest], call: str | None, params: dict[str, Any]) -> list[LoggedRequest]:
    """Return the entries of a call that have all these parameters, by their names in Python or in the API.

    Raises `ConfigError` for a parameter that the call does not send: no request could have it. None may be given
    for any parameter of the API.
    """
    calls = list(_requests.endpoints().values()) if call is None else [_requests.endpoint(call)]
    sent = _requests.sent_names(calls)
    for name, value in params.items():
        _reject_value(name, value)
        for param in (param for each in calls for param in each["params"] if param["name"] == name and param["wire"]):
            if value is not None and param["kind"] == "time":
                _wire_time(value, param)
        if name in sent or (value is None and name in _requests.sent_names(_requests.endpoints().values())):
            continue
        hint = "".join(f" (did you mean {close!r}?)" for close in get_close_matches(name, sent, 1))
        raise ConfigError(f"{call or 'no call'} sends no parameter {name!r}{hint}; expected {', '.join(sent)}")
    return [entry for entry in entries if call in {None, entry["call"]} and _has(entry, params)]


def _reject_value(name: str, value: Any) -> None:  # noqa: ANN401 - of a user
    """Raise for a value that no request could have."""
    values = value if isinstance(value, list | tuple) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, str | bytes | Number | datetime | None):
            raise ConfigError(f"{name} must be a value that the call takes; got {each!r}")
        if isinstance(each, datetime) and each.tzinfo is None:
            raise ConfigError(f"{name} must have a time zone; got {each!r}")


def _has(entry: LoggedRequest, params: dict[str, Any]) -> bool:
    call = _requests.endpoints().get(entry["call"], {"params": []})
    wire, sent = _requests.wire_names(call), entry["params"]
    declared = {param["name"]: param for param in call["params"]}
    return all(_is_equal(sent.get(wire.get(name, name)), value, declared.get(name)) for name, value in params.items())


def _is_equal(sent: str | None, value: Any, param: dict[str, Any] | None) -> bool:  # noqa: ANN401 - of a user
    """Return True if that text was sent for a value: of an argument, or of a parameter of the API without `param`."""
    if sent is None or value is None:
        return sent is value
    if param and param["kind"] == "time":
        return sent == _wire_time(value, param)
    if isinstance(value, Number) or (param and param["kind"] in ("amount", "height")):
        try:
            return Decimal(sent) == Decimal(str(value))
        except InvalidOperation:
            return sent == str(value)
    values = value if isinstance(value, list | tuple) else [value]
    return sent == ",".join(map(_text, values))


def _text(value: Any) -> str:  # noqa: ANN401 - of a user
    if isinstance(value, datetime):
        return str((value - _normalize.EPOCH) // timedelta(milliseconds=1))
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def _wire_time(value: Any, param: dict[str, Any]) -> str:  # noqa: ANN401 - an instant of any kind
    """Return the milliseconds that are sent for a time."""
    (bound,) = param["bounds"].values()
    try:
        return _text(_normalize.instant(value) + WIDER[bound])
    except (TypeError, ValueError, ArithmeticError):
        raise ConfigError(f"{param['name']} must be a time with a UTC offset; got {value!r}") from None


def describe_selection(call: str | None, params: dict[str, Any]) -> str:
    """Return the expected request as text, such as `blocks(height=3)`."""
    return f"{call or 'any call'}({', '.join(f'{name}={value!r}' for name, value in params.items())})"
