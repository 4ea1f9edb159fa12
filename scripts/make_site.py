"""What the site shows beside the pages in docs/: everything that would otherwise be said twice. mkdocs calls it.

The reference comes from the stub and the docstrings, the interface's tables from the declaration, the shell's page from
the command itself, the notebooks from running them, and parts of pages from the README.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import textwrap
from contextlib import redirect_stdout, suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import click
import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from chainframe import _native, errors, exports, partitions, testing
from chainframe.cli import core as core_commands
from chainframe.cli.app import app
from chainframe.integrations import spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
STUB = Path(_native.__file__).with_name("_native.pyi")
DECLARED = json.loads(_native._declaration())  # noqa: SLF001 - made for what is derived
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made: dict[str, str | bytes] = {
        "reference/core.md": core(),
        "reference/records.md": records(),
        "reference/errors.md": classes("Errors", errors),
        "reference/testing.md": classes("Testing kit", testing),
        "reference/parts.md": classes("Exports and parts", exports, partitions, spark),
        "reference/shell.md": shell(),
        "reference/interface.md": interface(),
        "changes.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    for notebook in NOTEBOOKS:
        made.update(rendered(notebook))
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs's
    """Put in the README's section where a page has `{{ README: its title }}`."""
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\{\{ README: (.+?) \}\}", lambda match: readme(match[1], up), markdown)


def readme(title: str, up: str = "") -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"the README has no section {title!r}")
    return found[1].replace("](docs/", f"]({up}").replace("\n### ", "\n## ")


def core() -> str:
    """The stub's public classes, records aside, with their signatures and what they say."""
    text = STUB.read_text(encoding="utf-8")
    tree = ast.parse(text)
    plain = {record["name"] for record in DECLARED["records"]}
    # Its first paragraph is for those who read the stub.
    about = (ast.get_docstring(tree) or "").partition("\n\n")[2]
    parts = ["# Client, queries, results\n", prose(about)]
    # What a deployment is called matters to few.
    for node in sorted(tree.body, key=lambda node: getattr(node, "name", "") == "Deployment"):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in plain:
            parts += [f"## {node.name}\n", prose(ast.get_docstring(node) or ""), *members(node)]
    return "\n".join(parts)


def members(node: ast.ClassDef) -> Iterator[str]:
    """How it is made, its attributes that their type explains, and each other member under a heading of its own."""
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
    """At the commas that are in no brackets."""
    parts, depth = [""], 0
    for char in arguments:
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def records() -> str:
    parts = ["# Records\n", "Every member may be None, where the service gave no value.\n"]
    for record in DECLARED["records"]:
        parts += [f"## {record['name']}\n", f"{record['doc']}\n", "| attribute | type | meaning |", "|---|---|---|"]
        parts += [f"| `{field['name']}` | `{field['python']}` | {field['doc']} |" for field in record["fields"]]
        parts.append("")
    return "\n".join(parts)


def interface() -> str:
    """What is asked and what comes back, in the service's own names."""
    kinds = {record["name"]: record["fields"] for record in DECLARED["records"]}
    parts = [
        "# The interface's fields\n",
        "What each call sends, and where each value comes from; a field with several spellings is read in any.",
        "`{main}` and `{zone}` stand for a deployment's words.\n",
    ]
    for endpoint in DECLARED["endpoints"]:
        parts += [f"## {endpoint['name']}\n", f"{endpoint['doc']}\n", f"`GET {endpoint['path']}`\n"]
        if endpoint["page_size_max"]:
            parts.append(f"Pages of up to {endpoint['page_size_max']} records.\n")
        parts += ["| argument | sent as | meaning |", "|---|---|---|"]
        for param in endpoint["params"]:
            wire = f"`{param['wire']}`" if param["wire"] else "value by value"
            needed = " **Required.**" if param["required"] else ""
            parts.append(f"| `{param['name']}` | {wire} | {param['doc']}{needed} |")
        parts += [f"\nIt gives [{endpoint['record']}](records.md#{endpoint['record'].lower()}):\n"]
        parts += ["| field | read from | kind |", "|---|---|---|"]
        for field in kinds[endpoint["record"]]:
            wire = ", ".join(f"`{name}`" for name in field["wire"])
            parts.append(f"| `{field['name']}` | {wire} | {field['kind']} |")
        parts.append("")
    return "\n".join(parts)


def classes(title: str, *modules: Any) -> str:  # noqa: ANN401 - modules
    """The public classes of Python modules."""
    parts = [f"# {title}\n", *(prose(inspect.getdoc(module) or "") for module in modules)]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    for name, made in public.items():
        if not isinstance(made, type):
            continue
        parts.append(f"## {name}\n")
        if getattr(_native, name, None) is made:
            parts.append(f"It is told of [among the core's classes](core.md#{name.lower()}).\n")
            continue
        bases = [base.__name__ for base in made.__bases__ if base not in {object, dict, Generic}]
        if bases:
            parts.append(f"A `{'` and `'.join(bases)}`.\n")
        parts.append(prose(inspect.getdoc(made) or ""))
        for member, value in vars(made).items():
            of = value.fget if isinstance(value, property) else value
            # What a class has from another library is said there.
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


def shell() -> str:
    parts = ["# The command\n", prose(inspect.getdoc(app.callback) or "").replace("\b\n", "")]
    for name in core_commands.COMMANDS:
        told = io.StringIO()
        # argparse prints its help, and leaves.
        with redirect_stdout(told), suppress(SystemExit):
            core_commands.main([name, "--help"])
        parts += [f"## {name}\n", f"```text\n{told.getvalue()}```\n"]
    for name, command in app.commands.items():
        if command.params:
            with click.Context(command, info_name=f"chainframe {name}", max_content_width=96) as context:
                parts += [f"## {name}\n", f"```text\n{command.get_help(context)}\n```\n"]
    return "\n".join(parts)


def prose(text: str) -> str:
    """A docstring as Markdown: its examples become code that can be copied, what they print becomes comments."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        prompt = re.match(r"(>>>|\.\.\.) ?(.*)", line)
        if prompt and not in_code:
            lines += ["", "```python"]
            in_code = True
        elif in_code and not line.strip():
            lines.append("```")
            in_code = False
        lines.append(prompt[2] if prompt else f"# {line}" if in_code else line)
    whole = "\n".join([*lines, "```"] if in_code else lines) + "\n"
    return re.sub(r"\bdocs/(\w+\.md)", r"[\g<0>](../\1)", whole)


class NotebookExporter(MarkdownExporter):
    """Each text that a cell gave is a block of its own, told apart from code."""

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
    """A notebook that was run just now, as a page and its pictures."""
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=300, kernel_name="python3").execute()
    for cell in cells.cells:
        for output in [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]:
            # A bar, which begins its line anew, tells a reader nothing when it is done.
            if complaint := re.sub(r"\r[^\r\n]*", "", output.text).strip():
                raise ValueError(f"{notebook.name} complains: {complaint}")
            cell.outputs.remove(output)
    cells, _ = CoalesceStreamsPreprocessor().preprocess(cells, {})
    text, resources = NotebookExporter().from_notebook_node(cells)
    folder = f"notebooks/{notebook.stem}"
    pictures: dict[str, bytes] = {f"{folder}/{name}": data for name, data in resources["outputs"].items()}
    for name in resources["outputs"]:
        text = text.replace(f"]({name})", f"]({notebook.stem}/{name})")
    # A frame looks as the site's other tables do.
    text = re.sub(r"<div>\s*<style scoped>.*?</style>", '<div class="frame">', text, flags=re.DOTALL)
    text = text.replace('<table border="1" class="dataframe">', "<table>").replace(' style="text-align: right;"', "")
    # Markdown would take an indented line of HTML for code.
    text = re.sub(r"<(div|table|style).*?</\1>", lambda html: textwrap.dedent(html[0]), text, flags=re.DOTALL)
    source = f"From `examples/{notebook.name}`, run when this page was made.\n\n"
    title, _, rest = text.lstrip().partition("\n")
    return {f"notebooks/{notebook.stem}.md": f"{title}\n\n{source}{rest}", **pictures}
