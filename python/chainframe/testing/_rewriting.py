"""Cassettes that several tests share, recorded again: their files are replaced when the run has ended."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from chainframe._native import _merge_cassette

if TYPE_CHECKING:
    from chainframe.testing import Cassette


class Rewritten(NamedTuple):
    """The recordings of a cassette by the tests of the run so far."""

    file: Path
    cassette: Cassette
    module: Path | None
    """The only module that uses it, if there is one."""


REWRITTEN = pytest.StashKey[dict[Path, Rewritten]]()
INCOMPLETE = pytest.StashKey[bool]()
"""True if a test that uses cassettes was not run to its end, or may not have been selected."""


def earlier(config: pytest.Config, path: Path) -> Path | None:
    """Return the file with what the run has recorded of a cassette, if there is one."""
    known = config.stash[REWRITTEN].get(path)
    return known and known.file


def keep(config: pytest.Config, path: Path, staging: Path, cassette: Cassette, module: Path | None) -> None:
    """Keep what a test that passed has recorded, together with what was recorded before."""
    known = config.stash[REWRITTEN].get(path)
    file = known.file if known else path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    staging.replace(file)
    config.stash[REWRITTEN][path] = Rewritten(file, cassette, module)


def finish(session: pytest.Session) -> dict[Path, list[str]]:
    """Replace the cassettes. Return the requests that no test of the run has sent, and whose recordings were kept."""
    config = session.config
    kept = dict[Path, list[str]]()
    has_passed = session.exitstatus == pytest.ExitCode.OK and not config.stash[INCOMPLETE]
    # A worker of pytest-xdist knows its own tests only.
    is_complete = has_passed and not hasattr(config, "workerinput")
    for path, (file, cassette, module) in config.stash[REWRITTEN].items():
        is_rewritten = is_complete and _is_covered(config, path, module)
        left = _merge_cassette(cassette, file, "rewrite" if is_rewritten else "all")
        file.unlink()
        if left and not is_rewritten:
            kept[path] = left
    config.stash[REWRITTEN].clear()
    return kept


def _is_covered(config: pytest.Config, path: Path, module: Path | None) -> bool:
    """True if the arguments of the run name all tests that could use the cassette."""
    if config.option.ignore or config.option.ignore_glob:
        return False
    if config.args_source == config.ArgsSource.TESTPATHS:
        return True
    named = [config.invocation_params.dir / argument for argument in config.args]
    return any(each == module or (each.is_dir() and path.is_relative_to(each.resolve())) for each in named)
