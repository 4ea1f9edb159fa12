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
    - `rate_limit`: requests a second of the whole job. Each task gets its share: as many tasks run at a time as there
      are partitions, or `concurrent_tasks` if that is less. Without it each task finds the service's pace.
    - `strict`: "true" fails a task whose part is not shown to be complete; otherwise its log says so.

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
        try:
            job = cls(
                call=call,
                partitions=int(given.pop("partitions", "8")),
                numbers=cast("Any", given.pop("numbers", "decimal")),
                rate_limit=float(given.pop("rate_limit")) if "rate_limit" in given else None,
                concurrent_tasks=int(given.pop("concurrent_tasks")) if "concurrent_tasks" in given else None,
                strict=given.pop("strict", "false").lower() == "true",
                arguments={},
            )
            whole: dict[str, Any] = {name: int(given.pop(name)) for name in ("page_size", "max_items") if name in given}
        except ValueError as error:
            raise InvalidParameterError(f"an option is not a number: {error}") from None
        kinds = {param["name"]: param["kind"] for param in _CALLS[call]["params"]}
        unknown = sorted(given.keys() - kinds.keys() - {"chain"})
        if unknown:
            raise InvalidParameterError(f"{unknown[0]}: {call} has no such option; it has {', '.join(kinds)}")
        arguments = {name: value.split(",") if _is_hashes(kinds.get(name)) else value for name, value in given.items()}
        return replace(job, arguments={**arguments, **whole})

    def query(self) -> Query[Any]:
        """Of a client that has one task's share of the rate."""
        settings: dict[str, Any] = {"strict": self.strict, "progress": False}
        if self.rate_limit is not None:
            settings["rate_limit"] = self.rate_limit / min(self.partitions, self.concurrent_tasks or self.partitions)
        query: Query[Any] = getattr(Client(**settings), self.call)(**self.arguments)
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


def _is_hashes(kind: object) -> bool:
    return isinstance(kind, dict) and "hashes per request" in kind


class _Part(InputPartition):
    """What a task is sent: a part of the query, without secrets."""

    def __init__(self, part: Partition[Any]) -> None:
        self.part = part


class _Reader(DataSourceReader):
    def __init__(self, job: _Job) -> None:
        self._job = job

    def partitions(self) -> Sequence[InputPartition]:
        return [_Part(part) for part in self._job.query().partitions(self._job.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = self._job.schema()
        for batch in cast("_Part", partition).part.query.reader(numbers=self._job.numbers):
            yield batch.cast(schema)
