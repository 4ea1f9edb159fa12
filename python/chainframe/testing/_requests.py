"""Selection of logged requests by call and parameters."""

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
    from chainframe.testing import LoggedRequest

PAGING = {"page": "page", "page_size": "limit", "chain": "chainShortName"}


@cache
def _endpoints() -> dict[str, dict[str, Any]]:
    endpoints: dict[str, dict[str, Any]] = {each["name"]: each for each in json.loads(_declaration())["endpoints"]}
    return endpoints


def page_size_max(call: str) -> int | None:
    """Most records in a page; None for look-ups."""
    size: int | None = _endpoints()[call]["page_size_max"]
    return size


def record(call: str) -> str:
    """Name of the record class of a call."""
    name: str = _endpoints()[call]["record"]
    return name


def describe(entry: dict[str, Any], deployment: Deployment) -> LoggedRequest:
    """A log entry with its query parsed and its call named."""
    params: dict[str, str] = {}
    for name, value in parse_qsl(entry["query"], keep_blank_values=True):
        params[name] = f"{params[name]},{value}" if name in params else value
    calls = {
        each["path"].format(main=deployment.main, zone=deployment.zone): name for name, each in _endpoints().items()
    }
    described: LoggedRequest = {**entry, "call": calls.get(entry["path"], ""), "params": params}  # type: ignore[typeddict-item]
    return described


def select(entries: Iterable[LoggedRequest], call: str | None, params: dict[str, Any]) -> list[LoggedRequest]:
    """The entries of a call that have all these parameters, by their names in Python or in the API."""
    if call is not None and call not in _endpoints():
        raise ConfigError(f"call must be one of {', '.join(_endpoints())}; got {call!r}")
    return [entry for entry in entries if call in {None, entry["call"]} and _has(entry, params)]


def _has(entry: LoggedRequest, params: dict[str, Any]) -> bool:
    endpoint = _endpoints().get(entry["call"], {"params": []})
    wire = {param["name"]: param["wire"] or param["name"] for param in endpoint["params"]} | PAGING
    sent = entry["params"]
    return all(
        sent.get(wire.get(name, name)) == (None if value is None else str(value)) for name, value in params.items()
    )


def describe_selection(call: str | None, params: dict[str, Any]) -> str:
    """The request that was looked for, such as `blocks(height=3)`."""
    return f"{call or 'any call'}({', '.join(f'{name}={value!r}' for name, value in params.items())})"
