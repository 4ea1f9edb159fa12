"""Commands that are no calls: they check, copy or look up."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from chainframe import ChainframeError
from chainframe._text import counted
from chainframe.cli import codes
from chainframe.cli.export import exit_code
from chainframe.cli.messages import echo, echo_error, echo_failure, stats
from chainframe.cli.settings import SETTINGS, client
from chainframe.exports import Export, compact
from chainframe.exports.layout import PARTITIONS
from chainframe.exports.tables import COMPRESSIONS, ROWS_PER_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable


@click.argument("directory", type=click.Path())
@click.option(
    "--sample", type=click.IntRange(min=1), default=200, metavar="N", help="Records to select for each way (200)."
)
@click.option("--seed", type=int, metavar="N", help="Seed of the selection, to repeat it.")
def _verify(directory: str, sample: int, seed: int | None, **given: Any) -> int:  # noqa: ANN401 - click's
    """Compare an export with its checksums, and random records with the API.

    Records are requested another way than the export did: by height, by hash, with another page size, and token
    transfers as event logs. Of a series, the checksums of all exports are compared, and records of the newest one.
    """

    with client(given, streams_to_terminal=True) as opened, stats(opened, given):
        verification = Export.open(directory).verify(opened, sample=sample, seed=seed)
        echo(str(verification))
        return 0 if verification.ok else codes.DIFFERENT


@click.option(
    "--time", required=True, metavar="TIME", help="ISO 8601 with a UTC offset, or epoch seconds or milliseconds."
)
@click.option("--chain", default="main", metavar="NAME", help="The chain: main, zone or its short name (main).")
def _height_at(time: str, chain: str, **given: Any) -> int:  # noqa: ANN401 - click's
    """Print the height of the last block that is not later than a time. Sends about six requests."""

    with client(given, streams_to_terminal=True) as opened, stats(opened, given):
        click.echo(opened.height_at(time, chain=chain))
        return 0


@click.argument("series", nargs=-1, required=True)
@click.argument("path", type=click.Path())
@click.option(
    "--partition-by",
    type=click.Choice(PARTITIONS),
    help="Hive partitions by day of the records, or by span of heights.",
)
@click.option(
    "--heights-per-partition",
    type=click.IntRange(min=1),
    default=100_000,
    metavar="N",
    help="Heights of a span (100000).",
)
@click.option(
    "--max-rows-per-file", type=click.IntRange(min=1), default=1_000_000, metavar="N", help="Rows of a file (1000000)."
)
@click.option(
    "--rows-per-group",
    type=click.IntRange(min=1),
    default=ROWS_PER_GROUP,
    metavar="N",
    help=f"Rows of a row group ({ROWS_PER_GROUP}).",
)
@click.option(
    "--compression", type=click.Choice(COMPRESSIONS), default="zstd", help="Compression of the columns (zstd)."
)
def _compact(series: tuple[str, ...], path: str, **options: Any) -> int:  # noqa: ANN401 - click's
    """Copy a finished export or a SERIES into few files in PATH, sorted by height, with the corrections applied.

    SERIES is a directory or URL, or several. PATH must not exist; in an object store it must hold nothing.
    """
    done = compact(series, path, **options)
    echo(f"{counted(done.rows, 'record')} in {counted(len(done.files), 'file')} in {done.path}")
    return 0


def _reporting(function: Callable[..., int]) -> Callable[..., int]:
    """Let a function that returns an exit code report its errors."""

    @functools.wraps(function)
    def reporting(**given: Any) -> int:  # noqa: ANN401 - click's
        try:
            return function(**given)
        except BrokenPipeError:
            # The caller has the exit code for it.
            raise
        except KeyboardInterrupt:
            echo_error("interrupted")
            return codes.INTERRUPTED
        except (ChainframeError, ModuleNotFoundError, OSError) as error:
            echo_failure(error)
            return exit_code(error)

    return reporting


def _tool(name: str, function: Callable[..., int], text: str, settings: list[click.Option]) -> click.Command:
    command = click.command(name, short_help=text)(_reporting(function))
    command.params += settings
    return command


TOOLS = [
    _tool("verify", _verify, "Compare an export with the API.", SETTINGS),
    _tool("height-at", _height_at, "Print the height of a time.", SETTINGS),
    _tool("compact", _compact, "Copy a series of exports into few files, sorted by height.", []),
]
