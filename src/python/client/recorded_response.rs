//! Records of a response that a user has at hand.

use bytes::Bytes;
use pyo3::prelude::*;

use super::deployment::Deployment;
use crate::client::Error;
use crate::columns::Columns;
use crate::decode::{Decoder, Envelope};
use crate::interface::{self, ENDPOINTS, Endpoint, endpoint};
use crate::python::base::errors;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query;

/// The result of a call whose only response has this body. `source` names the body in errors.
#[pyfunction]
pub fn _decode_response(
    py: Python<'_>,
    call: &str,
    body: &[u8],
    source: &str,
    deployment: &Deployment,
    report: &Bound<'_, Report>,
) -> PyResult<Records> {
    let endpoint = called(py, call)?;
    let columns = decode(py, endpoint, &deployment.inner, body, source)?;
    let mut report = report.get().inner.clone();
    report.records = columns.rows() as u64;
    let records = query::Records::new(endpoint.record(), vec![columns]);
    Ok(Records::new(records, report, None))
}

/// The records of the body of a response.
pub(super) fn decode(
    py: Python<'_>,
    endpoint: &'static Endpoint,
    deployment: &interface::Deployment,
    body: &[u8],
    source: &str,
) -> PyResult<Columns> {
    let reject = |problem: String| {
        errors::raise(py, &Error::config("data", format!("for {} is invalid: {source}: {problem}", endpoint.name)))
    };
    match Decoder::new(endpoint, deployment).decode(&Bytes::copy_from_slice(body), 64) {
        Ok(Envelope::Page(page)) => Ok(page.columns),
        Ok(Envelope::Error { code, .. }) => Err(reject(format!("the response is an error with code {code}"))),
        Err(error) => Err(reject(format!("{}: {}", error.path(), error.problem))),
    }
}

/// The endpoint of a call.
pub(super) fn called(py: Python<'_>, call: &str) -> PyResult<&'static Endpoint> {
    let names: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
    endpoint(call).ok_or_else(|| {
        let problem = format!("must be one of {}; got {call:?}", names.join(", "));
        errors::raise(py, &Error::config("call", problem))
    })
}
