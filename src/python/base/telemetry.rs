//! The functions that instrumentation set for the process: one for the beginning of runs, one for attempts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process;

use pyo3::prelude::*;

struct Functions {
    begin: Py<PyAny>,
    attempt: Py<PyAny>,
}

static FUNCTIONS: Mutex<Option<Functions>> = Mutex::new(None);
/// True if there are functions: without them a run and an attempt cost one load of a byte.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// Sets both functions, or removes them.
#[pyfunction]
#[pyo3(signature = (functions))]
pub fn _set_telemetry(functions: Option<(Py<PyAny>, Py<PyAny>)>) {
    let functions = functions.map(|(begin, attempt)| Functions { begin, attempt });
    IS_ACTIVE.store(functions.is_some(), Ordering::Release);
    let before = std::mem::replace(&mut *process::lock(&FUNCTIONS), functions);
    // Not under the lock: the end of a function may run Python code.
    drop(before);
}

pub fn is_active() -> bool {
    IS_ACTIVE.load(Ordering::Acquire)
}

/// Called with the name of a call at the beginning of its run.
pub fn begin(py: Python<'_>) -> Option<Py<PyAny>> {
    process::lock(&FUNCTIONS).as_ref().map(|functions| functions.begin.clone_ref(py))
}

/// Called with the report of each attempt.
pub fn attempt(py: Python<'_>) -> Option<Py<PyAny>> {
    process::lock(&FUNCTIONS).as_ref().map(|functions| functions.attempt.clone_ref(py))
}
