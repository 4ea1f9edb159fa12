"""Export in an object store, without locks and without a local disk.

Every change of an export is a conditional put of its manifest, which the store accepts only if the manifest is the one
that this run read or wrote last. So the put is lock and fence at once: a run that begins puts a manifest with a name of
its own, and an earlier run that is still alive fails at its next change.

- A part is put under a name that no other run uses, then the manifest that lists it. What a killed run left unlisted is
  removed by the next: those objects that were there before its first put of the manifest, since what is there later may
  belong to a run that came after it.
- A put whose response was lost is resolved by reading what is there. An object under the name of this run, or a
  manifest with its text, is its own.
- A put that is still under way when its run has ended changes nothing: the manifest has changed, so the store refuses
  it; or a part comes to be that nothing lists, and a later run removes it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import uuid
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from chainframe._objects import attempt, store_error
from chainframe.errors import ExportError
from chainframe.exports.directory import STAGING
from chainframe.exports.manifest import HINTS, Manifest, Part, reported_as_corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from chainframe._objects import ObjectPath
    from chainframe.exports.manifest import Progress

ATTEMPTS = 3
"""Puts of one object; each of them repeats requests that failed, as obstore does."""
OURS = re.compile(r"(part|_corrections|_conditions)(-[0-9]{6,})?-[0-9a-f]{12}\.(parquet|data|tmp)")
"""Names of objects that runs make, beside the manifest."""
STALE = {"e_tag": '"00000000000000000000000000000000"', "version": "1"}
"""Version that no object has."""


@dataclass(frozen=True)
class _Object:
    data: bytes
    version: dict[str, str]


class RemoteStore:
    """Manifest and parts of one export below a prefix."""

    def __init__(self, path: ObjectPath) -> None:
        self.path = path
        self._objects = path.objects
        self._run = uuid.uuid4().hex[:12]
        self._stored: _Object | None = None
        """The manifest that this run read or wrote last; None if there was none."""
        self._was_read = False
        self._e_tags: dict[str, str] = {}
        """Versions of the parts as they were put, which change if anything replaces them."""
        self._is_superseded = False

    def read(self, *, ignore_corrupt: bool = False) -> Manifest | None:
        path = self.path / Manifest.NAME
        self._stored, self._was_read = self._get(path), True
        if self._stored is None:
            return None
        try:
            with reported_as_corrupt(path):
                state = json.loads(self._stored.data.decode())
                state.pop("run")
                e_tags = dict(state.pop("e_tags"))
                manifest = Manifest.from_state(state)
        except ExportError:
            if ignore_corrupt:
                return None
            raise
        self._e_tags = e_tags
        return manifest

    def checksum(self) -> str:
        """SHA-256 of the manifest without what differs between runs of the same export."""
        manifest = self.read()
        return hashlib.sha256(manifest.to_json().encode() if manifest else b"").hexdigest()

    @property
    def has_manifest(self) -> bool:
        self.read(ignore_corrupt=True)
        return self._stored is not None

    def begin(self, manifest: Manifest) -> None:
        is_new = self._stored is None
        before = self._listing()
        self._swap(manifest)
        if not self._has_conditions():
            self._check_not_superseded()
            if is_new:
                self._delete([Manifest.NAME])
            problem = "the store ignores the conditions of a put (If-None-Match, If-Match)"
            message = f"{self.path}: {problem}; write to a local directory, then copy it"
            raise ExportError(message, path=str(self.path))
        self._remove_orphans(before, manifest)

    def remove_leftovers(self, manifest: Manifest) -> None:
        # A caller with permission to read only has nothing to remove.
        with suppress(ExportError):
            before = self._listing()
            if self._orphans(before, manifest):
                self._swap(manifest)
            self._remove_orphans(before, manifest)

    def write_part(self, name: str, rows: int, write: Callable[[BinaryIO], object]) -> Part:
        buffer = io.BytesIO()
        write(buffer)
        data = buffer.getvalue()
        stem, suffix = name.split(".")
        name = f"{stem}-{self._run}.{suffix}"
        stored = self._put_new(self.path / name, data)
        self._e_tags[name] = stored.get("e_tag", "")
        return Part(name=name, rows=rows, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def commit(self, manifest: Manifest, progress: Progress) -> None:
        change = manifest.change(progress)
        changed = copy(manifest)
        changed.apply(change)
        self._swap(changed)
        manifest.apply(change)

    def save(self, manifest: Manifest) -> None:
        self._swap(manifest)

    def verify(self, parts: Iterable[Part]) -> None:
        """Compares sizes and versions; only a file with another version is read."""
        found = self._listing()
        for part in parts:
            meta = found.get(part.name)
            if meta is None or meta["size"] != part.bytes or meta["e_tag"] != self._e_tags.get(part.name):
                self._check_size(part, meta)
                self.verify_part(part)

    def verify_part(self, part: Part) -> None:
        found = self._get(self.path / part.name)
        self._check_size(part, None if found is None else {"size": len(found.data)})
        if found is not None and hashlib.sha256(found.data).hexdigest() != part.sha256:
            raise self._damaged(part, "is damaged: its checksum differs from the manifest's")

    def check_present(self, manifest: Manifest) -> None:
        found = self._listing()
        for part in manifest.files:
            self._check_size(part, found.get(part.name))

    def _check_size(self, part: Part, meta: Any) -> None:  # noqa: ANN401 - of obstore
        problem = "is missing" if meta is None else "is damaged: its checksum differs from the manifest's"
        if meta is None or meta["size"] != part.bytes:
            # The export of which it is a part may have been replaced.
            self._check_not_superseded()
            raise self._damaged(part, problem)

    def _damaged(self, part: Part, problem: str) -> ExportError:
        path = str(self.path / part.name)
        return ExportError(f"{path} {problem}; restore it, or export again", path=path, hints=HINTS)

    def check_no_foreign_files(self, *, but_parts: bool = False) -> None:
        del but_parts
        for name in self._listing():
            # Another run may have begun since the manifest was read.
            if name.endswith(".parquet") and not OURS.fullmatch(name):
                path = str(self.path / name)
                message = f"{self.path} holds {name}, and no manifest that lists it; use another directory"
                raise ExportError(message, path=path)

    def replace_with(self, staging: RemoteStore, manifest: Manifest) -> None:
        if not self._was_read:
            self.read(ignore_corrupt=True)
        # Read after this manifest: if another run has put the new export in its place meanwhile, the swap fails.
        if staging.read() is None:
            raise self._superseded()
        before = self._listing()
        for part in manifest.files:
            self._copy_from(staging, part.name)
        found = self._listing()
        self._e_tags = {part.name: found[part.name]["e_tag"] for part in manifest.files if part.name in found}
        self.check_present(manifest)
        self._swap(manifest)
        self._delete(self._orphans(before, manifest))
        staging.discard()

    def _copy_from(self, staging: RemoteStore, name: str) -> None:
        source, target = staging.path / name, self.path / name
        if attempt(lambda: self._objects.copy(source.key, target.key), target, missing=source) is not None:
            staging._check_not_superseded()

    def discard(self) -> None:
        # Listed first: what comes later belongs to a run that began after this.
        before = self._listing()
        if Manifest.NAME in before:
            self._delete([Manifest.NAME])
        self._delete(self._orphans(before, None))
        self._stored, self._was_read = None, True

    def discard_all(self) -> None:
        RemoteStore(self.path / STAGING).discard()
        self.discard()

    # Changes of the manifest.

    def _swap(self, manifest: Manifest) -> None:
        """Puts the manifest in place of the one that this run read or wrote last, or raises `ExportError`."""
        if self._is_superseded:
            raise self._superseded()
        listed = {part.name for part in manifest.files}
        e_tags = {name: tag for name, tag in self._e_tags.items() if name in listed}
        text = manifest.to_json(run=self._run, e_tags=e_tags).encode()
        if self._stored is not None and text == self._stored.data:
            return
        path = self.path / Manifest.NAME
        expected = None if self._stored is None else self._stored.version
        problem = ExportError()
        for _ in range(ATTEMPTS):
            try:
                self._stored = _Object(text, self._put(path, text, expected))
            except Exception as error:  # noqa: BLE001 - obstore raises errors of several classes
                problem = store_error(error, path)
            else:
                return
            found = self._get(path)
            if found is not None and found.data == text:
                self._stored = found
                return
            if not is_same(None if found is None else found.version, expected):
                self._is_superseded = True
                raise self._superseded()
        raise problem

    def _superseded(self) -> ExportError:
        return superseded(self.path)

    def _check_not_superseded(self) -> None:
        found = self._get(self.path / Manifest.NAME)
        if found is None or self._stored is None or found.data != self._stored.data:
            raise self._superseded()

    def _has_conditions(self) -> bool:
        """True if the store refuses a put whose condition does not hold. A later run may remove the object of it."""
        probe = self.path / f"_conditions-{self._run}.tmp"
        self._put_new(probe, b"")
        are_refused = all(self._is_refused(probe, mode) for mode in ("create", STALE))
        self._delete([probe.name])
        return are_refused

    def _is_refused(self, probe: ObjectPath, mode: Any) -> bool:  # noqa: ANN401 - of obstore
        put = attempt(lambda: self._objects.put(probe.key, b"", mode=mode, use_multipart=False), probe, refused=None)
        return put is None

    # Objects.

    def _put(self, path: ObjectPath, data: bytes, expected: dict[str, str] | None) -> dict[str, str]:
        mode = "create" if expected is None else expected
        return version_of(self._objects.put(path.key, data, mode=mode, use_multipart=False))

    def _put_new(self, path: ObjectPath, data: bytes) -> dict[str, str]:
        """Puts an object under a name that only this run uses; returns its version."""
        problem = ExportError()
        for _ in range(ATTEMPTS):
            try:
                return self._put(path, data, None)
            except Exception as error:  # noqa: BLE001 - obstore raises errors of several classes
                problem = store_error(error, path)
            found = self._get(path)
            if found is not None and found.data == data:
                return found.version
        raise problem

    def _get(self, path: ObjectPath) -> _Object | None:
        found = attempt(lambda: self._objects.get(path.key), path, missing=None)
        return None if found is None else _Object(bytes(found.bytes()), version_of(found.meta))

    def _listing(self) -> dict[str, Any]:
        """Names directly below the prefix, with their size and version."""
        found = attempt(lambda: self._objects.list_with_delimiter(f"{self.path.key}/"), self.path)
        return {meta["path"].rpartition("/")[2]: meta for meta in found["objects"]}

    def _orphans(self, names: Iterable[str], manifest: Manifest | None) -> list[str]:
        listed = {part.name for part in manifest.files} if manifest else set()
        return [name for name in names if OURS.fullmatch(name) and name not in listed]

    def _remove_orphans(self, before: Iterable[str], manifest: Manifest) -> None:
        """Removes what is not listed, of the names that were there before the manifest was put."""
        self._delete(self._orphans(before, manifest))
        if self.path.name != STAGING:
            RemoteStore(self.path / STAGING)._remove_unless_begun()  # noqa: SLF001 - of this class

    def _remove_unless_begun(self) -> None:
        before = self._listing()
        if before and not self.has_manifest:
            self._delete(self._orphans(before, None))

    def _delete(self, names: list[str]) -> None:
        keys = [(self.path / name).key for name in names]
        if keys and attempt(partial(self._objects.delete, keys), self.path, missing=keys) is not None:
            # Some stores refuse to remove what is not there, since another run has removed it.
            for key in keys:
                attempt(partial(self._objects.delete, key), self.path, missing=None)


def superseded(path: ObjectPath) -> ExportError:
    message = f"{path} was changed by another export; try again when it has ended"
    return ExportError(message, path=str(path), retryable=True)


def version_of(meta: Any) -> dict[str, str]:  # noqa: ANN401 - of obstore
    """Returns the condition of a put that replaces this object: stores compare one of both."""
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def is_same(one: dict[str, str] | None, other: dict[str, str] | None) -> bool:
    if one is None or other is None:
        return one is other
    name = "e_tag" if "e_tag" in one and "e_tag" in other else "version"
    return one.get(name) == other.get(name)
