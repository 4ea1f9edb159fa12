"""A result as Parquet files in a directory, exactly once.

Three rules hold in every run:

1. What was fetched is in a buffer of the core until a file with it is committed (`ParquetWriter`).
2. Nothing interrupts a commit: signals are deferred, and a cancelled task waits for it (`DeferredSignals`).
3. A run that ends early commits what the buffer has, whatever ended it.

A file is written under a temporary name, synced and renamed; then the manifest's journal gets a line that lists it,
with the cursor after its last record. So what is listed is complete, and what is not is fetched again by the next run.
"""

from __future__ import annotations

import html
import json
import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chainframe._arguments import suggesting
from chainframe._native import Client, _restore_report
from chainframe._notes import continues
from chainframe._threads import in_thread
from chainframe.errors import (
    ChainframeError,
    ContextError,
    ExportError,
    InvalidParameterError,
    PaginationDriftError,
)
from chainframe.exports import series
from chainframe.exports.directory import STAGING, Store, locked_dir, verify_part
from chainframe.exports.frames import Frames
from chainframe.exports.high_water_mark import height_of
from chainframe.exports.manifest import HINTS, Manifest, Settled, read_manifest
from chainframe.exports.settled import SettledWriter
from chainframe.exports.signals import DeferredSignals, cancelled_by_signal
from chainframe.exports.verify import Verifier
from chainframe.exports.writer import ParquetWriter
from chainframe.frames import load

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from os import PathLike
    from pathlib import Path

    from chainframe import Query, Report
    from chainframe.exports.verification import Verification

MODES = ("resume", "overwrite", "error")


@dataclass(frozen=True, repr=False)
class Export(Frames):
    """A finished export.

    Attributes
    ----------
    path : Path
        Its directory or file.
    parts : tuple of Path
        Its files, in order. The export of an empty result has one, without rows.
    rows : int
        Number of records in all files.
    report : Report
        Report over all runs of the export.
    manifest : Path or None
        JSON file that lists the parts with their checksums; None if the export is a single file.
    complete : bool
        True if the result is known to hold every record.
    corrections : tuple of Path
        Its files of corrections to the earlier exports of a settled series; see `read`.

    Examples
    --------
    >>> export = client.blocks().to_parquet("blocks")
    >>> duckdb.sql(f"select count(*) from '{export.path}/*.parquet'")
    >>> export.to_pandas()  # the frame of client.blocks().to_pandas()
    """

    path: Path
    parts: tuple[Path, ...]
    rows: int
    report: Report
    manifest: Path | None
    corrections: tuple[Path, ...] = ()
    _client: Client | None = field(default=None, repr=False, compare=False)
    """The client that fetched the records."""

    @classmethod
    def open(cls, directory: str | PathLike[str]) -> Export:
        """Return the finished export in a directory.

        Parameters
        ----------
        directory : str or path
            The directory; of a series, for its newest export.

        Returns
        -------
        Export

        Raises
        ------
        ExportError
            If there is none, or if it is not finished.

        Examples
        --------
        >>> chainframe.exports.Export.open("blocks").verify()
        """
        path = series.directory_of(directory, "directory")
        if path.is_file():
            raise ExportError(f"{path} is a file; pass the directory of an export", path=str(path))
        manifest = read_manifest(path)
        if manifest is None:
            raise ExportError(f"{path} holds no export", path=str(path))
        if not manifest.finished:
            raise ExportError(f"{path} is not finished; run that export again first", path=str(path))
        return finished_export(path, manifest)

    @suggesting
    def verify(self, client: Client | None = None, *, sample: int = 200, seed: int | None = None) -> Verification:
        """Compare the files with their checksums, and random records with what the API returns when asked another way.

        Lists with a filter by height are read around `sample` random records with another page size, and within the
        widest gaps between heights; other lists are read again with another page size. Transactions of `sample` records
        are looked up by hash. Token transfers are compared with the event logs of `sample` transactions.
        Nothing in the directory changes.

        Parameters
        ----------
        client : Client, optional
            Client to use. Default: the one that made the export, or one with the settings of the environment.
        sample : int
            Number of records to select for each way, and roughly of requests. More find rarer errors.
        seed : int, optional
            Seed of the selection, to repeat it.

        Returns
        -------
        Verification

        Raises
        ------
        ContextError
            For an export that is a single file, since it has no manifest.

        Examples
        --------
        >>> export = client.transactions().to_parquet("transactions")
        >>> print(export.verify(sample=500))
        """
        if sample < 1:
            raise InvalidParameterError(f"must be at least 1; got {sample!r}", parameter="sample")
        if self.manifest is None:
            raise ContextError(f"{self.path} is a single file without a manifest; verify an export in a directory")
        manifest = read_manifest(self.path)
        if manifest is None:
            raise ExportError(f"{self.path} holds no export", path=str(self.path))
        return Verifier(self.path, manifest, client or self._client or Client(), sample, seed).run()

    def __repr__(self) -> str:
        return f"<Export {str(self.path)!r}: {self._about()}>"

    def _repr_html_(self) -> str:
        about = f"{html.escape(str(self.path))}: {self._about()}"
        head = f'<div class="chainframe"><p><b>Export</b> <span class="dim">{about}</span></p></div>'
        return head + self.report._repr_html_()

    def _about(self) -> str:
        files = f"{len(self.parts):,} file{'' if len(self.parts) == 1 else 's'}"
        return f"{self.rows:,} records in {files}, {'complete' if self.complete else 'possibly incomplete'}"

    @property
    def complete(self) -> bool:
        return self.report.complete


def finished_export(path: Path, manifest: Manifest, client: Client | None = None) -> Export:
    return Export(
        path=path,
        parts=tuple(path / part.name for part in manifest.parts),
        rows=manifest.rows,
        report=_restore_report(manifest.report),
        manifest=path / Manifest.NAME,
        corrections=tuple(path / part.name for part in manifest.files[len(manifest.parts) :]),
        _client=client,
    )


@dataclass(frozen=True)
class ExportRequest:
    """The query, its destination and its options."""

    query: Query[Any]
    client: Client
    directory: Path
    mode: str = "resume"
    since: Export | str | PathLike[str] | None = None
    columns: list[str] | None = None
    """None selects all, in the order of an earlier export, if that is resumed; other columns are not converted."""
    settle: int | None = None
    numbers: Any = "decimal"
    max_rows_per_file: int = 65_536
    compression: str = "zstd"
    permissions: int = 0o777
    """Permissions of the directory, if it is created, less the umask."""

    def new_manifest(self) -> Manifest:
        """Checks the request, before anything is created or sent."""
        if self.mode not in MODES:
            raise InvalidParameterError(f"mode must be one of {', '.join(MODES)}; got {self.mode!r}")
        load("pyarrow", extra="arrow")
        if self.columns is not None and not self.columns:
            raise InvalidParameterError("columns must name at least one column")
        query = json.loads(self.query._stated())  # noqa: SLF001 - of this package
        table = self.query.partial[:0].to_arrow(self.numbers, columns=self.columns)
        schema = {field.name: str(field.type) for field in table.schema}
        manifest = Manifest(query=query, numbers=self.numbers, schema=schema)
        if self.settle is not None:
            self._check_settled(manifest)
            manifest.settled = Settled(self.settle)
        if self.since is not None:
            since = series.directory_of(self.since, "since")
            earlier = self._load_earlier(manifest, since)
            manifest.since = series.link(since, self.directory)
            if self.settle is None:
                manifest.since_watermark = earlier.watermark
                manifest.since_absent = manifest.absent = earlier.absent
        return manifest

    def _check_settled(self, manifest: Manifest) -> None:
        if self._order() is None:
            raise InvalidParameterError("needs a list with its newest record first or a range", parameter="settle")
        if manifest.query["max_items"] is not None:
            raise InvalidParameterError("cannot be combined with max_items", parameter="settle")
        needed = series.key_columns(manifest)
        missing = [name for name in needed if name not in manifest.schema]
        if missing:
            raise InvalidParameterError(
                f"must include {', '.join(missing)}, since settle is given", parameter="columns"
            )

    def _order(self) -> Any:  # noqa: ANN401
        return self.query._growth_order()  # noqa: SLF001 - of this package

    def lock(self) -> AbstractContextManager[None]:
        """The lock of the directory; none for a finished export below which nothing can be written."""
        if self.mode == "resume" and self.directory.is_dir() and not os.access(self.directory, os.W_OK):
            found = read_manifest(self.directory)
            if found is not None and found.finished:
                return nullcontext()
        return locked_dir(self.directory, self.permissions)

    def open(self, new: Manifest) -> ParquetWriter:
        """The writer of a new, an unfinished or a finished export; changes nothing before `begin`."""
        main, staging = self._store(self.directory), self._store(self.directory / STAGING)
        staged = staging.read(ignore_corrupt=True)
        if staged is not None and staged.finished:
            main.replace_with(staging, staged)
            staged = None
        if self.mode == "overwrite":
            staging.discard()
            if main.has_manifest:
                return self._writer(staging, new)
            main.check_no_foreign_files(but_parts=True)
            return self._writer(main, new)
        found, store = main.read(), main
        if found is None:
            main.check_no_foreign_files()
        elif self.mode == "error":
            message = f"{self.directory} holds an export"
            raise ExportError(message, path=str(self.directory), hints=HINTS)
        elif staged is not None and self._in_order_of(staged, new).is_same_request(staged):
            # An export that is to replace the other was interrupted.
            found, store = staged, staging
        else:
            self._in_order_of(found, new).check_same_query(found, self.directory)
        return self._writer(store, found or new)

    def _in_order_of(self, found: Manifest, new: Manifest) -> Manifest:
        """The manifest with the columns in the order of another export, unless the caller has chosen one."""
        if self.columns is None:
            new.take_order(found)
        return new

    def completed(self, writer: ParquetWriter) -> Export:
        """Puts a finished export in its place."""
        main, manifest = self._store(self.directory), writer.manifest
        if writer.store.path != main.path:
            main.replace_with(writer.store, manifest)
        return finished_export(main.path, manifest, self.client)

    def _store(self, path: Path) -> Store:
        return Store(path)

    def _writer(self, store: Store, manifest: Manifest) -> ParquetWriter:
        query = self.query if manifest.cursor is None else self._resumed(store, manifest.cursor)
        options: dict[str, Any] = {
            "order": self._order(),
            "columns": list(manifest.schema),
            "max_rows": self.max_rows_per_file,
            "compression": self.compression,
        }
        is_new = manifest.cursor is None and self._order() == "by_height"
        if manifest.settled is not None:
            tail = None if manifest.finished else series.read_tail(manifest, self.directory)
            if is_new and tail is not None and tail.lowest is not None:
                query = query._from_height(tail.lowest)  # noqa: SLF001 - of this package
            return SettledWriter(store, manifest, query, tail=tail, **options)
        height = height_of(manifest.since_watermark or [])
        if is_new and height is not None:
            query = query._from_height(height)  # noqa: SLF001 - of this package
        return ParquetWriter(store, manifest, query, **options)

    def _resumed(self, store: Store, cursor: dict[str, Any]) -> Query[Any]:
        try:
            return self.client.resume(json.dumps(cursor))
        except InvalidParameterError as error:
            path = str(store.path / Manifest.NAME)
            raise ExportError(f"{path} is not the manifest of an export: {error}", path=path, hints=HINTS) from error

    def _load_earlier(self, manifest: Manifest, since: Path) -> Manifest:
        """The export that this one continues."""
        order = self._order()
        if order is None:
            raise InvalidParameterError("needs a list with its newest record first or a range", parameter="since")
        if manifest.query["max_items"] is not None:
            raise InvalidParameterError("cannot be combined with max_items", parameter="since")
        if since.resolve() == self.directory.resolve():
            raise InvalidParameterError("must not be the directory of this export", parameter="since")
        if since.is_file():
            raise InvalidParameterError(f"({since}) is a file; name the directory of an export", parameter="since")
        earlier = read_manifest(since)
        if earlier is None:
            raise ExportError(f"{since} holds no export", path=str(since))
        if not earlier.finished:
            raise ExportError(f"{since} is not finished; run that export again first", path=str(since))
        self._in_order_of(earlier, manifest).check_same_query(
            earlier, since, continued=True, has_moving_end=order == "by_height"
        )
        if earlier.settled is not None and self.settle is None:
            raise InvalidParameterError(f"must be given, as for {since}, which ends below the head", parameter="settle")
        for part in earlier.parts:
            verify_part(since, part)
        return earlier


def write_parquet(query: Query[Any], client: Client, directory: Path, **options: Any) -> Export:  # noqa: ANN401
    request = ExportRequest(query, client, directory, **options)
    manifest = request.new_manifest()
    with DeferredSignals() as signals, request.lock():
        writer = request.open(manifest)
        signals.interruptible(writer.verify)
        writer.begin()
        try:
            while not writer.manifest.finished:
                signals.interruptible(writer.fetch)
                writer.commit()
        except BaseException as error:
            _keep(writer, error)
            raise
        export = request.completed(writer)
    writer.query._warn_if_incomplete(export.report)  # noqa: SLF001 - of this package
    return export


async def write_parquet_async(
    query: Query[Any],
    client: Client,
    directory: Path,
    **options: Any,  # noqa: ANN401
) -> Export:
    request = ExportRequest(query, client, directory, **options)
    manifest = await in_thread(request.new_manifest)
    with cancelled_by_signal(), request.lock():
        writer = await in_thread(lambda: request.open(manifest))
        await in_thread(writer.verify)
        await in_thread(writer.begin)
        try:
            while not writer.manifest.finished:
                await writer.fetch_async()
                await in_thread(writer.commit)
        except GeneratorExit as error:
            # A coroutine that is closed or dropped cannot await.
            _keep(writer, error)
            raise
        except BaseException as error:
            await in_thread(lambda error=error: _keep(writer, error))  # type: ignore[misc]
            raise
        export = await in_thread(lambda: request.completed(writer))
    writer.query._warn_if_incomplete(export.report)  # noqa: SLF001 - of this package
    return export


def _keep(writer: ParquetWriter, error: BaseException) -> None:
    """Commits what was fetched before the error, which may not come again, and notes how to continue."""
    try:
        writer.keep()
    except ChainframeError as lost:
        error.add_note(f"what was fetched last could not be written: {lost}")
    if isinstance(error, PaginationDriftError) and writer.manifest.rows:
        error.add_note('if the same call raises this again, mode="overwrite" reads the list again')
    if rows := writer.manifest.rows:
        continues(error, f"{rows:,} record{' is' if rows == 1 else 's are'} saved")
