"""The native core. `chainframe` re-exports every public name of this module.

A query sends nothing until it is iterated, collected or converted. Every method that sends requests may raise a
subclass of `chainframe.ServiceError` or `chainframe.TransportError`, `ResponseFormatError` for a response that does not
conform to the API, and `PaginationError` for a list that cannot be read completely.

In the examples `cf` is `chainframe` and `client` is a `cf.Client()`.
"""

from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, BinaryIO, ClassVar, Generic, Literal, NoReturn, Self, TypeVar, final, overload

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import disjoint_base

from chainframe._credentials import Credentials
from chainframe.attempts import Attempt
from chainframe.datasets import Dataset
from chainframe.exports import Export
from chainframe.partitions import Partition
from chainframe.sinks import Synced

_R = TypeVar("_R", bound=Record)
_R_co = TypeVar("_R_co", bound=Record, default=Any, covariant=True)
_T_co = TypeVar("_T_co", covariant=True)

# Written by PyO3, with private names.
__all__ = [
    "AddressTransaction",
    "Block",
    "Cache",
    "Cassette",
    "ChainTransaction",
    "Client",
    "CrossChainTransaction",
    "DecodedLogs",
    "Deployment",
    "Estimate",
    "Event",
    "EventLog",
    "Follow",
    "Hint",
    "LargeTransaction",
    "Page",
    "Query",
    "RateLimitState",
    "Record",
    "Records",
    "Report",
    "Schema",
    "Stream",
    "Token",
    "TokenTransfer",
    "Transaction",
    "Undo",
    "Usage",
    "_FollowBuffer",
    "_LocalService",
    "_PartBuffer",
    "_Positions",
    "__version__",
    "_block_network",
    "_client_count",
    "_declaration",
    "_decode_response",
    "_environment_cache",
    "_environment_deployment",
    "_evidence",
    "_forget_cassette",
    "_keep_origins",
    "_merge_cassette",
    "_name_cassette",
    "_openapi",
    "_package_attribute",
    "_proxy",
    "_release_memory",
    "_restore_cache",
    "_restore_cassette",
    "_restore_client",
    "_restore_deployment",
    "_restore_estimate",
    "_restore_hint",
    "_restore_page",
    "_restore_query",
    "_restore_rate_limit_state",
    "_restore_record",
    "_restore_records",
    "_restore_report",
    "_restore_schema",
    "_restore_usage",
    "_resume_query",
    "_send_recorded",
    "_sent_requests",
    "_sent_value",
    "_set_result",
    "_set_telemetry",
    "_share_cassette",
    "_signature",
    "_split_positions",
    "_unname_cassette",
    "_without_cassette",
]

__version__: str

@final
class Deployment:
    """Names and limits of one deployment of the API.

    Deployments differ in their names: in headers (`SVC-ACCESS-KEY`), in paths (`/api/v5/main/zone/...`), in JSON
    members (`zoneTxHash`) and in the signed string. chainframe returns neutral names for every deployment:
    `zone_tx_hash`, `"MainToZone"`. Frozen, hashable, comparable, picklable.

    Parameters
    ----------
    header_prefix : str
        Prefix of the header names.
    main, zone : str
        Names of the main chain and of the zone chain in paths and JSON members.
    prehash : str
        Template of the signed string, of `{timestamp}`, `{method}`, `{target}` (path with query) and `{body}`.
    signature_encoding : {"base64", "hex"}
        Encoding of the signature.
    result_window : int
        Number of records of a main-chain list that can be paged through.
    log_window : int
        Number of logs that the API returns for a transaction.
    max_page_size : int, optional
        Number of records of the largest page of every list. Default: 50, or 100 where the API documents that.
    signed : bool
        If False, requests have the API key alone, without signature, passphrase and timestamp.

    Raises
    ------
    ConfigError
        For a name that cannot appear in a header or a path, and for an unknown placeholder.

    Examples
    --------
    >>> cf.Client(deployment=cf.Deployment(header_prefix="XY", main="alpha", zone="beta"))
    """

    def __new__(
        cls,
        *,
        header_prefix: str = "SVC",
        main: str = "main",
        zone: str = "zone",
        prehash: str = "{timestamp}{method}{target}{body}",
        signature_encoding: Literal["base64", "hex"] = "base64",
        result_window: int = 10_000,
        log_window: int = 1_000,
        max_page_size: int | None = None,
        signed: bool = True,
    ) -> Self: ...
    # For `unittest.mock`, which checks a constructor by this.
    def __init__(
        self,
        *,
        header_prefix: str = "SVC",
        main: str = "main",
        zone: str = "zone",
        prehash: str = "{timestamp}{method}{target}{body}",
        signature_encoding: Literal["base64", "hex"] = "base64",
        result_window: int = 10_000,
        log_window: int = 1_000,
        max_page_size: int | None = None,
        signed: bool = True,
    ) -> None: ...
    @property
    def header_prefix(self) -> str: ...
    @property
    def main(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def prehash(self) -> str: ...
    @property
    def signature_encoding(self) -> Literal["base64", "hex"]: ...
    @property
    def result_window(self) -> int: ...
    @property
    def log_window(self) -> int: ...
    @property
    def max_page_size(self) -> int | None: ...
    @property
    def signed(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Client:
    """A client of the API. One client serves all threads, event loops and forked children.

    A call returns a lazy `Query` and sends nothing. A setting that is not passed is read from its `CHAINFRAME_*`
    variable, where it has one. A client pickles without its secrets, which are read from the environment where it is
    unpickled.

    Parameters
    ----------
    base_url : str, optional
        URL of the API, `https://`, or `http://` on loopback. Default: `CHAINFRAME_BASE_URL`.
    api_key, secret_key, passphrase : str, optional
        Credentials; never shown, pickled or put into an error. Default: `CHAINFRAME_API_KEY`, `CHAINFRAME_SECRET_KEY`
        and `CHAINFRAME_PASSPHRASE`.
    main_chain, zone_chain : str, optional
        Short names of the two chains. Default: `CHAINFRAME_MAIN_CHAIN` or "MAIN", `CHAINFRAME_ZONE_CHAIN` or
        "ZONE_CHAIN".
    deployment : Deployment, optional
        Names and limits of the deployment. Default: `CHAINFRAME_DEPLOYMENT`, a JSON object of arguments of
        `Deployment`, or that of the API's documents.
    timeout : float
        Time limit of one attempt, in seconds.
    deadline : float or None
        Time limit of one request with all its retries, in seconds, from the moment it may be sent. None is unlimited.
    max_retries : int
        Maximum number of retries after a transient error.
    rate_limit : "auto", float or None
        "auto" adapts to the server, a number is requests per second, None is unlimited. Default:
        `CHAINFRAME_RATE_LIMIT` ("auto", "none" or a number), or "auto".
    max_requests : int, optional
        Maximum number of requests that the client sends, with all retries, threads, forked children and clients of
        `with_options`. The next one raises `BudgetExceededError`. Default: `CHAINFRAME_MAX_REQUESTS`, or no bound.
    concurrency : "auto" or int
        Maximum number of requests in flight, from 1 to 256. "auto" is rate times latency, as far as the service has
        shown them: from 2 to 64, and no more than 32 MiB of responses. Default: `CHAINFRAME_CONCURRENCY` ("auto" or
        an integer), or "auto".
    strict : bool
        If True, an incomplete result raises `IncompleteResultError` instead of a warning.
    numbers : {"decimal", "float", "string"}, optional
        Type of amounts and estimates, as for `Records`, of the conversions and exports that are not given `numbers`.
        Default: `CHAINFRAME_NUMBERS`, or the default of each: "decimal" in frames and Parquet files, "string" in CSV
        and JSON files and of decoded logs.
    max_response_bytes : int
        Maximum size of a response body in bytes, compressed or not, up to 2 GiB.
    proxy : str, optional
        URL of a proxy, for an `https://` base URL only. Default: that of the environment (`HTTPS_PROXY`, `ALL_PROXY`,
        `NO_PROXY`), except for loopback.
    ca_bundle : str or path, optional
        PEM file, or directory of such files, with the certificates to trust. Default: `REQUESTS_CA_BUNDLE`, or those of
        the system.
    cassette : chainframe.testing.Cassette, optional
        Records the interactions, or replays them in place of the API; a client that only replays needs no other
        setting. Each query then sends one request at a time, so that recordings are deterministic. Default:
        `CHAINFRAME_CASSETTE`.
    progress : "auto" or bool
        "auto" shows a progress bar in a terminal or notebook for runs over two seconds, True always, False never. Needs
        the extra `progress`.

    on_attempt : callable, optional
        Called with an `Attempt` after each attempt, on one thread of the process, in a copy of the context variables of
        the caller, before the result is returned. It must not wait for requests. An exception goes to
        `sys.unraisablehook`.
    credentials : callable, optional
        Called for `Credentials` in place of the three secrets: before the first request, a minute before they expire,
        and once after the service rejects them. It runs in a thread of its own and may wait for a network. The rate
        limiter is that of the callable, whatever it returns. A client is pickled with the name of the callable.
    cache : Cache, str or path, optional
        Directory with results of earlier calls, for `collect`, the `to_*` methods and their async forms: what cannot
        change any more is not requested again. Default: `CHAINFRAME_CACHE`, or no cache. A client with a cassette has
        none.

    Raises
    ------
    ConfigError
        For a setting that is missing or malformed.

    Examples
    --------
    >>> with cf.Client() as client:
    ...     transfers = client.token_transfers("0x2b59...").collect()
    """

    def __new__(
        cls,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        secret_key: str | None = None,
        passphrase: str | None = None,
        main_chain: str | None = None,
        zone_chain: str | None = None,
        deployment: Deployment | None = None,
        timeout: float = 30.0,
        deadline: float | None = 120.0,
        max_retries: int = 5,
        rate_limit: Literal["auto"] | float | None = "auto",
        max_requests: int | None = None,
        concurrency: Literal["auto"] | int = "auto",
        strict: bool = False,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_response_bytes: int = 67108864,
        proxy: str | None = None,
        ca_bundle: str | PathLike[str] | None = None,
        cassette: Cassette | None = None,
        progress: Literal["auto"] | bool = "auto",
        on_attempt: Callable[[Attempt], object] | None = None,
        credentials: Callable[[], Credentials] | None = None,
        cache: Cache | str | PathLike[str] | None = None,
    ) -> Self: ...
    # For `unittest.mock`, which checks a constructor by this.
    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        secret_key: str | None = None,
        passphrase: str | None = None,
        main_chain: str | None = None,
        zone_chain: str | None = None,
        deployment: Deployment | None = None,
        timeout: float = 30.0,
        deadline: float | None = 120.0,
        max_retries: int = 5,
        rate_limit: Literal["auto"] | float | None = "auto",
        max_requests: int | None = None,
        concurrency: Literal["auto"] | int = "auto",
        strict: bool = False,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_response_bytes: int = 67108864,
        proxy: str | None = None,
        ca_bundle: str | PathLike[str] | None = None,
        cassette: Cassette | None = None,
        progress: Literal["auto"] | bool = "auto",
        on_attempt: Callable[[Attempt], object] | None = None,
        credentials: Callable[[], Credentials] | None = None,
        cache: Cache | str | PathLike[str] | None = None,
    ) -> None: ...
    def tokens(
        self,
        *,
        protocol_type: Literal["token_20", "token_721", "token_1155", "token_10"] | None = None,
        token_contract_address: str | bytes | Iterable[str | bytes] | None = None,
        start_time: datetime | str | int | None = None,
        end_time: datetime | str | int | None = None,
        order_by: Literal["totalMarketCap", "transactionAmount24h"] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[Token]:
        """Tokens of the main chain, by market capitalization unless ordered otherwise.

        Parameters
        ----------
        protocol_type : {"token_20", "token_721", "token_1155", "token_10"}, optional
            Kind of tokens; the API returns `token_20` by default. A complete result has all tokens of one kind: there
            is a list for each, and none for all.
        token_contract_address : str or iterable of str, optional
            Contract of one token, or of several: their lists are read as a set.
        start_time, end_time : datetime, str or int, optional
            Range of issue dates, both ends inclusive: aware datetimes, ISO 8601 strings with a UTC offset, Unix seconds
            or milliseconds. A range over a year is requested by year; order, `max_items` and `first` then apply within
            each year.
        order_by : {"totalMarketCap", "transactionAmount24h"}, optional
            Order of `token_20` tokens.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 50, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of Token

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> client.tokens(order_by="transactionAmount24h", max_items=20).to_pandas()
        """

    def token_transfers(
        self,
        token_contract_address: str | bytes | Iterable[str | bytes],
        *,
        min_amount: Decimal | int | str | None = None,
        max_amount: Decimal | int | str | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[TokenTransfer]:
        """Transfers of one token.

        Parameters
        ----------
        token_contract_address : str or iterable of str
            Contract of the token, or of several tokens: their lists are read as a set.
        min_amount, max_amount : Decimal, int or str, optional
            Range of amounts in whole tokens. The API's document does not say whether it includes its ends. Floats
            raise, since they are not exact.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 50, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of TokenTransfer

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> for transfer in client.token_transfers("0x2b59...", min_amount="0.5"):
        ...     print(transfer.transaction_time, transfer.amount)
        """

    def cross_chain_transactions(
        self,
        *,
        tx_id: str | Iterable[str] | None = None,
        height: int | Iterable[int] | None = None,
        start_height: int | None = None,
        end_height: int | None = None,
        start_time: datetime | str | int | None = None,
        end_time: datetime | str | int | None = None,
        address: str | bytes | Iterable[str | bytes] | None = None,
        from_address: str | bytes | Iterable[str | bytes] | None = None,
        to_address: str | bytes | Iterable[str | bytes] | None = None,
        token_contract_address: str | bytes | Iterable[str | bytes] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[CrossChainTransaction]:
        """Transactions that move value between the main chain and the zone chain.

        Parameters
        ----------
        tx_id : str or iterable of str, optional
            Hash of one transaction, or of several: their lists are read as a set.
        height : int or iterable of int, optional
            Height of one block of the zone chain, or of several: their lists are read as a set.
        start_height, end_height : int, optional
            Lowest and highest height of the zone chain, both inclusive.
        start_time, end_time : datetime, str or int, optional
            Range of block times, both ends inclusive: aware datetimes, ISO 8601 strings with a UTC offset, Unix seconds
            or milliseconds. A run first finds their heights, as `height_at` does.
        address : str or iterable of str, optional
            Address of the sender or of the receiver, or several: their lists are read as a set.
        from_address, to_address : str or iterable of str, optional
            Address of the sender, of the receiver, or several: their lists are read as a set.
        token_contract_address : str or iterable of str, optional
            Contract of the token moved, or several: their lists are read as a set.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 100, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of CrossChainTransaction

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> client.cross_chain_transactions(start_height=1_000, end_height=2_000).to_polars()
        """

    def blocks(
        self,
        *,
        height: int | Iterable[int] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[Block]:
        """Blocks of the zone chain, newest first.

        Parameters
        ----------
        height : int or iterable of int, optional
            Height of one block, or of several: their lists are read as a set.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 100, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of Block

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> newest = client.blocks().first()
        """

    def address_transactions(
        self,
        address: str | bytes | Iterable[str | bytes],
        *,
        start_height: int | None = None,
        end_height: int | None = None,
        start_time: datetime | str | int | None = None,
        end_time: datetime | str | int | None = None,
        direction: Literal["from", "to"] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[AddressTransaction]:
        """Normal transactions of one address, newest first.

        The API returns the last 12 months, or the 12 months before the address's last transaction. The result of a
        range that begins less than 364 days ago is complete: with `start_height`, one more request determines its time.
        With `direction="from"` it is also complete if the nonces begin at 0 without a gap: `Report.evidence`.

        Parameters
        ----------
        address : str or iterable of str
            The address, or several: their lists are read as a set.
        start_height, end_height : int, optional
            Lowest and highest height, both inclusive.
        start_time, end_time : datetime, str or int, optional
            Range of block times, both ends inclusive: aware datetimes, ISO 8601 strings with a UTC offset, Unix seconds
            or milliseconds. A run first finds their heights, as `height_at` does.
        direction : {"from", "to"}, optional
            Only transactions that the address sent ("from") or received ("to").
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 50, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of AddressTransaction

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> sent = client.address_transactions("0x9f0c...", direction="from").collect()
        """

    def large_transactions(
        self,
        *,
        min_amount: Decimal | int | str | None = None,
        height: int | Iterable[int] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[LargeTransaction]:
        """Transactions of the main chain above an amount.

        Parameters
        ----------
        min_amount : Decimal, int or str, optional
            Minimum amount in whole coins, at least 100, the default.
        height : int or iterable of int, optional
            Height of one block, or of several: their lists are read as a set.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 50, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of LargeTransaction

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> client.large_transactions(min_amount=10_000).to_pandas()
        """

    def transactions(
        self,
        *,
        block_hash: str | bytes | Iterable[str | bytes] | None = None,
        height: int | Iterable[int] | None = None,
        start_height: int | None = None,
        end_height: int | None = None,
        start_time: datetime | str | int | None = None,
        end_time: datetime | str | int | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        unique: bool = False,
    ) -> Query[ChainTransaction]:
        """Transactions of the main chain, newest first.

        The API has no range of heights: a range is requested height by height, which also reaches beyond the 10,000
        records at which the plain list ends. Without an upper end, it ends with the newest block at the start of the
        run.

        Parameters
        ----------
        block_hash : str or iterable of str, optional
            Hash of one block, or of several: their lists are read as a set.
        height : int or iterable of int, optional
            Height of one block, or of several: their lists are read as a set.
        start_height, end_height : int, optional
            Lowest and highest height, both inclusive.
        start_time, end_time : datetime, str or int, optional
            Range of block times, both ends inclusive: aware datetimes, ISO 8601 strings with a UTC offset, Unix seconds
            or milliseconds. A run first finds their heights, as `height_at` does.
        chain : str, optional
            Short name of the chain, instead of the client's.
        page_size : int, optional
            Records per page, up to 50, the default: fewer requests.
        max_items : int, optional
            Maximum number of records to return.
        unique : bool, default False
            With several values of an argument: return each record once, though several of the lists have it.

        Returns
        -------
        Query of ChainTransaction

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> client.transactions(start_height=4_000_000, end_height=4_000_099).collect()
        >>> client.transactions(start_time="2026-01-31T00:00Z").collect()
        """

    def transactions_by_hash(
        self, tx_ids: str | bytes | Iterable[str | bytes], *, chain: str | None = None
    ) -> Query[Transaction]:
        """Transactions of the main chain by their hashes, in the order given.

        Parameters
        ----------
        tx_ids : str or iterable of str
            One hash or several, requested 20 at a time. Hashes that the API does not return are in `report.missing`,
            and the result is incomplete.
        chain : str, optional
            Short name of the chain, instead of the client's.

        Returns
        -------
        Query of Transaction

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> client.transactions_by_hash(["0x71c8...", "0x0a52..."]).to_dicts()
        """

    def logs(self, tx_ids: str | bytes | Iterable[str | bytes], *, chain: str | None = None) -> Query[EventLog]:
        """Event logs of one transaction or several, in the order given.

        Parameters
        ----------
        tx_ids : str or iterable of str
            One hash or several, requested one at a time. The API returns up to about 1,000 logs of a transaction; the
            report says if there may be more.
        chain : str, optional
            Short name of the chain, instead of the client's.

        Returns
        -------
        Query of EventLog

        Raises
        ------
        InvalidParameterError
            For a value that the API would reject. Nothing is sent.

        Examples
        --------
        >>> [log.topics for log in client.logs("0x71c8...")]
        """

    def height_at(self, time: datetime | str | int, *, chain: str = "main") -> int:
        """Return the height of the last block that is not later than a time.

        Finds it by interpolation, in three to six requests as a rule, and in up to nine. A cache keeps the height
        once the next one has a settled block.

        Parameters
        ----------
        time : datetime, str or int
            An aware datetime, an ISO 8601 string with a UTC offset, or Unix seconds or milliseconds.
        chain : str
            The chain: "main" or "zone", or the short name that the client has for it. The API lists no blocks of the
            main chain: blocks without transactions count as absent.

        Returns
        -------
        int

        Raises
        ------
        InvalidParameterError
            If the value is not a time, or is before the first block (the lowest that was found, where the list does
            not reach back to it).

        Examples
        --------
        >>> height = client.height_at("2024-05-01T00:00Z")
        >>> client.transactions(start_height=height + 1, end_height=height + 100)
        """

    async def height_at_async(self, time: datetime | str | int, *, chain: str = "main") -> int:
        """`height_at` for asyncio."""

    def resume(self, cursor: str, query: Query[Any] | None = None) -> Query[Any]:
        """Return the query of a cursor: exactly the records not returned yet, in any process.

        A cursor comes from `Page.cursor`, `Query.cursor`, or the `cursor` of an error. It is a small JSON string
        without secrets. Reasons why the result is incomplete so far are in the report of the resumed run.

        Parameters
        ----------
        cursor : str
            The cursor.
        query : Query, optional
            Query that the cursor is of, needed for one of more than 1,000 values: the cursor does not have them. Their
            order may be another. A query of another call, or with other values or arguments, is refused. Heights, times
            and hashes of a query of one value are not compared: a cursor may have others in their place.

        Returns
        -------
        Query

        Raises
        ------
        InvalidParameterError
            For a string that is not a cursor, was changed, has another version, or belongs to another chain or
            deployment, or without the query that it needs, or with another query.

        Examples
        --------
        >>> try:
        ...     for page in client.token_transfers("0x2b59...").pages():
        ...         save(page)
        ... except cf.ServiceUnavailableError as error:
        ...     rest = client.resume(error.cursor)
        """

    @property
    def base_url(self) -> str:
        """URL of the API."""

    @property
    def main_chain(self) -> str:
        """Short name of the main chain."""

    @property
    def zone_chain(self) -> str:
        """Short name of the zone chain."""

    @property
    def deployment(self) -> Deployment:
        """Names and limits of the deployment."""

    @property
    def numbers(self) -> Literal["decimal", "float", "string"] | None:
        """Type of amounts of the conversions and exports that are not given `numbers`; None is the default of each."""

    @property
    def cache(self) -> Cache | None:
        """Cache of the client, if it has one."""

    @property
    def rate_limit_state(self) -> RateLimitState:
        """Current state of the rate limiter; "auto" shares one among all clients of a key.

        Examples
        --------
        >>> client.rate_limit_state
        RateLimitState(rate=7.21, waiting=3, throttled=2, pause=0.109)
        """

    @property
    def usage(self) -> Usage:
        """Requests, bytes and waits of this client so far, with all clients of `with_options`.

        The difference of two shows what the calls between them took. A forked child continues with a copy of its
        parent's figures.

        Examples
        --------
        >>> before = client.usage
        >>> records = client.blocks().collect()
        >>> print(client.usage - before)
        21 requests, 0 retries, 0 throttled, 612.4 kB received, 0.7 s held back by the rate limiter
        """

    def _repr_html_(self) -> str: ...
    def with_options(
        self,
        *,
        timeout: float = ...,
        deadline: float | None = ...,
        max_retries: int = ...,
        rate_limit: Literal["auto"] | float | None = ...,
        max_requests: int | None = ...,
        concurrency: Literal["auto"] | int = ...,
        strict: bool = ...,
        numbers: Literal["decimal", "float", "string"] | None = ...,
        cache: Cache | str | PathLike[str] | None = ...,
        progress: Literal["auto"] | bool = ...,
    ) -> Client:
        """Return a client with other options that shares the connections of this one.

        It also shares the clock correction, the retry budget, `usage` and, unless its `rate_limit` or its `concurrency`
        is another one, the rate limiter and the limit of requests in flight. Closing either client closes the idle
        connections of both.

        Parameters
        ----------
        timeout : float, optional
            Time limit of one attempt, in seconds.
        deadline : float or None, optional
            Time limit of one request with all its retries, in seconds.
        max_retries : int, optional
            Maximum number of retries after a transient error.
        rate_limit : "auto", float or None, optional
            "auto", requests per second, or None for unlimited.
        max_requests : int or None, optional
            Maximum number of requests of the returned client. They also count against the maximum of this one.
        concurrency : "auto" or int, optional
            Maximum number of requests in flight. Those of this client are not counted.
        strict : bool, optional
            If True, an incomplete result raises `IncompleteResultError`.
        numbers : {"decimal", "float", "string"} or None, optional
            Type of amounts of the conversions and exports that are not given `numbers`. None is the default of each.
        cache : Cache, str, path or None, optional
            Directory with results of earlier calls. None requests everything.
        progress : "auto" or bool, optional
            When to show a progress bar.

        Returns
        -------
        Client
            An option that is not passed is that of this client.

        Raises
        ------
        ConfigError
            For a malformed option.

        Examples
        --------
        >>> client.with_options(timeout=120.0, strict=True).tokens().collect()
        """

    def close(self) -> None:
        """Close the connections; a later request opens new ones. The end of a `with` block does the same.

        Examples
        --------
        >>> client.close()
        """

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    @property
    def _learned(self) -> dict[str, set[str]]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Cache:
    """Directory with results of earlier calls, for `Client(cache=...)`.

    Heights more than `settle` below the head of the chain are taken not to change. Lists are continued from what is
    kept of them, settled heights, blocks and lookups are not requested again. Whatever contradicts the service is
    removed and read again. No key and no secret is stored: all accounts of a service share a result. Several processes
    may use a directory at the same time. Frozen, comparable, picklable.

    Parameters
    ----------
    directory : str or path
        Local directory, which is created if it does not exist.
    settle : int
        Number of heights below the head of the chain that may still change, at least 1.
    max_age : float
        Seconds after which a result is read again as a whole. Default: 30 days.
    max_bytes : int
        Maximum size of all records. Those that were used the longest time ago are removed first. Default: 1 GiB.

    Raises
    ------
    ConfigError
        For a directory that cannot be created, and for another value that is out of range.

    Examples
    --------
    >>> client = cf.Client(cache=cf.Cache("cache", max_age=7 * 86_400))
    >>> frame = client.blocks().to_pandas()
    """

    def __new__(
        cls,
        directory: str | PathLike[str],
        *,
        settle: int = 32,
        max_age: float = 2592000.0,
        max_bytes: int = 1073741824,
    ) -> Self: ...
    # For `unittest.mock`, which checks a constructor by this.
    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        settle: int = 32,
        max_age: float = 2592000.0,
        max_bytes: int = 1073741824,
    ) -> None: ...
    @property
    def directory(self) -> Path:
        """Absolute path of the directory."""

    @property
    def settle(self) -> int:
        """Number of heights below the head of the chain that may still change."""

    @property
    def max_age(self) -> float:
        """Seconds after which a result is read again as a whole."""

    @property
    def max_bytes(self) -> int:
        """Maximum size of all records in bytes."""

    def entries(self) -> list[dict[str, Any]]:
        """Return the results that are kept.

        Returns
        -------
        list of dict
            The result that was used last first. Each has `base_url`, `call`, `query` (chain and arguments), `records`,
            `bytes`, `read_at` (when the whole of it was read) and `used_at`.

        Raises
        ------
        ConfigError
            If the database of the cache cannot be read.

        Examples
        --------
        >>> [(entry["call"], entry["records"]) for entry in client.cache.entries()]
        [('blocks', 3000)]
        """

    def clear(self) -> int:
        """Remove all results, also those of other versions of chainframe.

        Returns
        -------
        int
            Number of results that this version could use.

        Raises
        ------
        ConfigError
            If the files cannot be removed.

        Examples
        --------
        >>> client.cache.clear()
        1
        """

    def __eq__(self, other: object, /) -> bool: ...

@final
class RateLimitState:
    """State of a client's rate limiter at one moment.

    Examples
    --------
    >>> client.rate_limit_state.rate
    7.21
    """

    @property
    def rate(self) -> float | None:
        """Requests per second, or None while the rate is unlimited."""

    @property
    def waiting(self) -> int:
        """Number of requests waiting for their turn."""

    @property
    def throttled(self) -> int:
        """Number of responses so far that asked for fewer requests."""

    @property
    def pause(self) -> float:
        """Seconds until the next request may be sent."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Usage:
    """Requests that a client has sent, and what it has received.

    Examples
    --------
    >>> client.usage.requests
    21
    """

    @property
    def requests(self) -> int:
        """Number of requests sent, with retries."""

    @property
    def retries(self) -> int:
        """Number of requests that repeat a failed or an empty response."""

    @property
    def throttled(self) -> int:
        """Number of responses that asked for fewer requests."""

    @property
    def replayed(self) -> int:
        """Number of requests that a cassette answered; they are not in `requests`."""

    @property
    def cached(self) -> int:
        """Number of records that a cache had; they were not requested."""

    @property
    def bytes(self) -> int:
        """Size of all response bodies, decompressed."""

    @property
    def waited(self) -> float:
        """Seconds for which the rate limiter held requests back, summed over the requests."""

    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __rsub__(self, later: Usage, /) -> Usage: ...
    def __sub__(self, earlier: Usage, /) -> Usage:
        """Usage since an earlier one."""

@final
class Query(Generic[_R_co]):
    """A lazy query. Nothing is sent until it is iterated, collected or converted; each run fetches again.

    Iteration, in `for` and `async for`, yields records and fetches page by page. The blocking methods also work in a
    notebook under a running event loop. As an Arrow stream, a query can be read by other libraries:
    `duckdb.sql("from query limit 5")` sends one request.

    Every run may raise a subclass of `ServiceError`, `TransportError`, `ResponseFormatError` or `PaginationError`.

    Examples
    --------
    >>> query = client.token_transfers("0x2b59...")
    >>> for transfer in query: ...
    >>> async for transfer in query: ...
    """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    def __bool__(self) -> Literal[True]: ...
    def __len__(self) -> NoReturn: ...
    def __getitem__(self, _index: object, /) -> NoReturn: ...
    def __iter__(self) -> Stream[_R_co]: ...
    def __aiter__(self) -> Stream[_R_co]: ...
    def pages(self) -> Stream[Page[_R_co]]:
        """Iterate over the pages, in `for` or `async for`.

        Returns
        -------
        Stream of Page

        Examples
        --------
        >>> for page in query.pages():
        ...     print(page.number, "of", page.total_pages, len(page.records))
        """

    def batches(self, batch_size: int = 32_768, *, columns: Sequence[str] | None = None) -> Stream[Records[_R_co]]:
        """Iterate over batches of records in bounded memory, in `for` or `async for`.

        Parameters
        ----------
        batch_size : int
            Records per batch; the last batch may have fewer.
        columns : sequence of str, optional
            Columns to decode; all by default. The records have these columns only, in their usual order: another
            attribute raises `AttributeError`. Such a run keeps no records for `partial`.

        Returns
        -------
        Stream of Records

        Examples
        --------
        >>> for records in query.batches(batch_size=10_000):
        ...     write(records.to_arrow())
        """

    def to_arrow_batch_reader(
        self,
        batch_size: int = 32_768,
        numbers: Literal["decimal", "float", "string"] | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Return the result as a `pyarrow.RecordBatchReader`, which fetches as it is read and raises typed errors.

        Parameters
        ----------
        batch_size : int
            Rows per batch; the last batch may have fewer.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        columns : sequence of str, optional
            Columns to decode and convert, in this order; all by default.

        Returns
        -------
        pyarrow.RecordBatchReader

        Raises
        ------
        ImportError
            pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> pyarrow.dataset.write_dataset(query.to_arrow_batch_reader(), "transfers", format="parquet")
        """

    def collect(self) -> Records[_R_co]:
        """Fetch all records.

        Returns
        -------
        Records

        Raises
        ------
        IncompleteResultError
            With `strict=True`, if the result is incomplete; otherwise an `IncompleteResultWarning`.

        Examples
        --------
        >>> records = query.collect()
        """

    def __await__(self) -> Generator[Any, None, Records[_R_co]]: ...
    async def collect_async(self) -> Records[_R_co]:
        """`collect` for asyncio. `await query` does the same.

        Examples
        --------
        >>> first, second = await asyncio.gather(query.collect_async(), other.collect_async())
        """

    def first(self) -> _R_co | None:
        """Fetch the first record, with one request for one record.

        Returns
        -------
        Record or None
            None if the result is empty.

        Raises
        ------
        IncompleteResultError
            With `strict=True`, if there is no record and the result was not shown to be empty; without it a warning.

        Examples
        --------
        >>> newest = client.blocks().first()
        """

    async def first_async(self) -> _R_co | None:
        """`first` for asyncio."""

    def to_pandas(
        self,
        numbers: Literal["decimal", "float", "string"] | None = None,
        *,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Collect the result and convert it to a pandas DataFrame, as `Records.to_pandas` does.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        dtype_backend : {"numpy_nullable", "pyarrow"}, optional
            As in `pandas.read_csv`; pandas' default dtypes by default.
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        ImportError
            If pandas or pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> client.tokens(max_items=20).to_pandas()
        """

    async def to_pandas_async(
        self,
        numbers: Literal["decimal", "float", "string"] | None = None,
        *,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """`to_pandas` for asyncio.

        Examples
        --------
        >>> frame = await client.tokens(max_items=20).to_pandas_async()
        """

    def to_polars(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Collect the result and convert it to a polars DataFrame, as `Records.to_polars` does.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        ImportError
            If polars is not installed; the message has the command that installs it.

        Examples
        --------
        >>> client.tokens(max_items=20).to_polars()
        """

    async def to_polars_async(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """`to_polars` for asyncio."""

    def to_arrow(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Collect the result and convert it to a pyarrow Table, as `Records.to_arrow` does.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        ImportError
            If pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> client.tokens(max_items=20).to_arrow()
        """

    async def to_arrow_async(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """`to_arrow` for asyncio."""

    def dataset(self) -> Dataset:
        """Return the query as a `pyarrow.dataset.Dataset`, whose filters narrow the requests.

        DuckDB, `polars.scan_pyarrow_dataset`, Ibis and `Dataset.to_table(filter=...)` pass it their filters. Bounds on
        columns that the API has parameters for (heights, times, addresses, hashes, tokens, amounts) become arguments
        of the requests; the whole filter is applied to the records again. Columns that are not read are not decoded.
        Each scan fetches again.

        With several values of an argument, the dataset has a column of that name unless the records have it, and a
        filter on it reads the lists that it accepts.

        Returns
        -------
        chainframe.datasets.Dataset
            `explain(filter)` describes the queries that a filter becomes; `report` and `last_error` are those of the
            last scan.

        Raises
        ------
        ImportError
            If pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> transactions = client.transactions().dataset()
        >>> duckdb.sql("select count(*) from transactions where height between 18000000 and 18000009")
        """

    def scan(self) -> pl.LazyFrame:
        """Return the query as a polars `LazyFrame` whose filters narrow the requests; see `dataset`.

        Its terminals, and both sides of a self join, share what they fetch: up to 256 MiB of records are kept as long
        as the frame is, with all their columns. Another `scan()` fetches again.

        Returns
        -------
        polars.LazyFrame

        Raises
        ------
        ImportError
            If polars or pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> client.transactions().scan().filter(pl.col("height") == 18_000_000).select("tx_id", "amount").collect()
        """

    def to_dicts(self, *, json: bool = False, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Collect the result and convert it to dictionaries, as `Records.to_dicts` does.

        Parameters
        ----------
        json : bool
            If True, values that JSON lacks are strings, as for `Records.to_dicts`.
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> client.blocks(max_items=1).to_dicts()
        """

    async def to_dicts_async(self, *, json: bool = False, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """`to_dicts` for asyncio."""

    def to_parquet(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        settle: int | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_rows_per_file: int = 65_536,
        compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd",
        rows_per_group: int = 131_072,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the result as Parquet, exactly once, even if the process is killed and run again.

        An interrupted run keeps what it fetched; the same call continues it, in the snapshot that the first run read.
        A finished export sends no request. The directory's `_manifest.json` lists the files with their checksums.

        Parameters
        ----------
        path : str or path
            Directory for several files, created if it does not exist; or one file, if the name ends in ".parquet". A
            new directory whose name ends like that of another file, such as "blocks.pq", needs a "/" at its end. In an
            object store a URL that begins with `s3://`, `gs://` or `az://`.
        mode : {"resume", "overwrite", "error"}
            For a directory that holds an export: "resume" continues it or returns the finished one, "overwrite" writes
            a new one and keeps the old files until it is complete, "error" raises `ExportError`.
        since : Export, str or path, optional
            An earlier export of the same query, or its directory: only records newer than its newest are written, so
            that a series of exports has each record once. For lists that have their newest record first, and for ranges
            of heights or times, whose ends may differ.
        settle : int, optional
            Number of heights below the newest record at which the export of a directory ends, since a reorganization
            may still change them. With `since` it reads as many heights of the earlier export again, and writes what
            changed to `_corrections-*.data`; `chainframe.exports.read` applies them.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        max_rows_per_file : int
            Maximum number of rows of one file. A file is also closed every 25 seconds, and after 16 MiB of rows.
        compression : {"zstd", "snappy", "gzip", "lz4", "none"}
            Compression of the columns.
        rows_per_group : int
            Maximum number of rows of a row group, which readers skip as a whole. A group of a single file also ends
            after 8 MiB of rows.
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            Paths, number of rows and the report over all runs.

        Raises
        ------
        ExportError
            The directory holds something else or a damaged file, cannot be written, or is locked by another process.
        SettledHeightError
            A height changed more than `settle` heights below the end of the earlier export.
        IncompleteResultError
            With `strict=True`, after an incomplete result was written; otherwise an `IncompleteResultWarning`.
        ImportError
            pyarrow is not installed.

        Examples
        --------
        >>> client.cross_chain_transactions().to_parquet("transfers/monday")
        >>> client.cross_chain_transactions().to_parquet("transfers/tuesday", since="transfers/monday")
        """

    async def to_parquet_async(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        settle: int | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_rows_per_file: int = 65_536,
        compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd",
        rows_per_group: int = 131_072,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """`to_parquet` for asyncio."""

    def to_parquet_series(
        self,
        path: str | PathLike[str],
        *,
        settle: int | None = 64,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_rows_per_file: int = 65_536,
        compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd",
        rows_per_group: int = 131_072,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Add what is new to a directory of exports, each of which continues the one before.

        The first call exports the whole result. Each later one, such as that of every night, writes the records that
        are newer, and corrects what changed. A call after an interrupted one finishes that export first.
        `chainframe.exports.read` returns all records of the series, each once.

        Parameters
        ----------
        path : str or path
            Directory of the series or its URL, created if it does not exist. It gets a directory `export-000000`,
            `export-000001`, … with each call, and may be moved as a whole. A series of exports that were made with
            `to_parquet` in other directories below it is continued.
        settle : int or None
            Number of heights below the newest record at which an export ends, and that the next one reads again, as for
            `to_parquet`. If None, nothing is held back, and nothing that was exported is corrected.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Default: that of the client, or "decimal".
        max_rows_per_file : int
            Maximum number of rows of one file. A file is also closed every 25 seconds, and after 16 MiB of rows.
        compression : {"zstd", "snappy", "gzip", "lz4", "none"}
            Compression of the columns.
        rows_per_group : int
            Maximum number of rows of a row group, which readers skip as a whole. A group of a single file also ends
            after 8 MiB of rows.
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            The newest export of the series. Its report has the reasons of an interrupted export that this call finished
            as well; that of `Export.open` has those of the whole series.

        Raises
        ------
        ExportError
            The newest export is damaged, is of another query, or cannot be written; or another process is adding to the
            series (`retryable`).
        SettledHeightError
            A height changed more than `settle` heights below the end of the series.

        Examples
        --------
        >>> client.cross_chain_transactions().to_parquet_series("transfers", settle=64)
        >>> chainframe.exports.read("transfers").to_table()
        """

    async def to_parquet_series_async(
        self,
        path: str | PathLike[str],
        *,
        settle: int | None = 64,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        max_rows_per_file: int = 65_536,
        compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd",
        rows_per_group: int = 131_072,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """`to_parquet_series` for asyncio."""

    def to_csv(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the result as one CSV file, which is replaced when it is complete.

        An interrupted run keeps what it fetched in a directory beside the file, and the same call continues it. A file
        that is replaced keeps its permissions.

        Parameters
        ----------
        path : str or path
            The file, whose directory must exist, or its URL. If the name ends in ".csv.gz", the file is
            compressed.
        mode : {"resume", "overwrite", "error"}
            "resume" continues an interrupted run, "overwrite" starts over, "error" raises `ExportError` if the file
            exists.
        since : Export, str or path, optional
            An earlier export of the same query, as for `to_parquet`.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Strings keep every digit. Default: that of the client, or
            "string".
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            Path, number of rows and the report over all runs.

        Raises
        ------
        ExportError
            The file cannot be written, or an interrupted run was of another query.

        Examples
        --------
        >>> client.blocks().to_csv("blocks.csv")
        """

    async def to_csv_async(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """`to_csv` for asyncio."""

    def to_json(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the result as one JSON lines file, which is replaced when it is complete.

        An interrupted run keeps what it fetched in a directory beside the file, and the same call continues it. A file
        that is replaced keeps its permissions.

        Parameters
        ----------
        path : str or path
            The file, whose directory must exist, or its URL. If the name ends in ".jsonl.gz", the file is
            compressed.
        mode : {"resume", "overwrite", "error"}
            "resume" continues an interrupted run, "overwrite" starts over, "error" raises `ExportError` if the file
            exists.
        since : Export, str or path, optional
            An earlier export of the same query, as for `to_parquet`.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. Strings keep every digit. Default: that of the client, or
            "string".
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            Path, number of rows and the report over all runs.

        Raises
        ------
        ExportError
            The file cannot be written, or an interrupted run was of another query.

        Examples
        --------
        >>> client.blocks().to_json("blocks.jsonl")
        """

    async def to_json_async(
        self,
        path: str | PathLike[str],
        *,
        mode: Literal["resume", "overwrite", "error"] = "resume",
        since: Export | str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """`to_json` for asyncio."""

    @overload
    def follow(
        self,
        *,
        start: str | Export = "now",
        settle: int = 12,
        poll: float | Literal["auto"] | None = "auto",
        undo: Literal[False] = False,
    ) -> Follow[Records[_R_co]]:
        """Iterate over new records as they appear, each exactly once, oldest first.

        Every batch holds whole heights. Its `cursor` continues after it, in another process too, without a gap or a
        repetition. A height is delivered once the chain is `settle` heights longer, since a reorganization may change
        it until then. A change of a height that was delivered raises `ReorganizationError`; with `undo=True` heights
        are delivered as soon as a higher one is known, and a change is an `Undo` in place of a batch. Of a height that
        was delivered before, only changes of the record keys and the block hash are errors; with `undo=True` a change
        of any field is an `Undo`.

        For lists that have their newest record first: all calls but `tokens`, `transactions_by_hash` and `logs`.

        With several values of an argument, an event is of one of their lists, which `queried` names, and heights ascend
        within each list. If one cannot be followed any more, `report.by_argument` has its error; the others continue.

        Parameters
        ----------
        start : {"now", "beginning"}, str or Export
            "now" begins after the heights that are settled now, "beginning" at the lowest height of the list, or
            `start_height` of the call. The `cursor` of a batch, of an `Undo`, of the iterator or of an error continues
            after it. A finished export to a directory is continued.
        settle : int
            Heights at the head of the chain that may still change. With `undo=True` they are read again whenever
            something is new.
        poll : {"auto"}, float or None
            Seconds between requests. "auto" follows the observed rate of new heights, between 1 and 60 seconds. None
            ends the iteration once everything settled was delivered.
        undo : bool
            If True, heights are delivered at once, and reorganizations are `Undo` objects.

        Returns
        -------
        Follow of Records
            An iterator for `for` and `async for`. Without new records, it sends one request at each interval.

        Raises
        ------
        InvalidParameterError
            The call cannot be followed, or `start` belongs to another query. Nothing is sent.
        ReorganizationError
            A height that was delivered has changed.
        FollowGapError
            The API no longer returns the records that come next.

        Examples
        --------
        >>> for batch in client.large_transactions(min_amount=1_000).follow():
        ...     print(batch["tx_id"])
        ...     Path("cursor.json").write_text(batch.cursor)
        """

    @overload
    def follow(
        self,
        *,
        start: str | Export = "now",
        settle: int = 12,
        poll: float | Literal["auto"] | None = "auto",
        undo: Literal[True],
    ) -> Follow[Records[_R_co] | Undo]: ...
    def sync(
        self,
        target: object,
        *,
        table: str | None = None,
        settle: int = 12,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        reset: bool = False,
    ) -> Synced:
        """Bring a table up to date with the query, each record once, even if the process is killed and run again.

        The first run inserts all records, later runs what is new, read as `follow` reads it. Rows and position are
        committed in one transaction. Rows of heights that a reorganization changed are replaced. Amounts stay exact.
        Of several runs at the same time one can commit. A run ends when it has caught up, which suits a scheduled job.

        A table that was dropped, renamed or emptied is begun again. One that others changed in another way is an error.

        With several values of an argument, the table has the lists of all, and its column `queried` their values.
        Others may join in later runs; none may be left out.

        Parameters
        ----------
        target : connection, DeltaTable, Catalog, Sink, str or path
            A DuckDB connection or database file, a connection of `adbc_driver_postgresql.dbapi` or a URL
            `postgresql://...`, a Delta Lake table or its location, a catalog or table of pyiceberg, or a
            `chainframe.sinks.Sink` of your own. The connection must have no open transaction.
        table : str, optional
            Name of the table in the database, also as `schema.table`, or `catalog.schema.table` for DuckDB; the first
            run creates it. A name that has dots is put in double quotes. For Iceberg `namespace.table`. Not for Delta
            Lake, nor for a table of pyiceberg or a Sink.
        settle : int
            Heights at the head that are read again, since a reorganization may have changed them.
        columns : sequence of str, optional
            Columns of the table, the height among them; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates, as for `Records`. "string" holds amounts of any size. Default: that of the
            client, or "decimal".
        reset : bool
            Whether to fetch the table again, from the beginning: after a reorganization that is deeper than what is
            remembered, after changes by others, for another query or for other columns. Only a table of `sync` can be
            reset.

        Returns
        -------
        Synced

        Raises
        ------
        ExportError
            The table was not made by `sync` or was changed by others, another run has committed meanwhile, the
            connection has an open transaction, or the database failed. `retryable` says whether it may pass.
        InvalidParameterError
            The target is of no known kind, it holds another query, or the call cannot be followed.
        FollowGapError
            The API no longer returns the records that come next.
        ReorganizationError
            A height changed below all that are remembered, or the list has become empty; see `reset`.
        NumericOverflowError
            An amount does not fit into a decimal; see `numbers`.

        Examples
        --------
        >>> with duckdb.connect("chain.duckdb") as connection:
        ...     client.blocks().sync(connection, table="blocks")
        """

    async def sync_async(
        self,
        target: object,
        *,
        table: str | None = None,
        settle: int = 12,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        reset: bool = False,
    ) -> Synced:
        """`sync` for asyncio. Calls of the database run in threads, one at a time.

        Examples
        --------
        >>> synced = await client.blocks().sync_async(connection, table="blocks")
        """

    def partitions(self, num_partitions: int) -> list[Partition[_R_co]]:
        """Split the result into parts for independent reads: by value, hash, height, time or offset.

        Concatenated, the partitions are the current result: no record is in two of them, and records added later are in
        none. Ranges of heights are of one chain only if no block of them is replaced between the reads. Hashes, several
        values and ranges with both ends cost no request. Lists with a total count (`blocks`, `token_transfers`,
        `cross_chain_transactions`) cost one request per partition and are cut between pages.

        Other queries have one partition: lists that the API neither counts nor narrows (`large_transactions`, and
        `transactions`, `address_transactions` and `tokens` without both ends of a range), a single block, a resumed
        query, and `max_items` with hashes or ranges.

        Parameters
        ----------
        num_partitions : int
            Maximum number of partitions.

        Returns
        -------
        list of Partition

        Examples
        --------
        >>> parts = client.transactions(start_height=4_000_000, end_height=4_009_999).partitions(8)
        >>> with ProcessPoolExecutor() as pool:
        ...     results = list(pool.map(Partition.collect, parts))
        """

    # For exports: the query as JSON, True if its list grows at its head, a run kept in the core, and the warning or
    # error at the end of an incomplete result.
    def _stated(self) -> str: ...
    def _whole_cursor(self) -> str: ...
    def _arrow_stream(self, columns: Sequence[str], first: int) -> object: ...
    def _resolved(self) -> tuple[Self, Report]: ...
    def _page(self, number: int) -> tuple[Records[_R_co], int | None, Report]: ...
    def _progress(self) -> tuple[str, int, int | None]: ...
    def _reaches_result_window(self, records: int) -> bool: ...
    def _growth_order(self) -> Literal["newest_first", "by_height"] | None: ...
    def _from_height(self, height: int) -> Self: ...
    def _rest(self, max_items: int, after: Self) -> Self: ...
    def _moved(self, positions: _Positions, lists: list[tuple[str, str]]) -> _Positions: ...
    def _follow_buffer(
        self,
        start: str | _Positions,
        settle: int,
        max_rows: int,
        max_bytes: int,
        max_age: float,
        earlier_requests: int | None,
    ) -> _FollowBuffer: ...
    @staticmethod
    def _num_remembered(settle: int) -> int: ...
    @property
    def _values(self) -> list[str]: ...
    def _follow_between(self, start: str, end: str, settle: int) -> Follow[Records[_R_co]]: ...
    def _part_buffer(
        self, max_rows: int, max_age: float, keyed: bool, in_order: bool, earlier_requests: int | None
    ) -> _PartBuffer: ...
    def _warn_if_incomplete(self, report: Report) -> None: ...
    def estimate(self) -> Estimate:
        """Estimate records, requests and time of a run, with a few requests.

        A list takes one request, or three if it continues below the result window. A range of heights, several years or
        many hashes take up to three, and ranges of times a search for their heights besides. Of a query with several
        values, up to 16 lists are measured.

        Returns
        -------
        Estimate

        Examples
        --------
        >>> client.token_transfers("0x2b59...").estimate()
        Estimate(records=8120, pages=163, requests=163, num_slices=1, is_exact=True, records_range=(8120, 8120),
            requests_range=(163, 163), estimated_seconds=1.02, limitations=[])
        """

    async def estimate_async(self) -> Estimate:
        """`estimate` for asyncio."""

    @property
    def report(self) -> Report:
        """Report of the last run, during and after it."""

    @property
    def partial(self) -> Records[_R_co]:
        """Records that the last run has fetched so far, for use after an error or Ctrl-C.

        `collect` keeps all of them. Iteration, `pages`, `batches`, `to_arrow_batch_reader` and Arrow streams keep the
        latest 2,500 records or 8 MiB, which bounds the memory of an endless loop. A read of some columns keeps none.

        Examples
        --------
        >>> try:
        ...     records = query.collect()
        ... except cf.ChainframeError:
        ...     records = query.partial
        """

    @property
    def cursor(self) -> str:
        """Position of the last run, for `Client.resume`: after the last record, page or batch returned.

        After `collect` failed or was interrupted, the position after the last record of `partial`. After `first`, the
        position of the query. Of several iterations over one query at once, each error has the `cursor` of its own.

        Examples
        --------
        >>> rest = client.resume(query.cursor)
        """

    @property
    def last_error(self) -> Exception | None:
        """The original exception of the last run, before an Arrow consumer reduced it to a message."""

    def _repr_html_(self) -> str: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...
    def __narwhals_dataframe__(self) -> Any: ...
    @property
    def _numbers(self) -> str | None: ...

@final
class Stream(Generic[_T_co]):
    """Iterator over one run of a query, for `for` and `async for`.

    Iteration may be resumed by calling `next` again after an error.

    Examples
    --------
    >>> stream = query.pages()
    >>> page = next(stream)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Coroutine[Any, Any, _T_co]: ...
    def close(self) -> None:
        """End the iteration: requests in flight are dropped, and `next` raises `StopIteration`.

        An iterator that is dropped closes by itself.

        Examples
        --------
        >>> with contextlib.closing(query.pages()) as pages:
        ...     first = next(pages)
        """

    async def aclose(self) -> None:
        """`close` for asyncio and `contextlib.aclosing`.

        Examples
        --------
        >>> async with contextlib.aclosing(query.pages()) as pages:
        ...     first = await anext(pages)
        """

@final
class Follow(Generic[_T_co]):
    """Iterator over the events of `Query.follow`, for `for` and `async for`.

    After an error, `next` continues from the same position.

    Examples
    --------
    >>> follow = client.blocks().follow(poll=5.0)
    >>> batch = next(follow)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Coroutine[Any, Any, _T_co]: ...
    @property
    def _positions(self) -> _Positions: ...
    @property
    def cursor(self) -> str:
        """Position after the last batch or `Undo`, for `start` of `Query.follow`.

        Of a query of several values, the position of all their lists. The cursor of an event continues its list alone.
        """

    @property
    def lag(self) -> float:
        """Seconds since the list was read to its end, of several lists that which was so the longest time ago.

        What was new then was delivered, or is still to be taken from the iterator.
        """

    @property
    def report(self) -> Report:
        """Cost so far and records delivered; complete once an iteration with `poll=None` has ended.

        `reasons` names changes that cannot be noticed: of a list without block hashes that is followed without
        `undo=True`, and such a report is not complete.
        """

    def close(self) -> None:
        """End the iteration: requests in flight are dropped, and `next` raises `StopIteration`.

        An iterator that is dropped closes by itself.

        Examples
        --------
        >>> with contextlib.closing(query.follow()) as follow:
        ...     first = next(follow)
        """

    async def aclose(self) -> None:
        """`close` for asyncio and `contextlib.aclosing`.

        Examples
        --------
        >>> async with contextlib.aclosing(query.follow()) as follow:
        ...     first = await anext(follow)
        """

@final
class Undo:
    """Event of `Query.follow` with `undo=True`: all records above a height are void.

    A consumer drops its records above `after_height`; the records that replace them follow.

    Parameters
    ----------
    after_height : int
        Height up to which the delivered records remain.
    cursor : str
        Position after this event.
    queried : list of str, optional
        Argument whose list is concerned, in a query of several values.

    Examples
    --------
    >>> for event in client.blocks().follow(undo=True):
    ...     match event:
    ...         case cf.Undo(after_height):
    ...             rows = [row for row in rows if row.height <= after_height]
    ...         case batch:
    ...             rows.extend(batch)
    """

    __match_args__ = ("after_height", "cursor")

    def __new__(cls, after_height: int, cursor: str, queried: list[str] | None = None) -> Self: ...
    @property
    def after_height(self) -> int:
        """Height up to which the delivered records remain."""

    @property
    def cursor(self) -> str:
        """Position after this event, for `start` of `Query.follow`."""

    @property
    def queried(self) -> list[str] | None:
        """Argument whose list is concerned, in a query of several values; None for one list."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Page(Generic[_R_co]):
    """One page of a result.

    Examples
    --------
    >>> page = next(iter(client.blocks().pages()))
    >>> page.number, page.total_pages, page.total
    """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    @property
    def number(self) -> int:
        """Number of the page, from 1."""

    @property
    def total_pages(self) -> int | None:
        """Number of pages of the list; None if the API does not report it."""

    @property
    def total(self) -> int | None:
        """Number of records of the list; None if the API does not report it."""

    @property
    def chain_full_name(self) -> str | None:
        """Full name of the chain; None if the API does not report it."""

    @property
    def chain_short_name(self) -> str | None:
        """Short name of the chain; None if the API does not report it."""

    @property
    def records(self) -> Records[_R_co]:
        """Records of the page."""

    @property
    def cursor(self) -> str:
        """Position after this page, for `Client.resume`."""

    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Records(Sequence[_R_co]):
    """A sequence of records in Arrow columns; a record object is created when it is accessed.

    Queries return it. `from_records` makes one of records, and `chainframe.testing.make_records` of dictionaries.
    `print(records)` shows the columns that fit the terminal, and the first and last rows.

    Columns are int64, timestamp[ms, UTC], bool, utf8 and list<utf8>, each nullable. The option `numbers` of the
    conversions selects the type of amounts and estimates:

    - "decimal": amounts are exact decimals with 18 places, estimates float64. Raises `NumericOverflowError` if an
      amount does not fit exactly.
    - "float": float64, the nearest double.
    - "string": utf8, the digits as sent.

    Examples
    --------
    >>> records = client.tokens().collect()
    >>> len(records), records[0].token, records[-10:].to_pandas()
    """

    @classmethod
    def from_records(cls, records: Iterable[_R]) -> Records[_R]:
        """Make `Records` of single records, such as those that a condition selects.

        Parameters
        ----------
        records : iterable of Record
            Records of one class, at least one. `chainframe.testing.make_records(call, [])` makes an empty result.

        Returns
        -------
        Records
            Copies of the records. Their report is not complete: a selection does not show what is missing.

        Raises
        ------
        InvalidParameterError
            If there are none, or if they are not records of one class.

        Examples
        --------
        >>> cf.Records.from_records(block for block in blocks if (block.transaction_count or 0) > 10).to_pandas()
        """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    def __len__(self) -> int: ...
    def __await__(self) -> Generator[Any, None, Self]: ...
    @overload
    def __getitem__(self, index: int, /) -> _R_co: ...
    @overload
    def __getitem__(self, index: slice, /) -> Records[_R_co]: ...
    @overload
    def __getitem__(self, index: str, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[_R_co]: ...
    @property
    def report(self) -> Report:
        """Report of the run that fetched the records."""

    @property
    def cursor(self) -> str | None:
        """Position after these records if they are a batch of `Query.follow`, else None."""

    @property
    def schema(self) -> Schema:
        """Arrow schema of the columns with `numbers="decimal"`; an empty result has the same one."""

    def decode(self: Records[EventLog], event: Event) -> DecodedLogs:
        """Decode the logs of one event.

        Parameters
        ----------
        event : Event
            The event. Its logs have its topic and as many topics as it has indexed parameters.

        Returns
        -------
        DecodedLogs

        Raises
        ------
        ContextError
            For records that are not event logs, or lack the column `topics` or `data`.

        Examples
        --------
        >>> logs = client.logs("0x5f1c...").collect()
        >>> transfers = logs.decode(cf.Event.named("ERC20.Transfer"))
        >>> transfers.to_polars(), len(transfers.unmatched)
        """

    def __contains__(self, record: object, /) -> bool: ...
    def __reversed__(self) -> Iterator[_R_co]: ...
    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the index of the first equal record.

        Parameters
        ----------
        value : object
            The record.
        start, stop : int, optional
            Range of indexes to search, as for `list.index`.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If no record is equal.

        Examples
        --------
        >>> records.index(records[3])
        3
        """

    def count(self, value: Any) -> int:
        """Return the number of equal records.

        Parameters
        ----------
        value : object
            The record.

        Returns
        -------
        int

        Examples
        --------
        >>> records.count(records[0])
        1
        """

    def to_pandas(
        self,
        numbers: Literal["decimal", "float", "string"] | None = None,
        *,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Convert to a pandas DataFrame.

        Times are `datetime64` in the resolution of the installed pandas, integers `int64` (`Int64` where a value is
        missing), flags `bool` (`boolean`),
        strings pandas' default string dtype, and estimates `float64`. Amounts have `chainframe.exact.ExactDtype`: sums,
        differences and products of them are exact.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "decimal".
        dtype_backend : {"numpy_nullable", "pyarrow"}, optional
            As in `pandas.read_csv`; pandas' default dtypes by default.
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        InvalidParameterError
            If a column or an option does not exist.
        ImportError
            If pandas or pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> frame = records.to_pandas()
        >>> frame[frame.transaction_time >= "2026-01-30"].groupby("from_address").amount.sum()
        """

    def to_polars(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Convert to a polars DataFrame.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "decimal".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        ImportError
            polars is not installed; the message has the command that installs it.

        Examples
        --------
        >>> frame = records.to_polars(numbers="float")
        """

    def to_arrow(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Convert to a pyarrow Table.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "decimal".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        NumericOverflowError
            If an amount does not fit its column exactly.
        ImportError
            pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> pyarrow.parquet.write_table(records.to_arrow(), "transfers.parquet")
        """

    def to_dicts(self, *, json: bool = False, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Convert to dictionaries, one per record, with the exact values of the attributes.

        Parameters
        ----------
        json : bool
            If True, values that JSON lacks are strings: amounts with all digits, times in ISO 8601.
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> records.to_dicts()[0]["amount"]
        Decimal('0.150851832900380503')
        """

    def to_parquet(
        self,
        path: str | PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the records in hand to one Parquet file. Nothing is sent.

        The file is that of `Query.to_parquet`, and replaces an earlier one when it is complete.

        Parameters
        ----------
        path : str or path
            The file, whose name ends in .parquet.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "decimal".
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            The file, and the report of these records.

        Raises
        ------
        ExportError
            If the file cannot be written.
        InvalidParameterError
            For a suffix of another format.
        NumericOverflowError
            If an amount does not fit exactly; see `numbers`.

        Examples
        --------
        >>> records.to_parquet("transfers.parquet")
        """

    def to_csv(
        self,
        path: str | PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the records in hand to a CSV file. Nothing is sent.

        The file is that of `Query.to_csv`, and replaces an earlier one when it is complete.

        Parameters
        ----------
        path : str or path
            The file, whose name ends in .csv, or in .csv.gz for a compressed one.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "string".
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            The file, and the report of these records.

        Raises
        ------
        ExportError
            If the file cannot be written.
        InvalidParameterError
            For a suffix of another format.
        NumericOverflowError
            If an amount does not fit exactly; see `numbers`.

        Examples
        --------
        >>> records.to_csv("transfers.csv")
        """

    def to_json(
        self,
        path: str | PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        numbers: Literal["decimal", "float", "string"] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Export:
        """Write the records in hand to a file of JSON lines. Nothing is sent.

        The file is that of `Query.to_json`, and replaces an earlier one when it is complete.

        Parameters
        ----------
        path : str or path
            The file, whose name ends in .jsonl, .json or .ndjson, or in .jsonl.gz for a compressed one.
        columns : sequence of str, optional
            Columns to write, in this order; all by default.
        numbers : {"decimal", "float", "string"}, optional
            Type of amounts and estimates. Default: that of the client, or "string".
        storage_options : dict, optional
            Options of the object store if `path` is a URL: those of obstore, such as `region`, `endpoint` or
            `access_key_id`. What is not given is taken from the environment.

        Returns
        -------
        Export
            The file, and the report of these records.

        Raises
        ------
        ExportError
            If the file cannot be written.
        InvalidParameterError
            For a suffix of another format.
        NumericOverflowError
            If an amount does not fit exactly; see `numbers`.

        Examples
        --------
        >>> records.to_json("transfers.jsonl")
        """

    def _repr_html_(self) -> str: ...
    def _repr_pretty_(self, printer: Any, cycle: bool) -> None: ...
    def _identities(self) -> list[str]: ...
    def _counts_by_queried(self) -> dict[str, int]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...
    def __narwhals_dataframe__(self) -> Any: ...
    @property
    def _numbers(self) -> str | None: ...
    def __array__(self, _dtype: object = None, copy: bool | None = None) -> Any: ...

@final
class Estimate:
    """Estimated size and duration of a run.

    Numbers that the API does not count are extrapolated from samples, or bounds; the ranges tell the uncertainty.

    Examples
    --------
    >>> estimate = client.transactions(start_height=4_000_000, end_height=4_000_099).estimate()
    >>> print(estimate.requests, "requests,", estimate.estimated_seconds, "seconds,", *estimate.limitations)
    """

    @property
    def num_slices(self) -> int:
        """Number of lists read one after the other: blocks of a range, years, or requests for hashes."""

    @property
    def records(self) -> int:
        """Expected number of records."""

    @property
    def pages(self) -> int:
        """Expected number of pages."""

    @property
    def requests(self) -> int:
        """Expected number of requests without retries, while no list grows.

        Requests that check an empty response are counted, except those for heights of a long range that have no
        records.
        """

    @property
    def records_range(self) -> tuple[int, int | None]:
        """Least and most number of records; None if only the least is known."""

    @property
    def requests_range(self) -> tuple[int, int | None]:
        """Least and most number of requests; None if only the least is known."""

    @property
    def is_exact(self) -> bool:
        """True if the number of records is known: the API counted them, or sampled heights have none."""

    @property
    def estimated_seconds(self) -> float:
        """Expected duration in seconds, at the server's response times and the rate that the rate limiter will allow.

        A server that has not throttled yet is expected not to.
        """

    @property
    def limitations(self) -> list[str]:
        """Records that the API cannot return, one sentence each."""

    def _limitations_in_shell(self) -> list[str]: ...
    def _facts(self) -> list[tuple[str, str]]: ...
    def _repr_html_(self) -> str: ...

@final
class Hint:
    """Advice of an error: an action and the parameters it concerns.

    Frozen, hashable, comparable, picklable. `str(hint)` is the advice in the error's message.

    Parameters
    ----------
    action : str
        Name of the action, such as "narrow_query", "raise" or "retry_later".
    *parameters : str
        Names of the parameters that the action concerns.

    Raises
    ------
    ValueError
        For an unknown action.

    Examples
    --------
    >>> error.hints
    (<Hint: narrow the query with start_height= or end_height=>,)
    >>> error.hints[0].action, error.hints[0].parameters
    ('narrow_query', ('start_height', 'end_height'))
    """

    def __new__(cls, action: str, *parameters: str) -> Self: ...
    @property
    def action(self) -> str:
        """Name of the action, such as "narrow_query", "raise" or "retry_later"."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the action concerns."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def _in_shell(self) -> str: ...

@final
class Schema:
    """Arrow schema of the columns, for `pyarrow.schema`, polars and other Arrow libraries.

    Examples
    --------
    >>> pyarrow.schema(records.schema).field("amount").type
    Decimal128Type(decimal128(38, 18))
    """

    @property
    def names(self) -> list[str]:
        """Names of the columns."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Event:
    """An event of a contract, declared as in Solidity.

    Frozen, hashable, comparable, picklable.

    Parameters
    ----------
    declaration : str
        Name and parameters. `event`, the names of parameters and `;` may be left out; `anonymous` may follow.

    Raises
    ------
    InvalidParameterError
        For a declaration that is not valid, and for more than three indexed parameters, or four if it is anonymous.

    Examples
    --------
    >>> event = cf.Event("Deposit(address indexed account, uint256 amount)")
    >>> event.topic
    '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c'
    """

    def __new__(cls, declaration: str) -> Self: ...
    @staticmethod
    def named(name: str) -> Event:
        """Return an event of a token standard.

        Parameters
        ----------
        name : str
            "ERC20.Transfer", "ERC20.Approval", "ERC721.Transfer", "ERC721.Approval", "ERC721.ApprovalForAll",
            "ERC1155.TransferSingle", "ERC1155.TransferBatch", "ERC1155.ApprovalForAll" or "ERC1155.URI".

        Returns
        -------
        Event

        Raises
        ------
        InvalidParameterError
            For another name.

        Examples
        --------
        >>> cf.Event.named("ERC721.Transfer")
        Event("Transfer(address indexed from, address indexed to, uint256 indexed tokenId)")
        """

    @property
    def name(self) -> str:
        """Name of the event."""

    @property
    def signature(self) -> str:
        """Name and types, such as "Transfer(address,address,uint256)"."""

    @property
    def topic(self) -> str | None:
        """First topic of its logs: the hash of the signature. None if the event is anonymous."""

    @property
    def columns(self) -> list[str]:
        """Columns of the parameters. An underscore follows a name that is a Python keyword or a column of the log. A
        parameter without a name is `arg0`, `arg1` and so on."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class DecodedLogs:
    """Logs of one event with the values of its parameters.

    The columns are `height`, `transaction_time`, `tx_id`, `log_index` and `address` of the log, then the parameters.
    The schema depends on the event and on `numbers` only; an empty result has the same one.

    - Integers of up to 64 bits are int64, and uint64 is uint64. `numbers` selects the type of wider ones: "string" is
      utf8, "decimal" is decimal128(38, 0) and raises `NumericOverflowError` if a value does not fit, "float" is
      float64.
    - `bool` is bool. `string` is utf8. `address`, `bytes` and `bytes32` are hexadecimal strings in lower case.
    - Arrays are lists, and tuples are structs. Indexed strings, bytes, arrays and tuples are hashes: a log has no more.

    A value that is missing or is not of its type, as in truncated data, is null, and its log is in `malformed`.

    Examples
    --------
    >>> transfers = client.logs("0x5f1c...").collect().decode(cf.Event.named("ERC20.Transfer"))
    >>> sum(transfer["value"] for transfer in transfers.to_dicts())
    """

    @property
    def event(self) -> Event:
        """The event."""

    @property
    def matched(self) -> Records[EventLog]:
        """The logs of the event, in the order of the rows."""

    @property
    def unmatched(self) -> Records[EventLog]:
        """The logs of other events, for example to decode them as another one."""

    @property
    def malformed(self) -> Records[EventLog]:
        """The logs of the event that have a null because a value could not be decoded."""

    @property
    def report(self) -> Report:
        """Report of the run that fetched the logs."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def to_pandas(
        self,
        numbers: Literal["decimal", "float", "string"] | None = None,
        *,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Convert to a pandas data frame. Needs the extra `pandas`.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of integers of more than 64 bits. Default: that of the client, or "string".
        dtype_backend : {"numpy_nullable", "pyarrow"}, optional
            Dtypes, as in the readers of pandas.
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        NumericOverflowError
            If a value does not fit, with `numbers="decimal"`.

        Examples
        --------
        >>> decoded.to_pandas().groupby("to").size()
        """

    def to_polars(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Convert to a polars data frame. Needs the extra `polars`.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of integers of more than 64 bits. Default: that of the client, or "string".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        NumericOverflowError
            If a value does not fit, with `numbers="decimal"`.

        Examples
        --------
        >>> decoded.to_polars("decimal")["value"].sum()
        """

    def to_arrow(
        self, numbers: Literal["decimal", "float", "string"] | None = None, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Convert to an Arrow table. Needs the extra `arrow`.

        Parameters
        ----------
        numbers : {"decimal", "float", "string"}, optional
            Type of integers of more than 64 bits. Default: that of the client, or "string".
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        NumericOverflowError
            If a value does not fit, with `numbers="decimal"`.

        Examples
        --------
        >>> decoded.to_arrow().schema
        """

    def to_dicts(self, *, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return one dict for each log. Integers of any size are exact `int`.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to convert, in this order; all by default.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> decoded.to_dicts()[0]["value"]
        1000000000000000000
        """

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Report:
    """Completeness and cost of a result.

    Examples
    --------
    >>> records = client.transactions().collect()
    >>> if not records.report.complete:
    ...     print(*records.report.reasons, sep="\\n")
    """

    @property
    def complete(self) -> bool:
        """True if the result is known to hold every record."""

    @property
    def reasons(self) -> list[str]:
        """Reasons why the result is incomplete, one sentence each."""

    @property
    def remarks(self) -> list[str]:
        """Remarks on a result that may not be what was meant, such as an empty list of what cannot be an address."""

    @property
    def _remarks(self) -> list[Any]: ...
    def _remarks_in_shell(self) -> list[str]: ...
    @property
    def _verdicts(self) -> dict[str, list[Any]]: ...
    @property
    def _changed_verdicts(self) -> dict[str, list[Any]]: ...
    @property
    def _evidence(self) -> list[Any]: ...
    @property
    def _reasons(self) -> list[Any]: ...
    def _reasons_in_shell(self) -> list[str]: ...
    @property
    def requests(self) -> int:
        """Number of requests sent, retries included."""

    @property
    def retries(self) -> int:
        """Number of retries."""

    @property
    def pages(self) -> int:
        """Number of pages."""

    @property
    def records(self) -> int:
        """Number of records."""

    @property
    def duplicates_dropped(self) -> int:
        """Number of records received twice: the list grew while it was read, or others had them, with `unique=True`."""

    @property
    def dropped(self) -> int:
        """Number of records dropped because they contradict the arguments.

        `reasons` names the argument: the API may not have applied it as a filter.
        """

    @property
    def moved(self) -> int:
        """Number of records that were received again because they changed their rank while the list was read.

        Tokens are ordered by a value that changes. Each token is returned once.
        """

    @property
    def rereads(self) -> int:
        """Number of times that a list was read again because it changed too much.

        Up to twice for each list, by calls that return the complete result. An iteration raises `PaginationDriftError`
        instead.
        """

    @property
    def missing(self) -> list[str]:
        """Requested hashes that the API did not return."""

    @property
    def members_absent(self) -> list[str]:
        """Declared members that no record of the result has, by their first spelling. Their columns are null."""

    @property
    def members_unknown(self) -> list[str]:
        """Members of the records that have no column, up to 64.

        Together with `members_absent` they show a member that was renamed, in another letter case too.
        """

    @property
    def by_argument(self) -> dict[str, dict[str, Any]]:
        """Result of each argument, for a query of several; empty for other queries.

        Each has `complete`, `records`, `requests`, `reasons` and `error`: the message of the error that ended the
        argument's list, or None. `pd.DataFrame.from_dict(report.by_argument, orient="index")` makes a frame of them.
        """

    @property
    def evidence(self) -> dict[str, dict[str, Any]]:
        """Findings on the laws that the records obey on a chain, by name; empty where no law applies.

        Laws are checked while the records are returned, without a request: "nonces" of an address' own transactions,
        "heights" of blocks, "log_indexes" of transactions, "custody" of token ids and "balances" of tokens. Each has

        - `held`: True, False, or None if the records do not decide, as of a token that may rebase;
        - `checked`: number of records that were compared; `missing`: number of those that are missing, at least;
        - `violation`: the first violation in words, or None;
        - `earlier`: for nonces, number of transactions that the address sent before the first one here; else None;
        - `assumption`: what has to be true of the chain for the law to hold.

        A law that is broken is no error, and the result may still be complete: some chains and tokens do not obey it.

        Examples
        --------
        >>> broken = [law for law, finding in records.report.evidence.items() if finding["held"] is False]
        """

    @property
    def cache(self) -> dict[str, Any] | None:
        """Contribution of the cache; None if the client has no cache.

        - `records`: number of records that were not requested;
        - `as_of`: time as of which these records are those of the service: that of this run for a list, that of the
          last comparison with the chain for settled records; None without such records;
        - `reason`: why the result is not kept, or what was removed from the cache; None if there is nothing to say.

        Of a query with several values: the sum for its lists, the earliest time, and the first reason.

        Examples
        --------
        >>> client.with_options(cache="cache").blocks().collect().report.cache["records"]
        3000
        """

    @property
    def bytes(self) -> int:
        """Size of the response bodies in bytes, decompressed."""

    @property
    def elapsed(self) -> float:
        """Seconds from the start to the last response or error."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def _repr_html_(self) -> str: ...

@disjoint_base
class Record:
    """One record of a result; each resource has its own class.

    Frozen, hashable, comparable and picklable. An attribute is None if the API sent no value. `record["height"]` and
    `dict(record)` work as well, and so do functions of dataclasses, by which pandas and polars read a list of records.

    Examples
    --------
    >>> transfer = client.token_transfers("0x2b59...").first()
    >>> transfer.amount
    Decimal('0.150851832900380503')
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def queried(self) -> list[str]:
        """Argument whose list returned the record, in a list, for a query of several.

        Records of other queries do not have the attribute.
        """

    def _repr_html_(self) -> str: ...
    def to_dict(self, *, json: bool = False) -> dict[str, Any]:
        """Return the attributes as a dictionary.

        Parameters
        ----------
        json : bool
            If True, values that JSON lacks are strings, as for `Records.to_dicts`.

        Returns
        -------
        dict
            Values of the attributes by their names.

        Examples
        --------
        >>> transfer.to_dict()["tx_id"]
        """

    def keys(self) -> list[str]:
        """Return the names of the attributes, as `dict(record)` needs them.

        Returns
        -------
        list of str

        Examples
        --------
        >>> client.blocks().first().keys()
        """

    def __getitem__(self, name: str, /) -> Any: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# --- records, written by scripts/generate_stub.py: `make stub` ---
@final
class Token(Record):
    """A token of the main chain."""

    __match_args__ = (
        "token",
        "token_full_name",
        "protocol_type",
        "price",
        "total_market_cap",
        "transaction_amount_24h",
        "tvl",
        "total_supply",
        "circulating_supply",
        "address_count",
        "precision",
        "issue_date",
        "token_contract_address",
        "website",
        "logo_url",
    )
    def __new__(
        cls,
        *,
        token: str | None = None,
        token_full_name: str | None = None,
        protocol_type: str | None = None,
        price: Decimal | None = None,
        total_market_cap: Decimal | None = None,
        transaction_amount_24h: Decimal | None = None,
        tvl: Decimal | None = None,
        total_supply: Decimal | None = None,
        circulating_supply: Decimal | None = None,
        address_count: int | None = None,
        precision: int | None = None,
        issue_date: datetime | None = None,
        token_contract_address: str | None = None,
        website: str | None = None,
        logo_url: str | None = None,
    ) -> Self: ...
    @property
    def token(self) -> str | None:
        """Symbol."""

    @property
    def token_full_name(self) -> str | None:
        """Full name."""

    @property
    def protocol_type(self) -> str | None:
        """Protocol of the token, such as `ERC20`."""

    @property
    def price(self) -> Decimal | None:
        """Price in USD."""

    @property
    def total_market_cap(self) -> Decimal | None:
        """Market capitalization on all chains, in USD."""

    @property
    def transaction_amount_24h(self) -> Decimal | None:
        """Volume of the past 24 hours in USD; meaningful for ERC-20 tokens only."""

    @property
    def tvl(self) -> Decimal | None:
        """Total value locked, in USD."""

    @property
    def total_supply(self) -> Decimal | None:
        """Total supply, in whole tokens."""

    @property
    def circulating_supply(self) -> Decimal | None:
        """Circulating supply on all chains."""

    @property
    def address_count(self) -> int | None:
        """Number of addresses that hold the token."""

    @property
    def precision(self) -> int | None:
        """Decimals of the token's smallest unit."""

    @property
    def issue_date(self) -> datetime | None:
        """Time of the token's issue."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def website(self) -> str | None:
        """Website; may be empty."""

    @property
    def logo_url(self) -> str | None:
        """Address of the logo image."""

@final
class TokenTransfer(Record):
    """One transfer of a token from one address to another."""

    __match_args__ = (
        "transaction_time",
        "amount",
        "transaction_symbol",
        "from_address",
        "to_address",
        "token_contract_address",
        "token_id",
        "protocol_type",
        "height",
        "state",
        "is_from_contract",
        "is_to_contract",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        token_contract_address: str | None = None,
        token_id: str | None = None,
        protocol_type: str | None = None,
        height: int | None = None,
        state: str | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def token_id(self) -> str | None:
        """Token ID of an NFT, a string since it may exceed 64 bits; empty for other tokens."""

    @property
    def protocol_type(self) -> str | None:
        """Protocol of the token."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def is_from_contract(self) -> bool | None:
        """True if the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """True if the receiver is a contract."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

@final
class CrossChainTransaction(Record):
    """A transaction that moved value between the main chain and the zone chain."""

    __match_args__ = (
        "zone_block_time",
        "value",
        "token_name",
        "source_address",
        "target_address",
        "tx_type",
        "cross_type",
        "status",
        "zone_block_height",
        "main_block_time",
        "main_block_height",
        "from_address",
        "to_address",
        "token_contract_address",
        "token_type",
        "token_id",
        "value_raw",
        "id",
        "main_tx_hash",
        "zone_tx_hash",
    )
    def __new__(
        cls,
        *,
        zone_block_time: datetime | None = None,
        value: Decimal | None = None,
        token_name: str | None = None,
        source_address: str | None = None,
        target_address: str | None = None,
        tx_type: str | None = None,
        cross_type: str | None = None,
        status: str | None = None,
        zone_block_height: int | None = None,
        main_block_time: datetime | None = None,
        main_block_height: int | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        token_contract_address: str | None = None,
        token_type: str | None = None,
        token_id: str | None = None,
        value_raw: int | None = None,
        id: str | None = None,
        main_tx_hash: str | None = None,
        zone_tx_hash: str | None = None,
    ) -> Self: ...
    @property
    def zone_block_time(self) -> datetime | None:
        """Block time on the zone chain."""

    @property
    def value(self) -> Decimal | None:
        """Amount, in whole tokens."""

    @property
    def token_name(self) -> str | None:
        """Name of the token."""

    @property
    def source_address(self) -> str | None:
        """Address the value came from."""

    @property
    def target_address(self) -> str | None:
        """Address the value went to."""

    @property
    def tx_type(self) -> str | None:
        """`MainToZone` or `ZoneToMain`, whatever the deployment calls them."""

    @property
    def cross_type(self) -> str | None:
        """`Deposit`, `Withdraw` or `BatchWithdraw`."""

    @property
    def status(self) -> str | None:
        """`0x1` success, `0x0` failure."""

    @property
    def zone_block_height(self) -> int | None:
        """Block height on the zone chain."""

    @property
    def main_block_time(self) -> datetime | None:
        """Block time on the main chain."""

    @property
    def main_block_height(self) -> int | None:
        """Block height on the main chain."""

    @property
    def from_address(self) -> str | None:
        """Address that signed on the link layer."""

    @property
    def to_address(self) -> str | None:
        """Address the transaction was sent to."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def token_type(self) -> str | None:
        """`ERC20` or `ERC1155`."""

    @property
    def token_id(self) -> str | None:
        """Token ID of an NFT, a string since it may exceed 64 bits; empty for other tokens."""

    @property
    def value_raw(self) -> int | None:
        """Amount in the token's smallest unit, up to 2^256-1."""

    @property
    def id(self) -> str | None:
        """Hash of the cross-chain transaction; may be empty."""

    @property
    def main_tx_hash(self) -> str | None:
        """Hash of the transaction on the main chain."""

    @property
    def zone_tx_hash(self) -> str | None:
        """Hash of the transaction on the zone chain."""

@final
class Block(Record):
    """A block of the zone chain."""

    __match_args__ = (
        "height",
        "block_time",
        "transaction_count",
        "miner",
        "hash",
    )
    def __new__(
        cls,
        *,
        height: int | None = None,
        block_time: datetime | None = None,
        transaction_count: int | None = None,
        miner: str | None = None,
        hash: str | None = None,
    ) -> Self: ...
    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def block_time(self) -> datetime | None:
        """Time of the block."""

    @property
    def transaction_count(self) -> int | None:
        """Number of transactions in the block."""

    @property
    def miner(self) -> str | None:
        """Address of the block's producer."""

    @property
    def hash(self) -> str | None:
        """Block hash."""

@final
class AddressTransaction(Record):
    """A normal transaction that an address sent or received."""

    __match_args__ = (
        "transaction_time",
        "amount",
        "symbol",
        "from_address",
        "to_address",
        "tx_fee",
        "height",
        "state",
        "nonce",
        "gas_used",
        "gas_limit",
        "gas_price",
        "transaction_type",
        "is_from_contract",
        "is_to_contract",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        amount: Decimal | None = None,
        symbol: str | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        tx_fee: Decimal | None = None,
        height: int | None = None,
        state: str | None = None,
        nonce: int | None = None,
        gas_used: int | None = None,
        gas_limit: int | None = None,
        gas_price: Decimal | None = None,
        transaction_type: int | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def symbol(self) -> str | None:
        """Symbol of the coin moved."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def nonce(self) -> int | None:
        """Number of earlier transactions of the sender."""

    @property
    def gas_used(self) -> int | None:
        """Gas used."""

    @property
    def gas_limit(self) -> int | None:
        """Gas allowed."""

    @property
    def gas_price(self) -> Decimal | None:
        """Price of one unit of gas."""

    @property
    def transaction_type(self) -> int | None:
        """Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559."""

    @property
    def is_from_contract(self) -> bool | None:
        """True if the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """True if the receiver is a contract."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

@final
class LargeTransaction(Record):
    """A transaction of the main chain that moved a large amount."""

    __match_args__ = (
        "transaction_time",
        "amount",
        "transaction_symbol",
        "input",
        "output",
        "tx_fee",
        "height",
        "state",
        "transaction_type",
        "is_input_contract",
        "is_output_contract",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        input: str | None = None,
        output: str | None = None,
        tx_fee: Decimal | None = None,
        height: int | None = None,
        state: str | None = None,
        transaction_type: int | None = None,
        is_input_contract: bool | None = None,
        is_output_contract: bool | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def input(self) -> str | None:
        """Input address; several are separated by commas."""

    @property
    def output(self) -> str | None:
        """Output address; several are separated by commas."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def transaction_type(self) -> int | None:
        """Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559."""

    @property
    def is_input_contract(self) -> bool | None:
        """True if the input address is a contract."""

    @property
    def is_output_contract(self) -> bool | None:
        """True if the output address is a contract."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

@final
class ChainTransaction(Record):
    """A transaction in the main chain's list."""

    __match_args__ = (
        "transaction_time",
        "amount",
        "transaction_symbol",
        "input",
        "output",
        "tx_fee",
        "height",
        "state",
        "transaction_type",
        "is_input_contract",
        "is_output_contract",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        input: str | None = None,
        output: str | None = None,
        tx_fee: Decimal | None = None,
        height: int | None = None,
        state: str | None = None,
        transaction_type: int | None = None,
        is_input_contract: bool | None = None,
        is_output_contract: bool | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def input(self) -> str | None:
        """Input address as the API returns it; several are separated by commas."""

    @property
    def output(self) -> str | None:
        """Output address as the API returns it; several are separated by commas."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def transaction_type(self) -> int | None:
        """Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559."""

    @property
    def is_input_contract(self) -> bool | None:
        """True if the input address is a contract."""

    @property
    def is_output_contract(self) -> bool | None:
        """True if the output address is a contract."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

@final
class Transaction(Record):
    """A transaction of the main chain, looked up by its hash."""

    __match_args__ = (
        "transaction_time",
        "amount",
        "symbol",
        "from_address",
        "to_address",
        "tx_fee",
        "height",
        "state",
        "nonce",
        "gas_used",
        "gas_limit",
        "gas_price",
        "transaction_type",
        "is_from_contract",
        "is_to_contract",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        amount: Decimal | None = None,
        symbol: str | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        tx_fee: Decimal | None = None,
        height: int | None = None,
        state: str | None = None,
        nonce: int | None = None,
        gas_used: int | None = None,
        gas_limit: int | None = None,
        gas_price: Decimal | None = None,
        transaction_type: int | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def symbol(self) -> str | None:
        """Symbol of the coin moved."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def nonce(self) -> int | None:
        """Number of earlier transactions of the sender."""

    @property
    def gas_used(self) -> int | None:
        """Gas used."""

    @property
    def gas_limit(self) -> int | None:
        """Gas allowed."""

    @property
    def gas_price(self) -> Decimal | None:
        """Price of one unit of gas."""

    @property
    def transaction_type(self) -> int | None:
        """Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559."""

    @property
    def is_from_contract(self) -> bool | None:
        """True if the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """True if the receiver is a contract."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

@final
class EventLog(Record):
    """One event that a contract logged during a transaction."""

    __match_args__ = (
        "transaction_time",
        "address",
        "height",
        "log_index",
        "topics",
        "data",
        "method_id",
        "block_hash",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        transaction_time: datetime | None = None,
        address: str | None = None,
        height: int | None = None,
        log_index: int | None = None,
        topics: list[str] | None = None,
        data: str | None = None,
        method_id: str | None = None,
        block_hash: str | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def transaction_time(self) -> datetime | None:
        """Time of the transaction."""

    @property
    def address(self) -> str | None:
        """Contract that logged the event."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def log_index(self) -> int | None:
        """Position of the log in its block."""

    @property
    def topics(self) -> list[str] | None:
        """Indexed parameters, as hex; the first names the event."""

    @property
    def data(self) -> str | None:
        """Parameters that are not indexed, as hex."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the transaction's block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

# --- end of records ---

# For the testing kit, the command and the tests of the package itself.

@final
class Cassette:
    """Recorded interactions in a file, replayed in place of a service; for tests that need no network.

    Requests are matched by path and parameters, without host and credentials. Each recording is played once, in order,
    failures and retries included, without their waits. A call that depends on the time of the recording is replayed
    with that: its facts are an interaction with the method FACTS, which is never sent. No header, key, signature, host
    or time of a request is written.
    Secrets and hosts that a response echoes are overwritten with `*`, in any encoding; secrets under eight characters
    in error responses only, since data may contain them by chance. A request with a secret in a parameter raises
    `CassetteError` and is not sent.

    Replaying needs no settings. With "new_episodes" they are read when a request has to be recorded.

    A cassette serves any number of clients, threads and forked children. Several processes may record into one file:
    a request that another process has recorded is not recorded again. `CHAINFRAME_CASSETTE` and
    `CHAINFRAME_CASSETTE_MODE` set the file and the mode for every client without the argument `cassette`.

    Parameters
    ----------
    path : str or path
        A file of interactions as JSON, with a line for each record. A line that begins with a space continues the
        interaction above.
    mode : {"none", "once", "new_episodes", "all", "rewrite"}
        As in vcrpy: "none" replays requests, or raises `CassetteMissError`; "once" records if the file is new or empty,
        else replays as "none" does; "new_episodes" replays requests that are in the file and records others; "all"
        records every request again and replaces its earlier recordings. "rewrite", as in pytest-recording, empties the
        file with the first recording, so that no stale one is left; for one process.
    allow_playback_repeats : bool
        If True, the last recording of a request is played again after all of them were played.
    match_on : sequence of str, optional
        Names of the parameters by which requests are compared, in Python or in the API. A name after "-" is left out:
        with `["-start_time"]` a recording is played for any start time. Records are then not compared with that
        parameter. Default: all; an empty list is refused. The letter case of chains and hexadecimal values is not
        compared.
    scrub : callable, optional
        Takes and returns a str. It is called with each value of a parameter and with each body before they are written,
        and with the values of a request that is replayed; records are not compared with a parameter that it changes. A
        body of JSON has to stay JSON. Interactions that were recorded without it are scrubbed where the mode records,
        and refused where it does not. A cassette with it belongs to one process.

    Raises
    ------
    CassetteError
        If the mode is unknown or the file cannot be read; the message names the line.

    Examples
    --------
    >>> with cf.Client(cassette=Cassette("blocks.jsonl", mode="none")) as client:
    ...     blocks = client.blocks(max_items=3).collect()
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        mode: Literal["none", "once", "new_episodes", "all", "rewrite"] = "once",
        *,
        allow_playback_repeats: bool = False,
        match_on: Sequence[str] | None = None,
        scrub: Callable[[str], str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def mode(self) -> Literal["none", "once", "new_episodes", "all", "rewrite"]: ...
    @property
    def can_record(self) -> bool:
        """True if requests may be sent and recorded: not with "none", nor with "once" and an existing recording."""

    @property
    def play_count(self) -> int:
        """Number of interactions replayed so far."""

    @property
    def all_played(self) -> bool:
        """True if every interaction was replayed; `unplayed` lists the others."""

    @property
    def unplayed(self) -> list[str]:
        """Requests of the interactions that were not replayed, such as "GET /api/v5/main/zone/...?height=3"."""

    @property
    def missed(self) -> list[str]:
        """Requests that raised `CassetteMissError`, such as "GET /api/v5/main/zone/...?height=3"."""

    @property
    def interactions(self) -> list[dict[str, Any]]:
        """Interactions in the file when it was opened.

        Each has `method`, `path`, `params`, `status` or the phase of an `error`, `bytes` and text of
        the `body`, and `played`.
        """

    def _compact(self) -> None: ...
    def __enter__(self) -> Self:
        """Use the cassette for every client that is created within the block without one of its own.

        So do the processes that are started there, by the environment. Other threads create such clients too.

        Returns
        -------
        Cassette

        Examples
        --------
        >>> with Cassette("blocks.jsonl"), cf.Client() as client:
        ...     blocks = client.blocks(max_items=3).collect()
        """

    def __exit__(self, *_raised: object) -> None: ...
    def __len__(self) -> int:
        """Number of interactions in the file: read when it was opened or recorded since, without those replaced."""

    def __bool__(self) -> Literal[True]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...

@final
class _LocalService:
    def __new__(
        cls,
        *,
        simulated: bool,
        transactions: int,
        seed: int,
        deployment: Deployment,
        rate_limit: float | None,
        growth: int,
        growth_rate: float | None,
        reorg: tuple[int, int] | None,
        late: tuple[float, int] | None,
        pending: tuple[float, int] | None,
        faults_json: str,
        quirks_json: str,
        compression: str | None,
        max_result_window: int | None,
        db: str | PathLike[str] | None,
        port: int,
        main_chain: str,
        zone_chain: str,
    ) -> Self: ...
    @property
    def deployment(self) -> Deployment: ...
    def simulate(self, client: Client) -> Client: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key(self) -> str: ...
    @property
    def secret_key(self) -> str: ...
    @property
    def passphrase(self) -> str: ...
    @property
    def main_chain(self) -> str: ...
    @property
    def zone_chain(self) -> str: ...
    @property
    def request_count(self) -> int: ...
    def request_log(self) -> list[dict[str, Any]]: ...
    def reset_request_log(self) -> None: ...
    @property
    def faults_json(self) -> str: ...
    def set_faults(self, json_text: str) -> None: ...
    @property
    def unused_faults_json(self) -> str: ...
    @property
    def quirks_json(self) -> str: ...
    @property
    def unused_quirks_json(self) -> str: ...
    def set_quirks(self, json_text: str) -> None: ...
    def set_respond(self, respond: Callable[[dict[str, Any]], str | None] | None) -> None: ...
    @property
    def respond_errors(self) -> list[str]: ...
    @property
    def growth(self) -> int: ...
    def set_growth(self, growth: int) -> None: ...
    @property
    def reorg(self) -> tuple[int, int] | None: ...
    def set_reorg(self, reorg: tuple[int, int] | None) -> None: ...
    @property
    def late(self) -> tuple[float, int] | None: ...
    def set_late(self, late: tuple[float, int] | None) -> None: ...
    @property
    def pending(self) -> tuple[float, int] | None: ...
    def set_pending(self, pending: tuple[float, int] | None) -> None: ...
    @property
    def rate_limit(self) -> float | None: ...
    def set_rate_limit(self, rate: float | None) -> None: ...
    @property
    def clock_skew(self) -> float: ...
    def set_clock_skew(self, seconds: float) -> None: ...
    def load(self, call: str, columns: dict[str, list[Any]], sources: list[str]) -> None: ...
    def load_body(self, call: str, body: bytes, source: str) -> None: ...
    def load_cassette(self, path: str | PathLike[str]) -> int: ...
    def close(self) -> None: ...

def _declaration() -> str: ...
def _environment_cache() -> Cache | None: ...
def _environment_deployment() -> Deployment: ...
def _keep_origins() -> None: ...
def _client_count() -> int: ...
def _sent_requests() -> list[tuple[int, str, str, bool, bool, int]]: ...
def _merge_cassette(cassette: Cassette, other: str | PathLike[str], mode: str) -> list[str]: ...
def _decode_response(call: str, body: bytes, source: str, deployment: Deployment, report: Report) -> Records[Any]: ...
def _sent_value(call: str, parameter: str, value: object) -> str: ...
def _share_cassette(
    path: str | PathLike[str],
    mode: str,
    allow_playback_repeats: bool | None,
    match_on: Sequence[str] | None,
    scrub: Callable[[str], str] | None,
    files: tuple[str | PathLike[str] | None, str | PathLike[str] | None],
    hint: str | None,
) -> Cassette: ...
def _name_cassette(cassette: Cassette) -> list[tuple[str, str]]: ...
def _unname_cassette(cassette: Cassette) -> None: ...
def _forget_cassette(cassette: Cassette) -> None: ...
def _block_network(blocked: bool) -> None: ...
def _without_cassette(client: Client) -> Client: ...

# What pickles call.

def _restore_schema(name: str, columns: list[str]) -> Schema: ...
def _restore_cache(directory: PathLike[str], settle: int, max_age: float, max_bytes: int) -> Cache: ...
def _restore_cassette(
    path: str | PathLike[str],
    mode: Literal["none", "once", "new_episodes", "all", "rewrite"],
    can_record: bool,
    allow_playback_repeats: bool,
    match_on: list[str],
    files: tuple[str | PathLike[str] | None, str | PathLike[str] | None],
    hint: str | None,
) -> Cassette: ...
def _restore_client(given: dict[str, Any]) -> Client: ...
def _openapi(deployment: Deployment, main_chain: str, zone_chain: str, base_url: str) -> str: ...
def _send_recorded(client: Client, path: str, params: list[tuple[str, str]]) -> tuple[int, bytes]: ...
def _proxy(client: Client) -> tuple[str, str]: ...
def _signature(secret: str, timestamp: str, target: str) -> str: ...
def _restore_deployment(settings: dict[str, Any]) -> Deployment: ...
def _release_memory() -> None: ...
def _restore_hint(value: Any) -> Hint: ...
def _restore_estimate(
    num_slices: int,
    pages: tuple[int, int, int | None],
    requests: tuple[int, int, int | None],
    records: tuple[int, int, int | None],
    estimated_seconds: float,
    limitations: Any,
) -> Estimate: ...
def _restore_rate_limit_state(rate: float | None, waiting: int, throttled: int, pause: float) -> RateLimitState: ...
def _restore_usage(members: dict[str, Any]) -> Usage: ...
def _set_telemetry(functions: tuple[Callable[[str], Any], Callable[[Attempt], object]] | None) -> None: ...
def _package_attribute(name: str) -> object: ...
def _set_result(future: Any) -> None: ...
def _restore_page(
    number: int,
    total_pages: int | None,
    total: int | None,
    chain_full_name: str | None,
    chain_short_name: str | None,
    records: Records[Any],
    cursor: str,
) -> Page[Any]: ...
def _restore_query(client: Client, call: str, given: str) -> Query[Any]: ...
def _restore_record(name: str, fields: dict[str, Any]) -> Record: ...
def _restore_records(
    name: str, columns: dict[str, Any], report: Report, cursor: str | None = None, numbers: str | None = None
) -> Records[Any]: ...

@final
class _PartBuffer:
    @property
    def ended(self) -> bool: ...
    @property
    def is_read_to_end(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    def fetch(self) -> None: ...
    async def fetch_async(self) -> None: ...
    def end_here(self) -> None: ...
    def drain(self) -> None: ...
    def is_due(self) -> bool: ...
    def is_piece_due(self) -> bool: ...
    @property
    def room(self) -> int: ...
    def new_keys(self) -> list[tuple[str, int | None]]: ...
    def accept(self, rows: int) -> None: ...
    def skip(self, rows: int) -> None: ...
    def take(self) -> tuple[Records[Any], str] | None: ...
    def take_piece(self) -> tuple[Records[Any], str] | None: ...
    def report(self) -> Report: ...

@final
class _FollowBuffer:
    @property
    def ended(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    @property
    def positions(self) -> _Positions: ...
    def fetch(self) -> None: ...
    async def fetch_async(self) -> None: ...
    def drain(self) -> None: ...
    def is_due(self) -> bool: ...
    def is_piece_due(self) -> bool: ...
    def take(self) -> tuple[Records[Any], _Positions] | None: ...
    def take_piece(self) -> tuple[Records[Any], _Positions] | None: ...
    def report(self) -> Report: ...

@final
class _Positions:
    def __eq__(self, other: object, /) -> bool: ...
    def to_json(self) -> str: ...
    def write(self, file: BinaryIO) -> None: ...
    def since(self, before: _Positions) -> _Positions: ...
    def merged(self, later: _Positions) -> _Positions: ...

def _split_positions(json: bytes, member: str) -> tuple[bytes, _Positions] | None: ...
def _restore_report(members: dict[str, Any]) -> Report: ...
def _evidence(
    call: str, arguments: dict[str, str], is_to_end: bool, columns: dict[str, list[Any]], sources: list[str]
) -> dict[str, dict[str, Any]]: ...
def _resume_query(client: Client, cursor: str) -> Query[Any]: ...
