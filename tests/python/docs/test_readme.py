"""The README's examples and figures, and the links of all Markdown files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from absolute_links import absolute
from conftest import needs_extra
from doc_examples import examples, executed
from repository import ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
MARKDOWN = sorted({README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")})
LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")


@needs_extra
def test_examples_print_the_output_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(examples(README)) == TEXT.count("```text") == 2
    assert executed(README) == TEXT


@needs_extra
def test_figures_are_those_of_the_example() -> None:
    command = [sys.executable, str(ROOT / "examples" / "requests_loop.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    table = TEXT.partition("## Why not a loop")[2].partition("\n\nRows")[0]
    rows = re.findall(r"^\| (?!Condition|---)(.*?) \|$", table, re.MULTILINE)
    figures = [re.findall(r"\b\d[\d,]+\b", row) for row in rows[:4]]
    assert len(rows) == 5
    assert all(figures)
    assert [figure for row in figures for figure in row if figure not in printed] == []


def test_last_figures_are_those_of_the_benchmark() -> None:
    benchmark = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = []
    for client in ("requests + pandas", "chainframe, `to_pandas`"):
        seconds, megabytes = re.findall(rf"^\| {re.escape(client)} \| ([\d.]+) \| (\d+) \|$", benchmark, re.MULTILINE)[
            0
        ]
        shown.append(f"{float(seconds):.2f} s of CPU, {megabytes} MB")
    row = next(line for line in TEXT.splitlines() if line.startswith("| 100,000 transfers into a data frame |"))
    assert [figures in row for figures in shown] == [True, True]


def test_readme_is_short_and_names_the_set_up_commands() -> None:
    assert len(TEXT.splitlines()) < 150
    assert "make demo " in TEXT
    assert "make test " in TEXT


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors that both GitHub and the site give to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_links_of_a_released_readme_are_absolute() -> None:
    released = absolute(TEXT, "https://code.example/chainframe/blob/v1/")
    assert LINK.findall(released) == []
    assert "](https://code.example/chainframe/blob/v1/docs/quickstart.md)" in released
    assert absolute("[a](#b), [c](https://d.example)", "https://code.example") == "[a](#b), [c](https://d.example)"


def test_pages_have_no_include_markers() -> None:
    assert [page.name for page in MARKDOWN if "{{" in page.read_text(encoding="utf-8")] == []


def test_links_are_found() -> None:
    assert sum(len(LINK.findall(page.read_text(encoding="utf-8"))) for page in MARKDOWN) > 100
