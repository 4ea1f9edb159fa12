"""The pytest plugin in a suite of its own folder and process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chainframe.testing import LocalService
from chainframe.testing._recording import cassette_path
from conftest import needs_extra
from recorded import lines


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
        sent = service.request_count
        assert sent >= 3
        run(stranger).assert_outcomes(passed=3)
        assert service.request_count == sent
        run(stranger, "--chainframe-record=all").assert_outcomes(passed=3)
        assert service.request_count == 2 * sent
    files = sorted(path.relative_to(stranger.path).as_posix() for path in stranger.path.glob("cassettes/**/*.jsonl"))
    assert files[0].startswith("cassettes/test_data/TestTokens.test_tokens.one-")
    assert files[1].startswith("cassettes/test_data/TestTokens.test_tokens.two_2-")
    assert files[2:] == ["cassettes/test_data/test_blocks.jsonl"]
    assert sum(len(lines(stranger.path / file)) for file in files) == sent
    run(stranger).assert_outcomes(passed=3)
    monkeypatch.setenv("CI", "true")
    run(stranger).assert_outcomes(passed=3)


def test_ci_refuses_the_network(stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        monkeypatch.setenv("CI", "true")
        rejected = run(stranger)
        rejected.assert_outcomes(failed=3)
        rejected.stdout.fnmatch_lines(
            [
                "*CassetteMissError: *test_blocks.jsonl does not exist*",
                "*record it with pytest --chainframe-record=new_episodes*",
            ]
        )
        run(stranger, "--chainframe-record=none").assert_outcomes(failed=3)
        assert service.request_count == 0
        run(stranger, "--chainframe-record=new_episodes").assert_outcomes(passed=3)
        assert service.request_count > 0
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


        def test_fixtures_do_not_shadow_each_other(local_service, cassette):
            for count in (1, 2):
                with local_service.client() as client:
                    client.blocks(height=1).collect()
                assert (local_service.request_count, len(cassette), cassette.play_count) == (count, 0, 0)


        @pytest.mark.chainframe(50)
        def test_wrong(local_service):
            pass


        def test_children_share_the_cassette(local_service, cassette):
            with local_service.client(cassette=cassette) as client:
                client.blocks(height=1).collect()
            script = "import chainframe as cf; cf.Client().blocks(height=2).collect()"
            given = {"BASE_URL": local_service.url, "API_KEY": local_service.api_key,
                     "SECRET_KEY": local_service.secret_key, "PASSPHRASE": local_service.passphrase}
            import os
            environment = {**os.environ, **{f"CHAINFRAME_{name}": value for name, value in given.items()}}
            subprocess.run([sys.executable, "-c", script], check=True, env=environment)
            assert len(cassette) == (1 if cassette.can_record else 2)
        """
    )
    result = run(stranger, "--strict-markers", "test_service.py")
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(["*options of LocalService by name, such as*"])
    kept = stranger.path / "cassettes" / "test_service" / "test_children_share_the_cassette.jsonl"
    assert len(lines(kept)) == 2
    # Replayed, it needs neither the children's settings nor the service.
    run(stranger, "test_service.py", "-k", "children", "--chainframe-record=none").assert_outcomes(passed=1)


def test_the_plugin_says_what_it_has(stranger: pytest.Pytester) -> None:
    run(stranger, "--help").stdout.fnmatch_lines(["*--chainframe-record=MODE*"])
    run(stranger, "--markers").stdout.fnmatch_lines(["*mark.chainframe(**options)*"])
    run(stranger, "--fixtures").stdout.fnmatch_lines(["local_service*", "session_local_service*", "cassette*"])


def test_a_suite_may_name_it_once_more(stranger: pytest.Pytester) -> None:
    stranger.makeconftest('pytest_plugins = ["chainframe.testing.plugin"]')
    stranger.makepyfile(test_named="def test_named(local_service): assert local_service.request_count == 0")
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
        ("test_m.py::test_group::test_x[1-b]", "test_group.test_x.1-b"),
        ("test_m.py::test_x[a.b]", "test_x.a.b"),
    ],
)
def test_a_cassette_is_named_after_its_test(nodeid: str, name: str) -> None:
    assert cassette_path(Path("/t/test_m.py"), nodeid) == Path(f"/t/cassettes/test_m/{name}.jsonl")


def test_names_stay_apart_and_short() -> None:
    hard = [
        "x[a/b]",
        "x[a_b]",
        "x[a:b]",
        "x[../../a]",
        f"x[{'y' * 500}]",
        f"x[{'y' * 501}]",
        "x[é\n]",
        "x[a]]",
        "x[A]",
        "x[a]",
        "X[a]",
    ]
    paths = {cassette_path(Path("/t/test_m.py"), f"test_m.py::{name}") for name in hard}
    assert len({str(path).lower() for path in paths}) == len(hard)
    assert all(path.parent == Path("/t/cassettes/test_m") and len(path.name) < 200 for path in paths)


def test_without_pytest_it_says_how_to_get_it() -> None:
    script = "import sys; sys.modules['pytest'] = None; import chainframe.testing.plugin"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: pytest is not installed; run: pip install pytest"


def test_recording_of_a_failed_test_is_not_kept(stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        stranger.makepyfile(
            test_kept="""
            import os
            import pytest
            import chainframe as cf


            def read(cassette):
                with cf.Client() as client:
                    assert len(client.blocks(max_items=3).collect()) == 3
                assert len(cassette) > 0
                assert os.environ.get("BROKEN") != "1"


            def test_function(cassette):
                read(cassette)


            def test_module(module_cassette):
                read(module_cassette)


            def test_session(session_cassette):
                read(session_cassette)
            """
        )
        monkeypatch.setenv("BROKEN", "1")
        run(stranger, "test_kept.py").assert_outcomes(failed=3)
        assert not list(stranger.path.glob("**/*.jsonl*"))
        assert not (stranger.path / "cassettes").exists()
        monkeypatch.setenv("BROKEN", "0")
        run(stranger, "test_kept.py").assert_outcomes(passed=3)
        kept = ["session.jsonl", "test_kept.jsonl", "test_kept/test_function.jsonl"]
        folder = stranger.path / "cassettes"
        assert sorted(path.relative_to(folder).as_posix() for path in folder.glob("**/*.*")) == kept
        # A test that fails leaves the recording as it was.
        before = (folder / kept[2]).read_bytes()
        monkeypatch.setenv("BROKEN", "1")
        run(stranger, "test_kept.py", "--chainframe-record=all").assert_outcomes(failed=3)
        assert (folder / kept[2]).read_bytes() == before
        sent = service.request_count
        monkeypatch.setenv("BROKEN", "0")
        stranger.makepyfile(
            test_kept=(stranger.path / "test_kept.py").read_text().replace("assert len(cassette) > 0", "")
        )
        run(stranger, "test_kept.py").assert_outcomes(passed=3)
        assert service.request_count == sent


def test_recording_of_a_test_that_fails_twice_is_not_kept(
    stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.makeconftest(
        """
        from _pytest.runner import runtestprotocol


        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            runtestprotocol(item, nextitem=nextitem)
            return True
        """
    )
    stranger.makepyfile(
        test_twice="""
        import chainframe as cf


        def test_wrong(cassette):
            with cf.Client() as client:
                assert len(client.blocks(max_items=3).collect()) == 2
        """
    )
    with LocalService(transactions=50) as service:
        connect(service, monkeypatch)
        run(stranger, "test_twice.py").assert_outcomes(failed=1)
    assert not list(stranger.path.glob("**/*.jsonl*"))


@needs_extra
def test_fixtures_of_wider_scope_serve_hypothesis(stranger: pytest.Pytester) -> None:
    stranger.makepyfile(
        test_wide="""
        import pytest
        from hypothesis import given, settings, strategies as st

        pytestmark = pytest.mark.chainframe(transactions=20)


        @settings(max_examples=5, deadline=None)
        @given(count=st.integers(1, 20))
        def test_counts(module_local_service, count):
            with module_local_service.client() as client:
                assert len(client.transactions(max_items=count).collect()) == count


        def test_same(module_local_service, session_local_service):
            module_local_service.assert_requested("transactions")
            assert session_local_service.url != module_local_service.url
            with session_local_service.client() as client:
                assert len(client.transactions(max_items=1_500).collect()) == 1_500
        """
    )
    run(stranger, "test_wide.py").assert_outcomes(passed=2)


def test_network_is_blocked_for_clients_made_outside(
    stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    stranger.makepyfile(
        test_guard="""
        import os, subprocess, sys
        import pytest
        import chainframe as cf

        REAL = {"base_url": "https://chain.invalid", "api_key": "k", "secret_key": "s", "passphrase": "p"}
        EARLY = cf.Client(**REAL, max_retries=0)


        def test_outside():
            with pytest.raises(cf.CassetteError, match="GET .*block-list.* was not sent: the network is blocked"):
                EARLY.blocks().collect()


        def test_child():
            script = f"import chainframe as cf; cf.Client(**{REAL!r}, max_retries=0).blocks().collect()"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            assert "the network is blocked" in done.stderr


        def test_local(local_service):
            with local_service.client() as client:
                assert client.blocks().first()
        """
    )
    run(stranger, "--chainframe-block-network", "test_guard.py").assert_outcomes(passed=3)


def test_playback_repeats_on_request(stranger: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger.makepyfile(
        test_repeats="""
        import pytest
        import chainframe as cf


        @pytest.mark.chainframe_cassette(allow_playback_repeats=True)
        def test_again(cassette):
            with cf.Client() as client:
                for _ in range(2 if cassette.can_record else 5):
                    assert client.blocks(height=4_300_001).first()
            assert cassette.can_record or cassette.unplayed == []


        def test_once(cassette):
            with cf.Client() as client:
                client.blocks(height=4_300_001).first()
                if cassette.can_record:
                    client.blocks(height=4_300_002).first()
            if not cassette.can_record:
                (left,) = cassette.unplayed
                assert left.startswith("GET /api/v5/main/zone/block/block-list?") and "height=4300002" in left
                assert [one["played"] for one in cassette.interactions] == [True, False]
                assert cassette.interactions[0]["status"] == 200
        """
    )
    with LocalService(transactions=50) as service, monkeypatch.context() as connected:
        connect(service, connected)
        run(stranger, "test_repeats.py").assert_outcomes(passed=2)
    run(stranger, "test_repeats.py").assert_outcomes(passed=2)
