"""Methods of extension classes as functions of Python, whose signatures test doubles check.

`unittest.mock` checks calls only against functions: `create_autospec(Client)` would accept any argument otherwise.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would take longer to import than the rest of the package
if TYPE_CHECKING:
    from typing import Any

MethodDescriptorType = type(str.join)


def define_methods(owner: type) -> None:
    """Replace the public methods of an extension class by functions that call them."""
    for name, method in vars(owner).copy().items():
        if isinstance(method, MethodDescriptorType) and not name.startswith("_"):
            setattr(owner, name, _function(name, method))


def _function(name: str, method: Any) -> Any:  # noqa: ANN401 - of the class
    def call(self: object, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the method
        return method(self, *args, **kwargs)

    call.__code__ = call.__code__.replace(co_name=name, co_qualname=method.__qualname__)
    call.__name__, call.__doc__ = name, method.__doc__
    call.__qualname__ = method.__qualname__
    call.__module__ = "chainframe"
    # `inspect` takes the signature from here.
    call.__dict__["__wrapped__"] = method
    return call
