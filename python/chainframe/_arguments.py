"""Errors about unknown names, which suggest the one that was probably meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
R = TypeVar("R")


def similar(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the known name that is most like it, or nothing."""
    return "".join(f"; did you mean '{other}'?" for other in difflib.get_close_matches(name, known, 1))


def unexpected(function: Callable[..., object], keyword: str) -> TypeError:
    """Return the error about a keyword that a function does not take."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    advice = similar(keyword, names) or f"; it takes {', '.join(names)}"
    return TypeError(f"{function.__qualname__}() got an unexpected keyword argument '{keyword}'{advice}")


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function name the parameter that was probably meant by an unknown keyword."""
    known = inspect.signature(function).parameters.keys()

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for keyword in options.keys() - known:
            raise unexpected(function, keyword)
        return function(*args, **options)

    return checked
