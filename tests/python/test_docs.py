"""The site is built, shows what it promises, and its Python runs; the notebooks are run on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import by_hand
import chainframe as cf
import make_site
from chainframe import testing
from chainframe.cli.app import app
from chainframe.testing import LocalService

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# The databases' page has tests of its own.
RUN = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8") and page.stem != "databases"]


def page(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def test_every_page_is_there(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in PAGES]
    assert len(sources) > 10
    assert [path for path in sources if not (site / path).is_file()] == []
    assert len(list(site.rglob("*.html"))) > len(sources) + len(NOTEBOOKS) + 5


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loads = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//')
    assert [path.name for path in pages if loads.search(path.read_text(encoding="utf-8"))] == []
    assert len(pages) > 20


def test_the_search_finds_what_is_generated(site: Path) -> None:
    found = json.loads(page(site, "search/search_index.json"))["docs"]
    text = " ".join(entry["text"] for entry in found)
    assert "transactionAmount24h" in text
    assert "PaginationDriftError" in text


def test_the_reference_has_every_public_name(site: Path) -> None:
    text = "".join(page(site, f"reference/{name}.html") for name in ("core", "records", "errors", "testing"))
    headings = set(re.findall(r'<h2 id="([a-z_0-9]+)"', text))
    wanted = {name.lower() for name in [*cf.__all__, *testing.__all__] if not name.startswith("_")}
    assert len(wanted) > 40
    assert wanted - headings == set()


def test_the_reference_has_every_call_and_command(site: Path) -> None:
    core, shell = page(site, "reference/core.html"), page(site, "reference/shell.html")
    assert [name for name in by_hand.ENDPOINTS if f"Client.{name}" not in core] == []
    assert len(app.commands) > 10
    derived = [*(name.replace("_", "-") for name in by_hand.ENDPOINTS), "serve", "doctor"]
    assert [name for name in derived if f'<h2 id="{name}"' not in shell] == []


def test_the_tables_have_every_field(site: Path) -> None:
    text = page(site, "reference/interface.html")
    names = [name for record in by_hand.RECORDS.values() for field in record["fields"] for name in field["wire"]]
    assert len(names) > 100
    assert [name for name in names if f"<code>{name}</code>" not in text] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_shown_as_they_ran(notebook: Path, site: Path) -> None:
    text = page(site, f"notebooks/{notebook.stem}.html")
    assert '<div class="chainframe">' in text
    drawn = re.findall(r'<img alt="png" src="([^"]+)"', text)
    assert [name for name in drawn if not (site / "notebooks" / name).is_file()] == []
    assert len(drawn) == notebook.read_text(encoding="utf-8").count("plt.subplots")
    assert "Traceback" not in text


def test_notebooks_are_kept_without_what_they_showed() -> None:
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(code) > 4
        assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_its_python_runs(
    path: Path,
    service: LocalService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    monkeypatch.setenv("CHAINFRAME_BASE_URL", service.url)
    monkeypatch.chdir(tmp_path)
    before = service.requests
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, path.name, "exec"), names)
    assert service.requests > before


def test_most_pages_show_python() -> None:
    assert len(RUN) >= 7


def test_what_a_prompt_becomes() -> None:
    text = make_site.prose("Says.\n\n>>> one = (\n...     1)\n>>> one\n1\n\nMore.")
    assert text == "Says.\n\n\n```python\none = (\n    1)\none\n# 1\n```\n\nMore.\n"


def test_what_other_libraries_say_is_not_said_again(site: Path) -> None:
    text = page(site, "reference/parts.html")
    assert '<h2 id="chainframesource"' in text
    assert "ChainframeSource.schema" not in text


def test_what_the_core_has_is_found_from_the_kit(site: Path) -> None:
    assert 'href="core.html#cassette"' in page(site, "reference/testing.html")
    assert '<h2 id="cassette"' in page(site, "reference/core.html")
