"""Hook of PyInstaller, found by the entry point `pyinstaller40`: frozen applications contain the whole package."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """Return the directories that hold hooks."""
    return [str(Path(__file__).parent)]
