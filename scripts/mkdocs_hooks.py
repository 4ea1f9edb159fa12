"""Hooks of mkdocs: pages that are generated, and links to them.

The API reference comes from the stub and the docstrings, the field mapping from the declaration, the CLI reference from
the command itself, and the notebooks from running them. Pages in docs/ link to files of the repository; where the site
has a page for such a file, the link leads to that page.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import posixpath
import re
import textwrap
from contextlib import redirect_stdout, suppress
from dataclasses import is_dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args, get_origin

import click
import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from chainframe import _native, attempts, datasets, errors, exports, partitions, sinks, testing
from chainframe.cli import core as core_commands
from chainframe.cli.app import app
from chainframe.integrations import dlt, otel, spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
STUB = Path(_native.__file__).with_name("_native.pyi")
CREDENTIALS = Path(_native.__file__).with_name("_credentials.py")
DECLARED = json.loads(_native._declaration())  # noqa: SLF001 - made for what is derived
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


# The page of the site for a file of the repository.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "python/chainframe/_native.pyi": "reference/api.md",
    "python/chainframe/attempts.py": "reference/api.md",
    "python/chainframe/errors/__init__.py": "reference/errors.md",
    "python/chainframe/exports/__init__.py": "reference/exports.md",
    "python/chainframe/integrations/otel.py": "reference/exports.md",
    "python/chainframe/integrations/spark.py": "reference/exports.md",
    "python/chainframe/testing/_types.py": "reference/testing.md",
    "python/chainframe/cli/app.py": "reference/cli.md",
    "src/interface/records.rs": "reference/fields.md",
    **{f"examples/{notebook.name}": f"notebooks/{notebook.stem}.md" for notebook in NOTEBOOKS},
}
RECORDS = {record["name"] for record in DECLARED["records"]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made: dict[str, str | bytes] = {
        "reference/api.md": api() + "\n## " + classes("", attempts).partition("\n## ")[2],
        "reference/records.md": records(),
        "reference/errors.md": classes("Errors", errors),
        "reference/testing.md": classes("Testing kit", testing),
        "reference/exports.md": classes(
            "Exports, datasets, partitions, sinks, dlt, Spark, OpenTelemetry",
            exports,
            datasets,
            partitions,
            sinks,
            dlt,
            spark,
            otel,
        ),
        "reference/cli.md": cli(),
        "reference/fields.md": fields(),
    }
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        made[PAGES[name]] = linked((ROOT / name).read_text(encoding="utf-8"), name, PAGES[name])
    for notebook in NOTEBOOKS:
        made.update(rendered(notebook))
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - the signature that mkdocs calls
    return markdown if page.file.generated_by else linked(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def linked(markdown: str, source: str, page: str) -> str:
    """Replace links to files of the repository by links to pages of the site, or by their text where there is none."""

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file.startswith("docs/"):
            site = file.removeprefix("docs/")
        elif file in PAGES:
            site, anchor = in_reference(text, PAGES[file]) if anchor is None else (PAGES[file], anchor)
        else:
            return str(text)
        return f"[{text}]({posixpath.relpath(site, posixpath.dirname(page) or '.')}{anchor or ''})"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)", link, markdown)


def in_reference(text: str, page: str) -> tuple[str, str]:
    """The page and the anchor of a name in the reference: `Token` is a record, `client.tokens` a method of `Client`."""
    if not (name := re.fullmatch(r"`([\w.]+)`", text)):
        return page, ""
    page = "reference/records.md" if name[1] in RECORDS else page
    return page, f"#{name[1].replace('.', '').lower()}"


def api() -> str:
    """The public classes of the stub except records, and `Credentials`, with signatures and docstrings."""
    text = STUB.read_text(encoding="utf-8")
    tree = ast.parse(text)
    # The first paragraph is for readers of the stub.
    about = (ast.get_docstring(tree) or "").partition("\n\n")[2]
    parts = ["# API reference\n", prose(about)]
    credentials = ast.parse(CREDENTIALS.read_text(encoding="utf-8"))
    # Few readers need Deployment: it comes last.
    for node in sorted([*tree.body, *credentials.body], key=lambda node: getattr(node, "name", "") == "Deployment"):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in RECORDS:
            parts += [f"## {node.name}\n", prose(ast.get_docstring(node) or ""), *members(node)]
    return "\n".join(parts)


def members(node: ast.ClassDef) -> Iterator[str]:
    """The constructor, attributes without a docstring in one block, and every other member under its own heading."""
    found = [member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)]
    for member in found:
        if member.name == "__new__":
            yield f"```python\n{signature(member, node.name)}\n```\n"
    public = [member for member in found if not member.name.startswith("_")]
    plain = [signature(member) for member in public if is_attribute(member) and not ast.get_docstring(member)]
    if plain:
        yield "\n".join(['```python title="Attributes"', *plain, "```\n"])
    for member in public:
        if signature(member) not in plain:
            yield f"### {node.name}.{member.name}\n\n```python\n{signature(member)}\n```\n"
            yield prose(ast.get_docstring(member) or "")


def is_attribute(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str | None = None) -> str:
    result = f" -> {ast.unparse(node.returns)}" if node.returns and name is None else ""
    if is_attribute(node):
        return f"{node.name}: {result.removeprefix(' -> ')}"
    arguments = ast.unparse(node.args).removeprefix("cls, ").removeprefix("self, ")
    arguments = "" if arguments in {"self", "cls"} else arguments
    line = f"{name or node.name}({arguments}){result}"
    if len(line) > 100:  # noqa: PLR2004 - as wide as a page shows
        given = ",\n".join(f"    {part}" for part in split(arguments))
        line = f"{name or node.name}(\n{given},\n){result}"
    return ("async " if isinstance(node, ast.AsyncFunctionDef) else "") + line


def split(arguments: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for char in arguments:
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def records() -> str:
    parts = ["# Records\n", "An attribute is `None` where the API sent no value.\n"]
    for record in DECLARED["records"]:
        parts += [f"## {record['name']}\n", f"{record['doc']}\n", "| attribute | type | meaning |", "|---|---|---|"]
        parts += [f"| `{field['name']}` | `{field['python']}` | {field['doc']} |" for field in record["fields"]]
        parts.append("")
    return "\n".join(parts)


def fields() -> str:
    """Parameters and fields with their names in the API."""
    kinds = {record["name"]: record["fields"] for record in DECLARED["records"]}
    parts = [
        "# API field mapping\n",
        "For each method: the query parameters it sends, and the JSON field behind each attribute. A field with",
        "several spellings is accepted in each. `{main}` and `{zone}` stand for the names of a `Deployment`.\n",
    ]
    for endpoint in DECLARED["endpoints"]:
        parts += [f"## {endpoint['name']}\n", f"{endpoint['doc']}\n", f"`GET {endpoint['path']}`\n"]
        if endpoint["page_size_max"]:
            parts.append(f"Pages of up to {endpoint['page_size_max']} records.\n")
        parts += ["| argument | parameter | meaning |", "|---|---|---|"]
        for param in endpoint["params"]:
            wire = f"`{param['wire']}`" if param["wire"] else "one request per value"
            needed = " **Required.**" if param["required"] else ""
            if param["requires"]:
                needed = f" Requires `{param['requires']}`."
            parts.append(f"| `{param['name']}` | {wire} | {param['doc']}{needed} |")
        parts += [f"\nReturns [{endpoint['record']}](records.md#{endpoint['record'].lower()}):\n"]
        parts += ["| attribute | JSON field | kind |", "|---|---|---|"]
        for field in kinds[endpoint["record"]]:
            wire = ", ".join(f"`{name}`" for name in field["wire"])
            parts.append(f"| `{field['name']}` | {wire} | {field['kind']} |")
        parts.append("")
    return "\n".join(parts)


def classes(title: str, *modules: Any) -> str:  # noqa: ANN401 - modules
    """The public classes and functions of Python modules."""
    parts = [f"# {title}\n", *(prose(inspect.getdoc(module) or "") for module in modules)]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    for name, made in public.items():
        if get_origin(made) is Literal:
            parts += [f"## {name}\n", f"One of {', '.join(f'`{value!r}`' for value in get_args(made))}.\n"]
        if inspect.isfunction(made) and made.__doc__:
            parts += [f"## {name}\n", written(made), prose(inspect.getdoc(made) or "")]
        if not isinstance(made, type):
            continue
        parts.append(f"## {name}\n")
        if getattr(_native, name, None) is made:
            parts.append(f"See the [API reference](api.md#{name.lower()}).\n")
            continue
        bases = [
            base.__name__ for base in made.__bases__ if base not in {object, dict, Generic} and base.__name__[0] != "_"
        ]
        if bases:
            parts.append(f"A `{'` and `'.join(bases)}`.\n")
        parts.append(prose(inspect.getdoc(made) or ""))
        # The members of a private base are those of the class.
        parts_of = [made, *(base for base in made.__bases__ if base.__name__.startswith("_"))]
        for member, value in chain.from_iterable(vars(part).items() for part in parts_of):
            of = value.fget if isinstance(value, property) else value
            # Members inherited from another library are documented there.
            if inspect.isfunction(of) and of.__doc__ and not member.startswith("_"):
                parts += [f"### {name}.{member}\n", written(of), prose(inspect.cleandoc(of.__doc__))]
            elif (
                member == "__init__"
                and inspect.isfunction(of)
                and not (issubclass(made, BaseException) or is_dataclass(made))
            ):
                parts.append(written(of, name))
    return "\n".join(parts)


def written(function: Callable[..., object], name: str | None = None) -> str:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101 - for the types
    return f"```python\n{signature(node, name)}\n```\n"


def cli() -> str:
    parts = ["# CLI reference\n", prose(inspect.getdoc(app.callback) or "").replace("\b\n", "")]
    for name in core_commands.COMMANDS:
        shown = io.StringIO()
        # argparse prints its help and exits.
        with redirect_stdout(shown), suppress(SystemExit):
            core_commands.main([name, "--help"])
        parts += [f"## {name}\n", f"```text\n{shown.getvalue()}```\n"]
    for name, command in app.commands.items():
        if command.params:
            with click.Context(command, info_name=f"chainframe {name}", max_content_width=96) as context:
                parts += [f"## {name}\n", f"```text\n{command.get_help(context)}\n```\n"]
    return "\n".join(parts)


SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Notes", "Examples", "See Also")


def prose(text: str) -> str:
    """Convert a docstring to Markdown: numpydoc sections to lists, examples to code with their output as comments."""
    lines = text.splitlines()
    out: list[str] = []
    in_code = in_list = False
    for line, following in pairwise([*lines, ""]):
        prompt = re.match(r"(>>>|\.\.\.) ?(.*)", line)
        if line in SECTIONS and following and not following.strip("-"):
            out += ["", f"**{line}**"]
            in_list = True
        elif line and not line.strip("-"):
            out.append("")
        elif in_code and not line.strip():
            out += ["```", ""]
            in_code = False
        elif prompt or in_code:
            if not in_code:
                out += ["", "```python"]
            in_code, in_list = True, False
            out.append(prompt[2] if prompt else f"# {line}")
        elif in_list and line and not line.startswith(" "):
            in_list = following.startswith("    ")
            out.append(f"- {item(line)}" if in_list else line)
        else:
            out.append(line if not in_list else f"  {line.strip()}".rstrip())
    whole = "\n".join([*out, "```"] if in_code else out) + "\n"
    return re.sub(r"\bdocs/([\w/-]+\.md)", r"[\g<0>](../\1)", whole)


def item(line: str) -> str:
    """Format the first line of a numpydoc item: `name : type`, `name, name`, or a type alone."""
    names, _, kind = line.partition(" : ")
    code = ", ".join(f"`{name}`" for name in names.split(", "))
    return f"{code} ({kind}):" if kind else f"{code}:"


class NotebookExporter(MarkdownExporter):
    """Shows each text output of a cell in a block of its own, distinct from code."""

    raw_template = """{% extends 'markdown/index.md.j2' %}
{% block stream %}
~~~~ {.text .output .no-copy}
{{ output.text.rstrip() }}
~~~~
{% endblock stream %}
{% block data_text %}
~~~~ {.text .output .no-copy}
{{ output.data['text/plain'] }}
~~~~
{% endblock data_text %}"""


def rendered(notebook: Path) -> dict[str, str | bytes]:
    """Run a notebook; returns its page and its images."""
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=300, kernel_name="python3").execute()
    for cell in cells.cells:
        for output in [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]:
            # A finished progress bar is of no use to a reader.
            if complaint := re.sub(r"\r[^\r\n]*", "", output.text).strip():
                raise ValueError(f"{notebook.name} wrote to standard error: {complaint}")
            cell.outputs.remove(output)
    cells, _ = CoalesceStreamsPreprocessor().preprocess(cells, {})
    text, resources = NotebookExporter().from_notebook_node(cells)
    folder = f"notebooks/{notebook.stem}"
    pictures: dict[str, bytes] = {f"{folder}/{name}": data for name, data in resources["outputs"].items()}
    for name in resources["outputs"]:
        text = text.replace(f"]({name})", f"]({notebook.stem}/{name})")
    # Data frames look like the other tables of the site.
    text = re.sub(r"<div>\s*<style scoped>.*?</style>", '<div class="frame">', text, flags=re.DOTALL)
    text = text.replace('<table border="1" class="dataframe">', "<table>").replace(' style="text-align: right;"', "")
    # Markdown treats an indented line of HTML as code.
    text = re.sub(r"<(div|table|style).*?</\1>", lambda html: textwrap.dedent(html[0]), text, flags=re.DOTALL)
    source = f"From `examples/{notebook.name}`, executed when this page was built.\n\n"
    title, _, rest = text.lstrip().partition("\n")
    page = f"notebooks/{notebook.stem}.md"
    rest = linked(rest, f"examples/{notebook.name}", page)
    return {page: f"{title}\n\n{source}{rest}", **pictures}
