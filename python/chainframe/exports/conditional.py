"""Objects that change under conditions only, so that one put is lock and fence at once.

A put is accepted only if the object is the one that this run read or wrote last. A put whose response was lost is
resolved by reading what is there: an object under a name of this run, or with its text, is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from chainframe._objects import attempt, store_error
from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe._objects import Location, ObjectPath

COMPACTION = "_compaction.json"
"""Object of `compact` that says if the others are complete, and which they are."""
ATTEMPTS = 3
"""Puts of one object; each of them repeats requests that failed, as obstore does."""
STALE = {"e_tag": '"00000000000000000000000000000000"', "version": "1"}
"""Version that no object has."""


@dataclass(frozen=True)
class StoredObject:
    data: bytes
    version: dict[str, str]


class FencedObject:
    """An object that this run changes only if it is the one that this run read or wrote last."""

    def __init__(self, path: ObjectPath) -> None:
        self.path = path
        self.stored: StoredObject | None = None
        """Content that this run read or wrote last; None if there was nothing."""
        self._is_superseded = False

    def read(self) -> bytes | None:
        self.stored = get_object(self.path)
        return None if self.stored is None else self.stored.data

    def swap(self, data: bytes) -> StoredObject:
        """Puts a content in place of the known one, or raises `ExportError`."""
        if self._is_superseded:
            raise superseded(self.path.parent)
        if self.stored is not None and data == self.stored.data:
            return self.stored
        expected = None if self.stored is None else self.stored.version
        problem = ExportError()
        for _ in range(ATTEMPTS):
            try:
                self.stored = StoredObject(data, _put(self.path, data, expected))
            except Exception as error:  # noqa: BLE001 - obstore raises errors of several classes
                problem = store_error(error, self.path)
            else:
                return self.stored
            found = get_object(self.path)
            if found is not None and found.data == data:
                self.stored = found
                return found
            if not is_same_version(None if found is None else found.version, expected):
                self._is_superseded = True
                raise superseded(self.path.parent)
        raise problem

    def check_unchanged(self) -> None:
        """Raises `ExportError` if another run has changed the object."""
        found = get_object(self.path)
        if found is None or self.stored is None or found.data != self.stored.data:
            raise superseded(self.path.parent)

    def check_conditions(self, run: str, *, is_new: bool) -> None:
        """Raises `ExportError` if the store ignores conditions. An object that this run made is then removed."""
        if _has_conditions(self.path.parent / f"_conditions-{run}.tmp"):
            return
        self.check_unchanged()
        if is_new:
            delete_objects([self.path])
        problem = "the store ignores the conditions of a put (If-None-Match, If-Match)"
        message = f"{self.path.parent}: {problem}; write to a local directory, then copy it"
        raise ExportError(message, path=str(self.path.parent))


def superseded(path: Location) -> ExportError:
    message = f"{path} was changed by another export; try again when it has ended"
    return ExportError(message, path=str(path), retryable=True)


def get_object(path: ObjectPath) -> StoredObject | None:
    found = attempt(lambda: path.objects.get(path.key), path, missing=None)
    return None if found is None else StoredObject(bytes(found.bytes()), version_of(found.meta))


def put_new(path: ObjectPath, data: bytes) -> dict[str, str]:
    """Puts an object, unless there is another under its name; returns its version."""
    return FencedObject(path).swap(data).version


def delete_objects(paths: Iterable[ObjectPath]) -> None:
    """Removes objects of one bucket, which may be gone already."""
    found = list(paths)
    keys = [path.key for path in found]
    if keys and attempt(partial(found[0].objects.delete, keys), found[0].parent, missing=keys) is not None:
        # Some stores refuse to remove what is not there, since another run has removed it.
        for path in found:
            attempt(partial(path.objects.delete, path.key), path, missing=None)


def version_of(meta: Any) -> dict[str, str]:  # noqa: ANN401 - of obstore
    """Return the condition of a put that replaces this object: stores compare one of both."""
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def is_same_version(left: dict[str, str] | None, right: dict[str, str] | None) -> bool:
    if left is None or right is None:
        return left is right
    name = "e_tag" if "e_tag" in left and "e_tag" in right else "version"
    return left.get(name) == right.get(name)


def _put(path: ObjectPath, data: bytes, expected: dict[str, str] | None) -> dict[str, str]:
    mode = "create" if expected is None else expected
    return version_of(path.objects.put(path.key, data, mode=mode, use_multipart=False))


def _has_conditions(probe: ObjectPath) -> bool:
    """True if the store refuses a put whose condition does not hold. A later run may remove the object of it."""
    put_new(probe, b"")
    are_refused = all(_is_refused(probe, mode) for mode in ("create", STALE))
    delete_objects([probe])
    return are_refused


def _is_refused(probe: ObjectPath, mode: Any) -> bool:  # noqa: ANN401 - of obstore
    put = attempt(lambda: probe.objects.put(probe.key, b"", mode=mode, use_multipart=False), probe, refused=None)
    return put is None
