"""The plugin's cassettes and environment in a suite of its own: what is not used is not silent."""

from __future__ import annotations

import pytest

from chainframe.testing import LocalService
from kit.test_plugin import connect, run
from recorded import lines

IMPORTED = """
    import chainframe as cf
    client = cf.Client()


    def test_global(cassette):
        assert len(client.blocks(max_items=2).collect()) == 2


    def test_own(cassette):
        with cf.Client() as own:
            assert own.blocks().first()
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    return pytester


def test_request_past_the_cassette_fails_the_test_with_the_place_of_the_client(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_u=IMPORTED)
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        result = run(suite)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*past the cassette test_global.jsonl, by clients made at *test_u.py:2 (requests: 1)*"]
    )
    assert [path.name for path in suite.path.glob("cassettes/**/*.jsonl")] == ["test_own.jsonl"]


def test_client_of_an_earlier_fixture_is_named(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.makepyfile(
        test_f="""
        import pytest
        import chainframe as cf


        @pytest.fixture
        def client():
            return cf.Client().with_options(strict=True)


        def test_late(client, cassette):
            assert client.blocks().first()


        def test_local(local_service, cassette):
            with local_service.client() as client:
                assert client.blocks().first()
        """
    )
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        result = run(suite)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*test_f.py:7 (requests: 1)*"])
    result.stdout.fnmatch_lines(["*recordings that were not used*", "*test_local.jsonl: no request was sent"])


@pytest.mark.parametrize("is_recorded", [False, True])
def test_client_that_outlives_its_cassette_is_named(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, is_recorded: bool
) -> None:
    body = """
        import functools
        import chainframe as cf


        @functools.cache
        def client():
            return cf.Client()


        def test_first(cassette):
            assert client().blocks(max_items=2).collect()


        def test_second(cassette):
            {renew}
            try:
                client().blocks(max_items=3).collect()
            except cf.CassetteError as error:
                assert {is_refused}
                if {is_refused}:
                    assert "test_first.jsonl: its test has ended" in str(error)
                    assert "made at" in str(error)
    """
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        if is_recorded:
            suite.makepyfile(test_cached=body.format(renew="client.cache_clear()", is_refused=False))
            run(suite).assert_outcomes(passed=2)
        suite.makepyfile(test_cached=body.format(renew="pass", is_refused=True))
        count = service.request_count
        result = run(suite)
        assert service.request_count == count + (0 if is_recorded else 1)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*past the cassette test_second.jsonl, *made at *test_cached.py:7 (requests: 1)*"])
    assert len(list(suite.path.glob("cassettes/**/*.*"))) == (2 if is_recorded else 1)


def test_unplayed_recordings_of_shared_cassettes_are_those_that_no_test_played(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        import pytest
        import chainframe as cf


        @pytest.mark.parametrize("count", [2, 3])
        @pytest.mark.chainframe_cassette(path="shared.jsonl")
        def test_shared(cassette, count):
            with cf.Client() as client:
                client.blocks(max_items=count).collect()


        def test_module(module_cassette):
            with cf.Client() as client:
                for count in {counts}:
                    client.blocks(max_items=count).collect()
    """
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        suite.makepyfile(test_s=body.format(counts=[4, 5]))
        run(suite, "--chainframe-record=new_episodes").assert_outcomes(passed=3)
    suite.makepyfile(test_s=body.format(counts=[4]))
    result = run(suite)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_s.jsonl: 1 of 2 recordings not played: *limit=5*"])
    result.stdout.no_fnmatch_line("*shared.jsonl*")


def test_recording_of_a_child_alone_is_not_called_unused(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        """
        import subprocess, sys


        def test_child(cassette):
            script = "import chainframe as cf; cf.Client().blocks().first()"
            subprocess.run([sys.executable, "-c", script], check=True)
        """
    )
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        result = run(suite)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*no request was sent*")


def test_unplayed_recordings_are_listed_and_rewritten(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        import chainframe as cf


        def test_a(cassette):
            with cf.Client() as client:
                for count in {counts}:
                    assert len(client.blocks(max_items=count).collect()) == count
    """
    path = suite.path / "cassettes" / "test_r" / "test_a.jsonl"
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        suite.makepyfile(test_r=body.format(counts=[5, 7]))
        run(suite).assert_outcomes(passed=1)
        suite.makepyfile(test_r=body.format(counts=[5]))
        result = run(suite)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*test_a.jsonl: 1 of 2 recordings not played: GET */block-list?*limit=7*"])
        run(suite, "--chainframe-record=all").assert_outcomes(passed=1)
        assert len(lines(path)) == 2
        result = run(suite, "--chainframe-record=rewrite")
        result.assert_outcomes(passed=1)
        result.stdout.no_fnmatch_line("*not used*")
    assert [line["params"]["limit"] for line in lines(path)] == ["5"]
    run(suite).assert_outcomes(passed=1)


def test_options_of_cassettes_come_from_a_fixture_and_a_mark(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makeconftest(
        """
        import pytest


        @pytest.fixture(scope="session")
        def cassette_options():
            return {"scrub": lambda text: text.replace("0xcafe", "0xbeef"), "match_on": ["-page_size"]}
        """
    )
    suite.makepyfile(
        test_o="""
        import os, subprocess, sys
        import pytest
        import chainframe as cf


        @pytest.mark.chainframe_cassette(path="shared/one.jsonl")
        def test_shared(cassette):
            with cf.Client() as client:
                client.address_transactions("0xcafe", page_size=20 if cassette.can_record else 30).collect()


        def test_child(cassette):
            # A child cannot scrub, and so does not record.
            script = "import chainframe as cf; cf.Client().blocks().first()"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            assert "CassetteMissError" in done.stderr
            pytest.fail("as expected")


        @pytest.mark.chainframe_cassette(matchon=["page"])
        def test_misspelt(cassette):
            pass


        @pytest.mark.chainframe_cassette("other.jsonl")
        def test_positional(cassette):
            pass
        """
    )
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        result = run(suite)
        result.assert_outcomes(passed=1, failed=1, errors=2)
        result.stdout.fnmatch_lines(["*Failed: as expected"])
        result.stdout.fnmatch_lines(["*chainframe_cassette has no option 'matchon'*"])
        result.stdout.fnmatch_lines(["*takes options by name, such as path='other.jsonl'*"])
    (recording,) = lines(suite.path / "shared" / "one.jsonl")
    assert recording["params"]["address"] == "0xbeef"
    run(suite, "-k", "shared").assert_outcomes(passed=1)


def test_app_that_makes_its_own_client_uses_the_local_service(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        app="""
        import chainframe as cf


        def newest():
            with cf.Client() as client:
                return client.blocks().first().height
        """,
        test_app="""
        import os, subprocess, sys
        import pytest
        import chainframe as cf
        import app

        DEPLOYMENT = cf.Deployment(header_prefix="XY", main="alpha", zone="beta")
        pytestmark = pytest.mark.chainframe(transactions=30, deployment=DEPLOYMENT)


        def test_app(local_service_env):
            assert app.newest() == 4_300_029
            subprocess.run([sys.executable, "-c", "import app; app.newest()"], check=True)
            assert len(local_service_env.find_requests("blocks")) == 2


        def test_without():
            assert not any(name.startswith("CHAINFRAME_") for name in os.environ if name != "CHAINFRAME_TESTS")
        """,
    )
    run(suite, "test_app.py").assert_outcomes(passed=2)


def test_fault_that_never_applied_fails_a_test_that_passed(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_faults="""
        import pytest

        NEVER = {"kind": "delay", "seconds": 0, "path": "token-list"}
        pytestmark = pytest.mark.chainframe(transactions=5, faults=[NEVER])


        def test_never(local_service):
            with local_service.client() as client:
                client.blocks().collect()


        def test_once(local_service):
            with local_service.client() as client:
                client.tokens().collect()


        def test_failed(local_service):
            assert False
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*faults of the local service that changed no response: *token-list*"])
