"""Functions of other libraries that get amounts in another form than the one they ask for.

They take no other form, and each requests columns that suit pandas' own decimals or doubles.
"""

from __future__ import annotations

import sys
from enum import Enum


class Form(Enum):
    """Forms of amounts in a numpy array."""

    DOUBLES = 1
    OBJECTS = 2
    DISTINCT = 3
    """Objects whose differences are 0 or 1."""
    ORDER = 4
    """Integers of the same order."""
    TEXTS = 5
    KEYS = 6
    """Objects, the missing ones among them."""
    SAME = 7
    """Integers of the same value."""
    MERGED = 8
    """The elements as usual. The common dtype of the keys is objects where pandas would shorten exact ones."""
    ROW = 9
    """The elements as usual. The dtype is shown as that of doubles: pandas combines it with that of a new value."""


_CALLERS = {
    # They ask for objects, but work with doubles only: pandas puts the results of `describe` into an Arrow column of
    # doubles, and selects numeric columns by the numpy dtype that they would have; altair writes rows as JSON,
    # holoviews tests the ends of an axis for infinity, and seaborn looks the values up among the doubles it has scaled.
    ("pandas.core.methods.describe", "describe_numeric_1d"): Form.DOUBLES,
    ("pandas.core.frame", "dtype_predicate"): Form.DOUBLES,
    ("pandas.core.frame", "predicate"): Form.DOUBLES,
    ("altair.utils.data", "to_values"): Form.DOUBLES,
    ("holoviews.core.data.pandas", "range"): Form.DOUBLES,
    ("seaborn._base", "__call__"): Form.DOUBLES,
    # They ask for what numpy would make of the column, and compare it or make a column of it again. Doubles of
    # different amounts may be equal, and ranks take objects as equal that differ by less than 1e-13.
    ("pandas.core.indexes.base", "_get_join_target"): Form.OBJECTS,
    ("pandas.core.reshape.reshape", "stack_v3"): Form.OBJECTS,
    ("pandas.core.apply", "series_generator"): Form.OBJECTS,
    ("pandas.core.computation.expressions", "_where_standard"): Form.OBJECTS,
    ("pandas.core.internals.blocks", "where"): Form.OBJECTS,
    ("pandas.core.internals.blocks", "putmask"): Form.OBJECTS,
    ("pandas.core.internals.managers", "where"): Form.OBJECTS,
    ("pandas.core.internals.managers", "putmask"): Form.OBJECTS,
    ("pandas.core.internals.base", "where"): Form.OBJECTS,  # before pandas 3
    ("pandas.core.internals.base", "putmask"): Form.OBJECTS,
    ("pandas.core.indexes.base", "putmask"): Form.OBJECTS,
    ("pandas.core.groupby.generic", "_wrap_applied_output_series"): Form.OBJECTS,
    ("pandas.core.methods.to_dict", "to_dict"): Form.OBJECTS,
    ("pandas.core.frame", "to_records"): Form.OBJECTS,
    # The function passes a mask of the missing values on to a factorizer, whose version for objects takes no mask.
    ("pandas.core.reshape.merge", "_factorize_keys"): Form.KEYS,
    # pandas compares the doubles with the elements. If they differ, it asks for integers, and would make 1 of 1.5.
    ("pandas.core.arrays.numeric", "_coerce_to_data_and_mask"): Form.SAME,
    ("pandas.core.reshape.merge", "_maybe_coerce_merge_keys"): Form.MERGED,
    ("pandas.core.indexing", "_setitem_with_indexer_missing"): Form.ROW,
    ("pandas.core.generic", "ranker"): Form.DISTINCT,
    ("pandas.core.methods.selectn", "compute"): Form.ORDER,
    ("pandas.io.json._json", "write"): Form.TEXTS,
}
# Most calls between a function and a column, decorators included. Functions of users may be between a column and the
# functions that work with doubles, but not between it and the others.
_DEPTH = 14
_NEAR = 6


def form() -> Form | None:
    """Return the form in which a function of the table gets what the caller returns, if one asked for it."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    for depth in range(_DEPTH):
        found = _CALLERS.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if found is Form.DOUBLES or (found is not None and depth < _NEAR):
            return found
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
