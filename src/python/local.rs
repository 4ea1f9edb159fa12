//! The local service, as the testing kit drives it.

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::deployment::Deployment;
use super::errors;
use crate::client::Error;
use crate::service::{Fault, Service, ServiceError, Settings};

#[pyclass(frozen, name = "_LocalService", module = "chainframe._native")]
pub struct LocalService {
    inner: Service,
}

fn faults(py: Python<'_>, json: &str) -> PyResult<Vec<Fault>> {
    serde_json::from_str(json).map_err(|error| errors::raise(py, &Error::config("faults", error.to_string())))
}

fn raise(py: Python<'_>, error: &ServiceError) -> PyErr {
    match error {
        ServiceError::Setting { setting, problem } => errors::raise(py, &Error::config(setting, problem.as_str())),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

#[pymethods]
impl LocalService {
    #[new]
    #[pyo3(signature = (
        *, transactions, seed, deployment, rate_limit, growth, faults_json, reach, db, port, main_chain, zone_chain,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        transactions: u64,
        seed: u64,
        deployment: &Bound<'_, Deployment>,
        rate_limit: Option<f64>,
        growth: u32,
        faults_json: &str,
        reach: u64,
        db: Option<PathBuf>,
        port: u16,
        main_chain: String,
        zone_chain: String,
    ) -> PyResult<Self> {
        let settings = Settings {
            transactions,
            seed,
            deployment: deployment.get().inner.clone(),
            main_chain,
            zone_chain,
            reach,
            rate_limit,
            growth,
            faults: faults(py, faults_json)?,
            db,
            port,
            ..Settings::default()
        };
        let started = py.detach(|| Service::start(settings));
        started.map(|inner| Self { inner }).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn url(&self) -> &str {
        self.inner.url()
    }

    #[getter]
    fn api_key(&self) -> &str {
        &self.inner.settings().credentials.api_key
    }

    #[getter]
    fn secret_key(&self) -> &str {
        &self.inner.settings().credentials.secret_key
    }

    #[getter]
    fn passphrase(&self) -> &str {
        &self.inner.settings().credentials.passphrase
    }

    #[getter]
    fn main_chain(&self) -> &str {
        &self.inner.settings().main_chain
    }

    #[getter]
    fn zone_chain(&self) -> &str {
        &self.inner.settings().zone_chain
    }

    #[getter]
    fn requests(&self) -> u64 {
        self.inner.requests()
    }

    fn request_log<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let log = PyList::empty(py);
        for entry in self.inner.request_log() {
            let request = PyDict::new(py);
            request.set_item("method", entry.method)?;
            request.set_item("path", entry.path)?;
            request.set_item("query", entry.query)?;
            request.set_item("status", entry.status)?;
            request.set_item("code", entry.code)?;
            log.append(request)?;
        }
        Ok(log)
    }

    fn set_faults(&self, py: Python<'_>, json_text: &str) -> PyResult<()> {
        self.inner.set_faults(faults(py, json_text)?);
        Ok(())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }
}
