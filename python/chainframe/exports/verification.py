"""Result of `Export.verify`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainframe._text import counted

LISTS = {"heights", "pages"}
"""Ways that compare records of a list, and so find every kind of difference."""
SHOWN = 10
"""Differences that `str` lists."""


@dataclass(frozen=True)
class Difference:
    """One thing in which an export differs from what was compared.

    Attributes
    ----------
    way : str
        What it was compared with: "files", "heights", "pages", "hashes", "logs" or "invariants".
    kind : str
        "damaged" for a file; "missing" for a record that the export lacks, "unexpected" for one that only the export
        has, "duplicate" for one that it has too often, "changed" for other values.
    key : str
        Name of the file, or the columns that identify the record.
    columns : tuple of str
        Columns that differ, for "changed".

    Examples
    --------
    >>> [difference.key for difference in verification.differences if difference.kind == "missing"]
    """

    way: str
    kind: str
    key: str
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"{self.way}: {self.kind}: {self.key}{columns}"


@dataclass(frozen=True)
class Verification:
    """Comparison of an export with its manifest and with the API.

    Attributes
    ----------
    rows : int
        Number of records in the export.
    files : int
        Number of files whose checksum was compared; for the newest export of a series, those of the series.
    sampled : dict
        Number of records that were compared in each way.
    requests : int
        Number of requests that were sent.
    differences : tuple of Difference
        What differs, in the order in which it was found.
    reasons : tuple of str
        Reasons why the records that were requested for the comparison may be incomplete, as in `Report.reasons`.

    Examples
    --------
    >>> verification = export.verify(sample=200)
    >>> if not verification.ok:
    ...     print(*verification.differences, sep="\\n")
    """

    rows: int
    files: int
    sampled: dict[str, int]
    requests: int
    differences: tuple[Difference, ...]
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not self.differences

    def confidence(self, rate: float = 0.001) -> float:
        """Return the probability that a share of wrong records would have been found.

        Parameters
        ----------
        rate : float
            Share of the records that are missing, changed or duplicates, at random.

        Returns
        -------
        float
            Probability that the largest sample of one way has at least one of them, from 0 to 1. Where lists were
            compared (`heights`, `pages`), those samples count, since they show every kind of error.

        Examples
        --------
        >>> verification.confidence(rate=0.001)
        """
        # Other ways do not find a record that is missing or a duplicate.
        lists = {way: count for way, count in self.sampled.items() if way in LISTS} or self.sampled
        sampled = min(max(lists.values(), default=0), self.rows)
        wrong = math.ceil(rate * self.rows)
        # Drawn without replacement: each wrong record in turn is outside of the sample.
        missed = (max(self.rows - sampled - index, 0) / (self.rows - index) for index in range(min(wrong, self.rows)))
        return 1 - math.prod(missed) if wrong else 0.0

    def __str__(self) -> str:
        ways = ", ".join(f"{count:,} by {way}" for way, count in self.sampled.items()) or "none"
        count = f"{len(self.differences):,}" if self.differences else "no"
        lines = [
            f"{counted(self.files, 'file')} and {counted(self.rows, 'record')}, differences: {count}",
            f"compared: {ways}, in {counted(self.requests, 'request')}",
        ]
        if self.sampled:
            lines.append(f"an error in 1 of 1,000 records is found with {self.confidence():.1%} probability")
        lines += _beginning([f"what was requested may be incomplete: {reason}" for reason in self.reasons])
        lines += _beginning([str(difference) for difference in self.differences])
        return "\n".join(lines)


def _beginning(lines: list[str]) -> list[str]:
    """The first lines, and how many there are besides."""
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {more:,} more"] if more > 0 else lines
