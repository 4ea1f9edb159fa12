"""The local service: the whole interface, served for real on loopback from made-up data, for tests and offline work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, Required, Self, TypedDict

from chainframe import Client, Deployment
from chainframe._native import Cassette, _LocalService

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from types import TracebackType

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

    - `transactions`, `seed`: how much data, and which; the same pair gives the same data.
    - `deployment`: the words it speaks; `main_chain` and `zone_chain`: the short names it answers to.
    - `rate_limit`: requests a second that it allows; None for any number.
    - `growth`: how many records every growing list gains at its head after each request for a list.
    - `faults`: how it misbehaves; see `Fault`.
    - `reach`: how many records of a list of the main chain can be reached.
    - `db`: a file for its database, which a later service can open again; None keeps it in memory.
    - `port`: 0 takes a free one.

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
        faults: Sequence[Fault] = (),
        reach: int = 10_000,
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
            faults_json=json.dumps(list(faults)),
            reach=reach,
            db=db,
            port=port,
            main_chain=main_chain,
            zone_chain=zone_chain,
        )

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

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Misbehave like this from now on, counting anew; an empty list ends it."""
        self._native.set_faults(json.dumps(list(faults)))

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
