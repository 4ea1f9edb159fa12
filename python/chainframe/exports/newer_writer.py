"""Exports of what is new since an earlier export, whose records are found by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainframe._declared import record_of
from chainframe.errors import ExportError
from chainframe.exports.watermark import WATERMARK, Absent, HeightMatcher, WatermarkMatcher
from chainframe.exports.writer import QueryWriter

if TYPE_CHECKING:
    from chainframe import Query, Records
    from chainframe.exports.manifest import Manifest
    from chainframe.exports.store import Store


class NewerWriter(QueryWriter):
    """Writes the records of a list, newest first, above those of an earlier export."""

    _is_keyed = True

    def __init__(self, store: Store, manifest: Manifest, query: Query[Any], **options: Any) -> None:  # noqa: ANN401
        super().__init__(store, manifest, query, **options)
        # A record without a block hash, such as a crossing, may be listed before it is in a block.
        keeps_heights = record_of(manifest.query["call"])["roles"]["block"] is not None
        self._matcher = WatermarkMatcher(
            manifest.since_watermark or [], _absent(manifest), manifest.watermark, keeps_heights=keeps_heights
        )
        self._keys: list[list[Any]] = []
        """Key and height of the first records of this run, as many as a watermark has."""
        self._earlier_watermark = list(manifest.watermark)
        """Watermark of the interrupted runs of this export."""

    def _is_met(self) -> bool:
        return self._matcher.met is not None or self._matcher.passed is not None

    def _release_due(self) -> None:
        keys = self._buffer.new_keys()
        self._matcher.push(keys)
        self._keys += [list(key) for key in keys[: WATERMARK - len(self._keys)]]
        self._release_new(self._matcher.num_new)

    def _release_new(self, end: int) -> None:
        """Releases the rows before an index of the list, except those that the series has."""
        returned = self._matcher.returned
        while returned and returned[0] < end:
            self._skip_at(returned.popleft())
        self._release(end)

    def _skip_at(self, index: int) -> None:
        self._release(index)
        self._buffer.skip(1)
        self._released += 1

    def _new_watermark(self, records: Records[Any]) -> list[list[Any]]:
        del records
        written = len(self._watermark)
        return self._keys[written - len(self._earlier_watermark) : self._released][: WATERMARK - written]

    def _finish(self) -> None:
        matcher = self._matcher
        matcher.end_of_list()
        if not self._is_met() and self._buffer.report().complete:
            path = self._directory
            message = f"{path}: the list was read to its end, and the newest records of the export named by since"
            raise ExportError(f"{message} are not in it; export without since", path=path)
        self._release_new(matcher.num_new)
        for index in matcher.repeated():
            self._skip_at(index)
        self._release(matcher.end)
        self.manifest.absent = [list(record) for record in matcher.absent()]
        watermark = [*self._earlier_watermark, *self._keys[: matcher.end], *matcher.known_below()][:WATERMARK]
        self._write_all()
        is_complete = matcher.met is not None and not matcher.inserted and not matcher.num_equal()
        self._save_finished(watermark, matcher.findings(), is_complete=is_complete)


class NewerRangeWriter(QueryWriter):
    """Writes the records of a range, lowest height first, from the highest block of an earlier export on."""

    _is_keyed = True

    def __init__(self, store: Store, manifest: Manifest, query: Query[Any], **options: Any) -> None:  # noqa: ANN401
        super().__init__(store, manifest, query, **options)
        self._matcher = HeightMatcher(manifest.since_watermark or [], _absent(manifest))

    def _release_due(self) -> None:
        for is_known, count in self._matcher.known_runs(self._buffer.new_keys()):
            if is_known:
                self._buffer.skip(count)
            else:
                self._release(self._released + count)

    def _finish(self) -> None:
        self._write_all()
        earlier = self.manifest.since_watermark or []
        reasons: list[str] = []
        # A run that continues an interrupted one does not read the highest block of the earlier export.
        if self._began_at is None and self._buffer.report().requests:
            earlier = self._matcher.known()
            reasons = self._matcher.findings()
            self.manifest.absent = [list(record) for record in self._matcher.absent()]
        self._save_finished(self._highest_of(earlier), reasons, is_complete=True)


def _absent(manifest: Manifest) -> list[Absent]:
    return [Absent(*record) for record in manifest.since_absent]
