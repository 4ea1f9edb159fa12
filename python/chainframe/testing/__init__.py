"""Testing kit: a local HTTP server of the whole API, and cassettes that record and replay HTTP.

`LocalService` serves synthetic data, or your own. `Cassette` records the responses of a service and replays them. The
pytest plugin `chainframe.testing.plugin` provides both as fixtures.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Required, Self, TypedDict, Unpack, cast

from chainframe import Client, ConfigError, Deployment, Query
from chainframe._native import (
    Cassette,
    _LocalService,
    _restore_query,
    _restore_records,
    _restore_report,
    _with_cassette,
)
from chainframe.testing import _normalize, _requests
from chainframe.testing._options import Call, ClientOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from os import PathLike
    from types import TracebackType

    from chainframe import Records


__all__ = ["Call", "Cassette", "ClientOptions", "Fault", "LocalService", "LoggedRequest", "make_records"]


class Fault(TypedDict, total=False):
    """A fault of the local service, and the requests it applies to: all, unless selected by `path`, `every` or `times`.

    >>> busy: Fault = {"kind": "code", "code": "50013", "times": 2}
    >>> torn: Fault = {"kind": "truncate", "path": "block-list", "every": 3}

    The members besides the selectors depend on `kind`:

    - "status": an HTTP `status`, with an error body if there is a `code`.
    - "code": HTTP 200 with that `code` and `msg`.
    - "throttle": HTTP 429 with code 50011, and with `retry_after` in seconds if given.
    - "empty": success without data. "html": a page for people, with `status` 502 unless given.
    - "oversized": a body of `size_mib` MiB.
    - "delay": `seconds` of silence before the response. "slow_body": the body in chunks over `seconds`.
    - "truncate": the body ends after `bytes`, or half-way. "reset": the connection ends without a response.
    - "clock_skew": the service's clock is `seconds` ahead.
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
    """A part of the path."""
    every: int
    """Every n-th request of that path."""
    times: int
    """The first n requests of that path."""


class LoggedRequest(TypedDict):
    """A received request, without its headers, and the status and code of its response.

    >>> request = service.request_log[-1]
    >>> request["call"], request["params"]["height"], request["faults"]
    ('blocks', '4300000', ['delay'])
    """

    time: datetime
    """When the request was received, in UTC."""
    call: str
    """The method of `Client` that sends such requests, or an empty string for any other path."""
    method: str
    path: str
    query: str
    """The query string as sent."""
    params: dict[str, str]
    """The decoded parameters, by their names in the API; values of a repeated name are joined by commas."""
    status: int
    """HTTP status, or 0 if the connection was reset."""
    code: str
    """Code in the response's body, or an empty string."""
    faults: list[str]
    """Kinds of the faults that applied."""


class LocalService:
    """An HTTP server on loopback that checks signatures and enforces the documented limits.

    It runs until `close`, or to the end of a `with` or `async with` block.

    >>> with LocalService(transactions=1_000, seed=7) as service, service.client() as client:
    ...     tokens = client.tokens().collect()

    Parameters
    ----------
    transactions, seed
        Size and seed of the synthetic data. The same pair gives the same data; 0 transactions give none.
    deployment, main_chain, zone_chain
        The deployment to implement, and the short names of its chains.
    rate_limit
        Requests allowed per second; None for no limit.
    growth
        Records that each growing list gains at its head after each request for a list.
    growth_rate
        Records that each growing list gains per second.
    reorg
        Two numbers (n, m): after every n-th request for a list, the newest m records of each growing list are replaced,
        as in a chain reorganisation.
    faults
        Faults to inject; see `Fault`.
    max_result_window
        Most records of a main-chain list that can be paged through; by default the deployment's `result_window`.
        Clients made by `client` know of it.
    data
        Records to serve, by the names of the calls that return them; see `load`.
    db
        Path of the database, which a later service can open again with everything that was loaded. Several services
        may share it, in any number of processes. In memory by default.
    port
        Port to listen on; 0 takes a free one.

    While it runs, `faults`, `growth`, `rate_limit` and `clock_skew` can be set.

    >>> service.faults = [{"kind": "throttle", "times": 3}]
    >>> service.clock_skew = 90.0

    Raises
    ------
    ConfigError
        A setting is invalid, the port is taken, or the file of the database is damaged, foreign or in use with other
        data.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(
        self,
        *,
        transactions: int = 10_000,
        seed: int = 7,
        deployment: Deployment | None = None,
        rate_limit: float | None = None,
        growth: int = 0,
        growth_rate: float | None = None,
        reorg: tuple[int, int] | None = None,
        faults: Sequence[Fault] = (),
        max_result_window: int | None = None,
        data: Mapping[str, Any] | None = None,
        db: str | PathLike[str] | None = None,
        port: int = 0,
        main_chain: str = "MAIN",
        zone_chain: str = "ZONE_CHAIN",
    ) -> None:
        for name, value in {"transactions": transactions, "seed": seed, "growth": growth, "port": port}.items():
            if isinstance(value, bool):
                raise ConfigError(f"{name} must be an integer; got {value}")
        self._native = _LocalService(
            transactions=transactions,
            seed=seed,
            deployment=Deployment() if deployment is None else deployment,
            rate_limit=rate_limit,
            growth=growth,
            growth_rate=growth_rate,
            reorg=reorg,
            faults_json=_as_json(faults),
            max_result_window=max_result_window,
            db=db,
            port=port,
            main_chain=main_chain,
            zone_chain=zone_chain,
        )
        try:
            for call, records in (data or {}).items():
                self.load(cast("Call", call), records)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return self._native.url

    @property
    def api_key(self) -> str:
        return self._native.api_key

    @property
    def secret_key(self) -> str:
        return self._native.secret_key

    @property
    def passphrase(self) -> str:
        return self._native.passphrase

    @property
    def main_chain(self) -> str:
        return self._native.main_chain

    @property
    def zone_chain(self) -> str:
        return self._native.zone_chain

    @property
    def deployment(self) -> Deployment:
        """The deployment that the service implements."""
        return self._native.deployment

    @property
    def request_count(self) -> int:
        """Number of requests received."""
        return self._native.request_count

    @property
    def request_log(self) -> list[LoggedRequest]:
        """The most recent requests, oldest first: up to 10,000, or 16 MiB."""
        deployment = self.deployment
        return [_requests.describe(entry, deployment) for entry in self._native.request_log()]

    def find_requests(self, call: Call | None = None, /, **params: object) -> list[LoggedRequest]:
        """Returns the logged requests of a call that have all these parameters, oldest first.

        Parameters have their names in Python (`height`, `page_size`) or in the API (`limit`), and are compared with the
        strings that were sent. None selects requests without that parameter.

        >>> service.find_requests("blocks", height=4_300_000)
        """
        return _requests.select(self.request_log, call, params)

    def assert_requested(self, call: Call | None = None, /, *, times: int | None = None, **params: object) -> None:
        """Asserts that such a request was received: at least once, or exactly `times` times; see `find_requests`.

        Raises `AssertionError` that lists the requests received.

        >>> service.assert_requested("blocks", height=4_300_000, times=1)
        """
        count = len(_requests.select(self.request_log, call, params))
        if count != times if times is not None else count == 0:
            wanted = "at least once" if times is None else f"{times} times"
            log = [f"{entry['method']} {entry['path']}?{entry['query']}" for entry in self.request_log]
            raise AssertionError(
                f"{_requests.describe_selection(call, params)} was requested {count} times instead of {wanted}; "
                f"received: {', '.join(log[-10:]) or 'nothing'}"
            )

    def reset_request_log(self) -> None:
        """Clears the request log and sets `request_count` to 0."""
        self._native.reset_request_log()

    @property
    def faults(self) -> list[Fault]:
        """Current faults. Setting them resets their counts; an empty list removes them."""
        faults: list[Fault] = json.loads(self._native.faults_json)
        return faults

    @faults.setter
    def faults(self, faults: Sequence[Fault]) -> None:
        self.set_faults(faults)

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replace the faults and reset their counts; an empty list removes them."""
        self._native.set_faults(_as_json(faults))

    @property
    def growth(self) -> int:
        """Number of records that every growing list gains at its head after each request for a list."""
        return self._native.growth

    @growth.setter
    def growth(self, growth: int) -> None:
        self._native.set_growth(growth)

    @property
    def rate_limit(self) -> float | None:
        """Requests a second that it allows; None for any number."""
        return self._native.rate_limit

    @rate_limit.setter
    def rate_limit(self, rate: float | None) -> None:
        self._native.set_rate_limit(rate)

    @property
    def clock_skew(self) -> float:
        """Seconds that its clock is ahead of this machine's; negative where it is behind."""
        return self._native.clock_skew

    @clock_skew.setter
    def clock_skew(self, seconds: float) -> None:
        self._native.set_clock_skew(seconds)

    def load(self, call: Call, data: Any) -> None:  # noqa: ANN401 - any library's table
        """Let that call of a client find these records, in place of made-up ones or of what was loaded before.

        `data` is a data frame or table of any library, `Records`, an iterable of records or of mappings, or the path of
        a `.parquet`, `.jsonl` or `.json` file of records, or of an answer as a service sent it (`.json`). Fields have
        the names of a record's attributes, or of the wire; those that are not there have no value.

        Values are kept to the digit, and the order is kept as well: the first record is the newest of a list. All
        filters work, and lists have pages; they do not grow, and none is cut to its last year. Other calls are not
        touched, so load the same transaction for each call that is to tell of it.

        Raises `ConfigError` for a call, a file, a field or a value that cannot be: it names the file and the line, or
        the row. A NaN is no number; in a pandas frame it is a value that is not there.

        >>> service.load("token_transfers", "transfers.parquet")
        >>> service.load("blocks", [cf.Block(height=1), {"height": 0, "block_time": "2026-01-31T00:00:00Z"}])
        """
        content = _normalize.read(Path(data)) if _normalize.is_file(data) else _normalize.rows(data)
        if isinstance(content, bytes):
            self._native.load_body(call, content, str(data))
        else:
            self._native.load(call, *_normalize.columns(call, content, self.deployment))

    def load_cassette(self, path: str | PathLike[str]) -> int:
        """Serves the responses of a cassette to the requests they were recorded of; returns their number.

        Of several responses to one request the last counts. From then on no synthetic data is served: any other request
        is answered with code 50044 and a message that names the closest recording, and raises `NotFoundError`.

        Raises `CassetteError` for a file that is not a cassette, and `ConfigError` if it was recorded from another
        deployment.

        >>> service.load_cassette("cassettes/test_report/test_report.jsonl")
        """
        return self._native.load_cassette(path)

    def mirror(self, *queries: Query[Any]) -> None:
        """Runs queries of a real service's client and serves their records.

        They answer the same queries and any narrower one: fewer items, other page sizes, some of the hashes, a height
        within those that were read, a further filter on a list that was read to its end. No synthetic data is served
        beside them: a query that they do not cover raises `NotFoundError`, which names the closest mirrored one. `load`
        replaces what was mirrored for its call.

        With `db` everything is kept, and a notebook works offline.

        >>> with LocalService(transactions=0, db="offline.sqlite") as service:
        ...     service.mirror(client.tokens(max_items=100), client.blocks(height=4_300_000))
        """
        for query in queries:
            if not isinstance(query, Query):  # pyright: ignore[reportUnnecessaryIsInstance] - not checked by callers
                raise TypeError(f"mirror() takes queries, such as client.blocks(); got {type(query).__name__}")
            _, (client, *asked) = cast("tuple[Any, tuple[Any, ...]]", query.__reduce__())
            if len(asked) != len(("call", "arguments")):
                raise ConfigError("mirror: a query that resumes from a cursor cannot be mirrored; pass the whole query")
            call, (args, options) = asked[0], json.loads(asked[1])
            # A page is served as a whole, so the last one is read as a whole.
            limit, size = options["max_items"], options["page_size"] or _requests.page_size_max(call)
            if limit and size:
                limit = options["max_items"] = -(-limit // size) * size
            with TemporaryDirectory() as folder:
                path = Path(folder) / "mirrored.jsonl"
                recording = _with_cassette(client, Cassette(path, mode="all"))
                records = _restore_query(recording, call, json.dumps([args, options])).collect()
                columns, places = _normalize.columns(call, _normalize.rows(records), self.deployment)
                self._native.mirror(call, columns, places, path, limit)

    def client(self, **overrides: Unpack[ClientOptions]) -> Client:
        """Returns a client of this service; `overrides` are arguments of `Client`.

        The client ignores `CHAINFRAME_CASSETTE`, and with it the fixture `cassette`: pass `cassette=` to record.
        """
        settings: ClientOptions = {
            "base_url": self.url,
            "api_key": self.api_key,
            "secret_key": self.secret_key,
            "passphrase": self.passphrase,
            "main_chain": self.main_chain,
            "zone_chain": self.zone_chain,
            "deployment": self.deployment,
        }
        settings.update(overrides)
        client = Client(**settings)
        return client if overrides.get("cassette") is not None else _with_cassette(client, None)

    def close(self) -> None:
        """Stop; once is enough, and twice does no harm."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LocalService(url={self.url!r}, main_chain={self.main_chain!r}, zone_chain={self.zone_chain!r})"


def make_records(call: Call, data: Any) -> Records[Any]:  # noqa: ANN401 - any library's table
    """Returns `Records` as that call of a client would, for tests of functions that take them.

    `data` is what `LocalService.load` takes; the report is that of a complete result.

    >>> make_records("blocks", [{"height": 2}, {"height": 1}])
    <Records of Block: 2 rows, complete>

    Raises `ConfigError` for a field or a value that is invalid.
    """
    path = Path(data) if _normalize.is_file(data) else None
    content = _normalize.rows(data) if path is None else _normalize.read(path)
    if isinstance(content, bytes):
        raise ConfigError(f"data: {path} is a response of a service; pass it to LocalService.load")
    columns, places = _normalize.columns(call, content, Deployment())
    report = {"complete": True, "records": len(places)}
    zeros = dict.fromkeys(("requests", "retries", "pages", "duplicates_dropped", "bytes"), 0)
    members = {**zeros, **report, "reasons": [], "missing": [], "elapsed": 0.0}
    return _restore_records(_requests.record(call), columns, _restore_report(members))


def _as_json(faults: Sequence[Fault]) -> str:
    try:
        return json.dumps(list(faults), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"faults: is not a list of mappings such as {{'kind': 'reset'}}: {error}") from None
