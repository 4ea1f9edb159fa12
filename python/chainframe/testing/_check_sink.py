"""`check_sink`: a sink is interrupted at every point, and has to hold each row once after the next run."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from chainframe._checks import check_count
from chainframe.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from chainframe.sinks.contract import Sink


def check_sink(
    make: Callable[[str], Sink],
    read: Callable[[str], Iterable[Mapping[str, Any]]],
    *,
    schedules: int = 1_000,
) -> int:
    """Check that a sink holds each row once, whatever interrupts it.

    Six runs of `sync` insert rows, replace and delete them, find nothing new, and begin again; two more have several
    values, if the sink has `takes_sets`. They are repeated on new targets, with one interruption each: between any two
    calls of the sink, the process is killed, or `ConnectionError` is raised although the call took effect, as if the
    response was lost. The next run must complete what was interrupted. Also two runs overlap, of which only one may
    commit. Afterwards rows, amounts and the stored position are compared.

    Everything runs in other processes, on Linux in forks of one, so `make` and `read` must be importable: functions of
    a module, or `functools.partial` of one.

    Parameters
    ----------
    make : callable
        Opens the target of a name, as a new process does. A name that it has not seen stands for a target that does not
        exist yet.
    read : callable
        Returns the rows of the target of a name as mappings, without the help of the sink. The columns are `height`,
        `tx_id` and `amount`, which may be a number or its text, but no float.
    schedules : int
        Maximum number of interruptions. Beyond it they are chosen evenly.

    Returns
    -------
    int
        Number of schedules that were run.

    Raises
    ------
    AssertionError
        The sink lost, repeated or changed rows, or its position is wrong. The message describes the schedule. Or an
        interruption did not happen, so that nothing is known.
    InvalidParameterError
        `make` or `read` cannot be imported by another process, or `schedules` is no integer from 1.

    Examples
    --------
    >>> check_sink(partial(make_sink, tmp_path), partial(read_rows, tmp_path))
    """
    check_count(schedules, "schedules")
    for parameter, function in (("make", make), ("read", read)):
        try:
            pickle.dumps(function)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            message = "must be a function of a module, or functools.partial of one, since other processes call it"
            raise InvalidParameterError(message, parameter=parameter) from error
    # The plugin of pytest imports this module in every run.
    from chainframe.testing._sink_schedules import check  # noqa: PLC0415

    return check(make, read, schedules)
