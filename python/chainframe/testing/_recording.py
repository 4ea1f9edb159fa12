"""The cassettes of the plugin's fixtures: how they are opened, and what is kept of them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from chainframe import ChainframeError, Client
from chainframe._native import _forget_cassette, _merge_cassette, _sent_requests, _share_cassette
from chainframe._paths import refuse_link
from chainframe._text import counted
from chainframe.testing import _rewriting
from chainframe.testing._drift import Finding, compare

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from chainframe.testing import Cassette

MODES = ("none", "once", "new_episodes", "all", "rewrite")
COMPARE = "compare"
MARKER = "chainframe_cassette"
OPTIONS = ("mode", "path", "allow_playback_repeats", "match_on", "scrub")
HINT = "record it with pytest --chainframe-record=new_episodes"
SCRUB_HINT = (
    "the cassette of the test has scrub, so that only the process of the test scrubs and records: send the request "
    "there, or pass this process a cassette of its own"
)
MAX_NAME_LENGTH = 120
MAX_SHOWN = 3
FAILED = pytest.StashKey[Counter[str]]()
"""Names of the tests that did not pass, with the number of times: a test may be run again."""
FINDINGS = pytest.StashKey[list[Finding]]()
"""Differences between recordings and the service that no report has yet."""


class Closed(NamedTuple):
    """A cassette that a test has used, with the number of its recordings and those that were not played."""

    path: str
    recordings: int | None
    """None if a test failed, and so may have ended early."""
    unplayed: list[str]


CLOSED = pytest.StashKey[list[Closed]]()
"""Cassettes that no report has yet."""


@contextmanager
def in_one_line() -> Generator[None]:
    """Fail the test with the message alone: the code of the fixture is not the user's."""
    try:
        yield
    except (ChainframeError, OSError, TypeError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def has_failed(request: pytest.FixtureRequest, before: Counter[str]) -> bool:
    """Return True if a test of the fixture's scope did not pass."""
    failed = request.config.stash[FAILED] - before
    return any(name == request.node.nodeid or request.scope != "function" for name in failed)


def listed(texts: list[str]) -> str:
    """Return the first texts, and the number of the others."""
    more = f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
    return f"{', '.join(texts[:MAX_SHOWN])}{more}"


class _Plan(NamedTuple):
    """The options of the cassette of a fixture, its file and its mode."""

    options: dict[str, Any]
    path: Path
    mode: str
    is_named: bool
    """True if the path is an option, so that tests of other modules may use it."""
    is_shared: bool
    """True if other tests may use the file, in other processes as well."""
    is_rewritten: bool
    """True if the file is shared, and replaced at the end of the run."""
    is_compared: bool


def _plan(request: pytest.FixtureRequest, path: Path) -> _Plan:
    options = _options(request)
    if is_named := bool(options.get("path")):
        folder = request.config.rootpath if request.scope == "session" else request.path.parent
        path = folder / options["path"]
    chosen = _mode(request, options)
    is_shared = is_named or request.scope != "function"
    is_rewritten = is_shared and chosen == "rewrite"
    mode = "none" if chosen == COMPARE else "all" if is_rewritten else chosen
    if mode == "once":
        # Decided here, since a process that is started later finds the file that this one has begun.
        mode = "none" if path.exists() and path.stat().st_size else "new_episodes"
    return _Plan(options, path, mode, is_named, is_shared, is_rewritten, chosen == COMPARE)


@contextmanager
def recording(request: pytest.FixtureRequest, path: Path) -> Generator[Cassette]:
    """Open the cassette of a fixture, and keep what it recorded if the tests passed."""
    plan = _plan(request, path)
    failed = request.config.stash[FAILED].copy()
    sent = _unrecorded()
    with TemporaryDirectory(prefix="chainframe-") as folder, pytest.MonkeyPatch.context() as environment:
        journal = Path(folder) / "journal"
        journal.touch()
        opened, staging = _open(request.config, plan, journal)
        for variable, value in _variables(plan, staging, journal).items():
            environment.setenv(variable, value)
        try:
            yield opened
            opened._compact()  # noqa: SLF001 - of the package
            is_failed = has_failed(request, failed)
            is_recorded = staging is not None and staging.stat().st_size > 0
            if len(opened) or opened.missed or not is_recorded:  # else other processes have recorded
                unplayed = [] if opened.mode in {"all", "rewrite"} else opened.unplayed
                is_partial = is_failed or bool(opened.missed) or bool(_unrecorded() - sent)
                closed = Closed(str(plan.path), None if is_partial else len(opened), unplayed)
                request.config.stash[CLOSED].append(closed)
            if not is_failed:
                _reject_unrecorded(plan.path, sent)
                _reject_missed(opened)
                if staging and is_recorded:
                    _keep(request, plan, staging, opened)
        finally:
            _forget_cassette(opened)
            _discard(staging)
    if plan.is_compared and plan.path.exists() and not has_failed(request, failed):
        with in_one_line(), Client() as client:
            request.config.stash[FINDINGS] += compare(plan.path, client)


def _open(config: pytest.Config, plan: _Plan, journal: Path) -> tuple[Cassette, Path | None]:
    """Open the cassette, and the file in which it is recorded until the tests have passed."""
    options = plan.options
    staging = None
    repeats, match_on, scrub = (options.get(name) for name in ("allow_playback_repeats", "match_on", "scrub"))
    try:
        with in_one_line():
            if plan.mode != "none":
                content: Path | None = plan.path
                if plan.is_shared and plan.mode == "all":
                    content = _rewriting.earlier(config, plan.path) if plan.is_rewritten else None
                for folder in [] if plan.is_named else _folders(plan.path):
                    refuse_link(folder)
                staging = _begin(plan.path, content)
            files = staging, journal
            return _share_cassette(plan.path, plan.mode, repeats, match_on, scrub, files, HINT), staging
    except BaseException:
        _discard(staging)
        raise


def _keep(request: pytest.FixtureRequest, plan: _Plan, staging: Path, opened: Cassette) -> None:
    if plan.is_rewritten:
        module = request.path if request.scope == "module" and not plan.is_named else None
        _rewriting.keep(request.config, plan.path, staging, opened, module)
    elif plan.is_shared:
        # Another process may have recorded into it meanwhile.
        _merge_cassette(opened, staging, plan.mode)
    else:
        staging.replace(plan.path)


def _mode(request: pytest.FixtureRequest, options: dict[str, Any]) -> str:
    in_ci = os.environ.get("CI", "").lower() not in {"", "0", "false"}
    chosen: str | None = request.config.getoption("--chainframe-record") or options.get("mode")
    return chosen or ("none" if in_ci else "once")


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    options: dict[str, Any] = dict(request.getfixturevalue("cassette_options"))
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        if mark.args:
            pytest.fail(f"mark.{MARKER} takes options by name, such as path={mark.args[0]!r}", pytrace=False)
        options.update(mark.kwargs)
    unknown = options.keys() - set(OPTIONS)
    if unknown:
        pytest.fail(f"{MARKER} has no option {min(unknown)!r}: {', '.join(OPTIONS)}", pytrace=False)
    return options


def _variables(plan: _Plan, staging: Path | None, journal: Path) -> dict[str, str]:
    """Return the environment for processes that the test starts."""
    # They record into the file that this process empties, and none of them can scrub.
    options = plan.options
    is_scrubbed = bool(plan.options.get("scrub"))
    mode_of_others = "none" if is_scrubbed else "all" if plan.mode == "rewrite" else plan.mode
    return {
        "CHAINFRAME_CASSETTE": str(plan.path),
        "CHAINFRAME_CASSETTE_MODE": mode_of_others,
        "CHAINFRAME_CASSETTE_STAGING": "" if staging is None or mode_of_others == "none" else str(staging),
        "CHAINFRAME_CASSETTE_JOURNAL": str(journal),
        "CHAINFRAME_CASSETTE_HINT": SCRUB_HINT if is_scrubbed else HINT,
        "CHAINFRAME_CASSETTE_MATCH_ON": ",".join(options.get("match_on") or ()),
        "CHAINFRAME_CASSETTE_ALLOW_PLAYBACK_REPEATS": "1" if options.get("allow_playback_repeats") else "",
    }


def _unrecorded() -> Counter[str]:
    """Return the requests that were sent past all cassettes, by the places where their clients were made."""
    counts: Counter[str] = Counter()
    for _, place, _, _, is_recorded, count in _sent_requests():
        if not is_recorded:
            counts[place] += count
    return counts


def places_of(counts: Counter[str]) -> str:
    """Return the places where clients were made, with the numbers of their requests."""
    return ", ".join(f"{place} (requests: {count})" for place, count in sorted(counts.items()))


def _reject_unrecorded(path: Path, before: Counter[str]) -> None:
    """Fail if requests were sent by clients that do not use the cassette."""
    if sent := _unrecorded() - before:
        pytest.fail(
            f"requests were sent past the cassette {path.name}, by clients made at {places_of(sent)}, before the "
            "cassette was opened: make them in the test, or in a fixture that requests the cassette",
            pytrace=False,
        )


def _reject_missed(opened: Cassette) -> None:
    """Fail if requests had no recording, and the test has caught the errors."""
    if missed := list(dict.fromkeys(opened.missed)):
        pytest.fail(
            f"the test passed although {opened.path.name} has no recording of {listed(missed)}: CassetteMissError was "
            f"caught; {HINT}, or pass a cassette of its own to a client that is to miss",
            pytrace=False,
        )


def _folders(path: Path) -> list[Path]:
    """Return the directories that the plugin makes for a cassette of its own: `cassettes`, and one for each module."""
    above = list(path.parents)
    return above[: [folder.name for folder in above].index("cassettes") + 1]


def _begin(path: Path, content: Path | None) -> Path:
    """Create the file in which a cassette is recorded until the tests have passed, with the content of another one.

    Its name is random and the file new: a run that was killed has left its own, whose content belongs to no other run.
    """
    refuse_link(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    with staging.open("xb") as file:
        if content and content.exists():
            file.write(content.read_bytes())
        if path.exists():
            shutil.copymode(path, staging)
    return staging


def _discard(staging: Path | None) -> None:
    """Remove what was not kept of a recording."""
    if staging:
        staging.unlink(missing_ok=True)
        with suppress(OSError):
            # Not empty, if anything was kept.
            staging.parent.rmdir()


def cassette_path(module: Path, nodeid: str) -> Path:
    """Return the path of a test's cassette: `cassettes/<module>/<test>.jsonl` beside its module."""
    name = nodeid.partition("::")[2].replace("::", ".").replace("[", ".", 1).removesuffix("]")
    safe = re.sub(r"[^\w.\-]", "_", name)
    if safe != name or safe != safe.lower() or len(safe) > MAX_NAME_LENGTH:
        # Two names must not become one, even where the file system ignores case.
        safe = f"{safe[:MAX_NAME_LENGTH]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return module.parent / "cassettes" / module.stem / f"{safe}.jsonl"


def unused(closed: list[Closed]) -> Iterator[str]:
    """Yield lines about recordings that no test has used. Several tests and processes may share a cassette."""
    by_path: dict[str, list[Closed]] = {}
    for each in closed:
        by_path.setdefault(each.path, []).append(each)
    for path, uses in sorted(by_path.items()):
        counts = [use.recordings for use in uses if use.recordings is not None]
        if len(counts) < len(uses):
            continue
        left = Counter(uses[0].unplayed)
        for use in uses:
            left &= Counter(use.unplayed)
        requests = list(left.elements())
        if not any(counts):
            yield f"{path}: no request was sent"
        elif requests:
            recordings = counted(max(counts), "recording")
            yield f"{path}: {len(requests)} of {recordings} not played: {listed(requests)}"
