"""Targets of `sync` for tests of what happens beside it, and a query whose events are prepared."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import adbc_driver_postgresql.dbapi as postgresql
import deltalake
import duckdb

from chainframe.sinks import Synced
from chainframe.sinks.sync import TableForm, run
from chainframe.sinks.targets import sink_of
from chainframe.testing import make_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


TABLE = "t t"


def batch(height: int) -> Any:
    rows = [{"tx_id": f"0x{height}{index}", "height": height, "amount": Decimal("0.5")} for index in range(2)]
    return SimpleNamespace(to_arrow=make_records("transactions", rows).to_arrow, cursor=str(height))


EVENTS = [batch(height) for height in range(1, 7)]


FINAL = sorted((height, f"0x{height}{index}") for height in range(1, 7) for index in range(2))


class Query:
    """A query whose follower delivers prepared events, and then may fail."""

    def __init__(
        self, events: list[Any], error: BaseException | None = None, during: Callable[[], None] | None = None
    ) -> None:
        self.events = events
        self.error = error
        self.during = during

    def follow(self, *, start: str, **_options: object) -> Any:
        first = 0 if start == "beginning" else 1 + [event.cursor for event in self.events].index(start)

        class Follow:
            report = SimpleNamespace(requests=1)
            cursor = self.events[-1].cursor if self.events else "beginning"

            def __iter__(_self) -> Iterator[Any]:  # noqa: N805
                yield from self.events[first:]
                if self.during:
                    self.during()
                if self.error:
                    raise self.error

        return Follow()


def execute(url: str, *statements: str) -> list[Any]:
    with postgresql.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def opened(place: tuple[str, str]) -> Any:
    kind, where = place
    return {"duckdb": duckdb.connect, "delta": str, "postgresql": postgresql.connect}[kind](where)


def synced(place: tuple[str, str], events: list[Any] = EVENTS, form: TableForm | None = None, **options: Any) -> Synced:
    target = opened(place)
    try:
        return run(
            Query(events), sink_of(target, None if place[0] == "delta" else TABLE), 12, form or TableForm(), **options
        )
    finally:
        if place[0] != "delta":
            target.close()


def others(place: tuple[str, str], *statements: str) -> list[Any]:
    """Do what other users of the table do."""
    if place[0] == "postgresql":
        return execute(place[1], *statements)
    with closing(duckdb.connect(place[1])) as connection:
        return [connection.execute(statement) for statement in statements][-1].fetchall()


def stored(place: tuple[str, str]) -> list[tuple[Any, ...]]:
    if place[0] == "delta":
        rows = deltalake.DeltaTable(place[1]).to_pyarrow_dataset().to_table(columns=["height", "tx_id"]).to_pylist()
        return sorted(tuple(row.values()) for row in rows)
    return sorted(others(place, f'select height, tx_id from "{TABLE}"'))
