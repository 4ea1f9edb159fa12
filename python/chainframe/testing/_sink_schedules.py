"""Schedules of `check_sink`: which interruptions are tried, and the processes that run them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import platform
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainframe.testing._interruption import KILLED, Interruption, Kind
from chainframe.testing._sink_script import runs
from chainframe.testing._sink_trial import Outcome, Task, Trial, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from multiprocessing.connection import Connection

    from chainframe.sinks.contract import Sink

FORKS = platform.system() == "Linux"
"""True if forks are safe: libraries of other systems start threads when they are imported."""
LIMIT = 300
"""Seconds after which a process that waits, for example for a lock, is ended; a busy machine is slow."""

NOT_TRACED = "define the sink, with the functions that call the store, in one package, in Python"
NOT_REPEATED = "the same runs of sync must make the same calls, whatever the name of the target"


def check(make: Callable[[str], Sink], read: Callable[[str], Iterable[Mapping[str, Any]]], schedules: int) -> int:
    """Run the schedules; returns their number, or raises AssertionError with the one that breaks the sink."""
    processes = _Processes(make, read)
    try:
        return _check(processes, schedules)
    finally:
        processes.close()


def _check(processes: _Processes, schedules: int) -> int:
    whole = processes.run(Task("check_whole"))
    processes.modules = whole.modules
    _require(whole, "no interruption")
    overtaken = [number for number, run in enumerate(runs()) if run.has_news and (whole.takes_sets or not run.is_set)]
    # The run after one that was overtaken is undisturbed, since it may find traces.
    for first in range(2):
        outcome = processes.run(Task(f"check_overtaken_{first}", overtaken=frozenset(overtaken[first::2])))
        _require(outcome, f"{named(outcome.number)}: another run commits after this one has read the position")
    if not any(whole.points):
        raise AssertionError(f"no call could be interrupted: {NOT_TRACED}")
    places = [(run, point) for run, points in enumerate(whole.points) for point in range(points)]
    possible = [Interruption(kind, *place) for place in places for kind in Kind]
    count = min(schedules, len(possible))
    for index in range(count):
        _interrupt(processes, f"check_{index}", possible[index * len(possible) // count])
    return 1 + len(overtaken) + count


def _interrupt(processes: _Processes, name: str, interruption: Interruption) -> None:
    outcome = processes.run(Task(name, interruption=interruption))
    if not (outcome.place or outcome.problem or outcome.code):
        call = f"call {interruption.point + 1:,} of {named(interruption.run)}"
        raise AssertionError(f"{call} was not made again, and so not interrupted: {NOT_REPEATED}")
    schedule = f"{named(outcome.number)}: {outcome.place}"
    if outcome.code == KILLED:
        # A scheduler starts the run again.
        outcome = processes.run(Task(name, start=outcome.number, is_resumed=True))
    _require(outcome, schedule)


def _require(outcome: Outcome, schedule: str) -> None:
    problem = outcome.problem
    if outcome.code == -getattr(signal, "SIGALRM", 0):
        problem = f"a process waited for more than {LIMIT} seconds"
    elif outcome.code != 0:
        problem = f"a process ended with code {outcome.code}"
    if problem:
        raise AssertionError(f"{schedule}; then {problem}")


class _Processes:
    """Runs tasks in processes that may be killed."""

    def __init__(self, make: Callable[[str], Sink], read: Callable[[str], Iterable[Mapping[str, Any]]]) -> None:
        self._functions = (make, read)
        self.modules: frozenset[str] = frozenset()
        """Modules that a run needs, imported once before the forks."""
        # A process without threads, of which forks are safe, and which has imported the libraries.
        self._context = multiprocessing.get_context("spawn")
        self._server: Any = None
        self._connection: Any = None

    def run(self, task: Task) -> Outcome:
        if self._server is None:
            self._start()
        outcome = Outcome(task.start)
        with suppress(EOFError, ConnectionResetError, BrokenPipeError):
            self._connection.send((task, self.modules))
            while True:
                received = self._connection.recv()
                if isinstance(received, int):
                    return replace(outcome, code=received)
                outcome = received
        return replace(outcome, code=self._end())

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._server = self._context.Process(target=_serve, args=(theirs, *self._functions), daemon=True)
        self._server.start()
        theirs.close()

    def close(self) -> None:
        if self._server is not None:
            self._end()

    def _end(self) -> int:
        self._connection.close()
        self._server.join()
        code = int(self._server.exitcode)
        self._server = None
        return code


def _serve(connection: Connection, make: Callable[[str], Sink], read: Callable[[str], Any]) -> None:
    """Run the tasks that arrive; each is answered by outcomes and the exit code of its process."""
    script = runs()
    with suppress(EOFError):
        while True:
            task, modules = connection.recv()
            _import(modules - sys.modules.keys())
            trial = Trial(make, read, script, task, connection.send)
            connection.send(_in_fork(trial) if FORKS else _in_this_process(trial))


def _import(modules: frozenset[str]) -> None:
    for name in sorted(modules):
        with suppress(ImportError):
            import_module(name)
    # Forks share the objects, which no collection in them has to look at.
    gc.freeze()


def _in_this_process(trial: Trial) -> int:
    # If it is killed, the next task has a new process.
    trial.run()
    return 0


def _in_fork(trial: Trial) -> int:
    if (child := os.fork()) == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT * trial.limits)
        try:
            trial.run()
        except BaseException:  # noqa: BLE001 - a fork must not return to the code of its parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
