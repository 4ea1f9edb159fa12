"""Exports of simulated services, by seeds: faults, growth, reorganizations and interrupts at any step. In the end, the
list was exported, each record once, or an error was raised."""

from __future__ import annotations

import gc
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import LocalService
from conftest import needs_extra

# An interrupt leaves files open, as a signal does.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::chainframe.IncompleteResultWarning",
)

SEEDS = 100
CALLS = ("blocks", "transactions", "large_transactions", "cross_chain_transactions")


class Interrupt(BaseException):
    """Ends a run at once, as a signal does."""


def interrupt_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Interrupt this run before its `step`-th change of a file."""
    left = step

    def counted(call: Any) -> Any:
        def then(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Interrupt
            return call(*arguments, **options)

        return then

    patch.setattr(os, "fsync", counted(os.fsync))
    patch.setattr(Path, "replace", counted(Path.replace))


def identity(row: dict[str, Any]) -> str:
    # Another record has its place in a reorganized chain, though its state may change.
    names = ("hash", "tx_id", "zone_tx_hash", "block_hash", "height", "zone_block_height", "input", "output", "amount")
    return json.dumps([row.get(name) for name in names])


def height(row: dict[str, Any]) -> int:
    found = row.get("zone_block_height") or row.get("height")
    assert isinstance(found, int)
    return found


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run_seed(seed: int, directory: Path) -> str:
    rng = random.Random(seed)
    call, growth, path = rng.choice(CALLS), rng.choice([0, 0, 1, 3]), directory / f"{seed}.jsonl"
    depth = rng.choice([0, 0, 1, 2])
    with LocalService(transactions=rng.randrange(40, 160), seed=seed, simulated=True) as service:
        options = {"page_size": rng.randrange(5, 30), "max_items": rng.choice([None, None, rng.randrange(1, 60)])}
        before = directory / f"{seed}-before.jsonl"
        getattr(service.client(), call)().to_json(before)
        service.growth, service.reorg = growth, (rng.randrange(3, 9), depth) if depth else None
        service.faults = [
            {"kind": "status", "status": 503, "every": rng.randrange(3, 9)},
            {"kind": rng.choice(["reset", "throttle"]), "every": rng.randrange(3, 9)},
        ]
        for _ in range(200):
            client = service.client(max_retries=rng.randrange(3), concurrency=rng.randrange(1, 5))
            with pytest.MonkeyPatch.context() as patch:
                if rng.random() < 0.5:
                    interrupt_at(rng.randrange(1, 8), patch)
                try:
                    getattr(client, call)(**options).to_json(path)
                except cf.PaginationDriftError:
                    assert growth or depth
                    return "drift"
                except (Interrupt, cf.ServiceUnavailableError, cf.TransportError, cf.RateLimitError):
                    continue
                break
        else:
            raise AssertionError("the export does not end")
        service.growth, service.reorg, service.faults = 0, None, []
        after = directory / f"{seed}-after.jsonl"
        getattr(service.client(), call)().to_json(after)
    rows, old, new = rows_of(path), rows_of(before), rows_of(after)
    kept = max(map(height, old), default=0) - depth
    wanted = options["max_items"]
    assert len({identity(row) for row in rows}) == len(rows)
    assert [entry.name for entry in directory.iterdir() if entry.name.startswith(f"{seed}.")] == [path.name]
    assert wanted is None or len(rows) <= wanted
    if not depth:
        start = new.index(rows[0]) if rows else 0
        assert rows == new[start : None if wanted is None else start + wanted]
    elif wanted is None:
        settled = [identity(row) for row in old if height(row) <= kept]
        assert [identity(row) for row in rows if height(row) <= kept] == settled
    return "exported"


@needs_extra
@pytest.mark.parametrize("part", range(4))
def test_every_seed_exports_the_list_or_raises(tmp_path: Path, part: int) -> None:
    results = []
    for seed in range(part, SEEDS, 4):
        try:
            results.append(run_seed(seed, tmp_path))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert results.count("exported") > len(results) / 2
    # Interrupted runs leave open files, about which the interpreter warns when it finds them.
    gc.collect()
