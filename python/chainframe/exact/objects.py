"""Amounts as Python objects, in columns of objects and for functions that take no other form."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any


class Amount(Decimal):
    """A number among Python objects, whose text is its digits: SQLite and CSV would have an error and `0E-18`."""

    def __str__(self) -> str:
        return format(self, "f")

    def __repr__(self) -> str:
        return f"Decimal('{self}')"

    def __conform__(self, _protocol: object) -> str:
        return str(self)

    def __int__(self) -> int:
        # pandas makes Arrow integers of objects, as which Arrow takes 1.5 for 1. It raises for what is no integer.
        caller = sys._getframe(1).f_globals.get("__name__")  # pyright: ignore[reportPrivateUsage]
        if caller == "pandas.core.arrays.arrow.array" and self != self.to_integral_value():
            raise TypeError(f"{self} is no integer; round it, or take .astype(int) of the exact column")
        return super().__int__()

    def __reduce__(self) -> Any:
        return Decimal, (str(self),)


class Distinct(Amount):
    """A number whose difference to another is 0 or 1, for ranks."""

    def __sub__(self, other: object) -> Any:
        return int(self != other)

    def __rsub__(self, other: object) -> Any:
        return int(self != other)
