"""Measures chainframe against what else there is: `make bench`.

Pages are made once, served by an nginx of its own on loopback, and fetched by each way in a fresh process, in turns.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ways import TARGET, WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "bench"
BARE = ROOT / "target" / "bare" / "release" / "bare"
PAGES = 2_000
ROWS = 50
ROUNDS = int(os.environ.get("ROUNDS", "5"))
BARE_WAY, HTTP_WAY = "bare Rust, sonic-rs into Arrow", "bare Rust, HTTP alone"
MEGABYTE = 1 << 20

CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    default_type application/json;
    client_body_temp_path {folder}/tmp;
    proxy_temp_path {folder}/tmp;
    fastcgi_temp_path {folder}/tmp;
    uwsgi_temp_path {folder}/tmp;
    scgi_temp_path {folder}/tmp;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/pages;
        location / {{ try_files /$arg_page.json =404; }}
    }}
}}
"""


def make_pages() -> None:
    """Transfers that nobody made, the same ones every time."""
    pages = FOLDER / "pages"
    if (pages / f"{PAGES}.json").exists():
        return
    pages.mkdir(parents=True, exist_ok=True)
    dice = random.Random(7)

    def code(length: int) -> str:
        return "0x" + dice.randbytes(length).hex()

    token, moment = code(20), 1_700_000_000_000
    people = [code(20) for _ in range(3_000)]
    for number in range(1, PAGES + 1):
        rows = []
        for row in range(ROWS):
            position = number * ROWS + row
            rows.append(
                {
                    "txid": code(32),
                    "blockHash": code(32),
                    "height": str(20_000_000 - position // 3),
                    "transactionTime": str(moment - 4_000 * position),
                    "from": dice.choice(people),
                    "to": dice.choice(people),
                    "isFromContract": dice.random() < 0.1,
                    "isToContract": dice.random() < 0.3,
                    "amount": str(Decimal(dice.randrange(1, 10 ** dice.randrange(15, 24))).scaleb(-18).normalize()),
                    "transactionSymbol": "MADEUP",
                    "methodId": "0xa9059cbb",
                    "tokenContractAddress": token,
                    "protocolType": "token_20",
                    "state": "success",
                    "tokenId": "",
                },
            )
        for made in rows:
            made["amount"] = format(Decimal(str(made["amount"])), "f")
        page = {"page": str(number), "limit": str(ROWS), "totalPage": str(PAGES), "chainFullName": "Made up"}
        page |= {"chainShortName": "MAIN", "totalTransfer": str(PAGES * ROWS)}
        answer = {"code": "0", "msg": "", "data": [{**page, "transactionList": rows}]}
        (pages / f"{number}.json").write_text(json.dumps(answer, separators=(",", ":")))


@contextmanager
def served() -> Iterator[str]:
    """The pages on a free port of loopback; only this nginx is ended."""
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if program is None:
        sys.exit("bench: nginx was not found; install it, for example: apt-get install nginx-light")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (FOLDER / "tmp").mkdir(exist_ok=True)
    config = FOLDER / "nginx.conf"
    # A worker of root's nginx is another user, who may not be let into this folder.
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(user + CONFIG.format(folder=FOLDER, port=port))
    command = [program, "-p", str(FOLDER), "-c", str(config), "-e", str(FOLDER / "error.log")]
    server = subprocess.Popen(command)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if server.poll() is not None:
                sys.exit(f"bench: nginx did not start; see {FOLDER / 'error.log'}")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def measure(way: str, origin: str) -> dict[str, Any]:
    if way not in WAYS:
        return measure_bare(way, origin)
    command = [sys.executable, str(Path(__file__).with_name("ways.py")), way, origin, str(PAGES)]
    # The threads that numpy's import starts would turn for a while, which is no cost of what is measured.
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=alone)
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken


def measure_bare(way: str, origin: str) -> dict[str, Any]:
    command = [str(BARE), origin + TARGET, str(PAGES), *(["http"] if way == HTTP_WAY else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rows, amount = process.stdout.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bench: {way} failed")
    unit = 1 if sys.platform == "darwin" else 1 << 10
    taken = {"cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * unit, "size": 0}
    return {**taken, "rows": int(rows), "amount": str(Decimal(amount).scaleb(-18))}


def import_cost() -> tuple[float, list[str]]:
    """CPU seconds of `import chainframe`, and what it should not have loaded."""
    heavy = "pandas", "pyarrow", "polars", "numpy", "asyncio", "tqdm"
    script = (
        "import sys, time; start = time.process_time(); import chainframe; "
        f"print(time.process_time() - start, *(m for m in {heavy} if m in sys.modules))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(11)
    ]
    return statistics.median(float(run[0]) for run in runs), runs[0][1:]


def main() -> None:
    make_pages()
    ways = [*WAYS, BARE_WAY, HTTP_WAY]
    if only := os.environ.get("ONLY"):
        ways = [way for way in ways if any(part in way for part in only.split(","))]
    taken: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    with served() as origin:
        for _ in range(ROUNDS):
            for way in ways:
                taken[way].append(measure(way, origin))
    results = {(run["rows"], Decimal(run["amount"])) for way in ways if way != HTTP_WAY for run in taken[way]}
    if len(results) != 1:
        sys.exit(f"bench: not everyone got the same: {results}")
    cpu = {way: statistics.median(run["cpu"] for run in taken[way]) for way in ways}
    peak = {way: statistics.median(run["peak"] for run in taken[way]) for way in ways}
    print(f"\n{PAGES * ROWS:,} token transfers, {PAGES:,} pages, median of {ROUNDS} runs each\n")
    print("| way | CPU s | peak memory, MB |\n|---|---|---|")
    for way in ways:
        print(f"| {way} | {cpu[way]:.3f} | {peak[way] / MEGABYTE:.0f} |")
    if not only:
        compare(cpu, peak, taken["chainframe to_arrow"][0]["size"])


def compare(cpu: dict[str, float], peak: dict[str, float], size: int) -> None:
    imported, loaded = import_cost()
    (wheel,) = (ROOT / "dist").glob("*.whl")
    ours = "chainframe to_polars"
    wanted = [
        ("to_polars / (aiohttp + msgspec + polars)", cpu[ours] / cpu["aiohttp + msgspec + polars"], 0.27),
        ("to_pandas / (requests + pandas)", cpu["chainframe to_pandas"] / cpu["requests + pandas"], 0.08),
        ("record loop / msgspec structs", cpu["chainframe record loop"] / cpu["aiohttp + msgspec structs, loop"], 0.5),
        ("to_arrow / bare Rust", cpu["chainframe to_arrow"] / cpu[BARE_WAY], 1.25),
        ("to_polars / bare Rust", cpu[ours] / cpu[BARE_WAY], 1.25),
        ("to_arrow: peak memory / columns", peak["chainframe to_arrow"] / size, 1.5),
        ("to_polars: peak memory / columns", peak[ours] / size, 1.5),
        ("import chainframe, CPU ms", imported * 1e3, 25),
        ("import chainframe, heavy modules", len(loaded), 0),
        ("wheel, MB", wheel.stat().st_size / MEGABYTE, 8),
    ]
    print("\n| what | measured | wanted, at most | kept |\n|---|---|---|---|")
    for name, measured, most in wanted:
        print(f"| {name} | {measured:.3g} | {most} | {'yes' if measured <= most else 'no'} |")


if __name__ == "__main__":
    main()
