"""Recordings of lists whose heights are searched for times, replayed at another time."""

import os
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, LocalService

YEAR = timedelta(days=365)
NEWEST = datetime(2026, 1, 30, 12, tzinfo=UTC)
LEFT_OUT = ["-start_time", "-end_time"]
CALLS: dict[str, dict[str, Any]] = {
    "transactions": {"start_time": NEWEST - timedelta(days=20), "end_time": NEWEST},
    "cross_chain_transactions": {"start_time": NEWEST - timedelta(days=2)},
    "address_transactions": {"start_time": NEWEST - timedelta(days=40), "end_time": NEWEST},
}


@pytest.fixture(scope="module")
def service() -> Any:
    with LocalService(transactions=2_000) as running:
        yield running


def arguments(service: LocalService, call: str) -> dict[str, Any]:
    given: dict[str, Any] = dict(CALLS[call])
    if call == "address_transactions":
        with service.client() as client:
            given["address"] = next(record.input for record in client.transactions() if record.input)
    return given


def later(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value + YEAR if isinstance(value, datetime) else value for name, value in given.items()}


def collected(client: cf.Client, call: str, given: dict[str, Any]) -> tuple[list[Any], bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.IncompleteResultWarning)
        records = getattr(client, call)(**given).collect()
    return list(records), records.report.complete


@pytest.mark.parametrize("call", CALLS)
def test_list_that_searches_heights_is_replayed_for_later_times(
    service: LocalService, call: str, tmp_path: Path
) -> None:
    path, given = tmp_path / "c.jsonl", arguments(service, call)
    with service.client(cassette=Cassette(path, "once", match_on=LEFT_OUT)) as client:
        recorded = collected(client, call, given)
    assert len(recorded[0]) > 0
    for times in (given, later(given)):
        replaying = Cassette(path, "none", match_on=LEFT_OUT)
        with cf.Client(cassette=replaying) as client:
            assert collected(client, call, times) == recorded
        assert replaying.all_played
    with cf.Client(cassette=Cassette(path, "none")) as client:
        assert collected(client, call, given) == recorded


def test_age_of_a_list_is_that_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with LocalService(transactions=300, simulated=True) as service:
        with service.client() as client:
            address = next(record.input for record in client.transactions() if record.input)
        # The virtual clock starts on 2026-01-31, and the system's is later by more than the two days left of the year.
        oldest = datetime(2025, 2, 3, tzinfo=UTC)
        with service.client(cassette=Cassette(path, "all")) as client:
            recorded = collected(client, "address_transactions", {"address": address, "start_time": oldest})
    assert recorded[1]
    with cf.Client(cassette=Cassette(path, "none"), strict=True) as client:
        assert collected(client, "address_transactions", {"address": address, "start_time": oldest}) == recorded


def test_facts_of_a_recording_are_not_sent(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "all")) as client:
        client.cross_chain_transactions(**CALLS["cross_chain_transactions"]).collect()
    methods = [interaction["method"] for interaction in Cassette(path, "none").interactions]
    assert methods.count("FACTS") == 1
    with LocalService(transactions=0) as offline:
        assert offline.load_cassette(path) == len(methods) - 1
        command = [sys.executable, "-m", "chainframe", "cassette", "diff", str(path)]
        done = subprocess.run(command, env={**os.environ, **service.env}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_secret_in_a_searched_query_is_not_recorded(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "all")) as client, pytest.raises(cf.CassetteError, match="secret"):
        client.address_transactions(service.secret_key, start_time=NEWEST).collect()
    assert service.secret_key not in path.read_text(encoding="utf-8")


def test_time_after_the_newest_block_is_not_taken_for_a_replay(service: LocalService, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with service.client(cassette=Cassette(path, "once")) as client:
        client.transactions(start_time=NEWEST, end_time=NEWEST + timedelta(hours=1)).collect()
    with cf.Client(cassette=Cassette(path, "none")) as client:
        try:
            found = list(client.transactions(start_time=NEWEST + YEAR, end_time=NEWEST + YEAR).collect())
        except cf.CassetteMissError:
            return
    assert not found
