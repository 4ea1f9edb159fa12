"""Kinds of the members of a manifest. It may have been edited, or written by someone else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chainframe import _native
from chainframe._declared import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = re.compile("[0-9a-f]{1,16}")
SHA256 = re.compile("[0-9a-f]{64}")
# Columns of heights are int64.
MAX_HEIGHT = 2**63 - 1


def is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def is_height(value: object) -> bool:
    return value is None or (type(value) is int and abs(value) <= MAX_HEIGHT)


def is_report(value: object) -> bool:
    """True for the members of a report, of an export that has written something."""
    try:
        _native._restore_report(value)  # type: ignore[arg-type]  # noqa: SLF001 - of this package
    except (ValueError, TypeError, KeyError, OverflowError):
        return False
    return True


def is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_query(value: Any) -> bool:  # noqa: ANN401 - JSON
    if not (
        isinstance(value, dict) and isinstance(value.get("arguments"), dict) and isinstance(value.get("chain"), str)
    ):
        return False
    max_items = value.get("max_items")
    return value.get("call") in ENDPOINTS and (max_items is None or is_count(max_items))


def _is_link(value: Any) -> bool:  # noqa: ANN401 - JSON
    if value is None:
        return True
    is_right = _is_texts(value) and value.keys() == {"path", "sha256"} and "\0" not in value["path"]
    return is_right and SHA256.fullmatch(value["sha256"]) is not None


def _is_list_of(*kinds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_right(value: object) -> bool:
        if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == len(kinds) for row in value):
            return False
        # By columns, which takes a third of the time that the items of one row after another take.
        return all(all(map(is_kind, column)) for is_kind, column in zip(kinds, zip(*value, strict=True), strict=False))

    return is_right


def _is_key(value: object) -> bool:
    return isinstance(value, str) and KEY.fullmatch(value) is not None


_is_watermark = _is_list_of(_is_key, is_height)
_is_absent = _is_list_of(_is_key, is_height, is_flag)
KINDS: dict[str, Callable[[Any], bool]] = {
    "query": _is_query,
    "numbers": lambda value: value in ("decimal", "float", "string"),
    "schema": _is_texts,
    "has_all_columns": is_flag,
    "since": _is_link,
    "since_watermark": lambda value: value is None or _is_watermark(value),
    "since_absent": _is_absent,
    "watermark": _is_watermark,
    "absent": _is_absent,
    "cursor": lambda value: value is None or isinstance(value, (dict, _native._Positions)),  # noqa: SLF001
    "finished": is_flag,
    "complete": is_flag,
    "report": lambda value: value == {} or is_report(value),
    "revision": is_count,
}
"""Test of each member but the parts, which test themselves."""
