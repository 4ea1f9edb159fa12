"""The errors of chainframe, and its one warning.

Every error is a `ChainframeError`, its text is one line, and it survives pickling and copying with all it carries. None
of them holds a key, a signature or a passphrase. The native core raises them; nothing here decides when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chainframe import Records, Report

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "CassetteError",
    "CassetteMissError",
    "ChainframeError",
    "ClockSkewError",
    "ConfigError",
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
    """Anything that went wrong in chainframe; catch it to catch them all.

    `retryable` says whether the same call may succeed later. The client has already retried what it could. Errors of
    the service, of the network and of pages carry a `cursor`: `client.resume(error.cursor)` goes on where they struck.

    >>> try:
    ...     tokens = client.tokens().collect()
    ... except cf.ChainframeError as error:
    ...     print(error, "- worth another try" if error.retryable else "")
    """

    retryable: bool = False

    def __init__(self, message: str = "", *, retryable: bool | None = None) -> None:
        # A service's own words may hold line breaks; a log line may not.
        super().__init__(" ".join(message.splitlines()))
        if retryable is not None:
            self.retryable = retryable


class ConfigError(ChainframeError, ValueError):
    """A setting is missing or malformed: an argument of `Client`, or its `CHAINFRAME_*` variable.

    The message names both. Nothing was sent.

    >>> cf.Client(base_url="http://data.example.com")
    Traceback (most recent call last):
    chainframe.errors.ConfigError: base_url (CHAINFRAME_BASE_URL) ...
    """


class InvalidParameterError(ChainframeError, ValueError):
    """A value that the service would refuse, refused here before anything was sent.

    The message names the parameter and its limit.

    >>> client.tokens(page_size=51)
    Traceback (most recent call last):
    chainframe.errors.InvalidParameterError: page_size ...
    """


class ServiceError(ChainframeError):
    """The service answered, and its answer was an error.

    `code` and `msg` are the service's own, `status` is HTTP's; branch on those, never on the wording. `attempts` counts
    every try of that request.

    >>> except cf.ServiceError as error:
    ...     log.warning("%s answered %s/%s", error.endpoint, error.status, error.code)
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
    """The service refused a parameter that looked right from here.

    `msg` is the service's reason. Mend the call; the same one fails again.

    >>> except cf.BadRequestError as error:
    ...     print(error.code, error.msg)
    """


class NotFoundError(ServiceError):
    """No such token, block, data or endpoint.

    An empty list is no error: this is raised only where the service says so with a code of its own.

    >>> except cf.NotFoundError:
    ...     transfers = None
    """


class PermissionDeniedError(ServiceError):
    """The account may not do this: its plan, its region, its state, or a freeze of the interface.

    Waiting does not help; the account does.

    >>> except cf.PermissionDeniedError as error:
    ...     sys.exit(f"Ask the provider about code {error.code}: {error.msg}")
    """


class AuthenticationError(ServiceError):
    """The key, the passphrase or the signature is missing or wrong.

    Check the three secrets, and that `Deployment` has this service's words: they are part of what is signed.

    >>> except cf.AuthenticationError:
    ...     sys.exit("Check CHAINFRAME_API_KEY, CHAINFRAME_SECRET_KEY and CHAINFRAME_PASSPHRASE.")
    """


class ClockSkewError(AuthenticationError):
    """The service finds the timestamp expired, even after this client has set its clock by the service's once.

    Mend the machine's clock; signatures live for about 30 seconds.

    >>> except cf.ClockSkewError:
    ...     sys.exit("This machine's clock is off.")
    """


class RateLimitError(ServiceError):
    """Too many requests, and waiting within the deadline did not help.

    `retry_after` is the wait in seconds that the service asked for, or None. Wait, or give `Client` a lower
    `rate_limit`.

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
    """The service is busy, broken or away: HTTP 5xx and the codes that mean the same.

    It was retried up to `max_retries` times or to the deadline. What came before it is in `query.partial`.

    >>> except cf.ServiceUnavailableError:
    ...     save(query.partial)
    """

    retryable = True


class TransportError(ChainframeError, ConnectionError):
    """No answer: the network failed in the phase "connect", "tls", "read" or "body".

    In "connect" and "tls" nothing reached the service: check base URL, proxy and certificates.

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
    """One attempt took longer than `timeout` in that phase, or all attempts longer than the "deadline".

    Raise the limit that was reached, or try later.

    >>> except cf.RequestTimeoutError as error:
    ...     print("deadline reached" if error.phase == "deadline" else f"slow to {error.phase}")
    """


class ResponseFormatError(ChainframeError):
    """The answer is not what the interface promises, such as letters in a number.

    `path` is the place in the JSON (`data[0].transactionList[3].height`) and `excerpt` what stood there. No record is
    guessed: the call fails as a whole.

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
    """The pages of a list cannot be put together into its complete and exact content.

    >>> except cf.PaginationError as error:
    ...     print(error, query.partial)
    """

    cursor: str | None = None


class PaginationDriftError(PaginationError):
    """The list changed while it was read, so that the set as it was at the first page cannot be told any more.

    Ask again, or for less: a narrower range, or a higher `page_size`.

    >>> except cf.PaginationDriftError:
    ...     records = query.collect()
    """


class ResultWindowError(PaginationError):
    """A block of a range of heights has more records than the service lets anyone reach; the message names it.

    What came before it is in `query.partial`. Ask for the heights on either side of it.

    >>> except cf.ResultWindowError:
    ...     records = query.partial
    """


class IncompleteResultError(PaginationError):
    """The service cannot complete this result, and the client is `strict`.

    `partial` holds the records that could be had, and `report.reasons` says what is missing.

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
    """A number does not fit its column exactly: more than 18 decimals, or more than 38 digits.

    Ask for `numbers="string"` to keep the digits, or `numbers="float"` for the nearest double. Records hold every
    number exactly in any case.

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
    """An export cannot go on in its directory: `path` is what stands in its way.

    The directory holds an export of another query, is being written by another process (`retryable`), or a part of it
    is missing or damaged; or the list does not hold any more what `since` names. No file was removed.

    >>> except cf.ExportError as error:
    ...     print(error, error.path)
    """

    def __init__(self, message: str = "", *, path: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.path = path


class CassetteError(ChainframeError):
    """A cassette cannot be read or written, or its mode is unknown.

    >>> except cf.CassetteError as error:
    ...     print(error)
    """


class CassetteMissError(CassetteError):
    """The cassette holds no answer to this request, and its mode forbids to ask the service.

    Record it once more, with mode "new_episodes" or "all".

    >>> except cf.CassetteMissError as error:
    ...     print(error)
    """


class IncompleteResultWarning(UserWarning):
    """A result lacks records that the service does not give out; `records.report.reasons` says which.

    With `Client(strict=True)` it is an `IncompleteResultError` instead.

    >>> warnings.simplefilter("error", cf.IncompleteResultWarning)
    """
