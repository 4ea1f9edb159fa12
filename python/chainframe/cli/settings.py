"""The options that say how to ask: those settings of `Client` that are no secrets, and a deployment's words."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import click
from click.core import ParameterSource

from chainframe import Client, Deployment
from chainframe.testing import Cassette


class _Number(click.ParamType[Any]):
    """A number, or one of the words that a setting takes instead."""

    name = "number"

    def __init__(self, **words: Any) -> None:  # noqa: ANN401 - what a word stands for
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        if not isinstance(value, str):
            return value
        if value in self.words:
            return self.words[value]
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {' nor '.join(self.words)}", param, ctx)


TEXT, WHOLE, SECONDS = click.STRING, click.INT, click.FLOAT
_CLIENT: dict[str, tuple[click.ParamType[Any], str]] = {
    "base_url": (TEXT, "Where the service is, instead of CHAINFRAME_BASE_URL."),
    "main_chain": (TEXT, "Short name of the main chain, instead of CHAINFRAME_MAIN_CHAIN."),
    "zone_chain": (TEXT, "Short name of the zone chain, instead of CHAINFRAME_ZONE_CHAIN."),
    "timeout": (SECONDS, "Seconds for one attempt."),
    "deadline": (_Number(none=None), "Seconds for one request with its retries, or none."),
    "max_retries": (WHOLE, "Further attempts after a failure that may pass."),
    "rate_limit": (_Number(auto="auto", none=None), "Requests a second, auto or none."),
    "concurrency": (WHOLE, "Requests in flight."),
    "max_body": (WHOLE, "Bytes that an answer may have."),
    "proxy": (TEXT, "URL of a proxy."),
    "ca_bundle": (TEXT, "PEM file of certificates to trust."),
    "strict": (click.BOOL, "An incomplete result is an error; nothing is given out that was not shown to be complete."),
    "progress": (click.BOOL, "Show a bar, or none; on a terminal only, if not said."),
}
METAVARS = {
    "timeout": "SECONDS",
    "deadline": "SECONDS",
    "max_retries": "N",
    "rate_limit": "RATE",
    "concurrency": "N",
    "max_body": "BYTES",
    "ca_bundle": "FILE",
}
_WORDS: dict[str, tuple[click.ParamType[Any], str]] = {
    "header_prefix": (TEXT, "The service's word in header names."),
    "main": (TEXT, "The service's word for the main chain in paths."),
    "zone": (TEXT, "The service's word for the zone chain in paths."),
    "prehash": (TEXT, "What the service wants signed."),
    "signature_encoding": (click.Choice(["base64", "hex"]), "How a signature is written."),
}


def _option(name: str, kind: click.ParamType[Any], text: str, default: object) -> click.Option:
    if kind is click.BOOL:
        off = "" if default is False else f"/--no-{name}"
        return click.Option([f"--{name}{off}"], is_flag=True, default=None, help=text)
    if default is not None:
        text = f"{text[:-1]} ({default})."
    metavar = None if isinstance(kind, click.Choice) else METAVARS.get(name, name.rpartition("_")[2].upper())
    return click.Option([f"--{name.replace('_', '-')}"], type=kind, metavar=metavar, help=text)


def _options() -> list[click.Option]:
    """Defaults stay where they are declared: what is not given is not passed on."""
    return [
        _option(name, kind, text, inspect.signature(owner).parameters[name].default)
        for owner, table in ((Client, _CLIENT), (Deployment, _WORDS))
        for name, (kind, text) in table.items()
    ]


_CASSETTE: dict[str, tuple[Literal["all", "none"], str]] = {
    "record": ("all", "Keep the service's answers in this file."),
    "replay": ("none", "Answer from this file, and ask no service."),
}
SETTINGS = [
    *_options(),
    *(click.Option([f"--{name}"], metavar="FILE", help=text) for name, (_, text) in _CASSETTE.items()),
]


def client(given: dict[str, Any]) -> Client:
    """A client of the options that were given."""
    context = click.get_current_context()
    said = {name for name in given if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    words = {name: given[name] for name in _WORDS if name in said}
    settings = {name: given[name] for name in _CLIENT if name in said}
    cassettes = [Cassette(given[name], mode) for name, (mode, _) in _CASSETTE.items() if name in said]
    if len(cassettes) > 1:
        raise click.UsageError("--record and --replay exclude each other")
    if cassettes:
        settings["cassette"] = cassettes[0]
    return Client(deployment=Deployment(**words), **settings)
