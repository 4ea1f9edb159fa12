"""Methods of extension classes as functions of Python, whose signatures test doubles check.

`unittest.mock` checks calls only against functions: `create_autospec(Client)` would accept any argument otherwise. A
function is one more frame in each traceback, below the line of the caller, and so is defined in programs that test.
"""

from __future__ import annotations

import sys

from chainframe._native import Client, Query, Records

TYPE_CHECKING = False  # `typing` would take longer to import than the rest of the package
if TYPE_CHECKING:
    from typing import Any

MethodDescriptorType = type(str.join)


def is_testing() -> bool:
    """True once the program has loaded what makes test doubles."""
    return not sys.modules.keys().isdisjoint(("pytest", "unittest.mock"))


def define_methods() -> None:
    """Replace the public methods of extension classes by functions that call them."""
    for owner in (Client, Query, Records):
        for name, method in vars(owner).copy().items():
            if isinstance(method, MethodDescriptorType) and not name.startswith("_"):
                setattr(owner, name, _function(name, method))


def define_constructors(*owners: type) -> None:
    """Give extension classes an `__init__` with the parameters of the constructor, whose arguments are checked then."""
    for owner in owners:
        scope: dict[str, Any] = {}
        parameters = owner.__text_signature__.removeprefix("(")  # type: ignore[union-attr]
        exec(f"def __init__(self, {parameters}: pass", scope)  # noqa: S102 - of the extension module
        owner.__init__ = scope["__init__"]  # type: ignore[misc]


def _function(name: str, method: Any) -> Any:  # noqa: ANN401 - of the class
    def call(self: object, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the method
        __tracebackhide__ = True
        return method(self, *args, **kwargs)

    call.__code__ = call.__code__.replace(co_name=name, co_qualname=method.__qualname__)
    call.__name__ = name
    call.__doc__ = method.__doc__
    call.__qualname__ = method.__qualname__
    call.__module__ = "chainframe"
    # `inspect` takes the signature from here.
    call.__dict__["__wrapped__"] = method
    return call
