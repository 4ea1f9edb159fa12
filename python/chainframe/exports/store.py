"""Place of an export: a local directory, or a prefix in an object store.

Both halves promise the same. What the manifest lists is stored completely; what it does not list is no part of the
export, and the next run removes it; of two runs at the same time, one has its way and the other raises `ExportError`.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from chainframe.errors import ExportError
from chainframe.exports import manifest as manifests
from chainframe.exports.directory import STAGING, LocalStore, locked_dir, verify_part
from chainframe.exports.remote import RemoteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from chainframe._objects import Location
    from chainframe.exports.manifest import Commit, Manifest, Part
    from chainframe.exports.tables import Encoding


class Store(Protocol):
    """Manifest and parts of one export."""

    @property
    def path(self) -> Location: ...

    def read(self, *, ignore_corrupt: bool = False) -> Manifest | None:
        """The manifest, or None if there is no export."""
        ...

    @property
    def has_manifest(self) -> bool: ...

    @property
    def pieces(self) -> LocalStore | None:
        """The store of the pieces of the next file, where rows can be stored before they fill it."""
        ...

    def recover(self, manifest: Manifest, encoding: Encoding) -> None:
        """Writes a file with the pieces of a run that was killed."""
        ...

    def begin(self, manifest: Manifest) -> None:
        """Stores the manifest with which a run begins, and removes what an earlier one left unlisted."""
        ...

    def write_part(self, name: str, rows: int, write: Callable[[BinaryIO], object]) -> Part: ...

    def commit(self, manifest: Manifest, commit: Commit) -> None:
        """Adds to the export: once this returns, what is listed is part of it."""
        ...

    def save(self, manifest: Manifest) -> None:
        """Stores the whole manifest."""
        ...

    def verify(self, parts: Iterable[Part]) -> None:
        """Raises `ExportError` if a file is not as it was written."""
        ...

    def check_present(self, manifest: Manifest) -> None:
        """Raises `ExportError` if a listed file is gone or has another size."""
        ...

    def check_no_foreign_files(self, *, but_parts: bool = False) -> None:
        """Raises `ExportError` if there are Parquet files that no export lists."""
        ...

    def replace_with(self, staging: Any, manifest: Manifest) -> None:  # noqa: ANN401 - the same half
        """Exchanges this export for a finished one; run again after a crash, it completes what was begun."""
        ...

    def remove_leftovers(self, manifest: Manifest) -> None:
        """Removes what a run left that was killed just after it had finished the export."""
        ...

    def discard(self) -> None:
        """Removes the export."""
        ...

    def discard_all(self) -> None:
        """Removes the export, and one that was to replace it."""
        ...


def store_at(path: Location) -> Store:
    return LocalStore(path) if isinstance(path, Path) else RemoteStore(path)


def locked(path: Location, mode: int = 0o777) -> AbstractContextManager[None]:
    """Admits one run to a directory. In an object store, each change of the manifest does so."""
    return locked_dir(path, mode) if isinstance(path, Path) else nullcontext()


def read_manifest(path: Location) -> Manifest | None:
    """State of the export at a path, or None if there is no export."""
    return manifests.local_manifest(path) if isinstance(path, Path) else RemoteStore(path).read()


def finished_manifest(path: Location) -> Manifest:
    manifest = read_manifest(path)
    if manifest is None:
        raise ExportError(f"{path} holds no export", path=str(path))
    if not manifest.finished:
        raise ExportError(f"{path} is not finished; run that export again first", path=str(path))
    return manifest


def manifest_checksum(path: Location) -> str:
    """SHA-256 of the manifest at a path."""
    return manifests.local_checksum(path) if isinstance(path, Path) else RemoteStore(path).checksum()


def verify_parts(path: Location, parts: Iterable[Part]) -> None:
    """Raises `ExportError` if a file of a finished export is not as it was written."""
    if isinstance(path, Path):
        for part in parts:
            verify_part(path, part)
        return
    store = RemoteStore(path)
    store.read()
    store.verify(parts)


def verify_content(path: Location, part: Part) -> None:
    """Raises `ExportError` if the content of a file has another checksum."""
    if isinstance(path, Path):
        verify_part(path, part)
    else:
        RemoteStore(path).verify_part(part)


def saved_rows(path: Location) -> int:
    """Number of records that an earlier run has written, also to an export that is to be replaced."""
    try:
        manifests = [read_manifest(path / STAGING), read_manifest(path)]
    except (ExportError, OSError):
        return 0
    return max(0 if manifest is None else manifest.rows for manifest in manifests)
