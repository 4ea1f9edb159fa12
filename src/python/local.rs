//! The local service, as the testing kit drives it.

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arguments::Whole;
use super::deployment::Deployment;
use super::{convert, errors};
use crate::client::Error;
use crate::columns::{Columns, ColumnsBuilder};
use crate::decode::{Answer, Decoder};
use crate::interface::{ENDPOINTS, Endpoint, endpoint};
use crate::service::{Fault, LoadError, Service, ServiceError, Settings};

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
        *, transactions, seed, deployment, rate_limit, growth, growth_rate, reorg, faults_json, reach, db, port, main_chain, zone_chain,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the settings, all by keyword")]
    fn new(
        py: Python<'_>,
        transactions: Whole,
        seed: Whole,
        deployment: &Bound<'_, Deployment>,
        rate_limit: Option<f64>,
        growth: Whole,
        growth_rate: Option<f64>,
        reorg: Option<(Whole, Whole)>,
        faults_json: &str,
        reach: Whole,
        db: Option<PathBuf>,
        port: Whole,
        main_chain: String,
        zone_chain: String,
    ) -> PyResult<Self> {
        let refuse = |error: Error| errors::raise(py, &error);
        let settings = Settings {
            transactions: transactions.setting("transactions").map_err(refuse)?,
            seed: seed.setting("seed").map_err(refuse)?,
            deployment: deployment.get().inner.clone(),
            main_chain,
            zone_chain,
            reach: reach.setting("reach").map_err(refuse)?,
            rate_limit,
            growth: growth.setting("growth").map_err(refuse)?,
            growth_rate,
            reorg: reorg.map(|(n, m)| Ok((n.setting("reorg")?, m.setting("reorg")?))).transpose().map_err(refuse)?,
            faults: faults(py, faults_json)?,
            db,
            port: port.setting("port").map_err(refuse)?,
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

    fn clear_requests(&self) {
        self.inner.clear_requests();
    }

    #[getter]
    fn faults_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.faults()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn set_faults(&self, py: Python<'_>, json_text: &str) -> PyResult<()> {
        self.inner.set_faults(faults(py, json_text)?);
        Ok(())
    }

    #[getter]
    fn growth(&self) -> u32 {
        self.inner.growth()
    }

    fn set_growth(&self, py: Python<'_>, growth: Whole) -> PyResult<()> {
        let growth = growth.setting("growth").map_err(|error| errors::raise(py, &error))?;
        self.inner.set_growth(growth);
        Ok(())
    }

    #[getter]
    fn rate_limit(&self) -> Option<f64> {
        self.inner.rate_limit()
    }

    fn set_rate_limit(&self, py: Python<'_>, rate: Option<f64>) -> PyResult<()> {
        self.inner.set_rate_limit(rate).map_err(|error| raise(py, &error))
    }

    #[getter]
    fn clock_ahead(&self) -> f64 {
        self.inner.clock_ahead()
    }

    fn set_clock_ahead(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.inner.set_clock_ahead(seconds).map_err(|error| raise(py, &error))
    }

    /// `columns` are lists of values, by the fields of the call's record.
    fn load(&self, py: Python<'_>, call: &str, columns: &Bound<'_, PyDict>) -> PyResult<()> {
        let endpoint = called(py, call)?;
        let record = endpoint.record();
        let mut lists = Vec::new();
        for (column, field) in record.fields.iter().enumerate() {
            if let Some(values) = columns.get_item(field.name)? {
                lists.push((column, field, values.cast_into::<PyList>()?));
            }
        }
        let count = lists.first().map_or(0, |(.., values)| values.len());
        let mut rows = ColumnsBuilder::new(record, count);
        for row in 0..count {
            for (column, field, values) in &lists {
                let value = values.get_item(row)?;
                convert::put(&mut rows, *column, field.kind, &value)?.map_err(|problem| {
                    let problem = format!("row {row} has a {} that {problem}", field.name);
                    errors::raise(py, &Error::config(endpoint.name, problem))
                })?;
            }
            rows.end_row();
        }
        self.put(py, endpoint, &rows.finish())
    }

    /// The records of an answer's body.
    fn load_body(&self, py: Python<'_>, call: &str, body: &[u8]) -> PyResult<()> {
        let endpoint = called(py, call)?;
        let refuse = |problem: String| Err(errors::raise(py, &Error::config(endpoint.name, problem)));
        match Decoder::new(endpoint, &self.inner.settings().deployment).decode(body, 64) {
            Ok(Answer::Page(page)) => self.put(py, endpoint, &page.columns),
            Ok(Answer::Refused { code, .. }) => refuse(format!("the answer is an error, of code {code}")),
            Err(error) => refuse(format!("{}: {}", error.path(), error.problem)),
        }
    }

    fn load_answers(&self, py: Python<'_>, path: PathBuf) -> PyResult<usize> {
        py.detach(|| self.inner.load_answers(&path)).map_err(|error| match error {
            LoadError::Cassette(error) => errors::raise(py, &error.into()),
            LoadError::Service(error) => raise(py, &error),
            LoadError::Path { .. } => errors::raise(py, &Error::config("deployment", error.to_string())),
        })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }
}

impl LocalService {
    fn put(&self, py: Python<'_>, endpoint: &'static Endpoint, records: &Columns) -> PyResult<()> {
        py.detach(|| self.inner.load(endpoint, records)).map_err(|error| raise(py, &error))
    }
}

fn called(py: Python<'_>, call: &str) -> PyResult<&'static Endpoint> {
    let names: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
    endpoint(call).ok_or_else(|| {
        let problem = format!("{call:?} is no call of a client; there are {}", names.join(", "));
        errors::raise(py, &Error::config("data", problem))
    })
}
