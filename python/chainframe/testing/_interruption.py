"""Interruptions of code between any two of its calls, by the opcodes that the interpreter traces.

A point is an operation that may run code of another module: a call, the entry of a `with` block, an assignment to an
item or an attribute, a step of a loop.
"""

from __future__ import annotations

import dis
import linecache
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import CodeType, FrameType

KILLED = 9
"""Exit code of a process that was ended at a point."""
OPERATIONS = {
    "CALL",
    "CALL_KW",
    "CALL_FUNCTION_EX",
    "BEFORE_WITH",
    "STORE_SUBSCR",
    "DELETE_SUBSCR",
    "STORE_ATTR",
    "DELETE_ATTR",
    "FOR_ITER",
}
OPCODES = frozenset(dis.opmap[name] for name in OPERATIONS & dis.opmap.keys())


class Kind(Enum):
    """Kind of an interruption."""

    KILL = "the process is killed before"
    LOST = "ConnectionError is raised after"


@dataclass(frozen=True)
class Interruption:
    """An interruption at the point of that number in a run."""

    kind: Kind
    run: int
    point: int


class Interruptor:
    """Counts the points in the code of packages while it is armed, and interrupts at one of them."""

    def __init__(
        self, packages: Callable[[], frozenset[str]], interruption: Interruption | None, report: Callable[[str], None]
    ) -> None:
        self._packages_of = packages
        self._packages: frozenset[str] = frozenset()
        self._interruption = interruption
        self._report = report
        self.points = 0
        self.is_needed = False
        """False if no point need be counted: a library runs at half of its speed while it is traced."""
        self._answering: FrameType | None = None

    @contextmanager
    def armed(self) -> Generator[None]:
        if not self.is_needed:
            yield
            return
        self._packages = self._packages_of()
        # Python 3.12 traces opcodes only if a frame has asked for them before `settrace`.
        sys._getframe().f_trace_opcodes = True  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        sys.settrace(self._frame)
        try:
            yield
        finally:
            sys.settrace(None)
            self._answering = None

    def _frame(self, frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 - a trace function
        if not _is_within(frame.f_globals.get("__name__", ""), self._packages):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._operation

    def _operation(self, frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 - a trace function
        if self._answering is frame and event in {"opcode", "return"}:
            self._answering = None
            raise ConnectionError("the response was lost")
        if event == "opcode" and frame.f_lasti in _points(frame.f_code):
            number = self.points
            self.points += 1
            if self._interruption is not None and number == self._interruption.point:
                self._fire(self._interruption.kind, frame)
        return self._operation

    def _fire(self, kind: Kind, frame: FrameType) -> None:
        self.is_needed = False
        code = frame.f_code
        line = linecache.getline(code.co_filename, frame.f_lineno).strip()
        place = f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
        self._report(f"{kind.value} a call of `{line}` ({place})")
        if kind is Kind.KILL:
            os._exit(KILLED)
        self._answering = frame


@cache
def _is_within(module: str, packages: frozenset[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)


@cache
def _points(code: CodeType) -> frozenset[int]:
    # Each process that is interrupted looks at all functions again; `dis.get_instructions` takes thirty times as long.
    return frozenset(2 * index for index, operation in enumerate(code.co_code[::2]) if operation in OPCODES)
