//! Functions that the Python part of the package calls.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::client::Client;
use crate::client::{self, Environment, Route, Secret, Settings};
use crate::interface;
use crate::python::base::block_on::block_on;

/// For `chainframe doctor`, which signs what is known.
#[pyfunction]
pub fn _signature(secret: String, timestamp: &str, target: &str) -> String {
    client::signature(&interface::Deployment::default(), &Secret::new(secret), timestamp, target)
}

/// For `chainframe doctor`: the URL of the proxy of a client and the setting that has it, or an empty text and the reason
/// why there is none.
#[pyfunction]
pub fn _proxy(client: &Bound<'_, Client>) -> PyResult<(String, &'static str)> {
    match Route::of(client.get().inner.settings()) {
        Ok(Route::Proxy(proxy)) => Ok((proxy.url().to_string(), proxy.setting)),
        Ok(Route::Direct { reason }) => Ok((String::new(), reason)),
        Err(error) => Err(error.into()),
    }
}

/// Status and body of the response to a recorded request.
#[pyfunction]
pub fn _send_recorded<'py>(
    client: &Bound<'py, Client>,
    path: String,
    params: Vec<(String, String)>,
) -> PyResult<(u16, Bound<'py, PyBytes>)> {
    let py = client.py();
    let client = client.get().inner.clone();
    let response = block_on(py, &client.clone(), async move { client.send_recorded(&path, &params).await })?;
    let response = response?;
    Ok((response.status, PyBytes::new(py, &response.body)))
}

/// A copy of the client without a cassette.
#[pyfunction]
pub fn _without_cassette(py: Python<'_>, client: &Bound<'_, Client>) -> PyResult<Client> {
    let given = client.get();
    let settings = Settings { cassette: None, ..given.inner.settings().clone() };
    // A client without a cassette on purpose needs none.
    let environment = Environment { origin: None, ..given.inner.environment().clone() };
    let inner = client::Client::with_environment(settings, environment)?;
    let callables = given.callables.derived(py, client.clone().into_any().as_unbound());
    Client::of(py, inner, given.progress, callables)
}
