"""A suite in a folder and process of its own, for tests of the pytest plugin."""

from __future__ import annotations

import pytest

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
