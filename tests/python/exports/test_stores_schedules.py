"""Exports in object stores under every fault at every request, and with two runs on one prefix: nothing is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import obstore
import pytest

import chainframe as cf
import chainframe.exports
import reference_client
from chainframe.testing import Cassette, LocalService
from conftest import needs_extra
from object_stores import FAULTS, STORES, Double, Killed, Turns

pytest.importorskip("obstore")


pytestmark = [needs_extra, pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")]

KEY = "exports/blocks"
ROWS = 70
MODES = ("resume", "overwrite")
RUNS = 12


class Schedules:
    """Runs of one export in a fresh store each, and what must be true when they have ended."""

    def __init__(self, client: cf.Client) -> None:
        self.query: cf.Query[Any] = client.blocks(page_size=35, max_items=ROWS)
        self.expected = [str(block.hash) for block in self.query.collect()]
        self.count = 0
        self.ended: set[object] = set()
        """States of stores, without puts that are under way, from which the export was run to its end."""

    def export(self, double: Double, mode: str = "resume") -> Any:
        return self.query.to_parquet(double.path(KEY), mode=mode, max_rows_per_file=30)  # type: ignore[arg-type]

    def attempt(self, run: Callable[[], Any]) -> str:
        try:
            run()
        except Killed:
            return "killed"
        except cf.ExportError as error:
            # Another error is one that no later run gets past.
            if not error.retryable or "secret" in f"{error} {error!r} {error.__cause__} {error.__context__}":
                raise
            return "raised"
        return "ended"

    def begun(self, kind: str, modes: Sequence[str]) -> Double:
        """A store, with the export in it if a run is to overwrite it."""
        double = Double(kind)
        if "overwrite" in modes:
            self.export(double)
        return double

    def requests(self, double: Double, mode: str = "resume") -> int:
        """Number of requests of a run without faults."""
        double.begin()
        self.export(double, mode)
        return double.sent

    def in_turns(self, double: Double, turns: Turns, modes: Sequence[str]) -> None:
        """Run two exports at a time, and compare what is there when both have ended."""
        double.begin()
        double.turns = turns
        turns.run([partial(self.attempt, partial(self.export, double, mode)) for mode in modes])
        double.turns = None
        self.end(double)

    def end(self, double: Double, mode: str = "resume") -> None:
        """Run the export again until it ends, then once more, and compare what is there."""
        self.count += 1
        # Most schedules leave the same objects as another one, such as a run that is killed after a request and one
        # that is killed before the next request. What follows would repeat the same runs.
        state = None if double.late else (mode, double.state())
        if state in self.ended:
            return
        for _ in range(RUNS):
            double.begin()
            if self.attempt(lambda: self.export(double, mode)) == "ended":
                break
        else:
            raise AssertionError("the export does not end")
        double.land()
        double.begin()
        self.export(double)
        self.check(double)
        if state is not None:
            self.ended.add(state)

    def check(self, double: Double) -> None:
        manifest = json.loads(double.objects[f"{KEY}/_manifest.json"].data)
        assert manifest["finished"]
        listed = [f"{KEY}/{part['name']}" for part in manifest["parts"]]
        assert sorted(double.objects) == sorted([*listed, f"{KEY}/_manifest.json"])
        hashes: Any = chainframe.exports.read(double.path(KEY)).to_table()["hash"].to_pylist()
        assert sorted(hashes) == sorted(self.expected)


@pytest.fixture
def client(service: LocalService, tmp_path: Path) -> Iterator[cf.Client]:
    """A client that replays the list. Ten thousand exports would spend half of their time on its requests."""
    for mode in ("once", "none"):
        cassette = Cassette(tmp_path / "list.jsonl", mode=mode, allow_playback_repeats=True)
        with service.client(cassette=cassette) as made:
            if mode == "once":
                Schedules(made)
            else:
                yield made


@pytest.fixture
def schedules(client: cf.Client) -> Schedules:
    return Schedules(client)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("mode", MODES)
def test_fault_at_any_request_leaves_each_row_once(schedules: Schedules, kind: str, mode: str) -> None:
    begun = schedules.begun(kind, [mode])
    steps = schedules.requests(begun.fork(), mode)
    for fault in FAULTS:
        for step in range(1, steps + 1):
            double = begun.fork()
            double.begin(step, fault)
            try:
                outcome = schedules.attempt(lambda double=double: schedules.export(double, mode))  # type: ignore[misc]
                path = dict(double.puts).get(step, "_conditions")
                # Whatever becomes of one put, the run itself finds out.
                assert outcome == "ended" or fault not in {"refused", "lost", "repeated"} or "_conditions" in path
                schedules.end(double)
            except BaseException as error:
                error.add_note(f"{kind}, {mode}, {fault} at request {step} of {steps}")
                raise
    assert schedules.count == steps * len(FAULTS)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("modes", [("resume", "resume"), ("overwrite", "resume"), ("overwrite", "overwrite")])
def test_two_runs_on_one_prefix_leave_each_row_once(schedules: Schedules, kind: str, modes: tuple[str, str]) -> None:
    begun = schedules.begun(kind, modes)
    first, second = (schedules.requests(begun.fork(), mode) for mode in modes)
    # Each store has a third of the schedules.
    pairs = [(one, other) for one in range(first + 1) for other in range(second + 1)]
    for one, other in [pair for pair in pairs if sum(pair) % len(STORES) == STORES.index(kind)]:
        try:
            schedules.in_turns(begun.fork(), Turns(one, other, is_killed=one % 2 == 1), modes)
        except BaseException as error:
            error.add_note(f"{kind}, {modes}: {one} of {first} requests, then {other} of {second}")
            raise


@pytest.mark.parametrize("kind", STORES)
def test_any_sequence_of_faults_leaves_each_row_once(schedules: Schedules, kind: str) -> None:
    for seed in range(100):
        rng, double = random.Random(f"{kind} {seed}"), Double(kind)
        runs = [(rng.randrange(1, 32), rng.choice(FAULTS), rng.choice(MODES)) for _ in range(rng.randrange(2, 6))]
        try:
            for step, fault, mode in runs:
                double.begin(step, fault)
                schedules.attempt(partial(schedules.export, double, mode))
            schedules.end(double)
        except BaseException as error:
            error.add_note(f"{kind}: {runs}")
            raise


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> str:
    """Key of a single file, which the store in memory takes."""
    monkeypatch.setattr(obstore, "open_writer", Double.open_writer)
    return "files/blocks.jsonl"


class Files(Schedules):
    """Runs that write a single file."""

    def export(self, double: Double, mode: str = "resume") -> Any:
        return self.query.to_json(double.path("files/blocks.jsonl"), mode=mode)  # type: ignore[arg-type]

    def check(self, double: Double) -> None:
        assert list(double.objects) == ["files/blocks.jsonl"]
        lines = double.objects["files/blocks.jsonl"].data.splitlines()
        assert [json.loads(line)["hash"] for line in lines] == self.expected


@pytest.mark.parametrize("kind", STORES)
def test_single_file_is_whole_after_any_fault_and_with_two_runs(client: cf.Client, files: str, kind: str) -> None:
    schedules, double = Files(client), Double(kind)
    steps = schedules.requests(double)
    assert list(double.objects) == [files]
    for fault in FAULTS:
        for step in range(1, steps + 1):
            double = Double(kind)
            double.begin(step, fault)
            schedules.attempt(partial(schedules.export, double))
            schedules.end(double)
    pairs = [(one, other) for one in range(steps + 1) for other in range(steps + 1)]
    for one, other in [pair for pair in pairs if sum(pair) % len(STORES) == STORES.index(kind)]:
        schedules.in_turns(Double(kind), Turns(one, other, is_killed=one % 2 == 1), ["resume", "resume"])


class Series(Schedules):
    """Runs that add to a series what is new since its first export."""

    def __init__(self, client: cf.Client, service: LocalService) -> None:
        super().__init__(client)
        self.query, self.begun_series = client.cross_chain_transactions(page_size=50), Double()
        # The second export has no news, so the next one replaces it.
        for _ in range(2):
            self.export(self.begun_series)
        self.service = service
        self.grow()

    def grow(self) -> None:
        # The list has changed.
        self.ended.clear()
        self.service.growth = 1
        for _ in range(12):
            reference_client.get(self.service, "blocks", limit="1")
        self.service.growth = 0
        whole = Double()
        self.export(whole)
        self.expected = self.rows(whole)

    def export_twice(self, double: Double) -> None:
        self.export(double)
        double.turns, turns = None, double.turns
        self.grow()
        double.turns = turns
        self.export(double)

    def export(self, double: Double, mode: str = "resume") -> Any:
        del mode
        return self.query.to_parquet_series(double.path("s"), settle=3)  # type: ignore[arg-type]

    def rows(self, double: Double) -> list[str]:
        found: Any = chainframe.exports.read(double.path("s")).to_table()["zone_tx_hash"].to_pylist()
        return sorted(map(str, found))

    def check(self, double: Double) -> None:
        assert self.rows(double) == self.expected


def test_two_runs_of_a_series_leave_each_row_once(chain: LocalService) -> None:
    schedules = Series(chain.client(), chain)
    steps = schedules.requests(schedules.begun_series.fork())
    for step in range(1, steps + 1):
        for fault in ("killed after", "lost"):
            double = schedules.begun_series.fork()
            double.begin(step, fault)
            schedules.attempt(partial(schedules.export, double))
            schedules.end(double)
    for one in range(0, steps + 1, 2):
        for other in range(one % 3, steps + 1, 3):
            schedules.in_turns(
                schedules.begun_series.fork(), Turns(one, other, is_killed=one % 4 == 0), ["resume", "resume"]
            )
    # The other run adds two exports, of which the second continues the one that this run has decided to replace.
    for one in range(1, steps + 1):
        double = schedules.begun_series.fork()
        double.begin()
        double.turns = Turns(one, -1, is_killed=False)
        runs = [partial(schedules.export, double), partial(schedules.export_twice, double)]
        double.turns.run([partial(schedules.attempt, run) for run in runs])
        double.turns = None
        schedules.end(double)
