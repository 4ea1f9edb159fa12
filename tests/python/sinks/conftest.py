"""Targets of `sync`: a database each, or a place in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# The libraries are imported on use: this file is also read where they are not installed.


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    import postgres  # noqa: PLC0415 - see above

    if postgres.INITDB is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """A database without tables."""
    from sync_places import execute  # noqa: PLC0415 - see above

    execute(server, "drop schema if exists app cascade", "drop schema public cascade", "create schema public")
    return server


@pytest.fixture(params=["duckdb", "delta", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    where = request.getfixturevalue("url") if request.param == "postgresql" else str(tmp_path / "table")
    return request.param, where
