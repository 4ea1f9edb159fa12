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

import hashlib
import os
import re
import secrets
import shutil
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from chainframe import Client
from chainframe._native import _block_network, _forget_cassette, _keep_places, _share_cassette, _unrecorded
from chainframe._text import escape
from chainframe.testing import LocalService
from chainframe.testing._drift import ERROR, Finding, compare

try:
    import pytest
except ModuleNotFoundError:
    raise ModuleNotFoundError("pytest is not installed; run: pip install pytest", name="pytest") from None

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from chainframe.testing import Cassette

# Clients that are made from now on are known by their places.
_keep_places()

MODES = ("none", "once", "new_episodes", "all", "rewrite")
COMPARE = "compare"
SERVICE_MARKER = "chainframe"
CASSETTE_MARKER = "chainframe_cassette"
CASSETTE_OPTIONS = ("mode", "path", "allow_playback_repeats", "match_on", "scrub")
MAX_NAME_LENGTH = 120
CASSETTE_FIXTURES = ("cassette", "module_cassette", "session_cassette")
FAILED = pytest.StashKey[set[str]]()
"""Names of the tests that did not pass."""
FINDINGS = pytest.StashKey[list[Finding]]()
"""Differences between recordings and the service that no report has yet."""
DRIFT = "chainframe drift"
"""Property of a report with differences."""
CASSETTES = "chainframe cassettes"
"""Attribute of a report with the cassettes that were closed: path, number of recordings, and those not played."""
CLOSED = pytest.StashKey[list[tuple[str, int | None, list[str]]]]()
"""Cassettes that no report has yet. The number is None if a test failed, and so may have ended early."""
MAX_UNPLAYED = 3


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
        help="raise CassetteError for requests that are neither replayed, nor recorded, nor sent to this machine",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FAILED] = set()
    config.stash[FINDINGS] = []
    config.stash[CLOSED] = []
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
        report.__dict__[CASSETTES], item.config.stash[CLOSED] = item.config.stash[CLOSED], []
    if call.when != "teardown" and not report.passed:
        item.config.stash[FAILED].add(item.nodeid)
    return report


def _given(reporter: pytest.TerminalReporter, attribute: str) -> list[Any]:
    reports = [report for reports in reporter.stats.values() for report in reports]
    return [each for report in reports for each in getattr(report, attribute, ())]


def _findings(reporter: pytest.TerminalReporter) -> list[Finding]:
    return sorted({Finding(*value) for name, value in _given(reporter, "user_properties") if name == DRIFT})


def _unused(reporter: pytest.TerminalReporter) -> list[str]:
    """Return lines about recordings that no test has used. Several tests and processes may share a cassette."""
    closed: dict[str, list[tuple[int | None, Counter[str]]]] = {}
    for path, count, unplayed in _given(reporter, CASSETTES):
        closed.setdefault(path, []).append((count, Counter(unplayed)))
    lines: list[str] = []
    for path, uses in sorted(closed.items()):
        counts = [count for count, _ in uses if count is not None]
        if len(counts) < len(uses):
            continue
        left = uses[0][1]
        for _, unplayed in uses:
            left &= unplayed
        requests = list(left.elements())
        if not any(counts):
            lines.append(f"{path}: no request was sent")
        elif requests:
            more = f" and {len(requests) - MAX_UNPLAYED} more" if len(requests) > MAX_UNPLAYED else ""
            lines.append(
                f"{path}: {len(requests)} of {max(counts)} recordings were not played by the processes of pytest: "
                f"{', '.join(requests[:MAX_UNPLAYED])}{more}"
            )
    return lines


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a mark of a test that uses no fixture of its scope, so that it would have no effect."""
    for marker, fixture in ((SERVICE_MARKER, "local_service"), (CASSETTE_MARKER, "cassette")):
        is_marked = any(mark.name == marker for mark in item.own_markers)
        if is_marked and fixture not in getattr(item, "fixturenames", (fixture,)):
            problem = f"mark.{marker} has no effect on a test without the fixture {fixture}; add the fixture"
            raise pytest.UsageError(f"{problem}, or mark the module for the fixture module_{fixture}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    findings = _findings(terminalreporter)
    if findings:
        terminalreporter.section("recordings that differ from the service")
        for finding in findings:
            terminalreporter.write_line(escape(str(finding)))
    unused = _unused(terminalreporter)
    if unused:
        terminalreporter.section("recordings that were not used")
        for text in unused:
            terminalreporter.write_line(escape(text))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    is_drift = reporter is not None and any(finding.severity == ERROR for finding in _findings(reporter))
    if is_drift and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `chainframe.testing.LocalService` for one test, with the options of its `chainframe` marks.

    A test that passes fails at its end if one of the service's faults has applied to no request.
    """
    with _serving(request) as service:
        yield service


@pytest.fixture
def local_service_env(local_service: LocalService, monkeypatch: pytest.MonkeyPatch) -> LocalService:
    """The service `local_service`, and the environment with which every `Client()` made from now on uses it.

    So do the clients of processes that the test starts.
    """
    for name, value in local_service.env.items():
        monkeypatch.setenv(name, value)
    return local_service


@pytest.fixture(scope="module")
def module_local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `LocalService` for all tests of a module, with the options of the module's `chainframe` marks."""
    with _serving(request) as service:
        yield service


@pytest.fixture(scope="session")
def session_local_service() -> Iterator[LocalService]:
    """A running `LocalService` for all tests."""
    with LocalService() as service:
        yield service


@contextmanager
def _serving(request: pytest.FixtureRequest) -> Generator[LocalService]:
    before = request.config.stash[FAILED].copy()
    with LocalService(**_options(request.node)) as service:
        yield service
        unused, problems = service.unused_faults, service.respond_errors
    if _failed(request, before):
        return
    if problems:
        pytest.fail(f"the service could not use `respond`: {'; '.join(dict.fromkeys(problems))}", pytrace=False)
    if unused:
        pytest.fail(f"faults that have applied to no request: {', '.join(map(str, unused))}", pytrace=False)


def _options(node: Any) -> dict[str, Any]:  # noqa: ANN401 - pytest names no common type
    options: dict[str, Any] = {}
    # The closest mark comes first, and takes precedence.
    for mark in reversed(list(node.iter_markers(SERVICE_MARKER))):
        if mark.args:
            raise pytest.UsageError(f"mark.{SERVICE_MARKER} takes options of LocalService by name, such as growth=1")
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
    passed.
    """
    with _recording(request, cassette_path(request.path, request.node.nodeid)) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A cassette for all tests of a module, `cassettes/<module>.jsonl`. A recording is kept if all of them passed."""
    with _recording(request, request.path.parent / "cassettes" / f"{request.path.stem}.jsonl") as opened:
        yield opened


@pytest.fixture(scope="session")
def session_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A cassette for all tests, `cassettes/session.jsonl` in pytest's root. A recording is kept if all passed."""
    with _recording(request, request.config.rootpath / "cassettes" / "session.jsonl") as opened:
        yield opened


@contextmanager
def _recording(request: pytest.FixtureRequest, path: Path) -> Generator[Cassette]:
    """Opens the cassette of a fixture, and keeps what it recorded if the tests passed."""
    options = _cassette_options(request)
    path = request.path.parent / options["path"] if options.get("path") else path
    in_ci = os.environ.get("CI", "").lower() not in {"", "0", "false"}
    chosen = request.config.getoption("--chainframe-record") or options.get("mode")
    mode = chosen or ("none" if in_ci else "once")
    is_compared = mode == COMPARE
    if is_compared:
        mode = "none"
    if mode == "once":
        # Decided here, since a process that is started later finds the file that this one has begun.
        mode = "none" if path.exists() and path.stat().st_size else "new_episodes"
    staging = None
    if mode != "none":
        staging = _begin(path)
    failed, unrecorded = request.config.stash[FAILED].copy(), _unrecorded()
    matching = options.get("match_on"), options.get("scrub")
    hint = "pytest --chainframe-record=new_episodes"
    try:
        opened = _share_cassette(path, mode, options.get("allow_playback_repeats"), *matching, staging, hint)
    except BaseException:
        _discard(staging)
        raise
    with pytest.MonkeyPatch.context() as environment:
        for variable, value in _variables(options, path, mode, staging).items():
            environment.setenv(variable, value)
        try:
            yield opened
            opened._compact()  # noqa: SLF001 - of the package
            has_failed = _failed(request, failed)
            if not has_failed:
                _reject_unrecorded(path, unrecorded)
            is_recorded = staging is not None and staging.stat().st_size > 0
            if len(opened) or not is_recorded:  # else other processes have recorded
                unplayed = [] if opened.mode in {"all", "rewrite"} else opened.unplayed
                request.config.stash[CLOSED].append((str(path), None if has_failed else len(opened), unplayed))
            if staging and is_recorded and not has_failed:
                staging.replace(path)
        finally:
            _forget_cassette(opened)
            _discard(staging)
    if is_compared and path.exists() and not _failed(request, failed):
        with Client() as client:
            request.config.stash[FINDINGS] += compare(path, client)


def _cassette_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    options: dict[str, Any] = dict(request.getfixturevalue("cassette_options"))
    for mark in reversed(list(request.node.iter_markers(CASSETTE_MARKER))):
        if mark.args:
            raise pytest.UsageError(f"mark.{CASSETTE_MARKER} takes options by name, such as path={mark.args[0]!r}")
        options.update(mark.kwargs)
    unknown = options.keys() - set(CASSETTE_OPTIONS)
    if unknown:
        raise pytest.UsageError(f"{CASSETTE_MARKER} has no option {min(unknown)!r}: {', '.join(CASSETTE_OPTIONS)}")
    return options


def _variables(options: dict[str, Any], path: Path, mode: str, staging: Path | None) -> dict[str, str]:
    """Return the environment for processes that the test starts."""
    # They record into the file that this process empties, and none of them can scrub.
    mode_of_others = "none" if options.get("scrub") else "all" if mode == "rewrite" else mode
    return {
        "CHAINFRAME_CASSETTE": str(path),
        "CHAINFRAME_CASSETTE_MODE": mode_of_others,
        "CHAINFRAME_CASSETTE_STAGING": "" if staging is None or mode_of_others == "none" else str(staging),
        "CHAINFRAME_CASSETTE_MATCH_ON": ",".join(options.get("match_on") or ()),
        "CHAINFRAME_CASSETTE_ALLOW_PLAYBACK_REPEATS": "1" if options.get("allow_playback_repeats") else "",
    }


def _reject_unrecorded(path: Path, before: dict[str, int]) -> None:
    """Fails if requests were sent by clients that do not use the cassette."""
    sent = {place: count - before.get(place, 0) for place, count in _unrecorded().items()}
    places = [f"{place} (requests: {count})" for place, count in sorted(sent.items()) if count]
    if places:
        pytest.fail(
            f"requests were sent past the cassette {path.name}, by clients made at {', '.join(places)}, before the "
            "cassette was opened: make them in the test, or in a fixture that requests the cassette",
            pytrace=False,
        )


def _begin(path: Path) -> Path:
    """Creates the file in which a cassette is recorded until the tests have passed.

    Its name is random and the file new: a run that was killed has left its own, whose content belongs to no other run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    with staging.open("xb") as file:
        if path.exists():
            file.write(path.read_bytes())
            shutil.copymode(path, staging)
    return staging


def _discard(staging: Path | None) -> None:
    """Removes what was not kept of a recording."""
    if staging:
        staging.unlink(missing_ok=True)
        with suppress(OSError):
            # Not empty, if anything was kept.
            staging.parent.rmdir()


def _failed(request: pytest.FixtureRequest, before: set[str]) -> bool:
    """True if a test of the fixture's scope did not pass."""
    failed = request.config.stash[FAILED] - before
    return any(name == request.node.nodeid or request.scope != "function" for name in failed)


def cassette_path(module: Path, nodeid: str) -> Path:
    """Path of a test's cassette: `cassettes/<module>/<test>.jsonl` beside its module."""
    name = nodeid.partition("::")[2].replace("::", ".").replace("[", ".", 1).removesuffix("]")
    safe = re.sub(r"[^\w.\-]", "_", name)
    if safe != name or safe != safe.lower() or len(safe) > MAX_NAME_LENGTH:
        # Two names must not become one, even where the file system ignores case.
        safe = f"{safe[:MAX_NAME_LENGTH]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return module.parent / "cassettes" / module.stem / f"{safe}.jsonl"
