"""Commands that need no extra: `serve`, `doctor`, `cassette`, `cache` and `--version`."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import threading
from dataclasses import asdict
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from chainframe import (
    ChainframeError,
    Client,
    ConfigError,
    Deployment,
    TransportError,
    __version__,
    doctor,
)
from chainframe._arguments import similar
from chainframe._deployments import of_environment
from chainframe._native import _openapi as openapi_json
from chainframe._paths import is_there, local_path
from chainframe._text import shown
from chainframe.cli import cache
from chainframe.cli.codes import FAILED, INTERRUPTED, NETWORK, USAGE
from chainframe.errors.base import in_shell
from chainframe.testing import Cassette, LocalService
from chainframe.testing._drift import ERROR, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COMMANDS = {
    "serve": "Run the local server until interrupted.",
    "doctor": "Diagnose configuration and connectivity.",
    "cassette": "Show what a cassette has recorded, or compare it with the service.",
    "cache": cache.HELP,
    "openapi": "Print the OpenAPI document of the API.",
}


def _within(low: int, high: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be between {low} and {high}; got {text}")
        return int(text)

    return integer


def _load(text: str) -> tuple[str, str]:
    call, equals, file = text.partition("=")
    if not (call and equals and file):
        raise argparse.ArgumentTypeError(f"must be CALL=FILE; got {text}")
    return call, file


_RATE: dict[str, Any] = {"type": float, "metavar": "RATE"}
_DELAY: dict[str, Any] = {"type": float, "nargs": 2, "metavar": ("SHARE", "HEIGHTS")}
_SEVERAL: dict[str, Any] = {"action": "append", "default": []}
SERVICE: dict[str, tuple[str, dict[str, Any]]] = {
    "port": ("port; 0 selects a free one (default: %(default)s)", {"type": _within(0, 65_535), "default": 0}),
    "transactions": (
        "number of transactions (default: %(default)s)",
        {"type": _within(0, 10_000_000), "default": 10_000, "metavar": "N"},
    ),
    "seed": (
        "seed of the synthetic data (default: %(default)s)",
        {"type": _within(0, 2**64 - 1), "default": 7, "metavar": "N"},
    ),
    "db": ("SQLite file that keeps the data (default: in memory)", {"metavar": "FILE"}),
    "load": (
        "records for a call, such as blocks=blocks.parquet (or .jsonl, .json); may be repeated",
        {**_SEVERAL, "type": _load, "metavar": "CALL=FILE"},
    ),
    "cassette": ("cassette to serve responses from; may be repeated", {**_SEVERAL, "metavar": "FILE"}),
    "compression": ("compress responses to requests that accept it (default: never)", {"choices": ("gzip",)}),
    "rate_limit": ("allowed requests per second (default: unlimited)", _RATE),
    "quirk": (
        "quirk of deployed services, such as ties_reordered, or filter_ignored=NAME; may be repeated",
        {**_SEVERAL, "metavar": "NAME"},
    ),
    "growth_rate": ("records per second by which lists grow (default: none)", _RATE),
    "reorg": (
        "replace the newest M heights of both chains after every N-th request for a list (default: never)",
        {"type": _within(1, 1_000_000), "nargs": 2, "metavar": ("N", "M")},
    ),
    "late": ("list this share of new records HEIGHTS heights later (default: none)", _DELAY),
    "pending": ("keep this share of new transactions pending for HEIGHTS heights (default: none)", _DELAY),
    "growth": (
        "records by which lists grow after a request (default: %(default)s)",
        {"type": _within(0, 1_000), "default": 0, "metavar": "N"},
    ),
    "max_result_window": (
        "records to which a main-chain list can be paged (default: --result-window)",
        {"type": _within(1, 10_000_000), "metavar": "N"},
    ),
}
"""Options of `serve` beside those of chains and the deployment: the help of each, and what it has beside it."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(_unrecognized(unknown, sys.argv[1:] if arguments is None else arguments))
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except (ChainframeError, OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.filename is None:
            # An error of standard output, not of a file.
            raise
        _print_error(error)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _unrecognized(unknown: Sequence[str], arguments: Sequence[str]) -> str:
    command = [word for word in takewhile(lambda word: not word.startswith("-"), arguments) if word not in unknown]
    known = [option for option in words_after(command) if option.startswith("--") and option != "--help"]
    advice = similar(unknown[0], known) or f"; {' '.join(command) or 'chainframe'} has {', '.join(known)}"
    return f"unrecognized arguments: {' '.join(unknown)}{advice}"


def _print(text: str) -> None:
    """Prints a line with texts of others."""
    print(shown(text, sys.stdout))


def _print_error(error: Exception) -> None:
    text = in_shell(error) if isinstance(error, ChainframeError) else str(error)
    print(shown(f"chainframe: {text}", sys.stderr), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="chainframe", description="On-chain data: every record exactly once.")
    parser.add_argument("--version", action="version", version=f"chainframe {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add_to in (_add_serve, _add_doctor, cache.add_to, _add_cassette, _add_openapi):
        add_to(commands)
    return parser


def _add_serve(commands: Any) -> None:  # noqa: ANN401 - its class has no public name
    description = "Serve the whole API on loopback with synthetic data and credentials."
    serve = commands.add_parser("serve", help=COMMANDS["serve"], description=description)
    serve.set_defaults(run=_serve)
    for name, (text, given) in SERVICE.items():
        serve.add_argument(flag(name), help=text, **given)
    _add_chain_options(serve)
    _add_deployment_options(serve)


def _add_doctor(commands: Any) -> None:  # noqa: ANN401 - as above
    diagnose = commands.add_parser(
        "doctor",
        help=COMMANDS["doctor"],
        description="Check settings, proxy, DNS, connection, TLS, clock and signature, and send a signed request to "
        "each chain. Secrets are not shown. Exit codes: 0 ok, 2 settings, 3 authentication, 4 rate limit, 5 network or "
        "service, 9 network or service, and another try is not expected to help.",
    )
    diagnose.set_defaults(run=_doctor)
    for name in doctor.SETTINGS:
        diagnose.add_argument(flag(name), help=f"instead of CHAINFRAME_{name.upper()}")
    diagnose.add_argument("--proxy", help="proxy URL (default: from the environment)")
    diagnose.add_argument("--ca-bundle", help="PEM file with certificates to trust (default: REQUESTS_CA_BUNDLE)")
    diagnose.add_argument("--json", action="store_true", help="print one JSON object per line")
    _add_deployment_options(diagnose)


def _add_cassette(commands: Any) -> None:  # noqa: ANN401 - as above
    cassette = commands.add_parser("cassette", help=COMMANDS["cassette"], description=COMMANDS["cassette"])
    actions = cassette.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="list the interactions", description="List the interactions of a cassette.")
    show.set_defaults(run=_show_cassette)
    show.add_argument("file", metavar="FILE", help="the cassette")
    show.add_argument("--json", action="store_true", help="print one JSON object per line")
    show.add_argument("--body", action="store_true", help="print the bodies as well")
    show.add_argument("--only", type=_within(1, 2**31), metavar="N", help="print interaction N alone")
    diff = actions.add_parser(
        "diff",
        help="compare with the service",
        description="Send the recorded requests again, each once, and list members that are new, gone or of another "
        "kind, and other codes. Settings come from the environment. Exit code 1 for another kind or "
        "code.",
    )
    diff.set_defaults(run=_diff_cassette)
    diff.add_argument("file", metavar="FILE", help="the cassette")
    _add_deployment_options(diff)


def _add_openapi(commands: Any) -> None:  # noqa: ANN401 - as above
    describe = commands.add_parser("openapi", help=COMMANDS["openapi"], description=COMMANDS["openapi"])
    describe.set_defaults(run=_openapi)
    describe.add_argument("--base-url", default="/", metavar="URL", help="URL of the API (default: %(default)s)")
    _add_chain_options(describe)
    _add_deployment_options(describe)


def words_after(words: Sequence[str]) -> dict[str, str]:
    """Return the options and commands that may follow words of a command line, each with its help."""
    parser = _parser()
    for word in words:
        # Only subcommands have parsers as choices; their class has no public name.
        choices = (action.choices for action in parser._actions if isinstance(action.choices, dict))  # noqa: SLF001
        parser = next((commands[word] for commands in choices if word in commands), parser)
    actions = parser._actions  # noqa: SLF001
    if words and (last := next((action for action in actions if words[-1] in action.option_strings), None)):
        return dict.fromkeys(map(str, last.choices or ()), "") if last.nargs != 0 else words_after(words[:-1])
    found = {flag: action.help or "" for action in actions for flag in action.option_strings}
    return found | {str(word): "" for action in actions if not action.option_strings for word in action.choices or ()}


def flag(name: str) -> str:
    """Return the option of an argument."""
    return f"--{name.replace('_', '-')}"


def _add_chain_options(parser: argparse.ArgumentParser) -> None:
    for chain, name in (("main", "MAIN"), ("zone", "ZONE_CHAIN")):
        parser.add_argument(
            f"--{chain}-chain",
            default=name,
            metavar="NAME",
            help=f"short name of the {chain} chain (default: %(default)s)",
        )


DEPLOYMENT: dict[str, tuple[str, dict[str, Any]]] = {
    "header_prefix": ("header name prefix", {}),
    "main": ("path segment of the main chain", {}),
    "zone": ("path segment of the zone chain", {}),
    "prehash": ("template of the signed string", {}),
    "signature_encoding": ("encoding of the signature", {"choices": ("base64", "hex")}),
    "result_window": ("records to which a list can be paged", {"type": int, "metavar": "N"}),
    "log_window": ("logs that one response holds", {"type": int, "metavar": "N"}),
    "max_page_size": ("records of the largest page of every list", {"type": int, "metavar": "N"}),
    "signed": ("sign requests, or send the key alone", {"action": argparse.BooleanOptionalAction}),
}
"""Help of each argument of `Deployment`, and what the option has beside it."""


def _add_deployment_options(parser: argparse.ArgumentParser) -> None:
    defaults = Deployment()
    for name, (text, given) in DEPLOYMENT.items():
        default = getattr(defaults, name)
        shown = "of each list" if default is None else "yes" if default is True else default
        shown = f"{text} (default: {shown}, or of CHAINFRAME_DEPLOYMENT)"
        parser.add_argument(flag(name), default=None, help=shown.replace("%", "%%"), **given)


def _deployment(options: argparse.Namespace) -> Deployment:
    given = {name: getattr(options, name) for name in DEPLOYMENT}
    return of_environment(**{name: value for name, value in given.items() if value is not None})


def _show_cassette(options: argparse.Namespace) -> int:
    file = local_path(options.file, "FILE")
    if not is_there(file):
        raise ConfigError(f"{file} does not exist")
    interactions = Cassette(file, mode="none").interactions
    if options.only is not None and options.only > len(interactions):
        raise ConfigError(f"--only must be at most {len(interactions)}, the number of interactions; got {options.only}")
    for number, interaction in enumerate(interactions, 1):
        if options.only not in {None, number}:
            continue
        recorded = {name: value for name, value in interaction.items() if name != "played"}
        body = None if options.body and options.json else recorded.pop("body")
        if options.json:
            _print(json.dumps(recorded))
            continue
        query = "&".join(f"{name}={value}" for name, value in recorded["params"].items())
        outcome = recorded["status"] or recorded["error"]
        if recorded["note"]:
            _print(f"# {recorded['note']}")
        _print(f"{number:>4}  {outcome:<8} {recorded['bytes']:>9}  {recorded['method']} {recorded['path']}?{query}")
        if options.body and body is not None:
            for line in _indented(body).splitlines():
                _print(line)
    return 0


def _indented(body: str) -> str:
    """Return JSON with a line for each member, any other text as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


def _diff_cassette(options: argparse.Namespace) -> int:
    with Client(deployment=_deployment(options)) as client:
        try:
            findings = compare(local_path(options.file, "FILE"), client)
        except TransportError as error:
            _print_error(error)
            return NETWORK
    for finding in findings:
        _print(str(finding))
    return FAILED if any(finding.severity == ERROR for finding in findings) else 0


def _openapi(options: argparse.Namespace) -> int:
    document = openapi_json(_deployment(options), options.main_chain, options.zone_chain, options.base_url)
    print(json.dumps(json.loads(document), indent=2))
    return 0


def _delay(given: list[float] | None) -> tuple[float, Any] | None:
    """Return a share and a number of heights, which LocalService checks."""
    return (given[0], int(given[1]) if given[1].is_integer() else given[1]) if given else None


def _quirk(text: str) -> dict[str, str]:
    """Return a quirk, which LocalService checks."""
    kind, equals, name = text.partition("=")
    return {"kind": kind, "filter": name} if equals else {"kind": kind}


def _serve(options: argparse.Namespace) -> int:
    service = (
        *("port", "transactions", "seed", "db", "compression", "rate_limit", "growth", "growth_rate"),
        *("max_result_window", "main_chain", "zone_chain"),
    )
    reorg = tuple(options.reorg) if options.reorg else None
    late, pending = (_delay(given) for given in (options.late, options.pending))
    deployment = _deployment(options)
    # SIGTERM is the regular way to stop a server; only Ctrl-C has an exit code of its own.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    # A shell lets background jobs ignore SIGINT; kill -INT is to stop this one as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given = {name: getattr(options, name) for name in service}
    quirks: Any = [_quirk(name) for name in options.quirk]
    with LocalService(
        deployment=deployment, quirks=quirks, reorg=reorg, late=late, pending=pending, **given
    ) as running:
        for call, file in options.load:
            running.load(call, file)
        for file in options.cassette:
            running.load_cassette(file)
        for name, value in running.env.items():
            if name != "CHAINFRAME_DEPLOYMENT" or running.deployment != Deployment():
                print(f"export {name}={shlex.quote(value)}")
        print(f"# serving at {running.url}; stop with Ctrl-C", flush=True)
        # A signal that the system delivers to another thread does not end a wait without timeout.
        while not threading.Event().wait(timeout=0.5):
            pass
    return 0


def _doctor(options: argparse.Namespace) -> int:
    code = 0
    for result in _results(options):
        text = json.dumps(asdict(result)) if options.json else f"{result.status:5}{result.check:13}{result.text}"
        # Not by a flush of standard output, which may be closed.
        print(shown(text, sys.stdout), flush=True)
        code = max(code, result.code, key=doctor.CODES.index)
    return code


def _results(options: argparse.Namespace) -> Iterator[doctor.CheckResult]:
    try:
        deployment = _deployment(options)
    except ChainframeError as error:
        yield doctor.CheckResult("settings", "fail", in_shell(error), USAGE)
        return
    given = {name: value for name in doctor.SETTINGS if (value := getattr(options, name)) is not None}
    yield from doctor.run_checks(deployment=deployment, proxy=options.proxy, ca_bundle=options.ca_bundle, given=given)
