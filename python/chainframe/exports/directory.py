"""Local directory of an export: its lock, and what is durably in it.

Files are written under a temporary name, synced and renamed, so that under a file's name there is the complete file or
none. What the manifest does not list is removed by the next run. A symbolic link in place of a directory is refused
when its `LocalStore` is made, before anything below it is read, written or removed.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import sys
import uuid
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, Self, TypeVar

from chainframe._paths import check_file, mode_of, refuse_link
from chainframe.errors import ExportError
from chainframe.exports.locks import acquire_lock, marked_as_written, release_lock, remove_if_abandoned
from chainframe.exports.manifest import DAMAGED, PART, Manifest, Part, damaged, local_manifest, part_name, write_members
from chainframe.exports.pieces import PieceFile
from chainframe.exports.tables import write_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from io import BufferedWriter
    from pathlib import Path

    import pyarrow as pa

    from chainframe.exports.manifest import Commit
    from chainframe.exports.tables import Encoding

P = ParamSpec("P")
T = TypeVar("T")

LOCK = ".lock"
STAGING = ".overwrite"
"""Directory for an export that is to replace another when it is complete."""
ATTEMPTS = 20
"""Attempts to make a directory that others remove; runs that end at such a moment are few."""
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")
MAX_NAMED = 120
"""Bytes of a name that is a part of a temporary one. Some file systems take names of 143 bytes."""


def _reported(method: Callable[P, T]) -> Callable[P, T]:
    """Raises errors of the disk as `ExportError` with their path, and one if the directory is another than before."""

    @functools.wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        store: Any = arguments[0]
        try:
            store.check_place()
            return method(*arguments, **options)
        except OSError as error:
            raise disk_error(error, store.path) from None

    return call


def disk_error(error: OSError, path: Path) -> ExportError:
    named = str(error.filename2 or error.filename or path)
    kept = "; what was committed before is kept" if path.exists() else ""
    return ExportError(f"{named}: {error.strerror or error}{kept}", path=named, errno=error.errno)


@contextmanager
def locked_dir(path: Path, mode: int = 0o777) -> Generator[None]:
    """Creates the directory and holds its lock, which one export has at a time."""
    refuse_link(path)
    try:
        lock = _make_and_lock(path, mode)
    except FileExistsError:
        raise ExportError(f"{path} is a file; name a directory", path=str(path)) from None
    except OSError as error:
        raise disk_error(error, path) from None
    try:
        yield
    finally:
        release_lock(lock, path / LOCK)


def _make_and_lock(path: Path, mode: int) -> int:
    message = f"{path} is locked by another export; try again when it has ended"
    for _ in range(ATTEMPTS):
        _make_durably(path, mode)
        # The directory is gone if a run that has ended removed it in between.
        with suppress(FileNotFoundError):
            return acquire_lock(path / LOCK, path, message)
    # In some directories, such as those of processes in /proc, no file can be created.
    return acquire_lock(path / LOCK, path, message)


class LocalStore:
    """Manifest, journal, pieces and parts of one export in a directory that is locked."""

    def __init__(self, path: Path) -> None:
        refuse_link(path)
        self.path = path
        self._journal: BinaryIO | None = None
        self._pieces = PieceFile(path)
        self._place: tuple[int, int] | None = None
        """Device and number of the directory, once it exists."""

    def check_place(self) -> None:
        """Raises `ExportError` if the directory was moved, and so the files here are those of another export."""
        place = None
        with suppress(FileNotFoundError):
            status = self.path.stat()
            place = (status.st_dev, status.st_ino)
        self._place = self._place or place
        if place != self._place:
            self.close()
            message = (
                f"{self.path} was moved or removed while an export wrote to it; move it back, or run the export again"
            )
            raise ExportError(message, path=str(self.path))

    @_reported
    def read(self, *, ignore_corrupt: bool = False) -> Manifest | None:
        try:
            return local_manifest(self.path)
        except ExportError:
            if ignore_corrupt:
                return None
            raise

    @property
    def has_manifest(self) -> bool:
        return os.path.lexists(self.path / Manifest.NAME)

    @property
    def pieces(self) -> Self:
        return self

    @_reported
    def add_piece(self, manifest: Manifest, commit: Commit, verdicts: dict[str, Any], table: pa.Table) -> None:
        """Stores rows, the state after them, and the verdicts that changed since the last file."""
        self._pieces.add(manifest, commit, verdicts, table)

    def stored_rows(self) -> Iterator[pa.Table]:
        """Rows of all pieces for the file."""
        return self._pieces.tables()

    @_reported
    def recover(self, manifest: Manifest, encoding: Encoding) -> None:
        found = self._pieces.recovered(manifest)
        if found is None:
            return
        name = part_name(len(manifest.parts))
        part = self.write_part(name, found.rows, lambda file: write_pieces(found.tables, file, encoding))
        found.apply(manifest, [vars(part)])
        self.save(manifest)

    @_reported
    def begin(self, manifest: Manifest) -> None:
        _make_durably(self.path)
        self._replace_manifest(manifest)
        self._pieces.begin(manifest)
        self._remove_unlisted(manifest)

    def remove_leftovers(self, manifest: Manifest) -> None:
        """Removes what a run left that was killed just after it had finished the export, unless all is read-only."""
        with suppress(OSError):
            (self.path / Manifest.JOURNAL).unlink(missing_ok=True)
            self._pieces.remove()
            self._remove_unlisted(manifest)

    @_reported
    def write_part(self, name: str, rows: int, write: Callable[[BinaryIO], object]) -> Part:
        self._write(name, write)
        path = self.path / name
        return Part(name=name, rows=rows, bytes=path.stat().st_size, sha256=_checksum(path))

    def commit(self, manifest: Manifest, commit: Commit) -> None:
        change = manifest.change(commit)
        self._append(change)
        self._pieces.remove()
        manifest.apply(change)

    @_reported
    def _append(self, change: dict[str, Any]) -> None:
        if self._journal is None:
            self._journal = (self.path / Manifest.JOURNAL).open("xb")
            sync_directory(self.path)
        before = self._journal.tell()
        try:
            write_members(self._journal, change)
            self._journal.write(b"\n")
            self._journal.flush()
            os.fsync(self._journal.fileno())
        except OSError:
            # No line may follow an incomplete one.
            with suppress(OSError):
                os.ftruncate(self._journal.fileno(), before)
            self.close()
            raise

    @_reported
    def save(self, manifest: Manifest) -> None:
        """Writes the whole manifest, which replaces the journal."""
        self.close()
        self._replace_manifest(manifest)

    def close(self) -> None:
        if self._journal is not None:
            journal = self._journal
            self._journal = None
            with suppress(OSError):
                journal.close()

    def _replace_manifest(self, manifest: Manifest) -> None:
        self._write(Manifest.NAME, manifest.write)
        self._pieces.remove()
        (self.path / Manifest.JOURNAL).unlink(missing_ok=True)

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        with atomic_write(self.path / name) as file:
            write(file)

    @_reported
    def check_no_foreign_files(self, *, but_parts: bool = False) -> None:
        """Raises `ExportError` if there are Parquet files that no export lists; `but_parts` are to be replaced.

        Those of partitions, too, such as `compact` makes: readers of the directory would read them as well.
        """
        for path in chain(self.path.glob("*.parquet"), self.path.glob("*=*/*.parquet")):
            name = path.relative_to(self.path)
            if not (but_parts and PART.fullmatch(str(name))):
                message = f"{self.path} holds {name}, and no manifest that lists it; use another directory"
                raise ExportError(message, path=str(path))

    @_reported
    def _remove_unlisted(self, manifest: Manifest | None) -> None:
        """Removes files of an interrupted run that the manifest does not list; all of them without a manifest."""
        if not self.path.is_dir():
            return
        listed = {part.name for part in manifest.files} if manifest else set()
        for path in self.path.iterdir():
            name = path.name
            temporary = TEMPORARY.fullmatch(name)
            is_ours = PART.fullmatch(temporary[1] if temporary else name)
            if (is_ours and name not in listed) or (temporary and temporary[1] == Manifest.NAME):
                path.unlink(missing_ok=True)

    @_reported
    def _remove_files(self) -> None:
        """Removes what exports put into the directory: pieces, then the manifest, which lists the rest."""
        self._pieces.remove()
        for name in (Manifest.NAME, Manifest.JOURNAL):
            (self.path / name).unlink(missing_ok=True)
        self._remove_unlisted(None)

    def verify(self, parts: Iterable[Part]) -> None:
        for part in parts:
            verify_part(self.path, part)

    def check_present(self, manifest: Manifest) -> None:
        for part in manifest.files:
            verify_part(self.path, part, by_checksum=False)

    @_reported
    def replace_with(self, staging: LocalStore, manifest: Manifest) -> None:
        _keep_mode(staging.path / Manifest.NAME, self.path / Manifest.NAME)
        self._pieces.remove()
        # In between readers find no manifest, and so no finished export.
        (self.path / Manifest.NAME).unlink(missing_ok=True)
        sync_directory(self.path)
        for part in manifest.files:
            with suppress(FileNotFoundError):
                _keep_mode(staging.path / part.name, self.path / part.name)
                (staging.path / part.name).replace(self.path / part.name)
        (self.path / Manifest.JOURNAL).unlink(missing_ok=True)
        self._remove_unlisted(manifest)
        sync_directory(self.path)
        (staging.path / Manifest.NAME).replace(self.path / Manifest.NAME)
        sync_directory(self.path)
        staging.discard()

    def discard_all(self) -> None:
        LocalStore(self.path / STAGING).discard()
        self._remove_files()

    @_reported
    def discard(self) -> None:
        """Removes the export and its directory, unless other files are in it."""
        self._remove_files()
        with suppress(OSError):
            self.path.rmdir()
            self._place = None


def verify_part(directory: Path, part: Part, *, by_checksum: bool = True) -> None:
    """Raises `ExportError` if a file is not as the manifest lists it."""
    path = directory / part.name
    try:
        if not path.is_file() or path.is_symlink():
            problem = "is missing"
        elif path.stat().st_size != part.bytes or (by_checksum and _checksum(path) != part.sha256):
            problem = DAMAGED
        else:
            return
    except OSError as error:
        raise disk_error(error, path) from None
    raise damaged(path, problem)


@contextmanager
def atomic_write(path: Path) -> Generator[BufferedWriter]:
    """A file that replaces `path` when the block ends, with its permissions, and is removed if the block raises.

    Its name is random, and it is created: what another user may have put under a name that can be guessed is not used.
    """
    check_file(path)
    mode = mode_of(path)
    temporary = path.with_name(_temporary_name(path.name))
    try:
        with ExitStack() as named:
            with open(
                temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o666 if mode is None else mode)
            ) as file:
                named.enter_context(marked_as_written(file.fileno()))
                if mode is not None:
                    _set_mode(file, mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def remove_temporaries(path: Path) -> None:
    """Removes what runs that were killed left of a file that they were to replace."""
    # Permission to list the directory is not needed otherwise.
    with suppress(OSError):
        for entry in path.parent.iterdir():
            temporary = TEMPORARY.fullmatch(entry.name)
            if temporary is not None and temporary[1] == _named(path.name):
                remove_if_abandoned(entry)


def _temporary_name(name: str) -> str:
    return f".{_named(name)}.{uuid.uuid4().hex[:16]}.tmp"


def _named(name: str) -> str:
    """Return the part of a temporary name that is the same for a file, and not too long for the file system."""
    return name if len(os.fsencode(name)) <= MAX_NAMED else hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _set_mode(file: BufferedWriter, mode: int) -> None:
    # Not by its name, which another user of the directory may have replaced by a link. Windows has no modes.
    if sys.platform != "win32":
        os.fchmod(file.fileno(), mode)


def _keep_mode(new: Path, old: Path) -> None:
    mode = mode_of(old)
    if mode is not None and mode_of(new) is not None:
        new.chmod(mode)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_durably(path: Path, mode: int = 0o777) -> None:
    """Creates a directory, and syncs the names of those that are new."""
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(mode, parents=True, exist_ok=True)
    for directory in missing:
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Makes changes of names in a directory durable, where the system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot.
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)
