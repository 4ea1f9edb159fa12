"""`--sync`: a table that follows the query, and a line of JSON about what the run changed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from chainframe import ChainframeError, Client, InvalidParameterError, Query, Report
from chainframe.cli.core import flag
from chainframe.cli.export import Destination, suppress_incomplete_warning
from chainframe.cli.options import PARQUET_OPTIONS
from chainframe.errors.base import in_shell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chainframe.cli.export import Numbers
    from chainframe.sinks import Synced

SETTLE = 12
OPTIONS = [
    click.Option(
        ["--sync"],
        metavar="TARGET",
        help="Bring a table up to date, each record once, and end: a .duckdb file, postgresql://..., "
        "iceberg://CATALOG, or the location of a Delta Lake table.",
    ),
    click.Option(["--table"], metavar="NAME", help="Name of the table of --sync in its database or catalog."),
    click.Option(["--reset"], is_flag=True, help="Fetch the table of --sync again, from the beginning."),
]
NAMES = [str(option.name) for option in OPTIONS]


def syncing(given: Mapping[str, Any], output: Mapping[str, Any], follow: bool) -> Syncing | None:  # noqa: FBT001 - a fact
    """Check the options of `--sync` against the others; returns None without it."""
    if not given["sync"]:
        for name in NAMES:
            if given[name]:
                raise InvalidParameterError(f"--{name} needs --sync")
        return None
    if follow:
        raise InvalidParameterError("--follow cannot be combined with --sync")
    for name in ("output", "format", "mode", "since", "series", *PARQUET_OPTIONS, "dry_run"):
        if output[name]:
            raise InvalidParameterError(f"{flag(name)} cannot be combined with --sync")
    return Syncing(
        target=given["sync"],
        table=given["table"],
        reset=given["reset"],
        settle=output["settle"] or SETTLE,
        columns=output["columns"],
        numbers=output["numbers"],
    )


@dataclass(frozen=True)
class Syncing(Destination):
    """A table of `--sync`."""

    target: str
    table: str | None
    reset: bool
    settle: int
    columns: list[str] | None
    numbers: Numbers | None

    def run(self, query: Query[Any], client: Client) -> tuple[Report, str]:
        del client
        try:
            with suppress_incomplete_warning():
                synced = query.sync(
                    self.target,
                    table=self.table,
                    settle=self.settle,
                    columns=self.columns,
                    numbers=self.numbers,
                    reset=self.reset,
                )
        except ChainframeError as error:
            text = in_shell(error)
            for in_python, option in (("reset=True", "--reset"), ("--target ", "--sync "), ("table=", "--table")):
                text = text.replace(in_python, option)
            error._set_shell_text(text)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            raise
        _print(synced)
        return synced.report, ""


def _print(synced: Synced) -> None:
    if sys.stdout is not None:
        facts = {name: value for name, value in vars(synced).items() if name != "report"}
        click.echo(json.dumps(facts))
