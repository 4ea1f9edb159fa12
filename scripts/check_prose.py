"""Checks the wording of comments, docstrings, docs and messages: `python scripts/check_prose.py [FILE ...]`.

A doc comment or docstring starts with a noun phrase or a verb, and no text uses the words listed here, which have a
plainer equivalent. Prints each place and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "python", "docs", "tests", "scripts", "benches", "fuzz", "examples", ".github")
FILES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
    "Cargo.toml",
    "build.rs",
    "mkdocs.yml",
    "pyproject.toml",
)
SUFFIXES = {".rs", ".py", ".pyi", ".md", ".toml", ".yml", ".ipynb", ""}
# Files that quote the words.
EXEMPT = ("scripts/check_prose.py", "tests/python/docs/test_prose.py")

HEADLESS = re.compile(r'^\s*(?:///|//!|[rb]?""")\s*(What|Whether|Where|How|Of)\b')
DOC_COMMENT = re.compile(r"^\s*(///|//!)")
WORDS = {
    "anew": "again, or: from scratch",
    "as it stands": "unchanged, or: the current",
    "befall": "happen, or: apply to",
    "befalls": "happens, or: applies to",
    "ever after": "from then on",
    "further ado": "(leave out)",
    "go on": "continue, or: resume",
    "goes on": "continues, or: resumes",
    "gone on": "continued, or: resumed",
    "going on": "continuing, or: resuming",
    "house": "repository, or: architecture",
    "is none of": "must be one of",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "nobody": "no caller, or name the actor",
    "shall": "must, or: is",
    "so many": "n, or: up to n",
    "somebody": "the caller, or name the actor",
    "told by": "determined by, or: reported by",
    "whoever": "the caller, or name the actor",
}
FORBIDDEN = re.compile(rf"\b({'|'.join(map(re.escape, sorted(WORDS, key=len, reverse=True)))})\b", re.IGNORECASE)


def problems(text: str) -> list[tuple[int, str]]:
    """Return the line number and the description of each problem."""
    found = []
    in_doc_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        headless = HEADLESS.match(line)
        if headless and not in_doc_comment:
            found.append((number, f"starts with {headless[1]!r}; start with a noun phrase or a verb"))
        in_doc_comment = DOC_COMMENT.match(line) is not None
        # The words of an identifier count too.
        words = FORBIDDEN.findall(line.replace("_", " "))
        found.extend((number, f"{word!r}; write {WORDS[word.lower()]}") for word in words)
    return found


def checked_files() -> list[Path]:
    """Return the files of the repository that hold prose."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *FOLDERS, *FILES],  # noqa: S607 - the one of the developer
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [name for name in listed.stdout.split("\0") if name and name not in EXEMPT]
    return [ROOT / name for name in files if Path(name).suffix in SUFFIXES and (ROOT / name).is_file()]


def main(arguments: list[str]) -> int:
    files = [Path(name).resolve() for name in arguments] or checked_files()
    count = 0
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        for line, problem in problems(path.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {problem}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
