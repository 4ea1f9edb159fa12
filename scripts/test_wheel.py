"""Installs a distribution into an empty environment and runs the tests that need no extra.

python scripts/test_wheel.py dist            # the wheel or source distribution in that directory
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST = 2_500
"""Tests that pass without an extra on every system; more than three thousand do on Linux."""


def main(folder: str) -> int:
    found = [path for path in Path(folder).iterdir() if path.name.endswith((".whl", ".tar.gz"))]
    if len(found) != 1:
        print(f"{folder} holds {len(found)} distributions; there must be one", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        venv.create(home, with_pip=True)
        python = Path(home) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, str(found[0])], check=True)
        subprocess.run([*pip, "pytest>=9"], check=True)
        # Leaves out the tests that need an extra.
        environment = {**os.environ, "CHAINFRAME_TESTS": "bare"}
        report = Path(home) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", f"--junitxml={report}"]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if code == 0 and passed(report) < LEAST:
            print(f"{passed(report)} tests passed; there must be {LEAST}: too many are skipped", file=sys.stderr)
            return 1
        return code


def passed(report: Path) -> int:
    """Return the number of tests that passed according to a report of pytest."""
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - pytest wrote it
    return sum(
        int(suite.attrib["tests"]) - sum(int(suite.attrib[kind]) for kind in ("failures", "errors", "skipped"))
        for suite in suites
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
