"""Keys and values of the rows of a series, by the declaration of its call."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chainframe._declared import record_of
from chainframe.exports.differences import meaning

if TYPE_CHECKING:
    import pyarrow as pa

    from chainframe.exports.manifest import Manifest


def height_name(manifest: Manifest) -> str:
    """Column of the height by which a settled series is ordered."""
    return str(record_of(manifest.query["call"])["roles"]["height"])


def key_columns(manifest: Manifest) -> list[str]:
    """Columns that a settled series needs: the height, and those that identify a record."""
    return list(dict.fromkeys([height_name(manifest), *record_of(manifest.query["call"])["identity"]]))


def row_keys(table: pa.Table, manifest: Manifest) -> list[tuple[Any, ...]]:
    """Keys of the rows: the values that identify a record, or all of them where it has none of those."""
    identity = record_of(manifest.query["call"])["identity"]
    keys = row_values(table.select(identity), manifest)
    rows = row_values(table, manifest)
    return [
        key if any(isinstance(value, str) and value for value in key) else row
        for key, row in zip(keys, rows, strict=True)
    ]


def row_values(table: pa.Table, manifest: Manifest) -> list[tuple[Any, ...]]:
    """Values of the rows that are equal if they mean the same.

    Amounts that are text are numbers, equal to those of an export with decimals. Hashes and addresses mean the same in
    either letter case.
    """
    decimals = amounts(manifest.query["call"])
    columns = [
        [value if value is None else Decimal(value) for value in column.to_pylist()]
        if name in decimals
        else [meaning(value) for value in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def amounts(call: str) -> set[str]:
    """Columns of amounts in the records of a call."""
    return {field["name"] for field in record_of(call)["fields"] if field["kind"] == "amount"}
