"""Missing and malformed responses."""

from __future__ import annotations

from chainframe.errors.base import ChainframeError


class TransportError(ChainframeError, ConnectionError):
    """No response: the network failed in the phase "connect", "tls", "read" or "body".

    In "connect" and "tls" nothing reached the API: check base URL, proxy and certificates.

    Attributes
    ----------
    endpoint : str
        Name of the call.
    attempts : int
        Number of attempts of the request.
    cursor : str or None
        Position after the last record returned, for `Client.resume`.
    phase : str
        Phase of the request that failed.

    Examples
    --------
    >>> except cf.TransportError as error:
    ...     print(f"{error.endpoint} failed to {error.phase} after {error.attempts} attempts")
    """

    retryable = True

    def __init__(
        self,
        message: str = "",
        *,
        endpoint: str | None = None,
        attempts: int = 0,
        cursor: str | None = None,
        phase: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.endpoint = endpoint
        self.attempts = attempts
        self.cursor = cursor
        self.phase = phase


class RequestTimeoutError(TransportError, TimeoutError):
    """One attempt exceeded `timeout` in its phase, or all attempts exceeded `deadline` (phase "deadline").

    Raise the limit that was exceeded, or try again later.

    Examples
    --------
    >>> except cf.RequestTimeoutError as error:
    ...     print("deadline exceeded" if error.phase == "deadline" else f"timeout in {error.phase}")
    """


class ResponseFormatError(ChainframeError):
    """A response that does not conform to the API, such as letters in a number.

    The call fails as a whole; no record is guessed.

    Attributes
    ----------
    endpoint : str
        Name of the call.
    path : str
        Location in the JSON, such as `data[0].transactionList[3].height`.
    excerpt : str
        Start of the value there.

    Examples
    --------
    >>> except cf.ResponseFormatError as error:
    ...     print(error.endpoint, error.path, error.excerpt)
    """

    cursor: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        endpoint: str | None = None,
        path: str | None = None,
        excerpt: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.endpoint = endpoint
        self.path = path
        self.excerpt = excerpt
