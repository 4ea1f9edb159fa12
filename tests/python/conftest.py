from __future__ import annotations

import ast
import gc
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
import reference_client
from chainframe.testing import LocalService
from repository import ROOT, TESTS, row_of
from strict_server import StrictServer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


# A shell ignores interrupts in its background jobs; tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def has_room_in_memory(folder: str) -> bool:
    """True if files of all tests, and the programs among them, may be there."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize > 2 << 30 and not found.f_flag & os.ST_NOEXEC


# No test cuts the power: exports that wait for a disk, forty thousand times, prove no more than those in memory.
if "TMPDIR" not in os.environ and has_room_in_memory("/dev/shm"):
    os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"


@cache
def needed(path: Path) -> frozenset[str]:
    """The modules that a test imports first of all, itself or through other modules of the tests."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module]
    # Modules whose own imports need an extra or a tool.
    needs = {
        "chainframe.cli": "click",
        "chainframe.cli.app": "click",
        "mkdocs_hooks": "mkdocs",
        "pyiceberg.catalog.sql": "sqlalchemy",
        "wrong_sinks": "pyarrow",
    }
    found = frozenset[str]()
    for name in names:
        imported = TESTS / f"{name.replace('.', '/')}.py"
        is_of_tests = name not in needs and imported.is_file()
        found |= needed(imported) if is_of_tests else {needs.get(name, name.partition(".")[0])}
    return found


def lacking(path: Path) -> bool:
    return any(importlib.util.find_spec(name) is None for name in needed(path))


# Tests that need a missing library are skipped in two environments: "bare" has only the wheel, "lowest" has the extras
# but not the tools. In any other environment a missing library is an error.
ENVIRONMENT = os.environ.get("CHAINFRAME_TESTS", "")
BARE = ENVIRONMENT == "bare"
collect_ignore = [path for path in TESTS.rglob("test_*.py") if ENVIRONMENT and lacking(path)]
needs_extra = pytest.mark.skipif(BARE, reason="it needs an extra")


@contextmanager
def skipped_without_extra() -> Generator[None]:
    """Skip a test that asks for an extra where none is installed: the package names the command that installs it.

    Any other missing module fails the test, since the package itself may need none.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not BARE or "is not installed; run: pip install " not in str(error):
            raise
        pytest.skip(f"it needs {error.name}")


def pytest_collection() -> None:
    """Collect no garbage while each worker imports and lists all tests: a quarter of the time would go into that."""
    gc.disable()


def pytest_collection_finish() -> None:
    # The modules and tests that exist now are never freed: later collections leave them out.
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests of sinks: some take half a minute, and one at the end would be waited for."""
    items.sort(key=lambda item: "sinks" not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    with skipped_without_extra():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    with skipped_without_extra():
        return (yield)


@dataclass(frozen=True)
class Sample:
    """Identifiers of data in the local service."""

    token: str
    address: str
    height: int
    tx_ids: tuple[str, ...]

    def arguments(self, call: str) -> dict[str, Any]:
        """Arguments that the call must be given."""
        values = {"token_contract_address": self.token, "address": self.address, "tx_ids": self.tx_ids}
        names = [param["name"] for param in reference_client.required(call)]
        return {name: row_of(values, name, "Sample.arguments of conftest.py") for name in names}

    def query(self, client: cf.Client, call: str, **options: Any) -> cf.Query[Any]:
        query: cf.Query[Any] = getattr(client, call)(**self.arguments(call) | options)
        return query

    def expected(self, service: LocalService, call: str) -> list[dict[str, Any]]:
        """Return the result of that query according to the reference client."""
        values = self.arguments(call)
        sent = {param["wire"]: values[param["name"]] for param in reference_client.required(call)}
        if call in reference_client.PAGED:
            rows = reference_client.whole_list(service, call, **sent)
        else:
            [(wire, hashes)] = sent.items()
            responses = [reference_client.get(service, call, **{wire: item}) for item in hashes]
            rows = [row for response in responses for row in response]
        return reference_client.as_records(reference_client.ENDPOINTS[call]["record"], rows)


def environment(service: LocalService) -> dict[str, str]:
    names = ("url", "api_key", "secret_key", "passphrase")
    variables = ("BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE")
    return {f"CHAINFRAME_{variable}": getattr(service, name) for variable, name in zip(variables, names, strict=True)}


@pytest.fixture(scope="session")
def service() -> Iterator[LocalService]:
    """One local service for all tests that only read it; count its requests by their difference."""
    with LocalService(transactions=600, seed=7) as running:
        yield running


@pytest.fixture
def chain() -> Iterator[LocalService]:
    """A local service of its own for a test that changes it."""
    with LocalService(transactions=1_000, seed=7) as running:
        yield running


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Suites in processes of their own load none of the other plugins, whose imports take seconds of CPU time."""
    plugins = {plugin.name for plugin in importlib.metadata.entry_points(group="pytest11")}
    blocked = (f"-p no:{name}" for name in sorted(plugins - {"chainframe.testing.plugin"}))
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(blocked))
    return pytester


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings in the environment."""
    for name in ("BASE_URL", "API_KEY", "SECRET_KEY", "PASSPHRASE", "CASSETTE", "CASSETTE_MODE"):
        monkeypatch.delenv(f"CHAINFRAME_{name}", raising=False)


@pytest.fixture
def no_network_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without proxies and certificate bundles in the environment."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (*proxies, *map(str.lower, proxies), "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Path of a new cassette."""
    return tmp_path / "cassettes" / "one.jsonl"


@pytest.fixture
def at_service(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> LocalService:
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    return service


@pytest.fixture
def client(service: LocalService) -> Iterator[cf.Client]:
    # The rate limit is one for all clients of the account: a test would wait for the requests of those before it.
    with service.client(rate_limit=None) as made:
        yield made


@pytest.fixture(scope="session")
def sample(service: LocalService) -> Sample:
    rows = reference_client.whole_list(service, "transactions")
    crossed = Counter(
        row["tokenContractAddress"] for row in reference_client.whole_list(service, "cross_chain_transactions")
    )
    # In the reverse order of the service, so that results in its order differ from results in the requested order.
    tx_ids = [row["txid"] for row in rows[:100] if reference_client.get(service, "logs", txId=row["txid"])][3::-1]
    transaction = reference_client.get(service, "transactions_by_hash", txId=tx_ids[0])[0]
    return Sample(
        token=crossed.most_common(1)[0][0],
        address=Counter(row["input"] for row in rows).most_common(1)[0][0],
        height=int(transaction["height"]),
        tx_ids=tuple(tx_ids),
    )


@pytest.fixture
def server() -> Iterator[StrictServer]:
    """A server that finds nothing wrong with any request, or the test fails."""
    with StrictServer() as running:
        yield running
    assert running.rejections == []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all workers."""
    from filelock import FileLock  # noqa: PLC0415 - a tool

    run = tmp_path_factory.getbasetemp()
    folder = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "site"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _build_site(folder)
    return folder


def _build_site(folder: Path) -> None:
    building = folder.with_name("site being built")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(building)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    building.rename(folder)


@pytest.fixture
def failing() -> Any:
    """A server that fails after its third page."""
    with LocalService(transactions=100) as service:
        client = service.client(rate_limit=None, concurrency=1, max_retries=0)
        yield service, client.blocks(page_size=10)
