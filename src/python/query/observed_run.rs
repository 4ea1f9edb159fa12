//! A run that instrumentation observes.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::client::Error;
use crate::client::log::Context;
use crate::process;
use crate::python::base::{errors, log, telemetry};
use crate::python::results::report::Report;
use crate::query::{self, RunObserver};

struct ObservedRun {
    context: Context,
    end: Py<PyAny>,
    error: Option<Error>,
    /// A forked child has a copy, which is not its own to end.
    process: u32,
}

/// Begins the observation of a run, if there is instrumentation. An exception of it is reported as unraisable.
pub fn observer(py: Python<'_>, call: &str) -> Option<Box<dyn RunObserver>> {
    if !telemetry::is_active() {
        return None;
    }
    let begin = telemetry::begin(py)?;
    match begin.call1(py, (call,)).and_then(|observation| observation.extract::<(Py<PyAny>, Py<PyAny>)>(py)) {
        Ok((context, end)) => {
            Some(Box::new(ObservedRun { context: Arc::new(context), end, error: None, process: process::id() }))
        }
        Err(error) => {
            error.write_unraisable(py, Some(begin.bind(py)));
            None
        }
    }
}

impl RunObserver for ObservedRun {
    fn context(&self) -> Context {
        self.context.clone()
    }

    fn failed(&mut self, error: &Error) {
        self.error = Some(error.clone());
    }

    fn ended(self: Box<Self>, report: query::Report) {
        if self.process != process::id() {
            return;
        }
        let Self { context, end, error, .. } = *self;
        log::call_in_handler(
            Some(context),
            move |_| Some(end),
            move |py| {
                let error = error.map(|error| errors::raise(py, &error).into_value(py));
                Ok((Report { inner: report }, error).into_pyobject(py)?.into_any().unbind())
            },
        );
    }
}
