"""Measures the memory of a set of 10,000 wallets: `set_memory.py [COUNT]`, after `maturin develop --release`.

Each way to read the set runs in a process of its own, whose peak is reported. The wallets have 40 transactions each.
Another process serves them, since the local server would take memory of the process that is measured.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import chainframe as cf
from chainframe.sinks import Change, Extent, Position, Sink

RECORDS = 40
NEWEST = 1_300_000
WAYS = ("stream", "parquet", "file", "settled", "sync")


def wallets(count: int) -> list[str]:
    chance = random.Random(44)
    return [f"0x{chance.getrandbits(160):040x}" for _ in range(count)]


def transaction(height: int, chance: random.Random, address: str) -> dict[str, str]:
    time = str(1_788_000_000_000 + (height - 1_000_000) * 12_000)
    block = {"height": str(height), "blockHash": f"0x{height:064x}", "transactionTime": time}
    sides = {"from": address, "to": f"0x{chance.getrandbits(160):040x}"}
    amounts = {"amount": f"{chance.randrange(10**6)}.{chance.randrange(10**18):018}", "txFee": "0.000021"}
    return {"txId": f"0x{chance.getrandbits(256):064x}", "state": "success", **block, **sides, **amounts}


class Handler(BaseHTTPRequestHandler):
    """Lists whose records follow from their address, and a chain that does not grow."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        rows = [{"txid": "0x1", "height": str(NEWEST), "blockHash": "0xb", "transactionTime": "1791600000000"}]
        if "address" in asked:
            chance = random.Random(asked["address"])
            heights = range(1_000_000 + 5_000 * (RECORDS - 1), 999_999, -5_000)
            rows = [transaction(height + chance.randrange(5_000), chance, asked["address"]) for height in heights]
        numbers = {"page": asked["page"], "limit": asked["limit"], "totalPage": "1"}
        body = json.dumps({"code": "0", "msg": "", "data": [{**numbers, "transactionList": rows}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Nowhere(Sink):
    """A target that keeps nothing, so that `sync` alone is measured."""

    name = "nowhere"
    takes_sets = True

    def look(self) -> tuple[Position | None, Extent | None]:
        return None, None

    def commit(self, change: Change) -> int:
        del change
        return 0


def read(way: str, url: str, count: int) -> None:
    """Read the set in this process, and print its peak in MiB."""
    warnings.simplefilter("ignore", cf.IncompleteResultWarning)
    client = cf.Client(
        base_url=url,
        main_chain="MAIN",
        zone_chain="ZONE",
        api_key="key",
        secret_key="secret",
        passphrase="pass",
        rate_limit=None,
        progress=False,
    )
    query: Any = client.address_transactions(wallets(count))
    with tempfile.TemporaryDirectory() as directory:
        match way:
            case "stream":
                rows = sum(1 for _ in query)
            case "sync":
                rows = query.sync(Nowhere()).rows_added
            case "settled":
                rows = query.to_parquet(directory + "/out", settle=12).rows
            case _:
                rows = query.to_parquet(directory + ("/out" if way == "parquet" else "/out.parquet")).rows
    assert rows == RECORDS * count, rows
    print(f"{way:8} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:5.0f} MiB", flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["serve"]:
            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            print(f"http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()
        case [way, url, count]:
            read(way, url, int(count))
        case given:
            with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                url = process.stdout.readline().strip()
                for way in WAYS:
                    subprocess.run([sys.executable, __file__, way, url, *(given or ["10000"])], check=True)
                process.terminate()


if __name__ == "__main__":
    main()
