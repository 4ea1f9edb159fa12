"""Functions of other libraries that ask for Python objects and can use doubles only."""

from __future__ import annotations

import sys

# Module and function. Each has no other seam: pandas puts the results of `describe` into an Arrow column of doubles,
# and selects numeric columns by the numpy dtype that they would have; altair writes rows as JSON, holoviews tests the
# ends of an axis for infinity, and seaborn looks the values up among the doubles that it has scaled.
_CALLERS = {
    ("pandas.core.methods.describe", "describe_numeric_1d"),
    ("pandas.core.frame", "dtype_predicate"),
    ("pandas.core.frame", "predicate"),
    ("altair.utils.data", "to_values"),
    ("holoviews.core.data.pandas", "range"),
    ("seaborn._base", "__call__"),
}
# Calls in pandas between them and a column, its decorators included.
_DEPTH = 14


def need_doubles() -> bool:
    """True if one of these functions is about to receive what the caller returns."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    for _ in range(_DEPTH):
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _CALLERS:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
