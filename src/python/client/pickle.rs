//! Copies of a client: the same one within a process, and one with the same settings in another.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::cassette::Cassette;
use super::client::Client;
use crate::client::{Concurrency, Proxy, RateLimit};
use crate::python::base::pickle::{Reduced, reduced};

#[pymethods]
impl Client {
    /// A client is shared, not copied: a copy through pickling would have lost its secrets.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        if self.inner.virtual_time().is_some() {
            let message = "cannot pickle a client of a simulated LocalService: the service exists in this process only";
            return Err(PyTypeError::new_err(message));
        }
        let settings = self.inner.settings();
        let given = PyDict::new(py);
        given.set_item("base_url", settings.base_url())?;
        given.set_item("main_chain", &settings.main_chain)?;
        given.set_item("zone_chain", &settings.zone_chain)?;
        given.set_item("deployment", self.deployment())?;
        given.set_item("timeout", settings.timeout.as_secs_f64())?;
        given.set_item("deadline", settings.deadline.map(|deadline| deadline.as_secs_f64()))?;
        given.set_item("max_retries", settings.max_retries)?;
        match settings.rate_limit {
            RateLimit::Auto => given.set_item("rate_limit", "auto")?,
            RateLimit::PerSecond(rate) => given.set_item("rate_limit", rate)?,
            RateLimit::Unlimited => given.set_item("rate_limit", py.None())?,
        }
        given.set_item("max_requests", settings.max_requests)?;
        match settings.concurrency {
            Concurrency::Auto => given.set_item("concurrency", "auto")?,
            Concurrency::Fixed(requests) => given.set_item("concurrency", requests)?,
        }
        given.set_item("strict", settings.strict)?;
        given.set_item("numbers", self.numbers())?;
        given.set_item("max_response_bytes", settings.max_response_bytes)?;
        // Without user name and password, which the other process has to take from its environment.
        given.set_item("proxy", settings.proxy.as_ref().map(Proxy::address))?;
        given.set_item("proxy_has_credentials", settings.proxy.as_ref().is_some_and(Proxy::has_credentials))?;
        given.set_item("ca_bundle", &settings.ca_bundle)?;
        given.set_item("cassette", settings.cassette.clone().map(|inner| Cassette { inner }))?;
        given.set_item("cache", self.cache())?;
        given.set_item("progress", self.progress.into_python(py))?;
        given.set_item("on_attempt", self.callables.on_attempt.get(py))?;
        given.set_item("credentials", self.callables.credentials.get(py))?;
        reduced(py, "_restore_client", (given,))
    }
}

/// The client of another process from the settings that `__reduce__` sent. Secrets come from the environment here.
#[pyfunction]
pub fn _restore_client<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    let has_credentials = given.get_item("proxy_has_credentials")?.is_some_and(|flag| flag.is_truthy().unwrap_or(true));
    let given = given.copy()?;
    given.del_item("proxy_has_credentials")?;
    if has_credentials && let Some(address) = given.get_item("proxy")? {
        let address: String = address.extract()?;
        let restored = Proxy::with_credentials_of_environment(&address)?;
        given.set_item("proxy", restored)?;
    }
    py.get_type::<Client>().call((), Some(&given))
}
