"""Copies the list reader into a package of its own, for cargo-mutants.

The reader depends on little of the crate: alone, a mutant is built and tested in seconds instead of a minute.

    python scripts/mutation_package.py target/mutants
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ["query/snapshot", "query/audit", "query/hashed.rs", "interface/result_window.rs", "message", "planted.rs"]
DEPENDENCIES = ["fastrand", "serde", "serde_json"]

# The parts of other modules that the reader and the audit use.
LIB = """\
#![allow(dead_code, unused_imports, clippy::all)]
pub mod message;
pub mod planted;

pub mod client {
    #[derive(Clone, Debug)]
    pub enum Error {
        Drift { endpoint: &'static str, problem: crate::message::Message },
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let Self::Drift { problem, .. } = self;
            problem.fmt(formatter)
        }
    }
}

pub mod interface {
    mod result_window;
    pub use result_window::certain_window;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Order {
        NewestFirst,
        Consecutive,
        Ranked,
        AsRequested,
    }
}

pub mod query {
    pub mod audit;
    pub mod hashed;
    pub mod snapshot;
}
"""

# The arguments of a query are compared with records, which the package does not have.
LEFT_OUT = ["mod arguments;\n", "pub use arguments::Arguments;\n"]


def manifest() -> str:
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())
    dependencies = []
    for name in DEPENDENCIES:
        declared = package["dependencies"][name]
        version = declared if isinstance(declared, str) else declared["version"]
        features = [] if isinstance(declared, str) else declared.get("features", [])
        dependencies.append(f'{name} = {{ version = "{version}", features = {features} }}')
    edition = package["package"]["edition"]
    return "\n".join(
        [
            f'[package]\nname = "list-reader"\nversion = "0.0.0"\nedition = "{edition}"\n',
            '[features]\ndefault = ["planted-bugs"]\nplanted-bugs = []\n',
            "[dependencies]",
            *dependencies,
            "\n[profile.test.package.list-reader]\nopt-level = 1\n\n[profile.test]\ndebug = 0\n\n[workspace]\n",
        ]
    )


def main() -> None:
    target = Path(sys.argv[1])
    (target / "src").mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        copy = target / "src" / source
        if (ROOT / "src" / source).is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(ROOT / "src" / source, copy)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / "src" / source, copy)
    audit = target / "src/query/audit/mod.rs"
    text = audit.read_text()
    for line in LEFT_OUT:
        if line not in text:
            raise SystemExit(f"{audit} has no line {line!r}")
        text = text.replace(line, "")
    audit.write_text(text)
    (target / "src/query/audit/arguments.rs").unlink()
    (target / "src" / "lib.rs").write_text(LIB)
    (target / "Cargo.toml").write_text(manifest())
    (target / ".cargo").mkdir(exist_ok=True)
    for file in ("Cargo.lock", ".cargo/mutants.toml"):
        shutil.copyfile(ROOT / file, target / file)


if __name__ == "__main__":
    main()
