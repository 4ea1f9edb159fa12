"""Cassettes: the recorded content, its redaction, and replay without a server."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, Fault, LocalService
from conftest import Sample, environment
from strict_server import API_KEY, PASSPHRASE, SECRET_KEY, Response, StrictServer, envelope, error, page_of

CALLS = [
    "tokens",
    "token_transfers",
    "cross_chain_transactions",
    "blocks",
    "address_transactions",
    "large_transactions",
    "transactions",
    "transactions_by_hash",
    "logs",
]
VARIABLES = ("BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE", "CASSETTE", "CASSETTE_MODE")


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"CHAINFRAME_{name}", raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "one.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def replaying(path: Path, **settings: Any) -> cf.Client:
    """A client of nothing but the file."""
    return cf.Client(cassette=Cassette(path, mode="none"), **settings)


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_every_call_replays_without_a_server(sample: Sample, service: LocalService, path: Path) -> None:
    with service.client(cassette=Cassette(path)) as client:
        recorded = {call: sample.query(client, call).collect() for call in CALLS}
    cassette = Cassette(path, mode="none")
    before = service.request_count
    with cf.Client(cassette=cassette) as client:
        for call in CALLS:
            replayed = sample.query(client, call).collect()
            assert len(replayed) > 0
            assert list(replayed) == list(recorded[call])
            assert replayed.report.reasons == recorded[call].report.reasons
            assert replayed.report.bytes == recorded[call].report.bytes
    assert cassette.all_played
    assert cassette.play_count == len(cassette) == len(lines(path)) > len(CALLS)
    assert service.request_count == before


def test_cassette_stores_only_path_and_parameters_of_a_request(server: StrictServer, path: Path) -> None:
    echoed: list[str] = []

    def echo(status: int) -> Any:
        def script(request: Any) -> Response:
            words = [API_KEY, SECRET_KEY, PASSPHRASE, request.signature, request.timestamp]
            echoed.extend(words)
            return Response(json.dumps({"code": "50014", "msg": " ".join(words), "detail": words}).encode(), status)

        return script

    server.on("blocks", echo(400))
    server.on("tokens", lambda request: Response(f"<p>{request.signature} {server.url}".encode(), 502))
    server.on("transactions", page_of("transactions", [{"txid": "0x1", "transactionSymbol": API_KEY.upper()}]))
    with server.client(cassette=Cassette(path)) as client:
        for call in ("blocks", "tokens"):
            with pytest.raises(cf.ServiceError):
                getattr(client, call)().collect()
        client.transactions().collect()
    text = path.read_text(encoding="utf-8").lower()
    assert len(echoed) == 5
    port = server.url.rpartition(":")[2]
    for canary in (*echoed, "127.0.0.1", port, "access", "user-agent", "date", "header"):
        assert canary.lower() not in text, canary
    first = lines(path)[0]
    assert first.keys() == {"method", "path", "params", "status", "json"}
    assert first["path"] == "/api/v5/alpha/beta/block/block-list"
    assert first["params"] == {"chainShortName": "BETA_X", "limit": "100", "page": "1"}
    assert list(first["params"]) == sorted(first["params"])
    assert first["json"]["detail"] == ["*" * len(word) for word in echoed]


def test_replay_ignores_the_address_and_the_credentials(path: Path, server: StrictServer) -> None:
    words = server.client().deployment
    server.on("blocks", page_of("blocks", [{"height": "3"}]))
    with server.client(cassette=Cassette(path)) as client:
        recorded = client.blocks().collect()
    others = {"api_key": "other", "secret_key": "other", "passphrase": "other", "deployment": words}
    for url in ("https://elsewhere.invalid/with/a/prefix", "http://127.0.0.1:1"):
        with replaying(path, base_url=url, zone_chain="BETA_X", **others) as client:
            assert list(client.blocks().collect()) == list(recorded)
    assert len(server.requests) == 1


def test_prefix_of_the_base_url_is_not_stored(path: Path) -> None:
    settings: dict[str, Any] = {"api_key": "k1", "secret_key": "s1", "passphrase": "p1", "max_retries": 0}
    client = cf.Client(base_url="http://127.0.0.1:9/gate/way", cassette=Cassette(path), **settings)
    with client, pytest.raises(cf.TransportError) as recorded:
        client.blocks().collect()
    (line,) = lines(path)
    assert line["path"] == "/api/v5/main/zone/block/block-list"
    assert line["error"] == {"phase": "connect", "timed_out": False, "retryable": True}
    with replaying(path) as client, pytest.raises(cf.TransportError) as replayed:
        client.blocks().collect()
    assert replayed.value.phase == recorded.value.phase == "connect"


FAILURES: list[tuple[list[Fault], type[Exception] | None]] = [
    ([{"kind": "throttle", "retry_after": 1, "times": 1}], None),
    ([{"kind": "status", "status": 503, "code": "50001", "times": 2}], None),
    ([{"kind": "truncate", "times": 1}, {"kind": "code", "code": "50013", "times": 2}], None),
    ([{"kind": "reset", "times": 1}], None),
    ([{"kind": "html", "times": 1}], None),
    ([{"kind": "clock_skew", "seconds": 3600}], None),
    ([{"kind": "code", "code": "50037"}], cf.NotFoundError),
    ([{"kind": "throttle", "retry_after": 50}], cf.RateLimitError),
    ([{"kind": "status", "status": 500}], cf.ServiceUnavailableError),
    ([{"kind": "reset"}], cf.TransportError),
    ([{"kind": "delay", "seconds": 30}], cf.RequestTimeoutError),
]


@pytest.mark.parametrize(("faults", "kind"), FAILURES)
def test_failures_and_retries_replay_in_order(faults: list[Fault], kind: type[Exception] | None, path: Path) -> None:
    def outcome(client: cf.Client) -> tuple[object, ...]:
        query = client.blocks(max_items=30)
        try:
            records = query.collect()
        except cf.ChainframeError as failure:
            # A recorded failure has no advice: the settings of a replay cannot avoid it.
            advice = ("cursor", "hints", "_shell_text")
            members = {name: value for name, value in vars(failure).items() if name not in advice}
            return (type(failure), members)
        return (list(records), records.report.requests, records.report.retries)

    settings: dict[str, Any] = {"max_retries": 2, "deadline": 5.0, "timeout": 0.5}
    with (
        LocalService(transactions=50, faults=faults) as service,
        service.client(cassette=Cassette(path), **settings) as client,
    ):
        recorded = outcome(client)
    assert recorded[0] is kind or kind is None
    with replaying(path, **settings) as client:
        assert outcome(client) == recorded
    # Where the recording gave up its replay gives up, however patient it is.
    with replaying(path, max_retries=9, deadline=None) as client:
        assert outcome(client) == recorded


def test_attempt_ended_by_the_deadline_is_recorded(path: Path) -> None:
    with (
        LocalService(transactions=50, faults=[{"kind": "delay", "seconds": 30}]) as service,
        service.client(cassette=Cassette(path), deadline=0.2) as client,
        pytest.raises(cf.RequestTimeoutError),
    ):
        client.blocks().collect()
    with replaying(path) as client, pytest.raises(cf.RequestTimeoutError) as caught:
        client.blocks().collect()
    assert caught.value.phase == "deadline"


@pytest.mark.parametrize(
    "body",
    [
        b'{"code":0,"data":[{"totalPage":1,"data":[{"height":4307974.0,"height":1}]}]}',
        b'{"code": "0",\r\n "data": [{"totalPage": "1", "data": [{"hash": "\\u2028 \xc3\xa9 \\ud83d\\ude00"}]}]}',
        b'{"code":"0","data":[{"totalPage":"1","data":[{"height":"4307974.5"}]}]}',
        b'\xef\xbb\xbf{"code":"0","data":[]}',
        b'{"code":"0","data":[{"data":',
        b"\xff\xfe not text",
        b"",
        b"null",
    ],
)
def test_replayed_body_decodes_to_the_same_records(server: StrictServer, path: Path, body: bytes) -> None:
    def outcome(client: cf.Client) -> object:
        try:
            return list(client.blocks().collect())
        except cf.ResponseFormatError as failure:
            return (failure.path, failure.excerpt, str(failure))

    server.on("blocks", Response(body))
    with server.client(cassette=Cassette(path)) as client:
        recorded = outcome(client)
    with replaying(path, deployment=client.deployment, zone_chain="BETA_X", max_retries=0) as client:
        assert outcome(client) == recorded


def test_miss_names_the_request_and_the_closest_match(service: LocalService, path: Path) -> None:
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(height=7).collect()
        client.tokens().first()
    with replaying(path) as client, pytest.raises(cf.CassetteMissError) as caught:
        client.blocks(height=8).collect()
    said = str(caught.value)
    assert "\n" not in said
    assert all(part in said for part in (path.name, "block-list", "height=7 instead of 8", "new_episodes"))
    assert isinstance(caught.value, cf.CassetteError)
    assert not caught.value.retryable
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    with cf.Client(cassette=Cassette(path)) as client:
        client.blocks(height=7).collect()
        with pytest.raises(cf.CassetteMissError, match="the one recording already played"):
            client.blocks(height=7).collect()
    with (
        replaying(path.with_name("none.jsonl")) as client,
        pytest.raises(cf.CassetteMissError, match=r"does not exist .*was it committed"),
    ):
        asyncio.run(client.tokens().collect_async())


def test_modes_record_and_replay_as_documented(service: LocalService, path: Path) -> None:
    assert not Cassette(path).path.exists()
    with service.client(cassette=Cassette(path, mode="new_episodes")) as client:
        client.blocks(height=1).collect()
    before = service.request_count
    with service.client(cassette=Cassette(path, mode="new_episodes")) as client:
        client.blocks(height=1).collect()
        assert service.request_count == before
        client.blocks(height=2).collect()
        assert service.request_count == before + 1
    assert len(lines(path)) == 2
    with service.client(cassette=Cassette(path, mode="all")) as client:
        client.blocks(height=1).collect()
    assert service.request_count == before + 2
    assert [line["params"]["height"] for line in lines(path)] == ["1", "2", "1"]
    assert not Cassette(path, mode="once").can_record
    with pytest.raises(cf.CassetteError, match=r"mode must be one of none, once, new_episodes, all; got .twice"):
        Cassette(path, mode="twice")  # type: ignore[arg-type]


def test_invalid_line_is_named_by_number(service: LocalService, path: Path) -> None:
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(max_items=20, page_size=10).collect()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(cf.CassetteError, match=r"one\.jsonl line 2: unexpected end of line") as caught:
        Cassette(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(cf.CassetteError, match="cannot be read"):
        Cassette(path.parent)


def test_threads_and_tasks_share_a_cassette(service: LocalService, path: Path) -> None:
    async def ask(client: cf.Client) -> list[int]:
        heights = [client.blocks(height=4_300_000 + number).collect_async() for number in range(10)]
        return [len(records) for records in await asyncio.gather(*heights)]

    def in_threads(client: cf.Client) -> list[int]:
        counts: dict[int, int] = {}

        def one(number: int) -> None:
            counts[number] = len(client.blocks(height=4_300_000 + number).collect())

        threads = [threading.Thread(target=one, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [counts[number] for number in range(10)]

    with service.client(cassette=Cassette(path)) as client:
        recorded = in_threads(client) + asyncio.run(ask(client))
    assert recorded == [1] * 20
    with replaying(path) as client:
        assert asyncio.run(ask(client)) + in_threads(client) == recorded


def ask_in_child(client: cf.Client, pipe: Any) -> None:
    pipe.send(len(client.blocks(max_items=150).collect()))


@pytest.mark.parametrize("mode", ["none", "new_episodes"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_replays(service: LocalService, path: Path, mode: Any) -> None:
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(max_items=150).collect()
    before = service.request_count
    with service.client(cassette=Cassette(path, mode=mode)) as client:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=ask_in_child, args=(client, there))
        child.start()
        assert here.poll(60)
        assert here.recv() == 150
        child.join(60)
        assert len(client.blocks(max_items=150).collect()) == 150
    assert service.request_count == before


def test_a_client_pickles_with_its_cassette(service: LocalService, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api_key", "secret_key", "passphrase"):
        monkeypatch.setenv(f"CHAINFRAME_{name.upper()}", getattr(service, name))
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(height=1).collect()
        with pickle.loads(pickle.dumps(client)) as other:
            assert other == client
            other.blocks(height=2).collect()
    assert len(lines(path)) == 2
    with pickle.loads(pickle.dumps(replaying(path))) as other:
        other.blocks(height=2).collect()


SCRIPT = """
import sys
import chainframe as cf

with cf.Client() as client:
    for height in sys.argv[1:]:
        print(len(client.blocks(height=int(height)).collect()))
"""


def run(settings: dict[str, str], *heights: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, *map(str, heights)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=settings, stdout=pipe, stderr=pipe, text=True)


def told(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.split()


def test_environment_variable_names_the_cassette_of_a_process(service: LocalService, path: Path) -> None:
    settings = {
        "CHAINFRAME_BASE_URL": service.url,
        "CHAINFRAME_API_KEY": service.api_key,
        "CHAINFRAME_SECRET_KEY": service.secret_key,
        "CHAINFRAME_PASSPHRASE": service.passphrase,
    }
    cassette = {"CHAINFRAME_CASSETTE": str(path)}
    assert told(run({**settings, **cassette}, 4_300_001, 4_300_002)) == ["1", "1"]
    before = service.request_count
    assert told(run(cassette, 4_300_002, 4_300_001)) == ["1", "1"]
    assert told(run({**cassette, "CHAINFRAME_CASSETTE_MODE": "none"}, 4_300_002)) == ["1"]
    assert service.request_count == before
    wrong = run({**cassette, "CHAINFRAME_CASSETTE_MODE": "twice"}, 1)
    assert "CassetteError: CHAINFRAME_CASSETTE_MODE" in wrong.communicate(timeout=60)[1]


@pytest.mark.parametrize("mode", ["new_episodes", "all"])
def test_processes_record_into_one_file(service: LocalService, path: Path, mode: str) -> None:
    settings = {
        "CHAINFRAME_BASE_URL": service.url,
        "CHAINFRAME_API_KEY": service.api_key,
        "CHAINFRAME_SECRET_KEY": service.secret_key,
        "CHAINFRAME_PASSPHRASE": service.passphrase,
        "CHAINFRAME_CASSETTE": str(path),
        "CHAINFRAME_CASSETTE_MODE": mode,
    }
    ranges = [range(4_300_000, 4_300_020), range(4_300_020, 4_300_040)]
    for process in [run(settings, *heights) for heights in ranges]:
        assert told(process) == ["1"] * 20
    assert sorted(int(line["params"]["height"]) for line in lines(path)) == [*range(4_300_000, 4_300_040)]


def test_clients_of_one_process_share_the_cassette_of_the_environment(
    service: LocalService, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CHAINFRAME_CASSETTE", str(path))
    for height in (1, 2):
        with cf.Client() as client:
            client.blocks(height=height).collect()
    assert len(lines(path)) == 2
    with service.client(cassette=Cassette(path.with_name("two.jsonl"))) as client:
        client.blocks(height=3).collect()
    assert len(lines(path)) == 2


def test_empty_file_is_recorded_into(service: LocalService, tmp_path: Path) -> None:
    (tmp_path / "made.jsonl").touch()
    with service.client(cassette=Cassette(tmp_path / "made.jsonl")) as client:
        client.blocks(height=1).collect()
    assert len(lines(tmp_path / "made.jsonl")) == 1


def test_retried_empty_response_replays(server: StrictServer, path: Path) -> None:
    first = page_of("blocks", [{"hash": "0x1"}], totalPage="2", total="2", page="1", limit="1")
    second = page_of("blocks", [{"hash": "0x2"}], totalPage="2", total="2", page="2", limit="1")
    server.on("blocks", first, Response(envelope([])), second)
    with server.client(cassette=Cassette(path), max_retries=1) as client:
        assert len(client.blocks(page_size=1).collect()) == 2
    with replaying(path, deployment=client.deployment, zone_chain="BETA_X", max_retries=1) as client:
        assert len(client.blocks(page_size=1).collect()) == 2


def test_retry_after_date_is_stored_as_seconds(server: StrictServer, path: Path) -> None:
    server.on("blocks", error(429, "50011", **{"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}))
    with server.client(cassette=Cassette(path)) as client, pytest.raises(cf.RateLimitError):
        client.blocks().collect()
    assert "2100" not in path.read_text(encoding="utf-8")
    assert lines(path)[0]["retry_after"] > 1e9


def test_error_response_is_stored_without_the_host_it_names(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    with LocalService(transactions=50) as service:
        host = service.url.removeprefix("http://")
        service.faults = [{"kind": "code", "code": "50014", "msg": f"asked at {host}"}]
        with pytest.raises(cf.BadRequestError, match=host):
            service.client(cassette=Cassette(path)).tokens(max_items=1).collect()
    assert host not in path.read_text()
    with pytest.raises(cf.BadRequestError, match=r"asked at \*+"):
        cf.Client(cassette=Cassette(path, "none")).tokens(max_items=1).collect()


def test_replay_needs_no_settings_and_recording_names_missing_ones(path: Path, service: LocalService) -> None:
    with service.client(cassette=Cassette(path)) as client:
        recorded = client.blocks(height=1).collect()
    with cf.Client(cassette=Cassette(path, mode="new_episodes"), base_url=service.url) as client:
        assert list(client.blocks(height=1).collect()) == list(recorded)
        with pytest.raises(cf.ConfigError, match=r"api_key \(CHAINFRAME_API_KEY\) is missing"):
            client.blocks(height=2).collect()
    with pytest.raises(cf.ConfigError, match="is missing"):
        cf.Client(cassette=Cassette(path.with_name("none.jsonl"), mode="new_episodes"))
    with pytest.raises(cf.ConfigError, match="is missing"):
        cf.Client(cassette=Cassette(path, mode="all"))


def test_length_is_that_of_the_file_while_it_is_rerecorded(path: Path, service: LocalService) -> None:
    with service.client(cassette=Cassette(path)) as client:
        for height in (1, 2, 3):
            client.blocks(height=height).collect()
    rerecorded = Cassette(path, mode="all")
    with service.client(cassette=rerecorded) as client:
        assert len(rerecorded) == 3
        for height in (2, 2, 4):
            client.blocks(height=height).collect()
            assert len(rerecorded) == len(Cassette(path, mode="none"))
    assert len(rerecorded) == 5


def test_short_secret_does_not_redact_data(path: Path, server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strict_server.PASSPHRASE", "eth")
    found = page_of("transactions", [{"txid": "0xe7", "transactionSymbol": "WETH"}])
    server.on("transactions", found)
    server.on("tokens", error(400, "50014", "who is eth?"))
    with server.client(cassette=Cassette(path)) as client:
        recorded = client.transactions().collect()
        with pytest.raises(cf.BadRequestError):
            client.tokens().collect()
    with server.client(cassette=Cassette(path, mode="none")) as client:
        assert list(client.transactions()) == list(recorded)
    assert "who is ***?" in path.read_text(encoding="utf-8")


def test_secret_in_the_data_is_redacted_and_reported(
    path: Path, server: StrictServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("transactions", page_of("transactions", [{"txid": "0x1", "transactionSymbol": API_KEY}]))
    with server.client(cassette=Cassette(path)) as client:
        client.transactions().collect()
    assert "a replay will differ" in caplog.text
    assert API_KEY not in path.read_text(encoding="utf-8")


def test_parameter_with_a_secret_is_neither_sent_nor_stored(path: Path, server: StrictServer) -> None:
    with server.client(cassette=Cassette(path)) as client:
        for address in (API_KEY, f"0x{SECRET_KEY.upper()}", PASSPHRASE):
            with pytest.raises(cf.CassetteError, match="address contains a secret"):
                client.address_transactions(address).collect()
    assert not path.exists()
    assert not server.requests


THREADS = """
import sys, threading
import chainframe as cf
sys.setswitchinterval(1e-6)


def work():
    for _ in range(200):
        try:
            cf.Client()
        except cf.CassetteError:
            pass


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""


def test_a_broken_cassette_of_the_environment_locks_no_thread_out(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("{broken\n", encoding="utf-8")
    variables = {**os.environ, "CHAINFRAME_CASSETTE": str(path)}
    command = [sys.executable, "-c", THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
