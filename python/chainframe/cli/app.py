"""Subcommands of the declared calls; options have the names of the arguments."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from chainframe import ChainframeError, IncompleteResultError, InvalidParameterError, TransportError, __version__
from chainframe._arguments import SYNONYMS
from chainframe._declared import ENDPOINTS, QUERIED, height_column, record_of
from chainframe._text import counted, without_secrets_of_urls
from chainframe.cli import codes, core, follow, sync
from chainframe.cli.core import flag
from chainframe.cli.export import OutputOptions, Terminated, destination, exit_code, sigterm_as_exception
from chainframe.cli.messages import echo, echo_error, echo_failure, stats
from chainframe.cli.options import result_options
from chainframe.cli.param_types import Hashes, Line, Values
from chainframe.cli.settings import SETTINGS, client
from chainframe.cli.tools import TOOLS
from chainframe.errors.base import in_shell
from chainframe.exports.files import NON_RESUMABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click import Context

    from chainframe import Client, Query, Report
    from chainframe.cli.export import Destination

COMPLETE = "_CHAINFRAME_COMPLETE"
FOLLOWING = [*follow.OPTIONS, *sync.OPTIONS]
"""Options of the calls whose lists can be followed."""
INDEXED = re.compile(r"(\w+)\[(\d+)\] ")
"""Beginning of an error about one of several values of an argument."""
# Missing hashes, and arguments with an error, that are listed.
SHOWN = 10


def main(arguments: Sequence[str]) -> int:
    before = sys.stdout
    try:
        code = app.main(arguments, prog_name="chainframe", complete_var=COMPLETE, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(f"{error.format_message()}\n\nchainframe: missing command", err=True)
        return codes.USAGE
    except click.ClickException as error:
        echo_error(_explained(error))
        return codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        return codes.INTERRUPTED
    except SystemExit:
        if sys.stdout is before:
            raise
        # click has replaced it, and exits with 1, since the reader of the output has ended.
        return codes.BROKEN_PIPE
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
    run (try again), 8 verify found differences, 9 network or service, and
    another try is not expected to help, 130 interrupted, 143 terminated.
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
        if any(error.option_name in option.opts for option in FOLLOWING):
            return f"{error.message} The list of {error.ctx.command.name} cannot be followed."
        for name in SYNONYMS.get(word, ()):
            if flag(name) in options:
                return f"{error.message} Did you mean '{flag(name)}'?"
    return without_secrets_of_urls(error.format_message())


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
    if not values:
        return None
    if len(values) == 1:
        return values[0]
    given: list[str] = []
    for each in values:
        given += [each] if isinstance(each, str) else each
    return given


def _own_option(param: dict[str, Any]) -> click.Option:
    kind: Any = click.STRING
    text = param["doc"]
    if param["requires"]:
        text += f" Requires {flag(param['requires'])}."
    match param["kind"]:
        case {"one of": choices}:
            kind = click.Choice(choices)
        case {"hashes per request": _}:
            kind = Hashes()
            text += " Separated by commas; @FILE has one on each line, - is standard input. May be repeated."
        case "time":
            text += " ISO 8601 with a UTC offset, or epoch seconds or milliseconds."
        case _ if param["selects list"]:
            kind = Values()
            text = f"{text} May be repeated; @FILE has one on each line."
        case _:
            pass
    return click.Option(
        [flag(param["name"])],
        type=kind,
        multiple=isinstance(kind, Values),
        required=param["required"],
        metavar=None if isinstance(kind, click.Choice) else param["name"].rpartition("_")[2].upper(),
        help=text,
    )


def _call_options(endpoint: dict[str, Any]) -> list[click.Option]:
    """Options that a call takes as arguments."""
    own = [_own_option(param) for param in endpoint["params"]]
    own.append(
        click.Option(
            ["--chain"], metavar="NAME", help="Short name of the chain, instead of --main-chain or --zone-chain."
        )
    )
    if endpoint["page_size_max"]:
        max_page_size = endpoint["page_size_max"]
        own.append(
            click.Option(["--page-size"], type=int, metavar="N", help=f"Records per page. Default: {max_page_size}.")
        )
        own.append(click.Option(["--max-items"], type=int, metavar="N", help="Maximum number of records."))
    if any(_selects(endpoint)):
        text = "With several values of an option: write each record once, though several of their lists have it."
        own.append(click.Option(["--unique"], is_flag=True, default=None, help=text))
    return own


def _selects(endpoint: dict[str, Any]) -> list[bool]:
    return [param["selects list"] for param in endpoint["params"]]


def _command(endpoint: dict[str, Any]) -> click.Command:
    own = _call_options(endpoint)
    fields = [field["name"] for field in record_of(endpoint["name"])["fields"]]
    result = result_options(fields + [QUERIED] * any(_selects(endpoint)))
    can_follow = endpoint["page_size_max"] and height_column(fields) is not None
    follows = FOLLOWING if can_follow else []
    call = _Call(endpoint["name"], _names(own), _names(result), _names(follows))
    help_text = endpoint["doc"].replace("`", "")
    return click.Command(
        endpoint["name"].replace("_", "-"),
        callback=call.run,
        help=help_text,
        # The first clause fits one line of the list of commands.
        short_help=re.split("[.,;]", help_text)[0] + ".",
        params=[*own, *result, *follows, *SETTINGS],
    )


def _names(options: Sequence[click.Option]) -> list[str]:
    # `--resume` and `--overwrite` are options of the same name as `--mode`.
    return list(dict.fromkeys(str(option.name) for option in options))


@dataclass
class _Progress:
    """State of a command that an error or a signal may end."""

    target: Destination | None = None
    report: Report | None = None
    """Report of the run, once its output is written."""


@dataclass(frozen=True)
class _Call:
    """A call as a command: the name of the method, and the names of the options of each part."""

    name: str
    arguments: Sequence[str]
    output: Sequence[str]
    follows: Sequence[str]

    def run(self, **given: Any) -> int:  # noqa: ANN401 - click's
        """Run the command; returns its exit code."""
        progress = _Progress()
        try:
            with sigterm_as_exception():
                return self._write(given, progress)
        except BrokenPipeError:
            codes.give_up_output()
            return codes.BROKEN_PIPE
        except (KeyboardInterrupt, Terminated) as error:
            if progress.report is not None:
                # The output is written: there is nothing left to interrupt.
                return _code(progress.report)
            terminated = isinstance(error, Terminated)
            echo_error(f"{'terminated' if terminated else 'interrupted'}{_saved(progress.target)}")
            return codes.TERMINATED if terminated else codes.INTERRUPTED
        except (ChainframeError, ModuleNotFoundError, OSError) as error:
            echo_failure(error, _advice(error, progress.target))
            if isinstance(error, IncompleteResultError) and error.report is not None:
                _print_refusals(error.report)
            return exit_code(error)

    def _write(self, given: dict[str, Any], progress: _Progress) -> int:
        arguments = {name: _given(given.pop(name)) for name in self.arguments}
        output = {name: given.pop(name) for name in self.output}
        follows = {name: given.pop(name) for name in self.follows}
        target = progress.target = _destination(follows, output)
        with client(given, streams_to_terminal=target.streams_to_terminal()) as opened, stats(opened, given):
            query = self._query(opened, arguments)
            if output["dry_run"]:
                limited = _estimate(query)
                return codes.INCOMPLETE if limited and given["strict"] else 0
            progress.report, written = target.run(query, opened)
        _print_report(progress.report)
        if written and sys.stderr is not None and sys.stderr.isatty():
            echo_error(written)
        return _code(progress.report)

    def _query(self, opened: Client, arguments: dict[str, Any]) -> Query[Any]:
        """Make the query. An error about a value of a file names its line there."""
        try:
            query: Query[Any] = getattr(opened, self.name)(**arguments)
        except InvalidParameterError as error:
            found = INDEXED.match(str(error))
            value = arguments[found[1]][int(found[2])] if found else None
            if found and isinstance(value, Line):
                text = in_shell(error).replace(f"[{found[2]}]", f": {value.place}", 1)
                error._set_shell_text(text)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            raise
        return query


def _destination(follows: dict[str, Any], output: dict[str, Any]) -> Destination:
    """Select the destination by the options; `follows` is empty for calls that cannot be followed."""
    for name, value in {**output, **follows}.items():
        if not value and isinstance(value, str):
            # A variable of the shell that is not set. If the option were ignored, another command would run.
            raise InvalidParameterError(f"{flag(name)} must not be empty; omit it, or pass a value")
    if follows:
        found = sync.syncing(follows, output, follow=follows["follow"]) or follow.following(follows, output)
        if found is not None:
            return found
    return destination(OutputOptions(**{name: value for name, value in output.items() if name != "dry_run"}))


def _estimate(query: Query[Any]) -> bool:
    """Prints the estimated cost of a run; True if the result would be incomplete."""
    estimate = query.estimate()
    echo(repr(query).strip("<>"))
    for name, text in estimate._facts():  # noqa: SLF001 - of this package
        echo(f"{name}: {text}")
    for limitation in estimate._limitations_in_shell():  # noqa: SLF001 - of this package
        echo(limitation)
    return bool(estimate.limitations)


def _code(report: Report) -> int:
    return 0 if report.complete else codes.INCOMPLETE


def _print_report(report: Report) -> None:
    for reason in report._reasons_in_shell() + report._remarks_in_shell():  # noqa: SLF001 - of this package
        echo_error(reason)
    _print_refusals(report)
    if report.missing:
        more = f" and {counted(len(report.missing) - SHOWN, 'other')}" if len(report.missing) > SHOWN else ""
        echo_error(f"not returned: {', '.join(report.missing[:SHOWN])}{more}")


def _print_refusals(report: Report) -> None:
    """Prints the errors of the arguments whose lists could not be read."""
    errors = {value: verdict["error"] for value, verdict in report.by_argument.items() if verdict["error"]}
    for value in list(errors)[:SHOWN]:
        echo_error(f"{value}: {errors[value]}")
    if len(errors) > SHOWN:
        echo_error(f"and {counted(len(errors) - SHOWN, 'other value')}")


def _advice(error: Exception, target: Destination | None) -> str:
    can_resume = not isinstance(error, NON_RESUMABLE) and target is not None and target.saved()
    saved = _saved(target) if can_resume else ""
    is_of_network = isinstance(error, TransportError)
    return f"; run chainframe doctor to diagnose the connection{saved}" if is_of_network else saved


def _saved(target: Destination | None) -> str:
    saved = target.saved() if target else None
    if saved is None:
        return ""
    return f"; {counted(saved, 'record')} saved; rerun with --resume to continue" if saved else "; no records saved"


for _endpoint in ENDPOINTS.values():
    app.add_command(_command(_endpoint))
for _tool in TOOLS:
    app.add_command(_tool)
for _name, _help in core.COMMANDS.items():
    app.add_command(_Core(_name, short_help=_help, add_help_option=False))
