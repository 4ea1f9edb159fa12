"""For tests and offline work: the local service, a real server of the whole interface on loopback, and cassettes.

The service makes up its data, or has yours; see `LocalService`. A cassette records what a service answers, and replays
it; see `Cassette`. Both are fixtures of the pytest plugin that comes along, `chainframe.testing.plugin`.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Required, Self, TypedDict, cast

from chainframe import Client, ConfigError, Deployment
from chainframe._native import Cassette, _LocalService, _with_cassette
from chainframe.testing import _rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from types import TracebackType

    from chainframe import Query

__all__ = ["Cassette", "Fault", "LocalService", "LoggedRequest"]


class Fault(TypedDict, total=False):
    """Misbehaviour on demand, and the requests it befalls: all, unless `path`, `every` or `first` select some.

    >>> busy: Fault = {"kind": "code", "code": "50013", "first": 2}
    >>> torn: Fault = {"kind": "cut", "path": "block-list", "every": 3}

    `kind` and what goes with it:

    - "status": an HTTP `status`, with an error body if there is a `code`.
    - "code": HTTP 200 with that `code` and `msg`.
    - "throttle": HTTP 429 with code 50011, and with `retry_after` in seconds if given.
    - "empty": success without data. "html": a page for people, with `status` 502 unless given.
    - "huge": a body of so many `mib`.
    - "stall": `seconds` of silence before the answer. "drip": the body piece by piece over `seconds`.
    - "cut": the body ends after `bytes`, or half-way. "reset": the connection ends without an answer.
    - "clock": the service's clock is `seconds` ahead.
    """

    kind: Required[
        Literal["status", "code", "throttle", "empty", "html", "huge", "stall", "drip", "cut", "reset", "clock"]
    ]
    status: int
    code: str
    msg: str
    retry_after: float
    mib: int
    seconds: float
    bytes: int
    path: str
    """A part of the path."""
    every: int
    """Every n-th request of that path."""
    first: int
    """The first n requests of that path."""


class LoggedRequest(TypedDict):
    """A request as it came in, without its headers, and how it was answered."""

    method: str
    path: str
    query: str
    status: int
    code: str


class LocalService:
    """An HTTP server on loopback that checks signatures and enforces the documented limits.

    It runs from its making to `close`, or to the end of a `with` or `async with` block.

    >>> with LocalService(transactions=1_000, seed=7) as service, service.client() as client:
    ...     tokens = client.tokens().collect()

    - `transactions`, `seed`: how much data, and which; the same pair gives the same data, and 0 none at all.
    - `deployment`: the words it speaks; `main_chain` and `zone_chain`: the short names it answers to.
    - `rate_limit`: requests a second that it allows; None for any number.
    - `growth`: how many records every growing list gains at its head after each request for a list.
    - `growth_rate`: how many records every growing list gains a second, whoever asks.
    - `reorg`: two numbers (n, m): after every n-th request for a list, the newest m records of every growing list are
      replaced by others, as when a chain reorganises.
    - `faults`: how it misbehaves; see `Fault`.
    - `reach`: how many records of a list of the main chain can be reached.
    - `data`: records of your own, by the names of the calls that shall find them; see `load`.
    - `db`: a file for its database, which a later service can open again, with all that was loaded; None keeps it in
      memory.
    - `port`: 0 takes a free one.

    While it runs, `faults`, `growth`, `rate_limit` and `clock_ahead` can be set, and `requests` and `request_log` tell
    what came in.

    >>> service.faults = [{"kind": "throttle", "first": 3}]
    >>> service.clock_ahead = 90.0

    Raises `ConfigError` for a setting that cannot be, and `RuntimeError` where it cannot start: the port is taken, or
    the file is not its own.
    """

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
        reach: int = 10_000,
        data: Mapping[str, Any] | None = None,
        db: str | PathLike[str] | None = None,
        port: int = 0,
        main_chain: str = "MAIN",
        zone_chain: str = "ZONE_CHAIN",
    ) -> None:
        self._deployment = Deployment() if deployment is None else deployment
        self._native = _LocalService(
            transactions=transactions,
            seed=seed,
            deployment=self._deployment,
            rate_limit=rate_limit,
            growth=growth,
            growth_rate=growth_rate,
            reorg=reorg,
            faults_json=_as_json(faults),
            reach=reach,
            db=db,
            port=port,
            main_chain=main_chain,
            zone_chain=zone_chain,
        )
        try:
            for call, records in (data or {}).items():
                self.load(call, records)
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
    def requests(self) -> int:
        """How many requests came in so far."""
        return self._native.requests

    @property
    def request_log(self) -> list[LoggedRequest]:
        """The latest requests, oldest first."""
        return self._native.request_log()

    def clear_requests(self) -> None:
        """Forget the requests that came in so far."""
        self._native.clear_requests()

    @property
    def faults(self) -> list[Fault]:
        """How it misbehaves; see `Fault`. Setting them starts their counts anew; an empty list ends it."""
        faults: list[Fault] = json.loads(self._native.faults_json)
        return faults

    @faults.setter
    def faults(self, faults: Sequence[Fault]) -> None:
        self.set_faults(faults)

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Misbehave like this from now on, counting anew; an empty list ends it."""
        self._native.set_faults(_as_json(faults))

    @property
    def growth(self) -> int:
        """How many records every growing list gains at its head after each request for a list."""
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
    def clock_ahead(self) -> float:
        """Seconds that its clock is ahead of this machine's; negative where it is behind."""
        return self._native.clock_ahead

    @clock_ahead.setter
    def clock_ahead(self, seconds: float) -> None:
        self._native.set_clock_ahead(seconds)

    def load(self, call: str, data: Any) -> None:  # noqa: ANN401 - any library's table
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
        content = _rows.read(Path(data)) if _rows.is_file(data) else _rows.rows(data)
        if isinstance(content, bytes):
            self._native.load_body(call, content, str(data))
        else:
            self._native.load(call, *_rows.columns(call, content, self._deployment))

    def load_answers(self, path: str | PathLike[str]) -> int:
        """Answer the requests of a cassette as recorded, from now on; returns how many answers that are.

        Of several answers to one request the last counts. Everything else is answered as before. Raises `CassetteError`
        for a file that is none, and `ConfigError` if it was recorded from another deployment.

        >>> service.load_answers("cassettes/test_report/test_report.jsonl")
        """
        return self._native.load_answers(path)

    def mirror(self, *queries: Query[Any]) -> None:
        """Run these queries of a real service's client, and answer the very same calls alike from now on.

        With `db` they are kept, and a notebook works offline on what was mirrored.

        >>> with LocalService(db="offline.sqlite") as service:
        ...     service.mirror(client.tokens(max_items=100), client.blocks(height=4_300_000))
        """
        with TemporaryDirectory() as folder:
            answers = Path(folder) / "answers.jsonl"
            cassette = Cassette(answers, mode="all")
            for query in queries:
                restore, (client, *asked) = cast("tuple[Any, tuple[Any, ...]]", query.__reduce__())
                restore(_with_cassette(client, cassette), *asked).collect()
            self.load_answers(answers)

    def client(self, **overrides: Any) -> Client:  # noqa: ANN401 - the arguments of `Client`, which checks them
        """A client of this service; `overrides` are arguments of `Client`."""
        settings: dict[str, Any] = {
            "base_url": self.url,
            "api_key": self.api_key,
            "secret_key": self.secret_key,
            "passphrase": self.passphrase,
            "main_chain": self.main_chain,
            "zone_chain": self.zone_chain,
            "deployment": self._deployment,
        }
        return Client(**{**settings, **overrides})

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


def _as_json(faults: Sequence[Fault]) -> str:
    try:
        return json.dumps(list(faults), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"faults: is not a list of mappings such as {{'kind': 'reset'}}: {error}") from None
