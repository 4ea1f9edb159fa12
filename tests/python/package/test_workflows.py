"""Workflows: they build and test every platform and publish nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from repository import ROOT

FOLDER = ROOT / ".github" / "workflows"


def workflow(name: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    return made


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
def test_jobs_need_existing_jobs(path: Path) -> None:
    made = workflow(path.stem)
    assert made["permissions"] == {"contents": "read"}
    assert made["jobs"]
    for job in made["jobs"].values():
        needs = job.get("needs", [])
        assert ({needs} if isinstance(needs, str) else set(needs)) <= made["jobs"].keys()
        used = [job["uses"]] if "uses" in job else [step["uses"] for step in job["steps"] if "uses" in step]
        assert [name for name in used if name.startswith("./") and not (ROOT / name).is_file()] == []


def test_actions_are_pinned_by_commit() -> None:
    # Actions by commit, no token left lying about, nothing of an event's text in a command.
    command = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", "--color=never"]
    done = subprocess.run(
        [*command, "--min-severity=medium", FOLDER.parent], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_platform_tests_its_wheel() -> None:
    job = workflow("wheels")["jobs"]["wheel"]
    entries = job["strategy"]["matrix"]["include"]
    names = {entry["name"] for entry in entries}
    systems = ("linux-glibc", "linux-musl", "macos", "windows")
    threaded = ("linux-glibc-x86_64", "linux-glibc-aarch64", "macos-aarch64", "windows-x86_64")
    assert names == {f"{system}-{kind}" for system in systems for kind in ("x86_64", "aarch64")} | {
        f"free-threaded-{name}" for name in threaded
    }
    assert all((entry.get("python") == "3.14t") == entry["name"].startswith("free") for entry in entries)
    tests = [step["if"] for step in job["steps"] if "test_wheel.py" in step.get("run", "")]
    assert tests == ["${{ !matrix.image }}", "${{ matrix.image }}"]


def test_tools_of_a_release_are_pinned() -> None:
    jobs = workflow("wheels")["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    versions = {step["with"]["maturin-version"] for step in steps if "maturin-action" in step.get("uses", "")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    maturin, compressor = project["dependency-groups"]["build"]
    assert versions == {maturin.replace("maturin==", "v")}
    (normalization,) = (step["run"] for step in steps if "--normalize" in step.get("run", ""))
    assert f"pip install {compressor}\n" in normalization
    images = {entry["image"] for entry in jobs["wheel"]["strategy"]["matrix"]["include"] if "image" in entry}
    assert all(re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", image) for image in images)
    # What is released was uploaded before the tests could change it.
    for job in jobs.values():
        runs = [step.get("run", step.get("uses", "")) for step in job["steps"]]
        (uploaded,) = (index for index, run in enumerate(runs) if "upload-artifact" in run)
        assert all(uploaded < index for index, run in enumerate(runs) if "test_wheel.py" in run)
    assert all("dist:ro" in step["run"] for step in steps if "docker run" in step.get("run", ""))


def test_packages_of_other_systems_have_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    maturin, _ = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["build"]
    recipe = yaml.safe_load((ROOT / "scripts" / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == project["version"]
    assert maturin.replace("==", " ==") in recipe["requirements"]["host"]
    container = (ROOT / "scripts" / "packaging" / "Dockerfile").read_text(encoding="utf-8")
    assert f"FROM rust:{project['rust-version']}-" in container
    assert f"'{maturin}'" in container


def test_links_of_the_readme_are_absolute_in_what_is_built() -> None:
    for job in workflow("wheels")["jobs"].values():
        runs = [step.get("run", step.get("uses", "")) for step in job["steps"]]
        (links,) = (index for index, run in enumerate(runs) if "absolute_links.py" in run)
        (build,) = (index for index, run in enumerate(runs) if "maturin-action" in run)
        assert links < build


def test_targets_of_the_matrix_and_the_fuzzer_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {entry["target"] for entry in workflow("check")["jobs"]["versions"]["strategy"]["matrix"]["include"]}
    assert targets == {"bare", "lowest", "targets"}
    assert any("make fuzz" in step.get("run", "") for step in workflow("audit")["jobs"]["fuzz"]["steps"])
    assert all(f"\n{target}:" in makefile for target in [*targets, "fuzz"])
    (fuzzed,) = (line.partition("?= ")[2].split() for line in makefile.splitlines() if line.startswith("TARGETS ?="))
    folder = ROOT / "fuzz"
    assert {path.stem for path in (folder / "targets").iterdir()} == set(fuzzed)
    assert {path.name for path in (folder / "corpus").iterdir()} == set(fuzzed)


def test_filters_of_the_makefile_select_rust_tests() -> None:
    # `cargo test` succeeds if its filter selects none.
    filters = re.findall(r"(?:--lib|--) (\w[\w:]*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert {*filters} == {"simulation::no_seed", "enumeration"}
    for module, _, name in (each.partition("::") for each in filters):
        files = [path for folder in ("src", "tests/rust") for path in (ROOT / folder).rglob(f"{module}.rs")]
        assert any(f"#[test]\nfn {name}" in path.read_text(encoding="utf-8") for path in files)


def test_help_lists_the_targets_of_contributors() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = (line.split()[1:] for line in makefile.splitlines() if line.startswith(".PHONY:"))
    parts = {
        "help",
        "demo-packages",
        "mutation-package",
        "check-python",
        "types",
        "pytest",
        "build",
        "install",
        "tools",
        "postgres",
        "browser",
    }
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert sorted(line.split()[0] for line in shown.splitlines()) == sorted({*phony} - parts)


def test_a_release_is_a_tested_version() -> None:
    jobs = workflow("release")["jobs"]
    assert (jobs["publish"]["needs"], jobs["wheels"]["needs"]) == ("wheels", "version")
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    (check,) = (step["run"] for step in jobs["version"]["steps"] if "run" in step)
    for file in ("Cargo.toml", "CHANGELOG.md"):
        assert file in check
        version = '"0.' if file == "Cargo.toml" else "## 0."
        assert version in (ROOT / file).read_text(encoding="utf-8")
