"""Paths that callers give, and the checks before anything is read or written under them."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from chainframe.errors import CassetteError, ConfigError, ExportError, InvalidParameterError
from chainframe.errors.base import in_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from chainframe._objects import ObjectPath

# Parameters of paths that are options of the command; others are its arguments.
OPTIONS = {"cursor_file", "output", "record", "replay", "since", "target"}
URL = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]+:)*[A-Za-z][A-Za-z0-9+.-]+:/")
"""Scheme of two characters or more, so that the drive of a Windows path is none; `Path` has joined the slashes."""
CONNECTION = re.compile(
    r"^(?!\.{0,2}[/\\])(?:\s*(?:md|motherduck|postgres|postgresql):"
    r"|\s*(?:host|hostaddr|dbname|service)\s*=(?:[^/\\]*$|.*\s\w+\s*=)"
    r"|.*(?:password|passwd|pwd|(?:account|access)_?key|accesssignature)\s*="
    r"|(?![a-z]:[/\\])[^/\\]+:[^@]*@[^/\\])",
    re.IGNORECASE | re.DOTALL,
)
"""Databases and stores that are not named by a URL. Their passwords must not become names of files."""
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")
"""A suffix that names a file format; the end of "2026.01.05" does not."""
FORMS = {
    ".parquet": "parquet",
    ".csv": "csv",
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), "jsonl"),
    ".arrow": "arrow",
}
COMPRESSED = ".gz"
TEXT_FORMATS = ("csv", "jsonl")


def text_of(given: object, parameter: str) -> str:
    """Return a path as text; raises `InvalidParameterError` if it is not one."""
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidParameterError(f"must be a str or path; got {type(given).__name__}", parameter=parameter)
    # Without the `__str__` of a subclass: that of an Enum is the name of the member.
    return str.__str__(text)


def shown_url(text: str) -> str | None:
    """Return the scheme of a URL, since the rest may contain a password; None for a local path."""
    scheme = URL.match(text)
    return f"{scheme[0].strip().rstrip('/')}//..." if scheme else None


def local_path(given: object, parameter: str) -> Path:
    """Return the path of a local file or directory, with `~` expanded.

    Raises `InvalidParameterError` for a URL and for a connection string.
    """
    text = text_of(given, parameter)
    if shown := shown_url(text):
        message = f"({shown}) must be a local path; use one, and copy its content from or to the URL"
        raise InvalidParameterError(message, parameter=parameter)
    if CONNECTION.search(text):
        message = "must not be a connection string; use a local path, or ./NAME for a name that looks like one"
        raise InvalidParameterError(message, parameter=parameter)
    if not text or "\0" in text or not _is_encodable(text):
        raise InvalidParameterError(f"({text!r}) must name a file or directory", parameter=parameter)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        message = f"({text}) has no home directory; for a name that begins with ~, write ./{text}"
        raise InvalidParameterError(message, parameter=parameter) from None


def setting_path(given: object, setting: str) -> Path:
    """Return the local path of a setting; raises `ConfigError` for anything else."""
    try:
        return local_path(given, setting)
    except InvalidParameterError as error:
        raise ConfigError(str(error)) from None


def _is_encodable(text: str) -> bool:
    """True unless a path has a surrogate that stands for no byte, which the system takes in no name."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def reachable(path: Path, parameter: str) -> Path:
    """Return a path of an export or a table.

    Raises `ExportError` for a path below a file, or one that the system refuses to look up: too long, a loop of links,
    no permission.
    """
    try:
        path.absolute()
    except FileNotFoundError:
        raise _path_error(path, parameter, "the working directory was removed; name an absolute path") from None
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        _refuse_file(path.parents, path, parameter)
    except OSError as error:
        raise _path_error(path, parameter, error.strerror or str(error), error.errno) from None
    return path


def cassette_path(given: object, parameter: str) -> Path:
    """Return the path of a cassette; raises `CassetteError` for one at which no file can be."""
    try:
        return reachable(local_path(given, parameter), parameter)
    except ExportError as error:
        refused = CassetteError(str(error), path=error.path, errno=error.errno)
        refused._set_shell_text(in_shell(error))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        raise refused from None


def is_there(path: Path) -> bool:
    """Return True if something is at a path. Nothing is at one that is too long.

    Raises `ConfigError` for a path that the system refuses to look up, for example without permission.
    """
    try:
        return path.exists()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise ConfigError(
            f"{path} cannot be looked up: {error.strerror}; correct the path or its permissions"
        ) from None


def suffix_of(path: Path | ObjectPath) -> str:
    """Return the suffix that names the format, with that of a compression, in lower case: ".csv", ".csv.gz", or ""."""
    *before, last = ["", *path.suffixes]
    if not SUFFIX.fullmatch(last):
        return ""
    inner = before[-1] if before and before[-1].lower() in FORMS else ""
    return f"{inner}{last}".lower()


def form_of(suffix: str) -> tuple[str, bool] | None:
    """Return the format that a suffix names, and True if it is compressed; None if no format has that suffix."""
    inner = suffix.removesuffix(COMPRESSED)
    form = FORMS.get(inner)
    is_compressed = inner != suffix
    if form is None or (is_compressed and form not in TEXT_FORMATS):
        return None
    return form, is_compressed


def for_arrow(path: Path) -> str:
    """Return the path as pyarrow takes it for one: a relative path such as `a:b/c` would be a URL."""
    text = str(path.absolute())
    if not is_utf8(text):
        message = f"{path} is not UTF-8, and pyarrow reads no such path; rename its directory"
        raise ExportError(message, path=str(path))
    return text


def is_utf8(text: str) -> bool:
    """True unless a path or a variable has bytes that Python shows as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_link(path: Path) -> None:
    """Raises `ExportError` for a symbolic link: no export makes one, and what it refers to belongs to someone else."""
    try:
        is_link = path.is_symlink()
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}", path=str(path), errno=error.errno) from None
    if is_link:
        raise ExportError(f"{path} is a symbolic link; remove it, or name what it refers to", path=str(path))


def check_directory(path: Path | ObjectPath, parameter: str) -> None:
    """Raises `ExportError` for a path of a file: no export can be there."""
    if isinstance(path, Path):
        _refuse_file([path], path, parameter)


def check_parent(path: Path, parameter: str) -> None:
    """Raises `ExportError` unless the directory of a file exists."""
    if not path.parent.is_dir():
        raise _path_error(path, parameter, f"{path.parent} is not a directory; create it first")


def _refuse_file(directories: Iterable[Path], path: Path, parameter: str) -> None:
    for each in directories:
        if each.exists() and not each.is_dir():
            raise _path_error(path, parameter, f"{each} is not a directory; name another path")


def _path_error(path: Path, parameter: str, problem: str, errno: int | None = None) -> ExportError:
    message = f"({path}): {problem}"
    error = ExportError(f"{parameter} {message}", path=str(path), errno=errno)
    if parameter in OPTIONS:
        error._set_shell_text(f"--{parameter.replace('_', '-')} {message}")  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return error


def check_file(path: Path) -> None:
    """Raises `ExportError` unless a file can be made or replaced there: a pipe or a device would be lost."""
    refuse_link(path)
    if path.exists() and not path.is_file():
        raise ExportError(f"{path} is not a regular file; name another", path=str(path))


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; a link is not followed, and a pipe not waited for."""
    refuse_link(path)
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    descriptor = os.open(path, os.O_RDONLY | sum(flags))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ExportError(f"{path} is not a regular file; remove it", path=str(path))
        return file.read()


def mode_of(path: Path) -> int | None:
    """Return the permissions of a regular file, which one that replaces it keeps; None if there is none."""
    try:
        found = path.lstat().st_mode
    except OSError:
        return None
    return stat.S_IMODE(found) if stat.S_ISREG(found) else None
