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
from typing import TYPE_CHECKING, Any

from chainframe import ConfigError, Deployment
from chainframe._native import _declaration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_MILLISECONDS = 100_000_000_000


def columns(call: str, rows: Iterable[Mapping[str, Any]], deployment: Deployment) -> dict[str, list[Any]]:
    """The values of each field of the call's records. Names are ours, or the wire's in the deployment's words."""
    fields = _fields(call)
    names = {wire: name for name, field in fields.items() for wire in field["wire"]}
    names = {wire.format(main=deployment.main, zone=deployment.zone): name for wire, name in names.items()}
    names |= {name: name for name in fields}
    gathered: dict[str, list[Any]] = {name: [] for name in fields}
    for number, row in enumerate(rows):
        values: dict[str, Any] = dict.fromkeys(fields)
        for given, value in row.items():
            if given not in names:
                raise ConfigError(f"{call}: row {number} has a {given!r}, which is none of {', '.join(fields)}")
            name = names[given]
            try:
                values[name] = _value(fields[name]["kind"], _plain(value))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                expected = fields[name]["kind"]
                raise ConfigError(f"{call}: row {number} has a {name} that is no {expected}: {value!r}") from None
        for name, value in values.items():
            gathered[name].append(value)
    return gathered


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


def read(path: Path) -> list[dict[str, Any]] | bytes:
    """The rows of a file; of a recorded answer, its bytes."""
    match path.suffix.lower():
        case ".parquet":
            return _read_parquet(path)
        case ".jsonl" | ".ndjson":
            with path.open(encoding="utf-8") as lines:
                return [_json(line, f"{path} line {number}") for number, line in enumerate(lines, 1) if line.strip()]
        case ".json":
            content = path.read_bytes()
            read = _json(content, str(path))
            return content if isinstance(read, dict) else list(read)
        case other:
            raise ConfigError(
                f"data: {path} is no file of records: {other or 'no suffix'} is none of "
                ".parquet, .jsonl, .ndjson, .json"
            )


def _json(text: str | bytes, where: str) -> Any:  # noqa: ANN401 - what JSON holds
    try:
        # Floats would not keep the digits.
        return json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise ConfigError(f"data: {where} is not JSON: {error}") from None


def _either(pyarrow: Callable[[Any], Any], polars: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The rows as whichever library there is reads them."""
    for name, rows_by in (("pyarrow", pyarrow), ("polars", polars)):
        if find_spec(name):
            return list(rows_by(import_module(name)))
    raise ConfigError("data: neither pyarrow nor polars is installed; run: pip install 'chainframe[arrow]'")


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    return _without_index(
        _either(
            lambda _: import_module("pyarrow.parquet").ParquetFile(path).read().to_pylist(),
            lambda polars: polars.read_parquet(path).to_dicts(),
        )
    )


def rows(data: Any) -> Iterable[Mapping[str, Any]]:  # noqa: ANN401 - any library's table
    """The rows of a table of any library, or of an iterable of records or mappings."""
    if hasattr(data, "to_dicts"):  # polars, and `Records`
        return list(data.to_dicts())
    if hasattr(data, "to_pylist"):  # pyarrow
        return _without_index(data.to_pylist())
    if hasattr(data, "iterrows"):  # pandas
        return [dict(zip(data.columns, row, strict=True)) for row in data.itertuples(index=False, name=None)]
    if hasattr(data, "__arrow_c_stream__"):
        return _either(
            lambda pyarrow: pyarrow.table(data).to_pylist(), lambda polars: polars.DataFrame(data).to_dicts()
        )
    if isinstance(data, Iterable):
        return [row if isinstance(row, Mapping) else row.to_dict() for row in data]
    raise ConfigError(f"data: a {type(data).__name__} is neither a table nor a list of records, nor a file of them")


def _without_index(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What pandas writes into a file beside its columns is no field."""
    return [{name: value for name, value in row.items() if not name.startswith("__index_level_")} for row in rows]


def _plain(value: Any) -> Any:  # noqa: ANN401 - a cell of any library's table
    """The value as Python has it; None for what pandas and numpy have for nothing."""
    if type(value).__module__.partition(".")[0] == "numpy":
        value = value.tolist()
    if type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float | Decimal) and value != value):  # noqa: PLR0124 - NaN
        return None
    return value


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401 - of that kind
    if value is None or (value == "" and kind != "text"):
        return None
    return CONVERSIONS[kind](value)


def _integer(value: Any) -> int:  # noqa: ANN401 - a number of any kind
    exact = Decimal(value)
    if isinstance(value, bool) or exact != exact.to_integral_value():
        raise ValueError
    return int(exact)


def _number(value: Any) -> Decimal:  # noqa: ANN401 - a number of any kind
    if isinstance(value, bool):
        raise TypeError
    # The digits that the float is shown with: the shortest that mean it.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


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
    "integer": _integer,
    "raw integer": _integer,
    "time": _time,
    "flag": _flag,
    "amount": _number,
    "estimate": _number,
    "text": _text,
    "texts": _texts,
}
