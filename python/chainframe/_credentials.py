"""Credentials that a callable issues, for `Client(credentials=...)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from threading import Thread
from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Credentials:
    """Secrets of an account and the time up to which they are valid; what `Client(credentials=...)` returns.

    Neither `repr` nor an error shows the secrets, and they cannot be pickled.

    Parameters
    ----------
    api_key : str
        API key.
    secret_key, passphrase : str
        What requests are signed with; not needed by a deployment without signatures.
    expires_at : datetime, optional
        Time with a zone at which they expire. The callable is asked again a minute before.

    Examples
    --------
    >>> def issue() -> cf.Credentials:
    ...     found = vault.read("chainframe")
    ...     return cf.Credentials(found["key"], found["secret"], found["passphrase"], expires_at=found["until"])
    >>> client = cf.Client(credentials=issue)
    """

    api_key: str = field(repr=False)
    secret_key: str = field(default="", repr=False)
    passphrase: str = field(default="", repr=False)
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.expires_at is None:
            return
        if not isinstance(self.expires_at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"expires_at must be a datetime with a time zone; got {type(self.expires_at).__name__}"
            raise TypeError(message)
        if self.expires_at.tzinfo is None:
            message = f"expires_at ({self.expires_at}) must have a time zone; pass datetime.now(UTC) + timedelta(...)"
            raise ValueError(message)

    @property
    def _expires(self) -> float | None:
        """Seconds since 1970, for the core."""
        return None if self.expires_at is None else self.expires_at.timestamp()

    def __reduce__(self) -> NoReturn:
        message = "cannot pickle credentials: pass the callable that issues them, which is pickled by its name"
        raise TypeError(message)


class _Answer(Protocol):
    """Receives what a callable issues, for the core."""

    def begin(self) -> None: ...
    def issued(self, credentials: object) -> None: ...
    def failed(self, name: str) -> None: ...


def start(issue: Callable[[], object], answer: _Answer) -> None:
    """Call `issue` in a thread of Python's own, for whose end an exit of the interpreter does not wait."""
    Thread(target=_issue, args=(issue, answer), name="chainframe-credentials", daemon=True).start()


def _issue(issue: Callable[[], object], answer: _Answer) -> None:
    answer.begin()
    try:
        issued = issue()
    except BaseException as error:  # noqa: BLE001 - the error of the request says which one
        answer.failed(type(error).__name__)
    else:
        answer.issued(issued)
