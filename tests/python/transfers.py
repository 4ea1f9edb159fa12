"""A list of token transfers that can be filtered by amount, served as services do that disagree about the details."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import chainframe as cf
from strict_server import Request, Response, StrictServer, page_of

TOKEN = "0x" + "ab" * 20

Bounds = Callable[[Decimal, Decimal | None, Decimal | None], bool]


def rounded(amount: Decimal) -> Decimal:
    """The amount with 18 decimals."""
    return amount.quantize(Decimal(1).scaleb(-18), context=Context(prec=200))


BOUNDS: dict[str, Bounds] = {
    "closed": lambda amount, low, high: (low is None or amount >= low) and (high is None or amount <= high),
    "open": lambda amount, low, high: (low is None or amount > low) and (high is None or amount < high),
    "half_open": lambda amount, low, high: (low is None or amount >= low) and (high is None or amount < high),
    "doubles": lambda amount, low, high: (
        (low is None or float(amount) > float(low)) and (high is None or float(amount) < float(high))
    ),
    "eighteen_decimals": lambda amount, low, high: (
        (low is None or amount > rounded(low)) and (high is None or amount < rounded(high))
    ),
}


@dataclass
class Transfers:
    """The list, newest record first."""

    seed: int
    count: int
    window: int = 100
    token: str = TOKEN
    bounds: str = "closed"
    amount: Callable[[random.Random], str] = lambda random: f"{random.randint(0, 999)}.{random.randint(0, 99):02}"
    most_per_block: int = 5
    changes: dict[int, Callable[[Transfers], None]] = field(default_factory=dict)
    """Changes of the list after a number of requests."""
    growth: float = 0
    """Probability that the list grows after a request."""
    ignored: tuple[str, ...] = ()
    """Filters that the service ignores."""
    count_of_all: bool = False
    """True if the count is that of the list without filters."""
    errors: set[int] = field(default_factory=set)
    """Requests that fail."""

    def __post_init__(self) -> None:
        # Each connection has a thread: a list that grows while another one reads it would have a row twice.
        self._lock = threading.Lock()
        self.random = random.Random(self.seed)
        self.height = 1_000
        self.number = 0
        self.fork = 0
        self.rows: list[dict[str, Any]] = []
        self.requests = 0
        while len(self.rows) < self.count:
            self.grow()
        del self.rows[: len(self.rows) - self.count]
        self.states = [self.keys()]

    def keys(self) -> list[tuple[str, str]]:
        """The records as they are now, each by its hash and that of its block."""
        return [(row["txid"], row["blockHash"]) for row in self.rows]

    def grow(self) -> None:
        """Add a block with some transfers."""
        self.height += self.random.randint(1, 3)
        for _ in range(self.random.randint(1, self.most_per_block)):
            self.rows.insert(0, self._row(self.height))

    def _row(self, height: int) -> dict[str, Any]:
        self.number += 1
        return {
            "txid": f"0x{self.seed:016x}{self.number:048x}",
            "blockHash": f"0x{self.fork:032x}{height:032x}",
            "height": str(height),
            "transactionTime": str(1_700_000_000_000 + height * 12_000),
            "from": "0x" + "01" * 20,
            "to": "0x" + "02" * 20,
            "isFromContract": False,
            "isToContract": False,
            "amount": self.amount(self.random),
            "transactionSymbol": "T",
            "methodId": "",
            "tokenContractAddress": self.token,
            "protocolType": "ERC20",
            "state": "success",
            "tokenId": "",
        }

    def reorganize(self, heights: int) -> None:
        """Replace the newest blocks: as many transfers, other hashes and amounts."""
        self.fork += 1
        top = int(self.rows[0]["height"])
        replaced = [row for row in self.rows if int(row["height"]) > top - heights]
        self.rows[: len(replaced)] = [self._row(int(row["height"])) for row in replaced]

    def lose(self, index: int) -> None:
        del self.rows[index]

    def respond(self, request: Request) -> Response:
        with self._lock:
            return self._respond(request)

    def _respond(self, request: Request) -> Response:
        number = self.requests
        self.requests += 1
        if number in self.errors:
            return Response(b"{}", 500)
        query = {name: value for name, value in request.query.items() if name not in self.ignored}
        low, high = (Decimal(query[name]) if name in query else None for name in ("minAmount", "maxAmount"))
        within = BOUNDS[self.bounds]
        rows = [
            row
            for row in self.rows
            if (low is None and high is None) or (row["amount"] and within(Decimal(row["amount"]), low, high))
        ]
        page, limit = int(query["page"]), int(query["limit"])
        shown = rows[: self.window][(page - 1) * limit : page * limit]
        total = len(self.rows) if self.count_of_all else len(rows)
        pages = -(-min(total if not self.count_of_all else len(rows), self.window) // limit)
        response = page_of(
            "token_transfers",
            shown,
            page=str(page),
            limit=str(limit),
            totalPage=str(pages),
            totalTransfer=str(total),
        )
        if number in self.changes:
            self.changes[number](self)
            self.states.append(self.keys())
        if self.random.random() < self.growth:
            self.grow()
            self.states.append(self.keys())
        return response


def deployment_of(transfers: Transfers) -> cf.Deployment:
    return cf.Deployment(header_prefix="XY", main="alpha", zone="beta", result_window=transfers.window)


def serve(server: StrictServer, transfers: Transfers, **options: Any) -> cf.Client:
    """Serve the list, and return a client of it."""
    server.on("token_transfers", transfers.respond)
    return server.client(**{"deployment": deployment_of(transfers), "concurrency": 1, **options})


def keys(records: Any) -> list[tuple[str, str]]:
    """Records of a result, each by its hash and that of its block."""
    return [(record.tx_id, record.block_hash) for record in records]
