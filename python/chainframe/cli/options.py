"""Options of a call's result: the output, its format and its content."""

from __future__ import annotations

import click

from chainframe.cli.param_types import Columns
from chainframe.exports.files import FORMATS
from chainframe.exports.parquet import ROWS_PER_FILE
from chainframe.exports.tables import COMPRESSIONS, ROWS_PER_GROUP

PARQUET = [
    click.Option(
        ["--max-rows-per-file"],
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Maximum rows of a file in a directory. Default: {ROWS_PER_FILE}.",
    ),
    click.Option(
        ["--compression"], type=click.Choice(COMPRESSIONS), help="Compression of Parquet files. Default: zstd."
    ),
    click.Option(
        ["--rows-per-group"],
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Maximum rows of a row group of Parquet files. Default: {ROWS_PER_GROUP}.",
    ),
]
PARQUET_OPTIONS = [str(option.name) for option in PARQUET]


def _merged(ctx: click.Context, param: click.Parameter, given: tuple[list[str], ...]) -> list[str] | None:
    """Return the columns of an option that is given once or several times."""
    names = [name for columns in given for name in columns]
    if len(set(names)) < len(names):
        raise click.BadParameter(f"must be distinct; got {','.join(names)!r}", ctx, param)
    return names or None


def result_options(columns: list[str]) -> list[click.Option]:
    """Options that a call with these columns has."""
    return [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            type=click.Path(),
            help="A .parquet, .csv, .jsonl, .csv.gz, .jsonl.gz or .arrow file, replaced when complete; or a directory "
            "for Parquet files, ending with /. Default: standard output.",
        ),
        click.Option(
            ["--format"],
            type=click.Choice(FORMATS),
            help="Output format, if the file name has no suffix. Default: jsonl.",
        ),
        click.Option(
            ["--columns"],
            type=Columns(columns),
            multiple=True,
            callback=_merged,
            help="Columns to write, in this order, separated by commas.",
        ),
        click.Option(
            ["--numbers"],
            type=click.Choice(["decimal", "float", "string"]),
            help="Amounts as exact decimals (default of .parquet, .arrow), doubles, or strings (.csv, .jsonl).",
        ),
        click.Option(
            ["--mode"],
            type=click.Choice(["resume", "overwrite", "error"]),
            help="If the output exists: continue an interrupted run (default), start over, or fail.",
        ),
        click.Option(["--resume", "mode"], flag_value="resume", help="Same as --mode resume."),
        click.Option(["--overwrite", "mode"], flag_value="overwrite", help="Same as --mode overwrite."),
        click.Option(
            ["--since"],
            metavar="DIR",
            type=click.Path(),
            help="Directory of an earlier export: write only records that are newer.",
        ),
        click.Option(
            ["--series"],
            is_flag=True,
            default=None,
            help="Add what is new to the series of exports in a directory, and correct its last heights.",
        ),
        click.Option(
            ["--settle"],
            type=click.IntRange(min=1),
            metavar="N",
            help="End a directory's export N heights below the newest record; with --since or --series (64), correct "
            "the last N. With --follow, hold back N heights, with --sync read N again (12).",
        ),
        *PARQUET,
        click.Option(["--dry-run"], is_flag=True, help="Estimate records, requests and time (sends a few requests)."),
    ]
