"""Modules that the extension module imports by name, where no analysis of Python sources sees them."""

# ruff: noqa: N999, INP001 - PyInstaller's name
from PyInstaller.utils.hooks import collect_submodules, copy_metadata

# The testing kit and integrations need libraries that an application may not have; it names those that it uses.
hiddenimports = collect_submodules("chainframe", lambda name: not name.startswith("chainframe.integrations."))
datas = copy_metadata("chainframe")
