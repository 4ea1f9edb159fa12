"""The pages about internals name files that exist, and all files of the parts that they explain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from repository import ROOT

PAGES = sorted((ROOT / "docs" / "internals").glob("*.md"))
# Pages with a table of all files of a folder, and files that are clear from the others.
TABLES = {
    "readers.md": ("src/query/snapshot", {"growth.rs", "list.rs"}),
    "datasets.md": ("python/chainframe/datasets", {"__init__.py"}),
}


def named(text: str) -> set[str]:
    return set(re.findall(r"`((?:src|python|tests|docs|scripts|examples)/[\w./-]+)`", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_by_a_page_exist(page: Path) -> None:
    paths = named(page.read_text("utf-8"))
    assert paths or page.name == "style.md"
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", TABLES)
def test_table_of_files_is_complete(page: str) -> None:
    folder, clear = TABLES[page]
    text = (ROOT / "docs" / "internals" / page).read_text("utf-8")
    files = {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
    assert files - clear == {Path(path).name for path in named(text) if Path(path).parent == Path(folder)} - clear
    short = set(re.findall(r"`(\w+\.(?:rs|py))`", text))
    assert short <= files


def test_index_names_every_folder_of_the_core_query() -> None:
    text = (ROOT / "docs" / "internals" / "index.md").read_text("utf-8")
    folders = {path.name for path in (ROOT / "src" / "query").iterdir() if path.is_dir()}
    assert folders
    assert [folder for folder in sorted(folders) if f"src/query/{folder}/" not in text] == []
