"""Prints what an extra of the package requires, so that it can be installed before the wheel is built.

python scripts/extra_requirements.py all
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
OWN_EXTRAS = re.compile(r"chainframe\[(.+)\]")


def requirements(extra: str) -> set[str]:
    """Requirements of an extra, and of the extras that it consists of."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    found = set()
    for requirement in project["optional-dependencies"][extra]:
        own = OWN_EXTRAS.fullmatch(requirement)
        if own:
            found |= {each for part in own[1].split(",") for each in requirements(part)}
        else:
            found.add(requirement)
    return found


if __name__ == "__main__":
    print(*sorted(requirements(sys.argv[1])))
