"""Options for the settings of `Client` and `Deployment`, except secrets."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import click
from click.core import ParameterSource

from chainframe import Client, Deployment
from chainframe._checks import short
from chainframe._deployments import of_environment
from chainframe._paths import cassette_path
from chainframe.testing import Cassette


class Number(click.ParamType[Any]):
    """A number, or a keyword with its own value."""

    name = "number"

    def __init__(self, read: type[float] = float, **keywords: Any) -> None:  # noqa: ANN401 - values of the keywords
        self.read = read
        self.keywords = keywords

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        if not isinstance(value, str):
            return value
        if value in self.keywords:
            return self.keywords[value]
        try:
            return self.read(value)
        except ValueError:
            kind = "a number" if self.read is float else "an integer"
            self.fail(f"must be {kind} or {' or '.join(self.keywords)}; got {short(value)}", param, ctx)


STRING = click.STRING
INTEGER = click.INT
FLOAT = click.FLOAT
_CLIENT: dict[str, tuple[click.ParamType[Any], str, str]] = {
    "base_url": (STRING, "URL", "API base URL, instead of CHAINFRAME_BASE_URL."),
    "main_chain": (STRING, "CHAIN", "Short name of the main chain, instead of CHAINFRAME_MAIN_CHAIN."),
    "zone_chain": (STRING, "CHAIN", "Short name of the zone chain, instead of CHAINFRAME_ZONE_CHAIN."),
    "timeout": (FLOAT, "SECONDS", "Timeout of one attempt in seconds."),
    "deadline": (Number(none=None), "SECONDS", "Timeout of one request with all retries in seconds, or none."),
    "max_retries": (INTEGER, "N", "Maximum retries for transient failures."),
    "rate_limit": (Number(auto="auto", none=None), "RATE", "Requests per second, auto or none."),
    "max_requests": (INTEGER, "N", "Maximum requests, with retries; the next one ends the run with exit code 6."),
    "concurrency": (Number(int, auto="auto"), "N", "Maximum requests in flight, or auto."),
    "max_response_bytes": (INTEGER, "BYTES", "Maximum size of a response body in bytes."),
    "proxy": (STRING, "PROXY", "Proxy URL."),
    "ca_bundle": (STRING, "FILE", "PEM file with certificates to trust."),
    "strict": (click.BOOL, "", "Fail if the result is incomplete; no output file is written."),
    "progress": (click.BOOL, "", "Show a progress bar, or none. Default: on a terminal only."),
}
_DEPLOYMENT: dict[str, tuple[click.ParamType[Any], str, str]] = {
    "header_prefix": (STRING, "PREFIX", "Prefix of the API's header names."),
    "main": (STRING, "MAIN", "Path segment of the main chain."),
    "zone": (STRING, "ZONE", "Path segment of the zone chain."),
    "prehash": (STRING, "PREHASH", "Template of the string that is signed."),
    "signature_encoding": (click.Choice(["base64", "hex"]), "", "Encoding of the signature."),
    "result_window": (INTEGER, "N", "Most records that a list can be paged to."),
    "log_window": (INTEGER, "N", "Most logs that one response holds."),
    "max_page_size": (INTEGER, "N", "Records of the largest page of every list."),
    "signed": (click.BOOL, "", "Sign requests, or send the key alone."),
}


def _option(name: str, kind: click.ParamType[Any], metavar: str, text: str, default: object) -> click.Option:
    if kind is click.BOOL:
        off = "" if default is False else f"/--no-{name}"
        return click.Option([f"--{name}{off}"], is_flag=True, default=None, help=text)
    if default is not None:
        text = f"{text[:-1]} ({default})."
    return click.Option([f"--{name.replace('_', '-')}"], type=kind, metavar=metavar or None, help=text)


def _options() -> list[click.Option]:
    """Options without defaults: an option that is not given is not passed, so defaults are declared once."""
    return [
        _option(name, kind, metavar, text, inspect.signature(owner).parameters[name].default)
        for owner, table in ((Client, _CLIENT), (Deployment, _DEPLOYMENT))
        for name, (kind, metavar, text) in table.items()
    ]


_CASSETTE: dict[str, tuple[Literal["all", "none"], str]] = {
    "record": ("all", "Record responses in this cassette."),
    "replay": ("none", "Replay responses from this cassette; send nothing."),
}
SETTINGS = [
    *_options(),
    click.Option(["--stats"], is_flag=True, help="Print the requests that were sent, on standard error."),
    *(click.Option([f"--{name}"], metavar="FILE", help=text) for name, (_, text) in _CASSETTE.items()),
]


def client(given: dict[str, Any], *, streams_to_terminal: bool) -> Client:
    """Creates a client from the options that were given."""
    context = click.get_current_context()
    passed = {name for name in given if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    deployment = {name: given[name] for name in _DEPLOYMENT if name in passed}
    settings = {name: given[name] for name in _CLIENT if name in passed}
    if streams_to_terminal:
        settings.setdefault("progress", False)
    named = [name for name in _CASSETTE if name in passed]
    cassettes = [Cassette(cassette_path(given[name], name), _CASSETTE[name][0]) for name in named]
    if len(cassettes) > 1:
        raise click.UsageError("--record and --replay cannot be combined")
    if cassettes:
        settings["cassette"] = cassettes[0]
    return Client(deployment=of_environment(**deployment), **settings)
