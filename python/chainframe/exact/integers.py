"""Arrow decimals as Python integers and back: arithmetic that Arrow lacks or would round."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainframe.errors import NumericOverflowError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Most digits of Arrow's two decimal types. Other libraries read only the first.
NARROW = 38
WIDE = 76


def unscaled(column: pa.ChunkedArray[Any]) -> np.ndarray[Any, Any]:
    """Return the values without their decimal point, as Python integers; zero where a value is missing."""
    words = column.type.byte_width // 8
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(Decimal(0), column.type))
    parts = [np.empty(0, object)]
    for chunk in column.chunks:
        if len(chunk):
            buffer: Any = chunk.buffers()[1]
            limbs = np.frombuffer(buffer, "<u8", words * len(chunk), 8 * words * chunk.offset)
            limbs = limbs.reshape(len(chunk), words)
            values = limbs[:, -1].astype("<i8").astype(object)
            for word in reversed(range(words - 1)):
                values = (values << 64) | limbs[:, word].astype(object)
            parts.append(values)
    return np.concatenate(parts)


def column_of(values: Sequence[int], scale: int, missing: np.ndarray[Any, Any] | None, places: int) -> pa.Array[Any]:
    """Return a column of the values divided by 10^scale, in 38 digits if these hold every value, else in 76.

    The column has `places` decimal places, or as many as the values need.
    """
    kind = _type_of(max(map(abs, values), default=0), scale, places, _needed_places(values, scale))
    shifted = values if kind.scale == scale else [_shift(value, kind.scale - scale) for value in values]
    data = b"".join([value.to_bytes(kind.byte_width, "little", signed=True) for value in shifted])
    validity = None if missing is None or not missing.any() else pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(data)])


def _needed_places(values: Sequence[int], scale: int) -> int:
    """Return the least number of decimal places that hold every value divided by 10^scale."""
    divisor = math.gcd(*values)
    if divisor == 0:
        return 0
    while scale > 0 and divisor % 10 == 0:
        divisor //= 10
        scale -= 1
    return scale


def _type_of(largest: int, scale: int, places: int, needed: int) -> Any:
    """Return the decimal type of a column whose largest value is this one, divided by 10^scale."""
    for target in (max(places, needed), needed):
        if _fits(largest, scale, target, NARROW):
            return pa.decimal128(NARROW, target)
    if _fits(largest, scale, needed, WIDE):
        return pa.decimal256(WIDE, needed)
    raise overflow(_text(largest, scale), WIDE)


def _fits(largest: int, scale: int, places: int, digits: int) -> bool:
    return places <= digits and _shift(largest, places - scale) < 10**digits


def _shift(value: int, places: int) -> int:
    """Return the value times 10^places, which leaves no remainder."""
    factor: int = 10 ** abs(places)
    return value * factor if places >= 0 else value // factor


def parts(value: Decimal) -> tuple[int, int]:
    """Return the digits of a finite number as an integer, and the number of decimal places."""
    sign, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    places = int(exponent)
    return (whole * 10**places, 0) if places >= 0 else (whole, -places)


def shortest(value: Decimal) -> str:
    """Return a finite number in digits, without an exponent or trailing zeros."""
    return _text(*parts(value))


def decimal(value: int, scale: int) -> Decimal:
    """Return the value divided by 10^scale, without trailing zeros and at any number of digits."""
    return Decimal(_text(value, scale))


def texts(values: Sequence[int], scale: int) -> list[str]:
    """Return the values divided by 10^scale in digits, without an exponent or trailing zeros."""
    return [_text(value, scale) for value in values]


def _text(value: int, scale: int) -> str:
    digits = str(abs(value)).zfill(scale + 1)
    whole = digits[: len(digits) - scale]
    places = digits[len(digits) - scale :].rstrip("0")
    return ("-" if value < 0 else "") + whole + ("." + places if places else "")


def doubles(values: Sequence[int], scale: int, missing: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the nearest doubles, which a cast by Arrow is not; NaN where a value is missing."""
    divisor = 10**scale
    found = np.fromiter((value / divisor for value in values), np.float64, len(values))
    found[missing] = np.nan
    return found


def whole(
    column: pa.ChunkedArray[Any], dtype: np.dtype[Any], *, takes_missing: bool, may_cut: bool = True
) -> np.ndarray[Any, Any]:
    """Return the values without decimal places, as numpy's integers; zero where a value is missing."""
    if column.null_count and not takes_missing:
        raise ValueError(f"{dtype} has no missing values; give na_value= to to_numpy, or take .astype('Int64')")
    values = unscaled(column)
    if not may_cut and any(values % 10**column.type.scale):
        raise TypeError(f"amounts with decimal places do not fit {dtype}; round them, or take .astype({dtype.name!r})")
    found = np.abs(values) // 10**column.type.scale * np.sign(values)
    limits = np.iinfo(dtype)
    beyond = [value for value in found if not limits.min <= value <= limits.max]
    if beyond:
        raise NumericOverflowError(f"{beyond[0]} does not fit {dtype}; take .to_numpy(object)", text=str(beyond[0]))
    converted: np.ndarray[Any, Any] = found.astype(dtype)
    return converted


def largest(column: pa.ChunkedArray[Any]) -> int:
    """Return the greatest absolute value without its decimal point; zero if no value is present."""
    bounds: Any = pc.min_max(column)
    return max((abs(parts(each)[0]) for each in bounds.as_py().values() if each is not None), default=0)


def cast(column: pa.ChunkedArray[Any], kind: Any) -> Any:
    """Return decimals as a column of another type; None keeps theirs. Raises if a decimal type cannot hold a value."""
    if kind is None or column.type == kind:
        return column
    if not pa.types.is_decimal(kind):
        return column.cast(kind)
    # Arrow multiplies without regard to overflows, and accepts what remains if it has few enough digits.
    if _shift(largest(column), kind.scale - column.type.scale) >= 10**kind.precision:
        raise _does_not_fit(column, kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise _does_not_fit(column, kind) from None


def _does_not_fit(column: pa.ChunkedArray[Any], kind: Any) -> NumericOverflowError:
    scale = column.type.scale
    text = _text(max(unscaled(column), key=abs), scale)
    rounded = f".round({kind.scale}) it first, or " if scale > kind.scale else ""
    return NumericOverflowError(f"{text} does not fit {kind} exactly; {rounded}use .astype(float)", text=text)


def is_held(value: Decimal, kind: Any) -> bool:
    """True if a column of this decimal type can have the value."""
    number, scale = parts(value)
    shifted = number * 10**kind.scale
    return bool(shifted % 10**scale == 0 and abs(shifted) < 10 ** (kind.precision + scale))


def ratio(numerator: int, denominator: int) -> float:
    """Return the nearest double of a quotient; an infinity or NaN if the denominator is zero, as doubles have it."""
    if denominator:
        return numerator / denominator
    return math.nan if numerator == 0 else math.copysign(math.inf, numerator)


def divide(values: Sequence[int], numerator_scale: int, divisor: int, divisor_scale: int) -> tuple[list[int], int]:
    """Return quotients and their scale: exact where they end, else rounded half to even.

    The scale is that of 38 digits for the largest, or more if one that ends has more places.
    """
    numerators = [value * 10**divisor_scale for value in values]
    divisor *= 10**numerator_scale
    largest = max(map(abs, numerators), default=0)
    scale = max(_rounded_places(largest, abs(divisor)), _exact_places(numerators, divisor))
    return [_half_even(numerator * 10**scale, divisor) for numerator in numerators], scale


def _rounded_places(largest: int, divisor: int) -> int:
    whole = largest // divisor
    places = max(NARROW - (len(str(whole)) if whole else 0), 0)
    # Rounding may add a digit.
    if places and _half_even(largest * 10**places, divisor) >= 10**NARROW:
        places -= 1
    return places


def _exact_places(numerators: Sequence[int], divisor: int) -> int:
    """Return the least number of decimal places of all quotients that end."""
    # A divisor has at most as many factors 2 and 5 as bits: a quotient that ends has no more places.
    places = divisor.bit_length()
    divided = (divmod(numerator * 10**places, divisor) for numerator in numerators)
    return _needed_places([quotient for quotient, remainder in divided if not remainder], places)


def _half_even(numerator: int, denominator: int) -> int:
    if denominator < 0:
        numerator = -numerator
        denominator = -denominator
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    return quotient + (twice > denominator or (twice == denominator and quotient % 2))


def overflow(text: str, digits: int) -> NumericOverflowError:
    return NumericOverflowError(
        f"{text} has more than the {digits} digits of an exact column; "
        "take .astype(float) for the nearest doubles, or .round() fewer decimal places first",
        text=text,
    )
