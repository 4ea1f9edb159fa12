"""Operators on exact columns: in Arrow where its types hold the result, else in Python's integers."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainframe.errors import NumericOverflowError
from chainframe.exact import integers, operands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ARROW = {"add": pc.add, "sub": pc.subtract, "mul": pc.multiply}
_COMPARISONS = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}
# pandas' names of operators whose operands are exchanged.
_REVERSED = {"r" + name: name for name in (*_INTEGERS, "truediv", "divmod", "pow")}
# Powers beyond this one have more digits than any column.
MAX_POWER = 76


def apply(name: str, column: pa.ChunkedArray[Any], other: Any) -> Any:
    """Return Arrow decimals, two of them for `divmod`; doubles for a quotient by a column."""
    if name in ("divmod", "rdivmod"):
        prefix = name.removesuffix("divmod")
        return apply(prefix + "floordiv", column, other), apply(prefix + "mod", column, other)
    if other is None:
        return pa.nulls(len(column), column.type)
    if name == "pow":
        return _power(column, int(other))
    if name in _REVERSED:
        return _operate(_REVERSED[name], other, column)
    return _operate(name, column, other)


def _operate(name: str, left: Any, right: Any) -> Any:
    if name == "truediv":
        return _quotient(left, right)
    if name in _ARROW:
        try:
            return _in_arrow(_ARROW[name], left, right)
        except ValueError:
            pass  # an operand or a result of more digits than Arrow's types allow for, though perhaps not than needed
    return _in_integers(name, left, right)


def _in_arrow(function: Any, left: Any, right: Any) -> pa.ChunkedArray[Any]:
    places = max(map(_places, (left, right)))
    found: pa.ChunkedArray[Any] = function(_tight(left), _tight(right))
    return found.cast(pa.decimal128(integers.NARROW, places))


def _places(operand: Any) -> int:
    return operand.type.scale if isinstance(operand, pa.ChunkedArray) else operands.PLACES


def _tight(operand: Any) -> Any:
    """Return the operand in the fewest digits, by which Arrow counts those of the result."""
    if isinstance(operand, Decimal):
        whole, scale = integers.parts(operand)
        digits = max(len(str(abs(whole))), scale, 1)
        return pa.scalar(operand, pa.decimal256(digits, scale))
    scale = operand.type.scale
    digits = max(len(str(integers.largest(operand))), scale, 1)
    return operand.cast(pa.decimal256(digits, scale))


def _in_integers(operation: str, left: Any, right: Any) -> pa.Array[Any]:
    a, a_scale = _unscaled(left)
    b, b_scale = _unscaled(right)
    scale = max(a_scale, b_scale)
    if operation == "mul":
        scale = a_scale + b_scale
    else:
        a = a * 10 ** (scale - a_scale)
        b = b * 10 ** (scale - b_scale)
    absent = _missing(left, right)
    if operation in ("floordiv", "mod"):
        b = _divisor(b, absent)
    found = _INTEGERS[operation](a, b)
    if operation == "floordiv":
        scale = 0
    return result(found, scale, absent, max(map(_places, (left, right))))


def _unscaled(operand: Any) -> tuple[Any, int]:
    if isinstance(operand, Decimal):
        return integers.parts(operand)
    return integers.unscaled(operand), operand.type.scale


def _missing(*sides: Any) -> np.ndarray[Any, Any]:
    flags = [operands.missing(side) for side in sides if isinstance(side, pa.ChunkedArray)]
    return np.asarray(np.logical_or.reduce(flags), bool)


def _divisor(divisor: Any, absent: np.ndarray[Any, Any]) -> Any:
    if isinstance(divisor, np.ndarray):
        divisor = np.where(absent, 1, divisor)
    if not np.all(divisor):
        raise ZeroDivisionError("division of an exact column by zero; use .astype(float) for infinities")
    return divisor


def _quotient(left: Any, right: Any) -> Any:
    absent = _missing(left, right)
    a, a_scale = _unscaled(left)
    b, b_scale = _unscaled(right)
    if isinstance(right, Decimal):
        quotients, scale = integers.divide(a, a_scale, _divisor(b, absent), b_scale)
        return result(quotients, scale, absent, operands.PLACES)
    a = a * 10**b_scale
    b = b * 10**a_scale
    pairs = zip(np.broadcast_to(np.asarray(a, object), b.shape), b, strict=True)
    found = np.fromiter((integers.ratio(x, y) for x, y in pairs), np.float64, len(b))
    found[absent] = np.nan
    return found


def _power(column: pa.ChunkedArray[Any], exponent: int) -> pa.Array[Any]:
    found = integers.unscaled(column) ** exponent
    return result(found, column.type.scale * exponent, operands.missing(column), operands.PLACES)


def rounded(column: pa.ChunkedArray[Any], places: int) -> Any:
    """Return the values rounded half to even, in a wider type if one of them gets a digit more than the column has."""
    scale = column.type.scale
    if integers.largest(column) + 10 ** max(scale - places, 0) > 10**integers.WIDE:
        raise NumericOverflowError(f"rounding to {places} places needs more than {integers.WIDE} digits")
    # In a type without room for that digit, Arrow raises or returns zero.
    found = pc.round(column.cast(pa.decimal256(integers.WIDE, scale)), ndigits=places)
    try:
        return integers.cast(found, column.type)
    except NumericOverflowError:
        return found


def result(values: Any, scale: int, absent: np.ndarray[Any, Any], places: int) -> pa.Array[Any]:
    """Return the values as a column; missing ones may be any number."""
    kept = [0 if gap else value for gap, value in zip(absent, values, strict=True)] if absent.any() else list(values)
    return integers.column_of(kept, scale, absent, places)


def compare(op: Any, left: pa.ChunkedArray[Any], right: Any) -> Any:
    """Return flags, missing where a side is."""
    if right is None:
        return pa.nulls(len(left), pa.bool_())
    try:
        return _COMPARISONS[op.__name__](left, _tight(right))
    except (ValueError, pa.ArrowNotImplementedError):
        a, a_scale = _unscaled(left)
        b, b_scale = _unscaled(right)
        scale = max(a_scale, b_scale)
        flags = op(a * 10 ** (scale - a_scale), b * 10 ** (scale - b_scale))
        return pa.array(np.asarray(flags, bool), mask=_missing(left, right))


def compare_each(op: Any, left: pa.ChunkedArray[Any], right: Iterable[Decimal | None]) -> pa.Array[Any]:
    """Return flags of a comparison with numbers that no column holds, missing where a side is."""
    pairs = zip(left.to_pylist(), right, strict=True)
    flags = [None if own is None or other is None else op(own, other) for own, other in pairs]
    return pa.array(flags, pa.bool_())
