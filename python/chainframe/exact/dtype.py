"""The dtype of exact amounts in pandas."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from chainframe.exact import callers
from chainframe.exact.integers import NARROW, WIDE
from chainframe.exact.operands import PLACES


class ExactDtype(pd.ArrowDtype):
    """pandas dtype of exact decimal numbers, stored as Arrow decimals of 38 digits, 18 of them decimal places.

    The default of amounts in `to_pandas()`. Sums, differences, products, cumulative sums and quotients by a number that
    end are exact at any number of digits up to 76; beyond, they raise `NumericOverflowError`. Functions of doubles,
    such as quantiles, logarithms and charts, take the nearest doubles. A column with more than 38 digits raises when it
    leaves pandas.

    Examples
    --------
    >>> from chainframe.exact import ExactDtype
    >>> frame = pd.read_csv("amounts.csv", dtype={"amount": ExactDtype()})
    """

    array_type: ClassVar[type[Any]]
    """The array of this dtype, whose module imports this one and sets it."""

    def __init__(self, pyarrow_dtype: Any = None) -> None:
        super().__init__(pa.decimal128(NARROW, PLACES) if pyarrow_dtype is None else pyarrow_dtype)

    @property
    def numpy_dtype(self) -> Any:
        is_double = callers.form() in (callers.Form.DOUBLES, callers.Form.ROW)
        return np.dtype(float) if is_double else np.dtype(object)

    @property
    def kind(self) -> Any:
        """That of doubles for charts, which ask if a column is continuous; pandas itself would join by doubles."""
        return self.numpy_dtype.kind if _is_asked_by_pandas() else "f"

    @property
    def dtype(self) -> Any:
        """The dtype that numpy takes for this one, as that of its arrays. pandas asks arrays for theirs."""
        if _is_asked_by_pandas():
            raise AttributeError("dtype")
        return np.dtype(float)

    @classmethod
    # An instance's method in pandas 3.
    def construct_array_type(cls) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return cls.array_type

    @classmethod
    def construct_from_string(cls, string: str) -> Any:
        # Column metadata of Parquet files has the name of the Arrow type, which must keep meaning pandas' own dtype.
        raise TypeError(f"{string!r} is not a name of {cls.__name__}; pass {cls.__name__}()")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == self.name
        return isinstance(other, ExactDtype) and self.pyarrow_dtype == other.pyarrow_dtype

    def __hash__(self) -> int:
        return hash(self.name)

    def _get_common_dtype(self, dtypes: list[Any]) -> Any:
        if callers.form() is callers.Form.MERGED and any(map(_shortens_keys, dtypes)):
            return None
        scale = whole = 0
        for dtype in dtypes:
            arrow = getattr(dtype, "pyarrow_dtype", None)
            if arrow is not None and pa.types.is_decimal(arrow):
                scale = max(scale, arrow.scale)
                whole = max(whole, arrow.precision - arrow.scale)
            elif getattr(dtype, "kind", None) in ("i", "u") or (arrow is not None and pa.types.is_integer(arrow)):
                whole = max(whole, 20)  # digits of the largest 64-bit integer
            elif getattr(dtype, "kind", None) == "f":
                continue  # of which missing values may be all there is; others are taken as they are printed
            elif arrow is None or not pa.types.is_null(arrow):
                return None
        width = whole + scale
        return ExactDtype(pa.decimal128(NARROW, scale) if width <= NARROW else pa.decimal256(WIDE, scale))


# pandas before 3.1 writes the keys of the right frame into a nullable column of the left one, 1.5 as 1 among integers.
_WRITES_KEYS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)


def _shortens_keys(dtype: Any) -> bool:
    """Return whether exact keys of a merge would be written into a column of this dtype, without their last digits."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if arrow is None:
        return _WRITES_KEYS and isinstance(dtype, pd.api.extensions.ExtensionDtype)
    return pa.types.is_floating(arrow) or (_WRITES_KEYS and not pa.types.is_decimal(arrow))


def _is_asked_by_pandas() -> bool:
    caller = sys._getframe(2).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
    return bool(caller.startswith("pandas."))
