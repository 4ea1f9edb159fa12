"""Builds the wheel of this commit in two directories, compares the bytes, and looks for paths of the machine in it.

>>> python scripts/compare_builds.py  # exit code 1 if anything differs
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]


def build(clone: Path) -> Path:
    """Clones this repository and returns the wheel built there."""
    cloning = ["git", "clone", "--quiet", str(ROOT), str(clone)]
    subprocess.run(cloning, check=True)
    script = str(clone / "scripts" / "build_wheel.py")
    command = [sys.executable, script, "--release", "--out", "dist", "--interpreter", sys.executable]
    subprocess.run(command, cwd=clone, check=True)
    (wheel,) = (clone / "dist").glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def differences(one: Path, two: Path) -> list[str]:
    """Files that differ between two wheels, or the archives themselves."""
    if one.read_bytes() == two.read_bytes():
        return []
    left, right = contents(one), contents(two)
    files = [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
    return [f"{name} differs" for name in files] or ["the archives differ, though their files are the same"]


def leaks(wheel: Path, paths: list[Path]) -> list[str]:
    """The files of a wheel that contain one of these paths."""
    files = contents(wheel).items()
    return [f"{name} contains {path}" for name, content in files for path in paths if str(path).encode() in content]


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        one, two = (build(Path(home) / name) for name in ("one", "another/place"))
        found = differences(one, two) + leaks(one, [Path(home), Path.home(), ROOT])
    print("\n".join(found) or "both builds have the same bytes, and no path of this machine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
