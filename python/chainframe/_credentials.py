"""Credentials that a callable issues, for `Client(credentials=...)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from datetime import datetime


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
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            message = f"expires_at ({self.expires_at}) must have a time zone; pass datetime.now(UTC) + timedelta(...)"
            raise ValueError(message)

    @property
    def _expires(self) -> float | None:
        """Seconds since 1970, for the core."""
        return None if self.expires_at is None else self.expires_at.timestamp()

    def __reduce__(self) -> NoReturn:
        message = "cannot pickle credentials: pass the callable that issues them, which is pickled by its name"
        raise TypeError(message)
