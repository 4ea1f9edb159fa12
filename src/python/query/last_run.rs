//! The runs of a query: each for what takes its records, and the most recent one for the query.

use std::sync::{Arc, Mutex};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::feed::Ready;
use super::observed_run;
use super::run_source::RunSource;
use crate::client::Error;
use crate::display::html;
use crate::process::lock;
use crate::python::base::errors;
use crate::python::base::finalize;
use crate::python::results::incomplete::report_incomplete;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{self, Checkpoint, Partial, QueryStart, Run, SharedReport};

/// Note on an error of an iteration that has returned something.
const STREAM_NOTE: &str = "client.resume(error.cursor) continues after the last record that was returned";

/// Shared by a query and the takers of its runs. Locked only while the interpreter is held, and never while Python code runs.
#[derive(Default)]
pub struct LastRun(Mutex<Latest>);

#[derive(Default)]
struct Latest {
    run: Option<Arc<RunState>>,
    error: Option<Py<PyAny>>,
}

/// One run, for what takes its records: another one of the same query may begin meanwhile.
#[derive(Clone)]
pub struct BegunRun {
    last: Arc<LastRun>,
    state: Arc<RunState>,
}

/// Records that were fetched.
enum Fetched {
    Kept(Partial),
    /// A caller has taken them, up to this position.
    Taken(Option<Checkpoint>),
}

struct RunState {
    report: SharedReport,
    start: QueryStart,
    fetched: Mutex<Fetched>,
    /// Items that an iteration over the run has returned and will return.
    ready: Mutex<Option<Ready<RunSource>>>,
}

impl LastRun {
    /// Replaces the last run by one that begins.
    pub fn begin(self: &Arc<Self>, py: Python<'_>, start: &QueryStart, mut run: Run) -> PyResult<(Run, BegunRun)> {
        finalize::check(py)?;
        if let Some(observer) = observed_run::observer(py, start.query().endpoint().name) {
            run.observe(observer);
        }
        let state = Arc::new(RunState {
            report: run.report().clone(),
            start: start.clone(),
            fetched: Mutex::new(Fetched::Kept(run.partial().clone())),
            ready: Mutex::default(),
        });
        let latest = Latest { run: Some(state.clone()), error: None };
        let before = std::mem::replace(&mut *lock(&self.0), latest);
        // Not under the lock: the end of an exception may run Python code.
        drop(before);
        Ok((run, BegunRun { last: self.clone(), state }))
    }

    fn run(&self) -> Option<Arc<RunState>> {
        lock(&self.0).run.clone()
    }

    /// Cursor after what was returned; None before the first run.
    pub fn cursor(&self) -> Option<String> {
        self.run().map(|run| run.cursor())
    }

    pub fn report(&self) -> Option<query::Report> {
        self.run().map(|run| run.report.read())
    }

    pub fn partial(&self) -> Option<query::Records> {
        self.run()?.partial()
    }

    pub fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.0).error.as_ref().map(|error| error.clone_ref(py))
    }

    /// Visits the error, for the one object that owns it as the garbage collector sees it: the query.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(state) => state.error.as_ref().map_or(Ok(()), |error| visit.call(error)),
            Err(_) => Ok(()),
        }
    }

    pub fn clear(&self) {
        let error = lock(&self.0).error.take();
        drop(error);
    }
}

impl RunState {
    fn cursor(&self) -> String {
        let collected = match &*lock(&self.fetched) {
            Fetched::Kept(partial) => partial.checkpoint(),
            Fetched::Taken(checkpoint) => checkpoint.clone(),
        };
        let checkpoint = collected.or_else(|| lock(&self.ready).as_ref().and_then(Ready::<RunSource>::checkpoint));
        match checkpoint {
            Some(checkpoint) => checkpoint.cursor().to_json(),
            None => self.start.retry_cursor(&self.report.read()),
        }
    }

    fn partial(&self) -> Option<query::Records> {
        self.kept().map(|partial| partial.read())
    }

    fn kept(&self) -> Option<Partial> {
        if let Fetched::Kept(partial) = &*lock(&self.fetched) { Some(partial.clone()) } else { None }
    }

    /// Records that the run has fetched.
    fn records(&self) -> Option<Records> {
        let numbers = self.start.query().client().settings().numbers;
        self.partial().map(|records| Records::new(records, self.report.read(), numbers))
    }

    /// A sentence on the records that were fetched, if there are any.
    fn continuation(&self) -> Option<String> {
        let partial = self.kept();
        let count = partial.as_ref().map_or(0, |partial| partial.read().len());
        let is_collected = partial.is_some_and(|partial| partial.checkpoint().is_some());
        if !is_collected && lock(&self.ready).as_ref().and_then(Ready::<RunSource>::checkpoint).is_some() {
            return Some(STREAM_NOTE.into());
        }
        if count == 0 {
            return None;
        }
        let kept = kept(count);
        Some(if is_collected {
            format!(
                "{kept} in query.partial, and client.resume(query.cursor) fetches the rest; the error has both, \
                 as error.partial and error.cursor"
            )
        } else {
            // Fetched for a batch that was not returned.
            format!(
                "no record was returned: client.resume(error.cursor) begins again; {kept} in query.partial and error.partial"
            )
        })
    }
}

impl BegunRun {
    /// Takes the cursor from what an iteration returns.
    pub fn follow(&self, ready: &Ready<RunSource>) {
        *lock(&self.state.ready) = Some(ready.clone());
    }

    /// Lets go of the records, which a caller has taken.
    pub fn release_partial(&self) {
        let checkpoint = self.state.kept().and_then(|partial| partial.checkpoint());
        *lock(&self.state.fetched) = Fetched::Taken(checkpoint);
    }

    /// Keeps an error for the query, unless another run has begun.
    pub fn set_error(&self, py: Python<'_>, error: PyErr) {
        let error = Some(error.into_value(py).into_any());
        let mut latest = lock(&self.last.0);
        if latest.run.as_ref().is_some_and(|run| Arc::ptr_eq(run, &self.state)) {
            let before = std::mem::replace(&mut latest.error, error);
            drop(latest);
            drop(before);
        }
    }

    /// The exception of an error of the run, which the run keeps.
    pub fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        let state = &self.state;
        state.report.mark_raised();
        let error = errors::raise_with_note(py, error, Some(state.cursor()), state.continuation().as_deref());
        // An exception that takes no attributes is raised as it is.
        drop(error.value(py).setattr("partial", state.records()));
        self.set_error(py, error.clone_ref(py));
        error
    }

    /// An exception that ended a wait for the run: of a signal, or of a call that was not possible.
    pub fn interrupted(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        errors::interrupted(py, raised, |exception| self.annotate(exception))
    }

    /// Adds to an exception what the run has fetched, and how to continue.
    pub fn annotate(&self, exception: &Bound<'_, PyAny>) {
        errors::annotate(exception, Some(self.state.cursor()), self.state.continuation().as_deref());
        drop(exception.setattr("partial", self.state.records()));
    }

    /// Raises or warns at the end of a run if its result was not shown to be complete.
    pub fn ended(&self, py: Python<'_>) -> PyResult<()> {
        let report = self.state.report.read();
        let partial = if report.complete { None } else { self.state.records() };
        let is_strict = self.state.start.query().client().settings().strict;
        report_incomplete(py, is_strict, Report { inner: report }, partial)
    }
}

fn kept(count: usize) -> String {
    match count {
        1 => "1 record is kept".into(),
        _ => format!("{} records are kept", html::count(count as u64)),
    }
}
