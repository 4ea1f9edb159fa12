"""The check of wording, scripts/check_prose.py."""

from __future__ import annotations

import pytest

import check_prose

pytestmark = pytest.mark.skipif(not (check_prose.ROOT / ".git").exists(), reason="not a git checkout")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/// Whether the list ends.", "starts with 'Whether'"),
        ('    """What the call returns."""', "starts with 'What'"),
        ("//! How pages are put together.", "starts with 'How'"),
        ("# It goes on from there.", "'goes on'; write continues, or: resumes"),
        ("def test_it_goes_on_elsewhere() -> None:", "'goes on'"),
        ("Nobody reads it.", "'Nobody'; write no caller, or name the actor"),
    ],
)
def test_forbidden_wording_is_found_with_its_replacement(line: str, problem: str) -> None:
    ((number, found),) = check_prose.problems(f"first line\n{line}\n")
    assert number == 2
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "text",
    [
        "/// True if the list ends.",
        "/// The first page.\n/// What follows is in the next one.",
        "whouse = 1",
        "Households of one.",
    ],
)
def test_plain_wording_is_accepted(text: str) -> None:
    assert check_prose.problems(text) == []


def test_files_of_every_folder_are_checked() -> None:
    folders = {path.relative_to(check_prose.ROOT).parts[0] for path in check_prose.checked_files()}
    assert folders >= {"src", "python", "docs", "tests", "scripts", "benches", "README.md", "Makefile"}


def test_repository_has_no_forbidden_wording(capsys: pytest.CaptureFixture[str]) -> None:
    code = check_prose.main([])
    assert (code, capsys.readouterr().out) == (0, "")
