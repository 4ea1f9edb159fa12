"""Places in the checkout and rows of tables, for tests in any folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "python"


def row_of(table: Mapping[str, Row], key: str, name: str) -> Row:
    """Return a row of a table that has one for each endpoint or record type."""
    if key not in table:
        raise KeyError(f"{key} has no row in {name}: add one")
    return table[key]
