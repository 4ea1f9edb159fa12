"""Values that callers give, and the checks before anything is done with them."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COUNT = 2**63 - 1
"""Greatest count that Arrow and Parquet hold."""
MAX_SHOWN = 80
"""Characters of a value in a message."""


def check_count(value: object, parameter: str, maximum: int = MAX_COUNT) -> None:
    """Raises `InvalidParameterError` for anything but an integer from 1 to `maximum`."""
    # Integers of numpy are accepted as well.
    count = 0 if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if not 1 <= count <= maximum:
        limit = "2^63-1" if maximum == MAX_COUNT else maximum
        raise InvalidParameterError(f"must be an integer from 1 to {limit}; got {short(value)}", parameter=parameter)


def check_seed(value: object, parameter: str) -> None:
    """Raises `InvalidParameterError` for anything but an integer or None."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise InvalidParameterError(f"must be an integer or None; got {short(value)}", parameter=parameter)


def check_choice(value: object, allowed: Sequence[str], parameter: str) -> None:
    """Raises `InvalidParameterError` for anything but one of some texts."""
    # A column of pandas or polars has no single result of `==`.
    if not isinstance(value, str) or value not in allowed:
        raise InvalidParameterError(f"must be one of {', '.join(allowed)}; got {short(value)}", parameter=parameter)


def short(value: object) -> str:
    """Return the beginning of the first line of the `repr` of a value."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - of a class of others
        # Python does not convert very long numbers to digits.
        return "a number of too many digits" if isinstance(value, Integral) else "a value without a repr"
    line = shown.split("\n", 1)[0]
    return line if line == shown and len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"
