"""A result as Parquet files in a directory, exactly once.

Three rules hold in every run:

1. What was fetched is in a buffer of the core, or stored in pieces, until a file with it is committed
   (`ParquetWriter`).
2. Nothing interrupts a commit: signals are deferred, and a cancelled task waits for it (`DeferredSignals`).
3. A run that ends early commits what the buffer has, whatever ended it.

A file is written under a temporary name, synced and renamed; then the manifest's journal gets a line that lists it,
with the cursor after its last record. So what is listed is complete, and what is neither listed nor in a piece is
fetched again by the next run.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainframe._checks import check_choice, check_count
from chainframe._native import Hint
from chainframe._notes import continues
from chainframe._paths import check_directory
from chainframe._text import counted_are
from chainframe._threads import in_thread
from chainframe.errors import ChainframeError, ExportError, InvalidParameterError
from chainframe.exports import locations, series
from chainframe.exports.conditional import superseded
from chainframe.exports.differences import of_another_release
from chainframe.exports.directory import STAGING
from chainframe.exports.export import finished_export
from chainframe.exports.manifest import HINTS, Manifest, Settled
from chainframe.exports.newer_writer import NewerRangeWriter, NewerWriter
from chainframe.exports.rows import key_columns
from chainframe.exports.set_writer import SetWriter, check_followed, grown
from chainframe.exports.settled_writer import SettledWriter
from chainframe.exports.signals import DeferredSignals, cancelled_by_signal
from chainframe.exports.store import finished_manifest, locked, read_manifest, store_at, verify_parts
from chainframe.exports.tables import Encoding
from chainframe.exports.watermark import height_of
from chainframe.exports.writer import ParquetWriter, QueryWriter
from chainframe.frames import load

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from os import PathLike

    from chainframe import Client, Query
    from chainframe._objects import Location
    from chainframe.exports.export import Export
    from chainframe.exports.left_rows import LeftRows
    from chainframe.exports.store import Store

MODES = ("resume", "overwrite", "error")
ROWS_PER_FILE = 65_536
MAX_SETTLE = 2**32
"""Greatest distance from the head. Twice that many heights below any head are still integers of Arrow."""
READINGS = 3
"""Most times that one call reads its list from the beginning: as many as a query that is collected."""
WHOLE_LIST = "with settle, with since or for a series, which need the whole list"


@dataclass(frozen=True)
class ExportRequest:
    """The query, its destination and its options."""

    query: Query[Any]
    client: Client
    directory: Location
    mode: str = "resume"
    since: Export | Location | str | PathLike[str] | None = None
    columns: list[str] | None = None
    """None selects all, or those of an earlier export that is continued; other columns are not converted."""
    settle: int | None = None
    numbers: Any = "decimal"
    max_rows_per_file: int = ROWS_PER_FILE
    encoding: Encoding = Encoding()  # noqa: RUF009 - it is frozen
    permissions: int = 0o777
    """Permissions of the directory, if it is created, less the umask."""
    replaces: Manifest | None = None
    """State of the export that `mode="overwrite"` is to replace; None is any."""
    storage_options: dict[str, Any] | None = None
    """Options of the object store of `since`."""
    left: LeftRows | None = None
    """Records that the exports of one call leave to each other; None if it writes one export."""

    def new_manifest(self) -> Manifest:
        """Checks the request, before anything is created or sent."""
        check_choice(self.mode, MODES, "mode")
        check_count(self.max_rows_per_file, "max_rows_per_file")
        if self.settle is not None:
            check_count(self.settle, "settle", MAX_SETTLE)
        load("pyarrow")
        check_columns(self.columns)
        query = json.loads(self.query._stated())  # noqa: SLF001 - of this package
        table = self.query.partial[:0].to_arrow(self.numbers, columns=self.columns)
        schema = {field.name: str(field.type) for field in table.schema}
        manifest = Manifest(query, self.numbers, schema, has_all_columns=self.columns is None)
        if self.settle is not None or self.since is not None:
            check_whole(query)
        if self.settle is not None:
            self._check_settled(manifest)
            manifest.settled = Settled(self.settle)
        if self.since is not None:
            since = locations.directory_of_earlier(self.since, self.storage_options)
            earlier = self._load_earlier(manifest, since)
            manifest.since = series.link(since, self.directory)
            if self.settle is None:
                manifest.since_watermark = earlier.watermark
                manifest.since_absent = manifest.absent = earlier.absent
        return manifest

    @property
    def _is_set(self) -> bool:
        """True if several lists are exported, each of which grows at its own head."""
        return bool(self.query._values)  # noqa: SLF001 - of this package

    def _check_settled(self, manifest: Manifest) -> None:
        if self._is_set:
            assert self.settle is not None  # noqa: S101 - by the caller
            check_followed(self.query, self.settle, None, self.directory)
        elif self._order() is None:
            raise InvalidParameterError("needs one list with its newest record first, or a range", parameter="settle")
        needed = key_columns(manifest)
        missing = [name for name in needed if name not in manifest.schema]
        if missing:
            problem = f"must include {', '.join(missing)}, by which the next export corrects this one"
            raise InvalidParameterError(problem, parameter="columns")

    def _order(self) -> Any:  # noqa: ANN401
        return self.query._growth_order()  # noqa: SLF001 - of this package

    def lock(self) -> AbstractContextManager[None]:
        """The lock of the directory; none for a finished export below which nothing can be written."""
        directory = self.directory
        if self.mode == "resume" and isinstance(directory, Path) and directory.is_dir():
            found = None if os.access(directory, os.W_OK) else read_manifest(directory)
            if found is not None and found.finished:
                return nullcontext()
        return locked(directory, self.permissions)

    def open(self, new: Manifest) -> tuple[Store, ParquetWriter[Any]]:
        """The place of the export, and the writer of a new, an unfinished or a finished one.

        Changes nothing before `begin`.
        """
        main = store_at(self.directory)
        staging = store_at(self.directory / STAGING)
        return main, self._opened(main, staging, new)

    def _opened(self, main: Store, staging: Store, new: Manifest) -> ParquetWriter[Any]:
        staged = staging.read(ignore_corrupt=True)
        if staged is not None and staged.finished:
            main.replace_with(staging, staged)
            staged = None
        if self.mode == "overwrite":
            staging.discard()
            if main.has_manifest:
                self._check_replaced(main)
                return self._writer(staging, new, replaces=self.replaces)
            self._check_no_series()
            main.check_no_foreign_files(but_parts=True)
            return self._writer(main, new)
        found = main.read()
        self._recover((main, found), (staging, staged))
        found, staged = (None if each is None else grown(each, new) for each in (found, staged))
        if found is None:
            self._check_no_series()
            main.check_no_foreign_files()
        elif self.mode == "error":
            message = f"{self.directory} holds an export"
            raise ExportError(message, path=str(self.directory), hints=HINTS)
        elif staged is not None and self._with_columns_of(staged, new).is_same_request(staged):
            # An export that is to replace the other was interrupted.
            if not staged.is_contradicted():
                return self._writer(staging, staged, replaces=found)
            found = staged
        else:
            self._with_columns_of(found, new).check_same_query(found, self.directory)
        if found is not None and found.is_contradicted():
            staging.discard()
            return self._writer(staging, new)
        return self._writer(main, found or new)

    def _recover(self, *exports: tuple[Store, Manifest | None]) -> None:
        """Adds what a run that was killed had stored in pieces to the export that is continued."""
        for store, manifest in exports:
            if manifest is not None and self.mode == "resume":
                store.recover(manifest, self.encoding)

    def _check_no_series(self) -> None:
        """Raises `ExportError` if exports of a series are there, which could not be continued beside one."""
        if locations.newest_of(self.directory) is not None:
            problem = f"{self.directory} holds a series of exports"
            error = ExportError(
                f"{problem}; call to_parquet_series, or use another directory", path=str(self.directory)
            )
            shell_text = f"{problem}; pass --series, or use another directory"
            error._set_shell_text(shell_text)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            raise error

    def _with_columns_of(self, found: Manifest, new: Manifest) -> Manifest:
        """The manifest with the columns of another export, unless the caller has selected some."""
        if self.columns is None:
            new.take_columns(found)
        return new

    def _check_replaced(self, main: Store) -> None:
        """Raises `ExportError` if the export is not the one that the caller has decided to replace."""
        if self.replaces is not None and main.read(ignore_corrupt=True) != self.replaces:
            raise superseded(self.directory)

    def begun_again(self, main: Store) -> tuple[Store, ParquetWriter[Any]]:
        """The place of the export, and the writer of one that is to replace it."""
        again = replace(self, mode="overwrite", replaces=main.read(ignore_corrupt=True))
        return again.open(again.new_manifest())

    def completed(self, main: Store, writer: ParquetWriter[Any]) -> Export:
        """Puts a finished export in its place."""
        manifest = writer.manifest
        if writer.store.path != main.path:
            main.replace_with(writer.store, manifest)
        return finished_export(main.path, manifest, self.client)

    def _writer(self, store: Store, manifest: Manifest, replaces: Manifest | None = None) -> ParquetWriter[Any]:
        writer = self._new_writer(store, manifest)
        if replaces is not None and manifest.since is None:
            writer.replaced_rows = replaces.rows
        return writer

    def _new_writer(self, store: Store, manifest: Manifest) -> ParquetWriter[Any]:
        is_followed = manifest.settled is not None and self._is_set
        query = self.query if manifest.cursor is None or is_followed else self._resumed(store, manifest.cursor)
        order = self._order()
        options: dict[str, Any] = {
            "order": order,
            "columns": list(manifest.schema),
            "max_rows": self.max_rows_per_file,
            "encoding": self.encoding,
        }
        is_new = manifest.cursor is None and order == "by_height"
        if is_followed:
            followed = SetWriter(store, manifest, self.query, **options)
            followed.start_at(None if manifest.finished else series.cursor_of_earlier(manifest, self.directory))
            return followed
        if manifest.settled is not None:
            tail = None if manifest.finished else series.read_tail(manifest, self.directory)
            if is_new and tail is not None and tail.lowest is not None:
                query = query._from_height(tail.lowest)  # noqa: SLF001 - of this package
            return SettledWriter(store, manifest, query, tail=tail, left=self.left, **options)
        height = height_of(manifest.since_watermark or [])
        if is_new and height is not None:
            query = query._from_height(height)  # noqa: SLF001 - of this package
        if manifest.since_watermark and order == "newest_first":
            return NewerWriter(store, manifest, query, **options)
        if manifest.since_watermark and order == "by_height":
            return NewerRangeWriter(store, manifest, query, **options)
        return QueryWriter(store, manifest, query, **options)

    def _resumed(self, store: Store, cursor: dict[str, Any]) -> Query[Any]:
        try:
            return self.client.resume(json.dumps(cursor), self.query)
        except InvalidParameterError as error:
            path = str(store.path / Manifest.NAME)
            if error_of_release := of_another_release(error, self.directory):
                raise error_of_release from None
            raise ExportError(f"{path} is not the manifest of an export: {error}", path=path, hints=HINTS) from None

    def _load_earlier(self, manifest: Manifest, since: Location) -> Manifest:
        """The export that this one continues."""
        order = self._order()
        if self._is_set and self.settle is None:
            message = "must be given with since for several values, and for the earlier export as well"
            raise InvalidParameterError(message, parameter="settle")
        if order is None and not self._is_set:
            raise InvalidParameterError("needs one list with its newest record first, or a range", parameter="since")
        if series.is_same_place(since, self.directory):
            raise InvalidParameterError("must not be the directory of this export", parameter="since")
        check_directory(since, "since")
        earlier = finished_manifest(since)
        self._with_columns_of(earlier, manifest).check_same_query(
            earlier, since, continued=True, has_moving_end=order == "by_height"
        )
        if self._is_set and self.settle is not None:
            check_followed(self.query, self.settle, earlier, since)
        if earlier.settled is not None and self.settle is None:
            raise InvalidParameterError(f"must be given, as for {since}, which ends below the head", parameter="settle")
        verify_parts(since, earlier.parts)
        return earlier


def check_columns(columns: list[str] | None) -> None:
    if columns is not None and not columns:
        raise InvalidParameterError("must name at least one column", parameter="columns")


def check_whole(query: dict[str, Any]) -> None:
    """Check that a query has all of its list, which an export that others continue or end below the head needs."""
    if query["max_items"] is not None:
        raise InvalidParameterError(
            f"must not be given {WHOLE_LIST}", parameter="max_items", hints=[Hint("omit", "max_items")]
        )
    if query["cursor"] is not None:
        message = f"a query that resumes from a cursor cannot be exported {WHOLE_LIST}; make the call again"
        raise InvalidParameterError(message)


def write_parquet(query: Query[Any], client: Client, directory: Location, **options: Any) -> Export:  # noqa: ANN401
    request = ExportRequest(query, client, directory, **options)
    manifest = request.new_manifest()
    with DeferredSignals() as signals, request.lock():
        main, writer = request.open(manifest)
        for left in reversed(range(READINGS)):
            if _write(writer, signals, begins_again=left > 0):
                break
            main, writer = request.begun_again(main)
        export = request.completed(main, writer)
    writer.query._warn_if_incomplete(export.report)  # noqa: SLF001 - of this package
    return export


def _write(writer: ParquetWriter[Any], signals: DeferredSignals, *, begins_again: bool) -> bool:
    """Writes the export; false if the list contradicts what is written, and the caller begins again."""
    signals.interruptible(writer.verify)
    writer.begin()
    try:
        while not writer.manifest.finished:
            signals.interruptible(writer.fetch)
            writer.write_due()
    except BaseException as error:
        _keep(writer, error)
        if begins_again and writer.is_contradicted_by(error):
            return False
        raise
    return True


async def write_parquet_async(
    query: Query[Any],
    client: Client,
    directory: Location,
    **options: Any,  # noqa: ANN401
) -> Export:
    request = ExportRequest(query, client, directory, **options)
    manifest = await in_thread(request.new_manifest)
    with cancelled_by_signal(), request.lock():
        main, writer = await in_thread(lambda: request.open(manifest))
        for left in reversed(range(READINGS)):
            if await _write_async(writer, begins_again=left > 0):
                break
            main, writer = await in_thread(lambda main=main: request.begun_again(main))  # type: ignore[misc]
        export = await in_thread(lambda: request.completed(main, writer))
    writer.query._warn_if_incomplete(export.report)  # noqa: SLF001 - of this package
    return export


async def _write_async(writer: ParquetWriter[Any], *, begins_again: bool) -> bool:
    await in_thread(writer.verify)
    await in_thread(writer.begin)
    try:
        while not writer.manifest.finished:
            await writer.fetch_async()
            await in_thread(writer.write_due)
    except GeneratorExit as error:
        # A coroutine that is closed or dropped cannot await.
        _keep(writer, error)
        raise
    except BaseException as error:
        await in_thread(lambda error=error: _keep(writer, error))  # type: ignore[misc]
        if begins_again and writer.is_contradicted_by(error):
            return False
        raise
    return True


def _keep(writer: ParquetWriter[Any], error: BaseException) -> None:
    """Commits what was fetched before the error, which may not come again, and notes that it is saved."""
    try:
        writer.keep()
    except ChainframeError as lost:
        error.add_note(f"what was fetched last could not be written: {lost}")
    if rows := writer.manifest.rows:
        continues(error, f"{counted_are(rows, 'record')} saved")
