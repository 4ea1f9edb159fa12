"""Builds the wheel so that the same commit gives the same bytes, whatever the machine's paths and time.

>>> python scripts/build_wheel.py --release --out dist  # arguments of `maturin build`
>>> python scripts/build_wheel.py --normalize dist      # for wheels that were built elsewhere with `flags()`
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import zopfli

ROOT = Path(__file__).parents[1]


def flags() -> str:
    """Flags of rustc that keep the paths of this machine out of the binary."""
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    # The last match counts, so the target directory comes after the sources that it may be in.
    prefixes = {ROOT: ".", cargo_home: "cargo", target: "target"}
    return " ".join(f"--remap-path-prefix={path}={name}" for path, name in prefixes.items())


def epoch() -> int:
    """Time of the commit, unless SOURCE_DATE_EPOCH sets another."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # A source distribution has no commit; a zip file has no earlier time.
    return int(shown.stdout) if shown.returncode == 0 and shown.stdout.strip() else 315_532_800


def normalize(wheel: Path, seconds: int, *, is_release: bool = True) -> None:
    """Rewrites a wheel without the paths, times and random numbers of its build, a release as small as it gets."""
    with ZipFile(wheel) as archive:
        files = {info.filename: (info.external_attr, archive.read(info)) for info in archive.infolist()}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    for name, (attributes, content) in files.items():
        if name.endswith(".cyclonedx.json"):
            files[name] = (attributes, normalize_sbom(content, seconds))
    lines = []
    for name, (_, content) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},," if name == record else f"{name},sha256={digest},{len(content)}")
    files[record] = (files[record][0], "".join(f"{line}\n" for line in lines).encode())
    moment = time.gmtime(max(seconds, 315_532_800))[:6]
    made: ZipFile
    if is_release:
        # More than one iteration saves a few kilobytes of four megabytes.
        made = zopfli.ZipFile(wheel, "w", ZIP_DEFLATED, iterations=1)
    else:
        made = ZipFile(wheel, "w", ZIP_DEFLATED, compresslevel=9)
    with made:
        # The record comes last, as the specification of wheels recommends.
        for name in sorted(files, key=lambda name: (name == record, name)):
            attributes, content = files[name]
            info = ZipInfo(name, moment)
            info.compress_type, info.external_attr, info.create_system = ZIP_DEFLATED, attributes, 3
            made.writestr(info, content)


def normalize_sbom(content: bytes, seconds: int) -> bytes:
    text = re.sub(r"path\+file://[^#\"]*", "path+file:///chainframe", content.decode())
    # A crate of others is referred to by its package URL.
    text = re.sub(r"registry\+[^#\"]*#", "pkg:cargo/", text)
    bill = json.loads(text)
    bill.pop("serialNumber", None)
    # Crates that only build the library are not in the wheel.
    tools = {component["bom-ref"] for component in bill["components"] if component["scope"] == "excluded"}
    bill["components"] = [component for component in bill["components"] if component["bom-ref"] not in tools]
    bill["dependencies"] = [entry for entry in bill["dependencies"] if entry["ref"] not in tools]
    for entry in bill["dependencies"]:
        if "dependsOn" in entry:
            entry["dependsOn"] = [crate for crate in entry["dependsOn"] if crate not in tools]
    # The name, the version and the hash say which crate it is.
    for component in bill["components"]:
        for member in ("author", "description", "externalReferences"):
            component.pop(member, None)
    bill["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return json.dumps(bill, separators=(",", ":")).encode()


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--normalize"]:
        for wheel in sorted(Path(arguments[1]).glob("*.whl")):
            normalize(wheel, epoch())
        return 0
    out = Path(arguments[arguments.index("--out") + 1])
    before = set(out.glob("*.whl"))
    environment = dict(os.environ)
    command = [sys.executable, "-m", "maturin", "build", *arguments]
    profile = dict(pairwise(arguments)).get("--profile", "release")
    if profile == "dev":
        # Other flags, or a time for the C compiler, would compile again what the Rust tests have compiled.
        command.append("--strip")
    else:
        environment["SOURCE_DATE_EPOCH"] = str(epoch())
        environment["RUSTFLAGS"] = f"{os.environ.get('RUSTFLAGS', '')} {flags()}".strip()
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    for wheel in set(out.glob("*.whl")) - before if done.returncode == 0 else ():
        normalize(wheel, epoch(), is_release=profile == "release")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
