"""Sinks of the package for `check_sink`, by name, and the rows of their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as postgresql
import deltalake
import duckdb
from pyiceberg.catalog.sql import SqlCatalog

from chainframe.sinks import Sink
from chainframe.sinks.targets import sink_of


def make(kind: str, where: str, name: str) -> Sink:
    if kind == "duckdb":
        return sink_of(Path(where, f"{name}.duckdb"), "t t")
    if kind == "postgresql":
        return sink_of(where, name)
    if kind == "iceberg":
        return sink_of(catalog_at(where), f"chain.{name}")
    return sink_of(Path(where, name), None)


def catalog_at(where: str) -> SqlCatalog:
    """A catalog in a database of SQLite, with the namespace `chain`."""
    options = {"uri": f"sqlite:///{where}/catalog.db", "warehouse": f"file://{where}/warehouse"}
    catalog = SqlCatalog("local", **options)
    catalog.create_namespace_if_not_exists("chain")
    return catalog


def read(kind: str, where: str, name: str) -> list[dict[str, Any]]:
    columns = ["height", "tx_id", "amount"]
    if kind == "duckdb":
        with duckdb.connect(str(Path(where, f"{name}.duckdb"))) as database:
            rows = database.execute('select height, tx_id, amount from "t t"').fetchall()
    elif kind == "postgresql":
        with postgresql.connect(where) as connection, connection.cursor() as cursor:
            cursor.execute(f"select height, tx_id, amount::text from {name}")
            rows = cursor.fetchall()
    elif kind == "iceberg":
        table = catalog_at(where).load_table(f"chain.{name}")
        return table.scan().to_arrow().to_pylist()
    else:
        found: list[dict[str, Any]] = (
            deltalake.DeltaTable(Path(where, name)).to_pyarrow_table(columns=columns).to_pylist()
        )
        return found
    return [dict(zip(columns, row, strict=True)) for row in rows]
