"""Fetches all token transfers with one client: `clients.py CLIENT ORIGIN PAGES` prints CPU time and peak memory.

Imports run before the measurement starts. The other clients neither sign requests nor validate responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

IN_FLIGHT = 8
TOKEN = "0x" + "a" * 40
TARGET = f"/api/v5/main/token/transaction-list?chainShortName=MAIN&tokenContractAddress={TOKEN}&limit=50&page="
STRING_FIELDS = [
    "txid",
    "blockHash",
    "from",
    "to",
    "transactionSymbol",
    "methodId",
    "tokenContractAddress",
    "protocolType",
    "state",
    "tokenId",
]

Run = Callable[[str, int], Any]
Outcome = Callable[[Any], tuple[int, Decimal]]


def requests_pandas() -> tuple[Run, Outcome]:
    import pandas as pd
    import requests

    def run(origin: str, pages: int) -> Any:
        session = requests.Session()
        rows = []
        for page in range(1, pages + 1):
            response = session.get(f"{origin}{TARGET}{page}").json()
            rows.extend(response["data"][0]["transactionList"])
        frame = pd.DataFrame(rows)
        frame["height"] = frame["height"].astype("int64")
        frame["transactionTime"] = pd.to_datetime(frame["transactionTime"].astype("int64"), unit="ms", utc=True)
        frame["amount"] = frame["amount"].map(Decimal)
        return frame

    return run, lambda frame: (len(frame), sum(frame["amount"]))


async def bodies(origin: str, pages: int) -> AsyncIterator[bytes]:
    """Yield the response bodies in order, eight requests in flight."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def get(page: int) -> bytes:
            async with session.get(f"{origin}{TARGET}{page}") as response:
                return await response.read()

        for first in range(1, pages + 1, IN_FLIGHT):
            last = min(first + IN_FLIGHT, pages + 1)
            for body in await asyncio.gather(*(get(page) for page in range(first, last))):
                yield body


def polars_frame(columns: Any) -> Any:
    import polars as pl

    time_type = pl.Datetime("ms", "UTC")
    return pl.DataFrame(columns).with_columns(
        pl.col("height").cast(pl.Int64),
        pl.col("transactionTime").cast(pl.Int64).cast(time_type),
        pl.col("amount").cast(pl.Decimal(38, 18)),
    )


def amounts_of_polars(frame: Any) -> tuple[int, Decimal]:
    return len(frame), sum(frame["amount"].to_list())


def orjson_polars() -> tuple[Run, Outcome]:
    import aiohttp  # noqa: F401 - imported before the measurement
    import orjson
    import polars as pl  # noqa: F401

    async def fetch(origin: str, pages: int) -> Any:
        rows: list[Any] = []
        async for body in bodies(origin, pages):
            rows.extend(orjson.loads(body)["data"][0]["transactionList"])
        return polars_frame(rows)

    return lambda origin, pages: asyncio.run(fetch(origin, pages)), amounts_of_polars


def structs(amount: type) -> Any:
    """Return a decoder of response bodies into structs."""
    import msgspec

    typed = {"height": int, "transactionTime": int, "isFromContract": bool, "isToContract": bool, "amount": amount}
    members: list[Any] = [(name, str) for name in STRING_FIELDS] + list(typed.items())
    # `from` is a keyword, which a struct cannot have as a field name.
    names = [("from_" if name == "from" else name, kind) for name, kind in members]
    row = msgspec.defstruct("Row", names, rename={"from_": "from"})
    page = msgspec.defstruct("Page", [("transactionList", list[row])])  # type: ignore[valid-type]
    response = msgspec.defstruct("Response", [("code", str), ("data", list[page])])  # type: ignore[valid-type]
    return msgspec.json.Decoder(response, strict=False)


def msgspec_polars() -> tuple[Run, Outcome]:
    import aiohttp  # noqa: F401
    import polars as pl  # noqa: F401

    decoder = structs(str)

    async def fetch(origin: str, pages: int) -> Any:
        rows: list[Any] = []
        async for body in bodies(origin, pages):
            rows.extend(decoder.decode(body).data[0].transactionList)
        names = type(rows[0]).__struct_fields__
        return polars_frame({name: [getattr(row, name) for row in rows] for name in names})

    return lambda origin, pages: asyncio.run(fetch(origin, pages)), amounts_of_polars


def msgspec_loop() -> tuple[Run, Outcome]:
    import aiohttp  # noqa: F401

    decoder = structs(Decimal)

    async def fetch(origin: str, pages: int) -> Any:
        rows: list[Any] = []
        async for body in bodies(origin, pages):
            for row in decoder.decode(body).data[0].transactionList:
                moment = datetime.fromtimestamp(row.transactionTime / 1_000, UTC)
                rows.append((row.txid, row.height, row.amount, moment))
        return rows

    return lambda origin, pages: asyncio.run(fetch(origin, pages)), amounts_of_rows


def amounts_of_rows(rows: list[Any]) -> tuple[int, Decimal]:
    return len(rows), sum((row[2] for row in rows), Decimal(0))


def client_of(origin: str) -> Any:
    import chainframe as cf

    secrets = {"api_key": "key", "secret_key": "secret", "passphrase": "phrase"}
    return cf.Client(base_url=origin, rate_limit=None, concurrency=IN_FLIGHT, strict=True, **secrets)  # type: ignore[arg-type]


def query_of(origin: str) -> Any:
    return client_of(origin).token_transfers(TOKEN)


def ours_polars() -> tuple[Run, Outcome]:
    import polars as pl  # noqa: F401

    import chainframe  # noqa: F401

    return lambda origin, _: query_of(origin).to_polars(), amounts_of_polars


def ours_pandas() -> tuple[Run, Outcome]:
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    import chainframe  # noqa: F401

    return lambda origin, _: query_of(origin).to_pandas(), lambda frame: (len(frame), sum(frame["amount"].tolist()))


def ours_arrow() -> tuple[Run, Outcome]:
    import pyarrow as pa  # noqa: F401

    import chainframe  # noqa: F401

    def run(origin: str, _: int) -> Any:
        return query_of(origin).to_arrow()

    return run, lambda table: (table.num_rows, sum(table.column("amount").to_pylist()))


def ours_loop() -> tuple[Run, Outcome]:
    import chainframe  # noqa: F401

    def run(origin: str, _: int) -> Any:
        return [(row.tx_id, row.height, row.amount, row.transaction_time) for row in query_of(origin)]

    return run, amounts_of_rows


def ours_kept() -> tuple[Run, Outcome]:
    import chainframe  # noqa: F401

    return lambda origin, _: list(query_of(origin)), lambda kept: (len(kept), sum(record.amount for record in kept))


CLIENTS: dict[str, Callable[[], tuple[Run, Outcome]]] = {
    "requests + pandas": requests_pandas,
    "aiohttp + orjson + polars": orjson_polars,
    "aiohttp + msgspec + polars": msgspec_polars,
    "aiohttp + msgspec structs, loop": msgspec_loop,
    "chainframe to_polars": ours_polars,
    "chainframe to_pandas": ours_pandas,
    "chainframe to_arrow": ours_arrow,
    "chainframe record loop": ours_loop,
    "chainframe kept records": ours_kept,
}


def memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


def main() -> None:
    client, origin, pages = sys.argv[1:]
    run, outcome = CLIENTS[client]()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak resident set size
    before, started = memory("VmRSS"), time.process_time()
    result = run(origin, int(pages))
    cpu, peak = time.process_time() - started, memory("VmHWM") - before
    rows, amount = outcome(result)
    size = result.nbytes if client == "chainframe to_arrow" else 0
    print(json.dumps({"cpu": cpu, "peak": peak, "rows": rows, "amount": str(amount), "size": size}))


if __name__ == "__main__":
    main()
