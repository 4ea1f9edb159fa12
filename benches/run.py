"""Compares chainframe with other clients: `make bench`.

Generated pages are served by an nginx on loopback. Each client fetches them in a fresh process, in turns.
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

from clients import CLIENTS, TARGET, TOKEN

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "bench"
BASELINE = ROOT / "target" / "baseline" / "release" / "baseline"
PAGES = 2_000
ROWS = 50
# Transfers of one block.
TRANSFERS = 3
ROUNDS = int(os.environ.get("ROUNDS", "7"))
BASELINE_RUST, BASELINE_HTTP = "baseline: sonic-rs into Arrow", "baseline: HTTP only"
MEGABYTE = 1 << 20
# Records and size of the large page: about the most that the client accepts by default.
LARGE_ROWS, LARGE_BYTES = 9_000, 62 * MEGABYTE
# Spread of the baseline's CPU time (interquartile range by median) above which nothing is judged.
MAX_SPREAD = 0.1

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
        location = /api/v5/main/token/token-list {{ try_files /large.json =404; }}
        location / {{ try_files /$arg_page.json =404; }}
    }}
}}
"""


def make_pages() -> None:
    """Write synthetic token transfers, identical in every run."""
    pages = FOLDER / "pages"
    if (pages / f"{PAGES}.json").exists():
        return
    pages.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)

    def random_hex(length: int) -> str:
        return "0x" + rng.randbytes(length).hex()

    moment = 1_700_000_000_000
    addresses = [random_hex(20) for _ in range(3_000)]
    block = random_hex(32)
    for number in range(1, PAGES + 1):
        rows = []
        for index in range(ROWS):
            position = number * ROWS + index
            if position % TRANSFERS == 0:
                block = random_hex(32)
            rows.append(
                {
                    "txid": random_hex(32),
                    "blockHash": block,
                    "height": str(20_000_000 - position // TRANSFERS),
                    "transactionTime": str(moment - 4_000 * position),
                    "from": rng.choice(addresses),
                    "to": rng.choice(addresses),
                    "isFromContract": rng.random() < 0.1,
                    "isToContract": rng.random() < 0.3,
                    "amount": str(Decimal(rng.randrange(1, 10 ** rng.randrange(15, 24))).scaleb(-18).normalize()),
                    "transactionSymbol": "SYNTH",
                    "methodId": "0xa9059cbb",
                    "tokenContractAddress": TOKEN,
                    "protocolType": "token_20",
                    "state": "success",
                    "tokenId": "",
                },
            )
        for row in rows:
            row["amount"] = format(Decimal(str(row["amount"])), "f")
        page = {"page": str(number), "limit": str(ROWS), "totalPage": str(PAGES), "chainFullName": "Synthetic"}
        page |= {"chainShortName": "MAIN", "totalTransfer": str(PAGES * ROWS)}
        body = {"code": "0", "msg": "", "data": [{**page, "transactionList": rows}]}
        (pages / f"{number}.json").write_text(json.dumps(body, separators=(",", ":")))


def make_large_page() -> None:
    """Write a list of tokens with long names, as one page.

    Row by row: the peak memory of a program that this process starts is never less than this one's.
    """
    name = "large " * (LARGE_BYTES // LARGE_ROWS // len("large "))
    page = {"page": "1", "limit": str(LARGE_ROWS), "totalPage": "1", "tokenList": []}
    before, after = json.dumps({"code": "0", "msg": "", "data": [page]}).split("[]")
    with (FOLDER / "pages" / "large.json").open("w") as file:
        file.write(before + "[")
        for number in range(LARGE_ROWS):
            row = {"token": f"T{number}", "tokenFullName": name, "tokenContractAddress": f"0x{number:040x}"}
            file.write(json.dumps(row) + ("," if number < LARGE_ROWS - 1 else "]" + after))


@contextmanager
def served() -> Generator[str]:
    """Serve the pages on a free loopback port; only this nginx process is stopped at the end."""
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if program is None:
        sys.exit("bench: nginx was not found; install it, for example: apt-get install nginx-light")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (FOLDER / "tmp").mkdir(exist_ok=True)
    config = FOLDER / "nginx.conf"
    # The worker processes of an nginx started by root run as another user, without access to this directory.
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


def measure(client: str, origin: str) -> dict[str, Any]:
    if client not in CLIENTS:
        return measure_baseline(client, origin)
    command = [sys.executable, str(Path(__file__).with_name("clients.py")), client, origin, str(PAGES)]
    # The threads that importing numpy starts would spin for a while and add CPU time.
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken


def measure_baseline(client: str, origin: str) -> dict[str, Any]:
    command = [str(BASELINE), origin + TARGET, str(PAGES), *(["http"] if client == BASELINE_HTTP else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rows, amount = process.stdout.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"bench: {client} failed")
    unit = 1 if sys.platform == "darwin" else 1 << 10
    taken = {"cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * unit, "size": 0}
    return {**taken, "rows": int(rows), "amount": str(Decimal(amount).scaleb(-18))}


def import_cost() -> tuple[float, list[str]]:
    """Return the CPU seconds of `import chainframe` and the heavy modules it loaded."""
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


def longest_delay(*arguments: str) -> float:
    """Return the median of the longest delays of several runs of `delay.py`, in milliseconds."""
    command = [sys.executable, str(Path(__file__).with_name("delay.py")), *arguments]
    runs = [subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout for _ in range(ROUNDS)]
    return statistics.median(map(float, runs))


def main() -> None:
    make_pages()
    make_large_page()
    clients = [*CLIENTS, BASELINE_RUST, BASELINE_HTTP]
    if only := os.environ.get("ONLY"):
        clients = [client for client in clients if any(part in client for part in only.split(","))]
    taken: dict[str, list[dict[str, Any]]] = {client: [] for client in clients}
    with served() as origin:
        for _ in range(ROUNDS):
            for client in clients:
                taken[client].append(measure(client, origin))
        delays = {
            "a page of 62 MiB": longest_delay(origin),
            "a response without end": longest_delay(origin, "flood"),
        }
    results = {
        (run["rows"], Decimal(run["amount"])) for client in clients if client != BASELINE_HTTP for run in taken[client]
    }
    if len(results) != 1:
        sys.exit(f"bench: the clients returned different results: {results}")
    cpu = {client: statistics.median(run["cpu"] for run in taken[client]) for client in clients}
    peak = {client: statistics.median(run["peak"] for run in taken[client]) for client in clients}
    print(f"\n{PAGES * ROWS:,} token transfers, {PAGES:,} pages, median of {ROUNDS} runs each\n")
    noise = {client: spread([run["cpu"] for run in taken[client]]) for client in clients}
    print("| client | CPU s | spread | peak memory, MB |\n|---|---|---|---|")
    for client in clients:
        print(f"| {client} | {cpu[client]:.3f} | {noise[client]:.0%} | {peak[client] / MEGABYTE:.0f} |")
    if not only:
        compare(cpu, peak, taken["chainframe to_arrow"][0]["size"], delays, noise[BASELINE_RUST])


def spread(values: list[float]) -> float:
    """Return the interquartile range divided by the median."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median


def compare(cpu: dict[str, float], peak: dict[str, float], size: int, delays: dict[str, float], noise: float) -> None:
    imported, loaded = import_cost()
    (wheel,) = (ROOT / "dist").glob("*.whl")
    ours = "chainframe to_polars"
    # The CPU budgets are the ratios that were measured before responses were compared with each other, plus 3 %.
    budgets = [
        ("to_polars / (aiohttp + msgspec + polars)", cpu[ours] / cpu["aiohttp + msgspec + polars"], 0.28),
        ("to_pandas / (requests + pandas)", cpu["chainframe to_pandas"] / cpu["requests + pandas"], 0.07),
        ("record loop / msgspec structs", cpu["chainframe record loop"] / cpu["aiohttp + msgspec structs, loop"], 0.65),
        ("to_arrow / baseline", cpu["chainframe to_arrow"] / cpu[BASELINE_RUST], 1.2),
        ("to_polars / baseline", cpu[ours] / cpu[BASELINE_RUST], 1.24),
        ("to_arrow: peak memory / columns", peak["chainframe to_arrow"] / size, 1.3),
        ("to_polars: peak memory / columns", peak[ours] / size, 1.55),
        ("kept records: peak memory, MB", peak["chainframe kept records"] / MEGABYTE, 60),
        *((f"small request beside {other}: longest, ms", delay, 20) for other, delay in delays.items()),
        ("import chainframe, CPU ms", imported * 1e3, 12),
        ("import chainframe, heavy modules", len(loaded), 0),
        ("wheel, MB", wheel.stat().st_size / 1e6, 4.5),
    ]
    is_noisy = noise > MAX_SPREAD
    print("\n| metric | measured | budget | pass |\n|---|---|---|---|")
    for name, measured, budget in budgets:
        verdict = "not judged" if is_noisy else "yes" if measured <= budget else "no"
        print(f"| {name} | {measured:.3g} | {budget} | {verdict} |")
    if is_noisy:
        sys.exit(f"bench: too noisy to judge: the baseline varies by {noise:.0%}; run it on a quiet machine")


if __name__ == "__main__":
    main()
