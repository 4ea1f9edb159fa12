"""Mistakes in a suite that the plugin does not let pass: a `respond` that fails, and marks without effect."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chainframe.testing import LocalService


def run(pytester: pytest.Pytester) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-W", "ignore")


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ("{'jsn': {}}", 'unknown member "jsn"'),
        ("1 / 0", "respond raised ZeroDivisionError: division by zero"),
        ("'nothing'", "respond raised "),
        ("{'kind': 'tls'}", "needs simulated=True"),
        ("{'status': 503, 'json': {}, 'times': 1}", "which select requests"),
    ],
)
def test_respond_that_fails_fails_the_test_although_the_application_expects_errors(
    pytester: pytest.Pytester, response: str, problem: str
) -> None:
    pytester.makepyfile(
        f"""
        import chainframe as cf


        def test_application(local_service):
            local_service.respond = lambda request: {response}
            with local_service.client(max_retries=0) as client:
                try:
                    client.tokens().collect()
                except cf.ChainframeError:
                    return
            raise AssertionError("it was answered")
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"*the service could not use `respond`: *{problem}*"])


def test_respond_that_answers_has_no_errors() -> None:
    with (
        LocalService(transactions=5, respond=lambda _: {"status": 404, "text": ""}) as service,
        service.client() as client,
    ):
        with pytest.raises(Exception, match="404"):
            client.tokens().collect()
        assert service.respond_errors == []


@pytest.mark.parametrize(
    ("mark", "fixture"),
    [
        ("chainframe(faults=[{'kind': 'reset'}])", "module_local_service"),
        ("chainframe(growth=1)", "tmp_path"),
        ("chainframe_cassette(mode='none')", "module_cassette"),
        ("chainframe_cassette(mode='none')", "tmp_path"),
    ],
)
def test_mark_without_its_fixture_is_an_error(pytester: pytest.Pytester, mark: str, fixture: str) -> None:
    pytester.makepyfile(
        f"""
        import pytest


        @pytest.mark.{mark}
        def test_marked({fixture}):
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mark.chainframe* needs the fixture *: request it in the test*"])


def test_options_that_are_refused_leave_no_recording(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(
        """
        import pytest


        @pytest.mark.chainframe_cassette(match_on=[5])
        def test_marked(cassette):
            pass
        """
    )
    run(pytester).assert_outcomes(errors=1)
    assert not list(pytester.path.rglob("*.part"))


@pytest.mark.parametrize("value", ["1", "true"])
def test_any_value_but_0_blocks_the_network(value: str) -> None:
    program = """
import chainframe as cf
client = cf.Client(base_url="https://nowhere.invalid", api_key="a", secret_key="b", passphrase="c", max_retries=0)
try:
    client.blocks().collect()
except cf.CassetteError:
    print("blocked")
"""
    environment = {**os.environ, "CHAINFRAME_BLOCK_NETWORK": value}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "blocked"
