"""Contents of the wheel besides the code: notices and URLs, and no path of the build machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from absolute_links import with_urls
from build_wheel import normalize
from compare_builds import differences, leaks
from conftest import needed
from repository import ROOT, TESTS
from test_wheel import LEAST, passed

COMMIT_TIME = 1_700_000_000


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo lists the crates")
def test_notices_are_those_of_the_linked_crates() -> None:
    script = ROOT / "scripts" / "third_party_notices.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_notices_are_part_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "THIRD-PARTY-NOTICES.txt" in project["license-files"]
    notices = (ROOT / "THIRD-PARTY-NOTICES.txt").read_text(encoding="utf-8")
    for crate in ("arrow-array", "ring", "rusqlite", "tokio"):
        assert f"\n{crate} " in notices.partition("=" * 100)[0]
    assert "Permission is hereby granted, free of charge" in notices


def test_released_metadata_has_urls() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    made = tomllib.loads(with_urls(pyproject, "https://code.example/one/chainframe/blob/0a1b2c"))["project"]
    assert made["urls"]["Repository"] == "https://code.example/one/chainframe"
    assert made["urls"]["Changelog"] == "https://code.example/one/chainframe/blob/0a1b2c/CHANGELOG.md"
    assert {"Documentation", "Issues"} < made["urls"].keys()
    del made["urls"]
    assert made == tomllib.loads(pyproject)["project"]


def wheel_built(path: Path, machine: str, time: tuple[int, ...], number: int) -> Path:
    """A wheel as a machine leaves it: with its paths, the time and a random number."""
    crate = {
        "bom-ref": "registry+https://example.org/index#bytes@1.12.1",
        "name": "bytes",
        "version": "1.12.1",
        "description": "Buffers",
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": "0a"}],
    }
    tool = {**crate, "bom-ref": "registry+https://example.org/index#cc@1.2.3", "name": "cc", "scope": "excluded"}
    references = [crate["bom-ref"], tool["bom-ref"]]
    bill = {
        "serialNumber": f"urn:uuid:{number}",
        "components": [crate, tool],
        "dependencies": [{"ref": "chainframe", "dependsOn": references}, *({"ref": one} for one in references)],
        "metadata": {"timestamp": str(time), "component": {"bom-ref": f"path+file://{machine}#chainframe@0.1.0"}},
    }
    content = {
        "chainframe/__init__.py": b"",
        "chainframe-0.1.0.dist-info/sboms/chainframe.cyclonedx.json": json.dumps(bill).encode(),
        "chainframe-0.1.0.dist-info/RECORD": str(number).encode(),
    }
    with ZipFile(path, "w") as archive:
        for name in sorted(content, reverse=number % 2 == 0):
            archive.writestr(name, content[name])
    normalize(path, COMMIT_TIME)
    return path


def test_wheels_of_two_machines_are_the_same(tmp_path: Path) -> None:
    one = wheel_built(tmp_path / "one.whl", "/home/one/chainframe", (2026, 1, 1), 1)
    two = wheel_built(tmp_path / "two.whl", "/builds/two", (2027, 2, 2), 2)
    assert one.read_bytes() == two.read_bytes()
    with ZipFile(one) as archive:
        bill = archive.read("chainframe-0.1.0.dist-info/sboms/chainframe.cyclonedx.json").decode()
        record = archive.read("chainframe-0.1.0.dist-info/RECORD").decode().splitlines()
    assert "/home/one" not in bill
    assert "path+file:///chainframe#chainframe@0.1.0" in bill
    assert "/cc@" not in bill
    (crate,) = json.loads(bill)["components"]
    assert list(crate) == ["bom-ref", "name", "version", "scope", "hashes"]
    reference = "pkg:cargo/bytes@1.12.1"
    assert crate["bom-ref"] == reference
    expected = [{"ref": "chainframe", "dependsOn": [reference]}, {"ref": reference}]
    assert json.loads(bill)["dependencies"] == expected
    assert record[-1].startswith("chainframe/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0")
    assert "chainframe-0.1.0.dist-info/RECORD,," in record


def test_comparison_names_what_differs(tmp_path: Path) -> None:
    wheels = [tmp_path / "one.whl", tmp_path / "two.whl"]
    for wheel, content in zip(wheels, (b"built in /home/one", b"built in /builds"), strict=True):
        with ZipFile(wheel, "w") as archive:
            archive.writestr("same.py", b"")
            archive.writestr("core.so", content)
    assert differences(wheels[0], wheels[0]) == []
    assert differences(*wheels) == ["core.so differs"]
    assert leaks(wheels[0], [Path("/home/one"), Path("/root")]) == ["core.so contains /home/one"]
    assert leaks(wheels[1], [Path("/home/one")]) == []


def test_test_needs_the_libraries_of_the_test_modules_that_it_imports() -> None:
    # Otherwise the tests of a wheel without extras, and those of the lowest versions, cannot be collected.
    assert "pyarrow" in needed(TESTS / "exports" / "test_exports_contradictions.py")
    assert "sqlalchemy" in needed(TESTS / "kept_sinks.py")


def test_only_what_names_its_extra_is_skipped_in_a_test_of_the_wheel(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(f"""
        import importlib.util, os, sys

        os.environ["CHAINFRAME_TESTS"] = "bare"
        sys.path += {[str(TESTS), str(ROOT / "scripts")]!r}
        spec = importlib.util.spec_from_file_location("conftest_of_tests", {str(TESTS / "conftest.py")!r})
        sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[spec.name])
        from conftest_of_tests import pytest_runtest_call, pytest_runtest_setup
    """)
    pytester.makepyfile("""
        from chainframe import frames


        def test_extra():
            frames.library("absent_library", packages="'chainframe[absent]'")


        def test_needless_import():
            import absent_library


        def test_base():
            pass
    """)
    result = pytester.runpytest_subprocess("--junitxml=report.xml")
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    assert passed(pytester.path / "report.xml") == 1 < LEAST
