"""Docstrings of all public names: numpydoc sections, which `help()` and the reference show as well."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import chainframe as cf
import reference_client

pytest.importorskip("pyarrow", reason="some of the modules need it")

MODULES = (
    "chainframe",
    "chainframe.attempts",
    "chainframe.datasets",
    "chainframe.errors",
    "chainframe.exports",
    "chainframe.partitions",
    "chainframe.sinks",
    "chainframe.testing",
    *(["chainframe.integrations.dlt"] if importlib.util.find_spec("dlt") else []),
    "chainframe.integrations.otel",
    "chainframe.integrations.spark",
)
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "Examples", "See Also")
# Sections that have no items of the form `name : type`.
FREE = {"Notes", "Examples", "See Also"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Documented(NamedTuple):
    """A public name, the node that defines it, and the class it belongs to."""

    name: str
    node: ast.ClassDef | Function
    owner: Any


def definitions() -> dict[str, ast.stmt]:
    """The classes and functions of the stub and of the package's modules."""
    package = Path(cf.__file__).parent
    paths = [path for path in sorted(package.rglob("*.py*")) if path.suffix != ".pyc"]
    # A public module's names count, where a private one has the same.
    paths.sort(key=lambda path: path.suffix == ".pyi" or not path.name.startswith("_"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    return {
        node.name: node
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


DEFINITIONS = definitions()


def documented() -> Iterator[Documented]:
    """All public classes, functions and methods."""
    seen: set[Any] = set()
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            made = getattr(module, name)
            if not (inspect.isclass(made) or inspect.isfunction(made)) or made in seen:
                continue
            seen.add(made)
            node = DEFINITIONS[name]
            assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            yield Documented(name, node, None)
            if isinstance(node, ast.ClassDef):
                for member in [*node.body, *private_members(made)]:
                    if isinstance(member, Function) and not is_exempt(made, member):
                        yield Documented(f"{name}.{member.name}", member, made)


def private_members(cls: Any) -> Iterator[ast.stmt]:
    """The members of the private base classes, which the class shows as its own."""
    for base in cls.__bases__:
        node = DEFINITIONS.get(base.__name__) if base.__name__.startswith("_") else None
        if isinstance(node, ast.ClassDef):
            yield from node.body


def is_exempt(cls: Any, node: Function) -> bool:
    """True for private members, setters, further overloads, and members that another library documents."""
    inherited = any(
        hasattr(base, node.name)
        for base in cls.__mro__[1:]
        if base.__module__.partition(".")[0] in {"pyarrow", "pyspark"}
    )
    is_setter = any(ast.unparse(decorator).endswith(".setter") for decorator in node.decorator_list)
    is_overload = any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    is_further = is_overload and ast.get_docstring(node) is None
    return node.name.startswith("_") or is_setter or is_further or inherited


def is_property(node: ast.ClassDef | Function) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their headings; the text before the first has an empty one."""
    parts = re.split(r"^(\w[\w ]*)\n-+$", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def items(text: str) -> dict[str, str]:
    """The items of a section and their descriptions; several names may share one."""
    found = re.findall(r"^(\S.*)\n((?:^(?: .*)?\n?)*)", text.strip("\n"), flags=re.MULTILINE)
    return {line: description.strip() for line, description in found}


def names(text: str) -> list[str]:
    """The names that a section of items `name, name : type` describes."""
    return [name.strip("`* ") for line in items(text) for name in line.partition(" : ")[0].split(",")]


def parameters(node: Function) -> list[str]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    found = [argument.arg for argument in every if argument is not None]
    return [name for name in found if name not in {"self", "cls"}]


def constructor(node: ast.ClassDef) -> Function | None:
    found = (member for member in node.body if isinstance(member, Function))
    return next((member for member in found if member.name in {"__new__", "__init__"}), None)


def problems(public: Documented) -> Iterator[str]:
    """Differences of a docstring from numpydoc, or from the signature."""
    node, text = public.node, ast.get_docstring(public.node) or ""
    if not text:
        if not is_described_by_class(public):
            yield "has no docstring"
        return
    if not re.match(r"[A-Z`0-9]", text) or not text.partition("\n\n")[0].rstrip().endswith((".", ":")):
        yield "does not begin with a sentence"
    parts = sections(text)
    yield from malformed(parts)
    synchronous = node.name.removesuffix("_async")
    if synchronous != node.name:
        if not text.startswith(f"`{synchronous}` for asyncio."):
            yield f"does not begin with '`{synchronous}` for asyncio.'"
    elif not is_property(node):
        yield from missing(public, parts)


def is_described_by_class(public: Documented) -> bool:
    """True for an attribute that its class describes."""
    in_class = sections(inspect.getdoc(public.owner) or "")
    described = [*names(in_class.get("Parameters", "")), *names(in_class.get("Attributes", ""))]
    return is_property(public.node) and public.node.name in described


def malformed(parts: dict[str, str]) -> Iterator[str]:
    """Sections that numpydoc does not read."""
    yield from (f"has the section {name!r}, which numpydoc does not know" for name in parts.keys() - {"", *SECTIONS})
    if list(parts) != ["", *(name for name in SECTIONS if name in parts)]:
        yield f"has sections in another order: {list(parts)}"
    for section in [name for name in parts if name not in {"", *FREE}]:
        for line, description in items(parts[section]).items():
            if section in {"Parameters", "Attributes"} and " : " not in line:
                yield f"{section}: {line!r} has no type"
            if not description and section != "Returns":
                yield f"{section}: {line!r} has no description"
    for name in names(parts.get("Raises", "")):
        if not hasattr(cf, name) and not hasattr(builtins, name):
            yield f"Raises: {name!r} is not an exception"


def missing(public: Documented, parts: dict[str, str]) -> Iterator[str]:
    """Sections that the signature of a class, function or method requires."""
    node = public.node
    if not is_generated(public) and ">>> " not in parts.get("Examples", ""):
        yield "has no example"
    function = constructor(public.node) if isinstance(public.node, ast.ClassDef) else public.node
    if function is None or is_made_by_package(public):
        return
    if node is function and ast.unparse(function.returns or ast.Constant(None)) != "None" and "Returns" not in parts:
        yield "has no section Returns"
    wanted, described = parameters(function), names(parts.get("Parameters", ""))
    if wanted != described:
        yield f"has the parameters {wanted}, and describes {described}"


def is_made_by_package(public: Documented) -> bool:
    """True for classes whose attributes are described instead of the parameters of their constructor."""
    made = getattr(cf, public.name, None)
    return isinstance(made, type) and issubclass(made, (BaseException, Warning, cf.Record))


def is_generated(public: Documented) -> bool:
    """True for the record classes, whose docstrings come from the declaration; `Record` has their example."""
    return public.name in reference_client.RECORDS


PUBLIC = {public.name: public for public in documented()}


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_has_the_sections_of_its_signature(name: str) -> None:
    assert list(problems(PUBLIC[name])) == []


def test_every_public_class_of_the_package_is_checked() -> None:
    assert {"Client.tokens", "Query.to_pandas", "LocalService", "Export", "Dataset", "Partition.collect"} <= {*PUBLIC}


def test_problems_are_found() -> None:
    source = '''
def total(rows, *, numbers="decimal") -> int:
    """The total

    Parameters
    ----------
    rows
        Number of rows.

    Raises
    ------
    NoSuchError
        Never.
    """
'''
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    assert list(problems(Documented("total", node, None))) == [
        "does not begin with a sentence",
        "Parameters: 'rows' has no type",
        "Raises: 'NoSuchError' is not an exception",
        "has no example",
        "has no section Returns",
        "has the parameters ['rows', 'numbers'], and describes ['rows']",
    ]
