"""`chainframe cache`: what a cache keeps, and its removal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from chainframe import Cache, ConfigError, _native
from chainframe._paths import is_there, local_path
from chainframe._text import counted, shown

if TYPE_CHECKING:
    import argparse

HELP = "List or remove the results that a cache keeps."


def add_to(commands: Any) -> None:  # noqa: ANN401 - of argparse, without a public name
    cache = commands.add_parser("cache", help=HELP, description=HELP)
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (("list", _list, "list the results"), ("clear", _clear, "remove all results")):
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        action.set_defaults(run=run)
        action.add_argument("--directory", metavar="DIR", help="directory of the cache (default: CHAINFRAME_CACHE)")
        if name == "list":
            action.add_argument("--json", action="store_true", help="print a JSON object for each result")


def _cache(options: argparse.Namespace) -> Cache:
    if options.directory is None:
        cache = _native._environment_cache()  # noqa: SLF001 - of this package
        if cache is None:
            raise ConfigError("no cache: pass --directory or set CHAINFRAME_CACHE")
        return cache
    directory = local_path(options.directory, "directory")
    if not is_there(directory) or not directory.is_dir():
        raise ConfigError(f"{directory} does not exist; name the directory that Client(cache=...) uses")
    return Cache(directory)


def _list(options: argparse.Namespace) -> int:
    for entry in _cache(options).entries():
        times = {name: f"{entry[name]:%Y-%m-%dT%H:%M:%SZ}" for name in ("read_at", "used_at")}
        if options.json:
            print(json.dumps(entry | times))
            continue
        query = entry["query"]
        arguments = "".join(f" {name}={value}" for name, value in _arguments(query).items())
        size = f"{entry['records']:>9} records {entry['bytes'] / 1_000:>11.1f} kB"
        text = f"{times['used_at']} {size}  {entry['call']} of {query['chain']}{arguments}  {entry['base_url']}"
        print(shown(text, sys.stdout))
    return 0


def _arguments(query: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call for display: of many values only their number."""
    # The entry of `height_at` has a time in place of arguments.
    given = query["arguments"] | {"max_items": query["max_items"]} if "arguments" in query else {"time": query["time"]}
    return {
        name: f"{len(value)} values" if isinstance(value, list) and len(value) > 1 else value
        for name, value in given.items()
        if value is not None
    }


def _clear(options: argparse.Namespace) -> int:
    print(counted(_cache(options).clear(), "result"), "removed")
    return 0
