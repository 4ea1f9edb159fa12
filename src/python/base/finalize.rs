//! The end of the interpreter. Until Python 3.14, a thread that attaches to a finalizing interpreter is ended by
//! `pthread_exit`; that cannot unwind Rust frames, and aborts the process. So no thread goes back to Python once the
//! exit hook ran, and the hook waits for those that are there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;

use super::errors;
use crate::process;

/// Pause between two looks at the threads that are inside the interpreter: the end of a program is delayed by no more.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Bound of the hook's wait, about 10 seconds, for a logging handler that does not return.
const MAX_POLLS: u32 = 10_000;

static CLOSED: AtomicBool = AtomicBool::new(false);
/// The thread that finalizes the interpreter, and may use it to the last.
static FINALIZER: OnceLock<ThreadId> = OnceLock::new();
static IS_FINALIZING: OnceLock<Py<PyAny>> = OnceLock::new();
/// Process id and number of threads that are inside the interpreter or on their way to it. A forked child starts at 0.
static INSIDE: AtomicU64 = AtomicU64::new(0);

/// A thread's permission to be attached to the interpreter.
pub struct Permit(());

impl Drop for Permit {
    fn drop(&mut self) {
        change(|count| count.saturating_sub(1));
    }
}

fn change(count: impl Fn(u32) -> u32) -> u32 {
    let process = process::id();
    let mut changed = 0;
    _ = INSIDE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
        let inside = if (state >> 32) as u32 == process { state as u32 } else { 0 };
        changed = count(inside);
        Some(u64::from(process) << 32 | u64::from(changed))
    });
    changed
}

/// True once the interpreter is about to finalize.
pub fn is_closing() -> bool {
    CLOSED.load(Ordering::SeqCst)
}

/// True once the interpreter is finalizing: what is left of it can neither import nor warn.
fn is_finalizing(py: Python<'_>) -> bool {
    let Some(is_finalizing) = IS_FINALIZING.get() else { return false };
    is_closing() && is_finalizing.call0(py).is_ok_and(|answer| answer.is_truthy(py).unwrap_or(true))
}

/// Raises once the interpreter is finalizing.
pub fn check(py: Python<'_>) -> PyResult<()> {
    if is_finalizing(py) {
        return Err(errors::context("the interpreter is shutting down"));
    }
    Ok(())
}

/// Permission to attach; None once the interpreter is about to finalize, but for the thread that does.
pub fn enter() -> Option<Permit> {
    change(|count| count + 1);
    let permit = Permit(());
    (!is_closing() || FINALIZER.get() == Some(&thread::current().id())).then_some(permit)
}

/// Runs `work` detached from the interpreter. A thread that would return to a finalizing interpreter stays here for good.
pub fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let (value, _permit) = py.detach(|| (work(), permit_to_return()));
    value
}

fn permit_to_return() -> Permit {
    loop {
        match enter() {
            Some(permit) => return permit,
            None => thread::park(),
        }
    }
}

/// Runs Python code where a value is dropped: in any thread, and perhaps while an exception propagates. Python code
/// delivers a signal that came meanwhile, which a drop cannot raise: `work` is run again, and the main thread is to raise
/// the interrupt.
pub fn attach_in_drop(mut work: impl FnMut(Python<'_>) -> PyResult<()>) {
    let Some(permit) = enter() else { return };
    Python::try_attach(|py| {
        drop(permit);
        if is_finalizing(py) {
            return;
        }
        let propagating = PyErr::take(py);
        let mut done = work(py);
        if done.as_ref().is_err_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
            done = work(py).and_then(|()| interrupt_main(py));
        }
        if let Err(error) = done {
            error.write_unraisable(py, None);
        }
        if let Some(error) = propagating {
            error.restore(py);
        }
    });
}

/// Has the main thread raise `KeyboardInterrupt` at its next check for signals.
fn interrupt_main(py: Python<'_>) -> PyResult<()> {
    py.import("_thread")?.call_method0("interrupt_main").map(drop)
}

/// Has the exit hook called before the interpreter finalizes.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if !is_main_interpreter(module.py()) {
        // A subinterpreter may end after the main interpreter has begun to: a thread that enters the hook then never returns.
        return Ok(());
    }
    let hook = wrap_pyfunction!(before_exit, module)?;
    let is_finalizing = module.py().import("sys")?.getattr("is_finalizing")?.unbind();
    let _ = IS_FINALIZING.set(is_finalizing);
    module.py().import("atexit")?.call_method1("register", (hook,)).map(drop)
}

/// Exit hook: keeps threads of this module out of the interpreter from now on, and waits for those inside.
#[pyfunction]
fn before_exit(py: Python<'_>) -> PyResult<()> {
    errors::module(py)?;
    FINALIZER.get_or_init(|| thread::current().id());
    CLOSED.store(true, Ordering::SeqCst);
    py.detach(|| {
        for _ in 0..MAX_POLLS {
            if change(|count| count) == 0 {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    });
    Ok(())
}

fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: this thread is attached, so that it has a current interpreter.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}
