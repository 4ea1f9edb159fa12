"""A data source for Spark: a call's records as a DataFrame, read by all executors at once.

>>> from chainframe.integrations.spark import ChainframeSource
>>> spark.dataSource.register(ChainframeSource)
>>> frame = (
...     spark.read.format("chainframe")
...     .option("resource", "transactions")
...     .option("start_height", 4_000_000)
...     .option("end_height", 4_009_999)
...     .load()
... )

The executors take the service's address and the secrets from their environment, `CHAINFRAME_BASE_URL` and the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from chainframe import Client, InvalidParameterError, Query, _native

try:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema
except ModuleNotFoundError as _error:
    _missing = (_error.name or "pyspark").partition(".")[0]
    raise ModuleNotFoundError(
        f"{_missing} is not installed; run: pip install 'chainframe[spark]'", name=_error.name
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from chainframe.partitions import Partition

__all__ = ["ChainframeSource"]

_CALLS: dict[str, dict[str, Any]] = {
    call["name"]: call
    for call in json.loads(_native._declaration())["endpoints"]  # noqa: SLF001 - made for what is derived
}


class ChainframeSource(DataSource):
    """`spark.read.format("chainframe")`, once it is registered.

    Its options, all as text:

    - `resource`: the call, such as `transactions`; required.
    - The call's own arguments, and `chain`, `page_size`, `max_items`. Several hashes are separated by commas.
    - `partitions`: into how many tasks the work is cut, as `Query.partitions` does; 8 if not said.
    - `numbers`: "decimal", "float" or "string", as for `Records`.
    - `rate_limit`: requests a second of the whole job. Each task gets its share: as many tasks run at a time as the
      work has parts, or `concurrent_tasks` if that is less. Without it each task finds the service's pace.
    - `strict`: "true" fails a task whose part is not shown to be complete; "false", or nothing, has its log say so.

    A wrong option is an `InvalidParameterError`, and a missing variable of the environment a `ConfigError`; Spark hands
    them on as text in an error of its own.

    A task that is tried again asks again, and no row comes twice.
    """

    @classmethod
    def name(cls) -> str:
        return "chainframe"

    def schema(self) -> StructType:
        return from_arrow_schema(_Job.of(self.options).schema(), prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema
        return _Reader(_Job.of(self.options))


@dataclass(frozen=True)
class _Job:
    """The options, checked."""

    call: str
    arguments: dict[str, Any]
    partitions: int
    numbers: Literal["decimal", "float", "string"]
    rate_limit: float | None
    concurrent_tasks: int | None
    strict: bool

    @classmethod
    def of(cls, options: Any) -> _Job:  # noqa: ANN401 - Spark's dictionary without case
        given = {str(name).lower(): str(value) for name, value in dict(options).items()}
        # Spark's own: what was said to `load`.
        given.pop("path", None)
        call = given.pop("resource", None)
        if call not in _CALLS:
            raise InvalidParameterError(f"resource: {call!r} is none of {', '.join(_CALLS)}")
        job = cls(
            call=call,
            partitions=_number(given, "partitions", least=1) or 8,
            numbers=cast("Any", given.pop("numbers", "decimal")),
            rate_limit=_number(given, "rate_limit", float),
            concurrent_tasks=_number(given, "concurrent_tasks", least=1),
            strict=_flag(given, "strict"),
            arguments={},
        )
        params = {param["name"]: param for param in _CALLS[call]["params"]}
        numbers = ("page_size", "max_items") if _CALLS[call]["page_size_max"] else ()
        known = [*params, "chain", *numbers]
        for name in sorted(given.keys() - {*known}):
            raise InvalidParameterError(f"{name}: {call} has no such option; it has {', '.join(known)}")
        for name in (name for name, param in params.items() if param["required"] and name not in given):
            raise InvalidParameterError(f"{name}: {call} needs this option")
        whole = {name: _number(given, name) for name in numbers if name in given}
        arguments = {name: value.split(",") if _is_hashes(params.get(name)) else value for name, value in given.items()}
        return replace(job, arguments={**arguments, **whole})

    def client(self, tasks: int = 1) -> Client:
        """With the share of the rate that one of so many tasks has."""
        rate: float | Literal["auto"] = "auto"
        if self.rate_limit is not None:
            rate = self.rate_limit / min(tasks, self.concurrent_tasks or tasks)
        return Client(strict=self.strict, progress=False, rate_limit=rate)

    def query(self) -> Query[Any]:
        query: Query[Any] = getattr(self.client(), self.call)(**self.arguments)
        return query

    def schema(self) -> pa.Schema:
        """As Spark has it: its times are in microseconds."""
        fields = self.query().reader(numbers=self.numbers).schema
        return pa.schema(
            [
                field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
                for field in fields
            ]
        )


def _is_hashes(param: dict[str, Any] | None) -> bool:
    return param is not None and "hashes per request" in param["kind"]


def _number(given: dict[str, str], name: str, kind: type[Any] = int, least: int | None = None) -> Any:  # noqa: ANN401
    """The option, taken out, or nothing."""
    text = given.pop(name, None)
    try:
        number = None if text is None else kind(text)
    except ValueError:
        raise InvalidParameterError(f"{name}: {text!r} is not a {'whole ' * (kind is int)}number") from None
    if number is not None and least is not None and number < least:
        raise InvalidParameterError(f"{name}: {text} is under {least}")
    return number


def _flag(given: dict[str, str], name: str) -> bool:
    text = given.pop(name, "false")
    if text.lower() not in {"true", "false"}:
        raise InvalidParameterError(f"{name}: {text!r} is neither true nor false")
    return text.lower() == "true"


class _Part(InputPartition):
    """What a task is sent: where its part begins and ends, as a cursor, and how many parts there are."""

    def __init__(self, part: Partition[Any]) -> None:
        self.cursor = part.query.cursor
        self.count = part.count


class _Reader(DataSourceReader):
    def __init__(self, job: _Job) -> None:
        self._job = job

    def partitions(self) -> Sequence[InputPartition]:
        return [_Part(part) for part in self._job.query().partitions(self._job.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = cast("_Part", partition)
        query = self._job.client(part.count).resume(part.cursor)
        schema = self._job.schema()
        for batch in query.reader(numbers=self._job.numbers):
            yield batch.cast(schema)
