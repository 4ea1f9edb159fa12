"""Exports read back as the frames that their queries give."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from chainframe import frames
from chainframe._checks import check_choice, short
from chainframe.errors import ContextError, ExportError, InvalidParameterError
from chainframe.exports.manifest import damaged
from chainframe.exports.sources import arrow_source
from chainframe.exports.store import finished_manifest, verify_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from chainframe import Report
    from chainframe.exports.manifest import Manifest


class Frames:
    """The conversions of an export, in the order and with the types of the query's own."""

    path: Path
    parts: tuple[Path, ...]
    manifest: Path | None
    report: Report
    _checksums: tuple[str, ...]

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
        return checksums(manifest) != self._checksums


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


def checksums(manifest: Manifest) -> tuple[str, ...]:
    """Return the checksums of the files of an export."""
    return tuple(part.sha256 for part in manifest.files)
