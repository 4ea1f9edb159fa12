"""What the command does without any extra: `serve` and `--version`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING

from chainframe import CassetteError, ConfigError, Deployment, __version__, doctor
from chainframe.cli.codes import INTERRUPTED, USAGE
from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = {
    "serve": "Run the local service until interrupted.",
    "doctor": "Find what stands between this machine and an answer.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except (CassetteError, ConfigError, OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.filename is None:
            # Of standard output, not of a file that was named.
            raise
        print(f"chainframe: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="chainframe", description="On-chain data, complete and exact.")
    parser.add_argument("--version", action="version", version=f"chainframe {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help=COMMANDS["serve"],
        description="Serve the whole interface on loopback from made-up data, with made-up credentials.",
    )
    serve.set_defaults(run=_serve)
    serve.add_argument("--port", type=_within(0, 65_535), default=0, help="port; 0, the default, takes a free one")
    serve.add_argument(
        "--transactions", type=_within(0, 10_000_000), default=10_000, help="how many there are (%(default)s)"
    )
    serve.add_argument(
        "--seed", type=_within(0, 2**64 - 1), default=7, help="which data: the same seed gives the same (%(default)s)"
    )
    serve.add_argument("--db", help="file of the database, kept for the next time; in memory without")
    serve.add_argument(
        "--load",
        type=_load,
        action="append",
        default=[],
        metavar="CALL=FILE",
        help="your own records for that call, such as blocks=blocks.parquet (or .jsonl, .json); may be repeated",
    )
    serve.add_argument(
        "--answers", action="append", default=[], metavar="FILE", help="a cassette to answer from; may be repeated"
    )
    serve.add_argument("--rate-limit", type=float, help="requests a second that are allowed; any number without")
    serve.add_argument("--growth-rate", type=float, help="records that lists grow by a second; none without")
    serve.add_argument(
        "--reorg",
        type=_within(1, 1_000_000),
        nargs=2,
        metavar=("N", "M"),
        help="after every N-th request for a list, its newest M records are replaced; never without",
    )
    serve.add_argument(
        "--growth", type=_within(0, 1_000), default=0, help="records that lists grow by after a request (%(default)s)"
    )
    serve.add_argument(
        "--reach",
        type=_within(1, 10_000_000),
        default=10_000,
        help="records of a main-chain list in reach (%(default)s)",
    )
    serve.add_argument("--main-chain", default="MAIN", help="short name of the main chain (%(default)s)")
    serve.add_argument("--zone-chain", default="ZONE_CHAIN", help="short name of the zone chain (%(default)s)")
    _add_words(serve)
    diagnose = commands.add_parser(
        "doctor",
        help=COMMANDS["doctor"],
        description="Look at settings, proxy, name, connection, TLS, clock and signature, and send one signed request. "
        "No secret is shown. Exit codes: 0 well, 2 settings, 3 authentication, 4 rate limit, 5 network or service.",
    )
    diagnose.set_defaults(run=_doctor)
    for name in doctor.SETTINGS:
        flag, variable = f"--{name.replace('_', '-')}", f"CHAINFRAME_{name.upper()}"
        diagnose.add_argument(flag, help=f"instead of {variable}")
    diagnose.add_argument("--proxy", help="URL of a proxy; the environment's without")
    diagnose.add_argument("--ca-bundle", help="PEM file of certificates to trust; REQUESTS_CA_BUNDLE without")
    diagnose.add_argument("--json", action="store_true", help="one JSON object a line")
    _add_words(diagnose)
    return parser


WORDS = ("header_prefix", "main", "zone", "prehash", "signature_encoding")


def _add_words(parser: argparse.ArgumentParser) -> None:
    words = Deployment()
    parser.add_argument("--header-prefix", default=words.header_prefix, help="its word in header names (%(default)s)")
    parser.add_argument("--main", default=words.main, help="its word for the main chain in paths (%(default)s)")
    parser.add_argument("--zone", default=words.zone, help="its word for the zone chain in paths (%(default)s)")
    parser.add_argument("--prehash", default=words.prehash, help="what it signs (%(default)s)")
    parser.add_argument(
        "--signature-encoding",
        default=words.signature_encoding,
        choices=("base64", "hex"),
        help="how it writes a signature (%(default)s)",
    )


def _deployment(options: argparse.Namespace) -> Deployment:
    return Deployment(**{word: getattr(options, word) for word in WORDS})


def _within(least: int, most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not within {least} to {most}")
        return int(text)

    return whole


def _load(text: str) -> tuple[str, str]:
    call, equals, file = text.partition("=")
    if not (call and equals and file):
        raise argparse.ArgumentTypeError(f"{text} is not CALL=FILE")
    return call, file


def _serve(options: argparse.Namespace) -> int:
    service = (
        *("port", "transactions", "seed", "db", "rate_limit", "growth", "growth_rate", "reach"),
        *("main_chain", "zone_chain"),
    )
    reorg = tuple(options.reorg) if options.reorg else None
    deployment = _deployment(options)
    # Stopping a service is no failure; only Ctrl-C has an exit code of its own.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    # A shell that starts it in the background has it ignore Ctrl-C, and then nothing but SIGTERM would stop it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given = {name: getattr(options, name) for name in service}
    with LocalService(deployment=deployment, reorg=reorg, **given) as running:
        for call, file in options.load:
            running.load(call, file)
        for file in options.answers:
            running.load_answers(file)
        print(f"export CHAINFRAME_BASE_URL={running.url}")
        print(f"export CHAINFRAME_API_KEY={running.api_key}")
        print(f"export CHAINFRAME_SECRET_KEY={running.secret_key}")
        print(f"export CHAINFRAME_PASSPHRASE={running.passphrase}")
        print(f"export CHAINFRAME_MAIN_CHAIN={running.main_chain}")
        print(f"export CHAINFRAME_ZONE_CHAIN={running.zone_chain}")
        if deployment != Deployment():
            print(f"# in Python: Client(deployment={deployment!r})")
        print(f"# serving at {running.url}; stop with Ctrl-C", flush=True)
        # A signal that another thread receives does not wake this one.
        while not threading.Event().wait(timeout=0.5):
            pass
    return 0


def _doctor(options: argparse.Namespace) -> int:
    deployment, code = _deployment(options), 0
    given = {name: value for name in doctor.SETTINGS if (value := getattr(options, name)) is not None}
    findings = doctor.examine(deployment=deployment, proxy=options.proxy, ca_bundle=options.ca_bundle, given=given)
    for finding in findings:
        text = json.dumps(asdict(finding)) if options.json else f"{finding.status:5}{finding.check:11}{finding.text}"
        print(text, flush=True)
        code = code or finding.code
    return code
