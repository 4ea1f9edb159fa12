"""Lists the texts that the package shows: messages of errors, logs, reports and the command.

python scripts/list_messages.py            # rewrite tests/messages.txt
python scripts/list_messages.py --check    # exit with 1 if it is out of date

The texts are the string literals of at least two words in the source, without docstrings, tests, SQL and panics. So
none is missing. Reading the file shows whether a message names the problem, its value and the solution.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTED = ROOT / "tests" / "messages.txt"

TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)
# Of attributes, only the messages of `thiserror`; `text_signature` and reasons are for tools.
ATTRIBUTE = re.compile(r"#!?\[(?!error)(?:[^\[\]\"]|\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\])*\]", re.DOTALL)
PANIC = re.compile(r"(?:\.expect|panic!|unreachable!|assert\w*!|const_assert!|include!|env!)\s*\(\s*$")
# Comments and characters are matched so that quotes in them open no string.
TOKEN = re.compile(
    r'r(?P<hashes>#*)"(?P<raw>.*?)"(?P=hashes)|"(?P<text>(?:[^"\\]|\\.)*)"|//[^\n]*|\'(?:\\.|[^\\\'])\'', re.DOTALL
)
CONTINUED = re.compile(r"\\\n\s*")
WORDS = re.compile(r"[A-Za-z]{2,}\W*\s+\W*[A-Za-z0-9{]+")
SQL = r"^\s*(?:CREATE|SELECT|INSERT|DELETE|UPDATE|PRAGMA|BEGIN|WITH|ATTACH|DROP|ALTER)\b"
CODE = re.compile(rf"{SQL}|</?\w+[ >]|[{{;][a-z-]+:[a-z0-9#(]")


def rust_texts(source: str) -> list[str]:
    """Return the texts of a Rust file, in order."""
    source = ATTRIBUTE.sub("", TESTS.sub("", source))
    texts = []
    for match in TOKEN.finditer(source):
        text = match["raw"] or match["text"] or ""
        if not PANIC.search(source[max(0, match.start() - 40) : match.start()]):
            texts.append(CONTINUED.sub("", text).replace('\\"', '"'))
    return texts


def python_texts(source: str) -> list[str]:
    """Return the texts of a Python file, in order."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        # Docstrings, and the strings after an attribute that document it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(part for part in ast.walk(node) if isinstance(part, ast.Constant))
    found = [
        (node.lineno, node.col_offset, _text(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in skipped
    ]
    return [text for _, _, text in sorted(found)]


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = [f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else part for part in node.values]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else str(part) for part in parts)


def listing() -> str:
    """Return the content of tests/messages.txt."""
    sections = []
    sources = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    for path in sorted(
        path for path in sources if path.stem != "tests" and "tests" not in path.relative_to(ROOT).parts
    ):
        source = path.read_text(encoding="utf-8")
        texts = rust_texts(source) if path.suffix == ".rs" else python_texts(source)
        shown = dict.fromkeys(" ".join(text.split()) for text in texts if WORDS.search(text) and not CODE.search(text))
        if shown:
            sections.append("\n".join([f"# {path.relative_to(ROOT).as_posix()}", *shown]))
    return "\n\n".join(sections) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write tests/messages.txt.")
    parser.add_argument("--check", action="store_true", help="only compare it, and fail if it is not up to date")
    options = parser.parse_args(arguments)
    current = listing()
    if options.check:
        return 0 if LISTED.read_text(encoding="utf-8") == current else 1
    LISTED.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
