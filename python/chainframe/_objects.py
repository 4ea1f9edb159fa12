"""Locations of exports: local paths, and paths in the object stores that obstore reaches."""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast
from urllib.request import url2pathname

from chainframe._paths import is_utf8, local_path, reachable, shown_url, text_of
from chainframe.errors import ContextError, ExportError, InvalidParameterError
from chainframe.frames import load

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

SCHEMES = ("s3", "gs", "az")
PARSED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+([^/]*)/*(.*)", re.DOTALL)
"""Scheme, bucket or container, and key; `Path` has joined the slashes of a URL."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
CLIENT_OPTIONS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only",
    "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url",
    "randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent",
})  # fmt: skip
"""Options of the connections, which obstore takes apart from those of the store."""
SETTINGS = {
    "s3": "AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME",
}
"""Variables without which the address of a store cannot be made, or not always."""


@dataclass(frozen=True)
class ObjectPath:
    """A file or directory in an object store.

    Attributes
    ----------
    bucket : str
        URL of the bucket or container.
    key : str
        Path in it.

    Examples
    --------
    >>> export = client.blocks().to_parquet("s3://bucket/blocks")
    >>> duckdb.sql(f"from '{export.path}/*.parquet'")
    """

    bucket: str
    key: str
    objects: Any = field(repr=False, compare=False)
    """Store of obstore for the bucket. It has the credentials, so it is neither shown nor pickled."""

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}".rstrip("/")

    def __reduce__(self) -> tuple[Any, ...]:
        return location, (str(self), "path")

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, posixpath.join(self.key, name), self.objects)

    @property
    def name(self) -> str:
        return posixpath.basename(self.key)

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, posixpath.dirname(self.key), self.objects)

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        return Path(self.name).suffixes

    def with_name(self, name: str) -> ObjectPath:
        return self.parent / name


Location: TypeAlias = Path | ObjectPath


def location(given: object, parameter: str, storage_options: Mapping[str, Any] | None = None) -> Location:
    """Return where an export is; raises `InvalidParameterError` for a URL of another kind. Nothing is sent."""
    if isinstance(given, ObjectPath):
        return given
    text = text_of(given, parameter)
    shown = shown_url(text)
    parsed = PARSED.fullmatch(text)
    if shown is None or parsed is None or (scheme := parsed[1].lower()) not in {*SCHEMES, "file"}:
        if shown is not None:
            message = f"({shown}) must be a local path, or begin with s3://, gs://, az:// or file://"
            raise InvalidParameterError(message, parameter=parameter)
        _reject_options(storage_options, parameter)
        return reachable(local_path(given, parameter), parameter)
    bucket = parsed[2]
    key = parsed[3].strip("/")
    if "@" in bucket or "?" in text or "#" in text:
        message = f"({shown}) must have no user, query or fragment; pass credentials in storage_options"
        raise InvalidParameterError(message, parameter=parameter)
    if scheme == "file":
        _reject_options(storage_options, parameter)
        if text.lower().startswith("file://") and not text.lower().startswith("file:///"):
            raise InvalidParameterError(f"({shown}) must have no host: file:///directory", parameter=parameter)
        return reachable(local_path(url2pathname(f"/{bucket}/{key}"), parameter), parameter)
    parts = key.split("/")
    if not bucket or any(part in {"", ".", ".."} for part in parts) or CONTROL.search(text) or not is_utf8(text):
        message = f"({shown}) must name a bucket and a path in it, such as {scheme}://bucket/blocks"
        raise InvalidParameterError(message, parameter=parameter)
    return ObjectPath(f"{scheme}://{bucket}", key, _opened(scheme, bucket, storage_options or {}))


def is_url(given: object) -> bool:
    """True for a place in an object store, which may have options."""
    parsed = PARSED.fullmatch(os.fspath(given)) if isinstance(given, str | os.PathLike) else None
    return isinstance(given, ObjectPath) or (parsed is not None and parsed[1].lower() in SCHEMES)


def _reject_options(storage_options: Mapping[str, Any] | None, parameter: str) -> None:
    # With `since`, the options are those of the new export.
    if storage_options is not None and parameter != "since":
        raise InvalidParameterError("needs a URL that begins with s3://, gs:// or az://", parameter="storage_options")


def _opened(scheme: str, bucket: str, storage_options: object) -> Any:  # noqa: ANN401 - a store of obstore
    stores: Any = load("obstore.store", extra="stores")
    errors: Any = load("obstore.exceptions", extra="stores")
    if not isinstance(storage_options, Mapping):
        message = f"must be a dict; got {type(storage_options).__name__}"
        raise InvalidParameterError(message, parameter="storage_options")
    options = cast("Mapping[str, Any]", storage_options)
    given = {name: value for name, value in options.items() if name != "max_retries"}
    for name, value in given.items():
        if not isinstance(value, str | int | bool):
            message = f"must have text, numbers or flags; {name} is {type(value).__name__}"
            raise InvalidParameterError(message, parameter="storage_options")
    connections = {name: value for name, value in given.items() if name in CLIENT_OPTIONS}
    config = {name: _text(value) for name, value in given.items() if name not in CLIENT_OPTIONS}
    retries = {"max_retries": options["max_retries"]} if "max_retries" in options else None
    # Messages of obstore may contain the options, and so credentials.
    problem = f"({scheme}://{bucket}) cannot be opened with these options; see {SETTINGS[scheme]}, and those of obstore"
    try:
        return stores.from_url(
            f"{scheme}://{bucket}", config=config, client_options=connections or None, retry_config=retries
        )
    except errors.UnknownConfigurationKeyError as error:
        if unknown := re.search("'([a-z0-9_]{1,60})'", str(error)):
            problem = f"has no option {unknown[1]} for {scheme}://; see those of obstore"
    except (errors.BaseError, TypeError, ValueError, OSError):
        pass
    raise InvalidParameterError(problem, parameter="storage_options")


def _text(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_object(path: ObjectPath) -> bytes:
    """Return the content of an object, which is held in memory."""
    return bytes(attempt(lambda: path.objects.get(path.key), path).bytes())


def exists(path: Location) -> bool:
    if isinstance(path, Path):
        return path.exists()
    return bool(attempt(lambda: path.objects.head(path.key), path, missing=None))


CHUNK = 8 << 20
"""Size of the pieces in which a large object is put, of which two are under way, so that it is never in memory."""


@contextmanager
def object_writer(path: ObjectPath) -> Generator[BinaryIO]:
    """An object that is visible when the block has ended, and not at all if the block raises."""
    obstore: Any = load("obstore", extra="stores")
    file = attempt(lambda: obstore.open_writer(path.objects, path.key, buffer_size=CHUNK, max_concurrency=2), path)
    yield cast("BinaryIO", WriteOnly(lambda piece: attempt(lambda: file.write(piece), path)))
    attempt(file.close, path)


class WriteOnly(io.RawIOBase):
    """A file that is written from front to end: `take` gets the pieces."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take
        self._size = 0

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        piece = bytes(data)
        self._take(piece)
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        # What decides so between a file of Arrow and a stream: files are written from front to end as well.
        return True


_RAISE = object()


def attempt(
    call: Callable[[], Any],
    path: ObjectPath,
    *,
    missing: Any = _RAISE,  # noqa: ANN401 - as below
    refused: Any = _RAISE,  # noqa: ANN401 - as below
) -> Any:  # noqa: ANN401 - of obstore
    """Calls a store. Its errors are raised as `ExportError`; two of them may be results instead."""
    _check_process(path)
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - obstore raises errors of several classes
        if missing is not _RAISE and isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
            return missing
        if refused is not _RAISE and type(error).__name__ in REFUSED:
            return refused
        problem = store_error(error, path)
    # Outside of the handler, so that the message of obstore is in no traceback.
    raise problem


_process: list[int] = []
"""The process that has used obstore, and whose children cannot: its threads are not there."""


def _check_process(path: ObjectPath) -> None:
    if not _process:
        _process.append(os.getpid())
    if _process[0] != os.getpid():
        message = f"{path}: this process was forked after its parent had used an object store"
        raise ContextError(f'{message}; start it with "spawn" or "forkserver"')


REFUSED = ("AlreadyExistsError", "PreconditionError")
STATUS = re.compile(r"status code: ([0-9]{3})\b")
OF_PLAIN_HTTP = re.compile(r"Error performing [A-Z]+ http://\S+ in \S+ .*builder error")
CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
REASONS = {
    "PermissionDeniedError": "access was denied; check the permissions of the credentials",
    "UnauthenticatedError": "the credentials were not accepted; check the environment or storage_options",
    "FileNotFoundError": "there is no such object or bucket; check the URL",
    "NotSupportedError": "the store does not support conditional puts; write to a local directory, then copy it",
}
"""Errors that another attempt does not get past."""
PLAIN_HTTP = (
    "the endpoint begins with http://, which is refused by default; pass allow_http in storage_options, or set "
    "AWS_ALLOW_HTTP=true for s3://"
)
SILENT = "the store did not respond; check endpoint and region, or run it again later"
FAULTY = "the store failed; run it again later"
REJECTED = "the store rejected a request; check storage_options"


def store_error(error: BaseException, path: ObjectPath) -> ExportError:
    """Return an error of obstore as one that shows no address, header or credential."""
    text = str(error)
    status = STATUS.search(text)
    code = CODE.search(text)
    reason = REASONS.get(type(error).__name__)
    is_passing = reason is None
    if reason is None and OF_PLAIN_HTTP.search(text):
        reason = PLAIN_HTTP
        is_passing = False
    elif reason is None and status is None:
        reason = SILENT
    elif reason is None and status is not None:
        is_passing = status[1][0] == "5" or status[1] in {"408", "429"}
        reason = FAULTY if is_passing else REJECTED
    shown = " ".join(match[1] for match in (status, code) if match)
    message = f"{path}: {reason} ({shown})" if shown else f"{path}: {reason}"
    return ExportError(message, path=str(path), retryable=is_passing or None)
