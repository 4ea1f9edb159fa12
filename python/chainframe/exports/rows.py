"""Keys and values of the rows of a series, by the declaration of its call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from chainframe import _native

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from chainframe.exports.manifest import Manifest


def height_column(names: Iterable[str]) -> str:
    return "height" if "height" in set(names) else "zone_block_height"


def key_columns(manifest: Manifest) -> list[str]:
    """Columns that a settled series needs: the height, and those that identify a record."""
    fields = declared()[manifest.query["call"]]
    return list(dict.fromkeys([height_column(fields.fields), *fields.identity]))


def row_keys(table: pa.Table, manifest: Manifest) -> list[tuple[Any, ...]]:
    """Keys of the rows: the values that identify a record, or all of them where it has none of those."""
    identity = declared()[manifest.query["call"]].identity
    keys = row_values(table.select(identity), manifest)
    rows = row_values(table, manifest)
    return [
        key if any(isinstance(value, str) and value for value in key) else row
        for key, row in zip(keys, rows, strict=True)
    ]


def row_values(table: pa.Table, manifest: Manifest) -> list[tuple[Any, ...]]:
    """Values of the rows. Amounts that are text are numbers, equal to those of an export with decimals."""
    amounts = declared()[manifest.query["call"]].amounts
    columns = [
        [value if value is None else Decimal(value) for value in column.to_pylist()]
        if name in amounts
        else column.to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class _Declared:
    """Fields of the records of a call."""

    fields: list[str]
    identity: list[str]
    amounts: frozenset[str]


@cache
def declared() -> dict[str, _Declared]:
    declaration = json.loads(_native._declaration())  # noqa: SLF001 - of this package
    records = {record["name"]: record for record in declaration["records"]}
    found = {}
    for endpoint in declaration["endpoints"]:
        record = records[endpoint["record"]]
        fields = {each["name"]: each["kind"] for each in record["fields"]}
        amounts = frozenset(name for name, kind in fields.items() if kind == "amount")
        found[endpoint["name"]] = _Declared([*fields], record["identity"], amounts)
    return found
