"""Filters of Spark as expressions of pyarrow."""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def all_of(terms: Iterable[pc.Expression | None]) -> pc.Expression | None:
    given = [term for term in terms if term is not None]
    return reduce(operator.and_, given) if given else None


def translated(filter_: spark.Filter, schema: pa.Schema, *, exact: bool) -> pc.Expression | None:
    """The filter as an expression that is true for the same records, or `None`.

    Without `exact`, amounts are compared as other numbers than the API's, so that filters on them are not translated.
    """
    if isinstance(filter_, spark.Not):
        inner = translated(filter_.child, schema, exact=exact)
        return None if inner is None else ~inner
    name, *nested = getattr(filter_, "attribute", ("",))
    value = getattr(filter_, "value", None)
    if nested or name not in schema.names:
        return None
    kind = schema.field(name).type
    # Doubles that are not numbers are equal in Spark.
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and not exact):
        return None
    try:
        return _comparison(filter_, pc.field(name), value, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # The column has no such value.
        return None


_COMPARISONS: dict[type[spark.Filter], Callable[[Any, Any], Any]] = {
    spark.EqualTo: operator.eq,
    spark.GreaterThan: operator.gt,
    spark.GreaterThanOrEqual: operator.ge,
    spark.LessThan: operator.lt,
    spark.LessThanOrEqual: operator.le,
}


def _comparison(filter_: spark.Filter, field: pc.Expression, value: Any, kind: pa.DataType) -> pc.Expression | None:  # noqa: ANN401
    expression: Any
    if compare := _COMPARISONS.get(type(filter_)):
        expression = compare(field, _scalar(value, kind))
    else:
        match filter_:
            case spark.EqualNullSafe() if value is not None:
                expression = field.is_valid() & operator.eq(field, _scalar(value, kind))
            case spark.EqualNullSafe() | spark.IsNull():
                expression = field.is_null()
            case spark.IsNotNull():
                expression = field.is_valid()
            case spark.In():
                # Null for a null, unlike `isin` alone.
                expression = pc.if_else(
                    field.is_valid(), field.isin([_scalar(item, kind) for item in value or ()]), None
                )
            case _:
                expression = None
    checked: pc.Expression | None = expression
    return checked


def _scalar(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - an Arrow scalar
    """The value in the column's type, with the resolution of a time in Spark."""
    if pa.types.is_timestamp(kind):
        if not isinstance(value, datetime):
            raise TypeError
        return pa.scalar(value if value.tzinfo else value.replace(tzinfo=UTC), pa.timestamp("us", "UTC"))
    if value is None or (pa.types.is_decimal(kind) and not isinstance(value, (int, Decimal))):
        raise TypeError
    return pa.scalar(value, kind)
