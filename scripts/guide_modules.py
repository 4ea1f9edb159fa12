"""Writes the examples of the guide as modules, for the type checkers: `make types`.

>>> python scripts/guide_modules.py target/guide
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
BLOCK = re.compile(r'^```python(?: title="([\w.]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
# Schedulers, which are not installed, and whose decorators decide the types of what they decorate.
SCHEDULERS = re.compile(r"^(?:from|import) (?:airflow|dagster|prefect)\b", re.MULTILINE)


def modules() -> dict[str, str]:
    """Return a module for each page, which is read from top to bottom, and one for each file that a page shows."""
    found: dict[str, str] = {}
    for page in sorted(GUIDE.glob("*.md")):
        for title, content in BLOCK.findall(page.read_text(encoding="utf-8")):
            if title and not SCHEDULERS.search(content):
                found[title] = content
            elif not title:
                name = f"{page.stem.replace('-', '_')}_page.py"
                found[name] = f"{found[name]}\n\n{content}" if name in found else content
    return found


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in modules().items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
