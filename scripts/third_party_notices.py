"""Writes THIRD-PARTY-NOTICES.txt: the licenses of the crates that are linked into the wheel, from their own sources.

>>> python scripts/third_party_notices.py          # writes the file
>>> python scripts/third_party_notices.py --check  # fails if its list of crates is not the one of Cargo.lock
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
LICENSE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?", re.IGNORECASE)
RULE = "=" * 100


def linked() -> list[dict[str, Any]]:
    """Packages that the Python extension links, on any platform, by name and version."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--features", "python"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: set[str] = set()
    left = [metadata["resolve"]["root"]]
    while left:
        package = left.pop()
        if package in found:
            continue
        found.add(package)
        for dependency in nodes[package]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_linked and not is_proc_macro(packages[dependency["pkg"]]):
                left.append(dependency["pkg"])
    found.discard(metadata["resolve"]["root"])
    return sorted((packages[package] for package in found), key=lambda package: (package["name"], package["version"]))


def is_proc_macro(package: dict[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def title(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']} ({package['license'] or 'see its license file'})"


def texts(package: dict[str, Any]) -> list[str]:
    """License files of a package; a directory of licenses counts as well."""
    folder = Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if LICENSE_FILE.fullmatch(path.name)]
    files += [path for directory in files if directory.is_dir() for path in sorted(directory.iterdir())]
    return ["\n".join(path.read_text("utf-8", "replace").split("\n")).strip() for path in files if path.is_file()]


def render(packages: list[dict[str, Any]]) -> str:
    users: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        authors = ", ".join(re.sub(r" *<[^>]*>", "", author) for author in package["authors"])
        for text in texts(package) or [f"License: {package['license']}. Authors: {authors or 'the contributors'}."]:
            users[text].append(f"{package['name']} {package['version']}")
    parts = ["The compiled part of chainframe contains the following crates.", "\n".join(map(title, packages))]
    # Copies of one license differ in a few words, and so hardly in length: next to each other they compress to less.
    parts += [f"{RULE}\n{', '.join(users[text])}\n{RULE}\n\n{text}" for text in sorted(users, key=len)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    packages = linked()
    if "--check" in sys.argv[1:]:
        listed = NOTICES.read_text("utf-8").split("\n\n")[1].splitlines()
        differing = set(listed) ^ set(map(title, packages))
        if differing:
            print("run scripts/third_party_notices.py; the notices differ in", ", ".join(sorted(differing)))
        return 1 if differing else 0
    NOTICES.write_text(render(packages), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
