"""A query as a `pyarrow.dataset.Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as pads
from pyarrow import compute as pc

from chainframe._checks import short
from chainframe.datasets.scanner import BATCH_SIZE, Scanner
from chainframe.datasets.sets import ArgumentColumn
from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    from chainframe import Query, Report
    from chainframe.datasets.projection import Columns

_READ_FIRST = "read the dataset first, for example dataset.to_table().join(...), or use SQL"


class Dataset(pads.Dataset):
    """The result of a query as a pyarrow dataset, fetched again by each scan; made by `Query.dataset`.

    Filters become arguments of the requests where the API has a parameter, and are applied to the records again.

    Parameters
    ----------
    query : Query
        The query.
    expression : pyarrow.compute.Expression, optional
        Filter of every scan.

    Examples
    --------
    >>> dataset = client.transactions().dataset()
    >>> dataset.to_table(filter=pyarrow.compute.field("height") >= 18_000_000)
    """

    def __init__(self, query: Query[Any], expression: pc.Expression | None = None) -> None:
        # The base class wraps a C++ dataset and cannot be initialized without one.
        self._query = query
        self._expression = expression
        self._last: Scanner | None = None

    @property
    def schema(self) -> pa.Schema:
        return ArgumentColumn.of(self._query).schema

    @property
    def report(self) -> Report:
        """Report of the last scan, over all its queries."""
        return self._query.report if self._last is None else self._last.report

    @property
    def last_error(self) -> BaseException | None:
        """Exception that ended the last scan, before a library reduced it to a message."""
        return None if self._last is None else self._last.last_error

    def explain(self, filter: pc.Expression | None = None) -> str:  # noqa: A002 - pyarrow's name
        """Describe the queries that a scan with this filter runs. Nothing is sent.

        Parameters
        ----------
        filter : pyarrow.compute.Expression, optional
            Filter of the scan.

        Returns
        -------
        str
            One query per line.

        Examples
        --------
        >>> print(dataset.explain(pyarrow.compute.field("height") >= 18_000_000))
        """
        return Scanner(self._query, None, self._combined(filter), BATCH_SIZE).explain()

    def scanner(  # type: ignore[override]
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's name
        batch_size: int = BATCH_SIZE,
        **_options: object,
    ) -> Scanner:
        """Prepare a scan. Options about files and threads are accepted and have no effect."""
        self._last = self._scanner_of(columns, self._combined(filter), batch_size)
        return self._last

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().__arrow_c_stream__(requested_schema)

    def _scanner_of(self, columns: Columns | None, expression: pc.Expression | None, batch_size: int) -> Scanner:
        return Scanner(self._query, columns, expression, batch_size)

    def _combined(self, expression: object, parameter: str = "filter") -> pc.Expression | None:
        if expression is not None and not isinstance(expression, pc.Expression):
            message = f'must be an expression, such as pyarrow.compute.field("height") >= 5; got {short(expression)}'
            raise InvalidParameterError(message, parameter=parameter)
        if self._expression is None or expression is None:
            return expression if self._expression is None else self._expression
        return self._expression & expression

    def filter(self, expression: pc.Expression) -> Dataset:
        return Dataset(self._query, self._combined(expression, "expression"))

    @property
    def partition_expression(self) -> pc.Expression:
        return pc.scalar(True)  # noqa: FBT003 - an expression

    def get_fragments(self, *_args: object, **_options: object) -> NoReturn:
        message = "a query has no fragments; use query.partitions(num_partitions)"
        raise NotImplementedError(message)

    def replace_schema(self, *_args: object, **_options: object) -> NoReturn:
        message = "the schema of a query is fixed; cast its table: dataset.to_table().cast(schema)"
        raise NotImplementedError(message)

    def sort_by(self, *_args: object, **_options: object) -> NoReturn:
        raise NotImplementedError(_READ_FIRST)

    def join(self, *_args: object, **_options: object) -> NoReturn:
        raise NotImplementedError(_READ_FIRST)

    def join_asof(self, *_args: object, **_options: object) -> NoReturn:
        raise NotImplementedError(_READ_FIRST)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._query, self._expression)

    def __repr__(self) -> str:
        return f"<Dataset of {self._query!r}>"
