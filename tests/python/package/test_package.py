"""Contents and metadata of the installed package."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest

import chainframe as cf
from chainframe import _native
from conftest import needs_extra
from repository import ROOT

INSTALLED = Path(cf.__file__).parent


def test_thread_safety_of_each_class_is_documented() -> None:
    table = (ROOT / "docs/concurrency.md").read_text().partition("| Class |")[2].partition("\n\n")[0]
    records = {record["name"] for record in json.loads(_native._declaration())["records"]}
    classes = {name for name, member in vars(_native).items() if isinstance(member, type)}
    assert len(classes) > 15
    assert {name for name in classes - records if f"`{name}`" not in table} == set()


def test_the_installed_wheel_is_tested() -> None:
    assert "site-packages" in INSTALLED.parts
    assert ROOT / "python" not in {Path(entry).resolve() for entry in sys.path}


def test_the_wheel_holds_types_and_the_native_core() -> None:
    assert (INSTALLED / "py.typed").is_file()
    assert (INSTALLED / "_native.pyi").stat().st_size > 10_000
    (library,) = (path.name for path in INSTALLED.glob("_native*") if path.suffix in {".so", ".pyd"})
    # A wheel for an interpreter without a GIL has no stable ABI, and on Windows the name does not tell.
    if sys.platform != "win32" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert library.startswith("_native.abi3.")


def test_the_native_core_needs_no_gil() -> None:
    assert "#[pymodule(gil_used = false)]" in (ROOT / "src/python/mod.rs").read_text("utf-8")


def test_the_wheel_lists_its_crates() -> None:
    (path,) = (path for path in distribution("chainframe").files or [] if path.parent.name == "sboms")
    document = json.loads(path.read_text())
    assert document["bomFormat"] == "CycloneDX"
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    versions = {(package["name"], package["version"]) for package in locked}
    listed = {(component["name"], component["version"]) for component in document["components"]}
    assert {"alloy-dyn-abi", "hyper", "rustls"} < {name for name, _ in listed}
    assert listed <= versions


@needs_extra
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is a source distribution itself")
def test_the_source_distribution_holds_what_is_tracked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.iterdir())) as made:
        held = {name.partition("/")[2] for name in made.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = set(listed.stdout.splitlines()) - {".ci/run"}
    assert {"LICENSE", "README.md", "python/chainframe/py.typed", "python/chainframe/_native.pyi"} < tracked
    assert held == tracked | {"PKG-INFO"}


def test_metadata_describes_the_package() -> None:
    said = distribution("chainframe").metadata
    for field in ("Summary", "Keywords", "License-Expression", "Requires-Python", "Description-Content-Type"):
        assert said[field]
    assert said.get_all("Provides-Extra") == [
        "all",
        "arrow",
        "cli",
        "dlt",
        "iceberg",
        "otel",
        "pandas",
        "polars",
        "progress",
        "spark",
        "stores",
    ]


def test_versions_agree() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", cf.__version__)
    assert distribution("chainframe").version == cf.__version__


def test_the_core_needs_no_other_distribution() -> None:
    required = distribution("chainframe").requires or []
    assert len(required) > 3
    assert [line for line in required if "extra ==" not in line] == []


def test_public_names_are_listed_once_and_exist() -> None:
    public = {name for name in dir(cf) if not name.startswith("_") and not inspect.ismodule(getattr(cf, name))}
    assert len(public) > 30
    assert sorted(cf.__all__) == sorted({*public, "__version__"})


def test_importing_loads_no_data_frame_library() -> None:
    heavy = "pandas", "polars", "pyarrow", "numpy", "tqdm", "asyncio", "matplotlib", "opentelemetry"
    script = f"import sys, chainframe, chainframe.testing; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_loads_few_modules_of_the_standard_library() -> None:
    script = "import sys; before = set(sys.modules); import chainframe; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.partition(".")[0] != "chainframe"]
    assert "chainframe.errors" in done.stdout
    assert set(loaded) <= {"__future__", "atexit"}


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="chainframe")
    assert command.value == "chainframe.cli:main"
