"""Cassettes: the recorded content, its redaction, and replay without a server."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import chainframe as cf
from chainframe.testing import Cassette, Fault, LocalService
from conftest import Sample
from recorded import lines, replaying
from reference_client import ENDPOINTS
from strict_server import Response, StrictServer, envelope, error, page_of

pytestmark = pytest.mark.usefixtures("no_settings")

CALLS = sorted(ENDPOINTS)


def test_errors_of_the_disk_have_their_number_and_path(tmp_path: Path) -> None:
    with pytest.raises(cf.CassetteError) as caught:
        Cassette(tmp_path, mode="none")
    assert caught.value.errno in {errno.EISDIR, errno.EACCES}
    assert (caught.value.path, caught.value.retryable) == (str(tmp_path), False)
    with pytest.raises(cf.CassetteError) as caught:
        Cassette(tmp_path, mode="twice")  # type: ignore[arg-type]
    assert (caught.value.errno, caught.value.path) == (None, None)


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


def test_replay_ignores_the_address_and_the_credentials(path: Path, server: StrictServer) -> None:
    deployment = server.client().deployment
    server.on("blocks", page_of("blocks", [{"height": "3"}]))
    with server.client(cassette=Cassette(path)) as client:
        recorded = client.blocks().collect()
    others = {"api_key": "other", "secret_key": "other", "passphrase": "other", "deployment": deployment}
    for url in ("https://elsewhere.invalid/with/a/prefix", "http://127.0.0.1:1"):
        with replaying(path, base_url=url, zone_chain="BETA_X", **others) as client:
            assert list(client.blocks().collect()) == list(recorded)
    assert len(server.requests) == 1


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
        pytest.raises(cf.CassetteMissError, match=r"does not exist: .*was it committed"),
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
    with pytest.raises(
        cf.CassetteError, match=r"mode must be one of none, once, new_episodes, all, rewrite; got .twice"
    ):
        Cassette(path, mode="twice")  # type: ignore[arg-type]


def test_invalid_line_is_named_by_number(service: LocalService, path: Path) -> None:
    with service.client(cassette=Cassette(path)) as client:
        client.blocks(max_items=20, page_size=10).collect()
    content = path.read_bytes()[:-40]
    path.write_bytes(content)
    last = 1 + content.count(b"\n", 0, content.rindex(b'\n{"method"') + 1)
    with pytest.raises(cf.CassetteError, match=rf"one\.jsonl line {last}: unexpected end of line") as caught:
        Cassette(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(cf.CassetteError, match="is not a regular file"):
        Cassette(path.parent)


def test_empty_file_is_recorded_into(service: LocalService, tmp_path: Path) -> None:
    (tmp_path / "made.jsonl").touch()
    with service.client(cassette=Cassette(tmp_path / "made.jsonl")) as client:
        client.blocks(height=1).collect()
    assert len(lines(tmp_path / "made.jsonl")) == 1


def test_retried_empty_response_replays(server: StrictServer, path: Path) -> None:
    first = page_of("blocks", [{"hash": "0x1"}], totalPage="2", total="2", page="1", limit="1")
    second = page_of("blocks", [{"hash": "0x2"}], totalPage="2", total="2", page="2", limit="1")
    server.on("blocks", first, Response(envelope([])), second, first, second)
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


def test_replay_needs_no_settings_and_recording_names_missing_ones(path: Path, service: LocalService) -> None:
    with service.client(cassette=Cassette(path)) as client:
        recorded = client.blocks(height=1).collect()
    with cf.Client(cassette=Cassette(path, mode="new_episodes"), base_url=service.url) as client:
        assert list(client.blocks(height=1).collect()) == list(recorded)
        with pytest.raises(
            cf.ConfigError, match=r"api_key \(CHAINFRAME_API_KEY\) is missing: \S+ does not have the request"
        ):
            client.blocks(height=2).collect()
    for mode in ("once", "new_episodes"):
        empty = Cassette(path.with_name("none.jsonl"), mode=mode)
        with pytest.raises(
            cf.ConfigError, match=r"is missing: \S+none.jsonl has nothing to replay, so requests would be"
        ):
            cf.Client(cassette=empty)
    with pytest.raises(cf.ConfigError, match="is missing"):
        cf.Client(cassette=Cassette(path, mode="all"))


def test_notes_survive_a_new_recording(path: Path, service: LocalService) -> None:
    with service.client(cassette=Cassette(path)) as client:
        for height in (1, 2):
            client.blocks(height=height).collect()
    noted = [{"note": f"why {number}", **line} for number, line in enumerate(lines(path))]
    path.write_text("\n".join(map(json.dumps, noted)), encoding="utf-8")
    rerecorded = Cassette(path, mode="all")
    with service.client(cassette=rerecorded) as client:
        client.blocks(height=1).collect()
    del client, rerecorded
    assert [line["note"] for line in lines(path)] == ["why 0", "why 1"]
    with replaying(path) as client:
        client.blocks(height=2).collect()
    assert [each["note"] for each in Cassette(path, mode="none").interactions] == ["why 0", "why 1"]


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


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes and symbolic links")
def test_rewritten_file_keeps_its_mode_and_follows_no_planted_link(path: Path, service: LocalService) -> None:
    def record() -> list[str]:
        with service.client(cassette=Cassette(path, mode="all")) as client:
            client.tokens(max_items=5).collect()
        del client
        gc.collect()
        return sorted(file.name for file in path.parent.iterdir())

    record()
    path.chmod(0o640)
    precious = path.parent / "precious"
    precious.write_text("precious", encoding="utf-8")
    planted = [Path(f"{path}.{os.getpid()}.tmp"), Path(f"{path}.tmp"), path.with_suffix(".tmp")]
    for link in planted:
        link.symlink_to(precious)
    before = path.stat().st_ino
    assert record() == sorted([path.name, precious.name, *(link.name for link in planted)])
    assert path.stat().st_ino != before
    assert path.stat().st_mode & 0o777 == 0o640
    assert precious.read_text(encoding="utf-8") == "precious"
    assert all(link.readlink() == precious for link in planted)


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
@pytest.mark.parametrize("mode", ["once", "new_episodes", "all", "rewrite"])
def test_nothing_is_recorded_through_a_link(path: Path, service: LocalService, mode: Any) -> None:
    real = path.parent / "elsewhere" / "real.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(real)
    for content in (None, ""):
        if content is not None:
            real.parent.mkdir()
            real.write_text(content, encoding="utf-8")
        with pytest.raises(cf.CassetteError, match="is a symbolic link; to record, remove it"):
            Cassette(path, mode=mode)
        assert real.exists() == (content is not None)
    with service.client(cassette=Cassette(real, mode="once")) as client:
        client.tokens(max_items=5).collect()
    recorded = real.read_bytes()
    if mode == "once":
        # It has something to replay, and so is not written.
        assert len(Cassette(path, mode=mode)) == 1
    else:
        with pytest.raises(cf.CassetteError, match="is a symbolic link"):
            Cassette(path, mode=mode)
    assert len(Cassette(path, mode="none")) == 1
    assert real.read_bytes() == recorded


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
@pytest.mark.parametrize("mode", ["once", "new_episodes", "all", "rewrite"])
def test_link_that_is_planted_after_the_opening_is_not_followed(path: Path, service: LocalService, mode: Any) -> None:
    precious = path.parent / "precious"
    opened = Cassette(path, mode=mode)
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("", encoding="utf-8")
    path.unlink(missing_ok=True)
    path.symlink_to(precious)
    with service.client(cassette=opened) as client, pytest.raises(cf.CassetteError):
        client.tokens(max_items=5).collect()
    assert precious.read_text(encoding="utf-8") == ""


def test_texts_of_a_cassette_are_printable_in_messages(path: Path) -> None:
    evil = "\x1b[2J\x9b31m\u202e\u2066"
    recorded = {"method": "GET", "path": f"/api/{evil}", "params": {"a": evil, evil: "b"}, "status": 200, "json": {}}
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(recorded) + "\n", encoding="utf-8")
    with cf.Client(cassette=Cassette(path, mode="none")) as client, pytest.raises(cf.CassetteError) as caught:
        client.tokens().first()
    assert str(caught.value).isprintable()
    path.write_text(f'{{"{evil}": 1, "method": "{evil}"}}', encoding="utf-8")
    with pytest.raises(cf.CassetteError) as caught:
        Cassette(path, mode="none")
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_only_a_regular_file_is_recorded_into(path: Path, mode: str) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    for other in (path, path.parent, Path(os.devnull)):
        with pytest.raises(cf.CassetteError, match=r": is not a regular file; name another to record$"):
            Cassette(other, mode=mode)  # type: ignore[arg-type]
    assert path.is_fifo()


@pytest.mark.filterwarnings("ignore::chainframe.IncompleteResultWarning")
def test_replay_of_a_poll_loop_repeats_empty_responses_as_they_were_recorded(path: Path) -> None:
    """After four confirmed empty responses, one is repeated once, not twice."""

    def poll(client: cf.Client) -> list[tuple[int, int]]:
        polls = []
        for _ in range(8):
            found = client.transactions_by_hash(["0x" + "c" * 64]).collect()
            newest = client.blocks(max_items=1).collect()
            polls += [(len(records), records.report.requests) for records in (found, newest)]
        return polls

    with LocalService(transactions=300, simulated=True) as service:
        with service.client(cassette=Cassette(path, mode="all")) as client:
            recorded = poll(client)
        assert len(set(recorded)) > 2
    cassette = Cassette(path, mode="none")
    with cf.Client(cassette=cassette) as client:
        assert poll(client) == recorded
    assert cassette.all_played
