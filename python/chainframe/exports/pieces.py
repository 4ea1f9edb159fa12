"""Rows of an export that are in no part yet, stored so that a process that is killed need not fetch them again.

Pieces are appended to one file beside the manifest: a line with the lengths and the checksum of what follows, the state
after the rows, and the rows. The last state is that after all of them. They are not synced: what a power loss leaves of
them is found by the checksums, and the rest is fetched again.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from chainframe._paths import read_regular
from chainframe._reports import merged_verdicts
from chainframe.exports.manifest import DAMAGED, MALFORMED, damaged, parsed, write_members
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    import pyarrow as pa

    from chainframe.exports.manifest import Commit, Manifest

MAX_HEAD = 200
"""Bytes of the first line of a piece, at most."""


@dataclass
class Recovered:
    """Rows of a run that was killed, and the change of the manifest that they are."""

    tables: Callable[[], Iterator[pa.Table]]
    rows: int
    change: dict[str, Any]
    verdicts: dict[str, list[Any]]
    """Verdicts that have changed since the last part, with the records and requests since."""

    def apply(self, manifest: Manifest, parts: list[dict[str, Any]]) -> None:
        """Add the parts that have the rows, and the state after them, to the manifest."""
        manifest.apply({**self.change, "parts": parts})
        if self.verdicts["argument"]:
            earlier = manifest.report.get("verdicts")
            manifest.report["verdicts"] = merged_verdicts([earlier, self.verdicts]) if earlier else self.verdicts


class PieceFile:
    """The pieces of the next part of an export."""

    NAME = "_pieces.data"

    def __init__(self, directory: Path) -> None:
        self._path = directory / self.NAME
        self._file: BinaryIO | None = None
        self._rows = 0
        self._request = ""
        """Digest of the request of the export."""

    def begin(self, manifest: Manifest) -> None:
        """Begin a run of an export."""
        self.remove()
        self._request = _digest(manifest)

    def add(self, manifest: Manifest, commit: Commit, verdicts: dict[str, Any], table: pa.Table) -> None:
        if self._file is None:
            self._file = self._path.open("x+b")
        state = BytesIO()
        write_members(state, {**manifest.change(commit), "request": self._request, "verdicts": verdicts})
        rows = BytesIO()
        with load("pyarrow").ipc.new_stream(rows, table.schema) as stream:
            stream.write_table(table)
        checksum = hashlib.sha256(state.getbuffer())
        checksum.update(rows.getbuffer())
        head = json.dumps([state.tell(), rows.tell(), checksum.hexdigest()])
        for part in (head.encode() + b"\n", state.getbuffer(), rows.getbuffer()):
            self._file.write(part)
        self._file.flush()
        self._rows += table.num_rows

    def tables(self) -> Iterator[pa.Table]:
        """The rows of the pieces of this run."""
        found = 0
        for _, rows in _pieces(self._file) if self._file is not None else ():
            table = _table(rows)
            found += table.num_rows
            yield table
        if found != self._rows:
            raise damaged(self._path, DAMAGED)

    def recovered(self, manifest: Manifest) -> Recovered | None:
        """The pieces that a run left that was killed, or None if none follow the parts of the manifest."""
        try:
            content = read_regular(self._path)
        except FileNotFoundError:
            return None
        last = deque((state for state, _ in _pieces(BytesIO(content))), maxlen=1)
        try:
            return _recovered(content, last[0], manifest) if last else None
        except MALFORMED:
            # Another version wrote them, or they were edited.
            return None

    def remove(self) -> None:
        """Remove the pieces. Those that cannot be removed are of an earlier state, and so are ignored."""
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
            self._path.unlink(missing_ok=True)
        self._file = None
        self._rows = 0


def _recovered(content: bytes, state: bytes, manifest: Manifest) -> Recovered | None:
    change = parsed(state)
    verdicts = change.pop("verdicts")
    if change.pop("request") != _digest(manifest) or change["revision"] != manifest.revision + 1:
        return None
    rows = sum(table.num_rows for table in _tables(content))
    found = Recovered(partial(_tables, content), rows, change, verdicts)
    continued = replace(manifest)
    found.apply(continued, [])
    continued.check_kinds()
    return found


def _pieces(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """State and rows of each piece. A crash may leave any bytes in the piece that was being written."""
    file.seek(0)
    while head := file.readline(MAX_HEAD):
        try:
            state_size, size, checksum = json.loads(head)
            state, rows = file.read(state_size), file.read(size)
        except MALFORMED:
            return
        if hashlib.sha256(state + rows).hexdigest() != checksum:
            return
        yield state, rows


def _tables(content: bytes) -> Iterator[pa.Table]:
    return (_table(rows) for _, rows in _pieces(BytesIO(content)))


def _table(rows: bytes) -> pa.Table:
    arrow: Any = load("pyarrow")
    table: pa.Table = arrow.ipc.open_stream(arrow.py_buffer(rows)).read_all()
    return table


def _digest(manifest: Manifest) -> str:
    """Checksum of the request of an export."""
    settle = manifest.settled and manifest.settled.settle
    request = json.dumps([manifest.query, manifest.numbers, manifest.schema, manifest.since, settle], sort_keys=True)
    return hashlib.sha256(request.encode()).hexdigest()
