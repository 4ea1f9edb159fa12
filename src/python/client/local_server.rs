//! The local service, for the testing kit.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyDict, PyList};

use super::client::Client;
use super::deployment::Deployment;
use super::recorded_response::{called, decode};
use super::simulation::{self, Random};
use crate::client::{self, Environment, Error};
use crate::columns::{Columns, ColumnsBuilder};
use crate::interface::{self, Endpoint};
use crate::process::check_threads;
use crate::python::base::convert;
use crate::python::base::given::GivenSettings;
use crate::service::{
    Compression, Delay, Fault, LoadError, Quirk, RequestEntry, Service, ServiceError, Settings, read_faults,
    read_quirks,
};

#[pyclass(frozen, name = "_LocalService", module = "chainframe._native")]
pub struct LocalService {
    pub(super) inner: Service,
    /// Random numbers of a simulated service.
    random: Option<Random>,
}

pub(super) fn faults(json: &str) -> Result<Vec<Fault>, Error> {
    read_faults(json).map_err(|problem| Error::config("faults", format!("are invalid: {problem}")))
}

pub(super) fn quirks(json: &str) -> Result<Vec<Quirk>, Error> {
    read_quirks(json).map_err(|problem| Error::config("quirks", format!("are invalid: {problem}")))
}

impl From<ServiceError> for PyErr {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Setting { setting, problem } => Error::config(setting, problem).into(),
            other => PyRuntimeError::new_err(other.to_string()),
        }
    }
}

impl From<LoadError> for PyErr {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Cassette(error) => error.into(),
            LoadError::Service(error) => error.into(),
            LoadError::Path { .. } => Error::config("deployment", error.to_string()).into(),
        }
    }
}

getters! { LocalService { url(): &str, request_count(): u64 } }

#[pymethods]
impl LocalService {
    #[new]
    #[pyo3(signature = (**settings))]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = GivenSettings::new(py, settings);
        let simulated: bool = given.required("simulated")?;
        let settings = Settings {
            faults: faults(&given.required::<String>("faults_json")?)?,
            quirks: quirks(&given.required::<String>("quirks_json")?)?,
            transactions: given.required("transactions")?,
            seed: given.required("seed")?,
            deployment: windowed(
                given.required::<Py<Deployment>>("deployment")?.get(),
                given.optional("max_result_window")?,
            )?,
            main_chain: given.required("main_chain")?,
            zone_chain: given.required("zone_chain")?,
            rate_limit: given.optional("rate_limit")?,
            growth: given.required("growth")?,
            growth_rate: given.optional("growth_rate")?,
            reorg: given.optional("reorg")?,
            late: given.optional::<(f64, u32)>("late")?.map(Delay::from),
            pending: given.optional::<(f64, u32)>("pending")?.map(Delay::from),
            compression: given.optional::<String>("compression")?.map(|name| read_compression(&name)).transpose()?,
            db: given.optional("db")?,
            port: given.required("port")?,
            ..Settings::default()
        };
        let started: Result<_, ServiceError> = py.detach(|| {
            if !simulated {
                check_threads(Service::THREADS).map_err(ServiceError::Start)?;
                // Tokio panics where a thread is not to be had.
                let started = catch_unwind(AssertUnwindSafe(|| Service::start(settings)));
                let started = started.unwrap_or_else(|_| Err(ServiceError::Start(ErrorKind::WouldBlock.into())));
                return Ok(Self { inner: started?, random: None });
            }
            let (time, random) = simulation::world(settings.seed).map_err(ServiceError::Start)?;
            Ok(Self { inner: Service::simulate(settings, time)?, random: Some(random) })
        });
        Ok(started?)
    }

    /// The deployment that the service implements, with its result window.
    #[getter]
    fn deployment(&self) -> Deployment {
        Deployment { inner: self.inner.settings().deployment.clone() }
    }

    /// Returns a client with the settings of `client`, of this simulated service.
    fn simulate(&self, client: &Bound<'_, Client>) -> PyResult<Client> {
        let py = client.py();
        let given = client.get();
        let Some(((service, time), random)) = self.inner.simulated().zip(self.random.clone()) else {
            return Err(PyRuntimeError::new_err("the service is not simulated"));
        };
        let settings = given.inner.settings().clone();
        let Environment { observer, credentials, .. } = given.inner.environment().clone();
        let environment = simulation::environment(service, time, random, settings.max_response_bytes, observer);
        let environment = Environment { credentials, ..environment };
        let inner = client::Client::with_environment(settings, environment)?;
        let callables = given.callables.derived(py, client.clone().into_any().as_unbound());
        Client::of(py, inner, given.progress, callables)
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

    fn request_log<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let log = PyList::empty(py);
        for entry in self.inner.request_log() {
            log.append(logged(py, &entry)?)?;
        }
        Ok(log)
    }

    fn reset_request_log(&self) {
        self.inner.reset_request_log();
    }

    /// Loads records. `columns` has the values of each field, and `sources` names where each row was found.
    fn load(&self, py: Python<'_>, call: &str, columns: &Bound<'_, PyDict>, sources: Vec<String>) -> PyResult<()> {
        let endpoint = called(call)?;
        let records = build(endpoint, columns, &sources)?;
        self.put(py, endpoint, &records, |row| sources[row].clone())
    }

    /// Loads the records of a response's body.
    fn load_body(&self, py: Python<'_>, call: &str, body: &[u8], source: &str) -> PyResult<()> {
        let endpoint = called(call)?;
        let records = decode(endpoint, &self.inner.settings().deployment, body, source)?;
        self.put(py, endpoint, &records, |row| format!("{source}: record {row}"))
    }

    fn load_cassette(&self, py: Python<'_>, path: PathBuf) -> PyResult<usize> {
        Ok(py.detach(|| self.inner.load_cassette(&path))?)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop());
    }
}

impl LocalService {
    /// Loads records. `source` names where a row was found.
    fn put(
        &self,
        py: Python<'_>,
        endpoint: &'static Endpoint,
        records: &Columns,
        source: impl Fn(usize) -> String,
    ) -> PyResult<()> {
        let selecting = selecting(endpoint);
        if let Some(row) = unselected(records, &selecting) {
            let columns = selecting.join(" or ");
            let problem = format!("{} must have {columns}: no request returns it without", source(row));
            return Err(Error::Rows { endpoint: endpoint.name, problem }.into());
        }
        Ok(py.detach(|| self.inner.load(endpoint, records))?)
    }
}

/// The columns by which the required argument of an endpoint selects records; none if it has no such argument.
fn selecting(endpoint: &Endpoint) -> Vec<&'static str> {
    let Some(required) = endpoint.params.iter().find(|param| param.required) else { return Vec::new() };
    if !required.bounds.is_empty() {
        return required.bounds.iter().map(|(column, _)| *column).collect();
    }
    // An address may be on one of two sides, which another argument names.
    let bounds = endpoint.params.iter().flat_map(|param| param.bounds);
    bounds.filter(|(_, bound)| matches!(bound, interface::Bound::Side { .. })).map(|(column, _)| *column).collect()
}

/// The first row that no request returns, since it lacks what the required argument selects by.
fn unselected(records: &Columns, selecting: &[&str]) -> Option<usize> {
    let fields = records.record().fields.iter().enumerate();
    let columns: Vec<usize> = fields.filter(|(_, field)| selecting.contains(&field.name)).map(|(at, _)| at).collect();
    let lacks = |row: &usize| columns.iter().all(|column| records.text(*column, *row).is_none_or(str::is_empty));
    (0..records.rows()).filter(|_| !columns.is_empty()).find(lacks)
}

pub(super) fn logged<'py>(py: Python<'py>, entry: &RequestEntry) -> PyResult<Bound<'py, PyDict>> {
    let request = PyDict::new(py);
    request.set_item("time", convert::datetime(py, entry.time.timestamp_millis())?)?;
    request.set_item("method", &entry.method)?;
    request.set_item("path", &entry.path)?;
    request.set_item("query", &entry.query)?;
    request.set_item("headers", entry.headers.clone().into_py_dict(py)?)?;
    request.set_item("status", entry.status)?;
    request.set_item("code", &entry.code)?;
    request.set_item("faults", &entry.faults)?;
    Ok(request)
}

impl From<(f64, u32)> for Delay {
    fn from((share, heights): (f64, u32)) -> Self {
        Self { share, heights }
    }
}

fn read_compression(name: &str) -> Result<Compression, Error> {
    match name {
        "gzip" => Ok(Compression::Gzip),
        other => Err(Error::config("compression", format!("must be \"gzip\" or None; got {other:?}"))),
    }
}

/// The deployment, with the result window of the service.
fn windowed(deployment: &Deployment, result_window: Option<u64>) -> Result<interface::Deployment, Error> {
    let deployment = &deployment.inner;
    let Some(window) = result_window else { return Ok(deployment.clone()) };
    let set = deployment.clone().with_windows(window, deployment.log_window());
    set.map_err(|error| Error::config("max_result_window", error.problem))
}

/// Columns of an endpoint's records from the values of each field. `sources` names where each row was found.
pub(super) fn build(endpoint: &'static Endpoint, columns: &Bound<'_, PyDict>, sources: &[String]) -> PyResult<Columns> {
    let record = endpoint.record();
    let mut lists = Vec::new();
    for (column, field) in record.fields.iter().enumerate() {
        if let Some(values) = columns.get_item(field.name)? {
            lists.push((column, field, values.cast_into::<PyList>()?));
        }
    }
    let mut rows = ColumnsBuilder::new(record, sources.len());
    for (row, source) in sources.iter().enumerate() {
        for (column, field, values) in &lists {
            let value = values.get_item(row)?;
            convert::put(&mut rows, *column, field.kind, &value)?.map_err(|problem| {
                let problem = format!("{source}: {} {problem}", field.name);
                PyErr::from(Error::Rows { endpoint: endpoint.name, problem })
            })?;
        }
        rows.finish_row();
    }
    Ok(rows.finish())
}
