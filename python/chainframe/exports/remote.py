"""Export in an object store, without locks and without a local disk.

Every change of an export is a conditional put of its manifest, which the store accepts only if the manifest is the one
that this run read or wrote last. So the put is lock and fence at once: a run that begins puts a manifest with a name of
its own, and an earlier run that is still alive fails at its next change.

- A part is put under a name that no other run uses, then the manifest that lists it. What a killed run left unlisted is
  removed by the next: those objects that were there before its first put of the manifest, since what is there later may
  belong to a run that came after it.
- A put that is still under way when its run has ended changes nothing: the manifest has changed, so the store refuses
  it; or a part comes to be that nothing lists, and a later run removes it.
"""

from __future__ import annotations

import hashlib
import io
import re
import uuid
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, BinaryIO

from chainframe._objects import attempt
from chainframe.errors import ExportError
from chainframe.exports.conditional import COMPACTION, FencedObject, delete_objects, get_object, put_new, superseded
from chainframe.exports.directory import STAGING
from chainframe.exports.manifest import DAMAGED, Manifest, Part, damaged, parsed, reported_as_corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from chainframe._objects import ObjectPath
    from chainframe.exports.manifest import Commit
    from chainframe.exports.tables import Encoding

OURS = re.compile(r"(part|_corrections|_conditions)(-[0-9]{6,})?-[0-9a-f]{12}\.(parquet|data|tmp)")
"""Names of objects that runs make, beside the manifest."""


class RemoteStore:
    """Manifest and parts of one export below a prefix."""

    pieces = None
    """Each would be two requests to the store."""

    def __init__(self, path: ObjectPath) -> None:
        self.path = path
        self._objects = path.objects
        self._run = uuid.uuid4().hex[:12]
        self._stored = FencedObject(path / Manifest.NAME)
        self._was_read = False
        self._e_tags: dict[str, str] = {}
        """Versions of the parts as they were put, which change if anything replaces them."""

    def read(self, *, ignore_corrupt: bool = False) -> Manifest | None:
        text = self._stored.read()
        self._was_read = True
        if text is None:
            return None
        try:
            with reported_as_corrupt(self._stored.path):
                state = parsed(text)
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
        return hashlib.sha256(manifest.to_json() if manifest else b"").hexdigest()

    @property
    def has_manifest(self) -> bool:
        self.read(ignore_corrupt=True)
        return self._stored.stored is not None

    def recover(self, manifest: Manifest, encoding: Encoding) -> None:
        """Nothing: there are no pieces."""

    def begin(self, manifest: Manifest) -> None:
        is_new = self._stored.stored is None
        before = self._listing()
        self._swap(manifest)
        self._stored.check_conditions(self._run, is_new=is_new)
        self._remove_unlisted(before, manifest)

    def remove_leftovers(self, manifest: Manifest) -> None:
        # A caller with permission to read only has nothing to remove.
        with suppress(ExportError):
            before = self._listing()
            if self._unlisted(before, manifest):
                self._swap(manifest)
            self._remove_unlisted(before, manifest)

    def write_part(self, name: str, rows: int, write: Callable[[BinaryIO], object]) -> Part:
        buffer = io.BytesIO()
        write(buffer)
        data = buffer.getvalue()
        stem, suffix = name.split(".")
        name = f"{stem}-{self._run}.{suffix}"
        stored = put_new(self.path / name, data)
        self._e_tags[name] = stored.get("e_tag", "")
        return Part(name=name, rows=rows, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def commit(self, manifest: Manifest, commit: Commit) -> None:
        change = manifest.change(commit)
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
            self._check_size(part, None if meta is None else meta["size"])
            if meta is not None and meta["e_tag"] != self._e_tags.get(part.name):
                self.verify_part(part)

    def verify_part(self, part: Part) -> None:
        found = get_object(self.path / part.name)
        self._check_size(part, None if found is None else len(found.data))
        if found is not None and hashlib.sha256(found.data).hexdigest() != part.sha256:
            raise damaged(self.path / part.name, DAMAGED)

    def check_present(self, manifest: Manifest) -> None:
        found = self._listing()
        for part in manifest.files:
            meta = found.get(part.name)
            self._check_size(part, None if meta is None else meta["size"])

    def _check_size(self, part: Part, size: int | None) -> None:
        if size != part.bytes:
            # The export of which it is a part may have been replaced.
            self._stored.check_unchanged()
            raise damaged(self.path / part.name, "is missing" if size is None else DAMAGED)

    def check_no_foreign_files(self, *, but_parts: bool = False) -> None:
        del but_parts
        for name in self._listing():
            # Another run may have begun since the manifest was read.
            if name == COMPACTION or (name.endswith(".parquet") and not OURS.fullmatch(name)):
                path = str(self.path / name)
                message = f"{self.path} holds {name}, and no manifest that lists it; use another directory"
                raise ExportError(message, path=path)

    def replace_with(self, staging: RemoteStore, manifest: Manifest) -> None:
        if not self._was_read:
            self.read(ignore_corrupt=True)
        # Read after this manifest: if another run has put the new export in its place meanwhile, the swap fails.
        if staging.read() is None:
            raise superseded(self.path)
        before = self._listing()
        for part in manifest.files:
            self._copy_from(staging, part.name)
        found = self._listing()
        self._e_tags = {part.name: found[part.name]["e_tag"] for part in manifest.files if part.name in found}
        self.check_present(manifest)
        self._swap(manifest)
        self._delete(self._unlisted(before, manifest))
        staging.discard()

    def _copy_from(self, staging: RemoteStore, name: str) -> None:
        source = staging.path / name
        target = self.path / name
        if attempt(lambda: self._objects.copy(source.key, target.key), target, missing=source) is not None:
            staging._stored.check_unchanged()

    def discard(self) -> None:
        # Listed first: what comes later belongs to a run that began after this.
        before = self._listing()
        if Manifest.NAME in before:
            self._delete([Manifest.NAME])
        self._delete(self._unlisted(before, None))
        self._stored.stored = None
        self._was_read = True

    def discard_all(self) -> None:
        RemoteStore(self.path / STAGING).discard()
        self.discard()

    # Changes of the manifest.

    def _swap(self, manifest: Manifest) -> None:
        """Puts the manifest in place of the one that this run read or wrote last, or raises `ExportError`."""
        listed = {part.name for part in manifest.files}
        e_tags = {name: tag for name, tag in self._e_tags.items() if name in listed}
        self._stored.swap(manifest.to_json(run=self._run, e_tags=e_tags))

    # Objects.

    def _listing(self) -> dict[str, Any]:
        """Names directly below the prefix, with their size and version."""
        found = attempt(lambda: self._objects.list_with_delimiter(f"{self.path.key}/"), self.path)
        return {meta["path"].rpartition("/")[2]: meta for meta in found["objects"]}

    def _unlisted(self, names: Iterable[str], manifest: Manifest | None) -> list[str]:
        listed = {part.name for part in manifest.files} if manifest else set()
        return [name for name in names if OURS.fullmatch(name) and name not in listed]

    def _remove_unlisted(self, before: Iterable[str], manifest: Manifest) -> None:
        """Removes what is not listed, of the names that were there before the manifest was put."""
        self._delete(self._unlisted(before, manifest))
        if self.path.name != STAGING:
            RemoteStore(self.path / STAGING)._remove_unless_begun()  # noqa: SLF001 - of this class

    def _remove_unless_begun(self) -> None:
        before = self._listing()
        if before and not self.has_manifest:
            self._delete(self._unlisted(before, None))

    def _delete(self, names: Iterable[str]) -> None:
        delete_objects(self.path / name for name in names)
