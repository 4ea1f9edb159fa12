"""The pytest plugin, as a stranger's suite meets it: in a folder and a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chainframe.testing import LocalService
from chainframe.testing.plugin import cassette_path

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


def run(stranger: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return stranger.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments)


def connect(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    monkeypatch.setenv("CHAINFRAME_BASE_URL", service.url)


def test_a_suite_records_once_and_then_needs_no_service(
    stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        run(stranger).assert_outcomes(passed=3)
        asked = service.requests
        assert asked >= 3
        run(stranger).assert_outcomes(passed=3)
        assert service.requests == asked
        run(stranger, "--chainframe-record=all").assert_outcomes(passed=3)
        assert service.requests == 2 * asked
    files = sorted(path.relative_to(stranger.path).as_posix() for path in stranger.path.glob("cassettes/**/*.jsonl"))
    assert files[0] == "cassettes/test_data/TestTokens.test_tokens.one.jsonl"
    assert files[1].startswith("cassettes/test_data/TestTokens.test_tokens.two_2-")
    assert files[2:] == ["cassettes/test_data/test_blocks.jsonl"]
    recorded = [json.loads(line) for file in files for line in (stranger.path / file).read_text().splitlines()]
    assert len(recorded) == asked
    run(stranger).assert_outcomes(passed=3)
    monkeypatch.setenv("CI", "true")
    run(stranger).assert_outcomes(passed=3)


def test_ci_refuses_the_network(stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        monkeypatch.setenv("CI", "true")
        refused = run(stranger)
        refused.assert_outcomes(failed=3)
        refused.stdout.fnmatch_lines(["*CassetteMissError: *test_blocks.jsonl holds nothing*"])
        run(stranger, "--chainframe-record=none").assert_outcomes(failed=3)
        assert service.requests == 0
        run(stranger, "--chainframe-record=new_episodes").assert_outcomes(passed=3)
        assert service.requests > 0
    assert len(list(stranger.path.glob("cassettes/**/*.jsonl"))) == 3


def test_marks_are_options_of_the_service(stranger: pytest.Pytester) -> None:
    stranger.makepyfile(
        test_service="""
        import subprocess, sys
        import pytest
        import chainframe as cf

        pytestmark = pytest.mark.chainframe(transactions=20, seed=3)


        def test_plain(local_service):
            with local_service.client() as client:
                assert len(client.transactions().collect()) == 20


        @pytest.mark.chainframe(transactions=30, faults=[{"kind": "status", "status": 500, "code": "50026"}])
        def test_faults(local_service):
            with local_service.client(max_retries=0) as client, pytest.raises(cf.ServiceUnavailableError):
                client.transactions().collect()
            local_service.set_faults([])
            with local_service.client() as client:
                assert len(client.transactions().collect()) == 30


        @pytest.mark.chainframe(50)
        def test_wrong(local_service):
            pass


        def test_children_share_the_cassette(local_service, cassette):
            with local_service.client() as client:
                client.blocks(height=1).collect()
            script = "import chainframe as cf; cf.Client().blocks(height=2).collect()"
            given = {"BASE_URL": local_service.url, "API_KEY": local_service.api_key,
                     "SECRET_KEY": local_service.secret_key, "PASSPHRASE": local_service.passphrase}
            import os
            environment = {**os.environ, **{f"CHAINFRAME_{name}": value for name, value in given.items()}}
            subprocess.run([sys.executable, "-c", script], check=True, env=environment)
            assert len(cassette.path.read_text().splitlines()) == 2
        """
    )
    result = run(stranger, "--strict-markers", "test_service.py")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*options of LocalService by name only*"])
    # Replayed, it needs neither the children's settings nor the service.
    run(stranger, "test_service.py", "-k", "children", "--chainframe-record=none").assert_outcomes(passed=1)


def test_the_plugin_says_what_it_has(stranger: pytest.Pytester) -> None:
    run(stranger, "--help").stdout.fnmatch_lines(["*--chainframe-record=MODE*"])
    run(stranger, "--markers").stdout.fnmatch_lines(["*mark.chainframe(**options)*"])
    run(stranger, "--fixtures").stdout.fnmatch_lines(["local_service*", "cassette*"])


def test_a_suite_may_name_it_once_more(stranger: pytest.Pytester) -> None:
    stranger.makeconftest('pytest_plugins = ["chainframe.testing.plugin"]')
    stranger.makepyfile(test_named="def test_named(local_service): assert local_service.requests == 0")
    run(stranger, "test_named.py").assert_outcomes(passed=1)
    run(stranger, "-p", "chainframe.testing.plugin", "test_named.py").assert_outcomes(passed=1)


def test_it_loads_no_data_frame_library(stranger: pytest.Pytester) -> None:
    heavy = "pandas", "polars", "pyarrow", "numpy"
    stranger.makepyfile(test_light=f"import sys\ndef test_light(): assert not set({heavy}) & set(sys.modules)")
    run(stranger, "test_light.py").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("a/test_m.py::test_x", "test_x"),
        ("test_m.py::TestA::test_x[1-b]", "TestA.test_x.1-b"),
        ("test_m.py::test_x[a.b]", "test_x.a.b"),
    ],
)
def test_a_cassette_is_named_after_its_test(nodeid: str, name: str) -> None:
    assert cassette_path(Path("/t/test_m.py"), nodeid) == Path(f"/t/cassettes/test_m/{name}.jsonl")


def test_names_stay_apart_and_short() -> None:
    hard = ["x[a/b]", "x[a_b]", "x[a:b]", "x[../../a]", f"x[{'y' * 500}]", f"x[{'y' * 501}]", "x[é\n]", "x[a]]"]
    paths = {cassette_path(Path("/t/test_m.py"), f"test_m.py::{name}") for name in hard}
    assert len(paths) == len(hard)
    assert all(path.parent == Path("/t/cassettes/test_m") and len(path.name) < 200 for path in paths)


def test_without_pytest_it_says_how_to_get_it() -> None:
    script = "import sys; sys.modules['pytest'] = None; import chainframe.testing.plugin"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: pytest is not installed; run: pip install pytest"
