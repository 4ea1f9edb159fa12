"""The directory of an export: who holds it, what is durably in it, and the manifest that says so."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

from chainframe.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

VERSION = 1
PART = re.compile(r"part-\d{6,}\.parquet")
LOCK = ".lock"


@dataclass(frozen=True)
class Part:
    """One Parquet file."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass
class Manifest:
    """What an export is of, how far it is, and what there is of it."""

    NAME: ClassVar[str] = "_manifest.json"

    query: dict[str, Any]
    numbers: str
    schema: dict[str, str]
    since: list[str] | None = None
    """The newest records of the export that this one continues, by their identity."""
    head: list[str] = field(default_factory=list)
    """The newest records of this one."""
    cursor: str | None = None
    """The place in the result after the last part."""
    parts: list[Part] = field(default_factory=list)
    finished: bool = False
    complete: bool = False
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str, path: Path) -> Manifest:
        message = f"{path} is not the manifest of an export; use another directory, or say overwrite=True"
        try:
            members = json.loads(text)
            version = members.pop("version")
            parts = [Part(**part) for part in members.pop("parts")]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ExportError(message, path=str(path)) from None
        if version != VERSION:
            message = f"{path} is of version {version}, and this chainframe writes {VERSION}; use another directory"
        elif members.keys() | {"parts"} == {member.name for member in fields(cls)}:
            return cls(parts=parts, **members)
        raise ExportError(message, path=str(path))

    def refuse_other(self, found: Manifest, path: Path, advice: str, *, continued: bool = False) -> None:
        """Refuses an export of another query, naming what differs."""
        ours, theirs = self._asked(), found._asked()
        # An export that is continued may have been written in another way, and to a limit.
        free = {"numbers", "columns", "since", "max_items"} if continued else set()
        for name in dict.fromkeys([*theirs, *ours]):
            if name not in free and ours.get(name) != theirs.get(name):
                there, here = (_shown(side.get(name)) for side in (theirs, ours))
                message = f"{path} holds an export of another query: {name} is {there} there and {here} here; {advice}"
                raise ExportError(message, path=str(path))

    def _asked(self) -> dict[str, Any]:
        """What the export is of, by the names that a caller knows."""
        query = {name: value for name, value in self.query.items() if name != "arguments"}
        how = {"numbers": self.numbers, "columns": self.schema, "since": self.since}
        return {**query, **self.query["arguments"], **how}


def _shown(value: object) -> str:
    text = repr(value)
    most = 60
    return text if len(text) <= most else f"{text[:most]}..."


def read_manifest(path: Path) -> Manifest | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        text = ""
    return Manifest.from_json(text, path)


class Directory:
    """The directory, held by one export at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ExportError(f"{self.path} is a file; name a directory", path=str(self.path)) from None
        self._lock = _hold(self.path / LOCK, self.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _release(self._lock, self.path / LOCK)

    def manifest(self, *, lenient: bool) -> Manifest | None:
        """What there is; one that cannot be read is nothing to a lenient reader."""
        try:
            return read_manifest(self.path / Manifest.NAME)
        except ExportError:
            if lenient:
                return None
            raise

    def commit(self, manifest: Manifest) -> None:
        text = manifest.to_json().encode()
        self._write(Manifest.NAME, lambda file: file.write(text))

    def write_part(self, number: int, rows: int, write: Callable[[BinaryIO], object]) -> Part:
        name = f"part-{number:06}.parquet"
        self._write(name, write)
        path = self.path / name
        return Part(name=name, rows=rows, bytes=path.stat().st_size, sha256=_checksum(path))

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Under its name there is either the whole file or none, even after the machine lost its power."""
        temporary = self.path / f".{name}.tmp"
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(self.path)

    def refuse_foreign(self) -> None:
        foreign = next(self.path.glob("*.parquet"), None)
        if foreign is not None:
            message = f"{self.path} holds {foreign.name}, and no manifest that lists it; use another directory"
            raise ExportError(message, path=str(foreign))

    def sweep(self, manifest: Manifest) -> None:
        """Removes what a run left behind that did not come to its end."""
        listed = {part.name for part in manifest.parts}
        for path in self.path.iterdir():
            name = path.name
            temporary = name.startswith(".") and name.endswith(".tmp")
            of_ours = PART.fullmatch(name) or (
                temporary and (name[1:-4] == Manifest.NAME or PART.fullmatch(name[1:-4]))
            )
            if of_ours and name not in listed:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Removes what exports put there. The manifest goes first, since it says that the rest is there."""
        (self.path / Manifest.NAME).unlink(missing_ok=True)
        self.sweep(Manifest(query={}, numbers="", schema={}))

    def verify(self, manifest: Manifest) -> None:
        for part in manifest.parts:
            path = self.path / part.name
            if not path.exists():
                problem = "is missing"
            elif path.stat().st_size != part.bytes or _checksum(path) != part.sha256:
                problem = "is damaged: it is not what was written"
            else:
                continue
            raise ExportError(f"{path} {problem}; restore it, or say overwrite=True to start over", path=str(path))


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(directory: Path) -> None:
    """Brings names to the disk, where a system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems of networks know no such thing.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _hold(path: Path, directory: Path) -> int:
    """Takes the lock. It ends with its process, however that ends; only its file then stays, for the next to take."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _try_lock(descriptor)
            # It may have been removed by its holder just before it was ours.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            if error.errno not in {errno.EAGAIN, errno.EACCES, errno.EDEADLK}:
                raise
            message = f"{directory} is being written by another export; wait until it is done"
            raise ExportError(message, path=str(directory), retryable=True) from None
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int, path: Path) -> None:
        os.close(descriptor)
        # Another may have opened it by now, and an open file cannot be removed.
        try:
            path.unlink(missing_ok=True)
        except PermissionError:
            return
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int, path: Path) -> None:
        path.unlink(missing_ok=True)
        os.close(descriptor)
