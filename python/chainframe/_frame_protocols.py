"""`Records` and `Query` as data frames to libraries that ask by another protocol than Arrow's, and records as rows."""

from __future__ import annotations

import sys

from chainframe._native import Query, Record, Records

TYPE_CHECKING = False  # `typing` would take longer to import than the rest of the package
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Constructors that make one column of a result, and the remedy. They offer no other way to refuse it.
_MISTAKES = {
    ("pandas.core.frame", "__init__"): "pd.DataFrame() does not read columns; call {name}.to_pandas()",
    ("polars.convert.general", "from_arrow"): "pl.from_arrow() reads a series; call {name}.to_polars()",
}
_DEPTH = 4


def _narwhals_dataframe(self: Any) -> Any:  # noqa: ANN401 - the type is private
    """Return the frame for narwhals, and so for altair, plotly, marimo and others."""
    from importlib.util import find_spec  # noqa: PLC0415 - see TYPE_CHECKING

    import narwhals  # noqa: PLC0415 - which asks for it

    from chainframe.frames import NEEDS  # noqa: PLC0415 - see TYPE_CHECKING

    # narwhals wraps the frames of each library; the first that is installed.
    convert = next(name for name, (needed, _) in NEEDS.items() if all(map(find_spec, needed)))
    return narwhals.from_native(getattr(self, convert)())._compliant_frame  # noqa: SLF001 - see above


def _dataframe(self: Any, nan_as_null: bool = False, allow_copy: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002
    """Return the frame of the interchange protocol, which has no decimals.

    Amounts are the nearest doubles, or text if the client asks for it.
    """
    numbers = "string" if self._numbers == "string" else "float"
    return self.to_arrow(numbers=numbers).__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


def _array(self: Any, _dtype: object = None, copy: bool | None = None) -> Any:  # noqa: ANN401, ARG001, FBT001
    """Return the records as objects, as numpy makes of any sequence."""
    _refuse_mistakes(self)
    import numpy as np  # noqa: PLC0415 - which asks for it

    found = np.empty(len(self), object)
    found[:] = list(self)
    return found


class _OfDataclass:
    """An attribute of dataclasses, by which pandas and polars make columns of a list of records, not one of objects."""

    def __init__(self) -> None:
        self._classes: dict[type[Record], type] = {}

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, _record: object, kind: type[Record]) -> Any:  # noqa: ANN401 - private to dataclasses
        if kind not in self._classes:
            from dataclasses import make_dataclass  # noqa: PLC0415 - see TYPE_CHECKING

            self._classes[kind] = make_dataclass(kind.__name__, getattr(kind, "__match_args__", ()), frozen=True)
        return getattr(self._classes[kind], self._name)


class _Row:
    __dataclass_fields__ = _OfDataclass()
    __dataclass_params__ = _OfDataclass()


def _guarded(stream: Callable[..., object]) -> Callable[..., object]:
    def __arrow_c_stream__(self: Any, requested_schema: object = None) -> object:  # noqa: ANN401, N807
        _refuse_mistakes(self)
        return stream(self, requested_schema)

    return __arrow_c_stream__


def _refuse_mistakes(result: object) -> None:
    # `inspect` would read the source of each.
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for _ in range(_DEPTH):
        message = _MISTAKES.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if message is not None:
            raise TypeError(message.format(name="records" if isinstance(result, Records) else "query"))
        if frame.f_back is None:
            return
        frame = frame.f_back


_kinds: list[Any] = [Query, Records]
for _kind in _kinds:
    _kind.__narwhals_dataframe__ = _narwhals_dataframe
    _kind.__dataframe__ = _dataframe
    _kind.__arrow_c_stream__ = _guarded(_kind.__arrow_c_stream__)
_kinds[1].__array__ = _array
_record: Any = Record
for _name, _attribute in vars(_Row).items():
    if isinstance(_attribute, _OfDataclass):
        setattr(_record, _name, _attribute)
for _kind in _record.__subclasses__():
    # polars takes names of columns from here, and infers their dtypes where several are possible.
    _kind.__annotations__ = dict.fromkeys(_kind.__match_args__, int | str | None)
