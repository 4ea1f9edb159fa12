"""The plugin in a suite of its own: what would mislead a suite is an error, or a line that is true."""

from __future__ import annotations

import os

import pytest

from chainframe.testing import LocalService
from conftest import needs_extra
from kit.test_plugin import connect, run
from recorded import lines


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    return pytester


EARLY = """
    import pytest
    import chainframe as cf

    imported = cf.Client(max_retries=0)
    ELSEWHERE = {"base_url": "https://chain.invalid", "api_key": "k", "secret_key": "s", "passphrase": "p"}


    @pytest.fixture
    def early():
        return cf.Client(max_retries=0)


    def test_imported(local_service_env):
        assert imported.blocks().first()


    def test_early(early, local_service_env):
        assert early.with_options(strict=True).blocks().first()


    def test_other_machine(local_service_env):
        with cf.Client(**ELSEWHERE, max_retries=0) as client, pytest.raises(cf.ChainframeError):
            client.blocks().first()


    def test_unused_client(early, local_service_env):
        with cf.Client() as client:
            assert client.blocks().first()


    def test_another_service(local_service_env, session_local_service):
        with cf.Client(base_url=session_local_service.url) as client:
            assert client.blocks().first()
"""


def test_client_made_before_the_environment_fails_the_test_with_its_place(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_e=EARLY)
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        result = run(suite)
    result.assert_outcomes(passed=5, errors=3)
    past = "*requests were sent past the local service, by clients made at"
    result.stdout.fnmatch_lines(
        [f"{past} *test_e.py:4 (requests: 1)*", f"{past} *test_e.py:10 (*", f"{past} *test_e.py:22 (*"]
    )


SHARED = """
    import pytest
    import chainframe as cf

    SHARED = pytest.mark.chainframe_cassette(path="shared.jsonl")


    @SHARED
    @pytest.mark.parametrize("count", {counts})
    def test_shared(cassette, count):
        with cf.Client() as client:
            assert len(client.blocks(max_items=count).collect()) == count


    @pytest.mark.parametrize("count", {counts})
    def test_module(module_cassette, count):
        if count == {skipped}:
            pytest.skip("later")
        with cf.Client() as client:
            assert len(client.blocks(max_items=count).collect()) == count
"""


def limits(suite: pytest.Pytester) -> list[list[str]]:
    files = suite.path / "shared.jsonl", suite.path / "cassettes" / "test_s.jsonl"
    assert not list(suite.path.glob("**/*.part"))
    return [sorted(line["params"]["limit"] for line in lines(file)) for file in files]


def test_rewrite_keeps_the_recordings_of_tests_that_did_not_run(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        rewrite = "--chainframe-record=rewrite"
        suite.makepyfile(test_s=SHARED.format(counts=[2, 3, 4], skipped=None))
        run(suite, "--chainframe-record=new_episodes").assert_outcomes(passed=6)
        before = limits(suite)
        assert before == [["2", "3", "4"]] * 2
        sent = service.request_count
        run(suite, rewrite).assert_outcomes(passed=6)
        assert (limits(suite), service.request_count) == (before, 2 * sent)
        for selection in (["-k", "2"], ["test_s.py::test_shared[3]", "test_s.py::test_module[3]"]):
            result = run(suite, rewrite, *selection)
            result.assert_outcomes(passed=2, deselected=4 if "-k" in selection else 0)
            assert limits(suite) == before
            result.stdout.fnmatch_lines(["*recordings that were kept*", "*shared.jsonl: GET *; run all tests with *"])
        # Tests that are gone leave recordings, which a whole run removes.
        suite.makepyfile(test_s=SHARED.format(counts=[2, 3], skipped=3))
        run(suite, rewrite).assert_outcomes(passed=3, skipped=1)
        assert limits(suite) == before
        suite.makepyfile(test_s=SHARED.format(counts=[2, 3], skipped=None))
        result = run(suite, rewrite)
        result.assert_outcomes(passed=4)
        result.stdout.no_fnmatch_line("*kept*")
        assert limits(suite) == [["2", "3"]] * 2
        # The module is named, and other modules may share the other file.
        suite.makepyfile(test_s=SHARED.format(counts=[2], skipped=None))
        run(suite, rewrite, "test_s.py").assert_outcomes(passed=2)
        assert limits(suite) == [["2", "3"], ["2"]]
    run(suite).assert_outcomes(passed=2)


def test_rewrite_of_the_last_failed_tests_keeps_the_recordings_of_other_files(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = """
        import os
        import chainframe as cf

        def test_count(session_cassette):
            with cf.Client() as client:
                assert len(client.blocks(max_items={count}).collect()) == {count}
            assert os.environ.get("BROKEN") != "{count}"
        """
    suite.makepyfile(test_a=test.format(count=2), test_b=test.format(count=3))
    cache = "-p", "cacheprovider"
    recorded = suite.path / "cassettes" / "session.jsonl"
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        run(suite).assert_outcomes(passed=2)
        before = sorted(line["params"]["limit"] for line in lines(recorded))
        assert before == ["2", "3"]
        monkeypatch.setenv("BROKEN", "3")
        run(suite, *cache).assert_outcomes(passed=1, failed=1)
        monkeypatch.delenv("BROKEN")
        result = run(suite, *cache, "--lf", "--chainframe-record=rewrite")
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*recordings that were kept*"])
    assert sorted(line["params"]["limit"] for line in lines(recorded)) == before


def test_caught_miss_fails_the_test_and_is_shown(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import subprocess, sys
        import pytest
        import chainframe as cf
        from chainframe.testing import Cassette

        SCRIPT = '''
        import chainframe as cf
        try:
            cf.Client().blocks(height=9).collect()
        except cf.CassetteMissError:
            print("caught")
        '''


        def test_caught(cassette):
            with cf.Client() as client:
                try:
                    client.blocks(height=7).collect()
                except cf.ChainframeError:
                    pass
            assert len(cassette.missed) == 1


        def test_child(cassette):
            code = SCRIPT.replace("\\n        ", "\\n")
            assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "caught\\n"


        def test_own(cassette, tmp_path):
            with cf.Client(cassette=Cassette(tmp_path / "none.jsonl", "none")) as client:
                with pytest.raises(cf.CassetteMissError):
                    client.blocks(height=8).collect()
        """
    )
    result = run(suite, "--chainframe-record=none")
    result.assert_outcomes(passed=3, errors=2)
    for height in (7, 9):
        result.stdout.fnmatch_lines([f"*has no recording of GET *height={height}*CassetteMissError was caught*"])
    result.stdout.fnmatch_lines(["*recordings that were not used*", "*test_own.jsonl: no request was sent"])
    result.stdout.no_fnmatch_line("*test_caught.jsonl: no request was sent*")


def test_recording_that_a_child_replayed_is_not_called_unplayed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        test_child="""
        import multiprocessing, subprocess, sys
        import chainframe as cf


        def read(height):
            with cf.Client() as client:
                client.blocks(height=height).collect()


        def test_children(cassette):
            read(1)
            script = "import chainframe as cf; cf.Client().blocks(height=2).collect()"
            subprocess.run([sys.executable, "-c", script], check=True)
            process = multiprocessing.get_context("fork").Process(target=read, args=(3,))
            process.start()
            process.join()
            assert process.exitcode == 0
            if cassette.can_record:
                read(4)
        """
    )
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        run(suite).assert_outcomes(passed=1)
    result = run(suite)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_children.jsonl: 1 of 4 recordings not played: *height=4*"])


def test_child_of_a_test_with_scrub_is_told_that_it_cannot_scrub(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(
        test_c="""
        import subprocess, sys
        import pytest
        import chainframe as cf


        @pytest.mark.chainframe_cassette(scrub=lambda text: text.replace("4300001", "4300002"))
        def test_child(cassette):
            with cf.Client() as client:
                client.blocks(height=4300001).collect()
            script = "import chainframe as cf; cf.Client().blocks(height=4300001).collect()"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            message = done.stderr.splitlines()[-1]
            assert "CassetteMissError" in message and "new_episodes" not in message
            assert message.endswith("pass this process a cassette of its own")
            assert False, "passed"


        def test_plain(cassette):
            script = "import chainframe as cf; cf.Client().blocks(height=7).collect()"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            if not cassette.can_record:
                assert done.stderr.rstrip().endswith("record it with pytest --chainframe-record=new_episodes")
                assert False, "passed"
        """
    )
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        run(suite, "-k", "child").stdout.fnmatch_lines(["*AssertionError: passed*"])
    run(suite, "-k", "plain", "--chainframe-record=none").stdout.fnmatch_lines(["*AssertionError: passed*"])


def test_scrub_that_is_added_later_leaves_no_text_behind(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        import pytest
        import chainframe as cf


        {mark}
        def test_one(cassette):
            with cf.Client() as client:
                client.blocks(height=4300001).collect()
                client.blocks(height=4300003).collect()
    """
    mark = 'pytest.mark.chainframe_cassette(scrub=lambda text: text.replace("4300001", "4300002"))'
    path = suite.path / "cassettes" / "test_s" / "test_one.jsonl"
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        suite.makepyfile(test_s=body.format(mark=""))
        run(suite).assert_outcomes(passed=1)
        suite.makepyfile(test_s=body.format(mark=f"@{mark}"))
        result = run(suite)
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(
            ["*interactions that were recorded without scrub (1); record it with pytest *=new_episodes *"]
        )
        before = service.request_count
        run(suite, "--chainframe-record=new_episodes").assert_outcomes(passed=1)
        assert service.request_count == before
    assert "4300001" not in path.read_text()
    run(suite).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "CHAINFRAME_DEPLOYMENT",
            '{"mian": "alpha"}',
            "CHAINFRAME_DEPLOYMENT is invalid: Deployment() got an unexpected keyword argument 'mian'*",
        ),
        ("CHAINFRAME_DEPLOYMENT", "{", "CHAINFRAME_DEPLOYMENT must be a JSON object *"),
        (
            "CHAINFRAME_DEPLOYMENT",
            '{"max_page_size": "x"}',
            "CHAINFRAME_DEPLOYMENT is invalid: max_page_size must be an integer *",
        ),
    ],
)
def test_invalid_variable_is_one_line(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    suite.makepyfile("def test_one(local_service): pass")
    monkeypatch.setenv(variable, value)
    result = run(suite)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*_local_service.py*")


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("chainframe_cassette(mode='twice')", "mode must be one of none, once, *"),
        ("chainframe_cassette(match_on=[])", "match_on must name parameters; got []*"),
        ("chainframe_cassette(match_on=['-tiem'])", "match_on must have names of parameters *"),
        ("chainframe_cassette(scrub=1)", "scrub must be callable*"),
        ("chainframe_cassette('x.jsonl')", "mark.chainframe_cassette takes options by name, *"),
        ("chainframe_cassette(matchon=1)", "chainframe_cassette has no option 'matchon'*"),
        ("chainframe(transactions=-1)", "transactions must be *"),
        ("chainframe(transaction=1)", "*unexpected keyword argument 'transaction'*"),
    ],
)
def test_invalid_mark_is_one_line(suite: pytest.Pytester, mark: str, said: str) -> None:
    suite.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_one(cassette, local_service): pass")
    result = run(suite)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*testing/*.py*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_fault_or_quirk_that_changed_no_response_fails_a_test_that_passed(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_unused="""
        import pytest

        mark = pytest.mark.chainframe
        BUSY = {"kind": "status", "status": 503, "code": "50001", "times": 1}


        def read(service):
            with service.client() as client:
                client.blocks(max_items=60).collect()


        @mark(quirks=["ranks_moved"])
        def test_quirk(local_service):
            read(local_service)


        @mark(quirks=["page_size_capped", {"kind": "filter_ignored", "filter": "height"}])
        def test_filter(local_service):
            read(local_service)


        @mark(quirks=["page_size_capped"])
        def test_used(local_service):
            read(local_service)


        @mark(faults=[BUSY, {"kind": "code", "code": "50011", "times": 1}])
        def test_shadowed(local_service):
            read(local_service)
            assert local_service.request_log[0]["faults"] == ["status"]


        def test_replaced(local_service):
            local_service.quirks = ["ranks_moved"]
            read(local_service)
            local_service.quirks = []
            assert [quirk["kind"] for quirk in local_service.unused_quirks] == ["ranks_moved"]


        def test_session(session_local_service):
            session_local_service.faults = [{"kind": "reset", "path": "token-list"}]
            read(session_local_service)
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=6, errors=5)
    changed = "of the local service that changed no response: "
    for said in ("quirks", "quirks", "faults", "quirks", "faults"):
        result.stdout.fnmatch_lines([f"*{said} {changed}*"])
    result.stdout.fnmatch_lines([f"*{changed}*'filter': 'height'*", f"*{changed}*50011*"])
    result.stdout.fnmatch_lines([f"*{changed}*token-list*"])


@needs_extra  # pytest-xdist
def test_workers_add_to_the_cassettes_that_they_share(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = list(range(1, 9))
    others = os.environ["PYTEST_ADDOPTS"].replace("-p no:xdist ", "").replace("-p no:xdist.looponfail", "")
    monkeypatch.setenv("PYTEST_ADDOPTS", others)
    suite.makepyfile(test_s=SHARED.format(counts=counts, skipped=None))
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        for mode in ("new_episodes", "all", "rewrite"):
            run(suite, "-n", "2", f"--chainframe-record={mode}").assert_outcomes(passed=16)
            assert limits(suite) == [[str(count) for count in counts]] * 2
    result = run(suite, "-n", "2")
    result.assert_outcomes(passed=16)
    result.stdout.no_fnmatch_line("*not used*")
