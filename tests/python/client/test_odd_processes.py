"""Processes in unusual surroundings: frozen, without threads, with a closed stderr, with subinterpreters."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.metadata
import importlib.util
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import types
import weakref
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import chainframe as cf
from chainframe import _pyinstaller
from chainframe.testing import LocalService
from conftest import needs_extra
from repository import ROOT


def run(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **options)


class Failing(io.StringIO):
    def isatty(self) -> bool:
        raise OSError("no device")


class Odd(io.StringIO):
    def isatty(self) -> bool:
        raise RuntimeError("of another program")


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


def test_query_runs_without_the_name_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalService(transactions=80) as service, service.client() as client:
        for name in ("stderr", "stdout"):
            monkeypatch.delattr(sys, name)
            assert len(client.blocks().collect()) == len(list(client.blocks())) == 80


STREAMS = [closed(), Failing(), Odd(), types.SimpleNamespace(write=len, flush=lambda: None), None]


@pytest.mark.parametrize("stream", STREAMS, ids=["closed", "failing", "odd", "without", "none"])
@pytest.mark.parametrize("progress", ["auto", True, False])
@pytest.mark.parametrize("names", [["stderr"], ["stderr", "stdout"]])
def test_query_runs_whatever_the_streams_are(
    stream: Any, progress: Any, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if progress is True:
        pytest.importorskip("tqdm")
    with LocalService(transactions=80) as service, service.client(progress=progress) as client:
        for name in names:
            monkeypatch.setattr(sys, name, stream)
        assert len(client.blocks().collect()) == len(list(client.blocks())) == 80


SHIM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <errno.h>
#include <dlfcn.h>
#include <stdlib.h>
static int alive = 0;
struct start { void *(*f)(void *); void *x; };
static void *begin(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    void *value = start.f(start.x);
    __sync_fetch_and_sub(&alive, 1);
    return value;
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    if (__sync_add_and_fetch(&alive, 1) > atoi(getenv("THREADS"))) { __sync_fetch_and_sub(&alive, 1); return EAGAIN; }
    struct start *start = malloc(sizeof *start);
    start->f = f;
    start->x = x;
    int failed = real(t, a, begin, start);
    if (failed) __sync_fetch_and_sub(&alive, 1);
    return failed;
}
"""
CALLS = {
    "wait": "client.blocks().first()",
    "await": "asyncio.run(client.blocks().first_async())",
    "iterate": "next(iter(client.blocks()))",
    "bar": "client.with_options(progress=True).blocks().collect()",
    "service": "LocalService(transactions=10)",
    "follow": "list(client.blocks().follow(poll=None))",
    "stream": "client.blocks().to_arrow()",
    "estimate": "client.blocks().estimate()",
    "export": "client.blocks().to_csv('/nonexistent/x.csv')",
}


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler of Linux")
@pytest.mark.parametrize("left", range(4))
@needs_extra
def test_process_without_threads_raises_exceptions_only(tmp_path: Path, left: int) -> None:
    (tmp_path / "shim.c").write_text(SHIM)
    shim = str(tmp_path / "shim.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, str(tmp_path / "shim.c"), "-ldl"], check=True)
    code = """
        import asyncio, sys
        import chainframe as cf
        from chainframe.testing import LocalService
        client = cf.Client(base_url="http://127.0.0.1:9", api_key="k", secret_key="s", passphrase="p", max_retries=0)
        try:
            CALL
        except Exception as error:
            print(type(error).__name__, error)
        """
    for name, call in CALLS.items():
        done = run(
            code.replace("CALL", call),
            env={
                "LD_PRELOAD": shim,
                "THREADS": str(left),
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONPATH": ":".join(sys.path),
            },
        )
        assert done.returncode == 0, (name, done.stderr)
        if left == 0 and name in {"wait", "iterate", "stream"}:
            assert "ContextError failed to start the Tokio runtime: " in done.stdout
            assert "limit of threads" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of descriptors are of Linux")
@needs_extra
def test_process_that_closed_its_descriptors_raises_exceptions_only() -> None:
    code = """
        import asyncio, os, time
        from pathlib import Path
        import chainframe as cf
        client = cf.Client(max_retries=0)
        blocks = client.blocks()
        blocks.first()
        # Tokio ends the process if its thread begins to wait for a closed descriptor, so that it has to wait already.
        threads = [each for each in Path("/proc/self/task").iterdir() if "chainframe" in (each / "comm").read_text()]
        asleep = 0
        while asleep < 20:
            asleep = asleep + 1 if all("S (sleeping)" in (each / "status").read_text() for each in threads) else 0
            time.sleep(0.01)
        os.closerange(3, 256)
        for _ in range(2):
            for call in (blocks.first, lambda: asyncio.run(blocks.first_async()), blocks.to_arrow):
                try:
                    call()
                except cf.ContextError as error:
                    print(error, flush=True)
        if os.fork() == 0:
            print(blocks.first().height, flush=True)
            os._exit(0)
        os.wait()
        """
    with LocalService(transactions=80) as service:
        done = run(code, env={**os.environ, **service.env, "PYTHONPATH": ":".join(sys.path)})
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line.startswith("the process has closed descriptors")] == lines[:6]
    assert lines[6:] == ["4300079"], done.stderr


INTERPRETERS = importlib.util.find_spec("_xxsubinterpreters") or importlib.util.find_spec("_interpreters")


@pytest.mark.skipif(INTERPRETERS is None, reason="this Python has no subinterpreters")
@pytest.mark.parametrize("end", ["", "interpreters.destroy(number)"])
@pytest.mark.parametrize(
    "use", ["", "cf.Client(base_url='http://127.0.0.1:9', api_key='k', secret_key='s', passphrase='p')"]
)
def test_process_whose_subinterpreter_imported_the_package_ends(end: str, use: str) -> None:
    code = f"""
        import sys
        import {INTERPRETERS.name if INTERPRETERS else ""} as interpreters
        number = interpreters.create()
        interpreters.run_string(number, "import sys; sys.path[:] = " + repr(sys.path) + '''
        try:
            import chainframe as cf
            {use}
        except ImportError as error:
            # Of interpreters with a lock of their own.
            pass
        '''.replace("\\n        ", "\\n"))
        {end}
        print("ended", flush=True)
        """
    assert run(code).stdout == "ended\n"


def imported_by_the_core() -> set[str]:
    """Modules that Rust sources import by name."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "python").rglob("*.rs")]
    return {name for text in texts for name in re.findall(r'"(chainframe(?:\.[a-z_]+)+)"', text)} - {
        "chainframe._native"
    }


def test_frozen_application_holds_the_modules_that_the_core_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    def collect_submodules(package: str, filter: Any) -> list[str]:  # noqa: A002 - PyInstaller's name
        found = pkgutil.walk_packages(sys.modules[package].__path__, f"{package}.")
        return [module.name for module in found if filter(module.name)]

    hooks = types.SimpleNamespace(collect_submodules=collect_submodules)
    for name, module in (("PyInstaller", hooks), ("PyInstaller.utils", hooks), ("PyInstaller.utils.hooks", hooks)):
        monkeypatch.setitem(sys.modules, name, module)
    (directory,) = _pyinstaller.hook_dirs()
    hook: dict[str, Any] = {}
    exec(Path(directory, "hook-chainframe.py").read_text(encoding="utf-8"), hook)
    wanted = imported_by_the_core()
    if importlib.util.find_spec("pyarrow") is None:
        # A package that cannot be imported is not searched for its modules; no application without pyarrow uses them.
        wanted = {name for name in wanted if not name.startswith("chainframe.datasets.")}
    assert {"chainframe.progress", "chainframe.exports.methods", "chainframe.sinks.sync"} <= wanted
    assert wanted <= set(hook["hiddenimports"])
    assert not [name for name in hook["hiddenimports"] if "spark" in name]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the sources")
def test_entry_point_names_the_hooks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["entry-points"]["pyinstaller40"]["hook-dirs"].partition(":")
    assert getattr(importlib.import_module(module), function) is _pyinstaller.hook_dirs


@pytest.mark.skipif(importlib.util.find_spec("PyInstaller") is None, reason="PyInstaller is not installed")
def test_frozen_application_runs(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        textwrap.dedent("""
            import sys
            import chainframe as cf

            url, *keys = sys.argv[1:]
            client = cf.Client(base_url=url, **dict(zip(("api_key", "secret_key", "passphrase"), keys)))
            print(len(client.blocks().collect()), len(client.blocks().to_dicts()), client.blocks().to_csv("x.csv").rows)
            """)
    )
    # The libraries that the application does not use: to look through them takes a minute of CPU time.
    others = (
        f"--exclude-module={name}"
        for name, distributions in importlib.metadata.packages_distributions().items()
        if not {"chainframe", "pyarrow"} & {*distributions}
    )
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", *others, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with LocalService(transactions=60) as service:
        app = [str(tmp_path / "dist" / "app" / "app"), service.url, "local-key", "local-secret", "local-passphrase"]
        assert subprocess.run(app, cwd=tmp_path, check=True, capture_output=True, text=True).stdout == "60 60 60\n"


def test_client_query_and_records_can_be_weakly_referenced() -> None:
    with LocalService(transactions=30) as service, service.client() as client:
        query = client.blocks()
        records = query.collect()
        references = [weakref.ref(each) for each in (client, query, records)]
        assert [reference() for reference in references] == [client, query, records]
        del query, records
        gc.collect()
        assert [reference() is None for reference in references] == [False, True, True]


def test_calls_are_patched_on_the_class() -> None:
    with LocalService(transactions=30) as service, service.client() as client:
        with mock.patch.object(cf.Client, "blocks", return_value=[1]):
            patched: Any = client.blocks()
            assert patched == [1]
        assert len(client.blocks().collect()) == 30


def test_hook_has_no_import_of_the_package() -> None:
    # PyInstaller runs it in a process of its own, where the extension module may not load.
    source = Path(_pyinstaller.hook_dirs()[0], "hook-chainframe.py").read_text(encoding="utf-8")
    imported = [node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    assert imported == ["PyInstaller.utils.hooks"]
