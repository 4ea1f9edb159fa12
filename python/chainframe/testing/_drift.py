"""Comparison of recorded responses with those of the service today: members and codes, not values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from chainframe import CassetteError
from chainframe._native import Cassette, _send_recorded
from chainframe._paths import is_there

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chainframe import Client

KINDS = {dict: "object", list: "list", str: "string", bool: "boolean", int: "number", float: "number"}
ERROR = "error"
WARNING = "warning"
INFO = "info"


class Finding(NamedTuple):
    """A difference, its severity, and the path of the requests in which it was found."""

    severity: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.path}: {self.text}"


def compare(file: Path, client: Client) -> list[Finding]:
    """Sends the recorded requests of a cassette again, each once, and returns what differs in their responses.

    Raises `ChainframeError` if a request cannot be sent.
    """
    found: dict[Finding, None] = {}
    requests: set[str] = set()
    for recorded in _interactions(file):
        request = json.dumps([recorded["path"], recorded["params"]], sort_keys=True)
        if recorded["status"] is None or request in requests or recorded["method"] != "GET":
            # A failure has no response; of several responses the first one is compared. Facts of a call are not sent.
            continue
        requests.add(request)
        status, body = _send_recorded(client, recorded["path"], sorted(recorded["params"].items()))
        live = {"status": status, "json": _parse(body)}
        found |= dict.fromkeys(
            Finding(severity, recorded["path"], text) for severity, text in _differences(recorded, live)
        )
    return sorted(found, key=lambda each: ((ERROR, WARNING, INFO).index(each.severity), each))


def _interactions(file: Path) -> Iterator[dict[str, Any]]:
    if not is_there(file):
        raise CassetteError(f"{file} does not exist; record it first")
    # Checks the file, and names the line of what is wrong in it.
    for interaction in Cassette(file, mode="none").interactions:
        body = interaction["body"]
        yield {**interaction, "json": None if body is None else _parse(body)}


def _parse(body: bytes | str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _differences(recorded: dict[str, Any], live: dict[str, Any]) -> Iterator[tuple[str, str]]:
    before = recorded.get("json")
    after = live["json"]
    for name, old, new in [
        ("status", recorded["status"], live["status"]),
        ("code", _code(before), _code(after)),
    ]:
        if old != new:
            yield ERROR, f"{name} was {old} and is {new}"
    old_kinds = _kinds(before)
    new_kinds = _kinds(after)
    for member in sorted(old_kinds.keys() | new_kinds.keys()):
        parent = member.rpartition(".")[0]
        if member.endswith("[]") and not (member in old_kinds and member in new_kinds):
            # A list without items tells nothing about them.
            continue
        if member not in new_kinds:
            # Without an object that could have the member, nothing is known about it.
            if "object" in new_kinds.get(parent, ()):
                yield WARNING, f"{member} is gone"
        elif member not in old_kinds:
            if "object" in old_kinds.get(parent, ()):
                yield INFO, f"{member} is new ({_names(new_kinds[member])})"
        elif old_kinds[member] and not new_kinds[member] <= old_kinds[member]:
            yield ERROR, f"{member} was a {_names(old_kinds[member])} and is a {_names(new_kinds[member])}"


def _code(body: Any) -> str | None:  # noqa: ANN401 - JSON
    return str(body["code"]) if isinstance(body, dict) and "code" in body else None


def _names(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds)) or "null"


def _kinds(body: Any) -> dict[str, set[str]]:  # noqa: ANN401 - JSON
    """Kinds of the values of each member, by its path; null is of every kind."""
    kinds: dict[str, set[str]] = {}

    def walk(path: str, value: Any) -> None:  # noqa: ANN401 - JSON
        seen = kinds.setdefault(path, set())
        if value is not None:
            seen.add(KINDS[type(value)])
        if isinstance(value, dict):
            for name, member in value.items():
                walk(f"{path}.{name}" if path else name, member)
        elif isinstance(value, list):
            for item in value:
                walk(f"{path}[]", item)

    walk("", body)
    return kinds
