"""`with Cassette(...)`: the cassette of every client that is made within the block."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from chainframe._native import _name_cassette, _unname_cassette

if TYPE_CHECKING:
    from chainframe.testing import Cassette

_before: list[tuple[Cassette, dict[str, str | None]]] = []
"""Open blocks, with the variables of the environment before them."""


def enter(cassette: Cassette) -> None:
    variables = dict(_name_cassette(cassette))
    _before.append((cassette, {name: os.environ.get(name) for name in variables}))
    os.environ.update(variables)


def leave(cassette: Cassette) -> None:
    position = max(index for index, (entered, _) in enumerate(_before) if entered is cassette)
    _, variables = _before.pop(position)
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _unname_cassette(cassette)
