"""Rows of a user's records, from a table of any library, from JSON or from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any

from chainframe import ConfigError
from chainframe._checks import short
from chainframe._paths import for_arrow, is_utf8, setting_path
from chainframe.testing._normalize import KINDS, SourceRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PARQUET = b"PAR1"
CELL = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"?)?([^,\r\n]*)(,|\r\n|\r|\n|\Z)')
"""A cell of CSV and the separator after it. As for the `csv` module, text may follow the quoted one."""


def _is_json(data: object) -> bool:
    """Return True for text or bytes of a JSON list or object, which no path begins like."""
    if isinstance(data, str):
        return data.lstrip("\ufeff \t\r\n").startswith(("[", "{"))
    return isinstance(data, bytes | bytearray)


def response_name(data: object) -> str:
    """Return what a response is called in messages."""
    return str(data) if isinstance(data, str | PathLike) and not _is_json(data) else "the response"


def read(path: Path) -> list[SourceRow] | bytes:
    """Return the rows of a file or of an exported directory, or the bytes of a response."""
    try:
        if path.is_dir():
            return _read_export(path)
        _check_regular(path)
        match path.suffix.lower():
            case ".csv":
                return _read_csv(path)
            case ".parquet":
                return _read_parquet(path)
            case ".jsonl" | ".ndjson":
                lines = enumerate(path.read_bytes().split(b"\n"), 1)
                named = ((f"{path} line {number}", line) for number, line in lines if line.strip())
                return [SourceRow(source, _json(line, source)) for source, line in named]
            case ".json":
                return _read_json(path.read_bytes(), str(path))
            case other:
                raise ConfigError(
                    f"{path} must be the directory of an export or end in .parquet, .csv, .jsonl, .ndjson or .json; "
                    f"got {other or 'no suffix'}"
                )
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


def _check_regular(path: Path) -> None:
    """Raise `ConfigError` for a pipe, which would be waited for, and a device, many of which have no end."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is not a regular file; name another")


def _read_json(content: bytes, source: str) -> list[SourceRow] | bytes:
    read = _json(content, source)
    if isinstance(read, dict):
        return content
    if isinstance(read, list):
        return _numbered(read, f"{source} row")
    raise ConfigError(f"{source} must hold a list of records or a response; got {short(read)}")


def content(data: Any) -> list[SourceRow] | bytes:  # noqa: ANN401 - any library's table
    """Return the rows of a table, of JSON or of a file, or the bytes of a response."""
    if _is_json(data):
        return _read_json(data.encode() if isinstance(data, str) else bytes(data), "data")
    if isinstance(data, str | PathLike):
        path = setting_path(data, "data")
        if not is_utf8(str(path)):
            raise ConfigError(f"data ({str(path)!r}) must be UTF-8; rename it or its directory")
        return read(path)
    if isinstance(data, Mapping) and "data" in data:
        try:
            return json.dumps(data, allow_nan=False, default=_digits).encode()
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the response is not JSON: {error}") from None
    return rows(data)


def _digits(value: object) -> str:
    """Return a decimal as the API sends it, as text."""
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"it has a {type(value).__name__}")


def _numbered(rows: Iterable[Any], label: str = "row") -> list[SourceRow]:
    return [SourceRow(f"{label} {number}", row) for number, row in enumerate(rows)]


def _json(text: bytes, where: str) -> Any:  # noqa: ANN401 - any JSON value
    def reject(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        # Floats would round the digits.
        return json.loads(text.decode("utf-8-sig"), parse_float=Decimal, parse_constant=reject)
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8") from None
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where} is not JSON of records: nested too deeply") from None


def _read_with_any(pyarrow: Callable[[Any], Any], polars: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """Return the rows, read by the first library that is installed."""
    for name, rows_by in (("pyarrow", pyarrow), ("polars", polars)):
        if find_spec(name):
            return list(rows_by(import_module(name)))
    raise ConfigError("neither pyarrow nor polars is installed; run: pip install 'chainframe[arrow]'")


def _read_parquet(path: Path) -> list[SourceRow]:
    _check_regular(path)
    # Checked here, since each library raises another error for other files.
    with path.open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            raise ConfigError(f"{path} is not a Parquet file")
    try:
        read = _read_with_any(
            lambda _: import_module("pyarrow.parquet").ParquetFile(for_arrow(path)).read().to_pylist(),
            lambda polars: polars.read_parquet(path).to_dicts(),
        )
    except (ConfigError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of a library's own class
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path} is a damaged Parquet file: {problem}") from None
    return _numbered(_without_index(read), f"{path} row")


def _read_export(path: Path) -> list[SourceRow]:
    """Return the rows of a directory that `Query.to_parquet` wrote, in the order of its manifest."""
    manifest = path / "_manifest.json"
    if not manifest.is_file():
        raise ConfigError(f"{path} is not the directory of an export: it has no _manifest.json")
    state = _json(manifest.read_bytes(), str(manifest))
    if not state.get("finished"):
        raise ConfigError(f"{path} is an unfinished export; run it again")
    parts = state["parts"]
    return [row for part in parts for row in _read_parquet(path / part["name"])]


def _read_csv(path: Path) -> list[SourceRow]:
    try:
        lines = _csv_lines(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None
    _, header = next(lines, (1, []))
    _check_names(header, str(path))
    rows: list[SourceRow] = []
    for number, cells in lines:
        if len(cells) != len(header):
            problem = f"it has {len(cells)} cells, and the header {len(header)}"
            raise ConfigError(f"{path} line {number} is not a row of the table: {problem}")
        rows.append(SourceRow(f"{path} line {number}", dict(zip(header, cells, strict=True))))
    return rows


def _csv_lines(text: str) -> Iterator[tuple[int, list[str | None]]]:
    """Return the cells of each line that has some, and the number of its last line.

    The `csv` module has no difference between an empty text, which is quoted, and a missing value, which is not.
    """
    cells: list[str | None] = []
    number = 0
    for cell in CELL.finditer(text):
        quoted, plain, end = cell.groups()
        cells.append(plain or None if quoted is None else quoted.replace('""', '"') + plain)
        number += (quoted or "").count("\n")
        if end != ",":
            number += 1
            if cells != [None]:
                yield number, cells
            cells = []


def _check_names(names: Iterable[Any], where: str) -> None:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"{where} has two columns {name!r}")
        seen.add(name)


def rows(data: Any) -> list[SourceRow]:  # noqa: ANN401 - any library's table
    """Return the rows of a table of any library, or of an iterable of records or mappings."""
    return _numbered(_rows(data))


def _check_shape(data: Any) -> None:  # noqa: ANN401 - any library's table
    if type(data).__name__ == "LazyFrame":
        raise ConfigError("data must be a table; got a LazyFrame: pass its collect()")
    if type(data).__name__ == "Series":
        raise ConfigError("data must be a data frame of records; got a Series, which is one column")
    if hasattr(data, "get_columns"):  # polars, which drops nanoseconds in Python objects
        for name, dtype in data.schema.items():
            if getattr(dtype, "time_unit", "") == "ns" and (data[name].dt.nanosecond() % 1_000 != 0).any():
                raise ConfigError(f"{name} must be {KINDS['time'][1]}; got nanoseconds")


def _rows(data: Any) -> Iterable[Any]:  # noqa: ANN401 - any library's table
    _check_shape(data)
    if hasattr(data, "to_dicts"):  # polars, and `Records`
        return list(data.to_dicts())
    if hasattr(data, "to_pylist"):  # pyarrow
        _check_names(getattr(data, "column_names", ()), "the table")
        return _without_index(data.to_pylist())
    if hasattr(data, "iterrows"):  # pandas, whose missing values differ by column
        _check_names(data.columns, "the data frame")
        rows = (zip(data.columns, row, strict=True) for row in data.itertuples(index=False, name=None))
        return [{name: None if _is_missing(value) else value for name, value in row} for row in rows]
    if hasattr(data, "__arrow_c_stream__"):
        return _read_with_any(
            lambda pyarrow: pyarrow.table(data).to_pylist(), lambda polars: polars.DataFrame(data).to_dicts()
        )
    if isinstance(data, Mapping):
        raise ConfigError(
            "data must be a list of records or a data frame; got a mapping without the member 'data' of a response"
        )
    if isinstance(data, Iterable):
        return data
    raise ConfigError(f"data must be a table, a list of records or a path; got {short(data)}")


def _without_index(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the columns that pandas adds for its index."""
    return [{name: value for name, value in row.items() if not name.startswith("__index_level_")} for row in rows]


def _is_missing(value: Any) -> bool:  # noqa: ANN401 - a cell of a pandas frame
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float | Decimal) and value != value)  # noqa: PLR0124 - NaN
