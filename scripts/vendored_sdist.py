"""Makes a source distribution that has the sources of all crates, so that it builds without a network.

>>> python scripts/vendored_sdist.py dist
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
VENDORED = """
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "vendor"
"""


def add_crates(folder: Path) -> None:
    """Adds the crates that Cargo.lock names, and the setting with which Cargo finds them."""
    command = ["cargo", "vendor", "--locked", "--quiet", "vendor"]
    subprocess.run(command, cwd=folder, check=True)
    with (folder / ".cargo" / "config.toml").open("a", encoding="utf-8") as config:
        config.write(VENDORED)


def main(out: Path) -> None:
    with TemporaryDirectory() as temporary:
        subprocess.run([sys.executable, "-m", "maturin", "sdist", "--out", temporary], cwd=ROOT, check=True)
        (plain,) = Path(temporary).glob("*.tar.gz")
        with tarfile.open(plain) as archive:
            archive.extractall(temporary, filter="data")
        name = plain.name.removesuffix(".tar.gz")
        add_crates(Path(temporary) / name)
        out.mkdir(exist_ok=True)
        with tarfile.open(out / f"{name}-vendored.tar.gz", "w:gz") as archive:
            archive.add(Path(temporary) / name, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
