"""The local service: the whole interface, served for real on loopback from made-up data, for tests and offline work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from chainframe import Client, Deployment
from chainframe._native import _LocalService

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from types import TracebackType

__all__ = ["LocalService"]


class LocalService:
    """An HTTP server on loopback that checks signatures and enforces the documented limits.

    It runs from its making to `close`, or to the end of a `with` or `async with` block.

    >>> with LocalService(transactions=1_000, seed=7) as service, service.client() as client:
    ...     tokens = client.tokens().collect()

    - `transactions`, `seed`: how much data, and which; the same pair gives the same data.
    - `deployment`: the words it speaks; `main_chain` and `zone_chain`: the short names it answers to.
    - `rate_limit`: requests a second that it allows; None for any number.
    - `growth`: how many records its lists grow by after each request.
    - `faults`: failures to come, one mapping each, see `set_faults`.
    - `reach`: how many records of a list of the main chain can be reached.
    - `db`: a file for its database, which a later service can open again; None keeps it in memory.
    - `port`: 0 takes a free one.
    """

    def __init__(
        self,
        *,
        transactions: int = 10_000,
        seed: int = 7,
        deployment: Deployment | None = None,
        rate_limit: float | None = None,
        growth: int = 0,
        faults: Sequence[Mapping[str, Any]] = (),
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
    def request_log(self) -> list[dict[str, Any]]:
        """The requests that came in so far, oldest first."""
        return self._native.request_log()

    def set_faults(self, faults: Sequence[Mapping[str, Any]]) -> None:
        """Replace the failures to come."""
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
