"""The Python examples of a Markdown page, and the output that the page shows for them."""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout
from decimal import DefaultContext, localcontext
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# An example, and its output where the page shows it. Examples with a title are run by other tests.
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[str]:
    return [match[1] for match in EXAMPLE.finditer(page.read_text(encoding="utf-8"))]


def executed(page: Path) -> str:
    """Run the examples of a page in one namespace; returns the page with the outputs of this run.

    With CHAINFRAME_UPDATE_DOCS set, the page is rewritten with them.
    """
    names: dict[str, object] = {}

    def run(match: re.Match[str]) -> str:
        with redirect_stdout(StringIO()) as printed:
            exec(compile(match[1], page.name, "exec"), names)
        if match[2] is None:
            return match[0]
        output = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        return f"```python\n{match[1]}```\n\n```text\n{output}\n```\n"

    # A page may set the precision of decimals, which the next one does not have.
    with localcontext(DefaultContext):
        text = EXAMPLE.sub(run, page.read_text(encoding="utf-8"))
    if os.environ.get("CHAINFRAME_UPDATE_DOCS"):
        page.write_text(text, encoding="utf-8")
    return text
