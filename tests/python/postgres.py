"""A PostgreSQL of one's own, on a socket in a temporary folder, for as long as a test runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

PLACES = os.pathsep.join([os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
INITDB = shutil.which("initdb", path=PLACES)


@contextmanager
def running() -> Generator[str]:
    """Its address."""
    assert INITDB is not None
    programs = Path(INITDB).resolve().parent
    # A socket's path may have a hundred characters only, which pytest's own folders exceed.
    with tempfile.TemporaryDirectory(prefix="chainframe-", ignore_cleanup_errors=True) as folder:
        how: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            shutil.chown(folder, "postgres")
            how["user"] = "postgres"
        data = f"{folder}/data"
        subprocess.run([programs / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-N"], check=True, **how)
        command = [str(programs / "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-F"]
        with subprocess.Popen(command, **how) as process:
            try:
                ready = [str(programs / "pg_isready"), "-q", "-h", folder]
                while subprocess.run(ready, check=False).returncode:
                    assert process.poll() is None
                    time.sleep(0.05)
                yield f"postgresql:///postgres?host={folder}&user=tester"
            finally:
                process.terminate()
