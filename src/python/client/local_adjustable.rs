//! Settings of `LocalService` that can change while it runs.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;

use super::local_server::{LocalService, faults, logged, quirks};
use crate::python::base::arguments::{DeferredArg, named};
use crate::python::base::finalize;
use crate::service::{Delay, Fault, FaultKind, RequestEntry, Respond, read_fault};

getters! { LocalService {
    respond_errors(): Vec<String>, growth(): u32, reorg(): Option<(u64, u32)>, rate_limit(): Option<f64>,
    clock_skew(): f64,
} }

#[pymethods]
impl LocalService {
    #[getter]
    fn faults_json(&self) -> PyResult<String> {
        as_json(&self.inner.faults())
    }

    fn set_faults(&self, json_text: &str) -> PyResult<()> {
        Ok(self.inner.set_faults(faults(json_text)?)?)
    }

    #[getter]
    fn unused_faults_json(&self) -> PyResult<String> {
        as_json(&self.inner.unused_faults())
    }

    #[getter]
    fn quirks_json(&self) -> PyResult<String> {
        as_json(&self.inner.quirks())
    }

    #[getter]
    fn unused_quirks_json(&self) -> PyResult<String> {
        as_json(&self.inner.unused_quirks())
    }

    fn set_quirks(&self, json_text: &str) -> PyResult<()> {
        Ok(self.inner.set_quirks(quirks(json_text)?)?)
    }

    /// Sets a function of a logged request that returns a fault as JSON, or None.
    fn set_respond(&self, respond: Option<Py<PyAny>>) {
        self.inner.set_respond(respond.map(|function| {
            let respond: Respond = Arc::new(move |entry: &RequestEntry| call_respond(&function, entry));
            respond
        }));
    }

    fn set_growth(&self, growth: DeferredArg<u32>) -> PyResult<()> {
        self.inner.set_growth(growth.named("growth")?);
        Ok(())
    }

    fn set_reorg(&self, reorg: Option<DeferredArg<(u64, u32)>>) -> PyResult<()> {
        Ok(self.inner.set_reorg(named("reorg", reorg)?)?)
    }

    #[getter]
    fn late(&self) -> Option<(f64, u32)> {
        self.inner.late().map(|late| (late.share, late.heights))
    }

    fn set_late(&self, late: Option<DeferredArg<(f64, u32)>>) -> PyResult<()> {
        Ok(self.inner.set_late(named("late", late)?.map(Delay::from))?)
    }

    #[getter]
    fn pending(&self) -> Option<(f64, u32)> {
        self.inner.pending().map(|pending| (pending.share, pending.heights))
    }

    fn set_pending(&self, pending: Option<DeferredArg<(f64, u32)>>) -> PyResult<()> {
        Ok(self.inner.set_pending(named("pending", pending)?.map(Delay::from))?)
    }

    fn set_rate_limit(&self, rate: Option<DeferredArg<f64>>) -> PyResult<()> {
        Ok(self.inner.set_rate_limit(named("rate_limit", rate)?)?)
    }

    fn set_clock_skew(&self, seconds: DeferredArg<f64>) -> PyResult<()> {
        Ok(self.inner.set_clock_skew(seconds.named("clock_skew")?)?)
    }
}

fn as_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
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
