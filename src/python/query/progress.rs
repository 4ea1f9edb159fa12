//! The `progress` setting, and the bar of one run: drawn in Python from what the run's report says meanwhile.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::client::{Client, Error};
use crate::process;
use crate::python::base::arguments;
use crate::python::base::finalize;
use crate::query::{self, Run, SharedReport};

#[derive(Clone, Copy, PartialEq)]
pub enum ProgressMode {
    /// On a terminal or in a notebook, once a run takes long.
    Auto,
    Always,
    Never,
}

impl ProgressMode {
    pub fn into_python(self, py: Python<'_>) -> Py<PyAny> {
        match self {
            Self::Auto => PyString::new(py, "auto").into_any().unbind(),
            Self::Always | Self::Never => PyBool::new(py, self == Self::Always).to_owned().into_any().unbind(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for ProgressMode {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyBool>() {
            Ok(always) => Ok(if always.is_true() { Self::Always } else { Self::Never }),
            // Compared as a string: a column of pandas or polars has no single result of `==`.
            Err(_) if given.extract::<&str>().is_ok_and(|word| word == "auto") => Ok(Self::Auto),
            Err(_) => {
                let problem = format!("must be \"auto\", True or False; got {}", arguments::shown(&given));
                Err(Error::config("progress", problem).into())
            }
        }
    }
}

/// The way in which a run's records reach the caller.
#[derive(Clone, Copy, PartialEq)]
pub enum Delivery {
    /// Together, at the end.
    AtOnce,
    /// Through a library, which may never read them.
    Reader,
    /// In a loop of the caller's, which may print them.
    Loop,
}

impl Delivery {
    const fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::Reader => "reader",
            Self::Loop => "loop",
        }
    }
}

/// Progress bar of a run, if one is shown. Dropping it closes it.
#[derive(Default)]
pub struct Bar(Mutex<Option<Py<PyAny>>>);

impl Bar {
    pub fn of(py: Python<'_>, show: ProgressMode, delivery: Delivery, run: &Run) -> PyResult<Self> {
        if show == ProgressMode::Never {
            return Ok(Self::default());
        }
        let query = run.query();
        let run = RunReport { report: run.report().clone(), client: query.client().clone() };
        let start = py.import("chainframe.progress")?.getattr("start")?;
        let bar = start.call1((run, query.endpoint().name, show == ProgressMode::Always, delivery.name()))?;
        Ok(Self(Mutex::new(if bar.is_none() { None } else { Some(bar.unbind()) })))
    }

    pub fn close(&self) {
        let bar = process::lock(&self.0).take();
        // Not under the lock: closing it runs Python, and so may come back here.
        if let Some(bar) = bar {
            finalize::attach_in_drop(|py| bar.call_method0(py, "close").map(drop));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.close();
    }
}

/// Source of a bar's counts.
#[pyclass(frozen)]
struct RunReport {
    report: SharedReport,
    client: Client,
}

#[pymethods]
impl RunReport {
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let query::Report { pages, records, requests, retries, elapsed, progress, .. } = self.report.read();
        let state = PyDict::new(py);
        state.set_item("unit", progress.unit)?;
        state.set_item("start", progress.start)?;
        state.set_item("done", progress.done)?;
        state.set_item("total", progress.total)?;
        state.set_item("pages", pages)?;
        state.set_item("records", records)?;
        state.set_item("requests", requests)?;
        state.set_item("retries", retries)?;
        state.set_item("elapsed", elapsed.as_secs_f64())?;
        let limiter = self.client.rate_limiter_state();
        state.set_item("rate", if limiter.throttled > 0 { limiter.rate } else { None })?;
        Ok(state)
    }
}
