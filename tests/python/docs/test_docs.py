"""The pages in docs/: examples run, tables are complete, and the built site shows what it should."""

from __future__ import annotations

import inspect
import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import chainframe as cf
import mkdocs_hooks
import reference_client
from chainframe import doctor, errors, testing
from chainframe.cli import codes
from chainframe.cli.app import app
from chainframe.testing import LocalService
from doc_examples import examples, executed
from repository import ROOT, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# These have tests of their own, with databases and an object store.
WITH_EXAMPLES = [page for page in PAGES if examples(page) and page.stem not in {"integrations", "object-stores"}]


@pytest.fixture(scope="module")
def default_service() -> Iterator[LocalService]:
    """A server with the data of `chainframe serve`, which readers of the pages have."""
    with LocalService() as running:
        yield running


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_the_output_that_is_shown(
    path: Path,
    default_service: LocalService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(default_service, name))
    monkeypatch.setenv("CHAINFRAME_BASE_URL", default_service.url)
    monkeypatch.chdir(tmp_path)
    assert executed(path) == path.read_text(encoding="utf-8")


def test_most_pages_have_examples() -> None:
    assert len(WITH_EXAMPLES) >= 12


def table(name: str, header: str) -> list[list[str]]:
    """The cells of the table with that header line."""
    text = (DOCS / name).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"{header}\n")
    assert found, header
    rows = rest.partition("\n\n")[0].splitlines()[1:]
    assert len(rows) > 2
    return [[cell.strip() for cell in row[1:-1].split("|")] for row in rows]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([\w.*]+)`", cell))


def test_settings_tables_list_every_argument() -> None:
    listed = table("configuration.md", "| Argument | Environment variable | Default | Meaning |")
    words = table("configuration.md", "| Argument | Default | Used in |")
    for cls, rows in ((cf.Client, listed), (cf.Deployment, words)):
        found = {name: row[-2] for row in rows for name in names(row[0])}
        parameters = inspect.signature(cls).parameters
        assert set(found) == set(parameters)
        for name, parameter in parameters.items():
            if isinstance(parameter.default, float | int | str) and name != "max_response_bytes":
                assert found[name].strip("`").replace("_", "") in {
                    repr(parameter.default),
                    json.dumps(parameter.default),
                }


def test_errors_table_lists_every_class() -> None:
    listed = {
        name for row in table("guide/errors.md", "| Error | Raised when | What to do |") for name in names(row[0])
    }
    bases = {"ChainframeError", "ServiceError", "PaginationError", "IncompleteResultWarning"}
    assert listed == set(errors.__all__) - bases


def test_error_tree_lists_every_class_with_its_base() -> None:
    text = (DOCS / "guide/errors.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    parents: list[str] = []
    found = {}
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip("│├└─ "))
        classes = re.findall(r"\b\w+Error\b(?![^(]*\))", line)
        parents = [*parents[: depth // 3], classes[0]]
        found.update({name: parents[-2] for name in classes if len(parents) > 1})
    bases = {name: [base.__name__ for base in getattr(errors, name).__mro__[1:]] for name in errors.__all__}
    expected = {name: next(base for base in named if not base.startswith("_")) for name, named in bases.items()}
    expected = {name: base for name, base in expected.items() if base != "Exception" and name.endswith("Error")}
    assert found == expected


def test_queries_table_lists_every_method() -> None:
    rows = table("guide/queries.md", "| Method | Returns | Record class |")
    listed = {min(names(row[0])): min(names(row[2])) for row in rows}
    wanted = {f"client.{name}": endpoint["record"] for name, endpoint in reference_client.ENDPOINTS.items()}
    assert listed == wanted, "the methods in docs/guide/queries.md"


def test_report_table_lists_every_attribute() -> None:
    rows = table("guide/incomplete-results.md", "| Attribute | Meaning |")
    listed = {name for row in rows for name in names(row[0])}
    assert listed == {name for name in vars(cf.Report) if not name.startswith("_")}


def test_exit_codes_are_those_of_the_command() -> None:
    listed = {int(row[0]) for row in table("guide/command-line.md", "| Code | Meaning |")}
    modules = {**vars(codes), **vars(doctor)}
    declared = {name: code for name, code in modules.items() if name.isupper() and isinstance(code, int)}
    assert {"AUTHENTICATION", "INTERRUPTED", "NETWORK", "RATE_LIMIT"} < set(declared)
    assert listed == {0, *declared.values()}


KINDS = {"integer", "time", "boolean", "amount", "estimate", "raw integer", "list of strings"}


def test_column_types_cover_every_column() -> None:
    rows = table("data-model.md", "| Kind | Columns | Record attribute | Column type |")
    patterns = {pattern: row[0] for row in rows for pattern in names(row[1])}
    kinds = set()
    for record in reference_client.RECORDS.values():
        for field in record["fields"]:
            listed = {kind for pattern, kind in patterns.items() if fnmatch(field["name"], pattern)}
            assert (listed or {"string"}) == {field["kind"]}, f"column {field['name']} in the table of data-model.md"
            kinds.add(field["kind"])
    assert kinds >= KINDS


def test_tables_of_the_data_model_are_complete() -> None:
    rows = table("data-model.md", "| Record class | One row is | Chain | Identified by | Order |")
    listed = {name for row in rows for name in names(row[0])}
    assert listed == set(reference_client.RECORDS), "the record classes in docs/data-model.md"
    for source, column, target, key in table("data-model.md", "| From | Column | To | Column |"):
        for cell, field in ((source, column), (target, key)):
            for record in names(cell):
                assert min(names(field)) in [one["name"] for one in reference_client.RECORDS[record]["fields"]]


# Messages of other libraries.
FOREIGN = {
    "Connection refused",
    "dns error",
    "invalid peer certificate",
    "Decimal precision out of range",
    "Excel does not support datetimes with timezones",
    "incompatible merge keys",
    "no running event loop",
}


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = [name for title in re.findall(r"^### (.*)$", text, re.MULTILINE) for name in re.findall("`(.+?)`", title)]
    files = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    parts = {
        part.strip() for name in set(quoted) - FOREIGN for part in re.split(r"…|max_response_bytes|\d[\d,]*", name)
    }
    assert len(parts) > 25
    assert [part for part in sorted(parts) if part not in source] == []


def page(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def test_site_has_every_page(site: Path) -> None:
    sources = [path.relative_to(DOCS).with_suffix(".html") for path in PAGES]
    assert len(sources) > 25
    assert [path for path in sources if not (site / path).is_file()] == []
    assert len(list(site.rglob("*.html"))) > len(sources) + len(NOTEBOOKS) + 5


def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loads = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//')
    assert [path.name for path in pages if loads.search(path.read_text(encoding="utf-8"))] == []
    assert len(pages) > 20


def test_search_index_contains_generated_pages(site: Path) -> None:
    found = json.loads(page(site, "search/search_index.json"))["docs"]
    text = " ".join(entry["text"] for entry in found)
    assert "transactionAmount24h" in text
    assert "PaginationDriftError" in text


def test_reference_has_every_public_name(site: Path) -> None:
    text = "".join(page(site, f"reference/{name}.html") for name in ("api", "records", "errors", "testing"))
    headings = set(re.findall(r'<h2 id="([a-z_0-9]+)"', text))
    wanted = {name.lower() for name in [*cf.__all__, *testing.__all__] if not name.startswith("_")}
    assert len(wanted) > 40
    assert wanted - headings == set()


def test_reference_has_every_method_and_command(site: Path) -> None:
    api, cli = page(site, "reference/api.html"), page(site, "reference/cli.html")
    assert [name for name in reference_client.ENDPOINTS if f"Client.{name}" not in api] == []
    assert len(app.commands) > 10
    commands = [*(name.replace("_", "-") for name in reference_client.ENDPOINTS), "serve", "doctor"]
    assert [name for name in commands if f'<h2 id="{name}"' not in cli] == []


def test_field_mapping_has_every_field(site: Path) -> None:
    text = page(site, "reference/fields.html")
    fields = [
        name for record in reference_client.RECORDS.values() for field in record["fields"] for name in field["wire"]
    ]
    assert len(fields) > 100
    assert [name for name in fields if f"<code>{name}</code>" not in text] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_page_has_its_outputs(notebook: Path, site: Path) -> None:
    text = page(site, f"notebooks/{notebook.stem}.html")
    assert '<div class="chainframe">' in text
    drawn = re.findall(r'<img alt="png" src="([^"]+)"', text)
    assert [name for name in drawn if not (site / "notebooks" / name).is_file()] == []
    assert len(drawn) == notebook.read_text(encoding="utf-8").count("plt.subplots")
    assert "Traceback" not in text


def test_notebooks_are_stored_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(code) > 4
        assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []


DOCSTRING = """Return it.

Parameters
----------
one : int
    A number.
other : str, optional
    A name.

Raises
------
ConfigError
    If not.

Examples
--------
>>> one = (
...     1)
>>> one
1

More.
"""
PAGE = """Return it.


**Parameters**

- `one` (int):
  A number.
- `other` (str, optional):
  A name.


**Raises**

- `ConfigError`:
  If not.


**Examples**


```python
one = (
    1)
one
# 1
```

More.
"""


def test_docstring_becomes_markdown() -> None:
    assert mkdocs_hooks.prose(DOCSTRING) == PAGE


def test_links_to_files_become_links_to_pages() -> None:
    def linked(text: str) -> str:
        return mkdocs_hooks.linked(text, "docs/guide/errors.md", "guide/errors.md")

    assert linked("[a](../concepts.md#height)") == "[a](../concepts.md#height)"
    assert linked("[b](../../python/chainframe/errors/__init__.py)") == "[b](../reference/errors.md)"
    assert linked("[`Token`](../../python/chainframe/_native.pyi)") == "[`Token`](../reference/records.md#token)"
    assert (
        linked("[`client.logs`](../../python/chainframe/_native.pyi)")
        == "[`client.logs`](../reference/api.md#clientlogs)"
    )
    assert linked("[c](../../CHANGELOG.md)") == "[c](../changelog.md)"
    assert (
        linked("[d](../../Cargo.toml), [e](https://semver.org), [f](#top)") == "d, [e](https://semver.org), [f](#top)"
    )


def test_inherited_members_are_left_out(site: Path) -> None:
    text = page(site, "reference/exports.html")
    assert '<h2 id="chainframesource"' in text
    assert "ChainframeSource.schema" not in text


def test_testing_kit_links_to_the_api_reference(site: Path) -> None:
    assert 'href="api.html#cassette"' in page(site, "reference/testing.html")
    assert '<h2 id="cassette"' in page(site, "reference/api.html")


def test_every_claim_of_the_threat_model_names_tests_that_exist() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    claims = [row.split("|")[2] for row in text.partition("| Claim |")[2].partition("\n\n")[0].splitlines()[2:]]
    assert len(claims) > 10
    for claim in claims:
        named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", claim)
        assert named, claim
        for file, name in named:
            tests = next(TESTS.rglob(file)).read_text(encoding="utf-8")
            assert f"def {name}(" in tests if name else "def test_" in tests, (file, name)
