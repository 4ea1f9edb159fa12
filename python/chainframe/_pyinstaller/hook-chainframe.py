"""Modules that the extension module imports by name, where no analysis of Python sources sees them."""

# ruff: noqa: N999 - PyInstaller's name
from PyInstaller.utils.hooks import collect_submodules  # type: ignore[import-untyped]  # PyInstaller has no types

# Integrations and the plugin of pytest need libraries of their own: an application that uses them imports them.
OTHERS = ("chainframe.integrations.", "chainframe.testing.plugin")
hiddenimports = collect_submodules("chainframe", lambda name: not name.startswith(OTHERS))
