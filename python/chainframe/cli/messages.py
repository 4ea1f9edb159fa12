"""Lines of the command for people, and the texts of its errors."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from chainframe import ChainframeError
from chainframe._text import shown
from chainframe.cli import codes
from chainframe.errors.base import in_shell

if TYPE_CHECKING:
    from collections.abc import Generator

    from chainframe import Client


def echo(message: str) -> None:
    click.echo(shown(message, sys.stdout))


def echo_error(message: str) -> None:
    click.echo(shown(f"chainframe: {message}", sys.stderr), err=True)


def echo_failure(error: Exception, advice: str = "") -> None:
    if isinstance(error, OSError) and not isinstance(error, ChainframeError):
        codes.give_up_output()
    echo_error(_text_of(error) + advice)


def _text_of(error: Exception) -> str:
    if isinstance(error, ChainframeError):
        return in_shell(error)
    if not isinstance(error, OSError):
        return str(error)
    problem = error.strerror or error
    file = f": {error.filename}" if error.filename else ""
    return f"--output cannot be written: {problem}{file}"


@contextmanager
def stats(client: Client, given: dict[str, Any]) -> Generator[None]:
    """Prints what a client has sent, if that is asked for, also after an error."""
    try:
        yield
    finally:
        if given["stats"]:
            echo_error(str(client.usage))
