//! Records of a response that a user has at hand.

use bytes::Bytes;
use pyo3::prelude::*;

use super::deployment::Deployment;
use crate::client::Error;
use crate::columns::Columns;
use crate::decode::{Decoder, Envelope};
use crate::interface::{self, ENDPOINTS, Endpoint, endpoint};
use crate::message::quoted;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query;

/// The result of a call whose only response has this body. `source` names the body in errors.
#[pyfunction]
pub fn _decode_response(
    call: &str,
    body: &[u8],
    source: &str,
    deployment: &Deployment,
    report: &Bound<'_, Report>,
) -> PyResult<Records> {
    let endpoint = called(call)?;
    let columns = decode(endpoint, &deployment.inner, body, source)?;
    let mut report = report.get().inner.clone();
    report.records = columns.rows() as u64;
    let records = query::Records::new(endpoint.record(), vec![columns]);
    Ok(Records::new(records, report, None))
}

/// The records of the body of a response.
pub(super) fn decode(
    endpoint: &'static Endpoint,
    deployment: &interface::Deployment,
    body: &[u8],
    source: &str,
) -> Result<Columns, Error> {
    let problem = match Decoder::new(endpoint, deployment).decode(&Bytes::copy_from_slice(body), 64) {
        Ok(Envelope::Page(page)) => return Ok(page.columns),
        Ok(Envelope::Error { code, .. }) => format!("the response is an error with code {code}"),
        Err(error) => format!("{}: {}", error.path(), error.problem),
    };
    Err(Error::Rows { endpoint: endpoint.name, problem: format!("{source}: {problem}") })
}

/// The endpoint of a call.
pub(super) fn called(call: &str) -> Result<&'static Endpoint, Error> {
    let names: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
    endpoint(call)
        .ok_or_else(|| Error::config("call", format!("must be one of {}; got {}", names.join(", "), quoted(call))))
}
