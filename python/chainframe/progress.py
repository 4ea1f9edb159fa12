"""Progress bar of a long query, drawn by tqdm on a terminal or in a notebook, and not in a log.

A thread reads the run's counts several times a second, so that sync calls, async calls, iterators and Arrow consumers
share one bar, and none of them is slowed by it.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import stat
import sys
import threading
import time
import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

SHOW_AFTER_SECONDS = 2.0
"""Duration of a run, in seconds, after which "auto" shows its bar."""
INTERVAL = 0.2

Delivery = Literal["at once", "reader", "loop"]
"""The way in which records reach the caller: together, through a library, or in a loop of the caller's."""


class State(TypedDict):
    """Counts of a run: `done` of `total`, in `unit`; an unknown total is None. A run that continues has a `start`."""

    unit: str
    start: int
    done: int
    total: int | None
    pages: int
    records: int
    requests: int
    retries: int
    elapsed: float
    rate: float | None
    """Requests per second, once the API has throttled."""


class Run(Protocol):
    def read(self) -> State: ...


def start(run: Run, call: str, always: bool, delivery: Delivery) -> Bar | None:  # noqa: FBT001 - called by the core
    """Starts the bar of a run; None if there is no terminal or notebook to draw it on.

    A loop over the records may print them: its bar would be among them on a terminal. A loop or a library may also stop
    reading, or never begin, and then has no bar until it continues.
    """
    if getattr(sys, "stderr", None) is None:
        # A process without streams, to which tqdm would write nonetheless.
        return None
    in_loop = delivery == "loop"
    if not (always or (_is_interactive(in_loop=in_loop) and importlib.util.find_spec("tqdm"))):
        return None
    try:
        if always:
            return Bar(run, call, delay=0)
        return Bar(run, call, delay=SHOW_AFTER_SECONDS, awaits_reading=delivery != "at once")
    except RuntimeError:
        # No thread is to be had. The run needs none of Python's.
        return None


def require_tqdm() -> None:
    """Raises at once if a bar could not be drawn later."""
    if importlib.util.find_spec("tqdm") is None:
        message = "tqdm is not installed; run: pip install 'chainframe[progress]'"
        raise ModuleNotFoundError(message, name="tqdm")


def _is_interactive(*, in_loop: bool) -> bool:
    if "ipykernel" in sys.modules:
        return True
    if in_loop and may_be_shown(getattr(sys, "stdout", None)):
        return False
    return _answers(sys.stderr, lambda out: out.isatty())


def may_be_shown(out: TextIO | None) -> bool:
    """True for a terminal, and for a pipe: the program that reads it may print to the terminal."""
    return _answers(out, lambda out: out.isatty() or stat.S_ISFIFO(os.fstat(out.fileno()).st_mode))


def _answers(out: TextIO | None, question: Callable[[TextIO], bool]) -> bool:
    """Ask a stream, which may be closed or in memory, or an object of any kind that a program put in its place."""
    try:
        return out is not None and bool(question(out))
    except Exception:  # noqa: BLE001 - a bar is not worth the failure of a run
        return False


class Bar:
    """Bar of one run, until it is closed."""

    def __init__(self, run: Run, call: str, *, delay: float, awaits_reading: bool = False) -> None:
        self._run = run
        self._call = call
        self._delay = delay
        self._awaits_reading = awaits_reading
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"chainframe progress of {call}", daemon=True)
        # An interrupt after the start would leave a thread that nothing ends.
        _open.add(self)
        self._thread.start()

    def close(self) -> None:
        """Draws the last state and ends the thread."""
        _open.discard(self)
        self._ended.set()
        # A forked child has the object, but not its thread.
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        # A stream that was closed, or that fails, has no bar.
        with suppress(OSError, ValueError, AttributeError):
            self._show()

    def _show(self) -> None:
        if self._ended.wait(self._delay):
            return
        state = self._run.read()
        # A reader that a library holds may never be read.
        while not state["requests"]:
            has_ended = self._ended.wait(INTERVAL)
            state = self._run.read()
            if has_ended and not state["requests"]:
                return
        before = state["records"]
        while self._awaits_reading and state["records"] == before:
            if self._ended.wait(INTERVAL):
                return
            state = self._run.read()
        # With a delay, tqdm does not draw in its constructor, where a failing stream would keep its lock for good.
        bar = _tqdm()(
            desc=self._call,
            total=state["total"],
            initial=state["start"],
            unit=f" {state['unit']}",
            smoothing=0,
            dynamic_ncols=True,
            delay=1e-9,
        )
        # The run began before the bar.
        bar.start_t = time.time() - state["elapsed"]
        self._draw(bar)
        while not self._ended.wait(INTERVAL):
            self._draw(bar)
        self._draw(bar)
        bar.close()

    def _draw(self, bar: Any) -> None:  # noqa: ANN401 - tqdm's, which has no types
        state = self._run.read()
        if bar.total != state["total"]:
            # The only way to change the total of a notebook's bar.
            started = bar.start_t
            bar.reset(state["total"])
            bar.start_t = started
        bar.unit = f" {state['unit']}"
        bar.initial = state["start"]
        bar.n = state["done"]
        bar.set_postfix_str(", ".join(_facts(state)), refresh=False)
        with bar.get_lock():
            bar.refresh(nolock=True)


def _facts(state: State) -> list[str]:
    """Counts that the bar itself does not show."""
    counts = [("pages", state["pages"]), ("records", state["records"]), ("retries", state["retries"])]
    facts = [f"{name}: {count:,}" for name, count in counts if count and name != state["unit"]]
    return facts if state["rate"] is None else [*facts, f"rate-limited to {state['rate']:.1f} req/s"]


def _tqdm() -> Callable[..., Any]:
    with warnings.catch_warnings():
        # In a notebook without widgets tqdm warns and draws text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # noqa: PLC0415 - an extra

    bar_type: Callable[..., Any] = tqdm
    return bar_type


_open: weakref.WeakSet[Bar] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends the threads before the interpreter: one that draws meanwhile would crash it."""
    for bar in list(_open):
        bar.close()
