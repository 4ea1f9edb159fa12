"""An export whose writer is interrupted again and again, each time before it fetches."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import chainframe as cf

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from chainframe.exports import Export


def written_in_spite_of_interrupts(
    query: Callable[[], cf.Query[Any]],
    directory: Path,
    chance: random.Random,
    probability: float,
    monkeypatch: pytest.MonkeyPatch,
) -> Export:
    """Export queries to a directory until one of them ends; at least one is interrupted."""
    from chainframe.exports.writer import ParquetWriter  # noqa: PLC0415 - an extra

    fetch = ParquetWriter.fetch
    interrupts = 0

    def interrupted(writer: ParquetWriter[Any]) -> None:
        if interrupts < 12 and chance.random() < probability:
            raise InterruptedError
        fetch(writer)

    monkeypatch.setattr(ParquetWriter, "fetch", interrupted)
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cf.IncompleteResultWarning)
                export = query().to_parquet(directory, max_rows_per_file=20)
        except InterruptedError:
            interrupts += 1
        else:
            assert interrupts
            return export
