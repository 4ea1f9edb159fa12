"""The local service: signature checks, limits, faults and its Python interface."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import multiprocessing
import socket
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import ClientOptions, Fault, LocalService, make_records

if TYPE_CHECKING:
    from pathlib import Path


def hashes(service: LocalService) -> list[str | None]:
    with service.client() as client:
        return [transaction.tx_id for transaction in client.transactions()]


def test_service_listens_on_loopback_until_closed() -> None:
    with LocalService(transactions=50) as service:
        assert service.url.startswith("http://127.0.0.1:")
        with service.client() as client:
            assert len(client.tokens().collect()) > 0
    with service.client(max_retries=0) as client, pytest.raises(cf.TransportError):
        client.tokens().collect()
    service.close()


@pytest.mark.parametrize("value", [-1, 2**64, 10**5000, "x"], ids=["-1", "2**64", "10**5000", "text"])
@pytest.mark.parametrize("name", ["transactions", "seed", "growth", "max_result_window", "port"])
def test_invalid_argument_is_rejected_by_name(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=f"^{name} "):
        LocalService(**{name: value})


@pytest.mark.parametrize("name", ["growth", "reorg", "late", "pending", "rate_limit", "clock_skew"])
def test_invalid_setting_is_rejected_while_the_service_runs(name: str) -> None:
    with LocalService(transactions=1) as service:
        for value in (10**400, "x"):
            with pytest.raises(cf.ConfigError, match=f"^{name} "):
                setattr(service, name, value)


def test_service_is_an_async_context_manager() -> None:
    async def run() -> int:
        async with LocalService(transactions=50) as service, service.client() as client:
            return len(await client.tokens().collect_async())

    assert asyncio.run(run()) > 0


def test_seed_determines_the_data() -> None:
    with LocalService(transactions=50, seed=1) as one, LocalService(transactions=50, seed=1) as same:
        assert hashes(one) == hashes(same)
        assert len(hashes(one)) == 50
    with LocalService(transactions=50, seed=2) as another:
        assert not set(hashes(another)) & set(hashes_of_seed_1())


def hashes_of_seed_1() -> list[str | None]:
    with LocalService(transactions=50, seed=1) as service:
        return hashes(service)


def test_service_counts_and_logs_requests() -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        assert (service.request_count, service.request_log) == (0, [])
        client.blocks(height=3).collect()
        assert service.request_count == 1
        (entry,) = service.request_log
        assert (entry["method"], entry["path"]) == ("GET", "/api/v5/main/zone/block/block-list")
        assert "height=3" in entry["query"]
        assert (entry["status"], entry["code"]) == (200, "0")
        assert not {service.secret_key, service.passphrase} & set(map(str, entry.values()))


@pytest.mark.parametrize(
    ("head", "logged"),
    [
        (b"GET /a|b?c=\xff HTTP/1.1\r\nHost: x", ("GET", "/a|b", "c=\ufffd", 400)),
        (b"GET /a HTTP/1.1\r\nno header", ("GET", "/a", "", 400)),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1", ("GET", "/" + "a" * 8_187, "", 414)),
        (b"\x16\x03\x01", ("\x16\x03\x01", "", "", 400)),
    ],
    ids=["target", "header", "long", "tls"],
)
def test_unreadable_request_is_logged(head: bytes, logged: tuple[object, ...]) -> None:
    with LocalService(transactions=0) as service:
        host, _, port = service.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + b"\r\n\r\n")
            assert connection.recv(12) == f"HTTP/1.1 {logged[-1]}".encode()
        (entry,) = service.request_log
        assert (entry["method"], entry["path"], entry["query"], entry["status"]) == logged
        assert (entry["call"], service.request_count) == ("", 1)


def test_responses_are_compressed_on_request() -> None:
    with LocalService(transactions=300, compression="gzip") as service, service.client() as client:
        assert len(client.blocks().collect()) == 300
        for accepted, encoding in [("gzip", "gzip"), ("br, GZIP;q=0.5", "gzip"), ("gzip;q=0", None), ("", None)]:
            request = Request(f"{service.url}/other", headers={"Accept-Encoding": accepted})
            with pytest.raises(HTTPError) as caught:
                urlopen(request)
            with caught.value as answer:
                body = answer.read()
                assert answer.headers["Content-Encoding"] == encoding
                assert b"50404" in (gzip.decompress(body) if encoding else body)
        service.faults = [{"kind": "truncate", "times": 1}]
        assert len(client.blocks().collect()) == 300
        assert ["truncate"] in [entry["faults"] for entry in service.request_log]
    with LocalService(transactions=0) as plain, pytest.raises(HTTPError) as caught:
        urlopen(Request(plain.url, headers={"Accept-Encoding": "gzip"}))
    with caught.value as answer:
        assert answer.headers["Content-Encoding"] is None
    with pytest.raises(cf.ConfigError, match=r'^compression must be "gzip" or None; got "br"'):
        LocalService(compression="br")  # type: ignore[arg-type]


def test_unsigned_request_is_rejected() -> None:
    with LocalService(transactions=50) as service:
        with pytest.raises(HTTPError) as caught, urlopen(f"{service.url}/api/v5/main/token/token-list"):
            pass
        assert caught.value.code == 401
        caught.value.close()
        for wrong in ("api_key", "secret_key", "passphrase"):
            settings: Any = {wrong: "wrong"}
            with service.client(**settings) as client, pytest.raises(cf.AuthenticationError):
                client.tokens().collect()


def test_service_uses_the_names_of_a_deployment() -> None:
    deployment = cf.Deployment(
        header_prefix="XY",
        main="alpha",
        zone="beta",
        prehash="{method}|{timestamp}|{target}|{body}",
        signature_encoding="hex",
    )
    with LocalService(transactions=300, deployment=deployment, main_chain="ALPHA", zone_chain="BETA_X") as service:
        with service.client() as client:
            transfers = client.cross_chain_transactions().collect()
            assert {transfer.tx_type for transfer in transfers} == {"MainToZone", "ZoneToMain"}
            assert all(transfer.zone_tx_hash for transfer in transfers)
            assert client.deployment == deployment
        assert service.request_log[0]["path"] == "/api/v5/alpha/beta/cross/transaction-list"
        with service.client(deployment=cf.Deployment(), max_retries=0) as stranger, pytest.raises(cf.ServiceError):
            stranger.tokens().collect()


def test_faults_can_be_set_and_cleared() -> None:
    unavailable: Fault = {"kind": "status", "status": 503, "code": "50001", "times": 2, "path": "block-list"}
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
        first, second, third = (reference_client.get(service, "blocks", limit="1")[0] for _ in range(3))
    assert [int(page["total"]) for page in (first, second, third)] == [50, 52, 54]
    assert int(first["data"][0]["height"]) < int(second["data"][0]["height"]) < int(third["data"][0]["height"])


def test_reorganizations_can_be_set_while_the_service_runs() -> None:
    with LocalService(transactions=50) as service:

        def hashes() -> list[str]:
            return [block["hash"] for block in reference_client.whole_list(service, "blocks")]

        first = hashes()
        assert (service.reorg, hashes()) == (None, first)
        service.reorg = (1, 3)
        assert hashes() == first
        service.reorg = None
        assert hashes()[3:] == first[3:]
        assert not set(hashes()[:3]) & set(first)
        with pytest.raises(cf.ConfigError, match=r"reorg must be two positive integers: .*; got \(0, 3\)"):
            service.reorg = (0, 3)


def test_max_result_window_ends_a_list_of_the_main_chain() -> None:
    with LocalService(transactions=50, max_result_window=10) as service:
        assert len(reference_client.whole_list(service, "transactions")) == 10
        assert len(reference_client.whole_list(service, "blocks")) == 50


def test_rate_limit_is_enforced() -> None:
    with (
        LocalService(transactions=50, rate_limit=1) as service,
        service.client(max_retries=0, rate_limit=None) as hasty,
        pytest.raises(cf.RateLimitError),
    ):
        all(hasty.blocks(max_items=1).collect() for _ in range(100))


def test_database_is_reused(tmp_path: Path) -> None:
    with LocalService(transactions=50, seed=1, db=tmp_path / "chain.db") as service:
        first = hashes(service)
    with LocalService(transactions=50, seed=1, db=tmp_path / "chain.db") as again:
        assert hashes(again) == first
    assert len(first) == 50


def test_invalid_fault_is_rejected() -> None:
    with pytest.raises(cf.ConfigError, match=r"faults.*flood"):
        LocalService(transactions=50, faults=[{"kind": "flood"}])  # type: ignore[typeddict-item]
    with LocalService(transactions=50) as service, pytest.raises(cf.ConfigError, match=r"faults.*seconds"):
        service.set_faults([{"kind": "delay"}])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_result_window", 0),
        ("rate_limit", 0.0),
        ("main_chain", ""),
        ("transactions", -1),
        ("seed", 2**70),
        ("growth", 2**40),
        ("reorg", (2**70, 1)),
        ("late", (0.0, 1)),
        ("late", (1.5, 1)),
        ("pending", (0.5, 0)),
        ("pending", (0.5, -1)),
        ("port", 70_000),
        ("transactions", True),
        ("zone_chain", "main"),
        ("db", ":memory:"),
        ("db", "file:chain?mode=memory"),
    ],
)
def test_invalid_setting_is_rejected(name: str, value: Any) -> None:
    with pytest.raises(cf.ConfigError, match=name):
        LocalService(**{name: value})


def test_start_failure_names_its_cause(tmp_path: Path) -> None:
    with LocalService(transactions=50) as service:
        port = service.url.rpartition(":")[2]
        with pytest.raises(cf.ConfigError, match=rf"^port .*127\.0\.0\.1:{port}"):
            LocalService(transactions=50, port=int(port))
    (tmp_path / "letter").write_text("not a database")
    with pytest.raises(cf.ConfigError, match=r"^db .*letter"):
        LocalService(transactions=50, db=tmp_path / "letter")
    assert (tmp_path / "letter").read_text() == "not a database"


@pytest.mark.parametrize("name", ["fault", "transactions", "growth_rate", "max_result_window", "request_count"])
def test_attribute_that_cannot_be_set_raises(name: str) -> None:
    with LocalService(transactions=1) as service, pytest.raises(AttributeError, match=name):
        setattr(service, name, [])


def test_client_knows_the_max_result_window() -> None:
    with LocalService(transactions=1_000, max_result_window=100) as service:
        assert service.deployment.result_window == 100
        with service.client() as client, pytest.warns(cf.IncompleteResultWarning, match="100"):
            assert not client.transactions().collect().report.complete
        with service.client(strict=True) as client, pytest.raises(cf.IncompleteResultError):
            client.tokens().collect()
    with LocalService(transactions=1, deployment=cf.Deployment(result_window=70, log_window=7)) as service:
        assert (service.deployment.result_window, service.deployment.log_window) == (70, 7)


def test_requests_are_selected_by_call_and_parameters() -> None:
    deployment = cf.Deployment(main="alpha", zone="beta")
    started = datetime.now(UTC)
    with LocalService(transactions=50, deployment=deployment) as service, service.client() as client:
        service.faults = [{"kind": "delay", "seconds": 0.001, "path": "block"}, {"kind": "clock_skew", "seconds": 1}]
        client.blocks(height=4_300_001).collect()
        client.token_transfers("0xA+b", page_size=5).collect()
        assert [entry["call"] for entry in service.request_log] == ["blocks", "token_transfers"]
        (block,) = service.find_requests("blocks", height=4_300_001, limit=100)
        assert block["params"]["height"] == "4300001"
        assert block["faults"] == ["delay", "clock_skew"]
        assert started - timedelta(milliseconds=1) <= block["time"] <= datetime.now(UTC)
        service.assert_requested("token_transfers", token_contract_address="0xA+b", page_size=5, times=1)
        service.assert_requested("blocks", start_height=None)
        service.assert_requested(chain="ZONE_CHAIN", times=1)
        service.assert_requested("tokens", times=0)
        with pytest.raises(
            AssertionError, match=r"blocks\(height=5\) was requested 0 times instead of at least once; rec"
        ):
            service.assert_requested("blocks", height=5)
        with pytest.raises(AssertionError, match="1 time instead of 2 times"):
            service.assert_requested("blocks", times=2)
        with pytest.raises(cf.ConfigError, match="call must be one of tokens"):
            service.find_requests("block")  # type: ignore[arg-type]


def test_client_options_are_the_arguments_of_a_client() -> None:
    assert set(ClientOptions.__annotations__) == set(inspect.signature(cf.Client).parameters)


def leave_in_child(service: LocalService, pipe: Any) -> None:
    service.close()
    pipe.send("left")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_leaves_the_service_running() -> None:
    with LocalService(transactions=5) as service, service.client() as client:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=leave_in_child, args=(service, there))
        child.start()
        assert here.poll(60)
        assert here.recv() == "left"
        child.join(60)
        assert child.exitcode == 0
        assert len(client.blocks().collect()) == 5


def test_records_are_made_without_a_service() -> None:
    records = make_records("token_transfers", [{"amount": "0.10", "tx_id": "0xa"}, cf.TokenTransfer(tx_id="0xb")])
    assert isinstance(records, cf.Records)
    assert [record.tx_id for record in records] == ["0xa", "0xb"]
    assert records[0].amount == Decimal("0.1")
    assert (records.report.complete, records.report.records, records.report.reasons) == (True, 2, [])
    assert len(make_records("blocks", [])) == 0
    with pytest.raises(cf.ConfigError, match="blocks: row 0 has an unknown field 'hight'"):
        make_records("blocks", [{"hight": 1}])


def test_one_empty_response_is_not_an_empty_list() -> None:
    with LocalService(transactions=50) as service, service.client() as client:
        for call in (client.blocks, client.tokens, client.transactions):
            service.faults = [{"kind": "empty", "times": 1}]
            assert len(call().collect()) > 0
        service.faults = [{"kind": "empty"}]
        with pytest.warns(cf.IncompleteResultWarning, match="responses were empty"):
            assert len(client.blocks().collect()) == 0
