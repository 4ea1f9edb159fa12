"""Exports and cassettes that cannot be read or written."""

from __future__ import annotations

from chainframe.errors.base import ChainframeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from chainframe import Hint


class _FileError(ChainframeError):
    """A file that cannot be read or written."""

    errno: int | None = None

    def __init__(
        self,
        message: str = "",
        *,
        path: str | None = None,
        errno: int | None = None,
        hints: Sequence[Hint] = (),
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hints=hints, retryable=retryable)
        self.path = path
        if errno is not None:
            self.errno = errno


class ExportError(_FileError):
    """An export cannot continue in its directory. No file was removed.

    The directory holds an export of another query, is locked by another process (`retryable`), or has a missing or
    corrupt file; or the list no longer holds the records that `since` refers to.

    Attributes
    ----------
    path : str
        The file or directory.
    errno : int or None
        Number of the operating system's error, such as `errno.ENOSPC` for a full disk; None if there was none.

    Examples
    --------
    >>> except cf.ExportError as error:
    ...     print(error, error.path)
    """


class SettledHeightError(ExportError):
    """A height changed that a settled series does not read again. No file was changed.

    A reorganization, or a record that was listed late or changed late, went deeper than `settle` heights below the end
    of the earlier export. The message says how the series continues: mostly with a larger `settle`.

    Attributes
    ----------
    height : int
        The lowest height that is known to have changed.

    Examples
    --------
    >>> except cf.SettledHeightError as error:
    ...     print(error, error.height)
    """

    def __init__(
        self,
        message: str = "",
        *,
        height: int | None = None,
        path: str | None = None,
        hints: Sequence[Hint] = (),
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, path=path, hints=hints, retryable=retryable)
        self.height = height


class CassetteError(_FileError):
    """A cassette cannot be read or written, or its mode is unknown.

    Attributes
    ----------
    path : str or None
        The file; None if the error is not about one.
    errno : int or None
        Number of the operating system's error, such as `errno.ENOSPC` for a full disk; None if there was none.

    Examples
    --------
    >>> except cf.CassetteError as error:
    ...     print(error, error.path)
    """


class CassetteMissError(CassetteError):
    """The cassette has no recording of this request, and its mode forbids to send it.

    Record it with mode "new_episodes" or "all".

    Examples
    --------
    >>> except cf.CassetteMissError as error:
    ...     print(error)
    """
