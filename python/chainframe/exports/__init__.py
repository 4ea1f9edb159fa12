"""`Query.to_parquet`: a result as Parquet files in a directory, each record once, whatever happens on the way.

A part is written under a temporary name, brought to the disk and renamed; then the manifest, which lists the parts and
the place in the result after them, is replaced in the same way. So what the manifest lists is always whole, and what it
does not list is removed and fetched again by the next run. docs/exports.md has the argument.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chainframe.errors import ChainframeError, ExportError, InvalidParameterError
from chainframe.exports.directory import Directory, Manifest, read_manifest
from chainframe.exports.job import Job
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from chainframe import Client, Query, Report

__all__ = ["Export", "to_parquet", "to_parquet_async"]

T = TypeVar("T")


@dataclass(frozen=True)
class Export:
    """A finished export.

    - `path`: its directory. `parts`: its Parquet files, in order; an empty result has one, without rows.
    - `rows`: records in all parts.
    - `complete` and `report`: as of a result that was collected, over all runs that it took.
    - `manifest`: the JSON file that lists the parts with their checksums.

    >>> export = client.blocks().to_parquet("blocks")
    >>> duckdb.sql(f"select count(*) from '{export.path}/*.parquet'")
    """

    path: Path
    parts: tuple[Path, ...]
    rows: int
    report: Report
    manifest: Path

    @property
    def complete(self) -> bool:
        return self.report.complete


@dataclass(frozen=True)
class Order:
    """What was asked for: the query, where to put it, and how."""

    query: Query[Any]
    client: Client
    directory: Path
    resume: bool
    overwrite: bool
    since: Export | str | PathLike[str] | None
    numbers: Any
    rows_per_part: int
    columns: list[str] | None = None
    """None is all; of others, nothing is looked at."""
    compression: str = "zstd"

    def begin(self, held: Directory, wanted: Manifest) -> Job:
        """The job as it stands: new, half done, or finished."""
        advice = "use another directory, or say overwrite=True to start over"
        found = held.manifest(lenient=self.overwrite)
        if found is not None and not self.overwrite:
            if not self.resume:
                choices = "say resume=True to go on with it, overwrite=True to start over, or name another directory"
                raise ExportError(f"{held.path} holds an export; {choices}", path=str(held.path))
            wanted.refuse_other(found, held.path, advice)
            held.verify(found)
        else:
            if not self.overwrite:
                held.refuse_foreign()
            held.commit(wanted)
            found = wanted
        held.sweep(found)
        query = self.query if found.cursor is None else self.client.resume(found.cursor)
        return Job(
            held,
            found,
            query,
            numbers=self.numbers,
            columns=self.columns,
            most=self.rows_per_part,
            compression=self.compression,
        )

    def wanted(self) -> Manifest:
        """What is asked for, or why it cannot be had; made first, so that what is refused leaves no directory."""
        load("pyarrow", extra="arrow")
        stated = json.loads(self.query._stated())  # noqa: SLF001 - made for exports
        table = self.query.partial[:0]._to_arrow(self.numbers, self.columns)  # noqa: SLF001 - made for exports
        schema = {field.name: str(field.type) for field in table.schema}
        manifest = Manifest(query=stated, numbers=self.numbers, schema=schema)
        if self.since is not None:
            manifest.since = self._known(
                manifest, Path(self.since.path if isinstance(self.since, Export) else self.since)
            )
        return manifest

    def _known(self, manifest: Manifest, since: Path) -> list[str]:
        """The newest records of the export that this one continues."""
        if not self.query._newest_first():  # noqa: SLF001 - made for exports
            raise InvalidParameterError("since: this call gives no list that grows at its head; export it anew")
        if manifest.query["max_items"] is not None:
            raise InvalidParameterError("since: does not go with max_items, which could end before what is known")
        if since.resolve() in {self.directory.resolve(), self.directory.resolve() / Manifest.NAME}:
            raise InvalidParameterError("since: is the directory of this export itself; name the one before it")
        earlier = read_manifest(since / Manifest.NAME if since.is_dir() else since)
        if earlier is None:
            raise ExportError(f"{since} holds no export", path=str(since))
        if not earlier.finished:
            raise ExportError(f"{since} is not finished; run that export again first", path=str(since))
        manifest.refuse_other(earlier, since, "only the same query can be continued", continued=True)
        return earlier.head


def to_parquet(query: Query[Any], client: Client, directory: str | PathLike[str], **options: Any) -> Export:  # noqa: ANN401
    order = Order(query, client, Path(directory), **options)
    wanted = order.wanted()
    with Directory(order.directory) as held:
        job = order.begin(held, wanted)
        if not job.manifest.finished:
            stream = iter(job.pages())
            while True:
                try:
                    page = next(stream)
                except StopIteration:
                    break
                except BaseException as error:
                    job.flush()
                    _note(error)
                    raise
                if job.add(page):
                    break
            job.finish()
        return _export(job)


async def to_parquet_async(
    query: Query[Any],
    client: Client,
    directory: str | PathLike[str],
    **options: Any,  # noqa: ANN401
) -> Export:
    order = Order(query, client, Path(directory), **options)
    wanted = await _apart(order.wanted)
    with Directory(order.directory) as held:
        job = await _apart(lambda: order.begin(held, wanted))
        if not job.manifest.finished:
            stream = aiter(job.pages())
            while True:
                try:
                    page = await anext(stream)
                except StopAsyncIteration:
                    break
                except BaseException as error:
                    job.flush()
                    _note(error)
                    raise
                if await _apart(lambda page=page: job.add(page)):  # type: ignore[misc]
                    break
            await _apart(job.finish)
        return _export(job)


def _note(error: BaseException) -> None:
    """How to go on after an error that may not come again: not by its cursor, since the directory has one."""
    if isinstance(error, ChainframeError) and error.retryable and getattr(error, "cursor", None):
        error.__notes__ = ["what came so far is in the directory: the same to_parquet goes on from there"]


def _export(job: Job) -> Export:
    report = job.report()
    job.query._settle(report)  # noqa: SLF001 - made for exports
    held, manifest = job.directory, job.manifest
    return Export(
        path=held.path,
        parts=tuple(held.path / part.name for part in manifest.parts),
        rows=manifest.rows,
        report=report,
        manifest=held.path / Manifest.NAME,
    )


async def _apart(work: Callable[[], T]) -> T:
    """In a thread, so that the loop goes on. It is seen to its end even if the task is cancelled: while it writes, the
    directory has to be held."""
    import asyncio  # noqa: PLC0415 - whoever awaits has it already; the command has no use for it

    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
