"""One subcommand for every declared call, its options named after the call's arguments."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from chainframe import ChainframeError, TransportError, __version__, _native
from chainframe.cli import codes, core
from chainframe.cli.export import FORMATS, LASTING, destination, exit_code
from chainframe.cli.settings import SETTINGS, client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click import Context, Parameter

    from chainframe import Query, Report
    from chainframe.cli.export import Destination

DECLARED = json.loads(_native._declaration())  # noqa: SLF001 - made for what is derived
FIELDS = {record["name"]: [field["name"] for field in record["fields"]] for record in DECLARED["records"]}
COMPLETE = "_CHAINFRAME_COMPLETE"
# Of hashes that were not returned.
SHOWN = 10
IN_THE_SHELL = {
    'with mode "new_episodes"': "with --record",
    'numbers="string", or the records themselves': "--numbers string",
    "; they are in `missing`": "",
}


def main(arguments: Sequence[str]) -> int:
    try:
        code = app.main(arguments, prog_name="chainframe", complete_var=COMPLETE, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(f"{error.format_message()}\n\nchainframe: give a command", err=True)
        return codes.USAGE
    except click.ClickException as error:
        _say(error.format_message())
        return codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        return codes.INTERRUPTED
    return int(code or 0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="chainframe %(version)s")
def app() -> None:
    """On-chain data from the shell: complete and exact.

    Every command asks the service that the CHAINFRAME_* variables name: CHAINFRAME_BASE_URL, and the secrets, which are
    never options: CHAINFRAME_API_KEY, CHAINFRAME_SECRET_KEY, CHAINFRAME_PASSPHRASE.

    \b
    Exit codes: 0 complete, 2 usage, 3 authentication, 4 rate limit,
    5 network or service, 6 incomplete, 130 interrupted; 1 the output cannot be written.
    """


@app.command(short_help="Print the script that completes this command in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes this command in a shell: `eval "$(chainframe completion bash)"`."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choices are click's own
    click.echo(kind(app, {}, "chainframe", COMPLETE).source())


class _Core(click.Command):
    """A command that needs no extra, and so reads its own options."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.args = args
        return []

    def invoke(self, ctx: Context) -> int:
        return core.main([self.name or "", *ctx.args])


class _Columns(click.ParamType[list[str]]):
    """Names of columns, separated by commas."""

    name = "names"

    def __init__(self, fields: list[str]) -> None:
        self.fields = fields

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> list[str]:  # noqa: ANN401 - click's
        names = value if isinstance(value, list) else [name.strip() for name in value.split(",")]
        for name in names:
            if name not in self.fields:
                self.fail(f"no column {name!r}; there are {', '.join(self.fields)}", param, ctx)
        if len(set(names)) < len(names):
            self.fail("a column is named twice", param, ctx)
        return names

    def shell_complete(self, ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        before, comma, start = incomplete.rpartition(",")
        return [CompletionItem(before + comma + name) for name in self.fields if name.startswith(start)]


class _Hashes(click.ParamType[list[str]]):
    """Hashes separated by commas; `-` reads them from standard input, one a line."""

    name = "hashes"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> list[str]:  # noqa: ANN401 - click's
        if isinstance(value, list):
            return value
        try:
            return sys.stdin.read().split() if value == "-" else str(value).split(",")
        except UnicodeDecodeError:
            self.fail("standard input is not text", param, ctx)


def _own_option(param: dict[str, Any]) -> click.Option:
    kind: Any = click.STRING
    text = re.sub(r"goes with `(\w+)`", lambda other: f"goes with {_flag(other[1])}", param["doc"]).replace("`", "")
    match param["kind"]:
        case {"one of": choices}:
            kind = click.Choice(choices)
        case {"hashes per request": _}:
            kind, text = _Hashes(), f"{text} Separated by commas, or - for standard input, one a line."
        case "time":
            text += " ISO 8601 with its offset from UTC, or Unix milliseconds."
        case _:
            pass
    metavar = None if isinstance(kind, click.Choice) else param["name"].rpartition("_")[2].upper()
    return click.Option([_flag(param["name"])], type=kind, required=param["required"], metavar=metavar, help=text)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _command(endpoint: dict[str, Any]) -> click.Command:
    own = [_own_option(param) for param in endpoint["params"]]
    own.append(
        click.Option(
            ["--chain"], metavar="NAME", help="Short name of the chain, instead of --main-chain or --zone-chain."
        )
    )
    if endpoint["page_size_max"]:
        most = endpoint["page_size_max"]
        own.append(click.Option(["--page-size"], type=int, metavar="N", help=f"Records in a page, by default {most}."))
        own.append(click.Option(["--max-items"], type=int, metavar="N", help="End after as many records."))
    names = [option.name for option in own if option.name]
    result = [
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            type=click.Path(),
            help="A .parquet, .csv, .jsonl or .arrow file, there when it is whole; or a directory, ending with /, "
            "for Parquet files; otherwise standard output.",
        ),
        click.Option(
            ["--format"],
            type=click.Choice(FORMATS),
            help="The form, where no file name says it; JSON lines otherwise.",
        ),
        click.Option(
            ["--columns"],
            type=_Columns(FIELDS[endpoint["record"]]),
            help="Only these, in this order, separated by commas.",
        ),
        click.Option(
            ["--numbers"],
            type=click.Choice(["decimal", "float", "string"]),
            help="Amounts as exact decimals (.parquet, .arrow), doubles, or their digits (.csv, .jsonl).",
        ),
        click.Option(["--resume"], is_flag=True, help="Go on where an export to this file or directory was cut short."),
        click.Option(["--overwrite"], is_flag=True, help="Start an export to a directory over."),
        click.Option(["--dry-run"], is_flag=True, help="Say what a run would take, from one request."),
    ]

    def run(**given: Any) -> int:  # noqa: ANN401 - click's
        arguments = {name: given.pop(name) for name in names}
        said = [given.pop(name) for name in ("output", "format", "numbers", "columns")]
        resume, overwrite, dry_run = (given.pop(name) for name in ("resume", "overwrite", "dry_run"))
        target = None
        try:
            target = destination(*said, resume=resume, overwrite=overwrite)
            with client(given) as made:
                query = getattr(made, endpoint["name"])(**arguments)
                if dry_run:
                    _explain(query, names)
                    return 0
                report = target.run(query, made)
        except BrokenPipeError:
            codes.give_up_output()
            return codes.BROKEN_PIPE
        except KeyboardInterrupt:
            if kept := _kept(target):
                _say(f"interrupted{kept}")
            return codes.INTERRUPTED
        except (ChainframeError, ModuleNotFoundError, OSError) as error:
            advice = "" if isinstance(error, LASTING) else _kept(target)
            if isinstance(error, TransportError):
                advice = f"; chainframe doctor says what stands in the way{advice}"
            _say(_in_flags(_text(error), [*names, *given, "output", "resume", "overwrite"]) + advice)
            return exit_code(error)
        _tell(report, names)
        return 0 if report.complete else codes.INCOMPLETE

    help_text = endpoint["doc"].replace("`", "")
    return click.Command(
        endpoint["name"].replace("_", "-"), callback=run, help=help_text, params=[*own, *result, *SETTINGS]
    )


def _explain(query: Query[Any], names: list[str]) -> None:
    """What a run would take, from one request."""
    plan = query.explain()
    click.echo(repr(query).strip("<>"))
    for name in ("records", "pages", "requests", "seconds"):
        value = getattr(plan, name)
        text = "not known" if value is None else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
        click.echo(f"{name}: {'' if plan.exact or value is None else 'about '}{text}")
    for sentence in plan.cannot:
        click.echo(_in_flags(sentence, names))


def _tell(report: Report, names: list[str]) -> None:
    for reason in report.reasons:
        _say(_in_flags(reason, names))
    if report.missing:
        more = f" and {len(report.missing) - SHOWN} others" if len(report.missing) > SHOWN else ""
        _say(f"not returned: {', '.join(report.missing[:SHOWN])}{more}")


def _kept(target: Destination | None) -> str:
    kept = target.kept() if target else 0
    return f"; {kept:,} records are kept, and --resume goes on from there" if kept else ""


def _text(error: Exception) -> str:
    if isinstance(error, ChainframeError) or not isinstance(error, OSError):
        return str(error)
    codes.give_up_output()
    return f"output: cannot be written: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"


def _in_flags(message: str, names: list[str]) -> str:
    """A message about an argument, in the words of the shell, which has no option for a secret."""
    for said, here in IN_THE_SHELL.items():
        message = message.replace(said, here)
    message = re.sub(
        r"pass (\w+)= or set", lambda way: f"pass {_flag(way[1])} or set" if way[1] in names else "set", message
    )
    name, colon, rest = message.partition(": ")
    if name in names:
        message = f"{_flag(name)}{colon}{rest}"
    # Names of one word may be words, but not where only names are listed.
    message = re.sub(r"arrow the query with [^.;]*", lambda advice: _flagged(advice[0], names), message)
    return _flagged(message, [name for name in names if "_" in name])


def _flagged(message: str, names: list[str]) -> str:
    return (
        re.sub(rf"(?<![\w.\"'-])({'|'.join(names)})\b(?!=)", lambda said: _flag(said[1]), message) if names else message
    )


def _say(message: str) -> None:
    click.echo(f"chainframe: {message}", err=True)


for _endpoint in DECLARED["endpoints"]:
    app.add_command(_command(_endpoint))
for _name, _help in core.COMMANDS.items():
    app.add_command(_Core(_name, short_help=_help, add_help_option=False))
