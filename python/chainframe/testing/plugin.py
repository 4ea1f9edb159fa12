"""Pytest plugin: fixtures for the local service and for cassettes. It is installed with chainframe.

>>> def test_blocks(local_service):
...     with local_service.client() as client:
...         assert client.blocks(max_items=3).collect()

>>> @pytest.mark.chainframe(transactions=50, faults=[{"kind": "reset", "times": 1}])
... def test_retry(local_service): ...

>>> def test_report(cassette):  # recorded once, then replayed from cassettes/<module>/test_report.jsonl
...     with cf.Client() as client:
...         assert make_report(client)

>>> def test_app(local_service_env):  # the app makes its own `cf.Client()`
...     assert app.report()

`module_local_service`, `session_local_service`, `module_cassette` and `session_cassette` are shared by all tests of a
module or of the run, for instance by the examples of Hypothesis.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chainframe._native import _block_network, _client_count, _keep_origins, _sent_requests
from chainframe._text import escape
from chainframe.testing import LocalService
from chainframe.testing._drift import ERROR, Finding

try:
    import pytest
except ModuleNotFoundError:
    raise ModuleNotFoundError("pytest is not installed; run: pip install pytest", name="pytest") from None

from chainframe.testing import _rewriting
from chainframe.testing._recording import (
    CLOSED,
    COMPARE,
    FAILED,
    FINDINGS,
    MODES,
    Closed,
    cassette_path,
    has_failed,
    in_one_line,
    listed,
    places_of,
    recording,
    unused,
)
from chainframe.testing._recording import MARKER as CASSETTE_MARKER

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from chainframe.testing import Cassette

# Clients that are made from now on are known by their places.
_keep_origins()

SERVICE_MARKER = "chainframe"
DRIFT = "chainframe drift"
"""Property of a report with differences."""
CASSETTES = "chainframe cassettes"
"""Attribute of a report with the cassettes that were closed."""
KEPT = pytest.StashKey[dict["Path", list[str]]]()
"""Requests that no test has sent while their cassettes were rewritten."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chainframe")
    group.addoption(
        "--chainframe-record",
        choices=(*MODES, COMPARE),
        metavar="MODE",
        help="mode of the cassette fixtures: none, once, new_episodes, all or rewrite (default: none where CI is set "
        "in the environment, else once); or compare: replay, then send the requests again and report members and codes "
        "that differ",
    )
    group.addoption(
        "--chainframe-block-network",
        action="store_true",
        help="allow only requests that are replayed, recorded or sent to this machine; others raise CassetteError",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FAILED] = Counter()
    config.stash[FINDINGS] = []
    config.stash[CLOSED] = []
    config.stash[KEPT] = {}
    config.stash[_rewriting.REWRITTEN] = {}
    # With --lf, pytest leaves whole files out without telling which. Without its cache, there is no such option.
    is_selected = any("::" in argument for argument in config.args) or bool(config.getoption("lf", default=False))
    config.stash[_rewriting.INCOMPLETE] = is_selected
    config.addinivalue_line(
        "markers",
        f"{SERVICE_MARKER}(**options): options of LocalService for the local_service fixtures, such as faults=[...]",
    )
    config.addinivalue_line(
        "markers",
        f"{CASSETTE_MARKER}(mode=None, path=None, allow_playback_repeats=False, match_on=None, scrub=None): how "
        "the fixture cassette is opened for a test; path is relative to the folder of its module",
    )
    if config.getoption("--chainframe-block-network"):
        # For this process, and for those that tests start.
        _block_network(blocked=True)
        os.environ["CHAINFRAME_BLOCK_NETWORK"] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("--chainframe-block-network"):
        _block_network(blocked=False)
        os.environ.pop("CHAINFRAME_BLOCK_NETWORK", None)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items[:1]:
        item.config.stash[_rewriting.INCOMPLETE] = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        findings = item.config.stash[FINDINGS]
        # A report reaches the process that prints the summary, also from a worker of pytest-xdist.
        report.user_properties += [(DRIFT, list(finding)) for finding in findings]
        findings.clear()
        report.__dict__[CASSETTES] = [tuple(closed) for closed in item.config.stash[CLOSED]]
        item.config.stash[CLOSED].clear()
    if not report.passed:
        if call.when != "teardown":
            item.config.stash[FAILED][item.nodeid] += 1
        item.config.stash[_rewriting.INCOMPLETE] = True
    return report


def _given(reporter: pytest.TerminalReporter, attribute: str) -> list[Any]:
    reports = [report for reports in reporter.stats.values() for report in reports]
    return [each for report in reports for each in getattr(report, attribute, ())]


def _findings(reporter: pytest.TerminalReporter) -> list[Finding]:
    return sorted({Finding(*value) for name, value in _given(reporter, "user_properties") if name == DRIFT})


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a mark of a test that uses no fixture of its scope, so that it would have no effect."""
    for marker, fixture in ((SERVICE_MARKER, "local_service"), (CASSETTE_MARKER, "cassette")):
        is_marked = any(mark.name == marker for mark in item.own_markers)
        if is_marked and fixture not in getattr(item, "fixturenames", (fixture,)):
            problem = f"mark.{marker} needs the fixture {fixture}: request it in the test"
            pytest.fail(f"{problem}, or mark the module for the fixture module_{fixture}", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    sections = {
        "recordings that differ from the service": [str(finding) for finding in _findings(terminalreporter)],
        "recordings that were not used": list(unused([Closed(*each) for each in _given(terminalreporter, CASSETTES)])),
        "recordings that were kept": [
            f"{path}: {listed(requests)}; run all tests with --chainframe-record=rewrite to remove what none requests"
            for path, requests in sorted(config.stash[KEPT].items())
        ],
    }
    for title, lines in sections.items():
        if lines:
            terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(escape(line))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    is_drift = reporter is not None and any(finding.severity == ERROR for finding in _findings(reporter))
    if is_drift and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    session.config.stash[KEPT] = _rewriting.finish(session)


@pytest.fixture
def local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `chainframe.testing.LocalService` for one test, with the options of its `chainframe` marks.

    A test that passes fails at its end if a fault or a quirk of the service has changed no response.
    """
    with _serving(request) as service:
        yield service


@pytest.fixture
def local_service_env(
    request: pytest.FixtureRequest, local_service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalService]:
    """The service `local_service`, and the environment with which every `Client()` made from now on uses it.

    So do the clients of processes that the test starts. A test that passes fails at its end if a client that was made
    before has sent requests elsewhere, or any client to another machine.
    """
    with in_one_line():
        variables = local_service.env
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    first = _client_count()
    before = Counter(_senders())
    failed = request.config.stash[FAILED].copy()
    yield local_service
    if has_failed(request, failed):
        return
    past: Counter[str] = Counter()
    for (number, place, url, is_loopback), count in (Counter(_senders()) - before).items():
        if url != local_service.url and (number < first or not is_loopback):
            past[place] += count
    if past:
        pytest.fail(
            f"requests were sent past the local service, by clients made at {places_of(past)}: make them in the test "
            "or in a fixture that requests local_service_env, without base_url",
            pytrace=False,
        )


def _senders() -> dict[tuple[int, str, str, bool], int]:
    """Return the number of requests by clients: their numbers, places, base URLs, and if those are on this machine."""
    counts: Counter[tuple[int, str, str, bool]] = Counter()
    for number, place, url, is_loopback, _, count in _sent_requests():
        counts[number, place, url, is_loopback] += count
    return counts


@pytest.fixture(scope="module")
def module_local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `LocalService` for all tests of a module, with the options of the module's `chainframe` marks."""
    with _serving(request) as service:
        yield service


@pytest.fixture(scope="session")
def session_local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `LocalService` for all tests."""
    with _serving(request) as service:
        yield service


@contextmanager
def _serving(request: pytest.FixtureRequest) -> Generator[LocalService]:
    before = request.config.stash[FAILED].copy()
    options = _options(request.node)
    with in_one_line():
        service = LocalService(**options)
    with service:
        yield service
        faults = service.unused_faults
        quirks = service.unused_quirks
        problems = service.respond_errors
    if has_failed(request, before):
        return
    if problems:
        pytest.fail(f"the service could not use `respond`: {'; '.join(dict.fromkeys(problems))}", pytrace=False)
    for kind, unused_ones, advice in (
        ("faults", faults, "check path, every and times, and the faults before them"),
        ("quirks", quirks, "send requests that they concern, or omit them"),
    ):
        if unused_ones:
            shown = ", ".join(map(str, unused_ones))
            pytest.fail(f"{kind} of the local service that changed no response: {shown}; {advice}", pytrace=False)


def _options(node: Any) -> dict[str, Any]:  # noqa: ANN401 - pytest names no common type
    options: dict[str, Any] = {}
    # The closest mark comes first, and takes precedence.
    for mark in reversed(list(node.iter_markers(SERVICE_MARKER))):
        if mark.args:
            pytest.fail(f"mark.{SERVICE_MARKER} takes options of LocalService by name, such as growth=1", pytrace=False)
        options.update(mark.kwargs)
    return options


@pytest.fixture(scope="session")
def cassette_options() -> dict[str, Any]:
    """Options of every cassette, to be overridden in `conftest.py`: those of the mark `chainframe_cassette`."""
    return {}


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A `chainframe.testing.Cassette` for every client that the test creates without another one.

    It is in the environment as well, so that processes which the test starts use it. A recording is kept if the test
    passed. A test that passes fails at its end if it sent requests past the cassette, or caught a `CassetteMissError`.
    """
    with recording(request, cassette_path(request.path, request.node.nodeid)) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A cassette for all tests of a module, `cassettes/<module>.jsonl`. A recording is kept if all of them passed."""
    with recording(request, request.path.parent / "cassettes" / f"{request.path.stem}.jsonl") as opened:
        yield opened


@pytest.fixture(scope="session")
def session_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A cassette for all tests, `cassettes/session.jsonl` in pytest's root. A recording is kept if all passed."""
    with recording(request, request.config.rootpath / "cassettes" / "session.jsonl") as opened:
        yield opened
