"""`chainframe doctor`: one line for each check, exit codes by what failed, and no secret anywhere."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sysconfig
from pathlib import Path

import pytest
import trustme

from chainframe.testing import Cassette, Fault, LocalService
from client.test_tls import TlsProxy
from strict_server import StrictServer

COMMAND = str(Path(sysconfig.get_path("scripts")) / "chainframe")
OURS = ("CHAINFRAME_", "SSL_CERT", "REQUESTS_CA")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def run_doctor(settings: dict[str, str], *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    clean = {name: value for name, value in clean.items() if "PROXY" not in name.upper()}
    command = [COMMAND, "doctor", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean | settings, timeout=120)
    for name, value in settings.items():
        if name in {"CHAINFRAME_API_KEY", "CHAINFRAME_SECRET_KEY", "CHAINFRAME_PASSPHRASE"} and value:
            assert value not in done.stdout + done.stderr
    assert done.stderr == ""
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {found["check"]: (found["status"], found["text"]) for found in results}


def of(service: LocalService, **changes: str) -> dict[str, str]:
    settings = {"BASE_URL": service.url, "API_KEY": service.api_key, "SECRET_KEY": service.secret_key}
    settings |= {"PASSPHRASE": service.passphrase} | changes
    return {f"CHAINFRAME_{name}": value for name, value in settings.items()}


def test_correct_settings_pass_every_check(service: LocalService) -> None:
    code, found = run_doctor(of(service, MAIN_CHAIN="MAIN"))
    assert code == 0
    assert {status for status, _ in found.values()} == {"ok"}
    assert found["base_url"][1] == f"{service.url} (from CHAINFRAME_BASE_URL)"
    assert "from CHAINFRAME_MAIN_CHAIN" in found["main_chain"][1]
    assert "default" in found["zone_chain"][1]
    assert "from CHAINFRAME_SECRET_KEY" in found["secret_key"][1]
    assert set(found) >= {"signature", "proxy", "dns", "tcp", "clock", "request"}


def test_lines_for_a_terminal_begin_with_the_status(service: LocalService) -> None:
    # The tests have a variable of their own, which is no setting.
    environment = {name: value for name, value in os.environ.items() if name != "CHAINFRAME_TESTS"} | of(service)
    command = [COMMAND, "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert done.returncode == 0
    assert all(line.startswith("ok   ") for line in done.stdout.splitlines())
    assert all(line[17] == " " != line[18] for line in done.stdout.splitlines())
    assert service.secret_key not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="the shell is that of Unix")
def test_closed_standard_output_is_no_error(service: LocalService) -> None:
    environment = os.environ | of(service)
    command = f"'{COMMAND}' doctor >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False, env=environment, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("changes", "faults", "code", "failed"),
    [
        ({"API_KEY": ""}, [], 2, "api_key"),
        ({"BASE_URL": "http://data.example.com"}, [], 2, "settings"),
        ({"BASE_URL": "http://127.0.0.1:1"}, [], 5, "tcp"),
        ({"SECRET_KEY": "canary-7f3a"}, [], 3, "request"),
        ({}, [{"kind": "status", "status": 402}], 3, "request"),
        ({}, [{"kind": "throttle", "retry_after": 600}], 4, "request"),
        ({}, [{"kind": "code", "code": "50005"}], 9, "request"),
        ({}, [{"kind": "status", "status": 503}], 5, "request"),
        ({"MAIN_CHAIN": "ELSEWHERE"}, [], 9, "request"),
        ({"DEPLOYMENT": '{"main": "elsewhere"}'}, [], 9, "request"),
        ({"MAX_REQUESTS": "1"}, [], 2, "zone request"),
        ({"CASSETTE": os.devnull}, [], 2, "settings"),
        ({"CASSETTE": __file__}, [], 2, "settings"),
        ({"CASSETTE": "s3://bucket/c.jsonl"}, [], 2, "settings"),
        ({"CASSETTE": "c.jsonl", "CASSETTE_MODE": "any"}, [], 2, "settings"),
        ({"CASSETTE": "c.jsonl", "CASSETTE_MATCH_ON": "any"}, [], 2, "settings"),
        ({"CACHE": __file__}, [], 2, "settings"),
        ({"DEPLOYMENT": "main"}, [], 2, "settings"),
        # If several checks fail, the code is that of the failure which another try is least likely to help.
        ({"MAX_REQUESTS": "2"}, [{"kind": "status", "status": 503, "path": "token-list"}], 2, "request"),
        ({"ZONE_CHAIN": "ELSEWHERE"}, [{"kind": "status", "status": 503, "path": "token-list"}], 9, "request"),
    ],
)
def test_failed_check_has_a_line_and_an_exit_code(
    changes: dict[str, str], faults: list[Fault], code: int, failed: str
) -> None:
    with LocalService(transactions=5, faults=faults) as service:
        returned, found = run_doctor(of(service, **changes))
    assert returned == code
    options = {option for _, text in found.values() for option in re.findall("--[a-z-]+", text)}
    assert options <= OPTIONS
    assert next(check for check, (status, _) in found.items() if status == "fail") == failed
    assert ("zone request" in found) == ("request" in found and code != 4)
    # A check that was not reached says nothing.
    assert not {"cassette", "cache"} & set(found)


OPTIONS = {"--base-url", "--main-chain", "--zone-chain", "--proxy", "--ca-bundle", "--prehash", "--signature-encoding"}
"""Options that advice may name: this command has them."""


def test_client_that_need_not_send_is_named_and_requests_are_sent(service: LocalService, tmp_path: Path) -> None:
    with service.client(cassette=Cassette(tmp_path / "c.jsonl", mode="all"), cache=tmp_path) as client:
        client.tokens().first()
        client.blocks().first()
    sent = service.request_count
    settings = of(service, CASSETTE=str(tmp_path / "c.jsonl"), CASSETTE_MODE="none", CACHE=str(tmp_path))
    code, found = run_doctor(settings)
    assert code == 0
    assert [found[name][0] for name in ("cassette", "cache")] == ["warn", "warn"]
    # The clock takes another.
    assert service.request_count == sent + 3


def test_clock_skew_is_a_warning() -> None:
    with LocalService(transactions=5, faults=[{"kind": "clock_skew", "seconds": 3600}]) as service:
        code, found = run_doctor(of(service))
    assert code == 0
    assert found["clock"][0] == "warn"
    assert "behind the server's; corrected by the client" in found["clock"][1]
    assert found["request"][0] == "ok"


def test_unknown_certificate_authority_fails_until_it_is_passed(service: LocalService, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with StrictServer(context) as server:
        settings = of(service, BASE_URL=server.url)
        code, found = run_doctor(settings)
        assert code == 9
        assert found["tls"][0] == "fail"
        assert "--ca-bundle" in found["tls"][1]
        assert "tls" in found["request"][1]
        _, found = run_doctor(settings, "--ca-bundle", str(bundle))
        assert found["tls"][0] == "ok"
        assert "trustme" in found["tls"][1]


def test_password_of_a_proxy_is_redacted(service: LocalService) -> None:
    settings = of(service, BASE_URL="https://data.example.com")
    code, found = run_doctor(settings, "--proxy", "http://someone:canary-55@127.0.0.1:1")
    assert code == 5
    assert "canary-55" not in str(found)
    assert found["proxy"][1].startswith("http://***@127.0.0.1:1")
    assert found["tcp"][0] == "fail"


def test_password_of_a_tls_proxy_is_sent_by_no_check_without_tls(
    service: LocalService, authority: trustme.CA, tmp_path: Path
) -> None:
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with TlsProxy(context, b"HTTP/1.1 403 No\r\n\r\n") as proxy:
        settings = of(service, BASE_URL="https://data.example.com") | {"REQUESTS_CA_BUNDLE": str(bundle)}
        settings["HTTPS_PROXY"] = f"https://someone:canary-55@{proxy.address}"
        code, found = run_doctor(settings)
    assert code == 9
    assert "canary-55" not in str(found)
    assert found["proxy"] == ("ok", f"https://***@{proxy.address}/ (from HTTPS_PROXY)")
    assert found["tls"][0] == "ok"
    assert "status 403" in found["request"][1]
    assert proxy.in_clear == []
    # The checks before the request send nothing.
    assert next(head for head in proxy.encrypted if head).startswith(b"CONNECT data.example.com:443")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_no_check_of_a_service_on_loopback_leaves_through_a_proxy(service: LocalService, host: str) -> None:
    """Nothing listens at the proxy, so a check that went there would fail."""
    settings = of(service) | dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://[::1]:1")
    settings["CHAINFRAME_BASE_URL"] = f"http://{host}:{service.url.rpartition(':')[2]}"
    _, found = run_doctor(settings)
    assert found["proxy"] == ("ok", "none (base_url is a loopback address)")
    assert "::1" not in found["dns"][1].partition(" resolves")[0]


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("https://data.example.com/?key=canary-77", "https://data.example.com/?***"),
        ("https://data.example.com/#canary-77", "https://data.example.com/#***"),
        ("https://someone:canary-77@data.example.com", "https://***@data.example.com"),
        ("https://someone:canary/77@data.example.com/?a=canary@b", "https://***@b"),
        ("someone:canary-77@data.example.com", "***@data.example.com"),
    ],
)
def test_base_url_is_shown_without_secrets(service: LocalService, base_url: str, shown: str) -> None:
    code, found = run_doctor(of(service), "--base-url", base_url)
    assert code == 2
    assert found["base_url"] == ("ok", f"{shown} (from the command line)")
    assert "canary" not in str(found)
    _, found = run_doctor(of(service, BASE_URL=base_url))
    assert found["base_url"] == ("ok", f"{shown} (from CHAINFRAME_BASE_URL)")
    assert "canary" not in str(found)


@pytest.mark.parametrize("name", ["BASE_URL", "SECRET_KEY", "MAIN_CHAIN"])
def test_variable_that_is_not_utf8_fails(service: LocalService, name: str) -> None:
    code, found = run_doctor(of(service, **{name: os.fsdecode(b"caf\xe9")}))
    assert code == 2
    status, text = found[name.lower()]
    assert (status, text) == ("fail", f"CHAINFRAME_{name} must be UTF-8 text; set it again in this encoding")


def test_certificates_may_be_in_a_directory(service: LocalService, authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    (tmp_path / "notes.txt").write_text("not a certificate", encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with StrictServer(context) as server:
        settings = of(service, BASE_URL=server.url)
        for arguments, variables in ((["--ca-bundle", str(tmp_path)], {}), ([], {"REQUESTS_CA_BUNDLE": str(tmp_path)})):
            _, found = run_doctor(settings | variables, *arguments)
            assert found["tls"][0] == "ok"
            assert "trustme" in found["tls"][1]


def test_options_replace_the_environment(service: LocalService) -> None:
    settings = of(service)
    settings["CHAINFRAME_BASE_URL"] = "http://127.0.0.1:1"
    code, found = run_doctor(settings, "--base-url", service.url, "--zone-chain", service.zone_chain)
    assert code == 0
    assert found["base_url"] == ("ok", f"{service.url} (from the command line)")


def test_each_chain_is_asked(service: LocalService) -> None:
    code, found = run_doctor(of(service, ZONE_CHAIN="ELSEWHERE"))
    assert code == 9
    assert found["request"][0] == "ok"
    status, text = found["zone request"]
    assert status == "fail"
    assert "50038" in text
    assert text.endswith("check --zone-chain (CHAINFRAME_ZONE_CHAIN)")


def test_unknown_variable_is_named_with_the_one_that_was_meant(service: LocalService) -> None:
    code, found = run_doctor(of(service, APIKEY="canary-variable", CASSETTE_MODE="none"))
    assert code == 0
    assert found["variables"] == (
        "warn",
        "CHAINFRAME_APIKEY is no variable of chainframe; did you mean 'CHAINFRAME_API_KEY'?",
    )


@pytest.mark.parametrize(
    ("setting", "before", "after", "surplus"),
    [("API_KEY", "'", "'", "quotes"), ("SECRET_KEY", "", " ", "white space"), ("PASSPHRASE", '"', '"', "quotes")],
)
def test_quotes_and_blanks_around_a_secret_are_named(
    setting: str, before: str, after: str, surplus: str, service: LocalService
) -> None:
    settings = of(service)
    value = settings[f"CHAINFRAME_{setting}"]
    code, found = run_doctor(settings | {f"CHAINFRAME_{setting}": f"{before}{value}{after}"})
    assert code == 3
    assert found[setting.lower()] == ("warn", f"CHAINFRAME_{setting} has {surplus} around its value; remove it")


def test_quotes_around_a_chain_are_named(service: LocalService) -> None:
    code, found = run_doctor(of(service, MAIN_CHAIN='"MAIN"'))
    assert code == 9
    assert found["main_chain"][0] == "warn"
    assert "quotes" in found["main_chain"][1]
