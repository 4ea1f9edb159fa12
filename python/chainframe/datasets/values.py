"""Values of a column that a filter can accept, found without parsing the filter.

The literals of a filter cut the domain of a column into points and the gaps between them. Arrow's own simplification,
which skips files of a dataset by their partition, decides for each fragment whether the filter can be true there. It
errs only towards accepting, so what is not accepted can be left out of a request.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyarrow import acero
from pyarrow.fs import LocalFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# A filter with more literals is not translated: each takes about half a millisecond.
MAX_LITERALS = 2_000
# Arrow does not compare the values of an `is_in` with a gap if they are more.
MAX_COMPARED = 50
# Functions whose result is the same for all values between two of a filter's literals.
COMPARISONS = frozenset(
    {
        "is_in",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "is_null",
        "is_valid",
        "and_kleene",
        "or_kleene",
        "and",
        "or",
        "invert",
    }
)


@dataclass(frozen=True)
class Range:
    """Values of a discrete column, both ends included; `None` is no bound."""

    low: int | None
    high: int | None

    @property
    def is_point(self) -> bool:
        return self.low is not None and self.low == self.high

    def intersected(self, other: Range) -> Range | None:
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        both = Range(max(lows, default=None), min(highs, default=None))
        return None if both.low is not None and both.high is not None and both.low > both.high else both

    def includes(self, value: int) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def values(self, limit: int) -> range:
        """All values, or none if there are more than `limit`."""
        if self.low is None or self.high is None or self.high - self.low >= limit:
            return range(0)
        return range(self.low, self.high + 1)


def literals(expression: pc.Expression) -> list[Any]:
    """Scalars of an expression. An expression is pickled as an Arrow file that has each of them as a column."""
    reduced: Any = expression.__reduce__()
    batch = pa.ipc.open_file(reduced[1][0]).get_batch(0)
    found: list[Any] = []
    for column in batch.columns:
        if pa.types.is_struct(column.type):
            # Options of a function: those of `is_in` have its values as a list.
            options = column[0]
            found.extend(options["value_set"].values if "value_set" in options else [])
        else:
            found.append(column[0])
    return found


def _functions(expression: pc.Expression) -> set[str]:
    """Functions that an expression calls: the file as which it is pickled names each in its schema."""
    reduced: Any = expression.__reduce__()
    schema = pa.ipc.open_file(reduced[1][0]).schema
    return set(re.findall(r"^call: '(\w+)'$", schema.to_string(truncate_metadata=False), re.MULTILINE))


def references(schema: pa.Schema, expressions: Iterable[pc.Expression]) -> set[str]:
    """Columns that expressions refer to: without one of them they cannot be bound."""
    several = list(expressions)
    if any("FieldPath(" in str(expression) for expression in several):
        return set(schema.names)
    found = set()
    project = acero.Declaration("project", acero.ProjectNodeOptions(several, [str(i) for i in range(len(several))]))
    for index, field in enumerate(schema):
        rest = schema.remove(index).empty_table()
        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rest))
        try:
            acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
        except pa.ArrowInvalid:
            found.add(field.name)
    return found


class Solver:
    """Decides which values of a column a filter can accept."""

    def __init__(self, schema: pa.Schema, expression: pc.Expression) -> None:
        self._schema = schema
        self._expression = expression
        self._literals = literals(expression)
        self._format = pads.IpcFileFormat()
        self._filesystem = LocalFileSystem()
        # A value of a gap stands for all of them.
        self._has_samples: bool = len(self._literals) > MAX_COMPARED and set() < _functions(expression) <= COMPARISONS

    def accepts(self, guarantee: pc.Expression) -> bool:
        """True unless the filter is false or null for all rows of which the guarantee is true."""
        return self.which([guarantee]) == [0]

    def which(self, guarantees: list[pc.Expression]) -> list[int]:
        """Indices of the guarantees that the filter accepts."""
        fragments = [
            self._format.make_fragment(str(index), self._filesystem, partition_expression=guarantee)
            for index, guarantee in enumerate(guarantees)
        ]
        dataset = pads.FileSystemDataset(fragments, self._schema, self._format, self._filesystem)
        try:
            return [int(fragment.path) for fragment in dataset.get_fragments(filter=self._expression)]
        except pa.ArrowInvalid:
            # A cast that is not possible for a literal may be possible for every row.
            return list(range(len(guarantees)))
        except pa.ArrowNotImplementedError:
            # `isin` of times in another zone cannot be compared with a guarantee. A filter that is wrong raises again.
            self._schema.empty_table().filter(self._expression)
            return list(range(len(guarantees)))

    def accepted(self, column: str, values: list[str]) -> list[str]:
        """Those of some strings that the filter can accept: any number, since no gap between them is asked for."""
        field = pc.field(column)
        return [values[index] for index in self.which([field == value for value in values])]

    def points(self, column: str) -> list[str] | None:
        """Strings that the filter can accept, or `None` if they cannot be listed."""
        field = pc.field(column)
        values = self._candidates(lambda scalar: scalar.cast(pa.string()).as_py() if _is_string(scalar) else None)
        if not values or self.accepts(field.is_null()):
            return None
        # The string after each value; the lowest one is before the first.
        samples = ["", *(value + "\0" for value in values)]
        gaps = zip(_gaps(field, values), samples, [*values, None], strict=True)
        if any(self._accepts_gap(gap, field, sample) for gap, sample, end in gaps if sample != end):
            return None
        return [value for value in values if self.accepts(field == value)]

    def ranges(self, column: str) -> list[Range] | None:
        """Ranges of integers, milliseconds or units of 10^-18 that the filter can accept, or `None` if it is all."""
        field = pc.field(column)
        kind = self._schema.field(column).type
        to_integer, to_scalar = _discrete(kind)

        def fitting(scalar: Any) -> int | None:  # noqa: ANN401 - an Arrow scalar of any type
            value = to_integer(scalar)
            if value is not None:
                to_scalar(value)  # raises where the column cannot hold it
            return value

        values = self._candidates(fitting)
        if not values or self.accepts(field.is_null()):
            return None
        scalars = [to_scalar(value) for value in values]
        accepted: list[Range] = []
        ends: list[int | None] = [None, *values, None]
        for index, gap in enumerate(_gaps(field, scalars)):
            low = ends[index]
            high = ends[index + 1]
            inner = Range(None if low is None else low + 1, None if high is None else high - 1)
            if (inner.low is None or inner.high is None or inner.low <= inner.high) and self._accepts_gap(
                gap, field, self._sample(inner, to_scalar)
            ):
                accepted.append(inner)
            if high is not None and self.accepts(field == scalars[index]):
                accepted.append(Range(high, high))
        joined = merged(accepted, 1)
        return None if joined == [Range(None, None)] else joined

    def _accepts_gap(self, gap: pc.Expression, field: pc.Expression, sample: Any) -> bool:  # noqa: ANN401 - of the column
        """True if the filter can accept values of a gap, one of which is the sample."""
        return self.accepts(field == sample if self._has_samples and sample is not None else gap)

    def _sample(self, inner: Range, to_scalar: Callable[[int], Any]) -> Any:  # noqa: ANN401 - an Arrow scalar
        value = inner.high if inner.low is None else inner.low
        try:
            return None if value is None else to_scalar(value)
        except (pa.ArrowException, ValueError, OverflowError):
            # The column cannot hold it.
            return None

    def _candidates(self, convert: Callable[[Any], Any]) -> list[Any]:
        if len(self._literals) > MAX_LITERALS:
            return []
        values = set()
        for scalar in self._literals:
            try:
                values.add(convert(scalar) if scalar.is_valid else None)
            except (pa.ArrowException, ValueError, OverflowError):
                continue
        return sorted(values - {None})


def _gaps(field: pc.Expression, values: list[Any]) -> Iterator[pc.Expression]:
    yield field < values[0]
    for low, high in pairwise(values):
        yield (field > low) & (field < high)
    yield field > values[-1]


def merged(ranges: Iterable[Range], gap: int) -> list[Range]:
    """Join ranges in order whose ends differ by a gap at most; those that touch one another by 1."""
    found: list[Range] = []
    for each in ranges:
        last = found[-1] if found else None
        if last is not None and last.high is not None and each.low is not None and each.low - last.high <= gap:
            found[-1] = Range(last.low, each.high)
        else:
            found.append(each)
    return found


def _is_string(scalar: Any) -> bool:  # noqa: ANN401 - an Arrow scalar of any type
    kind = scalar.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _discrete(kind: pa.DataType) -> tuple[Callable[[Any], int | None], Callable[[int], Any]]:
    """Conversions between the scalars of a type and integers in the same order."""
    if pa.types.is_timestamp(kind):

        def milliseconds(scalar: Any) -> int | None:  # noqa: ANN401 - an Arrow scalar of any type
            if not pa.types.is_timestamp(scalar.type):
                return None
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[scalar.type.unit]
            return int(scalar.value * 1_000 // per_second)

        return milliseconds, lambda value: pa.scalar(value, kind)
    if pa.types.is_decimal(kind):
        scale = 10**kind.scale

        return lambda scalar: _floor(scalar, scale), lambda value: pa.scalar(as_decimal(value, kind.scale), kind)
    return _floor, lambda value: pa.scalar(value, kind)


def as_decimal(value: int, scale: int) -> Decimal:
    """Converts a number of units of 10^-scale."""
    return Decimal(value).scaleb(-scale, Context(prec=80))


def _floor(scalar: Any, scale: int = 1) -> int | None:  # noqa: ANN401 - an Arrow scalar of any type
    value = scalar.as_py()
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    return math.floor(Fraction(value) * scale) if is_number and math.isfinite(value) else None
