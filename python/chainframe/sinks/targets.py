"""Targets of `sync`: the sink of a connection, a URL or a path."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from chainframe._paths import (
    CONNECTION,
    URL,
    check_parent,
    form_of,
    is_utf8,
    local_path,
    reachable,
    shown_url,
    suffix_of,
)
from chainframe.errors import ExportError, InvalidParameterError
from chainframe.frames import library
from chainframe.sinks.contract import Sink, one_line

# Names of files that are databases of DuckDB.
DATABASE_SUFFIXES = (".duckdb", ".ddb", ".db")
POSTGRESQL = ("postgresql", "postgres")
ICEBERG = "iceberg"
CATALOG_NAME = re.compile(r"[\w.-]+")
# Names of files of other programs, which no directory of a Delta table has.
FILE_SUFFIXES = {
    *(".sqlite", ".sqlite3", ".txt", ".json", ".tsv", ".xls", ".xlsx"),
    *(".feather", ".ipc", ".pq", ".orc", ".avro", ".pkl"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip", ".tar"),
}
# Schemes of databases and of servers, which are not locations of a Delta table.
DATABASES = {"duckdb", "jdbc", "mariadb", "mssql", "mysql", "oracle", "redshift", "snowflake", "sqlite", "clickhouse"}
SERVERS = {"ftp", "http", "https", "sftp"}
KINDS = (
    "a DuckDB connection, an ADBC connection to PostgreSQL, a URL of PostgreSQL, an Iceberg catalog, a DeltaTable, a "
    "path or a Sink"
)


def sink_of(target: Any, table: object) -> Sink:  # noqa: ANN401
    """Select the sink by the type of the target; only the library of that target is imported."""
    if table is not None and not isinstance(table, str):
        raise InvalidParameterError(f"must be a string; got {type(table).__name__}", parameter="table")
    if table is not None and ("\0" in table or not is_utf8(table)):
        problem = f"({table!r}) must be Unicode text without null characters"
        raise InvalidParameterError(problem, parameter="table")
    if isinstance(target, Sink):
        _check_unnamed(table, "a Sink")
        return target
    if isinstance(target, str | Path):
        # Without the `__str__` of a subclass: that of an Enum is the name of the member.
        return _sink_at(str.__str__(target) if isinstance(target, str) else target, table)
    libraries = {kind.__module__.partition(".")[0] for kind in type(target).__mro__}
    if "deltalake" in libraries:
        return _delta_of(target, table)
    if libraries & {"duckdb", "_duckdb"}:
        from chainframe.sinks.duckdb import DuckDbSink  # noqa: PLC0415 - needs duckdb

        return DuckDbSink(target, _named(table))
    if "pyiceberg" in libraries:
        return _iceberg_of(target, table)
    if "adbc_driver_manager" in libraries:
        from chainframe.sinks.postgresql import PostgresqlSink  # noqa: PLC0415 - needs the driver

        return PostgresqlSink(target, _named(table))
    raise InvalidParameterError(f"must be {KINDS}; got {type(target).__name__}", parameter="target")


def _sink_at(target: str | Path, table: str | None) -> Sink:
    """Open the target of a URL or a path."""
    scheme = target.partition("://")[0].lower() if isinstance(target, str) and "://" in target else None
    if shown_url(str(target)):
        _check_utf8(str(target))
    if scheme in POSTGRESQL:
        return _postgresql_of(str(target), _named(table))
    if scheme == ICEBERG:
        return _iceberg_of(_configured_catalog(str(target)), _named(table))
    if scheme is not None and re.split("[+:]", scheme)[0] in {*DATABASES, *SERVERS, *POSTGRESQL}:
        raise InvalidParameterError(f"must be {KINDS}; got a URL of {scheme}", parameter="target")
    if scheme is None and CONNECTION.search(str(target)):
        raise InvalidParameterError(f"must be {KINDS}; got a connection string", parameter="target")
    if scheme is not None or (isinstance(target, str) and target.lower().startswith("file:/")):
        return _delta_of(target, table)
    if isinstance(target, Path) and URL.match(str(target)):
        raise InvalidParameterError("must be a str: a Path joins the slashes of a URL", parameter="target")
    return _sink_in(reachable(local_path(target, "target"), "target"), table)


def _sink_in(path: Path, table: str | None) -> Sink:
    """Open the target of a local path."""
    _check_utf8(str(path.absolute()))
    if path.suffix.lower() in DATABASE_SUFFIXES:
        return _duckdb_of(path, table)
    is_file = form_of(suffix_of(path)) is not None or path.suffix.lower() in FILE_SUFFIXES
    if path.is_file() or (is_file and not path.is_dir()):
        names = ", ".join(f"*{suffix}" for suffix in DATABASE_SUFFIXES)
        message = (
            f"({path}) must not be a file, except a database of DuckDB ({names}): a Delta Lake table is a directory"
        )
        raise InvalidParameterError(message, parameter="target")
    return _delta_of(path, table)


def _check_utf8(target: str) -> None:
    """Raise `InvalidParameterError` for a path or a URL that no library takes. A URL may hold a password."""
    if not is_utf8(target):
        problem = f"({shown_url(target) or repr(target)}) must be UTF-8; name another, or rename it or its directory"
        raise InvalidParameterError(problem, parameter="target")


def _check_unnamed(table: str | None, target: str) -> None:
    if table is not None:
        raise InvalidParameterError(f"must not be given for {target}", parameter="table")


def _delta_of(target: Any, table: str | None) -> Sink:  # noqa: ANN401 - a table or its location
    _check_unnamed(table, "Delta Lake, whose target is a table")
    library("deltalake", "deltalake pyarrow")
    from chainframe.sinks.delta import DeltaSink  # noqa: PLC0415 - needs deltalake

    return DeltaSink(target)


def _iceberg_of(target: Any, table: str | None) -> Sink:  # noqa: ANN401 - a catalog or a table
    from chainframe.sinks.iceberg import IcebergSink  # noqa: PLC0415 - needs pyiceberg

    if not hasattr(target, "catalog"):
        return IcebergSink(target, _named(table))
    _check_unnamed(table, "an Iceberg table")
    return IcebergSink(target.catalog, ".".join(target.name()))


def _configured_catalog(url: str) -> Any:  # noqa: ANN401 - of an optional library
    """Load the catalog `iceberg://NAME` as the configuration of pyiceberg describes it."""
    name = url.partition("://")[2].strip("/")
    catalogs = library("pyiceberg.catalog", "'chainframe[iceberg]'")
    if not CATALOG_NAME.fullmatch(name):
        # Anything else may hold a password.
        message = "must be iceberg:// and the name of a catalog in .pyiceberg.yaml, without user, port and path"
        raise InvalidParameterError(message, parameter="target")
    try:
        return catalogs.load_catalog(name)
    except Exception as error:
        raise ExportError(f"iceberg://{name} cannot be opened: {one_line(error)}", path=name) from error


def _named(table: str | None) -> str:
    if not table:
        raise InvalidParameterError("must name a table of the database", parameter="table")
    return table


def _postgresql_of(url: str, table: str) -> Sink:
    library("adbc_driver_postgresql", "adbc-driver-postgresql pyarrow")
    from chainframe.sinks.postgresql import connect  # noqa: PLC0415 - needs the driver

    return connect(url, table)


def _duckdb_of(path: Path, table: str | None) -> Sink:
    if table is None:
        problem = f"({path}) is a database, not the directory of a Delta table; pass table= too"
        raise InvalidParameterError(problem, parameter="target")
    check_parent(path, "target")
    library("duckdb", "duckdb pyarrow")
    from chainframe.sinks.duckdb import connect  # noqa: PLC0415 - needs duckdb

    return connect(path, _named(table))
