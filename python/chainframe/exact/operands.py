"""Operands of exact columns: what pandas passes as the other side of an operator, or as a value to set."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from chainframe._checks import short
from chainframe.exact import integers

# Decimal places of the API's amounts, which results keep unless they need more.
PLACES = 18


def is_double(value: Any) -> bool:
    """True if an operation with the value is one of doubles."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None and not isinstance(value, np.generic):
        arrow = getattr(getattr(value, "dtype", None), "pyarrow_dtype", None)
        return bool(kind == "f" and (arrow is None or pa.types.is_floating(arrow)))
    if isinstance(value, list | tuple):
        return any(isinstance(each, float | np.floating) and each == each for each in value)  # noqa: PLR0124 - NaN
    return isinstance(value, float | np.floating) and not np.isnan(value)


def scalar(value: Any) -> Decimal | None:
    """Return an exact number, or `None` for a missing value. A double is its shortest decimal, as it is printed."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    number = _decimal(value)
    if number is None or number.is_nan():
        return None
    if number.is_infinite():
        raise TypeError(f"an exact column takes finite numbers; got {number}; use .astype(float)")
    return number


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Decimal(int(value))
    if isinstance(value, str):
        try:
            return Decimal(value) if value else None
        except ArithmeticError:
            pass  # refused below
    raise TypeError(f"an exact column takes numbers; got {short(value)} of type {type(value).__name__}")


def is_exact(value: Any, kind: Any) -> bool:
    """True if a column of this decimal type can have the value, or the value is missing."""
    try:
        number = scalar(value)
    except TypeError:
        return False
    return number is None or integers.is_held(number, kind)


def column(values: Any) -> pa.ChunkedArray[Any]:
    """Return a sequence of numbers as Arrow decimals."""
    array = getattr(values, "_pa_array", values)
    if isinstance(array, pa.Array):
        array = pa.chunked_array([array])
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_decimal(array.type):
            return array
        if pa.types.is_null(array.type):
            return array.cast(pa.decimal128(integers.NARROW, PLACES))
        array = np.array(array.to_pylist(), dtype=object)
    numbers_ = [scalar(each) for each in (array.astype(object) if hasattr(array, "astype") else array)]
    split = [(0, 0) if each is None else integers.parts(each) for each in numbers_]
    scale = max((places for _, places in split), default=0)
    missing = np.array([each is None for each in numbers_], dtype=bool)
    whole = [value * 10 ** (scale - places) for value, places in split]
    return pa.chunked_array([integers.column_of(whole, scale, missing, PLACES)])


def missing(values: pa.ChunkedArray[Any]) -> np.ndarray[Any, Any]:
    if not values.null_count:
        return np.zeros(len(values), bool)
    return np.asarray(values.is_null().to_numpy())
