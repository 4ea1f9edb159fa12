"""Destinations of `compact`: a directory that appears when it is complete, or objects below a prefix."""

from __future__ import annotations

import io
import json
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from chainframe._objects import attempt
from chainframe._paths import refuse_link
from chainframe.errors import ExportError
from chainframe.exports.conditional import COMPACTION, FencedObject, delete_objects, put_new
from chainframe.exports.directory import atomic_write, disk_error, locked_dir, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from chainframe._objects import Location, ObjectPath


class Destination(Protocol):
    """Files of one data set, none of which is there before it is written."""

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> None: ...

    def complete(self) -> tuple[Location, ...]:
        """Make the data set complete, and return its files."""
        ...


@contextmanager
def destination(path: Location) -> Generator[Destination]:
    """Refuse a place that holds something; remove what a run that was killed left there."""
    if not isinstance(path, Path):
        yield _ObjectDestination(path)
        return
    refuse_link(path)
    if path.exists():
        raise ExportError(f"{path} exists; name a directory that does not", path=str(path))
    staging = path.with_name(f".{path.name}.compact")
    try:
        with locked_dir(staging):
            yield _Directory(path, staging / "data")
        staging.rmdir()
    except OSError as error:
        raise disk_error(error, path) from None


class _Directory:
    def __init__(self, path: Path, data: Path) -> None:
        if data.exists():
            shutil.rmtree(data)
        data.mkdir()
        self._path = path
        self._data = data
        self._names: list[str] = []

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        path = self._data / name
        path.parent.mkdir(exist_ok=True)
        with atomic_write(path) as file:
            write(file)
        self._names.append(name)

    def complete(self) -> tuple[Path, ...]:
        for folder in [*(entry for entry in self._data.iterdir() if entry.is_dir()), self._data]:
            sync_directory(folder)
        self._data.rename(self._path)
        sync_directory(self._path.parent)
        return tuple(self._path / name for name in self._names)


class _ObjectDestination:
    """Objects with names of this run, and one that lists them, whose conditional put admits one run."""

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._run = uuid.uuid4().hex[:12]
        self._state = FencedObject(path / COMPACTION)
        self._names: list[str] = []
        found = self._state.read()
        before = self._others()
        if found is None and before:
            message = f"{path} holds {before[0].name}; name a prefix that holds nothing"
            raise ExportError(message, path=str(path))
        if found is not None and _is_finished(found):
            raise ExportError(f"{path} exists; name a prefix that holds nothing", path=str(path))
        self._state.swap(self._text(is_finished=False))
        self._state.check_conditions(self._run, is_new=found is None)
        delete_objects(before)

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        buffer = io.BytesIO()
        write(buffer)
        stem, _, suffix = name.rpartition(".")
        name = f"{stem}-{self._run}.{suffix}"
        put_new(self._path / name, buffer.getvalue())
        try:
            self._state.check_unchanged()
        except ExportError:
            # The run that has superseded this one may have ended, and would not remove the object.
            delete_objects([self._path / name])
            raise
        self._names.append(name)

    def complete(self) -> tuple[ObjectPath, ...]:
        self._state.swap(self._text(is_finished=True))
        files = tuple(self._path / name for name in self._names)
        # A run that this one has superseded may have written more.
        delete_objects(set(self._others()) - set(files))
        return files

    def _text(self, *, is_finished: bool) -> bytes:
        state = {"run": self._run, "finished": is_finished, "files": self._names if is_finished else []}
        return json.dumps(state, indent=1).encode()

    def _others(self) -> list[ObjectPath]:
        """Return the objects below the prefix, without the one that lists them."""
        store = self._path.objects
        prefix = f"{self._path.key}/"
        found = attempt(lambda: [meta["path"] for page in store.list(prefix) for meta in page], self._path)
        names = (key.removeprefix(prefix) for key in found)
        return [self._path / name for name in names if name != COMPACTION]


def _is_finished(state: bytes) -> bool:
    """True unless the state is that of a run that did not end; other content was not written by a run."""
    try:
        return json.loads(state)["finished"] is not False
    except (ValueError, TypeError, KeyError, RecursionError):
        return True
