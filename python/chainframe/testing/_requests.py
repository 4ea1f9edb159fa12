"""Calls by their declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from chainframe import ConfigError
from chainframe._checks import short
from chainframe._declared import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe import Deployment
    from chainframe.testing._types import LoggedRequest

PAGING = {"page": "page", "page_size": "limit", "chain": "chainShortName"}
COUNTS = ("page", "page_size")


def endpoint(call: str) -> dict[str, Any]:
    """Return the declaration of a call."""
    if call not in list(ENDPOINTS):
        raise ConfigError(f"call must be one of {', '.join(ENDPOINTS)}; got {short(call)}")
    return ENDPOINTS[call]


def describe(entry: dict[str, Any], deployment: Deployment) -> LoggedRequest:
    """Return a log entry with its parsed query and the name of its call."""
    params: dict[str, str] = {}
    for name, value in parse_qsl(entry["query"], keep_blank_values=True):
        params[name] = f"{params[name]},{value}" if name in params else value
    calls = {each["path"].format(main=deployment.main, zone=deployment.zone): name for name, each in ENDPOINTS.items()}
    described: LoggedRequest = {**entry, "call": calls.get(entry["path"], ""), "params": params}  # type: ignore[typeddict-item]
    return described


def sent_names(calls: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names in Python and in the API of the parameters that any of the calls sends."""
    names = (name for call in calls for pair in wire_names(call).items() for name in pair)
    return list(dict.fromkeys(names))


def wire_names(call: dict[str, Any]) -> dict[str, str]:
    """Return the names in the API of the parameters that a call sends, by their names in Python."""
    paging = PAGING if call.get("page_size_max") or not call["params"] else {"chain": PAGING["chain"]}
    return {param["name"]: param["wire"] for param in call["params"] if param["wire"]} | paging
