"""`_manifest.json`: the state of an export, and the journal of its changes while it runs.

The manifest is written when a run begins and when it ends, complete or not. In between each commit appends one line to
`_journal.jsonl`: what changed, not the whole state, so that the bytes written grow with the number of files and not
with its square. A line that a crash cut short is ignored: its files are removed and fetched again.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from chainframe import _native
from chainframe._native import Hint, _Positions
from chainframe._paths import read_regular
from chainframe.errors import ExportError
from chainframe.exports.differences import differing, shown
from chainframe.exports.kinds import KINDS, is_count, is_flag, is_height

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from chainframe._objects import Location

VERSION = 1
# Made once: `json.dumps` with a default makes an encoder for each value. Without `indent` it is the one in C, which
# takes a fraction of the time and memory.
_encoded = json.JSONEncoder(default=vars).encode
# A correction is not a record of its own. Most readers of directories skip a name with an underscore; Dask, polars and
# DuckDB go by the suffix.
# In an object store each run has names of its own.
PART = re.compile(r"part-[0-9]{6,}(-[0-9a-f]{12})?\.parquet|_corrections-[0-9]{6,}(-[0-9a-f]{12})?\.data")
# What a state of another form raises.
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
AS_TEXT = ("decimal", "string")
"""Types of amounts of an export and of the next one of its series, after an amount that no decimal column holds."""
HINTS = (Hint("use_another_directory"), Hint("start_over"))
"""Advice for a directory that holds something else."""
OF_ONE_QUERY = "; since needs an export of the same query"
DAMAGED = "is damaged: its checksum differs from the manifest's"


class UnsupportedVersionError(Exception):
    """The manifest was written by a newer release."""


def part_name(number: int) -> str:
    return f"part-{number:06}.parquet"


@dataclass(frozen=True)
class Part:
    """One Parquet file."""

    name: str
    rows: int
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if not (PART.fullmatch(self.name) and is_count(self.rows) and is_count(self.bytes)):
            raise ValueError(self.name)


@dataclass
class Commit:
    """Content of one commit: its files, and the state after them."""

    parts: list[Part]
    watermark: list[list[Any]]
    cursor: Any
    report: dict[str, Any]
    settled: Settled | None = None


@dataclass
class Settled:
    """Heights of an export that ends below the head."""

    settle: int
    end_height: int | None = None
    """Highest height of the export, or of the one that it continues; None until it is known."""
    corrected_above: int | None = None
    """Heights above this one, up to the end of the earlier export, were compared; None if none was."""
    is_compared: bool = False
    corrections: list[Part] = field(default_factory=list)
    has_unplaced: bool = False
    """True if records without a height were listed below settled ones: none of them was written."""

    def __post_init__(self) -> None:
        is_right = is_count(self.settle) and is_height(self.end_height) and is_height(self.corrected_above)
        if not (is_right and is_flag(self.is_compared) and is_flag(self.has_unplaced)):
            raise ValueError(self.settle)


@dataclass
class Manifest:
    """Request, progress and files of an export."""

    NAME: ClassVar[str] = "_manifest.json"
    JOURNAL: ClassVar[str] = "_journal.jsonl"

    query: dict[str, Any]
    numbers: str
    schema: dict[str, str]
    has_all_columns: bool = False
    """True if no columns were selected: it has all of the release that wrote it, or those of the earlier export."""
    since: dict[str, str] | None = None
    """Relative path and SHA-256 of the manifest of the export that this one continues."""
    since_watermark: list[list[Any]] | None = None
    """Watermark of the export that this one continues, unless `settled`."""
    since_absent: list[list[Any]] = field(default_factory=list)
    """The `absent` of that export."""
    settled: Settled | None = None
    watermark: list[list[Any]] = field(default_factory=list)
    """Key and height of the newest records, newest first."""
    absent: list[list[Any]] = field(default_factory=list)
    """Records of the series that are not in the list and may come back: key, height, and true if a report named it."""
    cursor: Any = None
    """Position in the result after the last part, or in those of the lists of a set."""
    parts: list[Part] = field(default_factory=list)
    finished: bool = False
    complete: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    revision: int = 0
    """Number of the last journal line that is included."""

    @property
    def rows(self) -> int:
        return int(self.report.get("records", 0))

    @property
    def files(self) -> list[Part]:
        return [*self.parts, *(self.settled.corrections if self.settled else [])]

    def is_contradicted(self) -> bool:
        """True if an export was interrupted that cannot be finished.

        The heights that the earlier export has are compared with a reading that is complete, and a cursor keeps the
        reasons why it is not.
        """
        if self.finished or self.since is None or self.settled is None or self.settled.is_compared:
            return False
        return isinstance(self.cursor, dict) and bool(self.cursor.get("reasons"))

    def write(self, file: BinaryIO, **stored: Any) -> None:  # noqa: ANN401 - JSON
        """Writes the manifest, one member a line, with what an object store adds."""
        write_members(file, {"version": VERSION, **stored, **vars(self)}, "\n")

    def to_json(self, **stored: Any) -> bytes:  # noqa: ANN401 - JSON
        buffer = BytesIO()
        self.write(buffer, **stored)
        return buffer.getvalue()

    def change(self, commit: Commit) -> dict[str, Any]:
        """The journal line for `commit`, which `apply` adds to the manifest."""
        cursor = commit.cursor
        is_set = isinstance(cursor, _Positions)
        return {
            "revision": self.revision + 1,
            "parts": [vars(part) for part in commit.parts],
            "watermark": commit.watermark,
            "cursor": cursor.since(self.cursor) if is_set else _difference(self.cursor or {}, cursor or {}),
            "report": _difference(self.report, commit.report),
            "settled": asdict(commit.settled) if commit.settled else None,
        }

    def apply(self, change: dict[str, Any]) -> None:
        # All of it or, if the line is malformed, nothing.
        vars(self).update(
            parts=[*self.parts, *(Part(**part) for part in change["parts"])],
            watermark=[*self.watermark, *change["watermark"]],
            cursor=_moved(self.cursor, change["cursor"]),
            report=_changed(self.report, change["report"]),
            settled=_settled(change["settled"]),
            revision=change["revision"],
        )

    @classmethod
    def from_state(cls, state: Any) -> Manifest:  # noqa: ANN401 - JSON
        """Return the manifest of a state that was read; raises one of `MALFORMED` if it has another form."""
        # An earlier version did not say whether columns were selected.
        members: dict[str, Any] = {"has_all_columns": False, **state}
        version = members.pop("version")
        if is_count(version) and version != VERSION:
            raise UnsupportedVersionError(version)
        members["parts"] = [Part(**part) for part in members["parts"]]
        members["settled"] = _settled(members["settled"])
        if version != VERSION or members.keys() != {member.name for member in fields(cls)}:
            raise ValueError(version)
        manifest = cls(**members)
        manifest.check_kinds()
        return manifest

    def check_kinds(self) -> None:
        """Raises one of `MALFORMED` if a member is of another kind than an export writes."""
        for name, is_right in KINDS.items():
            if not is_right(getattr(self, name)):
                raise ValueError(name)
        names = {part.name for part in self.files}
        if len(names) < len(self.files) or (self.finished and not (self.parts and self.report)):
            raise ValueError(names)

    def check_same_query(
        self, found: Manifest, path: Location, *, continued: bool = False, has_moving_end: bool = False
    ) -> None:
        """Raises `ExportError` that names the difference if `found` is an export of another query.

        An export that is continued may have other columns, and if `has_moving_end` another end of its range.
        """
        ours = self._request()
        theirs = found._request()
        free = self._free_in_series(found, has_moving_end=has_moving_end) if continued else set[str]()
        for name in differing(theirs, ours):
            if name in free:
                continue
            links = f"since is {_shown_link(found.since)} there and {_shown_link(self.since)} here"
            difference = links if name == "since" else shown(name, theirs.get(name), ours.get(name))
            message = f"{path} holds an export of another query: {difference}"
            if continued:
                message += OF_ONE_QUERY
            raise ExportError(message, path=str(path), hints=() if continued else HINTS)

    def _free_in_series(self, found: Manifest, *, has_moving_end: bool) -> set[str]:
        """Members of a request that may differ from those of the export that this one continues."""
        # Lists may join a set; the cursor of the earlier export tells if one is left out.
        free = {name for name, value in self.query["arguments"].items() if isinstance(value, list)}
        free |= {"since", "settle", "max_items"}
        if self.settled is None:
            free |= {"numbers", "columns", "types"}
        elif (found.numbers, self.numbers) == AS_TEXT:
            # The rows of a settled series are compared, and text can be compared with the numbers that it spells.
            free |= {"numbers", "types"}
        if has_moving_end:
            free |= {"end_height", "end_time"}
        return free

    def take_columns(self, other: Manifest) -> None:
        """Takes the columns of an earlier export: another version may have fewer, or another order."""
        had_fewer = other.has_all_columns and other.schema.keys() < self.schema.keys()
        if had_fewer or self.schema.keys() == other.schema.keys():
            self.schema = {name: self.schema[name] for name in other.schema}

    def is_same_request(self, other: Manifest) -> bool:
        return not any(differing(self._request(), other._request()))

    def _request(self) -> dict[str, Any]:
        """The request under the parameter names of the caller."""
        query = {name: value for name, value in self.query.items() if name != "arguments"}
        columns = list(self.schema)
        types = list(self.schema.values())
        since = self.since_watermark if self.settled is None else (self.since or {}).get("sha256")
        settle = self.settled.settle if self.settled else None
        options = {"numbers": self.numbers, "columns": columns, "types": types, "since": since, "settle": settle}
        return {**query, **self.query["arguments"], **options}


def local_manifest(directory: Path) -> Manifest | None:
    """State of the export in `directory`, with the journal of an unfinished run, or None if there is no export."""
    path = directory / Manifest.NAME
    with reported_as_corrupt(path):
        content = _content(path)
        manifest = None if content is None else Manifest.from_state(parsed(content))
        del content
        journal = _content(directory / Manifest.JOURNAL)
        if manifest is not None and journal is not None:
            _apply_journal(manifest, journal)
            manifest.check_kinds()
    return manifest


@contextmanager
def reported_as_corrupt(path: object) -> Generator[None]:
    """Raises `ExportError` for a manifest that no export has written."""
    try:
        yield
    except UnsupportedVersionError as error:
        message = f"{path}: unsupported manifest version {error} (expected {VERSION})"
        raise ExportError(message, path=str(path), hints=HINTS) from None
    except MALFORMED:
        raise ExportError(f"{path} is not the manifest of an export", path=str(path), hints=HINTS) from None


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}", path=str(path), errno=error.errno) from None


def _apply_journal(manifest: Manifest, journal: bytes) -> None:
    for line in BytesIO(journal):
        # Power loss may leave any bytes in a line that was being written; what follows it was not committed either.
        try:
            change = parsed(line)
            # A crash may leave a journal beside the manifest that already includes it.
            if line.endswith(b"\n") and change["revision"] == manifest.revision + 1:
                manifest.apply(change)
        except MALFORMED:
            break


def local_checksum(directory: Path) -> str:
    """SHA-256 of the manifest in `directory`."""
    return hashlib.sha256(_content(directory / Manifest.NAME) or b"").hexdigest()


def _settled(state: dict[str, Any] | None) -> Settled | None:
    if state is None:
        return None
    members = dict(state)
    corrections = [Part(**part) for part in members.pop("corrections")]
    return Settled(**members, corrections=corrections)


def parsed(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """The state in a manifest or a line of a journal. The position of a set stays in the core."""
    found = _native._split_positions(content, "cursor")  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return json.loads(content.decode()) if found is None else {**json.loads(found[0]), "cursor": found[1]}


def write_members(file: BinaryIO, members: dict[str, Any], separator: str = " ") -> None:
    """Write the state of a manifest, or a line of a journal."""
    before = "{" + separator.strip(" ")
    for name, value in members.items():
        file.write(f"{before}{_encoded(name)}: ".encode())
        if isinstance(value, _Positions):
            value.write(file)
        else:
            file.write(_encoded(value).encode())
        before = f",{separator}"
    file.write(separator.strip(" ").encode() + b"}")


def _moved(old: Any, change: Any) -> Any:  # noqa: ANN401 - JSON
    """The cursor after the change of a line."""
    if isinstance(change, _Positions):
        return old.merged(change)
    before = json.loads(old.to_json()) if isinstance(old, _Positions) else old
    # An earlier version wrote the change of a position like that of any other member.
    return parsed(json.dumps({"cursor": _changed(before or {}, change) or None}).encode())["cursor"]


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Changes that turn `old` into `new`, by the names of its members."""
    found = {
        name: _change(old[name], value) if name in old else {"value": value}
        for name, value in new.items()
        if name not in old or old[name] != value
    }
    return {**found, **{name: {"removed": True} for name in old if name not in new}}


def _change(old: Any, new: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The change of a value: only members that changed, items that were added, or items that changed in their place."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {"members": _difference(old, new)}
    if isinstance(old, list) and isinstance(new, list):
        if new[: len(old)] == old:
            return {"added": new[len(old) :]}
        if len(old) == len(new):
            return {"items": [[place, new[place]] for place in range(len(new)) if old[place] != new[place]]}
    return {"value": new}


def _changed(old: dict[str, Any], difference: dict[str, Any]) -> dict[str, Any]:
    new = dict(old)
    for name, change in difference.items():
        if "removed" in change:
            del new[name]
        else:
            new[name] = _applied(old.get(name), change)
    return new


def _applied(old: Any, change: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    match change:
        case {"members": difference}:
            return _changed(old, difference)
        case {"added": items}:
            return [*old, *items]
        case {"items": items}:
            changed = list(old)
            for place, item in items:
                changed[place] = item
            return changed
        case _:
            return change["value"]


def damaged(path: Location, problem: str) -> ExportError:
    return ExportError(f"{path} {problem}; restore it, or export again", path=str(path), hints=HINTS)


def _shown_link(since: dict[str, str] | None) -> str:
    return "None" if since is None else f"{since['path']!r} (SHA-256 {since['sha256'][:8]})"
