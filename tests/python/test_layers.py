"""Rust modules import only from modules below them, so that each can be read without those above."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
# From the bottom up.
CRATE = ["interface", "columns", "decode", "cassette", "client", "query", "events", "python"]
PYTHON = ["base", "results", "query", "client"]
QUERY = ["request", "snapshot", "audit", "results", "follow", "execution"]


def imports(folder: Path, prefix: str) -> set[tuple[str, str]]:
    """Pairs of (module, imported module) among the modules directly in `folder`; tests left out."""
    found = set()
    for file in folder.rglob("*.rs"):
        module = file.relative_to(folder).parts[0].removesuffix(".rs")
        code = file.read_text().split("#[cfg(test)]\nmod tests {")[0]
        if module not in {"mod", "lib"} and file.stem != "tests" and "tests" not in file.parts:
            names = re.findall(rf"\bcrate::{prefix}(\w+)", code)
            for group in re.findall(rf"\bcrate::{prefix}\{{([^}}]*)\}}", code):
                names += re.findall(r"(\w+)(?:::\w+)?,?", group)
            found |= {(module, name) for name in names if name != module}
    return found


def upward(folder: Path, prefix: str, order: list[str]) -> list[tuple[str, str]]:
    level = {name: number for number, name in enumerate(order)}
    known = [(user, used) for user, used in imports(folder, prefix) if user in level and used in level]
    assert {user for user, _ in known} >= set(order[-2:]), f"{order[-2:]} import something of the rest"
    return [pair for pair in known if level[pair[1]] > level[pair[0]]]


def test_layers_import_downwards() -> None:
    assert upward(SOURCE, "", CRATE) == []
    assert upward(SOURCE / "query", "query::", QUERY) == []
    assert upward(SOURCE / "python", "python::", PYTHON) == []


@pytest.mark.parametrize(
    "folder",
    ["query/request", "query/audit", "query/results", "query/execution", *(f"python/{layer}" for layer in PYTHON)],
)
def test_modules_of_a_folder_have_no_import_cycle(folder: str) -> None:
    used = defaultdict(set)
    for file in (SOURCE / folder).glob("*.rs"):
        if file.stem != "mod":
            used[file.stem] = set(re.findall(r"^use super::(\w+)", file.read_text(), re.MULTILINE))
    assert any(used.values())
    while used:
        lowest = [module for module, others in used.items() if not others & set(used)]
        assert lowest, f"import cycle among {sorted(used)}"
        for module in lowest:
            del used[module]
