"""Settings of `LocalService` that can change while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from chainframe import ConfigError
from chainframe._checks import short
from chainframe.testing import _requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chainframe._native import _LocalService
    from chainframe.testing._types import Fault, LoggedRequest, Quirk, QuirkName

    Respond = Callable[[LoggedRequest], Mapping[str, Any] | None]
    Adjusted = Literal["faults", "quirks"]


class _Adjustable:  # pyright: ignore[reportUnusedClass]
    """Base of `LocalService`."""

    __slots__ = ("_counts_before", "_native", "_replaced", "_respond")
    _native: _LocalService
    _respond: Respond | None
    _replaced: dict[Adjusted, list[Any]]
    """Faults and quirks that were replaced after requests, none of whose responses they changed."""
    _counts_before: dict[Adjusted, int]
    """Numbers of requests when the current faults and quirks were set."""

    def __init__(self, native: _LocalService) -> None:
        self._native = native
        self._respond = None
        self._replaced = {"faults": [], "quirks": []}
        self._counts_before = {"faults": 0, "quirks": 0}

    @property
    def faults(self) -> list[Fault]:
        """Current faults. Setting them resets their counts; an empty list removes them."""
        faults: list[Fault] = json.loads(self._native.faults_json)
        return faults

    @faults.setter
    def faults(self, faults: Sequence[Fault]) -> None:
        self.set_faults(faults)

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Set `faults`, as an expression.

        Parameters
        ----------
        faults : sequence of Fault
            The faults that replace the current ones.

        Raises
        ------
        ConfigError
            A fault has an unknown kind or member, or a value out of range.

        Examples
        --------
        >>> threading.Timer(1.0, lambda: service.set_faults([{"kind": "reset"}])).start()
        """
        unused = json.loads(self._native.unused_faults_json)
        self._native.set_faults(faults_as_json(faults))
        self._note_replaced("faults", unused)

    def _note_replaced(self, adjusted: Adjusted, unused: list[Any]) -> None:
        count = self._native.request_count
        if count != self._counts_before[adjusted]:
            self._replaced[adjusted] += unused
        self._counts_before[adjusted] = count

    @property
    def unused_faults(self) -> list[Fault]:
        """Faults that have changed no response: current ones, and those that were replaced after other requests.

        They selected no request, or another fault came first. The fixture `local_service` fails a test that has any.
        """
        faults: list[Fault] = json.loads(self._native.unused_faults_json)
        return [*self._replaced["faults"], *faults]

    @property
    def quirks(self) -> list[Quirk]:
        """Current quirks."""
        quirks: list[Quirk] = json.loads(self._native.quirks_json)
        return quirks

    @quirks.setter
    def quirks(self, quirks: Sequence[QuirkName | Quirk]) -> None:
        unused = json.loads(self._native.unused_quirks_json)
        self._native.set_quirks(quirks_as_json(quirks))
        self._note_replaced("quirks", unused)

    @property
    def unused_quirks(self) -> list[Quirk]:
        """Quirks that have changed no response: current ones, and those that were replaced after other requests.

        The fixture `local_service` fails a test that has any.
        """
        quirks: list[Quirk] = json.loads(self._native.unused_quirks_json)
        return [*self._replaced["quirks"], *quirks]

    @property
    def respond(self) -> Respond | None:
        """Function that is called with each request, and returns its response or None for the regular one.

        A response is a `Fault` of any kind, of kind "body" unless it names another.
        """
        return self._respond

    @respond.setter
    def respond(self, respond: Respond | None) -> None:
        if respond is not None and not callable(respond):
            raise ConfigError(f"respond must be callable or None; got {short(respond)}")
        self._respond = respond
        if respond is None:
            self._native.set_respond(None)
            return
        deployment = self._native.deployment

        def called(entry: dict[str, Any]) -> str | None:
            given = respond(_requests.describe(entry, deployment))
            return None if given is None else json.dumps({"kind": "body", **given})

        self._native.set_respond(called)

    @property
    def respond_errors(self) -> list[str]:
        """Problems of `respond`: what it raised, and what is no response. In its place the service sent an error.

        The fixture `local_service` fails a test that has any.
        """
        return self._native.respond_errors

    @property
    def growth(self) -> int:
        """Number of records that each growing list gains at its head after each request for a list."""
        return self._native.growth

    @growth.setter
    def growth(self, growth: int) -> None:
        self._native.set_growth(growth)

    @property
    def reorg(self) -> tuple[int, int] | None:
        """Requests for lists between reorganizations, and heights that each of them replaces; None for none."""
        return self._native.reorg

    @reorg.setter
    def reorg(self, reorg: tuple[int, int] | None) -> None:
        self._native.set_reorg(reorg)

    @property
    def late(self) -> tuple[float, int] | None:
        """Share of gained records that are listed late, and the heights by which they are; None for none.

        With None, records that are still late are listed at the next growth.
        """
        return self._native.late

    @late.setter
    def late(self, late: tuple[float, int] | None) -> None:
        self._native.set_late(late)

    @property
    def pending(self) -> tuple[float, int] | None:
        """Share of gained transactions that are pending at first, and the heights until they settle; None for none.

        With None, transactions that are pending stay so.
        """
        return self._native.pending

    @pending.setter
    def pending(self, pending: tuple[float, int] | None) -> None:
        self._native.set_pending(pending)

    @property
    def rate_limit(self) -> float | None:
        """Requests allowed per second; None if unlimited."""
        return self._native.rate_limit

    @rate_limit.setter
    def rate_limit(self, rate: float | None) -> None:
        self._native.set_rate_limit(rate)

    @property
    def clock_skew(self) -> float:
        """Seconds by which the service's clock is ahead of the system clock; negative if it is behind."""
        return self._native.clock_skew

    @clock_skew.setter
    def clock_skew(self, seconds: float) -> None:
        self._native.set_clock_skew(seconds)


def faults_as_json(faults: Sequence[Fault]) -> str:
    """Return faults as the extension module reads them."""
    return _as_json("faults must be a list of mappings, such as [{'kind': 'reset'}]", faults)


def quirks_as_json(quirks: Sequence[QuirkName | Quirk]) -> str:
    """Return quirks as the extension module reads them; a name is a quirk without members."""
    return _as_json("quirks must be a list of names or mappings, such as ['page_ignored']", quirks, by_name=True)


def _as_json(expected: str, given: Sequence[Any], *, by_name: bool = False) -> str:
    if isinstance(given, str | bytes | Mapping):
        raise ConfigError(f"{expected}; got {short(given)}")
    try:
        items = [{"kind": each} if by_name and isinstance(each, str) else each for each in given]
        return json.dumps(items, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{expected}: {error}") from None
