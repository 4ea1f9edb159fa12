"""Requests that `LocalService` received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chainframe import ConfigError
from chainframe._checks import short
from chainframe._text import counted
from chainframe.testing import _matching, _requests
from chainframe.testing._adjustable import _Adjustable  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from chainframe.testing._types import Call, LoggedRequest


class _Logged(_Adjustable):  # pyright: ignore[reportUnusedClass]
    """Base of `LocalService`."""

    __slots__ = ()

    @property
    def request_count(self) -> int:
        """Number of requests received."""
        return self._native.request_count

    @property
    def request_log(self) -> list[LoggedRequest]:
        """The most recent requests, oldest first: up to 10,000, or 16 MiB."""
        deployment = self._native.deployment
        return [_requests.describe(entry, deployment) for entry in self._native.request_log()]

    def find_requests(self, call: Call | None = None, /, **params: object) -> list[LoggedRequest]:
        """Return the logged requests of a call that have all these parameters, oldest first.

        Parameters
        ----------
        call : str, optional
            Name of a method of `Client`. Default: any.
        **params : object
            Values of parameters: by their names in Python (`height`, `start_time`) as the call takes them, or by their
            names in the API (`limit`, `startTime`) as they are sent. None selects requests without that parameter. The
            letter case of chains and of hexadecimal addresses and hashes is not compared.

        Returns
        -------
        list of LoggedRequest

        Raises
        ------
        ConfigError
            The call does not exist, or does not have that parameter, or a value is of a type that no call takes.

        Examples
        --------
        >>> service.find_requests("blocks", height=4_300_000)
        """
        return _matching.select(self.request_log, call, params)

    def assert_requested(self, call: Call | None = None, /, *, times: int | None = None, **params: object) -> None:
        """Assert that a request was received: at least once, or exactly `times` times.

        Parameters
        ----------
        call : str, optional
            Name of a method of `Client`. Default: any.
        times : int, optional
            Expected number of requests. Default: at least one.
        **params : object
            Values of parameters, as for `find_requests`.

        Raises
        ------
        AssertionError
            The number is another one. The message lists the received requests.
        ConfigError
            The call does not exist, or does not have that parameter, or a value is of a type that no call takes.

        Examples
        --------
        >>> service.assert_requested("blocks", height=4_300_000, times=1)
        """
        if times is not None and (type(times) is not int or times < 0):
            raise ConfigError(f"times must be a number of requests or None; got {short(times)}")
        count = len(_matching.select(self.request_log, call, params))
        if count != times if times is not None else count == 0:
            requested = counted(count, "time")
            wanted = "at least once" if times is None else counted(times, "time")
            log = [f"{entry['method']} {entry['path']}?{entry['query']}" for entry in self.request_log]
            raise AssertionError(
                f"{_matching.describe_selection(call, params)} was requested {requested} instead of {wanted}; "
                f"received: {', '.join(log[-10:]) or 'nothing'}"
            )

    def reset_request_log(self) -> None:
        """Clear the request log and set `request_count` to 0.

        Examples
        --------
        >>> service.reset_request_log()
        """
        # The current faults and quirks were in effect for requests that are removed from the log.
        count = self.request_count
        self._counts_before = {name: 0 if count == before else -1 for name, before in self._counts_before.items()}
        self._native.reset_request_log()
