"""Error classes of chainframe, and its one warning. The native core raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chainframe import Hint, Records, Report

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "CassetteError",
    "CassetteMissError",
    "ChainframeError",
    "ClockSkewError",
    "ConfigError",
    "ContextError",
    "ExportError",
    "IncompleteResultError",
    "IncompleteResultWarning",
    "InvalidParameterError",
    "NotFoundError",
    "NumericOverflowError",
    "PaginationDriftError",
    "PaginationError",
    "PermissionDeniedError",
    "RateLimitError",
    "RequestTimeoutError",
    "ResponseFormatError",
    "ResultWindowError",
    "ServiceError",
    "ServiceUnavailableError",
    "TransportError",
]


class ChainframeError(Exception):
    """Base class of all errors of chainframe.

    Errors of the API, of the network and of pages carry a `cursor`: `client.resume(error.cursor)` continues after the
    last record returned. The client has already retried transient errors. Errors are picklable, their messages one
    line, and none contains a key, a signature or a passphrase.

    Attributes
    ----------
    retryable : bool
        True if the same call may succeed later.
    hints : tuple of Hint
        Alternative ways to solve the problem, in the message as well.

    Examples
    --------
    >>> try:
    ...     tokens = client.tokens().collect()
    ... except cf.ChainframeError as error:
    ...     print(error, error.retryable)
    """

    retryable: bool = False
    hints: tuple[Hint, ...] = ()
    _shell_text: str | None = None

    def __init__(self, message: str = "", *, hints: Sequence[Hint] = (), retryable: bool | None = None) -> None:
        text = _one_line(message)
        super().__init__(text + _advice(hints))
        if hints:
            self.hints = tuple(hints)
            self._shell_text = text + _advice(hints, in_shell=True)
        if retryable is not None:
            self.retryable = retryable


def in_shell(error: ChainframeError) -> str:
    """Return the message with options of the command line in place of parameters."""
    return error._shell_text or str(error)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _one_line(message: str) -> str:
    """Join the lines of a message of the API: a log line must not hold line breaks."""
    return " ".join(message.splitlines())


def _advice(hints: Sequence[Hint], *, in_shell: bool = False) -> str:
    """Return the end of a message with these hints."""
    texts = [hint._in_shell() if in_shell else str(hint) for hint in hints]  # noqa: SLF001 - of this package
    return f"; {', or '.join(texts)}" if texts else ""


class ConfigError(ChainframeError, ValueError):
    """A setting is missing or malformed: an argument of `Client`, or its `CHAINFRAME_*` variable.

    The message names both. Nothing was sent.

    Examples
    --------
    >>> cf.Client(base_url="http://data.example.com")
    Traceback (most recent call last):
    chainframe.errors.ConfigError: base_url (CHAINFRAME_BASE_URL) must use https: ...
    """


class ContextError(ChainframeError, RuntimeError):
    """A call that is not possible in its context, whatever its arguments.

    The context is a logging handler, an interpreter that is shutting down, a process that cannot start more threads, or
    a forked child that uses the iterator of another thread.

    Examples
    --------
    >>> except cf.ContextError as error:
    ...     print(error)
    """


class InvalidParameterError(ChainframeError, ValueError):
    """An argument that the API would reject. Nothing was sent.

    The message names the parameter, its value and the constraint.

    Examples
    --------
    >>> client.tokens(page_size=51)
    Traceback (most recent call last):
    chainframe.errors.InvalidParameterError: page_size (51) must be between 1 and 50
    """

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        hints: Sequence[Hint] = (),
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message if parameter is None else f"{parameter} {message}", hints=hints, retryable=retryable)
        if parameter is not None:
            self._shell_text = f"--{parameter.replace('_', '-')} {_one_line(message)}{_advice(hints, in_shell=True)}"


class ServiceError(ChainframeError):
    """The API returned an error response.

    Attributes
    ----------
    endpoint : str
        Name of the call, such as "token_transfers".
    status : int
        HTTP status.
    code, msg : str or None
        Code and message of the API. Messages vary; branch on `code` and `status`.
    attempts : int
        Number of attempts of the request.
    cursor : str or None
        Position after the last record returned, for `Client.resume`.

    Examples
    --------
    >>> except cf.ServiceError as error:
    ...     log.warning("%s returned %s/%s", error.endpoint, error.status, error.code)
    """

    def __init__(
        self,
        message: str = "",
        *,
        endpoint: str | None = None,
        status: int | None = None,
        code: str | None = None,
        msg: str | None = None,
        attempts: int = 0,
        cursor: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.endpoint = endpoint
        self.status = status
        self.code = code
        self.msg = msg
        self.attempts = attempts
        self.cursor = cursor


class BadRequestError(ServiceError):
    """The API rejected a parameter that the client accepts.

    `msg` has the reason. The same call fails again; correct its arguments.

    Examples
    --------
    >>> except cf.BadRequestError as error:
    ...     print(error.code, error.msg)
    """


class NotFoundError(ServiceError):
    """The API has no such token, block, data or endpoint.

    Raised for error codes only; an empty list is a result.

    Examples
    --------
    >>> except cf.NotFoundError:
    ...     transfers = None
    """


class PermissionDeniedError(ServiceError):
    """The account may not access this: because of its plan, region or state, or because the API is frozen.

    Retrying does not help.

    Examples
    --------
    >>> except cf.PermissionDeniedError as error:
    ...     sys.exit(f"Ask the provider about code {error.code}: {error.msg}")
    """


class AuthenticationError(ServiceError):
    """The key, the passphrase or the signature is missing or wrong.

    Check the three secrets and the `Deployment`, whose names are part of the signed string.

    Examples
    --------
    >>> except cf.AuthenticationError:
    ...     sys.exit("Check CHAINFRAME_API_KEY, CHAINFRAME_SECRET_KEY and CHAINFRAME_PASSPHRASE.")
    """


class ClockSkewError(AuthenticationError):
    """The API rejects the timestamp as expired, even after the client corrected its clock skew once.

    Set the system clock; signatures are valid for about 30 seconds.

    Examples
    --------
    >>> except cf.ClockSkewError:
    ...     sys.exit("The system clock is wrong.")
    """


class RateLimitError(ServiceError):
    """Too many requests, and retries within the deadline failed.

    Wait, or pass `Client` a lower `rate_limit`.

    Attributes
    ----------
    retry_after : float or None
        Seconds that the API asks to wait.

    Examples
    --------
    >>> except cf.RateLimitError as error:
    ...     time.sleep(error.retry_after or 60)
    """

    retryable = True

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: float | None = None,
        endpoint: str | None = None,
        status: int | None = None,
        code: str | None = None,
        msg: str | None = None,
        attempts: int = 0,
        cursor: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(
            message,
            endpoint=endpoint,
            status=status,
            code=code,
            msg=msg,
            attempts=attempts,
            cursor=cursor,
            retryable=retryable,
        )
        self.retry_after = retry_after


class ServiceUnavailableError(ServiceError):
    """The API is overloaded or unavailable: HTTP 5xx and the codes that mean the same.

    The request was retried up to `max_retries` times or to the deadline. `query.partial` has the records before it.

    Examples
    --------
    >>> except cf.ServiceUnavailableError:
    ...     save(query.partial)
    """

    retryable = True


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


class PaginationError(ChainframeError):
    """The complete and exact content of a list cannot be read from its pages.

    Examples
    --------
    >>> except cf.PaginationError as error:
    ...     print(error, query.partial)
    """

    cursor: str | None = None


class PaginationDriftError(PaginationError):
    """The list changed while it was read, so that its snapshot cannot be established.

    Run the query again, narrow it, or use a higher `page_size`.

    Examples
    --------
    >>> except cf.PaginationDriftError:
    ...     records = query.collect()
    """


class ResultWindowError(PaginationError):
    """A block in a range of heights exceeds the result window of the API; the message names its height.

    `query.partial` has the records before it. Query the heights on either side of it.

    Examples
    --------
    >>> except cf.ResultWindowError:
    ...     records = query.partial
    """


class IncompleteResultError(PaginationError):
    """The API cannot complete this result, and the client is `strict`.

    Attributes
    ----------
    report : Report
        Report of the run; `report.reasons` names the missing records.
    partial : Records
        Records that were returned.

    Examples
    --------
    >>> except cf.IncompleteResultError as error:
    ...     print(len(error.partial), "records;", *error.report.reasons)
    """

    def __init__(
        self,
        message: str = "",
        *,
        report: Report | None = None,
        partial: Records | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.report = report
        self.partial = partial


class NumericOverflowError(ChainframeError, OverflowError):
    """A number does not fit its column exactly: it has more than 18 decimals or more than 38 digits.

    Pass `numbers="string"` to keep the digits, or `numbers="float"` for the nearest double. Records hold every number
    exactly.

    Attributes
    ----------
    column : str
        Name of the column.
    row : int
        Index of the row.
    text : str
        Digits of the number.

    Examples
    --------
    >>> except cf.NumericOverflowError as error:
    ...     print(error.column, error.row, error.text)
    """

    def __init__(
        self,
        message: str = "",
        *,
        column: str | None = None,
        row: int | None = None,
        text: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.column = column
        self.row = row
        self.text = text


class ExportError(ChainframeError):
    """An export cannot continue in its directory. No file was removed.

    The directory holds an export of another query, is locked by another process (`retryable`), or has a missing or
    corrupt file; or the list no longer holds the records that `since` refers to.

    Attributes
    ----------
    path : str
        The file or directory.

    Examples
    --------
    >>> except cf.ExportError as error:
    ...     print(error, error.path)
    """

    def __init__(
        self,
        message: str = "",
        *,
        path: str | None = None,
        hints: Sequence[Hint] = (),
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hints=hints, retryable=retryable)
        self.path = path


class CassetteError(ChainframeError):
    """A cassette cannot be read or written, or its mode is unknown.

    Examples
    --------
    >>> except cf.CassetteError as error:
    ...     print(error)
    """


class CassetteMissError(CassetteError):
    """The cassette has no recording of this request, and its mode forbids to send it.

    Record it with mode "new_episodes" or "all".

    Examples
    --------
    >>> except cf.CassetteMissError as error:
    ...     print(error)
    """


class IncompleteResultWarning(UserWarning):
    """A result lacks records that the API does not return; `records.report.reasons` names them.

    With `Client(strict=True)` it is an `IncompleteResultError` instead.

    Examples
    --------
    >>> warnings.simplefilter("error", cf.IncompleteResultWarning)
    """
