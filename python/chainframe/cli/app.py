"""Subcommands of the declared calls; options have the names of the arguments."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem, get_completion_class

from chainframe import ChainframeError, TransportError, __version__, _native
from chainframe._arguments import SYNONYMS
from chainframe._text import shown
from chainframe.cli import codes, core, follow, sync
from chainframe.cli.export import Terminated, destination, exit_code, sigterm_as_exception
from chainframe.cli.param_types import Columns, Hashes, Values
from chainframe.cli.settings import SETTINGS, client
from chainframe.errors.base import in_shell
from chainframe.exports import Export
from chainframe.exports.files import FORMATS, NON_RESUMABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from click import Context

    from chainframe import Client, Query, Report
    from chainframe.cli.export import Destination

DECLARED = json.loads(_native._declaration())  # noqa: SLF001 - made for what is derived
HEIGHTS = {"height", "zone_block_height"}
FIELDS = {record["name"]: [field["name"] for field in record["fields"]] for record in DECLARED["records"]}
COMPLETE = "_CHAINFRAME_COMPLETE"
# Missing hashes that are listed.
SHOWN = 10


def main(arguments: Sequence[str]) -> int:
    try:
        code = app.main(arguments, prog_name="chainframe", complete_var=COMPLETE, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(f"{error.format_message()}\n\nchainframe: missing command", err=True)
        return codes.USAGE
    except click.ClickException as error:
        _echo_error(_explained(error))
        return codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        return codes.INTERRUPTED
    return int(code or 0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="chainframe %(version)s")
def app() -> None:
    """On-chain data: every record exactly once, with its exact value.

    Settings come from the environment: CHAINFRAME_BASE_URL, and the credentials, which are never options:
    CHAINFRAME_API_KEY, CHAINFRAME_SECRET_KEY, CHAINFRAME_PASSPHRASE.

    \b
    Exit codes: 0 complete, 1 output cannot be written, 2 usage, 3 authentication,
    4 rate limit, 5 network or service, 6 incomplete, 7 output locked by another
    run (try again), 8 verify found differences, 130 interrupted, 143 terminated.
    """


@app.command(short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script: `eval "$(chainframe completion bash)"`."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices are click's own
    click.echo(kind(app, {}, "chainframe", COMPLETE).source())


def _explained(error: click.ClickException) -> str:
    """Return the message of an error. An unknown option that is a word of another tool names the one that is meant."""
    if isinstance(error, click.NoSuchOption) and error.ctx:
        word = error.option_name.lstrip("-").replace("-", "_")
        options = {option for param in error.ctx.command.params for option in param.opts}
        for name in SYNONYMS.get(word, ()):
            if _flag(name) in options:
                return f"{error.message} Did you mean '{_flag(name)}'?"
    return error.format_message()


class _Core(click.Command):
    """A command that works without click and parses its own options."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.args = args
        return []

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        words = core.words_after([self.name or "", *ctx.args])
        return [CompletionItem(word, help=text) for word, text in words.items() if word.startswith(incomplete)]

    def invoke(self, ctx: Context) -> int:
        return core.main([self.name or "", *ctx.args])


def _given(values: Any) -> Any:  # noqa: ANN401 - of any option
    """Return the value of an option of a call: one value, or all that were given by several options or a file."""
    if not isinstance(values, tuple):
        return values
    found = [value for each in values for value in each]
    return (found[0] if len(values) == len(found) == 1 else found) if values else None


def _own_option(param: dict[str, Any]) -> click.Option:
    kind: Any = click.STRING
    text = param["doc"]
    if param["requires"]:
        text += f" Requires {_flag(param['requires'])}."
    match param["kind"]:
        case {"one of": choices}:
            kind = click.Choice(choices)
        case {"hashes per request": _}:
            kind, text = Hashes(), f"{text} Separated by commas, or - for standard input, one per line."
        case "time":
            text += " ISO 8601 with a UTC offset, or epoch seconds or milliseconds."
        case _ if param["selects list"]:
            kind, text = Values(), f"{text} May be repeated; @FILE has one on each line."
        case _:
            pass
    return click.Option(
        [_flag(param["name"])],
        type=kind,
        multiple=isinstance(kind, Values),
        required=param["required"],
        metavar=None if isinstance(kind, click.Choice) else param["name"].rpartition("_")[2].upper(),
        help=text,
    )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _call_options(endpoint: dict[str, Any]) -> list[click.Option]:
    """Options that a call takes as arguments."""
    own = [_own_option(param) for param in endpoint["params"]]
    own.append(
        click.Option(
            ["--chain"], metavar="NAME", help="Short name of the chain, instead of --main-chain or --zone-chain."
        )
    )
    if endpoint["page_size_max"]:
        most = endpoint["page_size_max"]
        own.append(click.Option(["--page-size"], type=int, metavar="N", help=f"Records per page. Default: {most}."))
        own.append(click.Option(["--max-items"], type=int, metavar="N", help="Maximum number of records."))
    if any(param["selects list"] for param in endpoint["params"]):
        text = "With several values of an option: write each record once, though several of their lists have it."
        own.append(click.Option(["--unique"], is_flag=True, default=None, help=text))
    return own


def _command(endpoint: dict[str, Any]) -> click.Command:
    own = _call_options(endpoint)
    names = [option.name for option in own if option.name]
    can_follow = endpoint["page_size_max"] and not HEIGHTS.isdisjoint(FIELDS[endpoint["record"]])
    result = [
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
            type=Columns(
                FIELDS[endpoint["record"]] + ["queried"] * any(param["selects list"] for param in endpoint["params"])
            ),
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
        click.Option(
            ["--max-rows-per-file"],
            type=click.IntRange(min=1),
            metavar="N",
            help="Maximum rows of a file in a directory. Default: 65536.",
        ),
        click.Option(["--dry-run"], is_flag=True, help="Estimate records, requests and time (sends a few requests)."),
    ]
    # `--resume` and `--overwrite` are options of the same name as `--mode`.
    stated = {str(option.name) for option in result}

    def run(**given: Any) -> int:  # noqa: ANN401 - click's
        arguments = {name: _given(given.pop(name)) for name in names}
        output = {name: given.pop(name) for name in stated}
        follows = {name: given.pop(name) for name in (*follow.NAMES, *sync.NAMES) if can_follow}
        target: Destination | None = None
        report: Report | None = None
        try:
            with sigterm_as_exception():
                target = _destination(follows, output)
                with client(given, streams_to_terminal=target.streams_to_terminal()) as made, _stats(made, given):
                    query = getattr(made, endpoint["name"])(**arguments)
                    if output["dry_run"]:
                        limited = _estimate(query)
                        return codes.INCOMPLETE if limited and given["strict"] else 0
                    report, written = target.run(query, made)
                _print_report(report)
                if written and sys.stderr is not None and sys.stderr.isatty():
                    _echo_error(written)
        except BrokenPipeError:
            codes.give_up_output()
            return codes.BROKEN_PIPE
        except (KeyboardInterrupt, Terminated) as error:
            if report is not None:
                # The output is written: there is nothing left to interrupt.
                return _code(report)
            terminated = isinstance(error, Terminated)
            _echo_error(f"{'terminated' if terminated else 'interrupted'}{_saved(target)}")
            return codes.TERMINATED if terminated else codes.INTERRUPTED
        except (ChainframeError, ModuleNotFoundError, OSError) as error:
            advice = "" if isinstance(error, NON_RESUMABLE) or not (target and target.saved()) else _saved(target)
            if isinstance(error, TransportError):
                advice = f"; run chainframe doctor to diagnose the connection{advice}"
            _echo_error(_text(error) + advice)
            return exit_code(error)
        return _code(report)

    help_text = endpoint["doc"].replace("`", "")
    return click.Command(
        endpoint["name"].replace("_", "-"),
        callback=run,
        help=help_text,
        # The first clause fits one line of the list of commands.
        short_help=re.split("[.,;]", help_text)[0] + ".",
        params=[*own, *result, *([*follow.OPTIONS, *sync.OPTIONS] if can_follow else []), *SETTINGS],
    )


@click.argument("directory", type=click.Path())
@click.option(
    "--sample", type=click.IntRange(min=1), default=200, metavar="N", help="Records to select for each way (200)."
)
@click.option("--seed", type=int, metavar="N", help="Seed of the selection, to repeat it.")
def _verify(directory: str, sample: int, seed: int | None, **given: Any) -> int:  # noqa: ANN401 - click's
    """Compare an export with its checksums, and random records with the API.

    Records are requested another way than the export did: by height, by hash, with another page size, and token
    transfers as event logs.
    """

    def verify(made: Client) -> int:
        verification = Export.open(directory).verify(made, sample=sample, seed=seed)
        _echo(str(verification))
        return 0 if verification.ok else codes.DIFFERENT

    return _with_client(given, verify)


@click.option(
    "--time", required=True, metavar="TIME", help="ISO 8601 with a UTC offset, or epoch seconds or milliseconds."
)
@click.option("--chain", type=click.Choice(["main", "zone"]), default="main", help="The chain (main).")
def _height_at(time: str, chain: Literal["main", "zone"], **given: Any) -> int:  # noqa: ANN401 - click's
    """Print the height of the last block that is not later than a time. Sends about six requests."""

    def find(made: Client) -> int:
        click.echo(made.height_at(time, chain=chain))
        return 0

    return _with_client(given, find)


def _with_client(given: dict[str, Any], function: Callable[[Client], int]) -> int:
    """Calls a function that returns an exit code, and reports its errors."""
    try:
        with client(given, streams_to_terminal=True) as made, _stats(made, given):
            return function(made)
    except KeyboardInterrupt:
        _echo_error("interrupted")
        return codes.INTERRUPTED
    except (ChainframeError, ModuleNotFoundError, OSError) as error:
        _echo_error(_text(error))
        return exit_code(error)


@contextmanager
def _stats(made: Client, given: dict[str, Any]) -> Generator[None]:
    """Prints what a client has sent, if that is asked for, also after an error."""
    try:
        yield
    finally:
        if given["stats"]:
            _echo_error(str(made.usage))


def _destination(follows: dict[str, Any], output: dict[str, Any]) -> Destination:
    """Select the destination by the options; `follows` is empty for calls that cannot be followed."""
    if follows:
        found = sync.syncing(follows, output, follow=follows["follow"]) or follow.following(follows, output)
        if found is not None:
            return found
    return destination(
        *(output[name] for name in ("output", "format", "numbers", "columns")),
        **{name: output[name] for name in ("mode", "since", "series", "settle", "max_rows_per_file")},
    )


def _estimate(query: Query[Any]) -> bool:
    """Prints the estimated cost of a run; True if the result would be incomplete."""
    estimate = query.estimate()
    _echo(repr(query).strip("<>"))
    for name, text in estimate._facts():  # noqa: SLF001 - of this package
        _echo(f"{name}: {text}")
    for limitation in estimate._limitations_in_shell():  # noqa: SLF001 - of this package
        _echo(limitation)
    return bool(estimate.limitations)


def _code(report: Report) -> int:
    return 0 if report.complete else codes.INCOMPLETE


def _print_report(report: Report) -> None:
    for reason in report._reasons_in_shell() + report._remarks_in_shell():  # noqa: SLF001 - of this package
        _echo_error(reason)
    if report.missing:
        more = f" and {len(report.missing) - SHOWN} others" if len(report.missing) > SHOWN else ""
        _echo_error(f"not returned: {', '.join(report.missing[:SHOWN])}{more}")


def _saved(target: Destination | None) -> str:
    saved = target.saved() if target else None
    if saved is None:
        return ""
    return f"; {saved:,} records saved; rerun with --resume to continue" if saved else "; no records saved"


def _text(error: Exception) -> str:
    if isinstance(error, ChainframeError):
        return in_shell(error)
    if not isinstance(error, OSError):
        return str(error)
    codes.give_up_output()
    return f"--output cannot be written: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"


def _echo(message: str) -> None:
    click.echo(shown(message, sys.stdout))


def _echo_error(message: str) -> None:
    click.echo(shown(f"chainframe: {message}", sys.stderr), err=True)


for _endpoint in DECLARED["endpoints"]:
    app.add_command(_command(_endpoint))
for _name, _function, _help in (
    ("verify", _verify, "Compare an export with the API."),
    ("height-at", _height_at, "Print the height of a time."),
):
    app.add_command(click.command(_name, short_help=_help)(_function))
    app.commands[_name].params += SETTINGS
for _name, _help in core.COMMANDS.items():
    app.add_command(_Core(_name, short_help=_help, add_help_option=False))
