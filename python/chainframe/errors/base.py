"""Base class of all errors, and errors of calls that send nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would take longer to import than the rest of the package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from chainframe import Hint, Records


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
    partial : Records or None
        Records that the run had fetched, as in `query.partial`; None if the error is not that of a run.

    Examples
    --------
    >>> try:
    ...     tokens = client.tokens().collect()
    ... except cf.ChainframeError as error:
    ...     print(error, error.retryable)
    """

    retryable: bool = False
    hints: tuple[Hint, ...] = ()
    partial: Records[Any] | None = None
    _shell_text: str | None = None

    def __init__(self, message: str = "", *, hints: Sequence[Hint] = (), retryable: bool | None = None) -> None:
        super().__init__(_one_line(message, advice(hints)))
        if hints:
            self.hints = tuple(hints)
            self._shell_text = _one_line(message, advice(hints, in_shell=True))
        if retryable is not None:
            self.retryable = retryable

    def _set_shell_text(self, text: str) -> None:
        """Set the message with options of the command line, which pickles and `vars` show as well."""
        self._shell_text = _one_line(text)

    def add_note(self, note: str, /) -> None:
        """Add a note, which is shown below the traceback.

        Parameters
        ----------
        note : str
            The text.

        Examples
        --------
        >>> error.add_note("while reading page 3")
        """
        # PyO3 notes the parameter of a value that it could not convert, which the message names.
        if not note.startswith("while processing '"):
            super().add_note(note)


def in_shell(error: ChainframeError) -> str:
    """Return the message with options of the command line in place of parameters."""
    return _one_line(error._shell_text or str(error))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def problem_of(error: InvalidParameterError) -> str:
    """Return the message without the name of the parameter, for a message that has another name for it."""
    return str(error).removeprefix(f"{error.parameter} ")


def _one_line(message: str, advice: str = "") -> str:
    """Join the lines of a message, which a log has to keep apart, and omit the secrets of URLs."""
    text = " ".join(message.splitlines()) + advice
    if not text.isprintable():
        # Others may have chosen the name of a file. `re` would delay every import of the package.
        from chainframe._text import escape  # noqa: PLC0415

        text = escape(text)
    if ":/" in text and any(char in text for char in "@?#"):
        from chainframe._text import without_secrets_of_urls  # noqa: PLC0415

        return without_secrets_of_urls(text)
    return text


def advice(hints: Sequence[Hint], *, in_shell: bool = False) -> str:
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

    Attributes
    ----------
    parameter : str or None
        Name of the parameter, with the index of an element of a list: `tx_ids[1]`. None if the error is not that of one
        parameter.

    Examples
    --------
    >>> client.tokens(page_size=51)
    Traceback (most recent call last):
    chainframe.errors.InvalidParameterError: page_size (51) must be between 1 and 50
    """

    parameter: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        hints: Sequence[Hint] = (),
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message if parameter is None else f"{parameter} {message}", hints=hints, retryable=retryable)
        self.parameter = parameter
        if parameter is not None:
            # A variable of the environment has one name everywhere.
            name = parameter if parameter.isupper() else f"--{parameter.replace('_', '-')}"
            self._shell_text = _one_line(f"{name} {message}", advice(hints, in_shell=True))
