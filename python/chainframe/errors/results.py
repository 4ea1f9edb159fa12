"""Results that are not exact or not complete."""

from __future__ import annotations

from chainframe.errors.base import ChainframeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from chainframe import Records, Report


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


class ReorganizationError(PaginationError):
    """A height changed after `Query.follow` delivered its records, by a reorganization or a late record.

    Drop the records from that height on. A larger `settle` avoids it, and `undo=True` makes it an event. With
    `undo=True` the change is below all heights that the follower remembers.

    Attributes
    ----------
    height : int
        Lowest height that is known to have changed.

    Examples
    --------
    >>> except cf.ReorganizationError as error:
    ...     database.execute("delete from blocks where height >= ?", [error.height])
    """

    def __init__(self, message: str = "", *, height: int | None = None, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.height = height


class FollowGapError(PaginationError):
    """The API no longer returns the records that come after those which `Query.follow` has delivered.

    An export has the records that are still returned; `query.follow(start=export)` continues after it.

    Attributes
    ----------
    first_height, last_height : int
        The heights, both inclusive, of which records are missing.

    Examples
    --------
    >>> except cf.FollowGapError as error:
    ...     print("missing:", error.first_height, error.last_height)
    """

    def __init__(
        self,
        message: str = "",
        *,
        first_height: int | None = None,
        last_height: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.first_height = first_height
        self.last_height = last_height


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
        partial: Records[Any] | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.report = report
        self.partial = partial


class IncompleteResultWarning(UserWarning):
    """A result lacks records that the API does not return; `records.report.reasons` names them.

    With `Client(strict=True)` it is an `IncompleteResultError` instead.

    Examples
    --------
    >>> warnings.simplefilter("error", cf.IncompleteResultWarning)
    """


class BudgetExceededError(ChainframeError):
    """The client has sent `max_requests` requests, or a query needs more than are left.

    What was received before is kept: `query.partial` and the files of an export have it. The `cursor` continues with a
    client that may send more. A query that is known to need more requests than are left sends none.

    Attributes
    ----------
    max_requests : int
        Maximum number of requests of the client.

    Examples
    --------
    >>> except cf.BudgetExceededError as error:
    ...     rest = cf.Client(max_requests=500).resume(error.cursor)
    """

    cursor: str | None = None

    def __init__(self, message: str = "", *, max_requests: int | None = None, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.max_requests = max_requests


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
