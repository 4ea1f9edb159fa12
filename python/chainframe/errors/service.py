"""Error responses of the API."""

from __future__ import annotations

from chainframe.errors.base import ChainframeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
        **attributes: Any,  # noqa: ANN401 - those of every error response
    ) -> None:
        super().__init__(message, **attributes)
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
