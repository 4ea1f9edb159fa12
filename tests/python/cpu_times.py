"""Plugin that ends a run with the CPU time of its most expensive files and tests, the processes they start included."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# Shorter runs need no list.
MIN_SECONDS = 60
FILES = 12
TESTS = 12


def cpu_time() -> float:
    """Seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class _Clock:
    last = 0.0

    def elapsed(self) -> float:
        before, self.last = self.last, cpu_time()
        return self.last - before


clock = _Clock()


def pytest_runtest_logstart() -> None:
    clock.elapsed()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    # Setup, call and teardown have a report each. A fixture of the session counts for the first test that uses it.
    report = yield
    report.cpu_time = clock.elapsed()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if hasattr(report, "cpu_time"):
            tests[report.nodeid] += report.cpu_time
            files[report.nodeid.partition("::")[0]] += report.cpu_time
    if files.total() < MIN_SECONDS:
        return
    terminalreporter.section(f"CPU time: {files.total():.0f} s")
    for name, seconds in (*files.most_common(FILES), *tests.most_common(TESTS)):
        terminalreporter.write_line(f"{seconds:6.1f} s  {name}")
