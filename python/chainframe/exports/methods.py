"""The exports of `Query`, which passes itself and its client to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe.errors import InvalidParameterError
from chainframe.exports.files import FileRequest, write_file, write_file_async
from chainframe.exports.parquet import Export, write_parquet, write_parquet_async

if TYPE_CHECKING:
    from os import PathLike

    from chainframe import Client, Query


# The method for each suffix of a file.
_METHODS = {
    ".parquet": "to_parquet",
    ".csv": "to_csv",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "to_json"),
    ".xlsx": "to_pandas().to_excel",
    ".feather": "to_pandas().to_feather",
}


def to_parquet(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    file = _parquet_file(_file(path, "to_parquet"), options)
    return write_file(query, client, file) if file else write_parquet(query, client, path, **options)


async def to_parquet_async(
    query: Query[Any],
    client: Client,
    path: str | PathLike[str],
    **options: Any,  # noqa: ANN401
) -> Export:
    file = _parquet_file(_file(path, "to_parquet"), options)
    if file:
        return await write_file_async(query, client, file)
    return await write_parquet_async(query, client, path, **options)


def to_csv(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, FileRequest(_file(path, "to_csv"), "csv", **options))


async def to_csv_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, FileRequest(_file(path, "to_csv"), "csv", **options))


def to_json(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return write_file(query, client, FileRequest(_file(path, "to_json"), "jsonl", **options))


async def to_json_async(query: Query[Any], client: Client, path: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    return await write_file_async(query, client, FileRequest(_file(path, "to_json"), "jsonl", **options))


def _parquet_file(path: Path, options: dict[str, Any]) -> FileRequest | None:
    """Return the request of a single file, or None if the path is that of a directory."""
    if path.suffix.lower() != ".parquet" or path.is_dir():
        return None
    for name in ("max_rows_per_file", "settle"):
        if name in options:
            raise InvalidParameterError(f"{name} needs a directory; {path} is a file")
    return FileRequest(path, "parquet", **options)


def _file(path: str | PathLike[str], method: str) -> Path:
    """Return the path, unless its suffix is that of another form."""
    path = Path(path)
    expected = _METHODS.get(path.suffix.lower(), method)
    if expected != method and not path.is_dir():
        raise InvalidParameterError(
            f"({path}) ends in {path.suffix}; call {expected}, or pass another path", parameter="path"
        )
    return path
