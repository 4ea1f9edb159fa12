"""A finished export."""

from __future__ import annotations

import html
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from chainframe import frames
from chainframe._arguments import suggesting
from chainframe._checks import check_choice, check_count, check_seed, short
from chainframe._native import Client, _restore_report
from chainframe._text import counted
from chainframe.errors import ContextError, ExportError, InvalidParameterError
from chainframe.exports import locations
from chainframe.exports.manifest import Manifest, damaged
from chainframe.exports.sources import arrow_source
from chainframe.exports.store import finished_manifest, verify_parts
from chainframe.exports.verify import Verifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from chainframe import Report
    from chainframe._objects import Location
    from chainframe.exports.verification import Verification


@dataclass(frozen=True, repr=False)
class Export:
    """A finished export.

    Attributes
    ----------
    path : Path
        Its directory or file; in an object store an `ObjectPath`, which `str` turns into a URL.
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
    _checksums: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Checksums of its files, by which a later export of the directory is noticed."""

    @classmethod
    def open(cls, directory: str | PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> Export:
        """Return the finished export in a directory.

        Parameters
        ----------
        directory : str or path
            The directory, or the URL of one in an object store. That of a series stands for its newest finished export,
            with the reasons of the exports before it: it is `complete` if all of them are.
        storage_options : dict, optional
            Options of the object store, as for `Query.to_parquet`.

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
        path = locations.finished_in(directory, "directory", storage_options)
        export = finished_export(path, finished_manifest(path))
        return with_reasons_of(export, locations.before_in(directory, path, storage_options))

    def to_arrow(self, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the files as a pyarrow Table.

        The checksum of each file is compared first. Of a series, only the rows of this export are read; `read` returns
        those of all.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read, in this order; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ExportError
            If a file is missing or damaged, or another export has replaced this one.
        ContextError
            If the export is a CSV or JSON file, which has no types.

        Examples
        --------
        >>> export.to_arrow(columns=["height", "amount"])
        """
        pyarrow: Any = frames.load("pyarrow")
        parquet: Any = frames.load("pyarrow.parquet")
        self._verify_parts()
        try:
            known = parquet.read_schema(arrow_source(self.parts[0])).names
            names = known if columns is None else _names(columns, known)
            # Each file by itself: a directory may have others.
            tables = [parquet.ParquetFile(arrow_source(part)).read(columns=names).select(names) for part in self.parts]
        except FileNotFoundError:
            raise damaged(self.path, "is missing") from None
        except (OSError, pyarrow.ArrowException) as error:
            raise damaged(self.path, f"cannot be read: {' '.join(str(error).split())}") from None
        table: pa.Table = pyarrow.concat_tables(tables)
        return table

    def to_pandas(self, *, dtype_backend: str | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read the files as a pandas DataFrame, with the dtypes of `Query.to_pandas`.

        Parameters
        ----------
        dtype_backend : {"numpy_nullable", "pyarrow"}, optional
            As in `Query.to_pandas`.
        columns : sequence of str, optional
            Columns to read, in this order; all by default.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ExportError
            If a file is missing or damaged, or another export has replaced this one.
        ContextError
            If the export is a CSV or JSON file, which has no types.

        Examples
        --------
        >>> frame = chainframe.exports.Export.open("blocks").to_pandas()
        """
        if dtype_backend is not None:
            check_choice(dtype_backend, ("numpy_nullable", "pyarrow"), "dtype_backend")
        frames.require("to_pandas")
        return frames.to_pandas(self.to_arrow(columns=columns), dtype_backend, self.report)

    def to_polars(self, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read the files as a polars DataFrame.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read, in this order; all by default.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        ExportError
            If a file is missing or damaged, or another export has replaced this one.
        ContextError
            If the export is a CSV or JSON file, which has no types.

        Examples
        --------
        >>> chainframe.exports.Export.open("blocks").to_polars()
        """
        frames.require("to_polars")
        return frames.to_polars(self.to_arrow(columns=columns))

    @suggesting
    def verify(self, client: Client | None = None, *, sample: int = 200, seed: int | None = None) -> Verification:
        """Compare the files with their checksums, and random records with what the API returns when asked another way.

        Lists with a filter by height are read around `sample` random records with another page size, and within the
        widest gaps between heights; other lists are read again with another page size. Transactions of `sample` records
        are looked up by hash. Token transfers are compared with the event logs of `sample` transactions.
        Nothing in the directory changes. For the newest export of a series, the files of the others are compared too.

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
        ExportError
            Another export has replaced this one in the directory.

        Examples
        --------
        >>> export = client.transactions().to_parquet("transactions")
        >>> print(export.verify(sample=500))
        """
        check_count(sample, "sample")
        check_seed(seed, "seed")
        _check_client(client)
        manifest = self._current()
        if manifest is None:
            raise ContextError(f"{self.path} is a single file without a manifest; verify an export in a directory")
        return Verifier(self.path, manifest, client or self._client or Client(), sample, seed).run()

    def __repr__(self) -> str:
        return f"<Export {str(self.path)!r}: {self._about()}>"

    def _repr_html_(self) -> str:
        about = f"{html.escape(str(self.path))}: {self._about()}"
        head = f'<div class="chainframe"><p><b>Export</b> <span class="dim">{about}</span></p></div>'
        return head + self.report._repr_html_()

    def _about(self) -> str:
        size = f"{counted(self.rows, 'record')} in {counted(len(self.parts), 'file')}"
        return f"{size}, {'complete' if self.complete else 'possibly incomplete'}"

    @property
    def complete(self) -> bool:
        return self.report.complete

    def _verify_parts(self) -> None:
        manifest = self._current()
        if manifest is not None:
            verify_parts(self.path, manifest.parts)
        elif self.path.suffix != ".parquet":
            raise ContextError(f"{self.path} is not a Parquet file, so it has no types; read it with its library")

    def _current(self) -> Manifest | None:
        """Return the manifest in the directory; None for a single file.

        Raises `ExportError` if it is that of another export, which has replaced this one.
        """
        if self.manifest is None:
            return None
        manifest = finished_manifest(self.path)
        if self._is_other(manifest):
            message = f"{self.path} holds another export now, which replaced this one; open it with Export.open"
            raise ExportError(message, path=str(self.path))
        return manifest

    def _is_replaced(self) -> bool:
        """Return True if the directory holds another export now."""
        return self.manifest is not None and self._is_other(finished_manifest(self.path))

    def _is_other(self, manifest: Manifest) -> bool:
        return _checksums_of(manifest) != self._checksums


def _names(columns: object, known: list[str]) -> list[str]:
    """Return the names of known columns, or raise the error of `Query.to_arrow` about others."""
    try:
        given = list[Any](columns)  # type: ignore[call-overload]
    except TypeError:
        given = None
    if given is None or isinstance(columns, str | AbstractSet | Mapping):
        raise InvalidParameterError(f"must be a list of names; got {short(columns)}", parameter="columns")
    names: list[str] = []
    for name in given:
        if not isinstance(name, str) or name not in known:
            raise InvalidParameterError(f"must be among {', '.join(known)}; got {short(name)}", parameter="columns")
        if name in names:
            raise InvalidParameterError(f'must be distinct; got "{name}" twice', parameter="columns")
        names.append(str(name))
    return names


def _check_client(value: object) -> None:
    if value is not None and not isinstance(value, Client):
        raise InvalidParameterError(f"must be a Client; got {short(value)}", parameter="client")


def finished_export(location: Location, manifest: Manifest, client: Client | None = None) -> Export:
    path = cast("Path", location)
    return Export(
        path=path,
        parts=tuple(path / part.name for part in manifest.parts),
        rows=manifest.rows,
        report=_restore_report(manifest.report),
        manifest=path / Manifest.NAME,
        corrections=tuple(path / part.name for part in manifest.files[len(manifest.parts) :]),
        _client=client,
        _checksums=_checksums_of(manifest),
    )


def with_reasons_of(export: Export, earlier: Iterable[Location]) -> Export:
    """Return an export whose report has the reasons of earlier exports of its series, too."""
    reports = [finished_manifest(path).report for path in earlier]
    incomplete = [report for report in reports if not report["complete"]]
    if not incomplete:
        return export
    whole: dict[str, Any] = {**finished_manifest(export.path).report, "complete": False}
    for name in ("reasons", "missing"):
        entries = [entry for report in [*incomplete, whole] for entry in report[name]]
        whole[name] = [entry for at, entry in enumerate(entries) if entry not in entries[:at]]
    return replace(export, report=_restore_report(whole))


def _checksums_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the checksums of the files of an export."""
    return tuple(part.sha256 for part in manifest.files)
