"""Calls by their declaration, and selection of logged requests by call and parameters."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from chainframe import ConfigError
from chainframe._native import _declaration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe import Deployment
    from chainframe.testing._types import LoggedRequest

PAGING = {"page": "page", "page_size": "limit", "chain": "chainShortName"}


@cache
def _endpoints() -> dict[str, dict[str, Any]]:
    endpoints: dict[str, dict[str, Any]] = {each["name"]: each for each in json.loads(_declaration())["endpoints"]}
    return endpoints


def endpoint(call: str) -> dict[str, Any]:
    """Return the declaration of a call."""
    if call not in _endpoints():
        raise ConfigError(f"call must be one of {', '.join(_endpoints())}; got {call!r}")
    return _endpoints()[call]


def page_size_max(call: str) -> int | None:
    """Return the maximum number of records in a page; None for lookups by hash."""
    size: int | None = endpoint(call)["page_size_max"]
    return size


def record(call: str) -> str:
    """Return the name of a call's record class."""
    name: str = endpoint(call)["record"]
    return name


def describe(entry: dict[str, Any], deployment: Deployment) -> LoggedRequest:
    """Return a log entry with its parsed query and the name of its call."""
    params: dict[str, str] = {}
    for name, value in parse_qsl(entry["query"], keep_blank_values=True):
        params[name] = f"{params[name]},{value}" if name in params else value
    calls = {
        each["path"].format(main=deployment.main, zone=deployment.zone): name for name, each in _endpoints().items()
    }
    described: LoggedRequest = {**entry, "call": calls.get(entry["path"], ""), "params": params}  # type: ignore[typeddict-item]
    return described


def select(entries: Iterable[LoggedRequest], call: str | None, params: dict[str, Any]) -> list[LoggedRequest]:
    """Return the entries of a call that have all these parameters, by their names in Python or in the API."""
    if call is not None:
        endpoint(call)
    return [entry for entry in entries if call in {None, entry["call"]} and _has(entry, params)]


def _has(entry: LoggedRequest, params: dict[str, Any]) -> bool:
    params_of_call = _endpoints().get(entry["call"], {"params": []})["params"]
    wire = {param["name"]: param["wire"] or param["name"] for param in params_of_call} | PAGING
    sent = entry["params"]
    return all(
        sent.get(wire.get(name, name)) == (None if value is None else str(value)) for name, value in params.items()
    )


def describe_selection(call: str | None, params: dict[str, Any]) -> str:
    """Return the expected request as text, such as `blocks(height=3)`."""
    return f"{call or 'any call'}({', '.join(f'{name}={value!r}' for name, value in params.items())})"
