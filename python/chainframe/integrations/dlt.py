"""dlt: a resource that follows a query, whose cursor is loaded in the package of its rows.

A destination that merges has each record once. dlt loads the rows of a package and the state of the pipeline in several
steps, so a package may be loaded twice: rows have a key by which the second time replaces the first.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from chainframe import Undo
from chainframe._checks import short
from chainframe._declared import height_column
from chainframe.errors import InvalidParameterError

try:
    import dlt
    import pyarrow as pa
except ModuleNotFoundError as _error:
    _message = f"{_error.name} is not installed; run: pip install 'chainframe[dlt]'"
    raise ModuleNotFoundError(_message, name=_error.name) from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from dlt.extract import DltResource

    from chainframe import Query

__all__ = ["follow"]

_KEY = "row_key"
_DELETED = "is_deleted"
_OWN: list[Any] = [pa.field(_KEY, pa.string(), nullable=False), pa.field(_DELETED, pa.bool_())]


def follow(
    query: Query[Any],
    name: str,
    *,
    settle: int = 12,
    columns: Sequence[str] | None = None,
    numbers: Literal["decimal", "float", "string"] = "decimal",
) -> DltResource:
    """Make a resource that loads what is new in a query, and corrects what a reorganization changed.

    The first run of a pipeline loads all records, later runs what the list has gained, read as `Query.follow` reads it.
    The position is in the state of the resource, which dlt loads with the rows and restores from the destination.

    Two columns are added: `row_key`, the height and a number within it, by which rows are merged, and `is_deleted`,
    which is false for the rows of the table. A reorganization that is noticed after rows of the same heights were
    extracted ends the run, and the next one corrects them.

    Rows that a package loaded whose state was lost are replaced by those of their heights. A reorganization between
    the two loads leaves rows of heights that have no records any more; where the strategy of the destination is
    "upsert", as that of Delta Lake, also those of heights that have fewer.

    Parameters
    ----------
    query : Query
        A list that can be followed.
    name : str
        Name of the resource and of its table.
    settle : int
        Heights at the head that are read again, since a reorganization may have changed them.
    columns : sequence of str, optional
        Columns of the table, the height among them; all by default.
    numbers : {"decimal", "float", "string"}
        Type of amounts and estimates, as for `Records`.

    Returns
    -------
    DltResource
        A resource with the write disposition "merge". For Delta Lake in files, add
        `apply_hints(table_format="delta")`; plain files cannot be merged.

    Raises
    ------
    InvalidParameterError
        The columns have no height, or the query cannot be followed.

    Examples
    --------
    >>> pipeline = dlt.pipeline("chain", destination="duckdb", dataset_name="chain")
    >>> pipeline.run(follow(client.blocks(), "blocks"))
    """
    if isinstance(columns, str):
        raise InvalidParameterError(f"must be a list of names; got {short(columns)}", parameter="columns")
    if columns is not None and height_column(columns) is None:
        problem = f"({', '.join(columns)}) must contain the height, by which the rows of a reorganization are found"
        raise InvalidParameterError(problem, parameter="columns")
    if query._values:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        problem = (
            "must have one value of each argument: rows are merged by their heights; make a resource of each value"
        )
        raise InvalidParameterError(problem, parameter="query")

    height = height_column(columns or query.partial.schema.names) or "height"

    @dlt.resource(
        name=name,
        write_disposition="merge",
        primary_key=_KEY,
        # Rows of a height that was loaded before, in a package that the state does not know.
        merge_key=height,
        columns={_DELETED: {"data_type": "bool", "hard_delete": True}},
    )
    def rows() -> Iterator[pa.Table]:
        state = dlt.current.resource_state()
        follower = query.follow(start=state.get("cursor", "beginning"), settle=settle, poll=None, undo=True)
        # A follower undoes nothing below the heights that it remembers.
        limit = 2 * query._num_remembered(settle)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        loaded = _Loaded(state.get("heights", []), limit)
        schema = None
        for event in follower:
            if isinstance(event, Undo):
                if loaded.is_extracted_above(event.after_height):
                    break
                loaded.undo(event.after_height)
            else:
                table = event.to_arrow(numbers=numbers, columns=columns)
                schema = table.schema
                yield loaded.keyed(table)
            state["cursor"] = event.cursor
            state["heights"] = loaded.heights()
        else:
            state["cursor"] = follower.cursor
        if (deleted := loaded.deleted(height, schema)) is not None:
            yield deleted
        query._warn_if_incomplete(follower.report)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    return rows()


class _Loaded:
    """Number of rows of the last heights, by which rows that are gone are deleted."""

    def __init__(self, heights: Sequence[tuple[int, int]], limit: int) -> None:
        self._rows = {int(height): int(count) for height, count in heights}
        self._limit = limit
        self._extracted = -1
        # Rows of heights that were undone, as far as this run has not replaced them.
        self._removed: dict[int, range] = {}

    def is_extracted_above(self, height: int) -> bool:
        return self._extracted > height

    def undo(self, after_height: int) -> None:
        for height in [each for each in self._rows if each > after_height]:
            before = self._removed.get(height, range(0))
            self._removed[height] = range(max(self._rows.pop(height), before.stop))

    def keyed(self, table: pa.Table) -> pa.Table:
        heights: Any = table[height_column(table.schema.names) or "height"].to_pylist()
        counts: Counter[int] = Counter()
        keys = []
        for height in heights:
            keys.append(f"{height}-{counts[height]}")
            counts[height] += 1
        for height in counts.keys() & self._removed.keys():
            self._removed[height] = range(counts[height], self._removed[height].stop)
        self._extracted = max(self._extracted, *counts)
        self._rows = dict(sorted({**self._rows, **counts}.items())[-self._limit :])
        return _with_own(table, keys, is_deleted=False)

    def heights(self) -> list[tuple[int, int]]:
        return list(self._rows.items())

    def deleted(self, column: str, schema: pa.Schema | None) -> pa.Table | None:
        """Return a row with nothing but its height and key for each row that is gone."""
        removed = [(height, number) for height, numbers in self._removed.items() for number in numbers]
        if not removed:
            return None
        fields = schema or pa.schema([pa.field(column, pa.int64())])
        heights = pa.array([height for height, _ in removed], pa.int64())
        columns = [heights if field.name == column else pa.nulls(len(removed), field.type) for field in fields]
        keys = [f"{height}-{number}" for height, number in removed]
        return _with_own(pa.table(columns, schema=fields), keys, is_deleted=True)


def _with_own(table: pa.Table, keys: list[str], *, is_deleted: bool) -> pa.Table:
    values = [pa.array(keys, pa.string()), pa.array([is_deleted] * len(keys))]
    arrays: list[Any] = [*table.columns, *values]
    return pa.table(arrays, schema=pa.schema([*table.schema, *_OWN]))
