"""The pytest plugin: fixtures for the local service and for cassettes. Installing chainframe brings it along.

>>> def test_blocks(local_service):
...     with local_service.client() as client:
...         assert client.blocks(max_items=3).collect()

>>> @pytest.mark.chainframe(transactions=50, faults=[{"kind": "reset", "first": 1}])
... def test_a_bad_day(local_service): ...

>>> def test_report(cassette):  # recorded once, then replayed from cassettes/<module>/test_report.jsonl
...     with cf.Client() as client:
...         assert make_report(client)
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from chainframe._native import _environment_cassette
from chainframe.testing import LocalService

try:
    import pytest
except ModuleNotFoundError:
    raise ModuleNotFoundError("pytest is not installed; run: pip install pytest", name="pytest") from None

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chainframe.testing import Cassette

MODES = ("none", "once", "new_episodes", "all")
MARKER = "chainframe"
TRANSACTIONS = 1_000
"""Few enough to be there at once."""
LONGEST_NAME = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("chainframe").addoption(
        "--chainframe-record",
        choices=MODES,
        metavar="MODE",
        help="what the fixture `cassette` does: none, once, new_episodes or all (default: none where CI is set in the "
        "environment, else once)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(**options): options of LocalService for the fixture local_service, such as faults=[...]"
    )


@pytest.fixture
def local_service(request: pytest.FixtureRequest) -> Iterator[LocalService]:
    """A running `chainframe.testing.LocalService` of this test, with the options of its `chainframe` marks."""
    options: dict[str, object] = {"transactions": TRANSACTIONS}
    # The nearest mark comes first, and decides.
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        if mark.args:
            raise pytest.UsageError(f"mark.{MARKER} takes options of LocalService by name only, such as growth=1")
        options.update(mark.kwargs)
    with LocalService(**options) as service:  # type: ignore[arg-type]
        yield service


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A `chainframe.testing.Cassette` of this test, for every client that the test makes without another one.

    It stands in the environment as well, so that processes which the test starts use it too.
    """
    path = cassette_path(request.path, request.node.nodeid)
    in_ci = os.environ.get("CI", "").lower() not in {"", "0", "false"}
    mode = request.config.getoption("--chainframe-record") or ("none" if in_ci else "once")
    if mode == "once":
        # Decided here, since a process that is started later finds the file that this one has begun.
        mode = "none" if path.exists() and path.stat().st_size else "new_episodes"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CHAINFRAME_CASSETTE", str(path))
        environment.setenv("CHAINFRAME_CASSETTE_MODE", mode)
        opened = _environment_cassette(fresh=True)
        assert opened is not None
        yield opened


def cassette_path(module: Path, nodeid: str) -> Path:
    """Where a test's cassette is: `cassettes/<module>/<test>.jsonl` beside its module."""
    name = nodeid.partition("::")[2].replace("::", ".").replace("[", ".", 1).removesuffix("]")
    safe = re.sub(r"[^\w.\-]", "_", name)
    if safe != name or len(safe) > LONGEST_NAME:
        # Two names must not become one.
        safe = f"{safe[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return module.parent / "cassettes" / module.stem / f"{safe}.jsonl"
