"""The native core, and the reference of what `chainframe` exports. `chainframe` re-exports every public name here.

Nothing is sent before a query is iterated, collected or converted. Every call that does send may raise any subclass of
`chainframe.ServiceError` and `chainframe.TransportError`, `ResponseFormatError` for an answer that is not what the
interface promises, and `PaginationError` for a list that cannot be read completely.

In the examples `cf` is `chainframe` and `client` a `cf.Client()`.
"""

from collections.abc import Awaitable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar, final, overload

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import disjoint_base

from chainframe.exports import Export
from chainframe.partitions import Partition
from chainframe.testing import LoggedRequest

_R_co = TypeVar("_R_co", bound=Record, default=Any, covariant=True)
_T_co = TypeVar("_T_co", covariant=True)
_Instant: TypeAlias = datetime | str | int
"""An aware `datetime`, ISO 8601 text with an offset, or Unix milliseconds. A naive datetime is refused."""
_Amount: TypeAlias = Decimal | int | str
"""An exact decimal number; a float is refused, since it is none."""
_Numbers: TypeAlias = Literal["decimal", "float", "string"]

# The module's own, written by the binding: it lists private names as well.
__all__ = [
    "AddressTransaction",
    "Block",
    "Cassette",
    "ChainTransaction",
    "Client",
    "CrossChainTransaction",
    "Deployment",
    "EventLog",
    "LargeTransaction",
    "Page",
    "Plan",
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
    "_LocalService",
    "__version__",
    "_declaration",
    "_environment_cassette",
    "_restore_cassette",
    "_restore_client",
    "_restore_deployment",
    "_restore_page",
    "_restore_query",
    "_restore_record",
    "_restore_records",
    "_restore_report",
    "_restore_schema",
    "_resume_query",
    "_signature",
    "_with_cassette",
]

__version__: str

@final
class Deployment:
    """The words that one deployment of the interface uses, where another uses its own.

    They stand in header names (`SVC-ACCESS-KEY`), in paths (`/api/v5/main/zone/...`), in field names (`zoneTxHash`) and
    in what is signed. What chainframe gives out is neutral whatever they are: `zone_tx_hash`, `"MainToZone"`.

    - `prehash`: what is signed; `{timestamp}`, `{method}`, `{target}` (path with query) and `{body}` are filled in.
    - `signature_encoding`: "base64" or "hex".

    Raises `ConfigError` for a word that cannot stand there. Frozen, hashable, comparable, picklable.

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
    ) -> Self: ...
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
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Client:
    """A client of one service; one serves all threads, event loops and forked children.

    A setting that is not given comes from its `CHAINFRAME_*` variable:

    - `base_url` (`CHAINFRAME_BASE_URL`): `https://`, or `http://` to loopback.
    - `api_key`, `secret_key`, `passphrase` (`CHAINFRAME_API_KEY`, ...): never shown, pickled or put in an error.
    - `main_chain`, `zone_chain` (`CHAINFRAME_MAIN_CHAIN`, ...): short names of the two chains.
    - `deployment`: the words this service uses.
    - `timeout`: seconds for one attempt. `deadline`: seconds for one request with all its retries; None for no end.
    - `max_retries`: how often a request is tried again after a failure that may pass.
    - `rate_limit`: "auto" finds the service's pace, a number is requests a second, None is no limit.
    - `concurrency`: requests in flight.
    - `strict`: a result that the service cannot complete raises `IncompleteResultError` instead of a warning.
    - `max_body`: bytes that an answer may have, compressed or not, up to 2 GiB; a longer one is a `TransportError`.
    - `proxy`: URL of a proxy; without, the environment's (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), though not to
      loopback. `ca_bundle`: PEM file of certificates to trust instead of the system's; without, `REQUESTS_CA_BUNDLE`.
    - `cassette` (`CHAINFRAME_CASSETTE`): a `chainframe.testing.Cassette` to record to, or to replay in place of the
      service. Where it can only replay, no other setting is needed. With it, one request is in flight at a time for
      each query, so that what is recorded is no matter of chance.
    - `progress`: "auto" shows a bar on a terminal or in a notebook, for what takes longer than two seconds; True shows
      one at once and wherever standard error goes, False none. Drawn by tqdm, the extra `progress`.

    Raises `ConfigError` for a setting that is missing or malformed. It pickles without its secrets, which are then
    taken from the environment where it is unpickled.

    A call makes a `Query` and sends nothing; it raises `InvalidParameterError` for a value that the service would
    refuse. Beside its own parameters it takes

    - `chain`: another short name than the client's, for this call.
    - `page_size`: records in a page, by default as many as the endpoint allows: the fewest requests.
    - `max_items`: the result ends after as many records.

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
        concurrency: int = 4,
        strict: bool = False,
        max_body: int = 67108864,
        proxy: str | None = None,
        ca_bundle: str | PathLike[str] | None = None,
        cassette: Cassette | None = None,
        progress: Literal["auto"] | bool = "auto",
    ) -> Self: ...
    def tokens(
        self,
        *,
        protocol_type: Literal["token_20", "token_721", "token_1155", "token_10"] | None = None,
        token_contract_address: str | None = None,
        start_time: _Instant | None = None,
        end_time: _Instant | None = None,
        order_by: Literal["totalMarketCap", "transactionAmount24h"] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[Token]:
        """Tokens of the main chain, by market capitalisation unless ordered otherwise. Pages of up to 50.

        `start_time` and `end_time` bound the issue date, both inclusive. More than a year is asked year by
        year, and the order, with it `max_items` and `first`, then holds within each year only.
        The service gives `token_20` tokens unless `protocol_type` says otherwise; `order_by` orders those only.

        >>> client.tokens(order_by="transactionAmount24h", max_items=20).to_pandas()
        """

    def token_transfers(
        self,
        token_contract_address: str,
        *,
        min_amount: _Amount | None = None,
        max_amount: _Amount | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[TokenTransfer]:
        """Transfers of one token, with amounts in whole tokens between the two given. Pages of up to 50.

        >>> for transfer in client.token_transfers("0x2b59...", min_amount="0.5"):
        ...     print(transfer.transaction_time, transfer.amount)
        """

    def cross_chain_transactions(
        self,
        *,
        tx_id: str | None = None,
        height: int | None = None,
        start_height: int | None = None,
        end_height: int | None = None,
        address: str | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        token_contract_address: str | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[CrossChainTransaction]:
        """Transactions that moved value between the main chain and the zone chain. Pages of up to 100.

        Heights are of the zone chain, ranges inclusive. `address` finds either side; `tx_id` one transaction.

        >>> client.cross_chain_transactions(start_height=1_000, end_height=2_000).to_polars()
        """

    def blocks(
        self,
        *,
        height: int | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[Block]:
        """Blocks of the zone chain. Pages of up to 100.

        >>> newest = client.blocks().first()
        """

    def address_transactions(
        self,
        address: str,
        *,
        start_height: int | None = None,
        end_height: int | None = None,
        direction: Literal["from", "to"] | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[AddressTransaction]:
        """Ordinary transactions of one address in the last year, or in the year to its last one. Pages of up to 50.

        `direction` "from" gives only what it sent, "to" only what it received.

        >>> sent = client.address_transactions("0x9f0c...", direction="from").collect()
        """

    def large_transactions(
        self,
        *,
        min_amount: _Amount | None = None,
        height: int | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[LargeTransaction]:
        """Transactions of the main chain above an amount of at least 100, the default. Pages of up to 50.

        >>> client.large_transactions(min_amount=10_000).to_pandas()
        """

    def transactions(
        self,
        *,
        block_hash: str | None = None,
        height: int | None = None,
        start_height: int | None = None,
        end_height: int | None = None,
        chain: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> Query[ChainTransaction]:
        """The main chain's list of transactions. Pages of up to 50.

        The service has no range of heights: `start_height` and `end_height`, both inclusive, are asked height by
        height, which also reaches beyond the 10,000 records at which the plain list ends.

        >>> client.transactions(start_height=4_000_000, end_height=4_000_099).collect()
        """

    def transactions_by_hash(self, tx_ids: str | Iterable[str], *, chain: str | None = None) -> Query[Transaction]:
        """Transactions of the main chain by their hashes, in the order asked; 20 hashes go into one request.

        A hash that the service does not return is in `report.missing`, and the result is not complete.

        >>> client.transactions_by_hash(["0x71c8...", "0x0a52..."]).to_dicts()
        """

    def logs(self, tx_ids: str | Iterable[str], *, chain: str | None = None) -> Query[EventLog]:
        """Event logs of one transaction or many, in the order asked; one request each.

        The service gives about 1,000 logs of a transaction at most; `report` says so where it matters.

        >>> [log.topics for log in client.logs("0x71c8...")]
        """

    def resume(self, cursor: str) -> Query[Any]:
        """The query of a cursor, from there on: exactly the records that were not yet given out, in any process.

        A cursor comes from `Page.cursor`, from `Query.cursor`, or from the `cursor` of an error. It is a small JSON
        text without secrets. What already spoke against completeness is in the report of the rest as well.

        Raises `InvalidParameterError` for a text that is no cursor, was changed, is of another version, or does not fit
        this client's chain or deployment.

        >>> try:
        ...     for page in client.token_transfers("0x2b59...").pages():
        ...         save(page)
        ... except cf.ServiceUnavailableError as error:
        ...     rest = client.resume(error.cursor)
        """

    @property
    def base_url(self) -> str: ...
    @property
    def main_chain(self) -> str: ...
    @property
    def zone_chain(self) -> str: ...
    @property
    def deployment(self) -> Deployment: ...
    @property
    def rate_limit_state(self) -> RateLimitState:
        """How fast requests leave at the moment; "auto" shares one pace among all clients of a key.

        >>> client.rate_limit_state
        RateLimitState(rate=7.21, waiting=3, throttled=2, pause=0.109)
        """

    def _repr_html_(self) -> str: ...
    def close(self) -> None:
        """Give up the connections; a later call makes new ones. The end of a `with` block does the same."""

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
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
class RateLimitState:
    """What a client's pace was when it was asked for.

    - `rate`: requests a second that may leave, or None while nothing bounds them.
    - `waiting`: requests that wait for their turn.
    - `throttled`: answers so far that asked for fewer requests.
    - `pause`: seconds until the next request may leave.

    >>> client.rate_limit_state.rate
    7.21
    """

    @property
    def rate(self) -> float | None: ...
    @property
    def waiting(self) -> int: ...
    @property
    def throttled(self) -> int: ...
    @property
    def pause(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Query(Generic[_R_co]):
    """One call that was not made yet. It may be run more than once; each run asks anew.

    It iterates in `for` and in `async for`, record by record, and fetches page by page underneath. In a notebook, under
    a running event loop, the plain methods work as well.

    It also exports itself as an Arrow stream, so that `duckdb.sql("from query limit 5")` costs one request.

    >>> query = client.token_transfers("0x2b59...")
    >>> for transfer in query: ...
    >>> async for transfer in query: ...
    """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    def __iter__(self) -> Stream[_R_co]: ...
    def __aiter__(self) -> Stream[_R_co]: ...
    def pages(self) -> Stream[Page[_R_co]]:
        """The result page by page, for `for` and `async for`.

        >>> for page in query.pages():
        ...     print(page.number, "of", page.total_pages, len(page.records))
        """

    def batches(self, rows: int = 65_536) -> Stream[Records[_R_co]]:
        """The result in pieces of `rows` records, the last maybe shorter: memory stays bounded. For both loops.

        >>> for records in query.batches(rows=10_000):
        ...     write(records.to_arrow())
        """

    # Of some columns only, for the shell.
    def _reader(self, rows: int | None, numbers: _Numbers, columns: list[str] | None) -> pa.RecordBatchReader: ...
    def reader(self, rows: int = 65_536, numbers: _Numbers = "decimal") -> pa.RecordBatchReader:
        """The result as Arrow batches of `rows` records, fetched as they are read. Errors keep their classes.

        >>> pyarrow.dataset.write_dataset(query.reader(), "transfers", format="parquet")
        """

    def collect(self) -> Records[_R_co]:
        """All records, at once.

        >>> records = query.collect()
        """

    async def collect_async(self) -> Records[_R_co]:
        """`collect` for asyncio.

        >>> first, second = await asyncio.gather(query.collect_async(), other.collect_async())
        """

    def first(self) -> _R_co | None:
        """The first record, from one request for one record; None when there is none.

        >>> newest = client.blocks().first()
        """

    async def first_async(self) -> _R_co | None:
        """`first` for asyncio."""

    def to_pandas(self, numbers: _Numbers = "decimal") -> pd.DataFrame:
        """`collect` and `Records.to_pandas`."""

    def to_polars(self, numbers: _Numbers = "decimal") -> pl.DataFrame:
        """`collect` and `Records.to_polars`."""

    def to_arrow(self, numbers: _Numbers = "decimal") -> pa.Table:
        """`collect` and `Records.to_arrow`."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """`collect` and `Records.to_dicts`."""

    def to_parquet(
        self,
        directory: str | PathLike[str],
        *,
        resume: bool = True,
        overwrite: bool = False,
        since: Export | str | PathLike[str] | None = None,
        numbers: _Numbers = "decimal",
        rows_per_part: int = 65_536,
    ) -> Export:
        """The result as Parquet files in a directory, each record once, even if it is killed and run again.

        A run that failed or was killed goes on where it was when it is run again, in the list as it was at first; one
        that is done sends nothing. Memory holds one part. The directory's `_manifest.json` lists the parts with their
        checksums; docs/exports.md says why each record is there once.

        - `resume`: False refuses a directory that holds an export already. `overwrite`: start over.
        - `since`: an earlier export of the same query, or its directory: only records newer than its newest are
          written, so that a series of exports has each record once. For lists that have their newest record first.
        - `numbers`: as for `Records`. `rows_per_part`: the most rows of one file.

        Raises `ExportError` for a directory that holds something else, a damaged part, or is being written by another
        process, and `ImportError` where pyarrow is missing. A result that the service cannot complete is written and
        then said, as `collect` does.

        >>> client.cross_chain_transactions().to_parquet("crossings/monday")
        >>> client.cross_chain_transactions().to_parquet("crossings/tuesday", since="crossings/monday")
        """

    async def to_parquet_async(
        self,
        directory: str | PathLike[str],
        *,
        resume: bool = True,
        overwrite: bool = False,
        since: Export | str | PathLike[str] | None = None,
        numbers: _Numbers = "decimal",
        rows_per_part: int = 65_536,
    ) -> Export:
        """`to_parquet` for asyncio."""

    def partitions(self, n: int) -> list[Partition[_R_co]]:
        """The result in at most `n` parts that are read apart: by hash, by height, by time, or by place in the list.

        Together, and one after the other, they are the result as it is now: no record is in two of them, and what is
        new later is in none. Hashes and ranges with both ends cost no request; lists that the service counts (`blocks`,
        `token_transfers`, `cross_chain_transactions`) cost one a part, and are cut between pages.

        One part is what cannot be cut: a list that the service neither counts nor narrows (`large_transactions`, and
        `transactions`, `address_transactions` and `tokens` without both ends of a range), a single block, the rest
        after a cursor, and `max_items` with hashes or ranges.

        >>> parts = client.transactions(start_height=4_000_000, end_height=4_009_999).partitions(8)
        >>> with ProcessPoolExecutor() as pool:
        ...     results = list(pool.map(Partition.read, parts))
        """

    # For exports: the query as JSON, whether its list grows at its head, pages whose end says nothing, and what it
    # would have said.
    def _stated(self) -> str: ...
    def _newest_first(self) -> bool: ...
    def _quiet_pages(self) -> Stream[Page[_R_co]]: ...
    def _settle(self, report: Report) -> None: ...
    def explain(self) -> Plan:
        """What a run will take and give, from one request: how many records, requests and seconds.

        Where one request cannot tell, these are None: of several years, of blocks of which the first is empty, and of a
        list that goes on beyond the service's reach.

        >>> client.token_transfers("0x2b59...").explain()
        Plan(records=8120, pages=163, requests=163, windows=1, exact=True, seconds=10.19, cannot=[])
        """

    async def explain_async(self) -> Plan:
        """`explain` for asyncio."""

    @property
    def report(self) -> Report:
        """Of the newest run, while it runs and after."""

    @property
    def partial(self) -> Records[_R_co]:
        """The records that the newest run has fetched so far: what is left after an error or Ctrl-C.

        Of a run that collects it is all of them; of one that hands its records on (iterating, `pages`, `batches`,
        `reader`, an Arrow stream) the latest 2,500 or 8 MiB, so that a loop without end needs no more memory.

        >>> try:
        ...     records = query.collect()
        ... except cf.ChainframeError:
        ...     records = query.partial
        """

    @property
    def cursor(self) -> str:
        """Where the newest run stands, for `Client.resume`: after the last record, page or batch that it gave out.

        After `collect` has failed or was interrupted, it stands after the last of `partial`.

        >>> rest = client.resume(query.cursor)
        """

    @property
    def last_error(self) -> Exception | None:
        """The error of the newest run as it was before an Arrow consumer made text of it."""

    def _repr_html_(self) -> str: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Stream(Generic[_T_co]):
    """What iterating gives: one run of the query, in `for` or in `async for`, which an error does not end.

    >>> stream = query.pages()
    >>> page = next(stream)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[_T_co]: ...
    def _report(self) -> Report: ...

@final
class Page(Generic[_R_co]):
    """One page of a result, as the service numbered it.

    >>> page = next(iter(client.blocks().pages()))
    >>> page.number, page.total_pages, page.total
    """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    @property
    def number(self) -> int: ...
    @property
    def total_pages(self) -> int | None: ...
    @property
    def total(self) -> int | None:
        """Records in the whole list; None where the service does not say."""

    @property
    def chain_full_name(self) -> str | None: ...
    @property
    def chain_short_name(self) -> str | None: ...
    @property
    def records(self) -> Records[_R_co]: ...
    @property
    def cursor(self) -> str:
        """Where the result goes on after this page, for `Client.resume`."""

    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Records(Generic[_R_co]):
    """A sequence of records held as Arrow columns; a record is made when it is looked at.

    What it converts to depends on `numbers` for amounts and estimates; all else is int64, timestamp[ms, UTC], bool,
    utf8 and list<utf8>, each with nulls:

    - "decimal": amounts are decimal128(38, 18), estimates float64. Raises `NumericOverflowError` where an amount does
      not fit exactly.
    - "float": float64, the nearest double.
    - "string": utf8, the digits as sent.

    >>> records = client.tokens().collect()
    >>> len(records), records[0].token, records[-10:].to_pandas()
    """

    def __class_getitem__(cls, record: Any) -> GenericAlias: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> _R_co: ...
    @overload
    def __getitem__(self, index: slice, /) -> Records[_R_co]: ...
    def __iter__(self) -> Iterator[_R_co]: ...
    @property
    def report(self) -> Report: ...
    @property
    def schema(self) -> Schema:
        """The columns under the default of `numbers`; an empty result has the same."""

    def __contains__(self, record: object, /) -> bool: ...
    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The place of the first record that is equal, as of a list."""

    def count(self, value: Any) -> int:
        """How many records are equal, as of a list."""

    def to_pandas(self, numbers: _Numbers = "decimal") -> pd.DataFrame:
        """A data frame with Arrow columns (`pandas.ArrowDtype`): exact, with nulls, without a copy.

        Raises `ImportError` with the command that installs pandas where it is missing.

        >>> frame = records.to_pandas()
        >>> frame.groupby("from_address").amount.sum()
        """

    def to_polars(self, numbers: _Numbers = "decimal") -> pl.DataFrame:
        """A polars data frame of the same columns.

        >>> frame = records.to_polars(numbers="float")
        """

    def to_arrow(self, numbers: _Numbers = "decimal") -> pa.Table:
        """A pyarrow table of the same columns.

        >>> pyarrow.parquet.write_table(records.to_arrow(), "transfers.parquet")
        """

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a record, with the exact values of its attributes.

        >>> records.to_dicts()[0]["amount"]
        Decimal('0.150851832900380503')
        """

    def _repr_html_(self) -> str: ...
    def _identities(self) -> list[str]: ...
    def _to_arrow(self, numbers: _Numbers, columns: list[str] | None) -> pa.Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Plan:
    """What a query will take and give, as far as one request tells; None for what the service does not tell.

    >>> plan = client.transactions(start_height=4_000_000, end_height=4_000_099).explain()
    >>> print(plan.requests, "requests,", plan.seconds, "seconds,", *plan.cannot)
    """

    @property
    def windows(self) -> int:
        """Lists that are read one after the other: blocks of a range, years, or requests for hashes."""

    @property
    def pages(self) -> int | None: ...
    @property
    def requests(self) -> int | None:
        """Where nothing fails and no list grows meanwhile."""

    @property
    def records(self) -> int | None: ...
    @property
    def exact(self) -> bool:
        """Whether the service counted this; False where all blocks are taken to be like the first."""

    @property
    def seconds(self) -> float | None:
        """At the pace that the client keeps at present."""

    @property
    def cannot(self) -> list[str]:
        """What the service cannot deliver, one sentence each."""

    def _repr_html_(self) -> str: ...

@final
class Schema:
    """Names and types of columns, for `pyarrow.schema`, `polars` and whatever else takes Arrow.

    >>> pyarrow.schema(records.schema).field("amount").type
    Decimal128Type(decimal128(38, 18))
    """

    @property
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Report:
    """How complete a result is, and what it took.

    >>> records = client.transactions().collect()
    >>> if not records.report.complete:
    ...     print(*records.report.reasons, sep="\\n")
    """

    @property
    def complete(self) -> bool: ...
    @property
    def reasons(self) -> list[str]:
        """Why it is not complete, one sentence each."""

    @property
    def requests(self) -> int:
        """Attempts that were sent."""

    @property
    def retries(self) -> int: ...
    @property
    def pages(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def duplicates_dropped(self) -> int:
        """Records that came twice because the list grew while it was read."""

    @property
    def missing(self) -> list[str]:
        """Hashes asked for and not returned."""

    @property
    def bytes(self) -> int:
        """Size of the answers."""

    @property
    def elapsed(self) -> float:
        """Seconds from the start to the latest answer or error."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def _repr_html_(self) -> str: ...

@disjoint_base
class Record:
    """One row of a result; each resource has a class of its own.

    Frozen, hashable, comparable and picklable. An attribute is None where the service sent no value.

    >>> transfer = client.token_transfers("0x2b59...").first()
    >>> transfer.amount
    Decimal('0.150851832900380503')
    """

    def to_dict(self) -> dict[str, Any]:
        """>>> transfer.to_dict()["tx_id"]"""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# --- records, written by scripts/generate_stub.py: `make stub` ---
@final
class Token(Record):
    """A token of the main chain."""

    __match_args__ = (
        "token_full_name",
        "token",
        "precision",
        "token_contract_address",
        "protocol_type",
        "address_count",
        "total_supply",
        "circulating_supply",
        "price",
        "website",
        "total_market_cap",
        "issue_date",
        "transaction_amount_24h",
        "tvl",
        "logo_url",
    )
    def __new__(
        cls,
        *,
        token_full_name: str | None = None,
        token: str | None = None,
        precision: int | None = None,
        token_contract_address: str | None = None,
        protocol_type: str | None = None,
        address_count: int | None = None,
        total_supply: Decimal | None = None,
        circulating_supply: Decimal | None = None,
        price: Decimal | None = None,
        website: str | None = None,
        total_market_cap: Decimal | None = None,
        issue_date: datetime | None = None,
        transaction_amount_24h: Decimal | None = None,
        tvl: Decimal | None = None,
        logo_url: str | None = None,
    ) -> Self: ...
    @property
    def token_full_name(self) -> str | None:
        """Full name."""

    @property
    def token(self) -> str | None:
        """Symbol."""

    @property
    def precision(self) -> int | None:
        """Decimals of the token's smallest unit."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def protocol_type(self) -> str | None:
        """Protocol of the token, such as `ERC20`."""

    @property
    def address_count(self) -> int | None:
        """Number of addresses that hold it."""

    @property
    def total_supply(self) -> Decimal | None:
        """Total supply, in whole tokens."""

    @property
    def circulating_supply(self) -> Decimal | None:
        """Circulating supply on all chains."""

    @property
    def price(self) -> Decimal | None:
        """Price in USD."""

    @property
    def website(self) -> str | None:
        """Website; may be empty."""

    @property
    def total_market_cap(self) -> Decimal | None:
        """Market capitalisation on all chains, in USD."""

    @property
    def issue_date(self) -> datetime | None:
        """When the token was issued."""

    @property
    def transaction_amount_24h(self) -> Decimal | None:
        """Volume of the past 24 hours in USD; meaningful for ERC-20 tokens only."""

    @property
    def tvl(self) -> Decimal | None:
        """Total value locked, in USD."""

    @property
    def logo_url(self) -> str | None:
        """Address of the logo image."""

@final
class TokenTransfer(Record):
    """One transfer of a token from one address to another."""

    __match_args__ = (
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "transaction_symbol",
        "method_id",
        "token_contract_address",
        "protocol_type",
        "state",
        "token_id",
    )
    def __new__(
        cls,
        *,
        tx_id: str | None = None,
        block_hash: str | None = None,
        height: int | None = None,
        transaction_time: datetime | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        method_id: str | None = None,
        token_contract_address: str | None = None,
        protocol_type: str | None = None,
        state: str | None = None,
        token_id: str | None = None,
    ) -> Self: ...
    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def is_from_contract(self) -> bool | None:
        """Whether the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """Whether the receiver is a contract."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def protocol_type(self) -> str | None:
        """Protocol of the token."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def token_id(self) -> str | None:
        """Token ID of an NFT, as text since it may exceed 64 bits; else empty."""

@final
class CrossChainTransaction(Record):
    """A transaction that moved value between the main chain and the zone chain."""

    __match_args__ = (
        "id",
        "tx_type",
        "cross_type",
        "status",
        "main_tx_hash",
        "main_block_height",
        "main_block_time",
        "zone_tx_hash",
        "zone_block_height",
        "zone_block_time",
        "from_address",
        "to_address",
        "source_address",
        "target_address",
        "value",
        "value_raw",
        "token_contract_address",
        "token_type",
        "token_id",
        "token_name",
    )
    def __new__(
        cls,
        *,
        id: str | None = None,
        tx_type: str | None = None,
        cross_type: str | None = None,
        status: str | None = None,
        main_tx_hash: str | None = None,
        main_block_height: int | None = None,
        main_block_time: datetime | None = None,
        zone_tx_hash: str | None = None,
        zone_block_height: int | None = None,
        zone_block_time: datetime | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        source_address: str | None = None,
        target_address: str | None = None,
        value: Decimal | None = None,
        value_raw: int | None = None,
        token_contract_address: str | None = None,
        token_type: str | None = None,
        token_id: str | None = None,
        token_name: str | None = None,
    ) -> Self: ...
    @property
    def id(self) -> str | None:
        """Hash of the cross-chain transaction; may be empty."""

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
    def main_tx_hash(self) -> str | None:
        """Hash of the transaction on the main chain."""

    @property
    def main_block_height(self) -> int | None:
        """Block height on the main chain."""

    @property
    def main_block_time(self) -> datetime | None:
        """Block time on the main chain."""

    @property
    def zone_tx_hash(self) -> str | None:
        """Hash of the transaction on the zone chain."""

    @property
    def zone_block_height(self) -> int | None:
        """Block height on the zone chain."""

    @property
    def zone_block_time(self) -> datetime | None:
        """Block time on the zone chain."""

    @property
    def from_address(self) -> str | None:
        """Address that signed on the link layer."""

    @property
    def to_address(self) -> str | None:
        """Address the transaction was sent to."""

    @property
    def source_address(self) -> str | None:
        """Address the value came from."""

    @property
    def target_address(self) -> str | None:
        """Address the value went to."""

    @property
    def value(self) -> Decimal | None:
        """Amount, in whole tokens."""

    @property
    def value_raw(self) -> int | None:
        """Amount in the token's smallest unit, up to 2^256-1."""

    @property
    def token_contract_address(self) -> str | None:
        """Contract address of the token."""

    @property
    def token_type(self) -> str | None:
        """`ERC20` or `ERC1155`."""

    @property
    def token_id(self) -> str | None:
        """Token ID of an NFT, as text since it may exceed 64 bits; else empty."""

    @property
    def token_name(self) -> str | None:
        """Name of the token."""

@final
class Block(Record):
    """A block of the zone chain."""

    __match_args__ = (
        "hash",
        "height",
        "miner",
        "block_time",
        "transaction_count",
    )
    def __new__(
        cls,
        *,
        hash: str | None = None,
        height: int | None = None,
        miner: str | None = None,
        block_time: datetime | None = None,
        transaction_count: int | None = None,
    ) -> Self: ...
    @property
    def hash(self) -> str | None:
        """Block hash."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def miner(self) -> str | None:
        """Address of the block's producer."""

    @property
    def block_time(self) -> datetime | None:
        """When the block was made."""

    @property
    def transaction_count(self) -> int | None:
        """Number of transactions in the block."""

@final
class AddressTransaction(Record):
    """An ordinary transaction that an address sent or received."""

    __match_args__ = (
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "state",
        "method_id",
        "symbol",
        "nonce",
        "gas_used",
        "gas_limit",
        "gas_price",
        "tx_fee",
        "transaction_type",
    )
    def __new__(
        cls,
        *,
        tx_id: str | None = None,
        block_hash: str | None = None,
        height: int | None = None,
        transaction_time: datetime | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        amount: Decimal | None = None,
        state: str | None = None,
        method_id: str | None = None,
        symbol: str | None = None,
        nonce: int | None = None,
        gas_used: int | None = None,
        gas_limit: int | None = None,
        gas_price: Decimal | None = None,
        tx_fee: Decimal | None = None,
        transaction_type: int | None = None,
    ) -> Self: ...
    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def is_from_contract(self) -> bool | None:
        """Whether the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """Whether the receiver is a contract."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def symbol(self) -> str | None:
        """Symbol of the coin moved."""

    @property
    def nonce(self) -> int | None:
        """How many transactions the sender had made before."""

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
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def transaction_type(self) -> int | None:
        """0 original, 1 EIP-2930, 2 EIP-1559."""

@final
class LargeTransaction(Record):
    """A transaction of the main chain that moved a large amount."""

    __match_args__ = (
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "input",
        "output",
        "is_input_contract",
        "is_output_contract",
        "amount",
        "transaction_symbol",
        "tx_fee",
        "method_id",
        "transaction_type",
        "state",
    )
    def __new__(
        cls,
        *,
        tx_id: str | None = None,
        block_hash: str | None = None,
        height: int | None = None,
        transaction_time: datetime | None = None,
        input: str | None = None,
        output: str | None = None,
        is_input_contract: bool | None = None,
        is_output_contract: bool | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        tx_fee: Decimal | None = None,
        method_id: str | None = None,
        transaction_type: int | None = None,
        state: str | None = None,
    ) -> Self: ...
    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def input(self) -> str | None:
        """Input address; several are separated by commas."""

    @property
    def output(self) -> str | None:
        """Output address; several are separated by commas."""

    @property
    def is_input_contract(self) -> bool | None:
        """Whether the input address is a contract."""

    @property
    def is_output_contract(self) -> bool | None:
        """Whether the output address is a contract."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def transaction_type(self) -> int | None:
        """0 original, 1 EIP-2930, 2 EIP-1559."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

@final
class ChainTransaction(Record):
    """A transaction in the main chain's list."""

    __match_args__ = (
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "input",
        "output",
        "is_input_contract",
        "is_output_contract",
        "amount",
        "transaction_symbol",
        "tx_fee",
        "method_id",
        "transaction_type",
        "state",
    )
    def __new__(
        cls,
        *,
        tx_id: str | None = None,
        block_hash: str | None = None,
        height: int | None = None,
        transaction_time: datetime | None = None,
        input: str | None = None,
        output: str | None = None,
        is_input_contract: bool | None = None,
        is_output_contract: bool | None = None,
        amount: Decimal | None = None,
        transaction_symbol: str | None = None,
        tx_fee: Decimal | None = None,
        method_id: str | None = None,
        transaction_type: int | None = None,
        state: str | None = None,
    ) -> Self: ...
    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def input(self) -> str | None:
        """Input address as the service gives it; several are separated by commas."""

    @property
    def output(self) -> str | None:
        """Output address as the service gives it; several are separated by commas."""

    @property
    def is_input_contract(self) -> bool | None:
        """Whether the input address is a contract."""

    @property
    def is_output_contract(self) -> bool | None:
        """Whether the output address is a contract."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def transaction_symbol(self) -> str | None:
        """Symbol of the coin or token moved."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def transaction_type(self) -> int | None:
        """0 original, 1 EIP-2930, 2 EIP-1559."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

@final
class Transaction(Record):
    """A transaction of the main chain, looked up by its hash."""

    __match_args__ = (
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "symbol",
        "nonce",
        "gas_limit",
        "gas_used",
        "gas_price",
        "tx_fee",
        "state",
        "transaction_type",
        "method_id",
    )
    def __new__(
        cls,
        *,
        tx_id: str | None = None,
        block_hash: str | None = None,
        height: int | None = None,
        transaction_time: datetime | None = None,
        from_address: str | None = None,
        to_address: str | None = None,
        is_from_contract: bool | None = None,
        is_to_contract: bool | None = None,
        amount: Decimal | None = None,
        symbol: str | None = None,
        nonce: int | None = None,
        gas_limit: int | None = None,
        gas_used: int | None = None,
        gas_price: Decimal | None = None,
        tx_fee: Decimal | None = None,
        state: str | None = None,
        transaction_type: int | None = None,
        method_id: str | None = None,
    ) -> Self: ...
    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def from_address(self) -> str | None:
        """Sending address; several are separated by commas."""

    @property
    def to_address(self) -> str | None:
        """Receiving address; several are separated by commas."""

    @property
    def is_from_contract(self) -> bool | None:
        """Whether the sender is a contract."""

    @property
    def is_to_contract(self) -> bool | None:
        """Whether the receiver is a contract."""

    @property
    def amount(self) -> Decimal | None:
        """Amount moved, in whole coins or tokens."""

    @property
    def symbol(self) -> str | None:
        """Symbol of the coin moved."""

    @property
    def nonce(self) -> int | None:
        """How many transactions the sender had made before."""

    @property
    def gas_limit(self) -> int | None:
        """Gas allowed."""

    @property
    def gas_used(self) -> int | None:
        """Gas used."""

    @property
    def gas_price(self) -> Decimal | None:
        """Price of one unit of gas."""

    @property
    def tx_fee(self) -> Decimal | None:
        """Fee paid for the transaction."""

    @property
    def state(self) -> str | None:
        """`success`, `fail` or `pending`."""

    @property
    def transaction_type(self) -> int | None:
        """0 original, 1 EIP-2930, 2 EIP-1559."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

@final
class EventLog(Record):
    """One event that a contract logged during a transaction."""

    __match_args__ = (
        "height",
        "address",
        "topics",
        "data",
        "block_hash",
        "method_id",
        "transaction_time",
        "log_index",
        "tx_id",
    )
    def __new__(
        cls,
        *,
        height: int | None = None,
        address: str | None = None,
        topics: list[str] | None = None,
        data: str | None = None,
        block_hash: str | None = None,
        method_id: str | None = None,
        transaction_time: datetime | None = None,
        log_index: int | None = None,
        tx_id: str | None = None,
    ) -> Self: ...
    @property
    def height(self) -> int | None:
        """Block height."""

    @property
    def address(self) -> str | None:
        """Contract that logged the event."""

    @property
    def topics(self) -> list[str] | None:
        """Indexed parameters, as hex; the first names the event."""

    @property
    def data(self) -> str | None:
        """Parameters that are not indexed, as hex."""

    @property
    def block_hash(self) -> str | None:
        """Hash of the block that holds it."""

    @property
    def method_id(self) -> str | None:
        """Identifier of the contract method called."""

    @property
    def transaction_time(self) -> datetime | None:
        """When the transaction was made."""

    @property
    def log_index(self) -> int | None:
        """Position of the log in its block."""

    @property
    def tx_id(self) -> str | None:
        """Transaction hash."""

# --- end of records ---

# For the testing kit, the command and the tests of the package itself.

@final
class Cassette:
    """Recorded answers in a file, replayed in place of the service; for tests that need no network.

    `mode` says what becomes of a request, as in vcrpy:

    - "none": it is replayed, or raises `CassetteMissError`. The service is never asked.
    - "once": recorded if the file is new or empty; else as "none".
    - "new_episodes": replayed if it is in the file, else recorded.
    - "all": recorded anew, in place of what the file has of that request.

    A request is known by its path and its parameters, wherever the service is and whoever asks; each recording of it is
    played once, in order, failures and retries included, and without their waits. A line of the file is one exchange,
    as JSON. It never holds a header, a key, a signature, a host or the time of the request, and what an answer echoes
    of them is overwritten with `*`; secrets under eight characters only where the service refused, since in its data
    they may stand by chance. A request with a secret for a parameter raises `CassetteError`, and is not sent.

    What is replayed needs no settings; with "new_episodes" they are asked for when something has to be recorded.

    One cassette serves any number of clients, threads and forked children. Several processes may record into one file,
    with "new_episodes" or "all". In the environment, `CHAINFRAME_CASSETTE` names the file for every client that is not
    given a cassette, and `CHAINFRAME_CASSETTE_MODE` the mode.

    Raises `CassetteError` for an unknown mode, and for a file that cannot be read: it names the line.

    >>> with cf.Client(cassette=Cassette("blocks.jsonl", mode="none")) as client:
    ...     blocks = client.blocks(max_items=3).collect()
    """

    def __new__(
        cls, path: str | PathLike[str], mode: Literal["none", "once", "new_episodes", "all"] = "once"
    ) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def mode(self) -> Literal["none", "once", "new_episodes", "all"]: ...
    @property
    def recording(self) -> bool:
        """Whether the service may be asked: false with "none", and with "once" where there was a recording."""

    @property
    def play_count(self) -> int:
        """Exchanges replayed so far."""

    @property
    def all_played(self) -> bool:
        """Whether every exchange was replayed, as a test may want to assert at its end."""

    def __len__(self) -> int:
        """Exchanges in the file: when it was opened, and recorded since; without those that were replaced."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...

@final
class _LocalService:
    def __new__(
        cls,
        *,
        transactions: int,
        seed: int,
        deployment: Deployment,
        rate_limit: float | None,
        growth: int,
        growth_rate: float | None,
        reorg: tuple[int, int] | None,
        faults_json: str,
        reach: int,
        db: str | PathLike[str] | None,
        port: int,
        main_chain: str,
        zone_chain: str,
    ) -> Self: ...
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
    def requests(self) -> int: ...
    def request_log(self) -> list[LoggedRequest]: ...
    def clear_requests(self) -> None: ...
    @property
    def faults_json(self) -> str: ...
    def set_faults(self, json_text: str) -> None: ...
    @property
    def growth(self) -> int: ...
    def set_growth(self, growth: int) -> None: ...
    @property
    def rate_limit(self) -> float | None: ...
    def set_rate_limit(self, rate: float | None) -> None: ...
    @property
    def clock_ahead(self) -> float: ...
    def set_clock_ahead(self, seconds: float) -> None: ...
    def load(self, call: str, columns: dict[str, list[Any]], places: list[str]) -> None: ...
    def load_body(self, call: str, body: bytes, place: str) -> None: ...
    def load_answers(self, path: str | PathLike[str]) -> int: ...
    def close(self) -> None: ...

def _declaration() -> str: ...
def _environment_cassette(fresh: bool) -> Cassette | None: ...
def _with_cassette(client: Client, cassette: Cassette) -> Client: ...

# What pickles call.

def _restore_schema(name: str) -> Schema: ...
def _restore_cassette(
    path: str | PathLike[str], mode: Literal["none", "once", "new_episodes", "all"], recording: bool
) -> Cassette: ...
def _restore_client(given: dict[str, Any]) -> Client: ...
def _signature(secret: str, timestamp: str, target: str) -> str: ...
def _restore_deployment(
    header_prefix: str, main: str, zone: str, prehash: str, signature_encoding: Literal["base64", "hex"]
) -> Deployment: ...
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
def _restore_records(name: str, columns: dict[str, Any], report: Report) -> Records[Any]: ...
def _restore_report(members: dict[str, Any]) -> Report: ...
def _resume_query(client: Client, cursor: str) -> Query[Any]: ...
