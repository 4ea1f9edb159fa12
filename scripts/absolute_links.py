"""Make the relative links of the README absolute, for package indexes, which show it outside the repository.

It also adds the URLs of the project to its metadata.

Usage: python scripts/absolute_links.py URL, where URL is that of the repository's files at the released commit.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, PYPROJECT = ROOT / "README.md", ROOT / "pyproject.toml"


def absolute(markdown: str, url: str) -> str:
    """Prefix every link target that has neither a scheme nor only an anchor."""
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\1{url.rstrip('/')}/", markdown)


def with_urls(pyproject: str, url: str) -> str:
    """Add the table of URLs that an index links to."""
    repository, url = url.partition("/blob/")[0], url.rstrip("/")
    urls = {
        "Repository": repository,
        "Documentation": f"{url}/docs/index.md",
        "Changelog": f"{url}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    table = "".join(f'{name} = "{target}"\n' for name, target in urls.items())
    return pyproject.replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]", 1)


def main(url: str) -> None:
    PYPROJECT.write_text(with_urls(PYPROJECT.read_text(encoding="utf-8"), url), encoding="utf-8")
    README.write_text(absolute(README.read_text(encoding="utf-8"), url), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
