"""Check the code for other systems with their standard libraries alone.

>>> python scripts/check_targets.py  # or with the names of targets
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGETS = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"]
# A check links nothing, so the objects of C libraries may be empty. Preprocessed text is read by build scripts.
COMPILER = """#!/usr/bin/env python3
import os, sys
if "-E" in sys.argv:
    os.execvp("cc", ["cc", *sys.argv[1:]])
for flag, value in zip(sys.argv, sys.argv[1:]):
    if flag == "-o":
        open(value, "w").close()
"""
ARCHIVER = """#!/usr/bin/env python3
import sys
for value in sys.argv[1:]:
    if value.endswith(".a"):
        open(value, "w").close()
"""


def check(target: str) -> None:
    folder = ROOT / "target" / "targets"
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(folder), "PYO3_NO_PYTHON": "1"}
    for variable, name, text in (("CC", "cc", COMPILER), ("CXX", "cc", COMPILER), ("AR", "ar", ARCHIVER)):
        program = folder / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        environment[f"{variable}_{target.replace('-', '_')}"] = str(program)
    # The interpreter of the other builds is one of this system.
    environment.pop("PYO3_PYTHON", None)
    if rustup := shutil.which("rustup"):
        subprocess.run([rustup, "target", "add", target], check=True)
    command = ["cargo", "clippy", "--lib", "--features", "python", "--target", target, "--", "-D", "warnings"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or TARGETS:
        check(name)
