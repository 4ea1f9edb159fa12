"""The examples of the guide under strict mypy and strict pyright."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

from doc_examples import examples
from repository import ROOT

GUIDE = ROOT / "docs" / "guide"
TITLED = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
MYPY = """
[mypy]
strict = true
untyped_calls_exclude = dask
[mypy-adbc_driver_postgresql.*,plotly.*,seaborn.*]
ignore_missing_imports = true
"""
# Schedulers, which are not installed, and whose decorators decide the types of what they decorate.
SCHEDULERS = re.compile(r"^(?:from|import) (?:airflow|dagster|prefect)\b", re.MULTILINE)
# Types of other libraries are partial, and the last expression of a notebook's cell is its output.
OFF = ("UnknownMemberType", "UnknownArgumentType", "UnknownVariableType", "MissingTypeStubs", "UnusedExpression")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module for each page, which is read from top to bottom, and one for each file that a page shows."""
    folder = tmp_path_factory.mktemp("guide")
    for page in GUIDE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if examples(page):
            (folder / f"{page.stem.replace('-', '_')}_page.py").write_text(
                "\n\n".join(examples(page)), encoding="utf-8"
            )
        for name, content in TITLED.findall(text):
            if not SCHEDULERS.search(content):
                (folder / name).write_text(content, encoding="utf-8")
    assert len(list(folder.iterdir())) > 12
    return folder


def test_examples_pass_strict_mypy(pages: Path) -> None:
    (pages / "mypy.ini").write_text(MYPY, encoding="utf-8")
    shown, problems, code = api.run(["--config-file", str(pages / "mypy.ini"), str(pages)])
    assert (code, problems) == (0, ""), shown


def test_examples_pass_strict_pyright(pages: Path) -> None:
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", **{f"report{name}": False for name in OFF}}
    (pages / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(pages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
