"""Errors about unknown names, which suggest the one that was probably meant."""

from __future__ import annotations

import difflib
import functools
import inspect
import opcode
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from chainframe._text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
R = TypeVar("R")

# Words of other libraries and APIs, whose case and underscores are not compared. The first name that the function takes
# is the one that was meant.
SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("limit", "n", "count", "size", "top", "max_results", "nrows", "rows"), ("max_items",)),
    **dict.fromkeys(("per_page", "pagesize", "chunksize", "batch_size"), ("page_size",)),
    **dict.fromkeys(("since", "after", "from_time", "start", "start_date"), ("start_time", "start_height")),
    **dict.fromkeys(("until", "before", "to_time", "end", "end_date", "stop"), ("end_time", "end_height")),
    **dict.fromkeys(("sort", "sort_by", "order"), ("order_by",)),
    **dict.fromkeys(("from_block", "start_block", "min_height"), ("start_height",)),
    **dict.fromkeys(("to_block", "end_block", "max_height"), ("end_height",)),
    **dict.fromkeys(("block", "block_number", "number"), ("height",)),
    **dict.fromkeys(
        ("contract", "address", "token_address", "contract_address"), ("token_contract_address", "address")
    ),
    **dict.fromkeys(("wallet", "account"), ("address",)),
    **dict.fromkeys(("sender", "from_"), ("from_address", "input")),
    **dict.fromkeys(("recipient", "receiver"), ("to_address", "output")),
    **dict.fromkeys(("hash", "hashes", "txid", "txids", "tx_hash", "transaction_hash"), ("tx_ids", "tx_id")),
    **dict.fromkeys(("type", "kind"), ("protocol_type",)),
    **dict.fromkeys(("network",), ("chain",)),
    **dict.fromkeys(("url", "host", "endpoint", "uri", "rpc", "rpc_url", "api_url", "provider"), ("base_url",)),
    **dict.fromkeys(("key", "token", "access_key", "aws_access_key_id"), ("api_key", "token_contract_address")),
    **dict.fromkeys(("secret", "api_secret", "aws_secret_access_key"), ("secret_key",)),
    **dict.fromkeys(("password",), ("passphrase",)),
    **dict.fromkeys(("retries", "retry"), ("max_retries",)),
    **dict.fromkeys(("verify", "cert"), ("ca_bundle",)),
    **dict.fromkeys(("proxies",), ("proxy",)),
    **dict.fromkeys(("workers", "max_workers", "max_connections", "threads", "n_jobs"), ("concurrency",)),
    **dict.fromkeys(("rps", "requests_per_second", "enable_rate_limit"), ("rate_limit",)),
}
# Words of other libraries that stand for no parameter, and what does their work here.
ADVICE = {
    **dict.fromkeys(("page", "offset", "skip"), "query.pages() returns the pages one after the other"),
    "cursor": "client.resume(cursor) continues a query",
    **dict.fromkeys(("headers", "params", "session"), "the client writes the requests itself"),
}
# Public names of the modules, which importing this package does not load.
_MODULES = {
    "datasets": ("Dataset",),
    "exact": ("ExactArray", "ExactDtype"),
    "exports": ("Compaction", "Difference", "Export", "Verification", "compact", "read"),
    "partitions": ("Partition",),
    "sinks": ("Change", "Clear", "Extent", "Position", "Sink", "Synced"),
    "testing": (
        "Call",
        "Cassette",
        "ClientOptions",
        "Fault",
        "LocalService",
        "LoggedRequest",
        "Quirk",
        "check_sink",
        "make_records",
    ),
}
NAMES = {name: f"chainframe.{module}.{name}" for module, names in _MODULES.items() for name in names} | {
    "connect": "Client",
    "exceptions": "errors",
    "AuthError": "AuthenticationError",
    "RateLimitExceeded": "RateLimitError",
    "TooManyRequests": "RateLimitError",
    "ConnectionError": "TransportError",
    "AsyncClient": "Client, whose queries have async methods, such as collect_async",
    "Session": "Client",
    "Error": "ChainframeError",
    "Exception": "ChainframeError",
    "APIError": "ServiceError",
    "ApiError": "ServiceError",
    "HTTPError": "ServiceError",
    "Timeout": "Client(timeout=...), or RequestTimeoutError",
    "TimeoutException": "RequestTimeoutError",
    "ReadTimeout": "RequestTimeoutError",
    "ConnectTimeout": "RequestTimeoutError",
    "ConnectError": "TransportError",
    "Retry": "Client(max_retries=...)",
    "Limits": "Client(concurrency=..., rate_limit=...)",
    "read_parquet": "chainframe.exports.read",
    "HTTPStatusError": "ServiceError",
    "ClientError": "ServiceError",
    "RequestException": "TransportError",
    "RequestError": "TransportError",
    "NetworkError": "TransportError",
}
"""Names that other packages have, and those of this one."""


def unknown_name(name: str) -> AttributeError | ImportError:
    """Return the error about a name that the package does not have."""
    error = _unknown_attribute(name)
    here = inspect.currentframe()
    caller = here and here.f_back
    if caller is None or caller.f_code.co_code[caller.f_lasti] != opcode.opmap["IMPORT_FROM"]:
        return error
    # `from chainframe import ...` replaces an AttributeError by an error without advice.
    import chainframe  # noqa: PLC0415 - imports users of this module

    _, _, advice = str(error).partition("; ")
    advice = f"; {advice}" if advice else similar(name, chainframe.__all__)
    return ImportError(f"cannot import name {name!r} from 'chainframe'{advice}", name="chainframe")


def _unknown_attribute(name: str) -> AttributeError:
    import chainframe  # noqa: PLC0415 - imports users of this module

    if name in {*_MODULES, "integrations", "progress"}:
        return AttributeError(f"module 'chainframe' has no attribute {name!r}; write import chainframe.{name}")
    cased = {known.lower().removesuffix("error"): known for known in chainframe.__all__}
    meant = NAMES.get(name) or cased.get(name.lower().replace("_", "").removesuffix("error"))
    if not meant and hasattr(chainframe.Client, name):
        meant = f"Client().{name}"
    message = f"module 'chainframe' has no attribute {name!r}"
    # With an object, Python would suggest what is spelt most like it.
    return AttributeError(f"{message}; use {meant}", name=name, obj=None) if meant else AttributeError(message)


def similar(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the known name that is most like it, or nothing."""
    matches = difflib.get_close_matches(name, known, 1, cutoff=0.65)
    return "".join(f"; did you mean '{other}'?" for other in matches)


def field_of_word(word: str, fields: Sequence[str]) -> str:
    """Return advice on an unknown attribute of a record: the field that other APIs name with this word."""
    if word in {"time", "timestamp", "date", "datetime", "block_timestamp"}:
        meant = [field for field in fields if field.endswith(("_time", "_date"))]
    else:
        meant = [field for field in _meant(word) if field in fields]
    return f"did you mean '{meant[0]}'?" if meant else ""


def renamed(name: str, calls: Sequence[str], others: Sequence[str]) -> str:
    """Return advice on an unknown method: the call whose name is part of it, or of which it is the end, or all calls.

    Nothing, if another name is similar: Python suggests that.
    """
    if name.startswith("_"):
        return ""
    bare = name.removesuffix("_async")
    for prefix in ("get_", "fetch_", "list_", "iter_", "query_"):
        bare = bare.removeprefix(prefix)
    matches = [call for call in calls if bare in {call, call.removesuffix("s")}]
    matches = matches or [call for call in calls if call.endswith(f"_{bare}")]
    if matches:
        return f"did you mean '{matches[0]}'?"
    return "" if similar(name, [*calls, *others]) else f"its calls are {', '.join(calls)}"


def unexpected(function: Callable[..., object], keyword: str) -> TypeError:
    """Return the error about a keyword that a function does not take."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    meant = next((name for name in (*_known(keyword, names), *_meant(keyword)) if name in names), None)
    if meant is not None:
        advice = f"; did you mean '{meant}'?"
    else:
        # The name of a parameter of another call is no misspelling.
        is_name = keyword in _parameters()
        advice = (
            _elsewhere(function, keyword)
            or (not is_name and similar(keyword, names))
            or f"; it takes {', '.join(names)}"
        )
    return TypeError(f"{function.__qualname__}() got an unexpected keyword argument '{keyword}'{advice}")


def _elsewhere(function: Callable[..., object], keyword: str) -> str:
    """Return the end of a message about a keyword that is a setting of the client, or that stands for no parameter."""
    from chainframe import Client  # noqa: PLC0415 - the package imports this module's users

    if function.__qualname__.partition(".")[0] not in {"Client", "Query"}:
        return ""
    if keyword in ADVICE:
        return f"; {ADVICE[keyword]}"
    is_setting = keyword in inspect.signature(Client.with_options).parameters and keyword != "self"
    return f"; it is a setting: client.with_options({keyword}=...)" if is_setting else ""


def too_many(function: Callable[..., object], given: int) -> TypeError:
    """Return the error about more arguments by position than a function takes."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    by_name = [f"{each.name}=" for each in parameters if each.kind is each.KEYWORD_ONLY]
    by_position = len(parameters) - len(by_name)
    takes = f"takes {counted(by_position, 'positional argument')}; got {given}"
    return TypeError(f"{function.__qualname__}() {takes}; pass {', '.join(by_name)} by name")


def similar_attribute(name: str, attributes: Sequence[str], columns: Sequence[str]) -> str:
    """Return advice on an unknown attribute of an object of records: the attribute or column that is most like it."""
    public = [attribute for attribute in attributes if not attribute.startswith("_")]
    matches = difflib.get_close_matches(name, [*public, *columns], 1, cutoff=0.65)
    if not matches:
        return ""
    return f"did you mean the column '{matches[0]}'?" if matches[0] in columns else f"did you mean '{matches[0]}'?"


def missing(function: Callable[..., object], name: str, given: Sequence[str]) -> TypeError:
    """Return the error about a required argument that was not given, or that was given under another name."""
    known = inspect.signature(function).parameters
    for keyword in given:
        if keyword not in known:
            return unexpected(function, keyword)
    return TypeError(f"{function.__qualname__}() missing a required argument: '{name}'")


def _plain(word: str) -> str:
    """Return a word without case and underscores: from_block and fromBlock are one."""
    return word.replace("_", "").lower()


def _meant(word: str) -> tuple[str, ...]:
    """Return the names that a word of another library stands for."""
    return {_plain(synonym): names for synonym, names in SYNONYMS.items()}.get(_plain(word), ())


def _known(word: str, names: Sequence[str]) -> list[str]:
    """Return the names that differ from a word in case and underscores only."""
    return [name for name in names if _plain(name) == _plain(word)]


def _parameters() -> set[str]:
    """Return the names of the parameters of all calls."""
    from chainframe import Client  # noqa: PLC0415 - the package imports this module's users

    methods = [getattr(Client, name) for name in dir(Client) if not name.startswith("_")]
    signatures = [inspect.signature(method) for method in methods if callable(method)]
    return {name for signature in signatures for name in signature.parameters} - {"self"}


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function name the parameter that was probably meant by an unknown keyword."""
    known = inspect.signature(function).parameters.keys()

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for keyword in options.keys() - known:
            raise unexpected(function, keyword)
        return function(*args, **options)

    return checked
