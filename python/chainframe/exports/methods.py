"""The exports of `Query`, which passes itself and its client to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from chainframe._notes import ending_at_the_caller
from chainframe._paths import COMPRESSED, FORMS, form_of, local_path, suffix_of
from chainframe.errors import InvalidParameterError
from chainframe.exports.files import FileRequest, write_file, write_file_async
from chainframe.exports.growing import to_parquet_series, to_parquet_series_async
from chainframe.exports.parquet import Export, write_parquet, write_parquet_async

if TYPE_CHECKING:
    from os import PathLike

    from chainframe import Client, Query, Records


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
    file = _parquet_file(path, options)
    return (
        write_file(query, client, file) if file else write_parquet(query, client, local_path(path, "path"), **options)
    )


@ending_at_the_caller
async def to_parquet_async(
    query: Query[Any],
    client: Client,
    path: str | PathLike[str],
    **options: Any,  # noqa: ANN401
) -> Export:
    file = _parquet_file(path, options)
    if file:
        return await write_file_async(query, client, file)
    return await write_parquet_async(query, client, local_path(path, "path"), **options)


def to_csv(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, _file(path, "csv", options))


@ending_at_the_caller
async def to_csv_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, _file(path, "csv", options))


def to_json(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, _file(path, "jsonl", options))


@ending_at_the_caller
async def to_json_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, _file(path, "jsonl", options))


def write_records(
    records: Records[Any], method: str, path: str | PathLike[str], columns: list[str] | None, numbers: str | None
) -> Export:
    """Write the records in hand to one file, which replaces an earlier one when it is complete."""
    form = next(form for form, name in METHODS.items() if name == method)
    local = local_path(path, "path")
    if os.fspath(path).endswith(("/", os.sep)) or (form == "parquet" and not suffix_of(local) and not local.is_dir()):
        problem = f"({local}) must name a file that ends in .{form}; records in hand are written to one file"
        raise InvalidParameterError(problem, parameter="path")
    request = _file(path, form, {"columns": columns, "numbers": numbers})
    request.prepare()
    return request.write(records)


def _parquet_file(path: str | PathLike[str], options: dict[str, Any]) -> FileRequest | None:
    """Return the request of a single file, or None if the path is that of a directory."""
    local = local_path(path, "path")
    if local.is_dir() or os.fspath(path).endswith(("/", os.sep)) or not suffix_of(local):
        return None
    request = _file(path, "parquet", options)
    for name in ("max_rows_per_file", "settle"):
        if name in options:
            raise InvalidParameterError(f"{name} needs a directory; {local} is a file")
    return request


def _file(path: str | PathLike[str], form: str, options: dict[str, Any]) -> FileRequest:
    """Return the request of a file, unless its suffix is that of another format."""
    local = local_path(path, "path")
    suffix = "" if local.is_dir() else suffix_of(local)
    named, is_compressed = form_of(suffix) or ((form, False) if not suffix else (None, False))
    if named != form:
        method = METHODS.get(named or "", _OTHERS.get(suffix))
        advice = f"call {method}, or pass another path" if method else f"pass a path that ends in {_expected(form)}"
        raise InvalidParameterError(f"({local}) ends in {suffix}; {advice}", parameter="path")
    fields = {name: value for name, value in options.items() if name not in {"max_rows_per_file", "settle"}}
    return FileRequest(local, form, is_compressed, **fields)


def _expected(form: str) -> str:
    if form == "parquet":
        return ".parquet, or / for a directory"
    suffix = next(suffix for suffix, named in FORMS.items() if named == form)
    return f"{suffix} or {suffix}{COMPRESSED}"
