"""Counts the requests of everyday calls: `request_counts.py`, after `maturin develop`.

Each call runs with a client of its own against the local server. The fewest possible are the pages that hold the
records of the result, or one request where a response has the number that is asked for.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.compute as pc

from chainframe.testing import LocalService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import chainframe as cf


@dataclass(frozen=True)
class Sample:
    """Arguments of the calls."""

    token: str
    address: str
    busy_height: int
    newest: int
    # Transactions that have logs.
    hashes: list[str]
    main_hash: str
    newest_block: int
    # Time of the 150th block below it.
    block_time: datetime


@dataclass(frozen=True)
class Call:
    name: str
    # Pages of the result, or fewer requests if they are enough.
    fewest: int
    run: Callable[[cf.Client, Sample], object]


def sample_of(client: cf.Client) -> Sample:
    transactions = client.transactions().collect()
    inputs = Counter(record.input for record in transactions[:3_000] if record.input and "," not in record.input)
    hashes = [record.tx_id for record in transactions[:120] if record.tx_id]
    logged = list(dict.fromkeys(log.tx_id for log in client.logs(hashes) if log.tx_id))
    blocks = client.blocks(max_items=151).collect()
    cross = client.cross_chain_transactions(max_items=10).collect()
    return Sample(
        token=client.tokens(max_items=1).collect()[0].token_contract_address or "",
        address=inputs.most_common(1)[0][0],
        busy_height=Counter(record.height or 0 for record in transactions).most_common(1)[0][0],
        newest=transactions[0].height or 0,
        hashes=logged[:25],
        main_hash=cross[5].main_tx_hash or "",
        newest_block=blocks[0].height or 0,
        block_time=blocks[150].block_time or datetime.now(UTC),
    )


def _joined(client: cf.Client, sample: Sample) -> object:
    frame = client.token_transfers(sample.token).scan()
    return frame.join(frame, on="tx_id").select(pl.len()).collect()


def _two_terminals(client: cf.Client, sample: Sample) -> object:
    frame = client.token_transfers(sample.token).scan()
    return frame.select("amount").sum().collect(), frame.filter(pl.col("amount") > 5_000).collect()


def _second_hash(client: cf.Client, sample: Sample) -> object:
    return client.cross_chain_transactions().dataset().to_table(filter=pc.field("main_tx_hash") == sample.main_hash)


CALLS = [
    Call("tokens()", 6, lambda client, _: client.tokens().collect()),
    Call("tokens(max_items=100)", 2, lambda client, _: client.tokens(max_items=100).collect()),
    Call("tokens().first()", 1, lambda client, _: client.tokens().first()),
    Call("tokens().estimate()", 1, lambda client, _: client.tokens().estimate()),
    Call("token_transfers()", 66, lambda client, sample: client.token_transfers(sample.token).collect()),
    Call(
        "token_transfers(max_items=250)",
        5,
        lambda client, sample: client.token_transfers(sample.token, max_items=250).collect(),
    ),
    Call("token_transfers().first()", 1, lambda client, sample: client.token_transfers(sample.token).first()),
    Call("token_transfers().estimate()", 1, lambda client, sample: client.token_transfers(sample.token).estimate()),
    Call(
        "token_transfers().dataset().count_rows()",
        1,
        lambda client, sample: client.token_transfers(sample.token).dataset().count_rows(),
    ),
    Call("token_transfers().scan(), self join", 66, _joined),
    Call("token_transfers().scan(), two terminals", 66, _two_terminals),
    Call(
        "token_transfers().scan().head(5)",
        1,
        lambda client, sample: client.token_transfers(sample.token).scan().head(5).collect(),
    ),
    Call("cross_chain_transactions()", 6, lambda client, _: client.cross_chain_transactions().collect()),
    Call("cross_chain_transactions().dataset(), one hash", 1, _second_hash),
    Call(
        "cross_chain_transactions().dataset().count_rows()",
        1,
        lambda client, _: client.cross_chain_transactions().dataset().count_rows(),
    ),
    Call("blocks()", 100, lambda client, _: client.blocks().collect()),
    Call("blocks(max_items=20)", 1, lambda client, _: client.blocks(max_items=20).collect()),
    Call("blocks(max_items=250)", 3, lambda client, _: client.blocks(max_items=250).collect()),
    Call(
        "blocks().scan(), 151 newest heights",
        2,
        lambda client, sample: client.blocks().scan().filter(pl.col("height") >= sample.newest_block - 150).collect(),
    ),
    Call(
        "blocks().scan(), 151 newest blocks by time",
        2,
        lambda client, sample: client.blocks().scan().filter(pl.col("block_time") >= sample.block_time).collect(),
    ),
    Call("blocks().estimate()", 1, lambda client, _: client.blocks().estimate()),
    Call("blocks().dataset().count_rows()", 1, lambda client, _: client.blocks().dataset().count_rows()),
    Call("address_transactions()", 27, lambda client, sample: client.address_transactions(sample.address).collect()),
    Call(
        "address_transactions(max_items=1000)",
        20,
        lambda client, sample: client.address_transactions(sample.address, max_items=1_000).collect(),
    ),
    Call(
        "address_transactions().estimate()",
        1,
        lambda client, sample: client.address_transactions(sample.address).estimate(),
    ),
    Call("large_transactions()", 25, lambda client, _: client.large_transactions().collect()),
    Call("large_transactions(max_items=100)", 2, lambda client, _: client.large_transactions(max_items=100).collect()),
    Call("large_transactions().estimate()", 1, lambda client, _: client.large_transactions().estimate()),
    Call("transactions()", 200, lambda client, _: client.transactions().collect()),
    Call("transactions(max_items=20)", 1, lambda client, _: client.transactions(max_items=20).collect()),
    Call("transactions(max_items=100)", 2, lambda client, _: client.transactions(max_items=100).collect()),
    Call("transactions(max_items=250)", 5, lambda client, _: client.transactions(max_items=250).collect()),
    Call("transactions(max_items=1000)", 20, lambda client, _: client.transactions(max_items=1_000).collect()),
    Call("transactions(max_items=5000)", 100, lambda client, _: client.transactions(max_items=5_000).collect()),
    Call("transactions().first()", 1, lambda client, _: client.transactions().first()),
    Call("transactions().estimate()", 1, lambda client, _: client.transactions().estimate()),
    Call(
        "transactions(max_items=1000).estimate()", 1, lambda client, _: client.transactions(max_items=1_000).estimate()
    ),
    Call("transactions(height=)", 6, lambda client, sample: client.transactions(height=sample.busy_height).collect()),
    Call(
        "transactions(start_height=, end_height=), 10 heights",
        10,
        lambda client, sample: client.transactions(start_height=sample.newest - 9, end_height=sample.newest).collect(),
    ),
    Call(
        "transactions().scan(), 10 newest heights",
        10,
        lambda client, sample: client.transactions().scan().filter(pl.col("height") >= sample.newest - 9).collect(),
    ),
    Call(
        "transactions(start_height=).estimate(), 300 heights",
        1,
        lambda client, sample: client.transactions(
            start_height=sample.newest - 299, end_height=sample.newest
        ).estimate(),
    ),
    Call(
        "transactions_by_hash(), 25 hashes",
        2,
        lambda client, sample: client.transactions_by_hash(sample.hashes).collect(),
    ),
    Call("logs(), 25 hashes", 25, lambda client, sample: client.logs(sample.hashes).collect()),
    Call("logs(), 25 hashes, estimate()", 1, lambda client, sample: client.logs(sample.hashes).estimate()),
]


def counts() -> Iterator[tuple[Call, int]]:
    """The calls, and how many requests each of them sends."""
    with LocalService(seed=7) as service, warnings.catch_warnings(action="ignore"):
        with service.client(rate_limit=None, progress=False) as client:
            sample = sample_of(client)
        for call in CALLS:
            service.reset_request_log()
            with service.client(rate_limit=None, progress=False) as client:
                result: Any = call.run(client, sample)
                del result
            yield call, service.request_count


def main() -> None:
    print(f"{'call':56} fewest  sent")
    for call, sent in counts():
        print(f"{call.name:56} {call.fewest:6} {sent:5}")


if __name__ == "__main__":
    main()
