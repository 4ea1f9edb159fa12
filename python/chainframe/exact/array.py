"""Columns of exact amounts in pandas."""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import pandas_dtype

from chainframe.errors import NumericOverflowError
from chainframe.exact import arithmetic, callers, groups, integers, operands
from chainframe.exact.dtype import ExactDtype
from chainframe.exact.objects import Amount, Distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    class ArrowExtensionArray:
        """The array of pandas over Arrow data; its stubs know no attributes."""

        def __init__(self, values: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

        def __len__(self) -> int: ...

        def __iter__(self) -> Iterator[Any]: ...

        def isin(self, values: Any) -> Any: ...

        def _cmp_method(self, other: Any, op: Any) -> Any: ...

        def __array_ufunc__(self, *operands: Any, **options: Any) -> Any: ...

else:
    ArrowExtensionArray = pd.arrays.ArrowExtensionArray

_UNSET: Any = pd.api.extensions.no_default


class ExactArray(ArrowExtensionArray):
    """pandas array of exact numbers: a column whose dtype is `ExactDtype`."""

    def __new__(cls, values: Any = None) -> Any:
        # pandas wraps Arrow arrays of any type in the class of the operand, and makes views without a value.
        if values is not None and not pa.types.is_decimal(values.type):
            return ArrowExtensionArray(values)
        return super().__new__(cls)

    def __init__(self, values: Any) -> None:  # pyright: ignore[reportInconsistentConstructor]
        super().__init__(values)
        self._dtype = ExactDtype(self._pa_array.type)

    def _from_pyarrow_array(self, pa_array: Any) -> Any:
        return ExactArray(pa_array) if pa.types.is_decimal(pa_array.type) else ArrowExtensionArray(pa_array)

    # Construction

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
        return cls(cls._box_pa_array(scalars, pa_type=getattr(dtype, "pyarrow_dtype", None)))

    @classmethod
    def _from_sequence_of_strings(cls, strings: Any, *, dtype: Any = None, copy: bool = False) -> Any:
        return cls._from_sequence(strings, dtype=dtype)

    @classmethod
    def _box_pa_scalar(cls, value: Any, pa_type: Any = None) -> Any:
        number = operands.scalar(value)
        if number is None:
            return pa.scalar(None, pa_type or pa.decimal128(integers.NARROW, operands.PLACES))
        whole, scale = integers.parts(number)
        boxed = integers.column_of([whole], scale, None, operands.PLACES)
        return integers.cast(pa.chunked_array([boxed]), pa_type)[0]

    @classmethod
    def _box_pa_array(cls, value: Any, pa_type: Any = None, copy: bool = False) -> Any:
        return integers.cast(operands.column(value), pa_type)

    @classmethod
    def _concat_same_type(cls, to_concat: Iterable[Any]) -> Any:
        arrays = [each._pa_array for each in to_concat]
        return cls(pa.chunked_array([chunk for array in arrays for chunk in array.chunks], type=arrays[0].type))

    def isin(self, values: Any) -> Any:
        # Infinities, texts and numbers of more digits are not in the column.
        return super().isin([each for each in values if operands.is_exact(each, self._pa_array.type)])

    # The values in other forms

    def __iter__(self) -> Any:
        return iter(self._objects(None)) if callers.form() is callers.Form.DOUBLES else super().__iter__()

    def isna(self) -> Any:
        return None if callers.form() is callers.Form.KEYS else self._missing()

    def _missing(self) -> Any:
        return operands.missing(self._pa_array)

    def _integers(self) -> Any:
        return integers.unscaled(self._pa_array)

    @property
    def _scale(self) -> int:
        return int(self._pa_array.type.scale)

    def _texts(self) -> list[str]:
        return integers.texts(self._integers(), self._scale)

    def _objects(self, na_value: object) -> Any:
        form = callers.form()
        found = np.empty(len(self), object)
        if form is callers.Form.DOUBLES:
            found[:] = self._doubles()
        else:
            kind = Distinct if form is callers.Form.DISTINCT else Amount
            found[:] = [kind(text) for text in self._texts()]
        found[self._missing()] = na_value
        return found

    def _doubles(self) -> Any:
        return integers.doubles(self._integers(), self._scale, self._missing())

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002 - the protocol's name
        column = self._pa_array
        if column.type.precision > integers.NARROW:
            narrow = arithmetic.result(self._integers(), self._scale, self._missing(), operands.PLACES)
            if narrow.type.precision > integers.NARROW:
                largest = max(self._integers(), key=abs)
                raise integers.overflow(integers.texts([largest], self._scale)[0], integers.NARROW)
            column = pa.chunked_array([narrow])
        return integers.cast(column, type)

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = _UNSET) -> Any:
        """Return the nearest doubles; exact numbers with `dtype=object`, their digits with `dtype=str`."""
        form = callers.form()
        if form is callers.Form.KEYS:
            return self._objects(pd.NA)
        is_same = form is callers.Form.SAME
        form = form if dtype is None else None
        if form is callers.Form.ORDER:
            return self._order()._data
        if form is callers.Form.TEXTS:
            return self._values_for_json()
        if form in _OBJECTS or (dtype is not None and np.dtype(dtype).kind in "OSU"):
            objects = self._objects(pd.NA if na_value is _UNSET else na_value)
            return objects if dtype is None else objects.astype(dtype)
        is_filled = na_value is not _UNSET and not pd.isna(na_value)
        if dtype is not None and np.dtype(dtype).kind in "iu":
            found = integers.whole(self._pa_array, np.dtype(dtype), takes_missing=is_filled, may_cut=not is_same)
        else:
            found = self._doubles()
        if is_filled:
            found[self._missing()] = na_value
        return found if dtype is None else found.astype(dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.to_numpy(dtype)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        dtype = pandas_dtype(dtype)
        arrow = getattr(dtype, "pyarrow_dtype", None)
        if arrow is not None and pa.types.is_decimal(arrow):
            column = integers.cast(self._pa_array, arrow)
            return ExactArray(column) if isinstance(dtype, ExactDtype) else ArrowExtensionArray(column)
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            return self._objects(pd.NA)
        if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
            return self.to_numpy(dtype)
        if dtype.kind == "f" and (arrow is None or pa.types.is_floating(arrow)):
            return pd.array(self._doubles(), dtype=dtype)
        if isinstance(dtype, pd.StringDtype) or dtype.kind in "US":
            found = np.array(self._texts(), object)
            found[self._missing()] = pd.NA
            return pd.array(found, dtype=dtype if isinstance(dtype, pd.StringDtype) else "str")
        return ArrowExtensionArray(self._pa_array).astype(dtype, copy=copy)

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str]:
        return lambda value: "<NA>" if value is pd.NA else integers.shortest(value)

    def _values_for_json(self) -> Any:
        found = np.array(self._texts(), object)
        found[self._missing()] = None
        return found

    def _values_for_factorize(self) -> tuple[Any, Any]:
        return self._objects(pd.NA), pd.NA

    def _hash_pandas_object(self, *, encoding: str, hash_key: str, categorize: bool) -> Any:
        from pandas.util import hash_array  # noqa: PLC0415

        return hash_array(np.array(self._texts(), object), encoding, hash_key, categorize)

    def searchsorted(self, value: Any, side: Any = "left", sorter: Any = None) -> Any:
        is_list = pd.api.types.is_list_like(value)
        number = np.asarray(value, object) if is_list else operands.scalar(value)
        return self._objects(pd.NA).searchsorted(number, side=side, sorter=sorter)

    def map(self, mapper: Any, na_action: Any = None) -> Any:
        # Early versions of pandas map the doubles of numeric Arrow columns.
        base: Any = pd.api.extensions.ExtensionArray
        return base.map(self, mapper, na_action)

    def _cast_pointwise_result(self, values: Any) -> Any:
        # pandas casts decimals in Arrow, where some that the column cannot hold become other numbers.
        untyped: Any = ArrowExtensionArray(pa.nulls(len(values)))
        found = untyped._cast_pointwise_result(values) if len(values) else ExactArray(self._pa_array[:0])
        if not pa.types.is_decimal(getattr(found.dtype, "pyarrow_dtype", pa.null())):
            return found
        try:
            return ExactArray(integers.cast(found._pa_array, self._pa_array.type))
        except NumericOverflowError:
            return ExactArray(found._pa_array)

    def interpolate(self, **options: Any) -> Any:
        return pd.array(self._doubles(), dtype="Float64").interpolate(**options)

    def round(self, decimals: int = 0, *_args: Any, **_options: Any) -> Any:
        return ExactArray(arithmetic.rounded(self._pa_array, decimals))

    # Operators

    def _arith_method(self, other: Any, op: Any) -> Any:
        name = op.__name__.strip("_")
        if operands.is_double(other) or _is_power_of_doubles(name, other):
            with np.errstate(all="ignore"):
                return op(self._doubles(), _as_doubles(other))
        result = arithmetic.apply(name, self._pa_array, self._operand(other, name))
        return tuple(map(_wrapped, result)) if isinstance(result, tuple) else _wrapped(result)

    def _reflected(self, name: str, other: Any) -> Any:
        return getattr(ArrowExtensionArray, name)(self, other)

    def _operand(self, other: Any, name: str) -> Any:
        try:
            if not pd.api.types.is_list_like(other):
                return operands.scalar(other)
            if len(other) != len(self):
                raise ValueError(f"operands of {name} must have one length; got {len(self)} and {len(other)}")
            return operands.column(other)
        except TypeError as error:
            raise TypeError(f"operation {name!r} is not supported: {error}") from None

    def _cmp_method(self, other: Any, op: Any) -> Any:
        if operands.is_double(other):
            right = _as_doubles(other)
            absent = self._missing() | np.isnan(right)
            return ArrowExtensionArray(pa.array(op(self._doubles(), right), mask=absent))
        try:
            right = self._operand(other, op.__name__)
        except TypeError:
            return super()._cmp_method(other, op)
        except NumericOverflowError:
            return ArrowExtensionArray(arithmetic.compare_each(op, self._pa_array, map(operands.scalar, other)))
        return ArrowExtensionArray(arithmetic.compare(op, self._pa_array, right))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(each, pd.Series | pd.Index | pd.DataFrame) for each in inputs):
            return NotImplemented
        if method != "__call__" or ufunc.__name__ in _EXACT_UFUNCS:
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        doubles = [each._doubles() if isinstance(each, ExactArray) else each for each in inputs]
        return ufunc(*doubles, **options)

    # Reductions

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **options: Any) -> Any:
        options.pop("axis", None)
        min_count = options.get("min_count", 0)
        if name in ("argmin", "argmax"):
            return getattr(pd.Series(self._order()), name)(skipna=skipna)
        if name in groups.AGGREGATES:
            found = groups.aggregate(self._pa_array, self._one_group(), name, min_count=min_count, skips=skipna)
            if name in ("min", "max") and callers.form() is callers.Form.DOUBLES:
                return found.doubles()[0]
            if keepdims:
                return ExactArray(found.column(self._pa_array.type.scale))
            return pd.NA if found.absent[0] else integers.decimal(found.totals[0], found.scale)
        if name == "mean":
            value = groups.aggregate(self._pa_array, self._one_group(), "sum", min_count=1, skips=skipna).means()[0]
        elif name in ("any", "all"):
            value = self._flags()._reduce(name, skipna=skipna, **options)
        else:
            value = getattr(pd.Series(self._doubles()), name)(skipna=skipna, **options)
        return pd.array([value], dtype="boolean" if name in ("any", "all") else "Float64") if keepdims else value

    def _one_group(self) -> groups.Groups:
        return groups.Groups([0] * len(self), 1)

    def _flags(self) -> Any:
        return pd.arrays.BooleanArray(self._integers().astype(bool), self._missing())

    def _accumulate(self, name: str, *, skipna: bool = True, **_options: Any) -> Any:
        found = groups.accumulate(self._pa_array, self._one_group(), name, skips=skipna)
        return ExactArray(found.column(self._pa_array.type.scale))

    def _rank(self, *, axis: int = 0, **options: Any) -> Any:
        order: Any = self._order()._data.astype(float)
        order[self._missing()] = np.nan
        ranks: Any = pd.Series(order).rank(**options).to_numpy()
        return pd.arrays.FloatingArray(ranks, np.isnan(ranks))

    def _quantile(self, qs: Any, interpolation: str) -> Any:
        return self._masked_doubles()._quantile(qs, interpolation)

    def _masked_doubles(self) -> Any:
        doubles = self._doubles()
        return pd.arrays.FloatingArray(doubles, np.isnan(doubles))

    def _groupby_op(
        self,
        *,
        how: str,
        has_dropped_na: bool,
        min_count: int,
        ngroups: int,
        ids: Any,
        **options: Any,
    ) -> Any:
        skips = options.get("skipna", True)
        grouping = groups.Groups(ids.tolist(), ngroups)
        if how in groups.CUMULATIVE:
            return ExactArray(
                groups.accumulate(self._pa_array, grouping, how, skips=skips).column(self._pa_array.type.scale)
            )
        if how in groups.AGGREGATES:
            found = groups.aggregate(self._pa_array, grouping, how, min_count=min_count, skips=skips)
            return ExactArray(found.column(self._pa_array.type.scale))
        if how == "mean":
            return groups.aggregate(self._pa_array, grouping, "sum", min_count=max(min_count, 1), skips=skips).means()
        if how in ("any", "all"):
            values = self._flags()
        elif how in ("rank", "idxmin", "idxmax"):
            values = self._order()
        else:
            values = self._masked_doubles()
        found = values._groupby_op(
            how=how, has_dropped_na=has_dropped_na, min_count=min_count, ngroups=ngroups, ids=ids, **options
        )
        return _plain(found)

    def _groupby_quantile(self, **options: Any) -> Any:
        return _plain(self._masked_doubles()._groupby_quantile(**options))

    def _order(self) -> Any:
        """Return integers of the same order, by which doubles of equal value do not become equal."""
        codes = np.unique(self._integers(), return_inverse=True)[1].astype(np.int64)
        return pd.arrays.IntegerArray(codes, self._missing())


ExactDtype.array_type = ExactArray
# Python prefers these to the operator of an operand on the left of the class that is subclassed: integers and decimals
# of Arrow raise where a result may have more than 38 digits.
for _name in ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rdivmod__"):
    setattr(ExactArray, _name, partialmethod(ExactArray._reflected, _name))  # pyright: ignore[reportPrivateUsage]

_OBJECTS = frozenset({callers.Form.OBJECTS, callers.Form.DISTINCT})
# Functions of numpy that pandas turns into operators.
_EXACT_UFUNCS = frozenset(
    {
        "absolute", "add", "equal", "floor_divide", "greater", "greater_equal", "less", "less_equal", "multiply",
        "negative", "not_equal", "positive", "remainder", "subtract", "divide", "true_divide", "divmod", "power",
    }
)  # fmt: skip


def _wrapped(result: Any) -> Any:
    return ExactArray(result) if isinstance(result, pa.Array | pa.ChunkedArray) else result


def _as_doubles(other: Any) -> Any:
    if isinstance(other, ExactArray):
        return other._doubles()  # pyright: ignore[reportPrivateUsage]
    if hasattr(other, "to_numpy"):
        return other.to_numpy(np.float64, na_value=np.nan)
    return np.asarray(other, np.float64) if pd.api.types.is_list_like(other) else float(other)


def _is_power_of_doubles(name: str, other: Any) -> bool:
    if name not in ("pow", "rpow"):
        return False
    number = other if isinstance(other, int | np.integer) else None
    return name == "rpow" or number is None or not 0 <= number <= arithmetic.MAX_POWER


def _plain(found: Any) -> Any:
    """Return a numpy array of doubles in place of pandas' masked ones."""
    return found.to_numpy(np.float64, na_value=np.nan) if isinstance(found, pd.arrays.FloatingArray) else found
