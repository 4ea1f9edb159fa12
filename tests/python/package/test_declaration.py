"""Stub, record classes and methods agree with the declaration of the API."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import chainframe as cf
import generate_stub
import reference_client
from chainframe import _native
from chainframe.testing import Call
from strict_server import PATHS

STUB = Path(cf.__file__).with_name("_native.pyi")
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
PAGED = ["chain", "page_size", "max_items"]


def wanted_parameters(endpoint: dict[str, Any]) -> list[tuple[str, bool]]:
    """Names with whether each must be given, in order."""
    own = [(param["name"], param["required"]) for param in endpoint["params"]]
    unique = [("unique", False)] if any(param["selects list"] for param in endpoint["params"]) else []
    return own + [(name, False) for name in (PAGED if endpoint["page_size_max"] else PAGED[:1])] + unique


@pytest.mark.parametrize("name", sorted(reference_client.RECORDS))
def test_record_classes_have_the_declared_fields(name: str) -> None:
    declared = [field["name"] for field in reference_client.RECORDS[name]["fields"]]
    cls = getattr(cf, name, None)
    assert cls is not None, f"python/chainframe/__init__.py does not export {name}"
    assert issubclass(cls, cf.Record)
    assert list(cls().to_dict()) == declared
    public = {member for member in dir(cls) if not member.startswith("_")}
    assert public == {*declared, "to_dict", "keys", "queried"}
    assert declared


@pytest.mark.parametrize("name", sorted(reference_client.RECORDS))
def test_the_stub_has_the_declared_fields(name: str) -> None:
    declared = {field["name"]: f"{field['python']} | None" for field in reference_client.RECORDS[name]["fields"]}
    body = CLASSES[name].body
    methods = [node for node in body if isinstance(node, ast.FunctionDef)]
    properties = {node.name: ast.unparse(node.returns) for node in methods if node.decorator_list and node.returns}
    assert properties == declared
    (new,) = (node for node in methods if node.name == "__new__")
    assert {arg.arg: ast.unparse(arg.annotation) for arg in new.args.kwonlyargs if arg.annotation} == declared


def test_stub_matches_the_generator() -> None:
    text = STUB.read_text(encoding="utf-8")
    assert generate_stub.written(text, generate_stub.records()) == text
    cut = text.replace('"""Block hash."""', "")
    assert cut != text
    assert generate_stub.written(cut, generate_stub.records()) == text


@pytest.mark.parametrize("name", sorted(reference_client.ENDPOINTS))
def test_the_methods_have_the_declared_parameters(name: str) -> None:
    signature = inspect.signature(getattr(cf.Client, name))
    parameters = list(signature.parameters.values())[1:]
    found = [(parameter.name, parameter.default is inspect.Parameter.empty) for parameter in parameters]
    assert found == wanted_parameters(reference_client.ENDPOINTS[name])
    kinds = [parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters]
    assert kinds == [not required for _, required in found]
    assert {parameter.default for parameter in parameters} <= {None, False, inspect.Parameter.empty}


@pytest.mark.parametrize("name", sorted(reference_client.ENDPOINTS))
def test_the_stub_has_the_declared_calls(name: str) -> None:
    (method,) = (node for node in CLASSES["Client"].body if isinstance(node, ast.FunctionDef) and node.name == name)
    found = [(arg.arg, True) for arg in method.args.args[1:]] + [(arg.arg, False) for arg in method.args.kwonlyargs]
    endpoint = reference_client.ENDPOINTS[name]
    assert found == wanted_parameters(endpoint)
    assert method.returns is not None
    assert ast.unparse(method.returns) == f"Query[{endpoint['record']}]"
    text = ast.get_docstring(method) or ""
    assert ">>> " in text
    if endpoint["page_size_max"]:
        assert f"up to {endpoint['page_size_max']}, the default" in text


def test_the_client_has_no_call_that_is_not_declared() -> None:
    calls = {
        node.name
        for node in CLASSES["Client"].body
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns).startswith("Query[")
    }
    assert calls - {"resume"} == set(reference_client.ENDPOINTS)
    assert set(get_args(Call)) == set(reference_client.ENDPOINTS), "Call of python/chainframe/testing/_types.py"


def test_the_tables_of_the_tests_have_the_declared_calls() -> None:
    counted = {call for call, endpoint in reference_client.ENDPOINTS.items() if endpoint["is counted"]}
    assert set(reference_client.LISTS) == set(reference_client.PAGED), "LISTS of reference_client.py"
    assert set(reference_client.TOTALS) == counted, "TOTALS of reference_client.py"
    assert set(PATHS) == set(reference_client.ENDPOINTS), "PATHS of strict_server.py"


# Only the first overload of a method has a docstring.
DOCUMENTED = {
    (cls.name, node.name if node is not cls else None): ast.get_docstring(node)
    for cls in CLASSES.values()
    for node in reversed(
        [cls, *(node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))]
    )
    if not cls.name.startswith("_")
}


def test_help_shows_the_docstrings_of_the_stub() -> None:
    # What `len` and its like do, Python says itself.
    wanted = {place: text for place, text in DOCUMENTED.items() if text and not (place[1] or "").startswith("_")}
    assert len(wanted) > 150
    assert {cls for cls, _ in wanted} == {name for name in CLASSES if not name.startswith("_")}
    shown = {place: inspect.getdoc(_at(*place)) for place in wanted}
    assert {place for place in wanted if shown[place] != wanted[place]} == set()


def test_every_public_method_has_a_docstring_and_a_signature() -> None:
    methods = [
        (cls, name)
        for cls, name in DOCUMENTED
        if name and not name.startswith("_") and callable(_at(cls, name)) and cls not in reference_client.RECORDS
    ]
    assert len(methods) > 30
    assert [place for place in methods if not DOCUMENTED[place]] == []
    for cls, name in methods:
        stated = {
            arg.arg
            for node in CLASSES[cls].body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
            for arg in [*node.args.args, *node.args.kwonlyargs]
            if arg.arg != "cls"
        }
        assert set(inspect.signature(_at(cls, name)).parameters) == stated, (cls, name)


def _at(cls: str, name: str | None) -> Any:
    found = getattr(_native, cls)
    return getattr(found, name) if name else found


def test_every_public_class_of_the_core_has_an_example() -> None:
    public = {name: node for name, node in CLASSES.items() if not name.startswith("_")}
    without = {name for name, node in public.items() if ">>> " not in ast.unparse(node)}
    assert without == set(reference_client.RECORDS)
