"""Spark data source: the records of a call as a DataFrame, read by the executors in parallel, or as a stream.

>>> from chainframe.integrations.spark import ChainframeSource
>>> spark.dataSource.register(ChainframeSource)
>>> frame = (
...     spark.read.format("chainframe")
...     .option("resource", "transactions")
...     .option("start_height", 4_000_000)
...     .option("end_height", 4_009_999)
...     .load()
... )
>>> stream = (
...     spark.readStream.format("chainframe")
...     .option("resource", "blocks")
...     .option("start", "beginning")
...     .load()
...     .writeStream.option("checkpointLocation", "checkpoint")
...     .start("blocks", format="parquet")
... )

The executors read the base URL and the credentials from their environment, `CHAINFRAME_BASE_URL` etc.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from chainframe import Client, InvalidParameterError, Query
from chainframe._arguments import similar
from chainframe._checks import short
from chainframe._declared import ENDPOINTS

try:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema

    from chainframe.datasets.scanner import BATCH_SIZE, Scanner
    from chainframe.integrations import spark_filters
    from chainframe.integrations.spark_stream import StreamReader
except ModuleNotFoundError as _error:
    _missing = (_error.name or "pyspark").partition(".")[0]
    raise ModuleNotFoundError(
        f"{_missing} is not installed; run: pip install 'chainframe[spark]'", name=_error.name
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.compute as pc
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

__all__ = ["ChainframeSource"]

# Options of reads only, of streams only, and of both.
_OF_READS = ("numPartitions", "concurrent_tasks", "push_filters", "max_items")
_OF_STREAMS = ("start", "settle", "max_rows_per_batch")
_OF_BOTH = ("resource", "numbers", "columns", "rate_limit", "strict")


class ChainframeSource(DataSource):
    """`spark.read` and `spark.readStream` with `format("chainframe")`, after `spark.dataSource.register`.

    A task that Spark retries fetches its records again; no row appears twice. A stream has new records as
    `Query.follow` delivers them, settled and each once; its offsets are cursors, so that a query that is restarted from
    its checkpoint repeats a micro-batch with the same records. The options are strings:

    - `resource`: name of a method of `Client`, such as `transactions`; required.
    - The arguments of the method, with `chain`, `page_size` and `max_items`. Several hashes, and several values of an
      argument that selects a list, are separated by commas; the column `queried` says whose list has a row.
    - `unique`: `true` reads each record of several lists once, in one task. Default: `false`.
    - `numPartitions`: maximum number of tasks, as for `Query.partitions`. Default: 8.
    - `numbers`: type of amounts and estimates, as for `Records`. Default: `CHAINFRAME_NUMBERS`, or `decimal`.
    - `columns`: names of the columns to decode, separated by commas. Default: those of the schema given to
      `spark.read.schema`, or all.
    - `push_filters`: `true` lets filters narrow the requests, as for `Query.dataset`, and requires Spark's setting
      `spark.sql.python.filterPushdown.enabled`. Default: `false`.
    - `rate_limit`: requests per second of the whole job, divided by the number of partitions, or by
      `concurrent_tasks` if that is less. Default: each task adapts to the API's limit.
    - `start`: of a stream, `now`, `beginning` or a cursor, as for `Query.follow`. A query that has a checkpoint
      continues there. Default: `now`.
    - `settle`: of a stream, heights that are held back from the head. Default: 12.
    - `max_rows_per_batch`: of a stream, rows after which a micro-batch ends. Heights, and what one round of requests
      reads, are not split. Default: 10,000.
    - `strict`: `true` fails a task whose result may be incomplete; otherwise the task logs a warning. Default: `false`.

    Parameters
    ----------
    options : dict of str
        The options; Spark passes them.

    Raises
    ------
    InvalidParameterError
        If an option is unknown or invalid; Spark reports the message.
    ConfigError
        If an environment variable of the executor is missing; Spark reports the message.

    Examples
    --------
    >>> spark.dataSource.register(ChainframeSource)
    >>> spark.read.format("chainframe").option("resource", "blocks").load().count()
    """

    @classmethod
    def name(cls) -> str:
        return "chainframe"

    def schema(self) -> StructType:
        return from_arrow_schema(Job.of(self.options).schema(), prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        job = self._job(schema, "spark.readStream", _OF_STREAMS)
        return (_FilteringReader if job.push_filters else _Reader)(job)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return StreamReader(self._job(schema, "spark.read", _OF_READS))

    def _job(self, schema: StructType, door: str, options: Sequence[str]) -> Job:
        given = {str(name).lower() for name in dict(self.options)}
        for name in options:
            if name.lower() in given:
                raise InvalidParameterError(f"{name} is an option of {door}")
        job = Job.of(self.options)
        if schema.names:
            job = replace(job, columns=tuple(schema.names))
            job.schema()
        return job


@dataclass(frozen=True)
class Job:
    """Validated options."""

    call: str
    arguments: dict[str, Any]
    num_partitions: int
    numbers: Literal["decimal", "float", "string"]
    rate_limit: float | None
    concurrent_tasks: int | None
    strict: bool
    columns: tuple[str, ...] | None
    push_filters: bool
    start: str
    settle: int
    max_rows_per_batch: int

    @classmethod
    def of(cls, options: Any) -> Job:  # noqa: ANN401 - Spark's case-insensitive dictionary
        given = {str(name).lower(): str(value) for name, value in dict(options).items()}
        # Spark's own: the argument of `load`.
        given.pop("path", None)
        call = given.pop("resource", None)
        if call not in ENDPOINTS:
            raise InvalidParameterError(f"resource must be one of {', '.join(ENDPOINTS)}; got {short(call)}")
        job = cls(
            call=call,
            num_partitions=_number(given, "numPartitions", minimum=1, default=8),
            numbers=cast("Any", given.pop("numbers", None) or os.environ.get("CHAINFRAME_NUMBERS") or "decimal"),
            rate_limit=_number(given, "rate_limit", float),
            concurrent_tasks=_number(given, "concurrent_tasks", minimum=1),
            strict=_flag(given, "strict"),
            columns=tuple(given.pop("columns").split(",")) if "columns" in given else None,
            push_filters=_flag(given, "push_filters"),
            start=given.pop("start", "now"),
            settle=_number(given, "settle", minimum=0, default=12),
            max_rows_per_batch=_number(given, "max_rows_per_batch", minimum=1, default=10_000),
            arguments={},
        )
        params = {param["name"]: param for param in ENDPOINTS[call]["params"]}
        numbers = ("page_size", "max_items") if ENDPOINTS[call]["page_size_max"] else ()
        selects = any(param["selects list"] for param in params.values())
        arguments_known = [*params, "chain", *numbers, *(["unique"] if selects else [])]
        others = (name for name in (*_OF_BOTH, *_OF_READS, *_OF_STREAMS) if name != "max_items")
        known = [*arguments_known, *others]
        for name in sorted(given.keys() - {*arguments_known}):
            meant = similar(name, known)
            raise InvalidParameterError(f"unexpected option {name!r} for {call}{meant}; options are {', '.join(known)}")
        for name in (name for name, param in params.items() if param["required"] and name not in given):
            raise InvalidParameterError(f"{name} is required for {call}")
        integers = {name: _number(given, name) for name in numbers if name in given}
        flags = {"unique": _flag(given, "unique")} if "unique" in given else {}
        arguments = {name: _values(params.get(name), value) for name, value in given.items()}
        return replace(job, arguments={**arguments, **integers, **flags})

    def client(self, tasks: int = 1) -> Client:
        """A client with the share of the rate of one of `tasks` tasks."""
        rate: float | Literal["auto"] = "auto"
        if self.rate_limit is not None:
            rate = self.rate_limit / min(tasks, self.concurrent_tasks or tasks)
        return Client(strict=self.strict, progress=False, rate_limit=rate)

    def query(self) -> Query[Any]:
        query: Query[Any] = getattr(self.client(), self.call)(**self.arguments)
        return query

    def reader(self, query: Query[Any]) -> pa.RecordBatchReader:
        return query.to_arrow_batch_reader(numbers=self.numbers, columns=self.columns)

    def schema(self) -> pa.Schema:
        """The schema with Spark's resolution of times, microseconds."""
        fields = self.reader(self.query()).schema
        return pa.schema(
            [
                field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
                for field in fields
            ]
        )


def _values(param: dict[str, Any] | None, text: str) -> str | list[str]:
    """Return the values of an argument that takes several."""
    if param is None:
        return text
    is_set = param["selects list"] and "," in text
    return text.split(",") if is_set or "hashes per request" in param["kind"] else text


def _number(
    given: dict[str, str], name: str, kind: type[Any] = int, minimum: int | None = None, default: int | None = None
) -> Any:  # noqa: ANN401
    """Removes the option and returns its value. Spark's names have no case."""
    text = given.pop(name.lower(), None)
    try:
        number = default if text is None else kind(text)
    except ValueError:
        raise InvalidParameterError(
            f"{name} must be {'an integer' if kind is int else 'a number'}; got {short(text)}"
        ) from None
    if number is not None and minimum is not None and number < minimum:
        raise InvalidParameterError(f"{name} must be >= {minimum}; got {text}")
    return number


def _flag(given: dict[str, str], name: str) -> bool:
    text = given.pop(name, "false")
    if text.lower() not in {"true", "false"}:
        raise InvalidParameterError(f"{name} must be true or false; got {short(text)}")
    return text.lower() == "true"


class _Part(InputPartition):
    """Cursors that a task reads one after the other, and the number of tasks."""

    def __init__(self, cursors: Sequence[str], count: int) -> None:
        self.cursors = cursors
        self.count = count


class _Reader(DataSourceReader):
    def __init__(self, job: Job) -> None:
        self._job = job

    def _queries(self) -> list[Query[Any]]:
        return [self._job.query()]

    def partitions(self) -> Sequence[InputPartition]:
        num_partitions = self._job.num_partitions
        queries = self._queries()
        each = max(num_partitions // max(len(queries), 1), 1)
        if self._job.arguments.get("unique"):
            # Several tasks would each return a record that several lists have.
            parts = queries
        else:
            parts = [part.query for query in queries for part in query.partitions(each)]
        cursors = [part._whole_cursor() for part in parts]  # noqa: SLF001 - of this package
        tasks = [cursors[first::num_partitions] for first in range(min(num_partitions, len(cursors)))] or [[]]
        return [_Part(cursors, len(tasks)) for cursors in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("_Part", partition)
        client = self._job.client(part.count)
        schema = self._job.schema()
        for cursor in part.cursors:
            for batch in self._job.reader(client.resume(cursor)):
                yield batch.cast(schema)


class _FilteringReader(_Reader):
    """A reader whose filters narrow the requests. Spark rejects it unless filters are enabled."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._expression: pc.Expression | None = None

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - Spark's name
        """Keeps the filters that pyarrow evaluates as Spark does, and returns the others."""
        schema = self._job.schema()
        exact = self._job.numbers == "decimal"
        terms = [spark_filters.translated(each, schema, exact=exact) for each in filters]
        self._expression = spark_filters.all_of(terms)
        return [each for each, term in zip(filters, terms, strict=True) if term is None]

    def _queries(self) -> list[Query[Any]]:
        query = self._job.query()
        if self._expression is None:
            return [query]
        return Scanner(query, None, self._expression, BATCH_SIZE).queries()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in super().read(partition):
            whole = pa.Table.from_batches([batch])
            yield from (whole if self._expression is None else whole.filter(self._expression)).to_batches()
