"""A service for the tests of the Spark data source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def lasting() -> Iterator[LocalService]:
    """One for all, since the environment of Spark's processes is that of its start."""
    with LocalService(transactions=2_000, seed=11) as running, pytest.MonkeyPatch.context() as environment:
        for name in ("api_key", "secret_key", "passphrase"):
            environment.setenv(f"CHAINFRAME_{name.upper()}", getattr(running, name))
        environment.setenv("CHAINFRAME_BASE_URL", running.url)
        yield running


@pytest.fixture
def busy(lasting: LocalService) -> Iterator[LocalService]:
    lasting.reset_request_log()
    yield lasting
    lasting.faults = []
