//! `on_attempt`: reports of attempts for a callable of the caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::log::Context;
use crate::client::{AttemptReport, Observer};
use crate::process;
use crate::python::base::convert;
use crate::python::base::log;
use crate::python::base::telemetry;

/// The callable, shared by the clients that the core knows by the same observer.
pub struct Callable {
    /// Locked by threads that hold the interpreter, as one does that forks.
    callable: Mutex<Option<Py<PyAny>>>,
    /// False once the callable was cleared. Threads of the core read it.
    is_set: AtomicBool,
}

/// Observer of the core that calls it, if there is one, and the function that instrumentation set.
pub struct AttemptObserver(pub Option<Arc<Callable>>);

impl Callable {
    pub fn new(callable: Py<PyAny>) -> Self {
        Self { callable: Mutex::new(Some(callable)), is_set: AtomicBool::new(true) }
    }

    pub fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let callable = process::lock(&self.callable);
        callable.as_ref().map(|callable| callable.clone_ref(py))
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Visits the callable, for the one client that owns it as the garbage collector sees it.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.callable.try_lock() {
            Ok(callable) => callable.as_ref().map_or(Ok(()), |callable| visit.call(callable)),
            Err(_) => Ok(()),
        }
    }

    pub fn clear(&self) {
        self.is_set.store(false, Ordering::Relaxed);
        let callable = process::lock(&self.callable).take();
        drop(callable);
    }
}

impl Observer for AttemptObserver {
    fn is_active(&self) -> bool {
        telemetry::is_active() || self.0.as_ref().is_some_and(|callable| callable.is_set())
    }

    fn observe(&self, report: AttemptReport, context: Option<Context>) {
        if telemetry::is_active() {
            let report = report.clone();
            log::call_in_handler(context.clone(), telemetry::attempt, move |py| attempt(py, report));
        }
        if let Some(callable) = self.0.clone().filter(|callable| callable.is_set()) {
            log::call_in_handler(context, move |py| callable.get(py), move |py| attempt(py, report));
        }
    }
}

/// The `Attempt` that the callable receives.
fn attempt(py: Python<'_>, report: AttemptReport) -> PyResult<Py<PyAny>> {
    let started = report.started.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let members = PyDict::new(py);
    members.set_item("endpoint", report.endpoint)?;
    members.set_item("url", report.url)?;
    members.set_item("number", report.number)?;
    members.set_item("started", convert::datetime(py, i64::try_from(started.as_millis()).unwrap_or(i64::MAX))?)?;
    members.set_item("waited", report.waited.as_secs_f64())?;
    members.set_item("elapsed", report.elapsed.as_secs_f64())?;
    members.set_item("status", report.status)?;
    members.set_item("code", report.code)?;
    members.set_item("error", report.error)?;
    members.set_item("bytes", report.bytes)?;
    members.set_item("replayed", report.replayed)?;
    members.set_item("rate", report.rate)?;
    Ok(py.import("chainframe.attempts")?.getattr("Attempt")?.call((), Some(&members))?.unbind())
}
