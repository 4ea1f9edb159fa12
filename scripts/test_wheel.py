"""Installs a distribution into an empty environment and runs the tests that need no extra.

python scripts/test_wheel.py dist            # the wheel or source distribution in that directory
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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
        return subprocess.run([python, "-m", "pytest", "-q"], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
