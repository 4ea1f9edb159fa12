"""Types of arguments and results of the testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Required, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from os import PathLike

    from chainframe import Attempt, Deployment
    from chainframe._native import Cassette

Call: TypeAlias = Literal[
    "tokens",
    "token_transfers",
    "cross_chain_transactions",
    "blocks",
    "address_transactions",
    "large_transactions",
    "transactions",
    "transactions_by_hash",
    "logs",
]
"""Name of a method of `chainframe.Client` that returns a query."""


class ClientOptions(TypedDict, total=False):
    """Arguments of `chainframe.Client`, all optional.

    Examples
    --------
    >>> options: ClientOptions = {"strict": True, "max_retries": 0}
    >>> client = service.client(**options)
    """

    base_url: str
    api_key: str
    secret_key: str
    passphrase: str
    main_chain: str
    zone_chain: str
    deployment: Deployment
    timeout: float
    deadline: float | None
    max_retries: int
    rate_limit: Literal["auto"] | float | None
    max_requests: int | None
    concurrency: int
    strict: bool
    max_response_bytes: int
    proxy: str | None
    ca_bundle: str | PathLike[str] | None
    cassette: Cassette | None
    progress: Literal["auto"] | bool
    on_attempt: Callable[[Attempt], object] | None


class Fault(TypedDict, total=False):
    """A fault of the local service, which applies to all requests unless `path`, `every` or `times` select some.

    The kinds and their members are:

    - "status": an HTTP `status`, with an error body if there is a `code`.
    - "code": HTTP 200 with that `code` and `msg`.
    - "throttle": HTTP 429 with code 50011, and with `retry_after` if given.
    - "empty": success without data.
    - "html": an HTML page, with `status` 502 unless given.
    - "oversized": a body of `size_mib`.
    - "delay": no bytes for `seconds` before the response.
    - "slow_body": the body in chunks over `seconds`.
    - "truncate": the body ends after `bytes`, or half-way.
    - "reset": the connection is reset without a response.
    - "clock_skew": the service's clock is `seconds` ahead.

    Attributes
    ----------
    kind : str
        Kind of the fault; required.
    status : int
        HTTP status.
    code, msg : str
        Code and message in the body.
    retry_after : float
        Value of the `Retry-After` header, in seconds.
    size_mib : int
        Size of the body, in MiB.
    seconds : float
        Duration, or difference of clocks.
    bytes : int
        Bytes of the body that are sent.
    path : str
        Selects requests whose path contains this string.
    every : int
        Selects every n-th request of that path.
    times : int
        Selects the first n requests of that path.

    Examples
    --------
    >>> busy: Fault = {"kind": "code", "code": "50013", "times": 2}
    >>> torn: Fault = {"kind": "truncate", "path": "block-list", "every": 3}
    """

    kind: Required[
        Literal[
            "status",
            "code",
            "throttle",
            "empty",
            "html",
            "oversized",
            "delay",
            "slow_body",
            "truncate",
            "reset",
            "clock_skew",
        ]
    ]
    status: int
    code: str
    msg: str
    retry_after: float
    size_mib: int
    seconds: float
    bytes: int
    path: str
    every: int
    times: int


class LoggedRequest(TypedDict):
    """A received request, without its headers, and the status and code of its response.

    Attributes
    ----------
    time : datetime
        Time at which the request was received, in UTC.
    call : str
        Name of the method of `Client` that sends such requests; empty for any other path, and for a
        request that is no valid HTTP.
    method, path : str
        HTTP method and path.
    query : str
        Query string as received.
    params : dict of str
        Decoded parameters by their names in the API. Values of a repeated name are joined by commas.
    status : int
        HTTP status of the response; 0 if the connection was reset.
    code : str
        Code in the response body; empty if there is none.
    faults : list of str
        Kinds of the faults that applied.

    Examples
    --------
    >>> request = service.request_log[-1]
    >>> request["call"], request["params"]["height"], request["faults"]
    ('blocks', '4300000', ['delay'])
    """

    time: datetime
    call: str
    method: str
    path: str
    query: str
    params: dict[str, str]
    status: int
    code: str
    faults: list[str]
