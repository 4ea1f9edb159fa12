//! The most recent run of a query, which its iterators report to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::feed::Ready;
use super::observed_run;
use super::run_source::RunSource;
use crate::client::{Client, Error};
use crate::python::base::errors;
use crate::python::base::finalize;
use crate::python::results::html;
use crate::python::results::incomplete::report_incomplete;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{self, Partial, QueryStart, Run, SharedReport};

/// Note on an error of an iteration that has returned something.
const STREAM_NOTE: &str = "client.resume(error.cursor) continues after the last record that was returned";

/// Shared by a query and its iterators. Locked only while the interpreter is held, and never while Python code runs.
#[derive(Default)]
pub struct LastRun(Mutex<LastRunState>);

#[derive(Default)]
struct LastRunState {
    report: Option<SharedReport>,
    partial: Option<Partial>,
    error: Option<Py<PyAny>>,
    start: Option<QueryStart>,
    /// Items that an iteration over the run has returned and will return.
    ready: Option<Ready<RunSource>>,
}

impl LastRun {
    fn lock(&self) -> MutexGuard<'_, LastRunState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the last run by one that begins.
    pub fn begin(&self, py: Python<'_>, start: &QueryStart, mut run: Run) -> PyResult<Run> {
        finalize::check(py)?;
        if let Some(observer) = observed_run::observer(py, start.query().endpoint().name) {
            run.observe(observer);
        }
        let begun = LastRunState {
            report: Some(run.report().clone()),
            partial: Some(run.partial().clone()),
            start: Some(start.clone()),
            ..LastRunState::default()
        };
        let before = std::mem::replace(&mut *self.lock(), begun);
        // Not under the lock: the end of an exception may run Python code.
        drop(before);
        Ok(run)
    }

    /// Takes the cursor from what an iteration returns.
    pub fn follow(&self, ready: &Ready<RunSource>) {
        self.lock().ready = Some(ready.clone());
    }

    /// Lets go of the records, which a caller has taken.
    pub fn release_partial(&self) {
        self.lock().partial = None;
    }

    /// Cursor after what was returned; None before the first run.
    pub fn cursor(&self) -> Option<String> {
        let (start, checkpoint) = {
            let state = self.lock();
            let collected = state.partial.as_ref().and_then(Partial::checkpoint);
            let checkpoint = collected.or_else(|| state.ready.as_ref().and_then(Ready::<RunSource>::checkpoint));
            (state.start.clone()?, checkpoint)
        };
        Some(match checkpoint {
            Some(checkpoint) => checkpoint.cursor().to_json(),
            None => start.retry_cursor(&self.report().unwrap_or_default()),
        })
    }

    pub fn report(&self) -> Option<query::Report> {
        self.lock().report.as_ref().map(SharedReport::read)
    }

    pub fn partial(&self) -> Option<query::Records> {
        let partial = self.lock().partial.clone();
        partial.map(|partial| partial.read())
    }

    pub fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock().error.as_ref().map(|error| error.clone_ref(py))
    }

    pub fn set_error(&self, py: Python<'_>, error: PyErr) {
        let error = Some(error.into_value(py).into_any());
        let before = std::mem::replace(&mut self.lock().error, error);
        drop(before);
    }

    /// The exception of an error of the run, which the run keeps.
    pub fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        let error = errors::raise_with_note(py, error, self.cursor(), self.continuation().as_deref());
        // An exception that takes no attributes is raised as it is.
        drop(error.value(py).setattr("partial", self.records()));
        self.set_error(py, error.clone_ref(py));
        error
    }

    /// An exception that ended a wait for the run: of a signal, or of a call that was not possible.
    pub fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        errors::interrupted(py, raised, |exception| self.annotate(exception))
    }

    /// Adds to an exception what the run has fetched, and how to continue.
    pub fn annotate(&self, exception: &Bound<'_, PyAny>) {
        errors::annotate(exception, self.cursor(), self.continuation().as_deref());
        drop(exception.setattr("partial", self.records()));
    }

    /// Records that the run has fetched.
    fn records(&self) -> Option<Records> {
        let numbers = self.lock().start.as_ref().and_then(|start| start.query().client().settings().numbers);
        self.partial().map(|records| Records::new(records, self.report().unwrap_or_default(), numbers))
    }

    /// A sentence on the records that were fetched, if there are any.
    fn continuation(&self) -> Option<String> {
        let state = self.lock();
        let collected = state.partial.as_ref().filter(|partial| partial.checkpoint().is_some());
        match collected.map(|partial| partial.read().len()) {
            Some(0) => None,
            Some(count) => Some(format!(
                "{} in query.partial, and client.resume(query.cursor) fetches the rest; the error has both, \
                     as error.partial and error.cursor",
                kept(count)
            )),
            None if state.ready.as_ref().and_then(Ready::<RunSource>::checkpoint).is_some() => Some(STREAM_NOTE.into()),
            // Fetched for a batch that was not returned.
            None => match state.partial.as_ref().map_or(0, |partial| partial.read().len()) {
                0 => None,
                count => Some(format!(
                    "no record was returned: client.resume(error.cursor) begins again; {} in query.partial and error.partial",
                    kept(count)
                )),
            },
        }
    }

    /// Raises or warns at the end of a run if its result was not shown to be complete.
    pub fn ended(&self, py: Python<'_>, client: &Client, report: &SharedReport, partial: &Partial) -> PyResult<()> {
        let report = report.read();
        let settings = client.settings();
        let partial = (!report.complete).then(|| Records::new(partial.read(), report.clone(), settings.numbers));
        report_incomplete(py, settings.strict, Report { inner: report }, partial)
    }

    /// Visits the error, for the one object that owns it as the garbage collector sees it: the query.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(state) => state.error.as_ref().map_or(Ok(()), |error| visit.call(error)),
            Err(_) => Ok(()),
        }
    }

    pub fn clear(&self) {
        let error = self.lock().error.take();
        drop(error);
    }
}

fn kept(count: usize) -> String {
    match count {
        1 => "1 record is kept".into(),
        _ => format!("{} records are kept", html::count(count as u64)),
    }
}
