"""A bar for a query that takes long, drawn by tqdm: on a terminal or in a notebook, never in a script's log.

A thread looks at the run's counts a few times a second, so that waiting, awaiting, iterating and Arrow consumers all
have the same bar, and none of them is slowed by it.
"""

from __future__ import annotations

import atexit
import importlib.util
import sys
import threading
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 2.0
"""Seconds that a run may take before "auto" shows it."""
INTERVAL = 0.2


class State(TypedDict):
    """A run's counts: `done` of `total`, which may not be known, in its `unit`."""

    unit: str
    done: int
    total: int | None
    pages: int
    records: int
    requests: int
    retries: int
    elapsed: float
    pace: float | None
    """Requests a second, once the service has throttled."""


class Run(Protocol):
    def read(self) -> State: ...


def start(run: Run, call: str, always: bool) -> Bar | None:  # noqa: FBT001 - called by the core
    """The bar of a run, or None where nobody would see it."""
    if not always and not (_is_watched() and importlib.util.find_spec("tqdm")):
        return None
    return Bar(run, call, patience=0 if always else PATIENCE)


def need() -> None:
    """Refuse at once what could not be drawn later."""
    if importlib.util.find_spec("tqdm") is None:
        message = "tqdm is not installed; run: pip install 'chainframe[progress]'"
        raise ModuleNotFoundError(message, name="tqdm")


def _is_watched() -> bool:
    if "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


class Bar:
    """The bar of one run, until it is closed."""

    def __init__(self, run: Run, call: str, *, patience: float) -> None:
        self._run = run
        self._call = call
        self._patience = patience
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"chainframe progress of {call}", daemon=True)
        _open.add(self)
        self._thread.start()

    def close(self) -> None:
        """Draw the last state, and end. Returns when nothing more is drawn."""
        _open.discard(self)
        self._ended.set()
        # A child that was forked has the bar, but not its thread.
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        if self._ended.wait(self._patience):
            return
        state = self._run.read()
        bar = _tqdm()(desc=self._call, total=state["total"], unit=f" {state['unit']}", smoothing=0, dynamic_ncols=True)
        # The time before the bar came counts as well.
        bar.start_t = time.time() - state["elapsed"]
        self._draw(bar)
        while not self._ended.wait(INTERVAL):
            self._draw(bar)
        self._draw(bar)
        bar.close()

    def _draw(self, bar: Any) -> None:  # noqa: ANN401 - tqdm's, which has no types
        state = self._run.read()
        if bar.total != state["total"]:
            # A notebook's bar takes another total in no other way.
            started = bar.start_t
            bar.reset(state["total"])
            bar.start_t = started
        bar.unit = f" {state['unit']}"
        bar.n = state["done"]
        bar.set_postfix_str(", ".join(_facts(state)), refresh=False)
        bar.refresh()


def _facts(state: State) -> list[str]:
    """What the bar itself does not say."""
    counts = [("pages", state["pages"]), ("records", state["records"]), ("retries", state["retries"])]
    facts = [f"{name}: {count:,}" for name, count in counts if count and name != state["unit"]]
    return facts if state["pace"] is None else [*facts, f"held to {state['pace']:.1f} requests/s"]


def _tqdm() -> Callable[..., Any]:
    with warnings.catch_warnings():
        # In a notebook without widgets tqdm draws text, which is what is left to do.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # noqa: PLC0415 - an extra

    made: Callable[..., Any] = tqdm
    return made


_open: weakref.WeakSet[Bar] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A thread that draws while the interpreter ends would crash it."""
    for bar in list(_open):
        bar.close()
