"""Modules import only from modules below them, so that each can be read without those above."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = ROOT / "src"
PACKAGE = ROOT / "python" / "chainframe"
# From the bottom up.
PYTHON = ["base", "results", "query", "client"]
QUERY = ["hashed", "request", "snapshot", "audit", "evidence", "results", "follow", "execution"]

Imports = dict[str, set[str]]


def rust_modules(folder: Path) -> Imports:
    """Modules directly in a folder, with those of them that each imports; tests left out."""
    names = {entry.stem for entry in folder.iterdir() if entry.is_dir() or entry.suffix == ".rs"}
    names -= {"mod", "lib", "tests"}
    path = "::".join(["crate", *folder.relative_to(SOURCE).parts])
    imports: Imports = {name: set() for name in names}
    for file in folder.rglob("*.rs"):
        below = file.relative_to(folder).parts
        name = below[0].removesuffix(".rs")
        if name not in names or "tests" in below or file.stem == "tests":
            continue
        code = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
        up = "super::" * (len(below) - (file.stem == "mod"))
        for prefix in (re.escape(f"{path}::"), rf"(?<!::){up}"):
            imports[name] |= set(re.findall(rf"\b{prefix}(\w+)", code))
            for group in re.findall(rf"\b{prefix}\{{(.*?)\}};", code, re.DOTALL):
                imports[name] |= set(re.findall(r"\w+", group))
    return {name: used & names - {name} for name, used in imports.items()}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements of a module and of its functions, without those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from statements(node)


def python_modules(folder: Path) -> Imports:
    """Modules directly in a folder, with those of them that each imports, also within its functions."""
    package = ".".join(["chainframe", *folder.relative_to(PACKAGE).parts])
    imports: Imports = {}
    for entry in folder.iterdir():
        files = sorted(entry.rglob("*.py")) if entry.is_dir() else [entry] * (entry.suffix == ".py")
        if not files or entry.stem in {"__init__", "__main__"}:
            continue
        used = set()
        for statement in (node for file in files for node in statements(ast.parse(file.read_text(encoding="utf-8")))):
            if isinstance(statement, ast.Import):
                used |= {alias.name for alias in statement.names}
            elif isinstance(statement, ast.ImportFrom):
                used |= {f"{statement.module}.{alias.name}" for alias in statement.names}
        within = {name.removeprefix(f"{package}.").split(".")[0] for name in used if name.startswith(f"{package}.")}
        imports[entry.stem] = within - {entry.stem}
    return {name: used & set(imports) for name, used in imports.items()}


def circle(imports: Imports) -> list[str]:
    """Modules of which each imports another one of them; empty if there are none."""
    left = dict(imports)
    while lowest := [name for name, used in left.items() if not used & set(left)]:
        for name in lowest:
            del left[name]
    return sorted(left)


def folders() -> list[str]:
    rust = [folder for folder in [SOURCE, *SOURCE.rglob("*/")] if "tests" not in folder.parts]
    python = [PACKAGE, *(file.parent for file in PACKAGE.rglob("__init__.py"))]
    return sorted({str(folder.relative_to(ROOT)) for folder in [*rust, *python]})


@pytest.mark.parametrize("folder", folders())
def test_modules_of_a_folder_import_without_a_circle(folder: str) -> None:
    modules = rust_modules if folder.startswith("src") else python_modules
    found = circle(modules(ROOT / folder))
    assert not found, f"import circle among {found}"


@pytest.mark.parametrize(("folder", "order"), [("query", QUERY), ("python", PYTHON)])
def test_layers_import_downwards(folder: str, order: list[str]) -> None:
    imports = rust_modules(SOURCE / folder)
    assert imports[order[-1]] >= set(order[-3:-1])
    for number, layer in enumerate(order):
        assert imports[layer] <= set(order[:number]), layer


def rows() -> dict[str, str]:
    """Modules of the core by the table of docs/architecture.md, with what each may use."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `src/(\w+)(?:\.rs|/)` \| .* \| (.*) \|$", page, re.MULTILINE))


def test_table_of_the_architecture_has_the_modules_and_their_imports() -> None:
    imports = rust_modules(SOURCE)
    table = rows()
    assert set(table) == set(imports)
    for number, (module, uses) in enumerate(table.items()):
        listed = set(re.findall(r"`(\w+)`", uses))
        assert listed == imports[module], module
        assert listed <= set(list(table)[:number]), f"{module} is above what it uses"


def test_table_of_the_architecture_names_files_and_folders_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## Repository layout")[1].split("\n## ")[0]
    for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", cell):
            assert (ROOT / path).is_dir() == path.endswith("/"), path
            assert (ROOT / path).exists(), path


def test_mutation_tests_change_every_module_of_the_list_reader() -> None:
    config = tomllib.loads((ROOT / ".cargo" / "mutants.toml").read_text(encoding="utf-8"))
    examined = {file for pattern in config["examine_globs"] for file in ROOT.glob(pattern)}
    reader = {file for file in (SOURCE / "query" / "snapshot").rglob("*.rs") if "tests" not in {*file.parts, file.stem}}
    assert len(reader) > 10
    assert reader <= examined
