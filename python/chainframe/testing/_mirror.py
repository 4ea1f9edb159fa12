"""Runs a query of a real service and returns its records and recorded requests, for `LocalService.mirror`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from chainframe import ConfigError, Query
from chainframe._native import Cassette, _restore_query, _with_cassette
from chainframe.testing import _normalize, _requests

if TYPE_CHECKING:
    from collections.abc import Generator

    from chainframe import Deployment


class Mirrored(NamedTuple):
    """The records of a query, and the cassette with its requests."""

    call: str
    columns: dict[str, list[Any]]
    sources: list[str]
    cassette: Path
    max_items: int | None


@contextmanager
def mirrored(query: Query[Any], deployment: Deployment) -> Generator[Mirrored]:
    """Run the query with a cassette, which exists until the end of the block."""
    if not isinstance(query, Query):  # pyright: ignore[reportUnnecessaryIsInstance] - not checked by callers
        raise TypeError(f"mirror() takes queries, such as client.blocks(); got {type(query).__name__}")
    _, (client, *arguments) = cast("tuple[Any, tuple[Any, ...]]", query.__reduce__())
    if len(arguments) != len(("call", "arguments")):
        raise ConfigError("mirror() takes queries that start at their beginning; got a resumed query")
    call, (args, options) = arguments[0], json.loads(arguments[1])
    # A page is served as a whole, so the last one is read as a whole.
    limit, size = options["max_items"], options["page_size"] or _requests.page_size_max(call, deployment)
    if limit and size:
        limit = options["max_items"] = -(-limit // size) * size
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mirrored.jsonl"
        recording = _with_cassette(client, Cassette(path, mode="all"))
        records = _restore_query(recording, call, json.dumps([args, options])).collect()
        columns, sources = _normalize.columns(call, _normalize.rows(records), deployment)
        yield Mirrored(call, columns, sources, path, limit)
