"""Differences of the queries of two exports: what is compared, and how a message shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chainframe._declared import meaning as of_text
from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chainframe.errors import InvalidParameterError

MAX_SHOWN = 60


def of_another_release(error: InvalidParameterError, path: object) -> ExportError | None:
    """Return the error for a cursor of an export that is of another version, if that is why it was refused."""
    _, is_old, version = str(error).partition(" has unsupported version ")
    if not is_old:
        return None
    advice = "use the release that wrote it, or export to another directory"
    return ExportError(
        f"{path}: its cursor has unsupported version {version.partition(';')[0]}; {advice}", path=str(path)
    )


def meaning(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what a value of a request means: hexadecimal addresses and hashes are the same in either letter case."""
    if isinstance(value, list):
        return [meaning(each) for each in value]
    # In base58 the case of a letter counts.
    return of_text(value) if isinstance(value, str) else value


def differing(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """The members of two requests that mean different things."""
    names = dict.fromkeys([*theirs, *ours])
    return (name for name in names if _meaning_of(name, theirs.get(name)) != _meaning_of(name, ours.get(name)))


def shown(name: str, there: object, here: object) -> str:
    """Return a sentence about a member that differs: of long lists it has the first value that does."""
    texts = [_text(name, value) for value in (there, here)]
    if isinstance(there, list) and isinstance(here, list) and max(map(len, texts)) > MAX_SHOWN:
        return _shown_of_lists(name, there, here)
    there, here = (text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..." for text in texts)
    return f"{name} is {there} there and {here} here"


def _shown_of_lists(name: str, there: list[Any], here: list[Any]) -> str:
    for values, others, places in ((there, here, ("there", "here")), (here, there, ("here", "there"))):
        known = set(map(repr, meaning(others)))
        lacking = next((value for value in values if repr(meaning(value)) not in known), None)
        if lacking is not None:
            return f"{name} has {lacking!r} {places[0]} and not {places[1]}"
    return f"{name} has its values in another order there than here"


def _meaning_of(name: str, value: object) -> Any:  # noqa: ANN401 - as above
    return str(value).lower() if name == "chain" else meaning(value)


def _text(name: str, value: object) -> str:
    if name in {"start_time", "end_time"} and isinstance(value, int):
        value = datetime.fromtimestamp(value / 1000, UTC).isoformat()
    return repr(value)
