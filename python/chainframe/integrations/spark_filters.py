"""Filters of Spark as expressions of pyarrow, which narrow a query as those of a dataset do."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

from chainframe.datasets.scanner import BATCH_SIZE, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe import Query


def narrowed(query: Query[Any], filters: Iterable[spark.Filter], *, exact: bool) -> list[Query[Any]]:
    """Queries that together return all records that the filters can accept.

    Without `exact`, amounts are compared as other numbers than the API's, so that filters on them narrow nothing.
    """
    exporter: Any = query
    schema = pa.schema(exporter)
    terms = [term for each in filters if (term := _expression(each, schema, exact=exact)) is not None]
    if not terms:
        return [query]
    return Scanner(query, None, reduce(and_, terms), BATCH_SIZE).queries()


def _expression(filter_: spark.Filter, schema: pa.Schema, *, exact: bool) -> pc.Expression | None:
    if isinstance(filter_, spark.Not):
        inner = _expression(filter_.child, schema, exact=exact)
        return None if inner is None else ~inner
    (name, *nested), value = getattr(filter_, "attribute", ("",)), getattr(filter_, "value", None)
    if nested or name not in schema.names:
        return None
    kind = schema.field(name).type
    if not exact and (pa.types.is_decimal(kind) or pa.types.is_floating(kind)):
        return None
    try:
        return _comparison(filter_, pc.field(name), value, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # The column has no such value.
        return None


def _comparison(filter_: spark.Filter, field: pc.Expression, value: Any, kind: pa.DataType) -> pc.Expression | None:  # noqa: ANN401
    made: Any
    match filter_:
        case spark.EqualTo():
            made = field == _scalar(value, kind)
        case spark.EqualNullSafe():
            made = field.is_null() if value is None else field == _scalar(value, kind)
        case spark.GreaterThan():
            made = field > _scalar(value, kind)
        case spark.GreaterThanOrEqual():
            made = field >= _scalar(value, kind)
        case spark.LessThan():
            made = field < _scalar(value, kind)
        case spark.LessThanOrEqual():
            made = field <= _scalar(value, kind)
        case spark.In():
            made = field.isin([_scalar(item, kind) for item in value])
        case spark.IsNull():
            made = field.is_null()
        case spark.IsNotNull():
            made = field.is_valid()
        case _:
            return None
    expression: pc.Expression = made
    return expression


def _scalar(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - an Arrow scalar
    """The value in the column's type, with the resolution of a time in Spark."""
    if pa.types.is_timestamp(kind):
        if not isinstance(value, datetime):
            raise TypeError
        return pa.scalar(value if value.tzinfo else value.replace(tzinfo=UTC), pa.timestamp("us", "UTC"))
    if pa.types.is_decimal(kind) and not isinstance(value, (int, Decimal)):
        raise TypeError
    return pa.scalar(value, kind)
