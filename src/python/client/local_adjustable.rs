//! Settings of `LocalService` that can change while it runs.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::local_server::{LocalService, delay, faults, logged, quirks, raise};
use crate::python::base::arguments::DeferredArg;
use crate::python::base::{errors, finalize};
use crate::service::{Fault, FaultKind, RequestEntry, Respond, read_fault};

#[pymethods]
impl LocalService {
    #[getter]
    fn faults_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.faults()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn set_faults(&self, py: Python<'_>, json_text: &str) -> PyResult<()> {
        self.inner.set_faults(faults(py, json_text)?).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn unused_faults_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.unused_faults()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    #[getter]
    fn quirks_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.quirks()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    #[getter]
    fn unused_quirks_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.unused_quirks()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn set_quirks(&self, py: Python<'_>, json_text: &str) -> PyResult<()> {
        self.inner.set_quirks(quirks(py, json_text)?).map_err(|error| raise(py, &error))
    }

    /// Sets a function of a logged request that returns a fault as JSON, or None.
    fn set_respond(&self, respond: Option<Py<PyAny>>) {
        self.inner.set_respond(respond.map(|function| {
            let respond: Respond = Arc::new(move |entry: &RequestEntry| call_respond(&function, entry));
            respond
        }));
    }

    #[getter]
    fn respond_errors(&self) -> Vec<String> {
        self.inner.respond_errors()
    }

    #[getter]
    fn growth(&self) -> u32 {
        self.inner.growth()
    }

    fn set_growth(&self, py: Python<'_>, growth: DeferredArg<u32>) -> PyResult<()> {
        self.inner.set_growth(growth.named("growth").map_err(|error| errors::raise(py, &error))?);
        Ok(())
    }

    #[getter]
    fn reorg(&self) -> Option<(u64, u32)> {
        self.inner.reorg()
    }

    fn set_reorg(&self, py: Python<'_>, reorg: Option<DeferredArg<(u64, u32)>>) -> PyResult<()> {
        let reorg = reorg.map(|reorg| reorg.named("reorg")).transpose().map_err(|error| errors::raise(py, &error))?;
        self.inner.set_reorg(reorg).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn late(&self) -> Option<(f64, u32)> {
        self.inner.late().map(|late| (late.share, late.heights))
    }

    fn set_late(&self, py: Python<'_>, late: Option<DeferredArg<(f64, u32)>>) -> PyResult<()> {
        let late = late.map(|late| delay(late, "late")).transpose().map_err(|error| errors::raise(py, &error))?;
        self.inner.set_late(late).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn pending(&self) -> Option<(f64, u32)> {
        self.inner.pending().map(|pending| (pending.share, pending.heights))
    }

    fn set_pending(&self, py: Python<'_>, pending: Option<DeferredArg<(f64, u32)>>) -> PyResult<()> {
        let pending = pending.map(|pending| delay(pending, "pending")).transpose();
        self.inner.set_pending(pending.map_err(|error| errors::raise(py, &error))?).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn rate_limit(&self) -> Option<f64> {
        self.inner.rate_limit()
    }

    fn set_rate_limit(&self, py: Python<'_>, rate: Option<DeferredArg<f64>>) -> PyResult<()> {
        let rate = rate.map(|rate| rate.named("rate_limit")).transpose().map_err(|error| errors::raise(py, &error))?;
        self.inner.set_rate_limit(rate).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn clock_skew(&self) -> f64 {
        self.inner.clock_skew()
    }

    fn set_clock_skew(&self, py: Python<'_>, seconds: DeferredArg<f64>) -> PyResult<()> {
        let seconds = seconds.named("clock_skew").map_err(|error| errors::raise(py, &error))?;
        self.inner.set_clock_skew(seconds).map_err(|error| raise(py, &error))
    }
}

/// The user's response to a request. An exception goes to `sys.unraisablehook`, as in other threads.
fn call_respond(function: &Py<PyAny>, entry: &RequestEntry) -> Result<Option<FaultKind>, String> {
    let Some(permit) = finalize::enter() else { return Ok(None) };
    let called = Python::try_attach(|py| {
        drop(permit);
        let returned = logged(py, entry).and_then(|request| function.call1(py, (request,)));
        let given = returned.and_then(|given| given.extract::<Option<String>>(py)).map_err(|error| {
            let problem = format!("respond raised {error}");
            error.write_unraisable(py, None);
            problem
        })?;
        let fault = given.map(|text| read_fault(&text)).transpose();
        match fault.map_err(|problem| format!("respond returned an invalid response: {problem}"))? {
            Some(Fault { kind, every: None, times: None, path: None }) => Ok(Some(kind)),
            Some(_) => {
                Err("respond returned every, times or path, which select requests; it selects them itself".to_owned())
            }
            None => Ok(None),
        }
    });
    called.unwrap_or(Ok(None))
}
