"""A user's own records, from wherever they are, as columns of values that the local service takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from chainframe import ConfigError, Deployment
from chainframe._native import _declaration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_MILLISECONDS = 100_000_000_000
PARQUET = b"PAR1"
MOST_SHOWN = 80


class Placed(NamedTuple):
    """A row, and where it was found, for what is said of it."""

    place: str
    row: Any


class Columns(NamedTuple):
    """The values of each field, and the place of each row."""

    values: dict[str, list[Any]]
    places: list[str]


def columns(call: str, rows: Iterable[Placed], deployment: Deployment) -> Columns:
    """The values of each field of the call's records. Names are ours, or the wire's in the deployment's words."""
    fields = _fields(call)
    names = {wire: name for name, field in fields.items() for wire in field["wire"]}
    names = {wire.format(main=deployment.main, zone=deployment.zone): name for wire, name in names.items()}
    names |= {name: name for name in fields}
    gathered: dict[str, list[Any]] = {name: [] for name in fields}
    places: list[str] = []
    for place, row in rows:
        places.append(place)
        values: dict[str, Any] = dict.fromkeys(fields)
        for given, value in _members(call, place, row):
            if given not in names:
                raise ConfigError(f"{call}: {place} has {given!r}, which is none of {', '.join(fields)}")
            name = names[given]
            kind = fields[name]["kind"]
            try:
                values[name] = _value(kind, _plain(value))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                raise ConfigError(f"{call}: {place}: {name} is not {EXPECTED[kind]}: {_short(value)}") from None
        for name, value in values.items():
            gathered[name].append(value)
    return Columns(gathered, places)


def _members(call: str, place: str, row: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401 - whatever stands for a row
    if not isinstance(row, Mapping) and callable(getattr(row, "to_dict", None)):
        row = row.to_dict()
    if isinstance(row, Mapping):
        return row.items()
    raise ConfigError(f"{call}: {place} is neither a record nor a mapping of its fields: {_short(row)}")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…"


@cache
def _fields(call: str) -> dict[str, dict[str, Any]]:
    declaration = json.loads(_declaration())
    endpoints = {endpoint["name"]: endpoint["record"] for endpoint in declaration["endpoints"]}
    if call not in endpoints:
        raise ConfigError(f"data: {call!r} is no call of a client; there are {', '.join(endpoints)}")
    records = {record["name"]: record["fields"] for record in declaration["records"]}
    return {field["name"]: field for field in records[endpoints[call]]}


def is_file(data: object) -> bool:
    return isinstance(data, str | PathLike)


def read(path: Path) -> list[Placed] | bytes:
    """The rows of a file; of a recorded answer, its bytes."""
    try:
        match path.suffix.lower():
            case ".parquet":
                return _read_parquet(path)
            case ".jsonl" | ".ndjson":
                lines = enumerate(path.read_bytes().split(b"\n"), 1)
                placed = ((f"{path} line {number}", line) for number, line in lines if line.strip())
                return [Placed(place, _json(line, place)) for place, line in placed]
            case ".json":
                content = path.read_bytes()
                read = _json(content, str(path))
                if isinstance(read, dict):
                    return content
                if isinstance(read, list):
                    return _numbered(read, f"{path} row")
                raise ConfigError(f"data: {path} holds neither a list of records nor an answer: {_short(read)}")
            case other:
                raise ConfigError(
                    f"data: {path} is no file of records: {other or 'no suffix'} is none of "
                    ".parquet, .jsonl, .ndjson, .json"
                )
    except OSError as error:
        raise ConfigError(f"data: {path} cannot be read: {error.strerror or type(error).__name__}") from None


def _numbered(rows: Iterable[Any], what: str = "row") -> list[Placed]:
    return [Placed(f"{what} {number}", row) for number, row in enumerate(rows)]


def _json(text: bytes, where: str) -> Any:  # noqa: ANN401 - what JSON holds
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        # Floats would not keep the digits.
        return json.loads(text.decode("utf-8-sig"), parse_float=Decimal, parse_constant=refuse)
    except UnicodeDecodeError:
        raise ConfigError(f"data: {where} is not UTF-8") from None
    except ValueError as error:
        raise ConfigError(f"data: {where} is not JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"data: {where} is not JSON of records: it is nested too deeply") from None


def _either(pyarrow: Callable[[Any], Any], polars: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The rows as whichever library there is reads them."""
    for name, rows_by in (("pyarrow", pyarrow), ("polars", polars)):
        if find_spec(name):
            return list(rows_by(import_module(name)))
    raise ConfigError("data: neither pyarrow nor polars is installed; run: pip install 'chainframe[arrow]'")


def _read_parquet(path: Path) -> list[Placed]:
    # Told apart here, since each library has an error of its own for a file that is none of its kind.
    with path.open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            raise ConfigError(f"data: {path} is not a Parquet file")
    try:
        read = _either(
            lambda _: import_module("pyarrow.parquet").ParquetFile(path).read().to_pylist(),
            lambda polars: polars.read_parquet(path).to_dicts(),
        )
    except (ConfigError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of a library's own class
        problem = " ".join(str(error).split())
        raise ConfigError(f"data: {path} is a damaged Parquet file: {problem}") from None
    return _numbered(_without_index(read), f"{path} row")


def rows(data: Any) -> list[Placed]:  # noqa: ANN401 - any library's table
    """The rows of a table of any library, or of an iterable of records or mappings."""
    return _numbered(_rows(data))


def _rows(data: Any) -> Iterable[Any]:  # noqa: ANN401 - any library's table
    if hasattr(data, "to_dicts"):  # polars, and `Records`
        return list(data.to_dicts())
    if hasattr(data, "to_pylist"):  # pyarrow
        return _without_index(data.to_pylist())
    if hasattr(data, "iterrows"):  # pandas, which has nothing but this for a value that is not there
        rows = (zip(data.columns, row, strict=True) for row in data.itertuples(index=False, name=None))
        return [{name: None if _is_gap(value) else value for name, value in row} for row in rows]
    if hasattr(data, "__arrow_c_stream__"):
        return _either(
            lambda pyarrow: pyarrow.table(data).to_pylist(), lambda polars: polars.DataFrame(data).to_dicts()
        )
    if isinstance(data, Mapping):
        raise ConfigError("data: is one record, or columns; give a list of records, or a data frame")
    if isinstance(data, Iterable) and not isinstance(data, bytes | bytearray):
        return data
    raise ConfigError(f"data: is neither a table, nor a list of records, nor a file of them: {_short(data)}")


def _without_index(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What pandas writes into a file beside its columns is no field."""
    return [{name: value for name, value in row.items() if not name.startswith("__index_level_")} for row in rows]


def _is_gap(value: Any) -> bool:  # noqa: ANN401 - a cell of a pandas frame
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float | Decimal) and value != value)  # noqa: PLR0124 - NaN


def _plain(value: Any) -> Any:  # noqa: ANN401 - a cell of any library's table
    """The value as Python has it."""
    return value.tolist() if type(value).__module__.partition(".")[0] == "numpy" else value


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401 - of that kind
    if value is None or (value == "" and kind != "text"):
        return None
    return CONVERSIONS[kind](value)


def _integer(value: Any) -> int:  # noqa: ANN401 - a number of any kind
    exact = Decimal(value)
    if isinstance(value, bool) or exact != exact.to_integral_value():
        raise ValueError
    return int(exact)


def _count(value: Any) -> int:  # noqa: ANN401 - a number of any kind
    number = _integer(value)
    if number < 0:
        raise ValueError
    return number


def _number(value: Any) -> Decimal:  # noqa: ANN401 - a number of any kind
    if isinstance(value, bool):
        raise TypeError
    # The digits that the float is shown with: the shortest that mean it.
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError
    return number


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value).lower()]


def _time(value: Any) -> datetime:  # noqa: ANN401 - an instant of any kind
    if isinstance(value, datetime):
        # A pandas Timestamp is one too; its nanoseconds beyond milliseconds are refused further on.
        return value
    if isinstance(value, str) and not value.lstrip("-").replace(".", "", 1).isdigit():
        return datetime.fromisoformat(value)
    number = _integer(value)
    return EPOCH + timedelta(milliseconds=number if abs(number) >= LEAST_MILLISECONDS else number * 1_000)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - a list of any kind
    if isinstance(value, str):
        raise TypeError
    return [_text(item) for item in value]


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "integer": _count,
    "raw integer": _integer,
    "time": _time,
    "flag": _flag,
    "amount": _number,
    "estimate": _number,
    "text": _text,
    "texts": _texts,
}
EXPECTED = {
    "integer": "a whole number from 0 on",
    "raw integer": "a whole number",
    "time": "a time",
    "flag": "true or false",
    "amount": "a number",
    "estimate": "a number",
    "text": "text",
    "texts": "a list of texts",
}
"""What a value of each kind has to be, in words."""
