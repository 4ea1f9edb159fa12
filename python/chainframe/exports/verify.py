"""Verification of an export: the checksums of its files, and records that are requested a second way.

The first way is the query of the export, page by page. The second way depends on what the API offers for the call:

- heights: the list with another page size between two heights that lie around a random record, or at each of these
  heights. So a record that the export lacks is found as well as one that it has twice.
- pages: the whole list with another page size, where there is no filter by height. Such lists end at the result window.
- hashes: the transactions of random records, by hash; the columns that both have.
- logs: for token transfers, the event logs of their transactions.
- invariants: the laws that the records obey on a chain (`Report.evidence`), for which nothing is requested.
"""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Context, Decimal
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from chainframe import _native
from chainframe._declared import ENDPOINTS, LAWS, record_of
from chainframe.errors import ExportError
from chainframe.exports.comparison import Row, by_key, is_changed, joined, wide, width
from chainframe.exports.manifest import Manifest
from chainframe.exports.series import before_in_series, earlier, linked_path
from chainframe.exports.sources import arrow_files
from chainframe.exports.store import finished_manifest, read_manifest, verify_content
from chainframe.exports.verification import Difference, Verification
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chainframe import Client, Query, Records
    from chainframe._objects import Location

EXACT = Context(prec=1_000)
"""The context of the program may round to 28 digits, and so take different amounts for equal ones."""
MAX_GAP = 50
"""Least distance between two records at which not all heights between them are requested one by one."""
PROBES = 10
"""Most heights that are requested within a gap that is not read completely."""
OF_BLOCK = {"tx_id": "tx_id", "block_hash": "block_hash", "height": "height", "transaction_time": "transaction_time"}
OF_TRANSACTION = {**OF_BLOCK, "amount": "amount", "transaction_type": "transaction_type"}
# Columns that a record shares with its transaction, and their names there.
SHARED = {
    "token_transfers": OF_BLOCK,
    "logs": OF_BLOCK,
    "transactions": OF_TRANSACTION,
    "large_transactions": OF_TRANSACTION,
    "address_transactions": {**OF_TRANSACTION, **{name: name for name in ("from_address", "to_address", "nonce")}},
    "cross_chain_transactions": {
        "main_tx_hash": "tx_id",
        "main_block_height": "height",
        "main_block_time": "transaction_time",
    },
}
PER_REQUEST = 20
# Fields of a token that change every minute.
VOLATILE = {"address_count", "website", "logo_url"}
TRANSFERS: dict[str, str | None] = {
    "ERC20.Transfer": "value",
    "ERC721.Transfer": None,
    "ERC1155.TransferSingle": "value",
}


class Found(NamedTuple):
    """Comparison in one way."""

    records: int
    differences: list[Difference]


class Verifier:
    """Compares the export in a directory with the API."""

    def __init__(self, path: Location, manifest: Manifest, client: Client, sample: int, seed: int | None) -> None:
        self._pyarrow = load("pyarrow")
        # Records from the cache of the client would be compared with themselves.
        self._client = client.with_options(cache=None)
        self._sample = sample
        self._random = random.Random(seed)  # noqa: S311 - a sample, not a secret
        self._path = path
        self._manifest = manifest
        self._call: str = manifest.query["call"]
        self._arguments: Row = manifest.query["arguments"]
        self._columns = list(manifest.schema)
        record = record_of(self._call)
        self.height: str = record["roles"]["height"]
        self.tx_id: str = record["roles"]["transaction"]
        self._params = {param["name"]: param for param in ENDPOINTS[self._call]["params"]}
        # True if a range of heights is a filter of the API.
        self._is_range = "start_height" in self._params and self._params["start_height"]["wire"] is not None
        self._kinds = {field["name"]: field["kind"] for field in record["fields"]}
        self._numbers = {name for name, kind in self._kinds.items() if kind in {"amount", "estimate"}}
        self._key = [name for name in record["identity"] if name in manifest.schema]
        self._chain: dict[str, str] = {ENDPOINTS[self._call]["chain"]: manifest.query["chain"]}
        self._files = 0
        self._requests = 0
        # In the order in which they were given, each once.
        self._reasons: dict[str, None] = {}

    def run(self) -> Verification:
        damaged = [Difference("files", "damaged", name) for name in self._damaged(self._path, self._manifest)]
        found = {} if damaged else {way: compare() for way, compare in self.ways()}
        damaged += [Difference("files", "damaged", name) for name in self._damaged_before()]
        sampled = {way: result.records for way, result in found.items() if result.records}
        differences = [*damaged, *(difference for result in found.values() for difference in result.differences)]
        return Verification(
            self._manifest.rows,
            self._files,
            sampled,
            self._requests,
            tuple(differences),
            tuple(self._reasons),
        )

    def _damaged(self, path: Location, manifest: Manifest) -> Iterator[str]:
        """Names of the files that are missing or are not as they were written."""
        self._files += len(manifest.parts)
        for part in manifest.files:
            try:
                verify_content(path, part)
            except ExportError:
                yield part.name

    def _damaged_before(self) -> Iterator[str]:
        """Names of such files of the exports of a series that this one continues, with their directories."""
        path, manifest = self._path, self._manifest
        while (before := before_in_series(path, manifest)) is not None:
            try:
                # Fails if it has another manifest than the one that was continued.
                earlier(path, manifest)
                manifest = finished_manifest(before)
            except ExportError:
                yield f"{before.name}/{Manifest.NAME}"
                return
            path = before
            yield from (f"{path.name}/{name}" for name in self._damaged(path, manifest))

    def ways(self) -> Iterator[tuple[str, Callable[[], Found]]]:
        if not self._manifest.rows:
            return
        # A record of several lists is there several times, and its list is not read again.
        is_list = not self._is_set()
        if is_list:
            yield from self._ways_of_list()
        if self._call in SHARED and self.tx_id in self._columns:
            yield "hashes", self.by_hashes
        # With bounds of the amount, the export lacks some transfers of a transaction.
        has_all = is_list and not {"min_amount", "max_amount"} & self._arguments.keys()
        if has_all and self._call == "token_transfers" and {"tx_id", "amount", "state"} <= set(self._columns):
            yield "logs", self.by_logs

    def _ways_of_list(self) -> Iterator[tuple[str, Callable[[], Found]]]:
        columns = set(self._columns)
        laws = [law for law in LAWS if law["endpoint"] == self._call]
        # An export that continues another one has what was added only.
        if self._manifest.since is None and any(columns.issuperset(law["columns"]) for law in laws):
            yield "invariants", self.by_invariants
        has_heights = "height" in self._params or self._is_range
        is_of_block = bool({"height", "block_hash", "tx_id"} & self._arguments.keys())
        if has_heights and self.height in columns and not is_of_block:
            yield "heights", self.by_heights
        elif ENDPOINTS[self._call]["page_size_max"] and self._key:
            yield "pages", self.by_pages
        if self._call == "transactions_by_hash" and {"tx_id", "height"} <= columns:
            yield "heights", self.by_blocks

    def _is_set(self) -> bool:
        selecting = (name for name, param in self._params.items() if param["selects list"])
        return any(isinstance(self._arguments.get(name), list) for name in selecting)

    # Records of the export.

    def rows(self, columns: Sequence[str], low: int | None = None, high: int | None = None) -> list[Row]:
        """Records of the export in order, all or those of a range of heights."""
        import pyarrow.dataset as ds  # noqa: PLC0415 - an extra

        files = ds.dataset(**arrow_files([self._path / part.name for part in self._manifest.parts]), format="parquet")
        height: Any = ds.field(self.height) if low is not None else None
        wanted = None if low is None else (height >= low) & (height <= high)
        return self.exact(files.to_table(columns=list(columns), filter=wanted).to_pylist())

    # Records of the API.

    def fetch(self, call: str, arguments: Row, **options: Any) -> list[Row]:  # noqa: ANN401 - of the call
        query: Query[Any] = getattr(self._client, call)(
            **arguments, **options, chain=self._chain.get(ENDPOINTS[call]["chain"])
        )
        records = self.collect(query)
        columns = self._columns if call == self._call else None
        numbers: Any = self._manifest.numbers
        return self.exact(records.to_arrow(numbers, columns=columns).to_pylist())

    def collect(self, query: Query[Any]) -> Records[Any]:
        records = query.collect()
        self._requests += records.report.requests
        self._reasons |= dict.fromkeys(records.report.reasons)
        return records

    def exact(self, rows: list[Row]) -> list[Row]:
        """Numbers that were written as strings, in one spelling."""
        if self._manifest.numbers == "string":
            for row in rows:
                for name in row.keys() & self._numbers:
                    row[name] = row[name] and EXACT.normalize(Decimal(row[name]))
        return rows

    def fetch_list(self, **bounds: int) -> list[Row]:
        """The list of the export within bounds, with another page size."""
        max_size = self._client.deployment.max_page_size or ENDPOINTS[self._call]["page_size_max"]
        times = {"start_time", "end_time"} if bounds else set()
        arguments = {name: value for name, value in self._arguments.items() if name not in times}
        if bounds:
            arguments = {name: value for name, value in arguments.items() if not name.endswith("_height")}
        page_size = self._random.randint(max(max_size // 2, 1), max(max_size - 1, 1))
        return self.fetch(self._call, {**arguments, **bounds}, page_size=page_size)

    # The ways.

    def by_heights(self) -> Found:
        heights: list[int] = [row[self.height] for row in self.rows([self.height]) if row[self.height] is not None]
        # The first and the last height may have records that the export was not to have.
        ends = {min(heights), max(heights)} if heights else set()
        earlier = self.end_of_earlier()
        inner = [(min(pair), max(pair)) for pair in pairwise(heights) if not ends & set(pair) and min(pair) > earlier]
        sampled = self._random.sample(inner, min(self._sample, len(inner)))
        narrow = [pair for pair in sampled if self._is_range or width(pair) < MAX_GAP]
        compared = 0
        differences: list[Difference] = []
        for low, high in joined(narrow):
            ours = self.rows(self._columns, low, high)
            # A record that the export lacks is between two that it has.
            compared += len(ours) - 1
            differences += self.differences("heights", ours, self.fetch_range(low, high))
        for low, high in sorted(set(wide(inner)).difference(narrow)):
            differences += self.differences("heights", [], self.fetch_between(low, high))
        return Found(compared, differences)

    def end_of_earlier(self) -> float:
        """Last height of the settled export that this one continues: up to it, this one has late records only."""
        since = self._manifest.since
        if since is None or self._manifest.settled is None:
            return -1
        earlier = read_manifest(linked_path(self._path, since["path"]))
        end = None if earlier is None or earlier.settled is None else earlier.settled.end_height
        return inf if end is None else end

    def fetch_range(self, low: int, high: int) -> list[Row]:
        """All records of a range of heights."""
        if self._is_range:
            return self.fetch_list(start_height=low, end_height=high)
        return [row for height in range(low, high + 1) for row in self.fetch_list(height=height)]

    def fetch_between(self, low: int, high: int) -> list[Row]:
        """Records between two heights, or some of them: the export has none."""
        between = range(low + 1, high)
        if not between:
            return []
        if self._is_range:
            return self.fetch_list(start_height=between[0], end_height=between[-1])
        probed = sorted(self._random.sample(between, min(PROBES, len(between))))
        return [row for height in probed for row in self.fetch_list(height=height)]

    def by_pages(self) -> Found:
        ours = self.rows(self._columns)
        theirs = self.fetch_list()
        keys = {self.key_of(row) for row in ours}
        # Newer records are before the first known one, and those that the export was not to have after the last.
        known = [index for index, row in enumerate(theirs) if self.key_of(row) in keys]
        theirs = theirs[known[0] : known[-1] + 1] if known else []
        return Found(len(ours), self.differences("pages", ours, theirs))

    def by_hashes(self) -> Found:
        shared, rows = self.sample_of_shared(SHARED[self._call])
        found: dict[str, Row] = {}
        for start in range(0, len(rows), PER_REQUEST):
            hashes = {row[self.tx_id]: None for row in rows[start : start + PER_REQUEST]}
            found |= {row["tx_id"]: row for row in self.fetch("transactions_by_hash", {"tx_ids": list(hashes)})}
        return Found(len(rows), list(self.compared_by_hash("hashes", rows, found, shared)))

    def by_blocks(self) -> Found:
        shared, rows = self.sample_of_shared(OF_TRANSACTION)
        rows = [row for row in rows if row["height"] is not None]
        found: dict[str, Row] = {}
        for height in sorted({row["height"] for row in rows}):
            found |= {row["tx_id"]: row for row in self.fetch("transactions", {"height": height})}
        return Found(len(rows), list(self.compared_by_hash("heights", rows, found, shared)))

    def sample_of_shared(self, shared: dict[str, str]) -> tuple[dict[str, str], list[Row]]:
        """Columns that records share with their transactions, and these columns of random records."""
        shared = {ours: theirs for ours, theirs in shared.items() if ours in self._columns}
        rows = [row for row in self.rows(list(shared)) if row[self.tx_id]]
        return shared, self._random.sample(rows, min(self._sample, len(rows)))

    def compared_by_hash(
        self, way: str, rows: list[Row], found: dict[str, Row], shared: dict[str, str]
    ) -> Iterator[Difference]:
        for row in rows:
            their_row = found.get(row[self.tx_id])
            key = f"{self.tx_id}={row[self.tx_id]}"
            if their_row is None:
                yield Difference(way, "unexpected", key)
            elif changed := tuple(ours for ours, theirs in shared.items() if row[ours] != their_row[theirs]):
                yield Difference(way, "changed", key, changed)

    def by_logs(self) -> Found:
        transfers = self.amounts_of_transactions()
        if not transfers:
            return Found(0, [])
        contract = self._arguments["token_contract_address"]
        scale = self.precision(contract)
        compared = 0
        differences: list[Difference] = []
        for tx_id in self._random.sample(sorted(transfers), min(self._sample, len(transfers))):
            logs = self.collect(self._client.logs(tx_id, chain=self._chain.get("main")))
            if not logs.report.complete:
                continue
            ours = [amount.scaleb(scale, EXACT) for amount in transfers[tx_id]]
            theirs = list(transferred(logs, contract))
            compared += len(ours)
            if sorted(ours) != sorted(theirs):
                more = "unexpected" if len(ours) > len(theirs) else "missing"
                kind = "changed" if len(ours) == len(theirs) else more
                differences.append(Difference("logs", kind, f"tx_id={tx_id}", ("amount",)))
        return Found(compared, differences)

    def amounts_of_transactions(self) -> dict[str, list[Decimal]]:
        """Amounts of the transfers of each transaction that succeeded."""
        transfers = defaultdict[str, list[Decimal]](list)
        for row in self.rows(["tx_id", "amount", "state"]):
            if row["state"] == "success" and row["tx_id"] and row["amount"] is not None:
                transfers[row["tx_id"]].append(Decimal(str(row["amount"])))
        return transfers

    def by_invariants(self) -> Found:
        declared = {name for law in LAWS if law["endpoint"] == self._call for name in law["columns"]}
        rows = self.rows(sorted(declared.intersection(self._columns)))
        height = self.height
        if rows and height in rows[0] and (rows[0][height] or 0) < (rows[-1][height] or 0):
            rows.reverse()
        values = {name: [row[name] for row in rows] for name in rows[0]}
        arguments = {name: str(value) for name, value in self._arguments.items() if not isinstance(value, list)}
        sources = [f"record {index}" for index in range(len(rows))]
        is_to_end = self._manifest.complete and self._manifest.query["max_items"] is None
        evidence = _native._evidence(self._call, arguments, is_to_end, values, sources)  # noqa: SLF001 - the same laws
        broken = {law: found["violation"] for law, found in evidence.items() if found["held"] is False}
        compared = max((found["checked"] for found in evidence.values()), default=0)
        return Found(compared, [Difference("invariants", "missing", f"{law}: {text}") for law, text in broken.items()])

    def precision(self, contract: str) -> int:
        for kind in ENDPOINTS["tokens"]["params"][0]["kind"]["one of"]:
            for token in self.fetch("tokens", {"token_contract_address": contract, "protocol_type": kind}):
                return int(token["precision"] or 0)
        return 0

    # Comparison.

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)

    def is_stable(self, name: str) -> bool:
        return not (self._call == "tokens" and (self._kinds[name] == "estimate" or name in VOLATILE))

    def differences(self, way: str, ours: list[Row], theirs: list[Row]) -> list[Difference]:
        """Differences between the same records of the export and of the API, as multisets."""
        columns = [name for name in self._columns if self.is_stable(name)]
        left = by_key(ours, self.key_of)
        right = by_key(theirs, self.key_of)
        found = []
        for key in dict.fromkeys([*left, *right]):
            shown = ", ".join(f"{name}={value}" for name, value in zip(self._key, key, strict=True))
            our_rows = left.get(key, [])
            their_rows = right.get(key, [])
            if not our_rows:
                found.append(Difference(way, "missing", shown))
            elif not their_rows:
                found.append(Difference(way, "unexpected", shown))
            elif len(our_rows) != len(their_rows):
                found.append(Difference(way, "duplicate" if len(our_rows) > len(their_rows) else "missing", shown))
            else:
                changed = tuple(name for name in columns if is_changed(name, our_rows, their_rows))
                if changed:
                    found.append(Difference(way, "changed", shown, changed))
        return found


def transferred(logs: Records[Any], contract: str) -> Iterator[Decimal]:
    """Amounts of the transfers of a token that event logs show, in its smallest unit."""
    for name, value in TRANSFERS.items():
        for row in logs.decode(_native.Event.named(name)).to_dicts():
            if str(row["address"]).lower() == contract.lower():
                yield Decimal(row.get(value, 1) if value else 1)
