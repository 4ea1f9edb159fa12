"""The exports of `Query`, which passes itself and its client to them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe._objects import location
from chainframe._paths import COMPRESSED, FORMS, check_directory, form_of, suffix_of
from chainframe.errors import IncompleteResultError, InvalidParameterError, NumericOverflowError
from chainframe.exports.files import FileRequest, write_file, write_file_async
from chainframe.exports.parquet import write_parquet, write_parquet_async
from chainframe.exports.series_writer import to_parquet_series, to_parquet_series_async
from chainframe.exports.tables import encoded

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike

    from chainframe import Client, Query, Records
    from chainframe._objects import Location
    from chainframe.exports.export import Export


__all__ = [
    "to_csv",
    "to_csv_async",
    "to_json",
    "to_json_async",
    "to_parquet",
    "to_parquet_async",
    "to_parquet_series",
    "to_parquet_series_async",
    "write_records",
]

METHODS = {"parquet": "to_parquet", "csv": "to_csv", "jsonl": "to_json"}
_OTHERS = {".xlsx": "to_pandas().to_excel", ".feather": "to_pandas().to_feather", ".arrow": "to_pandas().to_feather"}


def to_parquet(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    to = _parquet_location(path, options)
    if isinstance(to, FileRequest):
        return write_file(query, client, to)
    with _noted():
        return write_parquet(query, client, to, **options)


async def to_parquet_async(
    query: Query[Any],
    client: Client,
    path: str | PathLike[str],
    **options: Any,  # noqa: ANN401
) -> Export:
    to = _parquet_location(path, options)
    if isinstance(to, FileRequest):
        return await write_file_async(query, client, to)
    with _noted():
        return await write_parquet_async(query, client, to, **options)


@contextmanager
def _noted() -> Generator[None]:
    """Notes with an error that the same call may raise again how the list is read again."""
    try:
        yield
    except NumericOverflowError as error:
        error.add_note('the directory holds what was written before: with other numbers, pass mode="overwrite" too')
        raise
    except IncompleteResultError as error:
        error.add_note(
            'the export is finished, and the same call raises this again; if the reasons may pass, mode="overwrite" '
            "reads the list again"
        )
        raise


def to_csv(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, _file(path, "csv", options))


async def to_csv_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, _file(path, "csv", options))


def to_json(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, _file(path, "jsonl", options))


async def to_json_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, _file(path, "jsonl", options))


def write_records(  # noqa: PLR0917 - the core passes them by position
    records: Records[Any],
    method: str,
    path: str | PathLike[str],
    columns: list[str] | None,
    numbers: str | None,
    storage_options: dict[str, Any] | None,
) -> Export:
    """Write the records in hand to one file, which replaces an earlier one when it is complete."""
    form = next(form for form, name in METHODS.items() if name == method)
    options: dict[str, Any] = {"columns": columns, "numbers": numbers, "storage_options": storage_options}
    to = location(path, "path", storage_options)
    if _ends_as_directory(path) or (form == "parquet" and not suffix_of(to) and not _is_dir(to)):
        problem = f"({to}) must name a file that ends in .{form}; records in hand are written to one file"
        raise InvalidParameterError(problem, parameter="path")
    request = _file(to, form, options)
    request.prepare()
    return request.write(records)


def _parquet_location(path: str | PathLike[str], options: dict[str, Any]) -> FileRequest | Location:
    """Return the request of a single file, or the location of a directory."""
    encoded(options)
    to = location(path, "path", options.get("storage_options"))
    if _is_dir(to) or _ends_as_directory(path) or not suffix_of(to):
        check_directory(to, "path")
        return to
    request = _file(to, "parquet", options)
    for name in ("max_rows_per_file", "settle"):
        if name in options:
            raise InvalidParameterError(f"{name} needs a directory; {to} is a file")
    return request


def _ends_as_directory(path: object) -> bool:
    return isinstance(path, str | os.PathLike) and os.fspath(path).endswith(("/", os.sep))


def _is_dir(to: Location) -> bool:
    """True for a local directory. In an object store the name decides, and nothing is sent."""
    return isinstance(to, Path) and to.is_dir()


def _file(path: Location | str | PathLike[str], form: str, options: dict[str, Any]) -> FileRequest:
    """Return the request of a file, unless its suffix is that of another format."""
    to = location(path, "path", options.get("storage_options"))
    suffix = "" if _is_dir(to) else suffix_of(to)
    named, is_compressed = form_of(suffix) or ((form, False) if not suffix else (None, False))
    if named != form:
        method = METHODS.get(named or "", _OTHERS.get(suffix))
        advice = f"call {method}, or pass another path" if method else f"pass a path that ends in {_expected(form)}"
        raise InvalidParameterError(f"({to}) ends in {suffix}; {advice}", parameter="path")
    fields = {name: value for name, value in options.items() if name not in {"max_rows_per_file", "settle"}}
    return FileRequest(to, form, is_compressed, **fields)


def _expected(form: str) -> str:
    if form == "parquet":
        return ".parquet, or / for a directory"
    suffix = next(suffix for suffix, named in FORMS.items() if named == form)
    return f"{suffix} or {suffix}{COMPRESSED}"
