"""The testing kit: a real server with real checks, and what a test can ask of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import by_hand
import chainframe as cf
from chainframe.testing import Fault, LocalService

if TYPE_CHECKING:
    from pathlib import Path


def hashes(service: LocalService) -> list[str | None]:
    with service.client() as client:
        return [transaction.tx_id for transaction in client.transactions()]


def test_it_listens_on_loopback_until_closed() -> None:
    with LocalService(transactions=50) as service:
        assert service.url.startswith("http://127.0.0.1:")
        with service.client() as client:
            assert len(client.tokens().collect()) > 0
    with service.client(max_retries=0) as client, pytest.raises(cf.TransportError):
        client.tokens().collect()
    service.close()


@pytest.mark.parametrize("value", [-1, 2**64, 10**5000, "x"], ids=["-1", "2**64", "10**5000", "text"])
@pytest.mark.parametrize("name", ["transactions", "seed", "growth", "reach", "port"])
def test_what_cannot_be_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=f"^{name}: "):
        LocalService(**{name: value})


@pytest.mark.parametrize("name", ["growth", "rate_limit", "clock_ahead"])
def test_what_cannot_be_is_refused_while_it_runs(name: str) -> None:
    with LocalService(transactions=1) as service:
        for value in (10**400, "x"):
            with pytest.raises(cf.ConfigError, match=f"^{name}: "):
                setattr(service, name, value)


def test_it_is_an_async_context_manager() -> None:
    async def run() -> int:
        async with LocalService(transactions=50) as service, service.client() as client:
            return len(await client.tokens().collect_async())

    assert asyncio.run(run()) > 0


def test_a_seed_is_a_set_of_data() -> None:
    with LocalService(transactions=50, seed=1) as one, LocalService(transactions=50, seed=1) as same:
        assert hashes(one) == hashes(same)
        assert len(hashes(one)) == 50
    with LocalService(transactions=50, seed=2) as another:
        assert not set(hashes(another)) & set(hashes_of_seed_1())


def hashes_of_seed_1() -> list[str | None]:
    with LocalService(transactions=50, seed=1) as service:
        return hashes(service)


def test_it_counts_and_logs_requests() -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        assert (service.requests, service.request_log) == (0, [])
        client.blocks(height=3).collect()
        assert service.requests == 1
        (entry,) = service.request_log
        assert (entry["method"], entry["path"]) == ("GET", "/api/v5/main/zone/block/block-list")
        assert "height=3" in entry["query"]
        assert (entry["status"], entry["code"]) == (200, "0")
        assert not {service.secret_key, service.passphrase} & set(map(str, entry.values()))


def test_it_refuses_what_is_not_signed() -> None:
    with LocalService(transactions=50) as service:
        with pytest.raises(HTTPError) as caught, urlopen(f"{service.url}/api/v5/main/token/token-list"):
            pass
        assert caught.value.code == 401
        caught.value.close()
        for wrong in ("api_key", "secret_key", "passphrase"):
            with service.client(**{wrong: "wrong"}) as client, pytest.raises(cf.AuthenticationError):
                client.tokens().collect()


def test_other_words() -> None:
    words = cf.Deployment(
        header_prefix="XY",
        main="alpha",
        zone="beta",
        prehash="{method}|{timestamp}|{target}|{body}",
        signature_encoding="hex",
    )
    with LocalService(transactions=50, deployment=words, main_chain="ALPHA", zone_chain="BETA_X") as service:
        with service.client() as client:
            crossings = client.cross_chain_transactions().collect()
            assert {crossing.tx_type for crossing in crossings} == {"MainToZone", "ZoneToMain"}
            assert all(crossing.zone_tx_hash for crossing in crossings)
            assert client.deployment == words
        assert service.request_log[0]["path"] == "/api/v5/alpha/beta/cross/transaction-list"
        with service.client(deployment=cf.Deployment(), max_retries=0) as stranger, pytest.raises(cf.ServiceError):
            stranger.tokens().collect()


def test_faults_come_and_go() -> None:
    unavailable: Fault = {"kind": "status", "status": 503, "code": "50001", "first": 2, "path": "block-list"}
    with LocalService(transactions=50, faults=[unavailable]) as service, service.client(max_retries=3) as client:
        records = client.blocks().collect()
        assert records.report.retries == 2
        service.set_faults([unavailable])
        with service.client(max_retries=0) as impatient, pytest.raises(cf.ServiceUnavailableError):
            impatient.blocks().collect()
        service.set_faults([])
        assert list(client.blocks().collect()) == list(records)


def test_lists_grow_at_their_head() -> None:
    with LocalService(transactions=50, growth=2) as service:
        first, second, third = (by_hand.get(service, "blocks", limit="1")[0] for _ in range(3))
    assert [int(page["total"]) for page in (first, second, third)] == [50, 52, 54]
    assert int(first["data"][0]["height"]) < int(second["data"][0]["height"]) < int(third["data"][0]["height"])


def test_reach_ends_a_list_of_the_main_chain() -> None:
    with LocalService(transactions=50, reach=10) as service:
        assert len(by_hand.whole_list(service, "transactions")) == 10
        assert len(by_hand.whole_list(service, "blocks")) == 50


def test_a_rate_limit_is_kept_to() -> None:
    with (
        LocalService(transactions=50, rate_limit=1) as service,
        service.client(max_retries=0, rate_limit=None) as hasty,
        pytest.raises(cf.RateLimitError),
    ):
        all(hasty.blocks(max_items=1).collect() for _ in range(100))


def test_a_database_is_opened_again(tmp_path: Path) -> None:
    with LocalService(transactions=50, seed=1, db=tmp_path / "chain.db") as service:
        first = hashes(service)
    with LocalService(transactions=50, seed=1, db=tmp_path / "chain.db") as again:
        assert hashes(again) == first
    assert len(first) == 50


def test_a_fault_that_cannot_be_is_refused() -> None:
    with pytest.raises(cf.ConfigError, match=r"faults.*flood"):
        LocalService(transactions=50, faults=[{"kind": "flood"}])  # type: ignore[typeddict-item]
    with LocalService(transactions=50) as service, pytest.raises(cf.ConfigError, match=r"faults.*seconds"):
        service.set_faults([{"kind": "stall"}])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reach", 0),
        ("rate_limit", 0.0),
        ("main_chain", ""),
        ("transactions", -1),
        ("seed", 2**70),
        ("growth", 2**40),
        ("reorg", (2**70, 1)),
        ("port", 70_000),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=name):
        LocalService(**{name: value})


def test_what_keeps_it_from_starting_is_named(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service:
        port = service.url.rpartition(":")[2]
        with pytest.raises(RuntimeError, match=rf"127\.0\.0\.1:{port}"):
            LocalService(transactions=50, port=int(port))
    (tmp_path / "letter").write_text("not a database")
    with pytest.raises(RuntimeError, match="letter"):
        LocalService(transactions=50, db=tmp_path / "letter")
    assert (tmp_path / "letter").read_text() == "not a database"
