"""Runs the tests with the lowest supported version of each optional dependency, in an environment under target.

python scripts/test_lowest.py dist            # the wheel in that directory
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import extra_requirements
from test_wheel import passed

ROOT = Path(__file__).resolve().parents[1]
# Libraries that the package works with, without an extra.
CONNECTED = {"adbc-driver-postgresql", "dask", "deltalake", "duckdb", "ibis-framework", "pyspark-client"}
TOOLS = {
    "adbc-driver-manager",
    "eth-abi",
    "eth-hash",
    "hypothesis",
    "matplotlib",
    "maturin",
    "opentelemetry-sdk",
    "pytest",
    "pytest-xdist",
    "pytz",
    "trustme",
    "zizmor",
}
LEAST = 6_000
"""Tests that pass at least; some nine thousand do. Those that need another library are left out."""


def requirements() -> list[str]:
    """Requirements of the extras and of the libraries in the tests, each at its lowest version, and the test tools."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found = extra_requirements.requirements("all")
    groups = declared["dependency-groups"]
    development = [each for name in ("build", "demo", "dev") for each in groups[name] if isinstance(each, str)]
    found |= {each for each in development if _name(each) in CONNECTED}
    tools = [each for each in development if _name(each) in TOOLS]
    return sorted(re.sub(r">=([\d.]+).*", r"==\1", requirement) for requirement in found) + tools


def _name(requirement: str) -> str:
    return re.split(r"[\[>=<]", requirement, maxsplit=1)[0]


def main(folder: str) -> int:
    (wheel,) = Path(folder).glob("*.whl")
    home = ROOT / "target" / "lowest"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    venv.create(home, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    wanted = requirements()
    print("testing with", ", ".join(wanted), flush=True)
    subprocess.run([*pip, str(wheel), *wanted], check=True)
    # Leaves out the tests that need another tool.
    environment = {**os.environ, "CHAINFRAME_TESTS": "lowest"}
    report = home / "report.xml"
    command = [str(python), "-m", "pytest", "-q", "-n", "auto", f"--junitxml={report}", *sys.argv[2:]]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if code == 0 and not sys.argv[2:] and passed(report) < LEAST:
        print(f"{passed(report)} tests passed; there must be {LEAST}: too many are left out", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
