"""Kinds of values of options: columns, hashes, and values of a file."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Self, TextIO

import click
from click.shell_completion import CompletionItem

from chainframe._arguments import similar
from chainframe._paths import local_path
from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from click import Context, Parameter


STDIN = {"-", "/dev/stdin"}
ENCODING = "utf-8-sig"


class Columns(click.ParamType[list[str]]):
    """Names of columns, separated by commas."""

    name = "names"

    def __init__(self, fields: list[str]) -> None:
        self.fields = fields

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> list[str]:  # noqa: ANN401 - click's
        names = value if isinstance(value, list) else [name.strip() for name in value.split(",")]
        for name in names:
            if name not in self.fields:
                advice = similar(name, self.fields)
                self.fail(f"must be among {', '.join(self.fields)}; got {name!r}{advice}", param, ctx)
        return names

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        before, comma, start = incomplete.rpartition(",")
        return [CompletionItem(before + comma + name) for name in self.fields if name.startswith(start)]


class Line(str):
    """A value of a file, with its place there for the error about it."""

    __slots__ = ("place",)
    place: str

    def __new__(cls, text: str, place: str) -> Self:
        line = super().__new__(cls, text)
        line.place = place
        return line


class Values(click.ParamType["str | list[str]"]):
    """A value, or with `@` a file that has one on each line; `@-` is standard input."""

    name = "values"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str | list[str]:  # noqa: ANN401 - click's
        if isinstance(value, list) or not value.startswith("@"):
            return value  # type: ignore[no-any-return]
        if value == "@":
            self.fail("must name a file after @, or - for standard input", param, ctx)
        return self.lines(value[1:], param, ctx)

    def lines(self, file: str, param: Parameter | None, ctx: Context | None) -> list[str]:
        """Lines of a file that are not blank. White space within a line is left to the check of its value."""
        name = "standard input" if file in STDIN else file
        try:
            text = _input() if file in STDIN else _content(local_path(file, "FILE"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            self.fail(f"{name} cannot be read: {reason}", param, ctx)
        except InvalidParameterError as error:
            self.fail(str(error), param, ctx)
        # Not splitlines, which takes form feeds and other characters for ends of lines.
        lines = enumerate(map(str.strip, text.split("\n")), 1)
        return [Line(line, f"line {number} of {name}") for number, line in lines if line]


def _input() -> str:
    """Text of standard input, which is open: a named pipe would be waited for once more, after its writer has ended."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.read()


def _content(path: Path) -> str:
    """Text of a file, a pipe or a terminal. Other devices have no end."""
    with _opened(path) as file:
        mode = os.fstat(file.fileno()).st_mode
        if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not file.isatty():
            raise OSError(errno.EINVAL, "it is a device; name a file")
        return file.read()


def _opened(path: Path) -> TextIO:
    """A file, or the open pipe that a path such as `/dev/fd/63` names: to open it once more would wait for a writer."""
    # Shells differ in which of these they name.
    is_descriptor = str(path.parent) in {"/dev/fd", "/proc/self/fd"} and path.name.isdecimal()
    if is_descriptor and stat.S_ISFIFO(path.stat().st_mode):
        return os.fdopen(os.dup(int(path.name)), encoding=ENCODING)
    return path.open(encoding=ENCODING)


class Hashes(Values):
    """Hashes separated by commas; or, with `@`, a file that has one on each line; `-` is standard input."""

    name = "hashes"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> str | list[str]:  # noqa: ANN401 - click's
        if value == "-":
            return self.lines(value, param, ctx)
        given = super().convert(value, param, ctx)
        return given if isinstance(given, list) else given.split(",")
