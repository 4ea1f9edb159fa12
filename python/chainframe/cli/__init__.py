"""The `chainframe` command: `serve` and `doctor`, and with the extra `cli` a subcommand for every call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from chainframe.cli import codes

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    >>> from chainframe.cli import main
    >>> main(["blocks", "--max-items", "10", "-o", "blocks.csv"])
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with codes.whole_writes():
            try:
                return _run(given)
            finally:
                # An error of buffered output is reported here, and not by the interpreter at exit.
                if sys.stdout is not None:
                    sys.stdout.flush()
    except KeyboardInterrupt:
        return codes.INTERRUPTED
    except BrokenPipeError:
        codes.give_up_output()
        return codes.BROKEN_PIPE
    except OSError as error:
        codes.give_up_output()
        print(f"chainframe: --output cannot be written: {error.strerror}", file=sys.stderr)
        return codes.FAILED


def _run(given: list[str]) -> int:
    # Imported here, so that an interrupt during the import is handled like any other.
    from chainframe.cli import core  # noqa: PLC0415

    if given[:1] == ["--version"] or (given and given[0] in core.COMMANDS):
        return core.main(given)
    try:
        from chainframe.cli import app  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("chainframe: click is not installed; run: pip install 'chainframe[cli]'", file=sys.stderr)
        return codes.USAGE
    return app.main(given)
