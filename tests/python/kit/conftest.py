"""A suite in a folder and process of its own, for tests of the pytest plugin; a service for tests that load data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Iterator

    import chainframe as cf

SUITE = """
    import pytest
    import chainframe as cf


    def test_blocks(cassette):
        with cf.Client() as client:
            assert len(client.blocks(max_items=3).collect()) == 3


    class TestTokens:
        @pytest.mark.parametrize("most", [1, 2], ids=["one", "two/2"])
        def test_tokens(self, cassette, most):
            with cf.Client() as client:
                assert len(client.tokens(max_items=most).collect()) == most
"""


@pytest.fixture
def stranger(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite that knows of no service, anywhere but in CI."""
    for name in ("CI", "BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE", "CASSETTE", "CASSETTE_MODE"):
        monkeypatch.delenv(name if name == "CI" else f"CHAINFRAME_{name}", raising=False)
    pytester.makepyfile(test_data=SUITE)
    return pytester


@pytest.fixture(scope="module")
def own() -> Iterator[LocalService]:
    """A service with hardly any data, for all tests of a file that load some."""
    with LocalService(transactions=3) as running:
        yield running


@pytest.fixture
def ask(own: LocalService) -> Iterator[cf.Client]:
    with own.client(rate_limit=None) as client:
        yield client
