"""Types of arguments and results of the testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Required, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from os import PathLike

    from chainframe import Attempt, Cache, Credentials, Deployment
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
    concurrency: Literal["auto"] | int
    strict: bool
    numbers: Literal["decimal", "float", "string"] | None
    max_response_bytes: int
    proxy: str | None
    ca_bundle: str | PathLike[str] | None
    cassette: Cassette | None
    progress: Literal["auto"] | bool
    on_attempt: Callable[[Attempt], object] | None
    credentials: Callable[[], Credentials] | None
    cache: Cache | str | PathLike[str] | None


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
    - "body": a response of your own, with a body of `text` or `json`, `status` 200 unless given, and `headers`.
    - "refused", "unknown_host", "tls": no connection is made. A server on a socket is connected before it has a
      request, so these need `LocalService(simulated=True)`; `close()` makes a server refuse all connections.

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
    text : str
        Body.
    json : object
        Body as JSON.
    headers : dict of str
        Headers of the response.
    path : str
        Selects requests whose path contains this string. A string that no endpoint's path contains is refused.
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
            "body",
            "refused",
            "unknown_host",
            "tls",
        ]
    ]
    status: int
    code: str
    msg: str
    retry_after: float
    size_mib: int
    seconds: float
    bytes: int
    text: str
    json: object
    headers: dict[str, str]
    path: str
    every: int
    times: int


QuirkName: TypeAlias = Literal[
    "ties_reordered",
    "empty_throttle",
    "lagging_replica",
    "page_ignored",
    "page_size_capped",
    "page_count_capped",
    "count_capped",
    "count_off_by_one",
    "count_cached",
    "block_replaced",
    "ranks_moved",
]
"""Name of a quirk without members."""


class Quirk(TypedDict, total=False):
    """A way in which deployed services contradict their documents, or one response another, without an error.

    A job that uses chainframe gets a right result under each, or an error or a reason in the report. The kinds are:

    - "ties_reordered": records of one height come in another order in each response. A list of one block longer than a
      page has no fixed pages: request it by other filters, or treat `PaginationDriftError` as "later".
    - "filter_ignored": the parameter `filter` has no effect. Compare each record with what was requested;
      chainframe drops the others, with a reason.
    - "empty_throttle": throttled requests get an empty success in place of status 429. Never take an empty response
      for an empty list at once; set `rate_limit` of the client to the plan's.
    - "lagging_replica": every second request reaches a replica that lacks the two newest records of its list. Expect a
      newest record to disappear and come back; read what is older than a few blocks.
    - "page_ignored": every page has the records of the first. Compare the keys of pages.
    - "page_size_capped": pages hold at most 20 records. Count what comes, not what was requested.
    - "page_count_capped": responses name at most 5 pages. A number of pages is no length.
    - "count_capped": responses count no more records than can be paged through. A count at the limit is no count.
    - "count_off_by_one": two of three responses count one record too many or too few. Read to the end in either case.
    - "count_cached": ten responses in succession have the count of the first of them, while the list grows. Compare
      counts with records.
    - "block_replaced": every other pair of responses has the newest block of its list, and the transactions in it, with
      other hashes. Follow with `settle`, and compare block hashes.
    - "ranks_moved": tokens change their ranks from response to response. Compare keys, not places.

    Attributes
    ----------
    kind : str
        Kind of the quirk; required.
    filter : str
        Name in Python of the parameter of a list that is ignored.

    Examples
    --------
    >>> service.quirks = ["page_size_capped", {"kind": "filter_ignored", "filter": "min_amount"}]
    """

    kind: Required[QuirkName | Literal["filter_ignored"]]
    filter: str


class LoggedRequest(TypedDict):
    """A received request, and the status and code of its response.

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
    headers : dict of str
        Headers by their names in lower case. Credentials are replaced by `*`, here and in the path and query, whatever
        their name. Empty if the request is no valid HTTP.
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
    headers: dict[str, str]
    params: dict[str, str]
    status: int
    code: str
    faults: list[str]
