"""`LocalService`: the API on loopback, for tests and offline work."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from chainframe import Client, ConfigError, Deployment, ExportError, InvalidParameterError
from chainframe._arguments import suggesting
from chainframe._checks import short
from chainframe._deployments import settings_of
from chainframe._native import _environment_deployment, _LocalService, _without_cassette
from chainframe._paths import is_there, local_path, reachable, refuse_link
from chainframe.testing import _normalize, _requests, _sources
from chainframe.testing._adjustable import faults_as_json, quirks_as_json
from chainframe.testing._logged import _Logged  # pyright: ignore[reportPrivateUsage]
from chainframe.testing._simulated import NETWORK, reject_network

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from types import UnionType

    from chainframe.testing._adjustable import Respond
    from chainframe.testing._types import Call, ClientOptions, Fault, Quirk, QuirkName


def _check_database(db: object) -> None:
    """Raise `ConfigError` for a URL, and for a symbolic link: SQLite would create the file that it names."""
    if isinstance(db, str | os.PathLike) and str(db):
        try:
            refuse_link(reachable(local_path(db, "db"), "db"))
        except (ExportError, InvalidParameterError) as error:
            raise ConfigError(str(error)) from None


class LocalService(_Logged):
    """An HTTP server on loopback that checks signatures and enforces the documented limits, or a simulation of it.

    It runs until `close`, or to the end of a `with` or `async with` block. While it runs, `faults`, `quirks`,
    `respond`, `growth`, `reorg`, `late`, `pending`, `rate_limit` and `clock_skew` can be set.

    Parameters
    ----------
    transactions, seed : int
        Number of transactions of the synthetic data, and its seed. The same pair gives the same data; 0 transactions
        give none.
    deployment : Deployment, optional
        The deployment to implement.
    rate_limit : float, optional
        Requests allowed per second. Default: unlimited.
    growth : int
        Records that each growing list gains at its head after each request for a list.
    growth_rate : float, optional
        Records that each growing list gains per second. Default: none.
    reorg : tuple of int, optional
        Two numbers (n, m): after every n-th request for a list, a reorganization replaces the newest m heights of both
        chains. Their blocks get other hashes. About half of their records are included again, some of them in the next
        block; each of the others is replaced by a new one.
    late : tuple of float and int, optional
        A share of the records that the lists gain, and a number of heights (main chain or zone chain) by which the
        chain has grown when such a record is listed, at its own height. Blocks are never late.
    pending : tuple of float and int, optional
        A share of the transactions that the lists gain with the state "pending", and the number of main-chain heights
        after which it becomes "success".
    faults : sequence of Fault
        Faults to inject.
    quirks : sequence of str or Quirk
        Ways in which deployed services contradict their documents; see `Quirk`.
    respond : callable, optional
        Called with each request, a `LoggedRequest` without a status; returns a response, or None for the regular one.
        A response is a `Fault`, of kind "body" unless it names another: `{"json": {...}}`, `{"kind": "reset"}`.
    compression : {"gzip"}, optional
        Compresses responses to requests that accept it, as those of `Client` do. Default: none is compressed.
    max_result_window : int, optional
        Number of records of a main-chain list that can be paged through. Default: the deployment's `result_window`.
        Clients made by `client` use the same number.
    data : mapping, optional
        Records to serve, by the names of the calls that return them; see `load`.
    db : str or path, optional
        SQLite file that keeps the data, and everything that is loaded, for a later service. Several services may share
        it, in any number of processes. Default: in memory.
    port : int
        Port to listen on; 0 selects a free one.
    simulated : bool
        Serves the clients made by `client` without a socket, in virtual time: retries, throttles, delays and rate
        limits take no time, `report.elapsed` has the virtual seconds, and one `seed` always gives the same requests at
        the same times if they come from one thread. There is no `url` for other programs.
    main_chain, zone_chain : str
        Short names of the two chains.

    Raises
    ------
    ConfigError
        A setting is invalid, the port is taken, or the file of the database is damaged, foreign, in use with other data
        or cannot be written.

    Examples
    --------
    >>> with LocalService(transactions=1_000, seed=7) as service, service.client() as client:
    ...     tokens = client.tokens().collect()
    ...     service.faults = [{"kind": "throttle", "times": 3}]
    ...     service.clock_skew = 90.0
    """

    __slots__ = ("__weakref__", "_simulated")

    @suggesting
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
        late: tuple[float, int] | None = None,
        pending: tuple[float, int] | None = None,
        faults: Sequence[Fault] = (),
        quirks: Sequence[QuirkName | Quirk] = (),
        respond: Respond | None = None,
        compression: Literal["gzip"] | None = None,
        max_result_window: int | None = None,
        data: Mapping[str, Any] | None = None,
        db: str | PathLike[str] | None = None,
        port: int = 0,
        simulated: bool = False,
        main_chain: str = "MAIN",
        zone_chain: str = "ZONE_CHAIN",
    ) -> None:
        _require("simulated", simulated, bool, "True or False")
        _require("deployment", deployment, Deployment | None, "a Deployment or None")
        _require("data", data, Mapping | None, "a mapping of calls to their records")
        _check_database(db)
        if simulated:
            _require("port", port, int, "an integer")
            reject_network({"port": port or None, "compression": compression})
        self._simulated = simulated
        native = _LocalService(
            simulated=simulated,
            transactions=transactions,
            seed=seed,
            deployment=deployment or _environment_deployment(),
            rate_limit=rate_limit,
            growth=growth,
            growth_rate=growth_rate,
            reorg=reorg,
            late=late,
            pending=pending,
            faults_json=faults_as_json(faults),
            quirks_json=quirks_as_json(quirks),
            compression=compression,
            max_result_window=max_result_window,
            db=db,
            port=port,
            main_chain=main_chain,
            zone_chain=zone_chain,
        )
        super().__init__(native)
        self._serve(respond, data or {})

    def _serve(self, respond: Respond | None, data: Mapping[str, Any]) -> None:
        try:
            self.respond = respond
            for call, records in data.items():
                self.load(cast("Call", call), records)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Base URL, such as `http://127.0.0.1:40123`. A simulated service has none, and raises `ConfigError`."""
        if self._simulated:
            raise ConfigError("url: a simulated service has no URL; use its client(), or start it with simulated=False")
        return self._native.url

    @property
    def api_key(self) -> str:
        """API key of the only account."""
        return self._native.api_key

    @property
    def secret_key(self) -> str:
        """Secret key of the only account."""
        return self._native.secret_key

    @property
    def passphrase(self) -> str:
        """Passphrase of the only account."""
        return self._native.passphrase

    @property
    def main_chain(self) -> str:
        """Short name of the main chain."""
        return self._native.main_chain

    @property
    def zone_chain(self) -> str:
        """Short name of the zone chain."""
        return self._native.zone_chain

    @property
    def deployment(self) -> Deployment:
        """The deployment that the service implements."""
        return self._native.deployment

    @property
    def env(self) -> dict[str, str]:
        """The `CHAINFRAME_*` variables with which clients and processes use this service.

        For code that makes its own client: `monkeypatch.setenv` each of them, or use the fixture `local_service_env`.
        """
        named = ("api_key", "secret_key", "passphrase", "main_chain", "zone_chain")
        settings = {"base_url": self.url, **{name: getattr(self, name) for name in named}}
        settings["deployment"] = json.dumps(settings_of(self.deployment))
        return {f"CHAINFRAME_{name.upper()}": value for name, value in settings.items()}

    def load(self, call: Call, data: Any) -> None:  # noqa: ANN401 - any library's table
        """Serve these records for a call, in place of synthetic data and of records loaded before.

        Values and order are kept exactly: the first record is the newest of its list. All filters work, and lists have
        pages; they do not grow, and none is limited to its last year. Other calls are not affected: load a transaction
        for each call that is to return it.

        Parameters
        ----------
        call : str
            Name of a method of `Client`, such as "blocks".
        data : table, iterable or path
            A table or data frame of any library, `Records`, an iterable of records or mappings, the path of a
            `.parquet`, `.csv`, `.jsonl` or `.json` file of records, a directory written by `Query.to_parquet`, or a
            `.json` file with a response of the API, or that response as a dict. JSON of records or of a response may be
            given as text or bytes, which begin with "[" or "{". Fields have the names of attributes or
            those of the API; missing fields, and NaN in a pandas frame, are null. In records with names of the API
            other members are ignored, unless they look like a misspelt field.

        Raises
        ------
        ConfigError
            The call does not exist, a file cannot be read, a field or value is invalid, or a row lacks what the
            required argument of the call selects by; the message names the line or row. Or the file `db` cannot be
            written.

        Examples
        --------
        >>> service.load("token_transfers", "transfers.parquet")
        >>> service.load("blocks", [cf.Block(height=1), {"height": 0, "block_time": "2026-01-31T00:00:00Z"}])
        """
        _requests.endpoint(call)
        content = _sources.content(data)
        if isinstance(content, bytes):
            self._native.load_body(call, content, _sources.response_name(data))
        else:
            self._native.load(call, *_normalize.columns(call, content, self.deployment))

    def load_cassette(self, path: str | PathLike[str]) -> int:
        """Serve the responses of a cassette to the requests that they were recorded for.

        The last of several responses to one request is served. From then on no synthetic data is served: any other
        request gets an error with code 50044 and a message that names the closest recording, which the client raises
        as `NotFoundError`.

        Parameters
        ----------
        path : str or path
            The cassette.

        Returns
        -------
        int
            Number of responses.

        Raises
        ------
        CassetteError
            The file is not a cassette.
        ConfigError
            The file does not exist, or was recorded from another deployment; or the file `db` cannot be written.

        Examples
        --------
        >>> service.load_cassette("cassettes/test_report/test_report.jsonl")
        """
        file = local_path(path, "path")
        if not is_there(file):
            raise ConfigError(f"path must be a file; {file} does not exist")
        return self._native.load_cassette(file)

    def client(self, **overrides: Unpack[ClientOptions]) -> Client:
        """Create a client of this service.

        The client ignores `CHAINFRAME_CASSETTE`, and with it the fixture `cassette`: pass `cassette=` to record.

        Parameters
        ----------
        **overrides : ClientOptions
            Arguments of `Client`.

        Returns
        -------
        Client

        Examples
        --------
        >>> with service.client(strict=True) as client:
        ...     blocks = client.blocks().collect()
        """
        if self._simulated:
            reject_network({name: overrides.get(name) for name in NETWORK})
        settings: ClientOptions = {
            "base_url": self._native.url,
            "main_chain": self.main_chain,
            "zone_chain": self.zone_chain,
            "deployment": self.deployment,
        }
        if overrides.get("credentials") is None:
            settings |= {"api_key": self.api_key, "secret_key": self.secret_key, "passphrase": self.passphrase}
        settings |= overrides
        client = Client(**settings)
        if overrides.get("cassette") is None:
            client = _without_cassette(client)
        return self._native.simulate(client) if self._simulated else client

    def close(self) -> None:
        """Stop the service. Closing it again has no effect.

        Examples
        --------
        >>> service.close()
        """
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "simulated=True" if self._simulated else f"url={self.url!r}"
        return f"LocalService({where}, main_chain={self.main_chain!r}, zone_chain={self.zone_chain!r})"


def _require(setting: str, value: object, expected: type | UnionType, description: str) -> None:
    if not isinstance(value, expected):
        raise ConfigError(f"{setting} must be {description}; got {short(value)}")
