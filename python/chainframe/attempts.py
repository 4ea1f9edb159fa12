"""Reports of attempts, for `Client(on_attempt=...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Attempt"]


class Attempt(NamedTuple):
    """One attempt of a request, after its end; the argument of `Client(on_attempt=...)`.

    It has no values of parameters and no secrets, so that it can be logged.

    Attributes
    ----------
    endpoint : str
        Name of the method of `Client`.
    url : str
        URL without its query.
    number : int
        1 for the first attempt of a request, 2 for its first retry.
    started : datetime
        Time at which it began, in UTC.
    waited : float
        Seconds in the queues of the client and of the rate limiter before it.
    elapsed : float
        Seconds from its beginning to the end of the response.
    status : int or None
        HTTP status; None without a response.
    code : str or None
        Code of the response body, "0" for success; None if there is none.
    error : str or None
        Phase that failed if there was no response: "connect", "tls", "read", "body" or "deadline"; "cassette" if it
        could not be recorded; "cancelled" if nothing waited for it any more.
    bytes : int
        Size of the response body, decompressed.
    replayed : bool
        True if it was replayed from a cassette.
    rate : float or None
        Requests per second that the rate limiter allows after it; None without a limit.

    Examples
    --------
    >>> def show(attempt: Attempt) -> None:
    ...     print(attempt.endpoint, attempt.number, attempt.status or attempt.error)
    >>> client = cf.Client(on_attempt=show)
    """

    endpoint: str
    url: str
    number: int
    started: datetime
    waited: float
    elapsed: float
    status: int | None
    code: str | None
    error: str | None
    bytes: int
    replayed: bool
    rate: float | None
